#!/bin/bash
# Checks the backend CUDA on a machine with a GPU of NVIDIA's in less than ten minutes: builds, runs
# the operator suite, random graphs and queues on it, and measures workloads.
#
#   scripts/check-gpu.sh [OUT]   OUT: folder for logs; default build/gpu
#
# With TENON_BUILD, a folder that was built elsewhere, it builds nothing.
# Needs what scripts/setup.sh and --cuda install, or CUDA's toolkit; steps whose packages are missing
# (cmocka, NumPy) are left out and say so. Exits with 1 if a step fails. Steps are cut off after
# their share of the time.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:-build/gpu}
mkdir -p "$out"
build=${TENON_BUILD:-build/gpu-release}
export TENON_DEVICE=CUDA TENON_CACHE=off
failed=0

if [ -z "${TENON_NVRTC-}" ]; then
  for file in build/cuda/venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.1?; do
    [ -e "$file" ] && export TENON_NVRTC=$PWD/$file
  done
fi
python=python3
[ -x build/venv/bin/python3 ] && python=build/venv/bin/python3

# step NAME SECONDS COMMAND…: runs a command with a time limit and keeps what it says.
step() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  status=$?
  case $status in
  0) status=ok ;;
  77) status=skipped ;;
  124) status="cut off after $limit s" ;;
  *) status=FAILED failed=1 ;;
  esac
  printf '%-28s %s, %d s\n' "$name" "$status" $((SECONDS - start))
  [ "$status" != FAILED ] || tail -n 20 "$out/$name.log"
}

if [ -z "${TENON_BUILD-}" ]; then
  step configure 30 cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DTENON_TESTS=OFF
  step build 180 cmake --build $build -j "$(nproc)"
  [ $failed = 0 ] || exit 1
  if pkg-config --exists cmocka 2>/dev/null; then
    step configure-tests 30 cmake -S . -B $build -DTENON_TESTS=ON
    step build-tests 60 cmake --build $build -j "$(nproc)" --target random_graphs random_queues
  fi
fi
"$build"/tenon devices | tee "$out/devices.log" | sed -n '/^CUDA/,/^$/p'
if ! grep -q '^CUDA:0 .*compute capability' "$out/devices.log"; then
  echo "there is no GPU to check"
  exit 1
fi

if $python -c 'import numpy, onnxruntime' 2>/dev/null; then
  for suite in tests/ops/test_*.py; do
    name=$(basename "$suite" .py)
    [ "$name" = test_coverage ] && continue
    # A record has the suite run a share of its cases.
    step "ops.${name#test_}" 40 env TENON_TEST_SHARE=4 TENON_TEST_RECORD="$out/$name.results" \
      $python "$suite" "$build"
  done
else
  echo "without NumPy and ONNX Runtime: the operator suite is left out"
fi
for name in graphs queues; do
  program=$build/tests/random_$name
  if [ -x "$program" ]; then
    step random.$name 40 "$program" --cuda --seed=1
  else
    echo "without $program: random $name are left out"
  fi
done
for workload in matmul:1024x1024x1024 matmul:4096x4096x4096 matmul:1024x1024x1024:bf16 \
  softmax:4096x4096 layernorm:4096x4096 add:8192x8192 sum:8192x8192:1 transpose:4096x4096 \
  attention:16x1024x64; do
  step "bench.${workload//:/-}" 20 "$build"/tenon bench "$workload"
  grep -hE '^(best|rate|traffic)' "$out/bench.${workload//:/-}.log" | sed 's/^/    /'
done
exit $failed
