#!/bin/bash
# Runs a fuzzer from the seeds of seeds.c: run.sh PROGRAM CORPUS SEEDS OPTION…
# New inputs are added to CORPUS. Fails without seeds, as a fuzzer would find nothing then.
set -eu
program=$1 corpus=$2 seeds=$3
shift 3

if ! [ "$(ls -A "$seeds" 2>/dev/null)" ]; then
  echo "run.sh: there are no seeds in $seeds" >&2
  exit 1
fi
mkdir -p "$corpus"
exec "$program" "$@" "$corpus" "$seeds"
