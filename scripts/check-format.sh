#!/bin/sh
# Checks the format of C and C++ sources by clang-format 14; --fix formats them.
set -eu
cd "$(dirname "$0")/.."

for tool in clang-format-14 clang-format none; do
  "$tool" --version 2>/dev/null | grep -q 'version 14\.' && break
done
if [ "$tool" = none ]; then
  echo "check-format: clang-format 14 is missing: scripts/setup.sh --tests" >&2
  exit 1
fi

list=$(find src include tests tools examples bench -type f \
  \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) | sort)
[ -n "$list" ] || { echo "check-format: no sources found" >&2; exit 1; }

case ${1-} in
--fix) printf '%s\n' "$list" | xargs "$tool" -i --style=file ;;
'')
  wrong=$(printf '%s\n' "$list" | xargs "$tool" --dry-run -Werror --style=file 2>&1 |
    sed -n 's/^\([^ :]*:[0-9]*\):[0-9]*: error: .*/\1/p' | awk -F: '!seen[$1]++')
  if [ -n "$wrong" ]; then
    echo "not as clang-format 14 writes it, first at (scripts/check-format.sh --fix):"
    printf '%s\n' "$wrong"
    exit 1
  fi
  ;;
*) echo "usage: check-format.sh [--fix]" >&2; exit 2 ;;
esac
echo "check-format: $(printf '%s\n' "$list" | wc -l) files"
