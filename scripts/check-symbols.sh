#!/bin/bash
# Checks the symbols of the built library:
#   - it exports tn_* and nothing else;
#   - it calls nothing that ends the process or writes to the terminal;
#   - it has no writable data except that listed here.
#
#   scripts/check-symbols.sh [--assertions] libtenon.so libtenon.a
#
# --assertions: a build with assertions on, which may call __assert_fail.
set -euo pipefail

# Written once: when the first context opens, and when the first hash is computed. MPI is one for a
# process, whatever contexts it has, and so is OpenBLAS.
writable='process_registry|hash_process|mpi_process|openblas_process'

ends='abort|exit|_exit|_Exit|quick_exit|raise|__assert_fail|__assert_perror_fail'
ends+='|err|errx|verr|verrx|__chk_fail|__fortify_fail'
prints='stdout|stderr|printf|vprintf|puts|putchar|putc_unlocked|putchar_unlocked|perror|psignal'
prints+='|warn|warnx|vwarn|vwarnx|syslog|vsyslog|__printf_chk|__vprintf_chk'

assertions=false
if [ "${1-}" = --assertions ]; then assertions=true; shift; fi
if [ $# -ne 2 ]; then
  echo "usage: check-symbols.sh [--assertions] libtenon.so libtenon.a" >&2
  exit 2
fi
shared=$1 static=$2
for file in "$shared" "$static"; do
  [ -r "$file" ] || { echo "check-symbols: cannot read $file" >&2; exit 1; }
done

wrong=0
# report WHAT: prints an error for each line of standard input
report() {
  local line
  while read -r line; do
    echo "check-symbols: $1: $line"
    wrong=$((wrong + 1))
  done
}

exported() { nm "${@:1:$#-1}" --defined-only --format=posix "${!#}" | awk 'NF > 1 { print $1 }'; }

# External names that both libraries use, without their version.
undefined() {
  { nm -D --undefined-only --format=posix "$shared"
    nm --undefined-only --format=posix "$static"; } |
    awk 'NF > 1 { sub(/@.*/, "", $1); print $1 }' | sort -u
}

# Objects in sections that can be written to at run time, "section name". Relocated constants
# (.data.rel.ro) are read-only by then.
writable_data() {
  local sections='(\.data|\.bss|\.tdata|\.tbss|\*COM\*)'
  objdump --syms --wide "$static" |
    sed -nE "s/^[0-9a-f]+ .{7} ($sections[^\t ]*)\t[0-9a-f]+ +(\.hidden )?(.+)$/\1 \4/p" |
    awk '$1 !~ /^\.data\.rel\.ro/ && $1 != $2'
}

public=$(exported -D "$shared" | grep -c '^tn_' || true)
[ "$public" -gt 0 ] || report 'no function is exported' <<<"$shared"
report 'exported by the shared library' < <(exported -D "$shared" | grep -v '^tn_')
report 'global in the static library' < <(exported --extern-only "$static" | grep -v '^tn_')
report 'exported by one library alone' < <(
  diff <(exported -D "$shared" | sort) <(exported --extern-only "$static" | sort) | grep '^[<>]')

if $assertions; then ends=${ends/|__assert_fail/}; fi
report 'may end the process' < <(undefined | grep -xE "$ends")
report 'may print' < <(undefined | grep -xE "$prints")
report 'writable data' < <(writable_data | grep -vE " ($writable)$")

echo "check-symbols: $public public functions, $wrong wrong"
[ "$wrong" -eq 0 ]
