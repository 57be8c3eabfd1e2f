#!/bin/bash
# Mutation testing: applies the faults of tests/mutants/mutants.toml one by one to a copy of the
# checkout, rebuilds it, and runs the nearest tests, then the dev suite, up to the first failure. A
# run of all faults begins with the suite without a fault, which must pass. Results are kept in
# build/mutants, so that a stopped run continues where it was.
#
#   scripts/mutants.sh              all faults without a result for their text; prints the table
#   scripts/mutants.sh NAME...      these faults
#   scripts/mutants.sh --fresh      forgets all results first
#   scripts/mutants.sh --check      only checks that each fault's text occurs once in its file
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/mutants.py "$@"
