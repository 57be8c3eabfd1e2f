#!/usr/bin/env python3
"""Tests dynamic sizes in ONNX models: results of operators at each size, 0 and 1 too, against ONNX
Runtime; models whose nodes fit together at some sizes only, which are known at each run; and what a
caller is told of sizes.

    test_sizes.py BUILD
"""

import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import INPUT, OUTPUT, Library, Refused

FLOAT = TensorProto.FLOAT
FAR = 2**63 - 1
SIZES = (0, 1, 2, 5)
WAY_OUT = ["tn_model_desc.sizes"]
check = Checks()


def model(nodes, inputs, weights=None, opset=18):
    """Makes a model; nodes are "Op inputs -> outputs" with attributes; inputs {name: sizes}."""
    made = []
    for i, n in enumerate(nodes):
        text, attributes = n if isinstance(n, tuple) else (n, {})
        left, outputs = text.split(" -> ")
        op, *names = left.split()
        made.append(helper.make_node(op, names, outputs.split(), name=f"node {i}", **attributes))
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.array(a), n) for n, a in (weights or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def branch(text, attributes=None):
    """Makes the graph of an If's branch, of one node."""
    left, output = text.split(" -> ")
    op, *names = left.split()
    return helper.make_graph([helper.make_node(op, names, [output], **(attributes or {}))], output,
                             [], [helper.make_tensor_value_info(output, FLOAT, None)])


def session_of(m):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(m.SerializeToString(), options)


def feed(shape):
    return (np.arange(np.prod(shape, dtype=int)) % 7 - 3).reshape(shape).astype(np.float32)


def feeds(inputs, sizes):
    return {n: feed([sizes[d] if isinstance(d, str) else d for d in s])
            for n, s in inputs.items()}


def result(run, *arguments):
    """Returns a run's result; None if it is refused."""
    try:
        return run(*arguments)
    except (Refused, onnxruntime.capi.onnxruntime_pybind11_state.Fail,
            onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
            onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException):
        return None


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, 1e-5, 1e-5,
                                                                     equal_nan=True)


def compare(library, label, m, inputs, known=(), sizes=SIZES, zeros=True):
    """Runs every combination of `sizes` and compares the results; returns the number of runs. At
    size 0, Tenon may run what the reference refuses, and unless `zeros` refuse what it runs."""
    names = list(dict.fromkeys(d for s in inputs.values() for d in s if isinstance(d, str)))
    session = session_of(m)
    try:
        loaded = library.load(m.SerializeToString(), known)
    except Refused as e:
        check(label, False, e)
        return 0
    runs = 0
    for values in itertools.product(sizes, repeat=len(names)):
        given = feeds(inputs, dict(zip(names, values)))
        actual = result(lambda: loaded.run(given)["y"])
        expected = result(lambda: session.run(["y"], given)[0])
        runs += actual is not None
        if actual is None:
            holds = expected is None or (0 in values and not zeros)
        elif expected is None:
            holds = 0 in values
        else:
            holds = same(actual, expected)
        check(f"{label} {values}", holds,
              f"{None if actual is None else actual.shape}, "
              f"not {None if expected is None else expected.shape}")
    loaded.free()
    return runs


BOUND = {"0": [0], "1": [1], "2": [2], "-1": [-1], "-2": [-2], "-3": [-3], "far": [FAR],
         "-far": [-FAR]}
WINDOW = np.ones((2, 3, 3), np.float32)



def resized(*sizes, policy="stretch"):
    """Reshapes x's last two axes to "h", its own size, or numbers."""
    weights = {**BOUND, "3": [3], "none": np.zeros(0, np.float32),
               **{f"{s}": [s] for s in sizes if s != "h"}}
    joined = " ".join(map(str, sizes))
    return (["Shape x -> s", "Slice s 2 3 -> h", (f"Concat {joined} -> to", {"axis": 0}),
             ("Resize x none none to -> y", {"mode": "linear", "axes": [2, 3],
                                             "keep_aspect_ratio_policy": policy})],
            {"x": [1, 1, "h", 6]}, weights)


# label: (nodes, inputs, weights)
RUN = {
    "a sum with one size": (["Add x z -> y"], {"x": ["n", "m"], "z": ["m"]}, {}),
    "a sum with 1": (["Add x z -> y"], {"x": ["n", 3], "z": [1, 1]}, {}),
    "a table": (["Mul x z -> y"], {"x": ["n", 1], "z": [1, "m"]}, {}),
    "the largest of three": (["Max x z u -> y"], {"x": ["n"], "z": ["n"], "u": [1]}, {}),
    "squeezed axes": (["Squeeze x 1 -> y"], {"x": ["n", 1, "m"]}, BOUND),
    "all axes of numbers squeezed": (["Squeeze x -> y"], {"x": [1, 3, 1]}, {}),
    "a larger size stays": (
        ["Shape x -> s", "Max s 2 -> t", "Expand z t -> u", "Squeeze u -> y"],
        {"x": ["n"], "z": [1]}, BOUND),
    "unsqueezed": (["Unsqueeze x ends -> y"], {"x": ["n", "m"]}, {"ends": [0, -1]}),
    "transposed": (["Transpose x -> y"], {"x": ["n", "m", 2]}, {}),
    "expanded": (["Shape x -> s", "Expand z s -> y"], {"x": ["n", "m"], "z": [1, "m"]}, {}),
    "expanded by ones": (["Expand x to -> y"], {"x": ["n"]}, {"to": [2, 1]}),
    "expanded to twice": (["Shape x -> s", "Add s s -> t", "Expand z t -> y"],
                          {"x": ["n"], "z": [1]}, {}),
    "expanded to the half": (["Shape x -> s", "Div s 2 -> t", "Expand z t -> y"],
                             {"x": ["n"], "z": [1]}, BOUND),
    "expanded to more": (["Shape x -> s", "Max s 2 -> t", "Expand z t -> y"],
                         {"x": ["n"], "z": [1]}, BOUND),
    "flattened": (["Reshape x to -> y"], {"x": ["n", "m", 4]}, {"to": [0, -1]}),
    "flattened to the front": (["Reshape x to -> y"], {"x": ["n", "m", 4]}, {"to": [-1, 4]}),
    "cut in rows": (["Reshape x to -> y"], {"x": ["n", 4]}, {"to": [-1, 2]}),
    "reshaped with allowzero": ([("Reshape x to -> y", {"allowzero": 1})], {"x": ["n", 4]},
                                {"to": [-1, 4]}),
    "joined": ([("Concat x z x -> y", {"axis": 1})], {"x": [2, "n"], "z": [2, "m"]}, {}),
    "products": (["MatMul x z -> y"], {"x": ["b", "n", 3], "z": ["b", 3, "m"]}, {}),
    "products with one": (["MatMul x z -> y"], {"x": ["b", "n", 3], "z": [1, 3, "m"]}, {}),
    "sums of products": (["MatMul x z -> y"], {"x": ["b", 2, "k"], "z": ["k", "m"]}, {}),
    "windows": ([("Conv x w -> y", {"pads": [2, 2]})], {"x": ["n", 3, "h"]}, {"w": WINDOW}),
    "windows with steps": ([("Conv x w -> y", {"pads": [2, 3], "strides": [2]})],
                           {"x": ["n", 3, "h"]}, {"w": WINDOW}),
    "the largest of a picture": (["GlobalMaxPool x -> y"], {"x": ["n", "c", "h"]}, {}),
    "the largest of rows": (["ReduceMax x 1 -> y"], {"x": ["n", "m"]}, BOUND),
    "sums of rows": (["ReduceSum x 1 -> y"], {"x": ["n", "m"]}, BOUND),
    "the sum of all": (["ReduceSum x -> y"], {"x": ["n", "m"]}, {}),
    "a slice": (["Slice x a b -> y"], {"x": ["n", "m"]}, {"a": [0, -2], "b": [1, FAR]}),
    "a slice from the end": (["Slice x -3 -1 -> y"], {"x": ["n", "m"]}, BOUND),
    "a slice in steps": (["Slice x a b k s -> y"], {"x": ["n", "m"]},
                         {"a": [-1, 1], "b": [-FAR, 4], "k": [0, 1], "s": [-2, 2]}),
    "the first half": ([("Shape x -> s", {"end": 1}), "Div s 2 -> h", "Slice x 0 h -> y"],
                       {"x": ["n", "m"]}, BOUND),
    "all but two": ([("Shape x -> s", {"end": 1}), "Sub s 2 -> e", "Slice x 0 e -> y"],
                    {"x": ["n", "m"]}, BOUND),
    "as many as another axis": ([("Shape x -> s", {"start": 1}), "Slice x 0 s -> y"],
                                {"x": ["n", "m"]}, BOUND),
    "the second half of all": (
        ["Reshape x -1 -> r", ("Shape x -> s", {"start": 1}), "Div s 2 -> h",
         "Slice r h far -> y"], {"x": ["n", "m"]}, BOUND),
    "sizes": (["Shape x -> y"], {"x": ["n", "m"]}, {}),
    "a quotient of sizes": (["Shape x -> s", "Sub s 2 -> t", "Div t 2 -> y"], {"x": ["n", "m"]},
                            BOUND),
    "numbers down from a size": (
        [("Shape x -> s", {"end": 1}), "Squeeze s -> n", "Range n zero back -> y"], {"x": ["n", 3]},
        {"zero": 0, "back": -2}),
    "numbers from far away to a size": (
        [("Shape x -> s", {"end": 1}), "Squeeze s -> n", "Range low n by -> y"], {"x": ["n", 3]},
        {"low": -2**40, "by": 2**38 + 1}),
    "numbers to a size in i32": (
        [("Shape x -> s", {"end": 1}), "Squeeze s -> n", ("Cast n -> i", {"to": TensorProto.INT32}),
         "Range low i by -> y"], {"x": ["n", 3]},
        {"low": np.int32(-2 * 10**9), "by": np.int32(10**9)}),
    "numbers by a size": (
        [("Shape x -> s", {"end": 1}), "Squeeze s -> n", "Range zero ten n -> y"], {"x": ["n", 3]},
        {"zero": 0, "ten": 10}),
    "windows without pads": (["Conv x w -> y"], {"x": ["n", 3, "h"]}, {"w": WINDOW}),
    "resized to twice the width": resized("h", 12),
    "resized, no larger than the height": resized("h", 12, policy="not_larger"),
    "resized, no smaller than the height": resized("h", 5, policy="not_smaller"),
    "resized, as large as the width asks": resized("h", 12, policy="not_smaller"),
}

# label: (nodes, inputs, weights, status, words)
# Failures that are not caused by variable sizes.
MISFITS = {
    "expanded as the file says": (
        ["Expand x to -> y"], {"x": [2, "n", 3]}, {"to": [2, 1, 4]}, "ERR_SHAPE",
        ["cannot expand 2xnx3 to 2x1x4: 3 is not 4"]),
    "an input named as its size": (
        ["Gemm n w -> y"], {"n": ["n", 2, 3]}, {"w": np.ones((3, 4), np.float32)}, "ERR_SHAPE",
        ["input 'n' has 3 dimensions"]),
}

# label: (nodes, inputs, weights, status with open sizes, words of the reason)
EXACT = {
    "expanded to one row, or none": (
        ["Slice x 0 1 0 -> row", "Shape row -> to", "Expand z to -> e", ("Concat x e -> y", {"axis": 0})],
        {"x": ["n", 3], "z": ["k", 3]}, BOUND, "ERR_SHAPE", ["min(n, 1)"]),
    "squeezed, whatever is 1": (
        ["Squeeze x -> y"], {"x": ["a", "b", "c"]}, {}, "ERR_UNSUPPORTED",
        ["Squeeze", "'node 0'", "axis 0", "size a", "axes", "'a' varies"]),
    "squeezed after a sum": (
        ["Add x x -> s", "Squeeze s -> y"], {"x": [3, "n"]}, {}, "ERR_UNSUPPORTED",
        ["'node 1'", "axis 1", "size n"]),
    "a squeezed axis that need not be 1": (
        ["Squeeze x 1 -> y"], {"x": [2, "n"]}, BOUND, "ERR_SHAPE", ["axis 1", "size n, not 1"]),
    "a sum of two sizes": (
        ["Add x z -> y"], {"x": ["d0", "d1"], "z": ["d2"]}, {}, "ERR_SHAPE",
        ["shapes d0xd1 and d2", "d1 is not d2", "('d1', 'd2' vary"]),
    "a sum with a number": (["Add x z -> y"], {"x": ["n"], "z": [5]}, {}, "ERR_SHAPE",
                            ["n is not 5"]),
    "a sum of sizes without names": (
        ["Add x z -> y"], {"x": [None, 3], "z": [None, 3]}, {}, "ERR_SHAPE",
        ["x:0 is not z:0", "'x:0', 'z:0' vary"]),
    "expanded to a number": (["Expand x to -> y"], {"x": ["n"]}, {"to": [5]}, "ERR_SHAPE",
                             ["cannot expand n to 5"]),
    "a number expanded": (["Shape x -> s", "Expand z s -> y"], {"x": ["n"], "z": [5]}, {},
                          "ERR_SHAPE", ["cannot expand 5 to n", "'n' varies"]),
    "expanded to what may be negative": (
        ["Shape x -> s", "Sub s 1 -> t", "Expand z t -> y"], {"x": ["n"], "z": [1]}, BOUND,
        "ERR_SHAPE", ["n - 1", "negative"]),
    "expanded to the larger of two": (
        ["Shape x -> s", "Max s 2 -> t", "Expand x t -> y"], {"x": ["n"]}, BOUND, "ERR_SHAPE",
        ["n is not max(n, 2)"]),
    "reshaped to half the elements": (
        ["Shape x -> s", "Div s 2 -> t", "Reshape x t -> y"], {"x": ["n", "m"]}, BOUND,
        "ERR_SHAPE", ["nxm has n*m elements", "has (n/2)*(m/2)"]),
    "reshaped to half the elements, zeros too": (
        ["Shape x -> s", "Div s 2 -> t", ("Reshape x t -> y", {"allowzero": 1})],
        {"x": ["n", "m"]}, BOUND, "ERR_SHAPE",
        ["nxm has n*m elements", "has (n/2)*(m/2)"]),
    "reshaped to numbers": (["Reshape x to -> y"], {"x": ["n", 4]}, {"to": [2, 4]}, "ERR_SHAPE",
                            ["4*n elements", "8"]),
    "cut in rows that need not fit": (["Reshape x to -> y"], {"x": ["n", 4]}, {"to": [-1, 8]},
                                      "ERR_SHAPE", ["-1x8", "nx4"]),
    "joined, other axes differ": (
        [("Concat x z -> y", {"axis": 0})], {"x": [2, "n"], "z": [2, 5]}, {}, "ERR_SHAPE",
        ["2xn", "2x5"]),
    "products of batches": (["MatMul x z -> y"], {"x": ["b", 2, 3], "z": [5, 3, 2]}, {},
                            "ERR_SHAPE", ["b is not 5"]),
    "channels that vary": (["Conv x w -> y"], {"x": ["n", "c", 5]}, {"w": WINDOW}, "ERR_SHAPE",
                           ["the input has c channels", "expect 3"]),
    "pads that depend on a size": (
        [("Conv x w -> y", {"auto_pad": "SAME_UPPER", "strides": [2]})], {"x": ["n", 3, "h"]},
        {"w": WINDOW}, "ERR_UNSUPPORTED", ["auto_pad", "axis 0", "'h' varies"]),
    "resized to two thirds of a height": (
        *resized("h", 4, policy="not_larger"), "ERR_UNSUPPORTED",
        ["Resize", "axis 2", "size h", "0.666667", "'h' varies"]),
    "resized to a height by a ratio that varies": (
        *resized(9, 12, policy="not_smaller"), "ERR_UNSUPPORTED",
        ["Resize", "axis 2", "size h", "made 9", "'h' varies"]),
    "axes that are computed": (
        ["Shape x -> s", "ReduceSum x s -> y"], {"x": ["n"]}, {}, "ERR_UNSUPPORTED",
        ["'s'", "'n' varies"]),
    "two parts of an axis": (
        [("Concat x row -> t", {"axis": 0}), ("Split t -> y z", {"num_outputs": 2})],
        {"x": ["n", 3]}, {"row": np.ones((1, 3), np.float32)}, "ERR_UNSUPPORTED",
        ["Split", "'n' varies"]),
    "scaled by a fraction": (
        ["Resize x none half -> y"], {"x": ["n", 2]},
        {"none": np.zeros(0, np.float32), "half": np.array([1.5, 1], np.float32)},
        "ERR_UNSUPPORTED", ["Resize", "cannot be scaled by 1.5", "'n' varies"]),
    "a pool's pads that depend on a size": (
        [("MaxPool x -> y", {"kernel_shape": [2], "strides": [2], "auto_pad": "SAME_UPPER"})],
        {"x": [1, 1, "h"]}, {}, "ERR_UNSUPPORTED",
        ["MaxPool", "auto_pad is not supported", "'h' varies"]),
    "a branch of another rank": (
        ["Shape x -> s", "Slice s 0 1 -> n", "Squeeze n -> k", "Equal k 1 -> c",
         ("If c -> y", {"then_branch": branch("ReduceSum x -> t", {"keepdims": 0}),
                        "else_branch": branch("Neg x -> e")})],
        {"x": ["n", 3]}, {"0": [0], "1": [1]}, "ERR_SHAPE",
        ["If", "has shape scalar in the then_branch and nx3", "'n' varies"]),
    "a branch for one size": (
        ["Shape x -> s", "Slice s 0 1 -> n", "Squeeze n -> k", "Less k 2 -> c",
         ("If c -> y", {"then_branch": branch("MatMul w x -> t"),
                        "else_branch": branch("Neg x -> e")})],
        {"x": ["n", 3]}, {"0": [0], "1": [1], "2": [2], "w": np.ones((4, 1), np.float32)},
        "ERR_SHAPE", ["If", "MatMul", "1 is not n", "'n' varies"]),
}


# Sizes that are equal as halves of halves are padded to what they are halves of; sums as sizes.
HALVES = (
    [("MaxPool x -> b", {"kernel_shape": [2], "strides": [2]}),
     ("MaxPool b -> c", {"kernel_shape": [2], "strides": [2]}), "Resize c none twice -> u",
     ("Shape b -> sb", {"start": 2}), ("Shape u -> su", {"start": 2}), "Sub sb su -> apart",
     "Div apart 2 -> low", "Sub apart low -> high", ("Concat 0 0 low 0 0 high -> pads", {"axis": 0}),
     "Pad u pads -> p", ("Concat b p -> y", {"axis": 1})],
    {"x": [1, 1, "h"]}, {**BOUND, "none": np.zeros(0, np.float32),
                         "twice": np.array([1, 1, 2], np.float32)})
SUM_OF_SIZES = (
    [("Concat x z -> a", {"axis": 0}), "Shape a -> s", ("Concat s 1 -> to", {"axis": 0}),
     "Reshape a to -> y"], {"x": ["n"], "z": ["m"]}, BOUND)


def check_rows(library):
    nodes, inputs, weights = HALVES
    compare(library, "padded halves", model(nodes, inputs, weights), inputs, sizes=(4, 5, 6, 7, 11))
    nodes, inputs, weights = SUM_OF_SIZES
    compare(library, "a sum of sizes", model(nodes, inputs, weights), inputs, sizes=(0, 1, 3))
    for label, (nodes, inputs, weights) in RUN.items():
        runs = compare(library, label, model(nodes, inputs, weights), inputs)
        check(f"{label}: {runs} runs", runs > 0)


def check_order(library):
    """Checks orders along axes of open size, which have several ways for short and long ones."""
    for largest in (0, 1):
        for k, sizes in ((3, (3, 190, 1100, 17000, 5)), (40, (40, 1024, 1025, 60))):
            topk = ("TopK x k -> v y", {"axis": 1, "largest": largest})
            compare(library, f"first {k} of open axes", model([topk], {"x": [2, "n"]}, {"k": np.array([k])}),
                    {"x": [2, "n"]}, sizes=sizes)
    unique = ("Unique x -> y i", {"axis": 0})
    compare(library, "different elements of an open axis", model([unique], {"x": ["n"]}), {"x": ["n"]},
            sizes=(2, 64, 65, 700))


def refuses(library, label, m, known, status, words, others=()):
    try:
        library.load(m.SerializeToString(), known).free()
        check(label, False, "was loaded")
    except Refused as e:
        missing = [w for w in words if w not in e.message]
        check(label, e.status == status and not missing, f"lacks {missing}: {e}")
        check(label, not any(w in e.message for w in others), f"has one of {others}: {e}")


def check_refusals(library):
    for label, (nodes, inputs, weights, status, words) in MISFITS.items():
        refuses(library, label, model(nodes, inputs, weights), (), status, words, WAY_OUT)


def check_exact(library):
    """Checks models that fit together at some sizes only: each run has its own."""
    for label, (nodes, inputs, weights, status, words) in EXACT.items():
        m = model(nodes, inputs, weights)
        loaded = library.load(m.SerializeToString())
        reason = loaded.exact_sizes() or ""
        missing = [w for w in words + WAY_OUT if w not in reason]
        check(f"{label}: the reason", not missing, f"lacks {missing}: {reason}")
        named = {n: [d or f"{n}:{i}" for i, d in enumerate(s)] for n, s in inputs.items()}
        # ONNX Runtime joins an empty operand with others of any size
        runs = compare(library, label, m, named, sizes=(*SIZES, 3) if "c" in named["x"] else SIZES,
                       zeros=not label.startswith("joined"))
        check(f"{label}: {runs} runs", runs > 0)
        loaded.free()


def check_exact_runs(library):
    """Checks that sizes known at each run are compiled once each, and refused by name."""
    halves = model(["Shape x -> s", "Div s 2 -> h", ("Concat h 2 -> to", {"axis": 0}),
                    "Reshape x to -> y"], {"x": ["n"]}, BOUND)
    loaded = library.load(halves.SerializeToString())
    even_alone = loaded.open_from_one()
    binding, seen = loaded.bind(), {}
    for n in (4, 6, 4, 8, 6, 4):
        y = binding.run({"x": feed((n,))})["y"]
        check(f"halves of {n}", same(y, feed((n,)).reshape(-1, 2)), y)
        number = library.lib.tn_binding_variant(binding.handle)
        check(f"variant of {n}", seen.setdefault(n, number) == number, f"{seen}, {number}")
    check("a variant for each size", len(set(seen.values())) == 3, f"{seen}")
    for n in (7, 4):
        try:
            binding.run({"x": feed((n,))})
            check(f"halves of {n}", n == 4)
        except Refused as e:
            words = ["the model", "Reshape node 'node 3'", "7 elements"]
            check(f"halves of {n}", n == 7 and e.status == "ERR_SHAPE" and
                  not [w for w in words if w not in e.message], e)
    loaded.free()
    check("halves once the model is freed", binding.run({"x": feed((10,))})["y"].shape == (5, 2))
    binding.free()
    nodes, inputs, weights, *_ = EXACT["expanded to one row, or none"]
    rows, seen = library.load(model(nodes, inputs, weights).SerializeToString()), {}
    binding = rows.bind()
    for n, k in ((4, 6), (3, 6), (5, 7), (0, 0), (1, 9), (0, 1), (8, 1), (0, 0)):
        y = binding.run({"x": feed((n, 3)), "z": feed((k, 3))})["y"]
        check(f"rows {n}, {k}", y.shape == (n + min(n, k) if n * k == 0 else n + k, 3), y.shape)
        seen[n, k] = library.lib.tn_binding_variant(binding.handle)
    check("sizes from 1 on are open", rows.open_from_one() and not even_alone)
    check("sizes from 1 on share variants", seen[5, 7] == seen[1, 9] == seen[8, 1], f"{seen}")
    check("sizes of 0 have their own", len({seen[0, 0], seen[0, 1], seen[1, 9]}) == 3, f"{seen}")
    binding.free()
    rows.free()
    fixed = library.load(halves.SerializeToString(), [("n", 6)])
    check("a size that is said", fixed.exact_sizes() is None and
          fixed.run({"x": feed((6,))})["y"].shape == (3, 2))
    fixed.free()
    bounded = library.load(halves.SerializeToString(), [("n", (2, 4))])
    check("sizes in bounds", bounded.exact_sizes() is not None and
          bounded.run({"x": feed((4,))})["y"].shape == (2, 2))
    check("a size out of bounds", result(bounded.run, {"x": feed((6,))}) is None)
    bounded.free()
    odd = ["Slice x 1 far -> rest", ("Split rest -> a b", {"axis": 0, "num_outputs": 2}), "Add a b -> c",
           "Shape x -> s", "Gather s 0 -> k", "Mod k 2 -> one", "Expand w one -> e", "MatMul c e -> y"]
    odd = library.load(model(odd, {"x": ["n", 1]}, {**BOUND, "w": np.ones((1, 1), np.float32)})
                       .SerializeToString())
    check("odd sizes", odd.run({"x": feed((5, 1))})["y"].shape == (2, 1))
    odd.free()
    open_size = library.load(model(["Neg x -> y"], {"x": ["n"]}).SerializeToString())
    check("sizes that stay open", open_size.exact_sizes() is None)
    open_size.free()


def check_exact_names(library):
    """Checks that sizes of one name may differ where they are known at each run."""
    nodes = ["Shape x -> s", "Div s 2 -> h", ("Concat h 2 -> to", {"axis": 0}), "Reshape x to -> a",
             ("Concat a z -> y", {"axis": 0})]
    inputs = {"x": ["n"], "z": ["n", 2]}
    m = model(nodes, inputs, BOUND)
    session, loaded = session_of(m), library.load(m.SerializeToString())
    for n, k in ((4, 4), (4, 3), (2, 6)):
        given = {"x": feed((n,)), "z": feed((k, 2))}
        y = result(lambda: loaded.run(given)["y"])
        check(f"sizes {n} and {k} of one name", y is not None and
              same(y, session.run(["y"], given)[0]), y)
    loaded.free()


# Failures that no sizes cure, of graphs with sizes that vary.
HALF = [("Split x -> a b", {"axis": 0, "num_outputs": 2}), "Add a b -> c"]   # for even sizes
INCURABLE = {
    "inner sizes behind a half": (
        [*HALF, "MatMul c w -> y"], {"x": ["n", 8]}, "ERR_SHAPE", ["MatMul", "8 is not 4"]),
    "inner sizes behind a half, of Gemm": (
        [*HALF, "Gemm c w -> y"], {"x": ["n", 8]}, "ERR_SHAPE", ["Gemm", "8", "4"]),
    "a joined axis behind a half": (
        [*HALF, ("Concat c w -> y", {"axis": 0})], {"x": ["n", 8]}, "ERR_SHAPE", ["Concat", "5 is not 8"]),
    "a type that does not fit": (
        [("Squeeze x -> s"), ("Cast s -> i", {"to": TensorProto.INT64}), "Add s i -> y"],
        {"x": ["a", "b"]}, "ERR_DTYPE", ["'node 2'", "i64"]),
    "an attribute that is not supported": (
        [("Squeeze x -> s", {"nonsense": 1}), "Neg s -> y"], {"x": ["a", "b"]}, "ERR_UNSUPPORTED",
        ["'node 0'", "nonsense"]),
    "inner sizes of the file, later": (
        ["Squeeze x -> s", "MatMul w w -> y"], {"x": ["a", "b"]}, "ERR_SHAPE", ["'node 1'", "5 is not 4"]),
    "an attribute that is not supported, later": (
        ["Squeeze x -> s", ("Neg s -> y", {"nonsense": 1})], {"x": ["a", "b"]}, "ERR_UNSUPPORTED",
        ["'node 1'", "nonsense"]),
    "inner sizes of the file": (["MatMul x w -> y"], {"x": ["n", 3]}, "ERR_SHAPE", ["3 is not 4"]),
    "too few axes": (["GlobalAveragePool x -> y"], {"x": ["n"]}, "ERR_SHAPE", ["x has shape n"]),
}


def check_incurable(library):
    for label, (nodes, inputs, status, words) in INCURABLE.items():
        m = model(nodes, inputs, {"w": np.ones((4, 5), np.float32)})
        refuses(library, label, m, (), status, words)


def parts(*slices):
    """Makes nodes for slices of x's shape, and for a shape "to" of them and of products."""
    nodes, names = ["Shape x -> s"], []
    for i, s in enumerate(slices):
        low, *more = s.split("*")
        nodes += [f"Slice s {k} {'far' if k == '2' else int(k) + 1} -> s{i}{k}"
                  for k in [low, *more]]
        nodes += [f"Mul s{i}{low} s{i}{k} -> p{i}" for k in more]
        names.append(f"p{i}" if more else f"s{i}{low}")
    return nodes + [("Concat " + " ".join(names) + " -> to", {"axis": 0})]


def check_zeros(library):
    """Checks that a computed size of 0 in a shape copies the input's size."""
    inputs = {"x": ["n", "m", "k"]}
    for label, slices in (("two axes exchanged", ["0", "2", "1"]), ("two axes as one", ["0", "1*2"]),
                          ("the first two as one", ["0*1", "2"])):
        for attributes in ({}, {"allowzero": 1}):
            nodes = parts(*slices) + [("Reshape x to -> y", attributes)]
            runs = compare(library, f"{label} {attributes}", model(nodes, inputs, BOUND), inputs,
                           zeros=bool(attributes))
            check(f"{label}: {runs} runs", runs >= (64 if attributes else 27))


ALIKE = {
    "products of all rows": ([("Transpose z -> t", {"perm": [1, 0]}), "MatMul x t -> y"],
                             {"x": ["n", 3], "z": ["n", 3]}, {}, True),
    "a part by another's size": (["Shape z -> s", "Slice x 0 s -> y"], {"x": ["n"], "z": ["n"]},
                                 BOUND, True),
    "both, one after the other": ([("Concat x z -> y", {"axis": 0})],
                                  {"x": ["n", 2], "z": ["n", 2]}, {}, True),
    "a square that may be none": ([("Transpose x -> y", {"perm": [1, 0]})], {"x": ["n", "n"]}, {},
                                  True),
    "a sum of both": (["Add x z -> y"], {"x": ["n", 3], "z": ["n", 3]}, {}, False),
}


def check_names(library):
    """Checks that sizes of one name may differ, in one binding, unless nodes need them alike."""
    for label, (nodes, inputs, weights, may_differ) in ALIKE.items():
        m = model(nodes, inputs, weights)
        session, binding = session_of(m), library.load(m.SerializeToString()).bind()
        for pair in [(2, 2), (5, 5), *itertools.product(SIZES, repeat=2), (3, 3), (7, 7)]:
            sizes = iter(pair)
            given = {k: feed([next(sizes) if d == "n" else d for d in s])
                     for k, s in inputs.items()}
            actual = result(lambda: binding.run(given)["y"])
            if pair[0] == pair[1] or may_differ:
                expected = session.run(["y"], given)[0]
                check(f"{label} {pair}", actual is not None and same(actual, expected), actual)
            else:
                check(f"{label} {pair}", actual is None, actual)
        binding.free()


def ports_of(library, m, known, kind):
    loaded = library.load(m.SerializeToString(), known)
    found = [sizes for _, _, sizes in loaded.ports(kind)]
    loaded.free()
    return found


def check_known(library):
    """Checks bounds of sizes given by callers."""
    inputs = {"x": ["d0", "d1"], "z": ["d2"]}
    m = model(["Add x z -> y"], inputs)
    for known in ([("d2", "d1")], [("d1", "d2")], [("z:0", "x:1")], [("d2", "x:1")]):
        loaded = library.load(m.SerializeToString(), known)
        y = loaded.run({"x": feed((2, 3)), "z": feed((3,))})["y"]
        check(f"{known}", same(y, feed((2, 3)) + feed((3,))), y)
        refused = result(loaded.run, {"x": feed((2, 3)), "z": feed((1,))})
        check(f"{known}, and they are not", refused is None, refused)
        loaded.free()
    check("the name that stays", ports_of(library, m, [("d2", "d1")], INPUT) ==
          [["d0", "d1"], ["d1"]])
    chain = [("d2", "d1"), ("d1", "d0"), ("d0", 4)]
    for known in itertools.permutations(chain):
        check(f"{known}", ports_of(library, m, known, INPUT) == [["4", "4"], ["4"]])
    check("equal to a number of the file",
          ports_of(library, model(["Add x z -> y"], {"x": ["n"], "z": [5]}), [("n", "z:0")],
                   OUTPUT) == [["5"]])
    check("a number of the file said again",
          ports_of(library, model(["Add x z -> y"], {"x": ["n"], "z": [5]}),
                   [("z:0", 5), ("n", 5)], OUTPUT) == [["5"]])
    check("sizes without names",
          ports_of(library, model(["Add x z -> y"], {"x": [None, 3], "z": [None, 3]}),
                   [("x:0", "z:0")], INPUT) == [["z:0", "3"], ["z:0", "3"]])
    check("a name like an axis",
          ports_of(library, model(["Exp x -> y"], {"x": [None, "x:0"]}), [("x:0", 7)], INPUT) ==
          [["x:0'", "7"]])

    squeeze = model(["Squeeze x -> y"], {"x": ["n", "m", 1]})
    compare(library, "squeezed, one is 1", squeeze, {"x": [1, "m", 1]}, [("n", 1), ("m", (2, 9))],
            (2, 5))
    windows = model(["Conv x w -> y"], {"x": ["n", 3, "h"]}, {"w": WINDOW})
    compare(library, "windows that fit", windows, {"x": ["n", 3, "h"]}, [("h", (3, 100))], (3, 5))
    loaded = library.load(windows.SerializeToString(), [("h", (3, 100))])
    for h in (2, 101):
        check(f"a size of {h}, not 3 … 100",
              result(loaded.run, {"x": feed((1, 3, h))}) is None)
    loaded.free()
    fixed = library.load(windows.SerializeToString(), [("n", 2), ("h", 6)])
    check("other sizes than said", result(fixed.run, {"x": feed((1, 3, 6))}) is None)
    check("sizes that were said", fixed.run({"x": feed((2, 3, 6))})["y"].shape == (2, 2, 4))
    fixed.free()


def check_needed(library):
    """Checks that what operators need is a bound of a size, unless the caller has given one."""
    def bounds(m, known=()):
        loaded = library.load(m.SerializeToString(), known)
        bound = loaded.bounds()
        loaded.free()
        return bound

    windows = model(["Conv x w -> y"], {"x": ["n", 3, "h"]}, {"w": WINDOW})
    most = 999999999
    check("a size as large as a window", bounds(windows)["h"] == (3, most), bounds(windows))
    check("other sizes", bounds(windows)["n"] == (0, most))
    check("a most of the caller's", bounds(windows, [("h", (0, 9))])["h"] == (3, 9))
    check("a least above it", bounds(windows, [("h", (5, 9))])["h"] == (5, 9))
    pooled = model([("MaxPool x -> a", {"kernel_shape": [2], "strides": [2]}),
                    ("MaxPool a -> b", {"kernel_shape": [2], "strides": [2]}),
                    ("AveragePool b -> y", {"kernel_shape": [4]})], {"x": [1, 1, "h"]})
    check("through pools", bounds(pooled)["h"] == (16, most), bounds(pooled))
    both = model(["Conv x w -> a", "Conv z w -> b", ("Concat a b -> y", {"axis": 2})],
                 {"x": [1, 3, "h"], "z": [1, 3, "h"]}, {"w": WINDOW})
    loaded = library.load(both.SerializeToString())
    y = loaded.run({"x": feed((1, 3, 5)), "z": feed((1, 3, 7))})["y"]
    check("two sizes of one name", y.shape == (1, 2, 8), y.shape)
    check("one too small", result(loaded.run, {"x": feed((1, 3, 2)), "z": feed((1, 3, 7))}) is None)
    loaded.free()
    table = model([("Shape x -> n", {"end": 1}), "Slice w 0 n -> first", "Add x first -> y"],
                  {"x": ["n", 3]}, {**BOUND, "w": np.ones((24, 3), np.float32)})
    check("as many as a table has", bounds(table)["n"] == (0, 24), bounds(table))
    compare(library, "rows of a table", table, {"x": ["n", 3]}, sizes=(0, 2, 24, 25))
    refuses(library, "a most of the caller's that is too large", table, [("n", (0, 30))],
            "ERR_SHAPE", ["n is not min(n, 24)", "a max of 24", *WAY_OUT])
    refuses(library, "a least of the caller's that is too small", windows, [("h", (2, 100))],
            "ERR_SHAPE", ["axis, of size h", "a min of 3", *WAY_OUT])
    refuses(library, "no value left", windows, [("h", (0, 2))], "ERR_SHAPE", ["is larger"])


def check_known_wrong(library):
    m = model(["Add x z -> y"], {"x": ["n", "m"], "z": [1, 5]})
    for label, known, words in (
            ("no such size", [("k", 4)], ["'k'", "'n', 'm'"]),
            ("no such axis", [("x:2", 4)], ["'x:2'"]),
            ("no such input", [("w:0", 4)], ["'w:0'"]),
            ("no axis at all", [("x:", 4)], ["'x:'"]),
            ("an axis that is none", [("x:1e", 4)], ["'x:1e'"]),
            ("equal to no size", [("n", "k")], ["'k'"]),
            ("a negative size", [("n", -1)], ["'n'", "-1"]),
            ("nothing between", [("n", (5, 4))], ["'n'", "5 … 4"]),
            ("more than there can be", [("n", 2**40)], ["'n'", "999999999"]),
            ("two numbers", [("n", 4), ("n", 5)], ["'n'", "5 … 5", "4 … 4"]),
            ("another number than the file", [("z:1", 6)], ["the file fixes axis 1 of input 'z' to 5"]),
            ("equal to two", [("n", 4), ("m", 5), ("n", "m")], ["'n'"]),
            ("bounds apart", [("n", (1, 3)), ("m", (4, 9)), ("n", "m")], ["1 … 3", "4 … 9"])):
        refuses(library, label, m, known, "ERR_ARGUMENT", words)


def check_many_operators(library):
    """Checks that many unsupported operators are reported in linear time."""
    count = 60000
    nodes = [helper.make_node(f"Op{i}", ["x"], [f"y{i}"]) for i in range(count)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [1])],
                              [onnx.ValueInfoProto(name="y0")])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                             ir_version=8).SerializeToString()
    start = time.monotonic()
    try:
        library.load(data)
        check("many operators", False, "were loaded")
    except Refused as e:
        seconds = time.monotonic() - start
        check("many operators", e.status == "ERR_UNSUPPORTED" and "Op0 " in e.message, e)
        check("many operators in time", seconds < 10, f"{seconds} s")


def main(build):
    library = Library(build)
    check_rows(library)
    check_order(library)
    check_refusals(library)
    check_exact(library)
    check_exact_runs(library)
    check_exact_names(library)
    check_incurable(library)
    check_zeros(library)
    check_names(library)
    check_known(library)
    check_needed(library)
    check_known_wrong(library)
    check_many_operators(library)
    check("tn_close", library.close() == 0)
    return check.end(700)


sys.exit(main(sys.argv[1]))
