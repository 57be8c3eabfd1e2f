#!/usr/bin/env python3
"""Tests ONNX models with floats of 8 and 4 bits and integers of 4 and 2: tensors in each of the
fields that hold them, movement, the attributes of Cast, and quantisation, against ml_dtypes and
ONNX's own evaluator.

    test_storage_types.py BUILD
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, external_data_helper, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import STORAGE, Library, dtype

BITS = {"u4": 4, "i4": 4, "f4e2m1": 4, "u2": 2, "i2": 2}
SATURATING = ["f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"]
r = Checks()
library = Library(sys.argv[1])
rng = np.random.default_rng(11)
np.seterr(all="ignore")


def patterns(kind, shape):
    return rng.integers(0, 1 << BITS.get(kind, 8), shape, np.uint8).view(dtype(kind))


def number(kind):
    return STORAGE[kind][0]


def model(nodes, inputs, outputs, weights=(), opset=25):
    types = {np.dtype(t): n for n, t in STORAGE.values()}
    value = [helper.make_tensor_value_info(
        n, types.get(x.dtype) or helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in inputs.items()]
    graph = helper.make_graph(nodes, "small", value,
                              [onnx.ValueInfoProto(name=n) for n in outputs], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def same(what, actual, expected):
    why = f"{actual.dtype}{list(actual.shape)} {actual!r}, not {expected!r}"
    alike = actual.dtype == expected.dtype and actual.shape == expected.shape
    if alike and actual.dtype.itemsize == 1 and actual.dtype.kind != "b":
        nans = [np.isnan(x.astype(np.float32)) for x in (actual, expected)]
        alike = np.all((actual.view(np.uint8) == expected.view(np.uint8)) | nans[0] & nans[1])
    elif alike:
        alike = np.array_equal(actual, expected, equal_nan=actual.dtype.kind == "f")
    r(what, bool(alike), why)


def run(m, inputs):
    loaded = library.load(m.SerializeToString() if isinstance(m, onnx.ModelProto) else m)
    found = loaded.run(inputs)
    loaded.free()
    return found


def check_fields(kind):
    """Checks weights as raw data, as integers, in another file, and as a node's attribute, of counts
    that do not fill a byte."""
    for shape in ((3,), (2, 5), (1,), (0, 3), ()):
        x = patterns(kind, shape)
        raw = numpy_helper.from_array(x, "raw")
        typed = helper.make_tensor("typed", number(kind), shape, x.astype(np.float32).ravel())
        if kind == "f8e8m0" or not np.all(np.isfinite(x.astype(np.float32))):
            typed = TensorProto(name="typed", data_type=number(kind), dims=shape,
                                int32_data=x.view(np.uint8).ravel().tolist())
        nodes = [helper.make_node("Identity", ["raw"], ["a"]), helper.make_node("Identity", ["typed"], ["b"]),
                 helper.make_node("Constant", [], ["c"], value=raw)]
        found = run(model(nodes, {}, ["a", "b", "c"], [raw, typed]), {})
        for name in "abc":
            same(f"{kind} {shape} as {name}", found[name], x)
    with tempfile.TemporaryDirectory() as folder:
        x = patterns(kind, (7, 3))
        weight = numpy_helper.from_array(x, "w")
        external_data_helper.set_external_data(weight, "w.bin")
        m = model([helper.make_node("Transpose", ["w"], ["y"])], {}, ["y"], [weight])
        onnx.save(m, Path(folder) / "m.onnx")
        same(f"{kind} in another file", run(Path(folder) / "m.onnx", {})["y"], x.T)


def check_movement(kind):
    x = patterns(kind, (2, 3, 4))
    one = numpy_helper.from_array(np.ones((), dtype(kind)), "one")
    ints = {"s": [4, 6], "p": [0, 1, 0, 0, 0, 2], "i": [2, 0], "e": [2, 3]}
    weights = [one] + [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in ints.items()]
    fill = helper.make_tensor("f", number(kind), [1], np.ones(1, dtype(kind)).astype(np.float32))
    nodes = [helper.make_node("Reshape", ["x", "s"], ["a"]),
             helper.make_node("Transpose", ["x"], ["b"], perm=[2, 0, 1]),
             helper.make_node("Pad", ["x", "p", "one"], ["c"]),
             helper.make_node("Flatten", ["x"], ["d"]),
             helper.make_node("ConstantOfShape", ["e"], ["g"], value=fill)]
    found = run(model(nodes, {"x": x}, list("abcdg"), weights), {"x": x})
    padded = np.pad(x.view(np.uint8), ((0, 0), (1, 0), (0, 2)),
                    constant_values=np.ones((), dtype(kind)).view(np.uint8)).view(dtype(kind))
    for name, e in zip("abcdg", (x.reshape(4, 6), x.transpose(2, 0, 1), padded, x.reshape(2, 12),
                                 np.ones((2, 3), dtype(kind)))):
        same(f"{kind}: {name}", found[name], np.ascontiguousarray(e))


def cast(x, kind, like=False, **attributes):
    if like:
        node = helper.make_node("CastLike", ["x", "k"], ["y"], **attributes)
        weights = [numpy_helper.from_array(np.ones(1, dtype(kind)), "k")]
    else:
        node = helper.make_node("Cast", ["x"], ["y"], to=number(kind), **attributes)
        weights = []
    return run(model([node], {"x": x}, ["y"], weights), {"x": x})["y"]


def check_casts():
    x = np.concatenate([rng.integers(0, 2**32, 3000, np.uint32).view(np.float32),
                        (rng.standard_normal(3000) * 200).astype(np.float32),
                        np.array([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 57344, 61440,
                                  61439, 240, 248, 247], np.float32)])
    for kind in SATURATING:
        for like in (False, True):
            same(f"to {kind} without saturation", cast(x, kind, like, saturate=0), x.astype(dtype(kind)))
            finite = x[~np.isnan(x)]
            same(f"to {kind}", cast(finite, kind, like), numpy_helper.saturate_cast(finite, dtype(kind)))
    positive = np.abs(x[np.isfinite(x)])
    positive = positive[(positive >= 2.0**-126) & (positive <= 2.0**126)]
    for mode in ("up", "down", "nearest"):
        for saturate in (0, 1):
            e = numpy_helper.to_float8e8m0(positive, bool(saturate), mode).astype(dtype("f8e8m0"))
            same(f"to f8e8m0 {mode}", cast(positive, "f8e8m0", round_mode=mode, saturate=saturate), e)
    edges = np.array([0, 2.0**-127, 2.0**-128, 3.4e38, np.inf, np.nan], np.float32)
    for how, e in (({}, [0, 0, 0, 254, 254, 255]), ({"saturate": 0}, [255, 0, 255, 255, 255, 255])):
        same(f"edges to f8e8m0 {how}", cast(edges, "f8e8m0", **how), np.array(e, np.uint8).view(dtype("f8e8m0")))
    m = model([helper.make_node("Cast", ["x"], ["y"], to=number("f8e8m0"), round_mode="odd")], {"x": x}, ["y"])
    try:
        run(m, {"x": x})
        r("round_mode odd", False, "was loaded")
    except Exception as e:
        r("round_mode odd", "round_mode" in str(e), str(e))


def quantised(kind, shape, scale_shape, **attributes):
    """Compares QuantizeLinear and DequantizeLinear with the evaluator's."""
    x = (rng.standard_normal(shape) * 6).astype(np.float32)
    scale = (np.abs(rng.standard_normal(scale_shape)) + 0.2).astype(np.float32)
    q = patterns(kind, shape)
    if kind[0] == "f":
        q = np.where(np.isfinite(q.astype(np.float32)), q.view(np.uint8), 0).view(dtype(kind))
        zero = np.zeros(scale_shape, dtype(kind))
    else:
        zero = patterns(kind, scale_shape)
    weights = [numpy_helper.from_array(scale, "s"), numpy_helper.from_array(zero, "z")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"], **attributes),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["b"], **attributes)]
    m = model(nodes, {"x": x, "q": q}, ["a", "b"], weights)
    expected = ReferenceEvaluator(m).run(None, {"x": x, "q": q})
    found = run(m, {"x": x, "q": q})
    what = f"{kind} {shape} by {scale_shape} {attributes}"
    same(f"quantised {what}", found["a"], expected[0])
    wide = expected[1].astype(np.float32)
    r(f"dequantised {what}", found["b"].dtype == np.float32 and
            np.allclose(found["b"], wide, rtol=1e-6, atol=0), f"{found['b']!r}, not {wide!r}")


def check_tests_of_floats():
    x = np.array([0x7B, 0x7C, 0xFC, 0x7D, 0xFE, 0], np.uint8).view(dtype("f8e5m2"))
    nodes = [helper.make_node("IsInf", ["x"], ["a"]), helper.make_node("IsNaN", ["x"], ["b"]),
             helper.make_node("IsInf", ["x"], ["c"], detect_negative=0)]
    found = run(model(nodes, {"x": x}, ["a", "b", "c"]), {"x": x})
    wide = x.astype(np.float32)
    same("IsInf of f8e5m2", found["a"], np.isinf(wide))
    same("IsInf of f8e5m2, positive", found["c"], np.isposinf(wide))
    same("IsNaN of f8e5m2", found["b"], np.isnan(wide))
    y = np.array([0x7E, 0x7F], np.uint8).view(dtype("f8e4m3fn"))
    found = run(model(nodes, {"x": y}, ["a", "b", "c"]), {"x": y})
    same("IsInf of f8e4m3fn", found["a"], np.array([False, False]))


for k in STORAGE:
    check_fields(k)
    check_movement(k)
check_casts()
for k in [*SATURATING, "f4e2m1", "u4", "i4", "u2", "i2"]:
    quantised(k, (3, 8), ())
    quantised(k, (3, 8), (3,), axis=0)
    quantised(k, (3, 8), (3, 2), axis=1, block_size=4)
check_tests_of_floats()
sys.exit(r.end(least=280))
