#!/bin/bash
# Shows that the tests see faults: applies those of tests/mutants/mutants.toml one by one to a copy
# of the checkout, rebuilds what changed, and runs the nearest tests, then the dev suite, up to the
# first that fails. A run of all begins with that suite without a fault, which has to pass. Results
# are kept in build/mutants: what was stopped goes on where it was.
#
#   scripts/mutants.sh              all that have no result for their text yet; the table at the end
#   scripts/mutants.sh NAME...      these
#   scripts/mutants.sh --fresh      forgets all results first
#   scripts/mutants.sh --check      only whether each fault's text stands once in its file
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 scripts/mutants.py "$@"
