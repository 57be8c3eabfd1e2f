#!/usr/bin/env python3
"""Tests examples/onnx_batches on a small convolutional network, and examples/onnx_steps on a cell of
attention with a cache: what they print is what ONNX Runtime computes, and what they cannot run is
refused with a message.

    test_programs.py BUILD
"""

import re
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


def cell(*batch):
    """Makes a step of attention: a row over all rows so far, and a sum of all steps."""
    width, axis = 4, len(batch)
    rng = np.random.default_rng(51)
    weight = numpy_helper.from_array(rng.standard_normal((width, width)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["row", "w"], ["key"]),
             helper.make_node("Concat", ["past", "key"], ["present"], axis=axis),
             helper.make_node("Transpose", ["present"], ["turned"], perm=[*range(axis), axis + 1, axis]),
             helper.make_node("MatMul", ["row", "turned"], ["scores"]),
             helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
             helper.make_node("MatMul", ["shares", "present"], ["mixed"]),
             helper.make_node("ReduceSum", ["mixed"], ["new"], keepdims=0),
             helper.make_node("Add", ["sum", "new"], ["total"])]

    def value(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(nodes, "cell",
                              [value("row", *batch, "rows", width), value("past", *batch, "n", width),
                               value("sum")],
                              [value("mixed", *batch, None, width),
                               value("present", *batch, None, width), value("total")], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def step_lines(model, steps, *batch):
    """Returns each step's outputs by ONNX Runtime: shape and last element."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    past, total = np.zeros((*batch, 0, 4), np.float32), np.float32(0)
    for step in range(1, steps + 1):
        out = session.run(None, {"row": np.full((*batch, 1, 4), step, np.float32), "past": past,
                                 "sum": np.asarray(total)})
        _, past, total = out
        yield [("x".join(map(str, x.shape)), float(x.reshape(-1)[-1])) for x in map(np.asarray, out)]


def check_lines(r, steps, reference):
    """The failures of a run of onnx_steps."""
    lines, failures = r.stdout.splitlines(), []
    if r.returncode or len(lines) != steps:
        return [f"steps: {r}"]
    for i, (line, expected) in enumerate(zip(lines, reference), 1):
        told = re.findall(r" (\w+) ?([0-9x]*) … (\S+)", line.removeprefix(f"step {i}:"))
        if [t[:2] for t in told] != [(n, e[0]) for n, e in zip(("mixed", "present", "total"), expected)] \
                or not np.allclose([float(t[2]) for t in told], [e[1] for e in expected], 1e-4, 1e-5):
            failures.append(f"{line}; ONNX Runtime has {expected}")
    return failures


def check_steps(program, folder):
    """The failures of onnx_steps; an open batch is 1, as rows have it too."""
    path, steps, failures = Path(folder) / "cell.onnx", 9, []
    for names, batch in ((("batch",), (1,)), ((), ())):
        model = cell(*names)
        onnx.save(model, path)
        r = run(program, path, str(steps), "present=past", "total=sum")
        failures += check_lines(r, steps, step_lines(model, steps, *batch))
    for args, status, said in (([], 2, "usage"), ([path, "0"], 1, "steps"),
                               ([path, "2", "total=past"], 1, "rank 0"),
                               ([path, "2", "mix=past"], 1, 'no output "mix"'),
                               ([path, "2", "present"], 1, "no input"),
                               ([path / "none", "2"], 1, "none")):
        r = run(program, *args)
        if r.returncode != status or said not in r.stderr or r.stdout:
            failures.append(f"{args}: {r}")
    return failures


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
        failures += check_steps(program.with_name("onnx_steps"), folder)
    for f in failures:
        print("FAILED", f)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
