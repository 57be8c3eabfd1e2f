#!/bin/bash
# Installs what Tenon needs on Debian 12, and only what is missing.
#
#   scripts/setup.sh            to build and use it
#   scripts/setup.sh --llvm     with the LLVM module besides, which compiles kernels faster than gcc
#   scripts/setup.sh --tests    to test it too
#   scripts/setup.sh --bench    to measure it beside others; who cannot be had is left out
#   scripts/setup.sh --cuda     to use it on NVIDIA's GPUs, whose driver is there: NVRTC (220 MB)
#
# Python packages go to build/venv, build/bench/venv and build/cuda/venv; pip's own configuration
# (pip.conf, PIP_*) is honoured.
set -euo pipefail
cd "$(dirname "$0")/.."

# binutils and gcc are also needed when kernels are compiled; python3-pip fetches models.
build=(
  gcc libc6-dev binutils cmake ninja-build pkg-config ca-certificates
  nanopb libnanopb-dev libxxhash-dev libcpuinfo-dev libjansson-dev
  python3 python3-pip
)
bench=(clang-14 libdnnl-dev libopenblas-dev python3-venv)
llvm=(g++ llvm-19-dev)
tests=(g++ clang-14 libclang-rt-14-dev llvm-14 clang-format-14 libcmocka-dev python3-venv z3)
opencl=(ocl-icd-libopencl1 pocl-opencl-icd)
mpi=(openmpi-bin)
pictures=(libpng16-16 libjpeg62-turbo-dev libopenjp2-7 libtiff6 libwebp7)

fail() { echo "setup: $*" >&2; exit 1; }

case ${1-} in
'' | --llvm | --tests | --bench | --cuda) purpose=${1-} ;;
-h | --help) sed -n '2,11s/^# \?//p' scripts/setup.sh; exit ;;
*) echo "usage: setup.sh [--llvm|--tests|--bench|--cuda]" >&2; exit 2 ;;
esac

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  local package missing=() as_root=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: the Debian packages are there"
    return
  fi

  local options=(install --yes --no-install-recommends)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing, and only root can install them:
  ${missing[*]}
Run as root:
  apt-get update && apt-get ${options[*]} ${missing[*]}"
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update --quiet=2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get "${options[@]}" --quiet=2 -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
}

# Debian's interpreter, whatever is first in PATH: the versions are pinned for it.
install_test_packages() {
  local wanted=scripts/requirements-tests.txt venv=build/venv
  if cmp -s $wanted $venv/requirements.txt; then
    echo "setup: the Python packages are there"
    return
  fi
  echo "setup: installing Python packages into $venv"
  mkdir -p build
  /usr/bin/python3 -m venv --clear $venv
  $venv/bin/pip install --quiet --disable-pip-version-check --requirement $wanted
  cp $wanted $venv/requirements.txt
}

# Each list contains all dependencies, so that nothing else is installed.
install_bench_packages() {
  local wanted venv=build/bench/venv
  [ -x $venv/bin/pip ] || { mkdir -p build/bench && /usr/bin/python3 -m venv --clear $venv; }
  for wanted in bench/requirements/*.txt; do
    cmp -s "$wanted" "$venv/${wanted##*/}" && continue
    echo "setup: installing the Python packages of $wanted"
    if $venv/bin/pip install --quiet --disable-pip-version-check --no-deps \
      --requirement "$wanted"; then
      cp "$wanted" $venv
    elif [ "${wanted##*/}" = base.txt ]; then
      fail "the benchmark does not run without the packages of $wanted"
    else
      echo "setup: $wanted cannot be installed: left out" >&2
    fi
  done
}

# NVRTC is found there by TENON_NVRTC alone.
install_nvrtc() {
  local wanted=scripts/requirements-cuda.txt venv=build/cuda/venv
  if ! cmp -s $wanted $venv/requirements.txt; then
    echo "setup: installing NVRTC into $venv"
    mkdir -p build/cuda
    /usr/bin/python3 -m venv --clear $venv
    $venv/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement $wanted
    cp $wanted $venv/requirements.txt
  fi
  echo "setup: NVRTC is there: export TENON_NVRTC=$(echo "$PWD"/$venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1?)"
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "this is for Debian 12; elsewhere install the like of: ${build[*]}"

case $purpose in
'') install_packages "${build[@]}" ;;
--llvm) install_packages "${build[@]}" "${llvm[@]}" ;;
--tests)
  install_packages "${build[@]}" "${tests[@]}" "${pictures[@]}"
  (install_packages "${llvm[@]}") ||
    echo "setup: ${llvm[*]} cannot be installed: the LLVM module is left out, and its tests are skipped" >&2
  (install_packages "${opencl[@]}") ||
    echo "setup: ${opencl[*]} cannot be installed: tests of OpenCL are skipped" >&2
  (install_packages "${mpi[@]}") ||
    echo "setup: ${mpi[*]} cannot be installed: tests of groups of processes are skipped" >&2
  install_test_packages
  ;;
--bench)
  install_packages "${build[@]}"
  (install_packages "${bench[@]}") || echo "setup: of ${bench[*]} some are missing: left out" >&2
  install_bench_packages
  ;;
--cuda)
  install_packages "${build[@]}" python3-venv
  install_nvrtc
  ;;
esac
