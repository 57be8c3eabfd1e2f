#!/usr/bin/env python3
"""Measures Tenon beside ONNX Runtime and memcpy, in turn in one run, and prints Markdown.

    scripts/compare.py [--build build/release] [--model MODEL.onnx] [--rounds 5] [--threads N]

Needs the Python environment that `scripts/setup.sh --tests` makes (run it with that Python).
Each round runs every side once, so that all see the same weather; a figure is the best of all
rounds, and the spread is that of the rounds' ratios.
"""
import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


def processor():
    with open("/proc/cpuinfo") as f:
        lines = [l.split(":", 1)[1].strip() for l in f if l.startswith("model name")]
    return f"{lines[0] if lines else platform.machine()}, {os.cpu_count()} cores"


def network(nodes, shapes, out, constants=()):
    """A model of nodes (op, inputs, output, attributes) over inputs x0, x1, … to y."""
    ports = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, s)
             for i, s in enumerate(shapes)]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    made = [helper.make_node(op, inputs, [output], **attributes)
            for op, inputs, output, attributes in nodes]
    graph = helper.make_graph(made, "compared", ports, [result],
                              [helper.make_tensor(n, TensorProto.FLOAT, [], [v])
                               for n, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


def one_node(op, shapes, out, **attributes):
    inputs = [f"x{i}" for i in range(len(shapes))]
    return network([(op, inputs, "y", attributes)], shapes, out)


def attention(heads, length, size):
    shape, scores = [1, heads, length, size], [("scale", size ** -0.5)]
    return network([("Transpose", ["x1"], "keys", {"perm": [0, 1, 3, 2]}),
                    ("MatMul", ["x0", "keys"], "products", {}),
                    ("Mul", ["products", "scale"], "scaled", {}),
                    ("Softmax", ["scaled"], "weights", {"axis": -1}),
                    ("MatMul", ["weights", "x2"], "y", {})], [shape] * 3, shape, scores)


# What is compared: a name, the workload of `tenon bench`, the same for ONNX Runtime.
CASES = [
    ("matmul 512", "matmul:512x512x512", one_node("MatMul", [[512, 512]] * 2, [512, 512])),
    ("matmul 1024", "matmul:1024x1024x1024",
     one_node("MatMul", [[1024, 1024]] * 2, [1024, 1024])),
    ("convolution 1 × 1, 256 channels, 14 × 14", "conv:1,256,14,14,256,1,1,0",
     one_node("Conv", [[1, 256, 14, 14], [256, 256, 1, 1]], [1, 256, 14, 14])),
    ("convolution 3 × 3, 64 channels, 56 × 56", "conv:1,64,56,56,64,3,1,1",
     one_node("Conv", [[1, 64, 56, 56], [64, 64, 3, 3]], [1, 64, 56, 56], pads=[1, 1, 1, 1])),
    ("attention 12 × 512 × 64", "attention:12x512x64", attention(12, 512, 64)),
    ("softmax 4096 × 1024", "softmax:4096x1024",
     one_node("Softmax", [[4096, 1024]], [4096, 1024], axis=-1)),
    ("layer norm 4096 × 1024", "layernorm:4096x1024",
     one_node("LayerNormalization", [[4096, 1024], [1024], [1024]], [4096, 1024])),
    ("add 4096 × 1024", "add:4096x1024", one_node("Add", [[4096, 1024]] * 2, [4096, 1024])),
]


class Runtime:
    """One model under ONNX Runtime, with the seeded inputs of its shapes (open sizes are 1)."""

    def __init__(self, model, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options,
                                                    providers=["CPUExecutionProvider"])
        rng = np.random.default_rng(0)
        self.feed = {}
        for port in self.session.get_inputs():
            shape = [d if isinstance(d, int) else 1 for d in port.shape]
            if "int" in port.type:
                self.feed[port.name] = rng.integers(0, 200, shape).astype(
                    np.int32 if "32" in port.type else np.int64)
            else:
                self.feed[port.name] = rng.standard_normal(shape).astype(np.float32)

    def best_ms(self, repeats=20):
        self.session.run(None, self.feed)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            self.session.run(None, self.feed)
            times.append(time.perf_counter() - start)
        return 1e3 * min(times)


def memcpy_ms(size, repeats=20):
    a, b = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        ctypes.memmove(b.ctypes.data, a.ctypes.data, size)
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def tenon_ms(command, what, threads):
    run = subprocess.run([command, "bench", what, "--json", "--repeat", "20", "--threads",
                          str(threads)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"compare: {' '.join(run.args)} failed:\n{run.stderr}")
    return json.loads(run.stdout)["best_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--model", default="build/models/magika/model.onnx")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    command = os.path.join(args.build, "tenon")
    cases = [(name, workload, "ONNX Runtime", Runtime(model, args.threads).best_ms)
             for name, workload, model in CASES]
    cases.append(("copy 64 MiB", f"copy:{64 << 20}", "memcpy, one thread",
                  lambda: memcpy_ms(64 << 20)))
    if os.path.exists(args.model):
        magika = Runtime(args.model, args.threads)
        cases.insert(0, ("Magika, one file", args.model, "ONNX Runtime", magika.best_ms))
    else:
        print(f"compare: no model at {args.model}: left out", file=sys.stderr)
    figures = {case[0]: [] for case in cases}
    for r in range(args.rounds):
        for name, workload, _, peer in cases:
            print(f"round {r + 1}/{args.rounds}: {name}", file=sys.stderr)
            figures[name].append((tenon_ms(command, workload, args.threads), peer()))
    print(f"{processor()}; {args.threads} threads; onnxruntime {onnxruntime.__version__}; "
          f"best of {args.rounds} rounds of 20\n")
    print("| | Tenon, ms | peer, ms | peer | Tenon ÷ peer (rounds) |\n|---|---|---|---|---|")
    for name, _, peer, _ in cases:
        ours, theirs = zip(*figures[name])
        ratios = [a / b for a, b in figures[name]]
        print(f"| {name} | {min(ours):.3f} | {min(theirs):.3f} | {peer} | "
              f"{min(ours) / min(theirs):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
