# For scripts that run in steps: sourced, from the root of the checkout.
#
#   step NAME COMMAND...     runs quietly; its output is shown if it fails
#   check NAME COMMAND...    the same for a command that is a test
#   suite PRESET [ARG...]    builds a preset (ARG: for cmake) and runs its tests
#   build_suite, run_suite   the two halves of `suite`
#   finish PID LOG           a command for `check`: waits for a background job that writes to LOG
#
# The first step that fails ends the script; suites that fail do not, and are counted. The last line
# is the sum of all tests.

step_number=0 tests_passed=0 tests_failed=0 tests_skipped=0
jobs=$(nproc)
logs=build/logs
mkdir -p $logs

step() {
  local name=$1 log from=$SECONDS
  shift
  step_number=$((step_number + 1))
  log=$logs/$(printf '%02d-%s' $step_number "${name//[^A-Za-z0-9]/-}").log
  printf '[%d] %s ... ' $step_number "$name"
  if "$@" >"$log" 2>&1; then
    echo "$((SECONDS - from)) s"
  else
    echo "failed after $((SECONDS - from)) s; the end of $log:"
    tail -n 60 "$log"
    tests_failed=$((tests_failed + 1))
    exit 1
  fi
}

check() {
  step "$@"
  tests_passed=$((tests_passed + 1))
}

build() {
  local preset=$1
  shift
  cmake --preset "$preset" "$@" && cmake --build --preset "$preset" --parallel "$jobs"
}

# count REPORT: adds up a JUnit report of CTest
count() {
  local all failed skipped
  read -r all failed skipped < <(sed -n 's/^\t*tests="\([0-9]*\)"$/\1/p
    s/^\t*failures="\([0-9]*\)"$/\1/p; s/^\t*skipped="\([0-9]*\)"$/\1/p' "$1" | xargs)
  tests_passed=$((tests_passed + all - failed - skipped))
  tests_failed=$((tests_failed + failed))
  tests_skipped=$((tests_skipped + skipped))
}

finish() {
  local status=0
  wait "$1" || status=$?
  cat "$2"
  return $status
}

suite() {
  build_suite "$@"
  run_suite "$1"
}

build_suite() { step "build $1" build "$@"; }

run_suite() {
  local preset=$1 report from
  step_number=$((step_number + 1))
  from=$SECONDS
  report=$PWD/$logs/$preset.xml
  rm -f "$report"
  echo "[$step_number] test $preset"
  ctest --preset "$preset" --no-label-summary --parallel "$jobs" --output-junit "$report" || true
  [ -s "$report" ] || { echo "no test of $preset ran"; exit 1; }
  count "$report"
  echo "[$step_number] test $preset ... $((SECONDS - from)) s"
}

closing_line() {
  local status=$?
  echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"
  echo "$tests_passed passed, $tests_failed failed, $tests_skipped skipped"
  if [ $status -eq 0 ] && { [ $tests_failed -gt 0 ] || [ $tests_passed -eq 0 ]; }; then exit 1; fi
}
trap closing_line EXIT
