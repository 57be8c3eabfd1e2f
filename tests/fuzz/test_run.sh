#!/bin/bash
# Checks that run.sh passes a corpus and seeds to its program, and fails without seeds.
#
#   test_run.sh BUILD
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run=tests/fuzz/run.sh
mkdir "$folder/empty" "$folder/full"
: >"$folder/full/one"

fail() { echo "test_run: $*" >&2; exit 1; }

for seeds in empty missing; do
  if bash "$run" echo "$folder/corpus" "$folder/$seeds" 2>"$folder/said"; then
    fail "it ran with the seeds '$seeds'"
  fi
  grep -q "no seeds in $folder/$seeds" "$folder/said" || fail "it said: $(cat "$folder/said")"
done
said=$(bash "$run" echo "$folder/corpus" "$folder/full" -runs=1)
[ "$said" = "-runs=1 $folder/corpus $folder/full" ] || fail "it ran '$said'"
[ -d "$folder/corpus" ] || fail "it made no corpus"
