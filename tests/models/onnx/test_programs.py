#!/usr/bin/env python3
"""Tests examples/onnx_batches on a small convolutional network: what it prints is what ONNX Runtime
computes, and files that it cannot run are refused with a message.

    test_programs.py BUILD
"""

import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)

CHANNELS, CLASSES = 8, 1000


def network():
    """Makes a network of two convolutions with a shortcut, pooling and a layer. The program's image
    is all zeros, so seeded biases decide the result."""
    rng = np.random.default_rng(50)
    weights = []

    def weight(name, *shape, fan):
        data = (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)
        weights.append(numpy_helper.from_array(data, name))
        return name

    def convolution(x, y, channels, size, **attributes):
        inputs = [x, weight(y + ".w", CHANNELS, channels, size, size, fan=channels * size * size),
                  weight(y + ".b", CHANNELS, fan=1)]
        return helper.make_node("Conv", inputs, [y], name=y, **attributes)

    def node(op, inputs, output, **attributes):
        return helper.make_node(op, inputs, [output], name=output, **attributes)

    for name, value in (("zero", 0.0), ("flat", np.array([0, -1]))):
        dtype = np.float32 if name == "zero" else np.int64
        weights.append(numpy_helper.from_array(np.array(value, dtype), name))
    nodes = [
        convolution("data", "stem", 3, 7, strides=[4, 4], pads=[3, 3, 3, 3]),
        node("Max", ["stem", "zero"], "a"),
        convolution("a", "inner", CHANNELS, 3, auto_pad="SAME_UPPER", strides=[2, 2]),
        convolution("a", "shortcut", CHANNELS, 1, strides=[2, 2]),
        node("Add", ["inner", "shortcut"], "sum"), node("Max", ["sum", "zero"], "b"),
        node("GlobalMaxPool", ["b"], "pooled"), node("Reshape", ["pooled", "flat"], "features"),
        node("MatMul", ["features", weight("layer.w", CHANNELS, CLASSES, fan=CHANNELS)], "product"),
        node("Add", ["product", weight("layer.b", CLASSES, fan=1)], "scores"),
    ]
    data = helper.make_tensor_value_info("data", TensorProto.FLOAT, ["N", 3, 224, 224])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES])
    graph = helper.make_graph(nodes, "network", [data], [scores], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=110)


def compare(printed, expected):
    """True if each line is "batch N: SCORE…" with the reference's N scores."""
    lines = [line.removeprefix("batch ").split(":") for line in printed.splitlines()]
    if [(int(n), len(scores.split())) for n, scores in lines] != [(1, 1), (3, 3), (8, 8)]:
        return False
    scale = expected.std()
    return all(abs(float(score) - expected[0, 0]) <= 1e-3 * abs(expected[0, 0]) + 1e-4 * scale
               for _, scores in lines for score in scores.split())


def main(build):
    program = Path(build).resolve() / "examples" / "onnx_batches"
    if not program.exists():
        print("skipped: the examples are not built")
        return 77
    failures = []
    model = network()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, {"data": np.zeros((1, 3, 224, 224), np.float32)})[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        r = run(program)
        if r.returncode != 2 or "usage" not in r.stderr:
            failures.append(f"without a model: {r}")
        r = run(program, path)
        if r.returncode != 1 or "network.onnx" not in r.stderr or r.stdout:
            failures.append(f"without the file: {r}")
        onnx.save(model, path)
        r = run(program, path)
        if r.returncode or not compare(r.stdout, expected):
            failures.append(f"{r}; ONNX Runtime has {expected[0, 0]}")
        else:
            print(r.stdout, end="")
        path.write_bytes(path.read_bytes()[:path.stat().st_size // 2])
        r = run(program, path)
        if r.returncode != 1 or "network.onnx" not in r.stderr or r.stdout:
            failures.append(f"with half of the file: {r}")
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
        onnx.save(model, path)
        r = run(program, path)
        if r.returncode != 1 or "first size varies" not in r.stderr or r.stdout:
            failures.append(f"where no size varies: {r}")
    for f in failures:
        print("FAILED", f)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
