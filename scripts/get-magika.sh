#!/bin/sh
# Fetches Magika's model for examples/filetype into a folder:
#   model.onnx, config.min.json, metadata.json, README.md, content_types_kb.min.json
#
#   scripts/get-magika.sh DEST
#
# The source is the wheel of the Python package magika for every platform, pinned by version and
# hash. Nothing is installed. Valid files that exist are kept. Needs python3 and pip (Debian: python3-pip); PYTHON names another interpreter.
# Magika is licensed under the Apache License 2.0.
set -eu

version=1.0.3
wheel=938d8e033953f2ddeb8c35dc423aa289ca116bfa7a71a778f6e77460f9025803
files='
fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c  model.onnx
ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db  config.min.json
1f89624fc8ff832308cddf8692149cd7d1072e7aba2f4d348e2400e3aafb2c4d  metadata.json
0fbe867dedcdfc2dfb3fe31bb66724af8a7fd084a403408958fb7660058f23db  README.md
75208adba69bc0556403b62b32ef3ccf8b5ce494411780845852e52e6583a10d  content_types_kb.min.json
'
python=${PYTHON:-python3}

fail() { echo "get-magika: $*" >&2; exit 1; }

right() { (cd "$1" && printf '%s' "$files" | sed 1d | sha256sum --check --status 2>/dev/null); }

case ${1-} in -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit ;; esac
case $#${1-} in 1-*) set -- ;; esac
[ $# -eq 1 ] || { echo "usage: get-magika.sh DEST" >&2; exit 2; }
mkdir -p "$1" || fail "cannot make the folder $1"
dest=$(cd "$1" && pwd)
right "$dest" && exit 0

"$python" -m pip --version >/dev/null 2>&1 ||
  fail "$python has no pip: install python3-pip, or name another interpreter in PYTHON"
work=$(mktemp -d "$dest/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "magika==$version --hash=sha256:$wheel" >"$work/requirements.txt"
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --only-binary :all: --requirement "$work/requirements.txt" --dest "$work" ||
  fail "cannot download magika $version from the package index"

mkdir "$work/files"
"$python" - "$work"/magika-*.whl "$work/files" <<'PYTHON' || fail "the wheel cannot be unpacked"
import pathlib, sys, zipfile

wheel, dest = sys.argv[1], pathlib.Path(sys.argv[2])
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        path = pathlib.PurePosixPath(name)
        if path.parent.name == "standard_v3_3" or path.name == "content_types_kb.min.json":
            (dest / path.name).write_bytes(archive.read(name))
PYTHON
right "$work/files" || fail "the wheel's files are not the expected ones"
mv -f "$work/files"/* "$dest"/
