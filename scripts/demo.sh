#!/bin/bash
# Shows Tenon at work: sets up, builds, fetches Magika's network, and lets examples/filetype tell
# the kinds of some files with it.
#
#   scripts/demo.sh [PATH...]    of these files instead of the demo's own
set -euo pipefail
case ${1-} in
-h | --help)
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
--) shift ;;
-*)
  echo "demo.sh: there is no option $1 (-- ends options)" >&2
  exit 2
  ;;
esac
caller=$PWD
cd "$(dirname "$0")/.."
root=$PWD
. scripts/steps.sh
trap - EXIT

model=build/models/magika
files=build/demo

make_files() {
  rm -rf $files
  mkdir -p $files
  /usr/bin/python3 scripts/demo-files.py $files
  cp CMakeLists.txt CMakePresets.json scripts/setup.sh scripts/check-layers.py $files/
  cp "$(find src -name '*.c' | sort | head -n 1)" $files/
  cp build/release/libtenon.so.0 $files/
}

step 'set-up' scripts/setup.sh
step 'build release' build release
step 'model' env PYTHON=/usr/bin/python3 scripts/get-magika.sh $model
[ $# -gt 0 ] || { step 'files' make_files; caller=$root; set -- $files; }
echo
cd "$caller"
"$root/build/release/examples/filetype" --model "$root/$model" -- "$@"
