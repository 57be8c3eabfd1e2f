#!/usr/bin/env python3
"""Measures Tenon beside ONNX Runtime and memcpy, in turns within one run, and prints Markdown.

    scripts/compare.py [--build build/release] [--model MODEL.onnx] [--rounds 5] [--threads 2]

This is bench/ with what the tests need (run it with the Python that `scripts/setup.sh --tests`
makes); bench/run measures more, beside more.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import main as bench  # noqa: E402

WORKLOADS = ("matmul:512x512x512", "matmul:1024x1024x1024", "conv:1,256,14,14,256,1,1,0",
             "conv:1,64,56,56,64,3,1,1", "attention:12x512x64", "softmax:4096x1024",
             "layernorm:4096x1024", "add:4096x1024", "copy:67108864")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--model", default="build/models/magika/model.onnx")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--threads", default="2")
    args = parser.parse_args()
    models = [args.model] if Path(args.model).exists() else []
    if not models:
        print(f"compare: no model at {args.model}: left out", file=sys.stderr)
    return bench.main(["--build", args.build, "--rounds", args.rounds, "--threads", args.threads,
                       "--isa", "native", "--peers", "onnxruntime,memcpy", "--print", *models,
                       *WORKLOADS])


if __name__ == "__main__":
    sys.exit(main())
