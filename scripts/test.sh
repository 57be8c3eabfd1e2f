#!/bin/bash
# Tests everything that is checked on every change.
#
#   scripts/test.sh            all of it
#   scripts/test.sh --quick    set-up and the dev suite
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1-} in
'') quick=false ;;
--quick) quick=true ;;
*) echo "usage: test.sh [--quick]" >&2; exit 2 ;;
esac

. scripts/steps.sh
export TENON_CACHE=off   # what is tested is compiled

step 'set-up' scripts/setup.sh --tests
suite dev
$quick && exit
suite release -DTENON_TESTS=ON
suite asan
suite fuzz

python=build/venv/bin/python magika=build/models/magika corpus=build/models/magika-corpus
step 'get magika' env PYTHON=$python scripts/get-magika.sh $magika
step 'make its corpus' $python tests/models/magika/make_corpus.py $corpus
check 'compare with magika' $python tests/models/magika/compare.py \
  --filetype build/release/examples/filetype --model $magika $corpus
