#!/bin/bash
# Runs the checks of every change: the suites with assertions, optimised and under sanitizers, the
# fuzzers for seconds each, and a real model. CONTRIBUTING.md lists the tests of each suite.
#
#   scripts/test.sh            all of it, 10 to 15 minutes on two cores
#   scripts/test.sh --quick    set-up and the dev suite, about 5 minutes
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
'') quick=false ;;
--quick) quick=true ;;
-h | --help) sed -n '2,6s/^# \?//p' scripts/test.sh; exit ;;
*) echo "usage: test.sh [--quick]" >&2; exit 2 ;;
esac

. scripts/steps.sh
export TENON_CACHE=off   # every tested kernel is compiled anew

step 'set-up' scripts/setup.sh --tests
suite dev
$quick && exit
suite release -DTENON_TESTS=ON
suite asan
build_suite fuzz

python=build/venv/bin/python magika=build/models/magika corpus=build/models/magika-corpus
compare_with_magika() {
  PYTHON=$python scripts/get-magika.sh $magika &&
    $python tests/models/magika/make_corpus.py $corpus &&
    $python tests/models/magika/compare.py \
      --filetype build/release/examples/filetype --model $magika $corpus
}
compare_with_magika >$logs/magika.log 2>&1 &   # beside the fuzzers, which run for a fixed time
comparison=$!
run_suite fuzz
check 'compare with magika' finish $comparison $logs/magika.log
