#!/bin/bash
# Fuzzes from what seeds.c wrote: run.sh PROGRAM CORPUS SEEDS OPTION…
# What is found goes to CORPUS. A run that starts from nothing fails: it would find nothing either.
set -eu
program=$1 corpus=$2 seeds=$3
shift 3

if ! [ "$(ls -A "$seeds" 2>/dev/null)" ]; then
  echo "run.sh: there are no seeds in $seeds" >&2
  exit 1
fi
mkdir -p "$corpus"
exec "$program" "$@" "$corpus" "$seeds"
