#!/bin/bash
# Installs a build into a folder, moves that folder, and builds and runs a user's programs against
# it: C and C++, shared and static, found by CMake and by pkg-config.
#
#   tests/install/test_consumers.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")"
work=$build/tests/install
prefix=$work/moved

# run WAY PROGRAM: runs it and checks that it links to libtenon.so if and only if WAY is shared
run() {
  local bound=static
  if readelf -d "$2" | grep -q 'NEEDED.*libtenon\.so'; then bound=shared; fi
  [ $bound = "$1" ] || { echo "$2 is linked to the $bound library, not the $1 one"; exit 1; }
  "$2" || { echo "$2 failed"; exit 1; }
  echo "ran ${2#"$work"/}"
}

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/installed" >/dev/null
mv "$work/installed" "$prefix"
libdir=$(dirname "$(find "$prefix" -name libtenon.a)")

doc=$prefix/share/doc/tenon
mapfile -t named < <(grep -oE '(docs|examples)/[a-z_]+[a-z_./]*[a-z]' "$doc/README.md" | sort -u)
for name in LICENSE "${named[@]}"; do
  [ -s "$doc/$name" ] || { echo "$name is not installed"; exit 1; }
done
mapfile -t linked < <(grep -ohE '\]\([a-z-]+\.md' "$doc"/docs/*.md | sed 's/^](//' | sort -u)
for name in "${linked[@]}"; do
  [ -s "$doc/docs/$name" ] || { echo "a page links to docs/$name, which is not installed"; exit 1; }
done

echo 'CMake:'
cmake -S . -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake" >/dev/null
for language in c cpp; do
  run shared "$work/cmake/shared_$language"
  run static "$work/cmake/static_$language"
done

echo 'pkg-config:'
export PKG_CONFIG_PATH=$libdir/pkgconfig
read -ra compile < <(pkg-config --cflags tenon)
read -ra shared < <(pkg-config --libs tenon)
read -ra static < <(pkg-config --libs tenon-static)
mkdir "$work/pkg-config"
# link LANGUAGE COMPILER...
link() {
  local language=$1 to=$work/pkg-config
  shift
  "$@" -Wall -Wextra -Wpedantic -Werror "${compile[@]}" main."$language" \
    -o "$to/shared_$language" "${shared[@]}" -Wl,-rpath,"$libdir"
  "$@" -Wall -Wextra -Wpedantic -Werror "${compile[@]}" main."$language" \
    -o "$to/static_$language" "${static[@]}"
  run shared "$to/shared_$language"
  run static "$to/static_$language"
}
link c cc -std=c11
link cpp c++ -std=c++17

if [ -x "$prefix/bin/tenon" ]; then "$prefix/bin/tenon" version; fi
