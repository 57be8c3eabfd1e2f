#!/bin/bash
# The checks that take hours: every suite with its long inputs (TENON_LONG=1), under every
# sanitizer, then each fuzzer for a while.
#
#   scripts/check-long.sh [MINUTES]    a fuzzer's time, 10 unless said
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in -h | --help) sed -n '2,5s/^# \?//p' scripts/check-long.sh; exit ;; esac
minutes=${1:-10}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "usage: check-long.sh [MINUTES]" >&2; exit 2; }

. scripts/steps.sh
export TENON_LONG=1
hours=$((6 * 3600))

step 'set-up' scripts/setup.sh --tests
suite dev -DTENON_TEST_SECONDS=$hours
suite release -DTENON_TESTS=ON -DTENON_ALL_TESTS=ON -DTENON_TEST_SECONDS=$hours
suite asan -DTENON_TEST_SECONDS=$hours
suite tsan -DTENON_TEST_SECONDS=$hours
suite fuzz -DTENON_FUZZ_SECONDS=$((minutes * 60))
