#!/usr/bin/env python3
"""Tests models that compute sizes as they run: NonZero and Compress, and operators whose shapes, bounds
and counts are elements of what other nodes compute. Results are those of ONNX's own evaluator.

    test_computed_sizes.py BUILD
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh --tests installs it)")
    sys.exit(77)
from checks import Checks
from tenon import Library, Refused

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def constant(name, *numbers):
    values = np.array(numbers, np.int64)
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(values))


def scalar(name, number, dtype=np.int64):
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(number, dtype)))


def twos(shape, name):
    two = onnx.numpy_helper.from_array(np.array([2], np.float32))
    return node("ConstantOfShape", [shape], [name], value=two)


# A count of the elements of x above 0, as a vector of one element and as a scalar.
COUNT = [scalar("zero", 0, np.float32), node("Greater", ["x", "zero"], ["above"]),
         node("Cast", ["above"], ["ones"], to=I64), constant("all", 0),
         node("ReduceSum", ["ones", "all"], ["count"], keepdims=1, name="counting"),
         constant("one", 1), scalar("s0", 0), scalar("s1", 1),
         node("Squeeze", ["count"], ["k"])]



def split_selection(first):
    """Splits the elements of x above 0 into `first` ones and the rest, and exchanges the two."""
    return COUNT + [
        node("Compress", ["x", "above"], ["kept"], axis=0), node("Shape", ["kept"], ["n"]), constant("two", 2),
        first, node("Sub", ["n", "first"], ["rest"]), node("Concat", ["first", "rest"], ["parts"], axis=0),
        node("Split", ["kept", "parts"], ["p", "q"], axis=0), node("Concat", ["q", "p"], ["y"], axis=0)]


def branch(*nodes):
    """A branch whose result is r, or one that an outer node computes."""
    return helper.make_graph(list(nodes), "branch", [], [helper.make_empty_tensor_value_info("r")])


def chosen(condition, yes, no, out="y"):
    return node("If", [condition], [out], then_branch=yes, else_branch=no, name="the If")


MANY = COUNT + [scalar("three", 3), node("Greater", ["k", "three"], ["many"])]
NEGATED = branch(node("Neg", ["x"], ["r"]))

CASES = {
    "If of a count": MANY + [chosen("many", branch(node("Add", ["x", "x"], ["r"])), NEGATED)],
    "If with sizes of its own": MANY + [
        chosen("many", branch(node("Compress", ["x", "above"], ["r"], axis=0)), NEGATED, "part"),
        node("Mul", ["part", "part"], ["y"])],
    "If whose other side does not fit": MANY + [
        scalar("n24", 24), scalar("four", 4), node("Equal", ["k", "four"], ["even"]), constant("rest", -1),
        chosen("even", branch(node("Concat", ["count", "rest"], ["to"], axis=0),
                              node("Range", ["s0", "n24", "s1"], ["e"]), node("Reshape", ["e", "to"], ["t"]),
                              node("ReduceSum", ["t", "one"], ["r"], keepdims=0)),
               branch(node("Expand", ["three", "one"], ["r"])))],
    "If in an If": MANY + [
        scalar("five", 5), node("Greater", ["k", "five"], ["more"]),
        chosen("many", branch(node("Add", ["x", "x"], ["w"]), chosen(
            "more", branch(node("Identity", ["w"], ["r"])), branch(node("Mul", ["w", "x"], ["r"])), "r")),
               NEGATED)],
    "If with Unique": MANY + [chosen("many", branch(node("Unique", ["x"], ["r"])), NEGATED)],
    "If around a Loop that ends by itself": MANY + [
        scalar("yes", True, np.bool_), scalar("most", 9.0, np.float32),
        chosen("many", branch(node("Loop", ["three", "yes", "x"], ["last", "tops"], body=helper.make_graph(
            [node("Add", ["v", "v"], ["w"]), node("ReduceMax", ["w"], ["e"], keepdims=1), node("ReduceMax", ["w"], ["top"], keepdims=0),
             node("Less", ["top", "most"], ["d"])], "body",
            [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("c", BOOL, []),
             helper.make_tensor_value_info("v", F32, ["n"])],
            [helper.make_tensor_value_info("d", BOOL, []), helper.make_tensor_value_info("w", F32, ["n"]),
             helper.make_tensor_value_info("e", F32, [1])])),
                              constant("flat", -1), node("Reshape", ["tops", "flat"], ["r"])), NEGATED)],
    "ArgMax of a part": COUNT + [node("Compress", ["x", "above"], ["kept"], axis=0),
                                 node("ArgMax", ["kept"], ["y"], axis=0, keepdims=0)],
    "If of an open size": [
        node("Shape", ["x"], ["n"]), constant("nine", 9), node("Less", ["n", "nine"], ["short"]),
        chosen("short", branch(node("Add", ["x", "x"], ["r"])), NEGATED)],
    "If around a Loop": MANY + [
        scalar("yes", True, np.bool_), chosen("many", branch(node("Loop", ["three", "yes", "x"], ["r"], body=helper.make_graph(
            [node("Add", ["v", "v"], ["w"]), node("Identity", ["c"], ["d"])], "body",
            [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("c", BOOL, []),
             helper.make_tensor_value_info("v", F32, ["n"])],
            [helper.make_tensor_value_info("d", BOOL, []), helper.make_tensor_value_info("w", F32, ["n"])]))),
                                               NEGATED)],
    "NonZero": [node("NonZero", ["m"], ["y"])],
    "NonZero and Gather": [node("NonZero", ["m"], ["at"]), node("Transpose", ["at"], ["pairs"]),
                           node("GatherND", ["m", "pairs"], ["y"])],
    "size of NonZero": [node("NonZero", ["m"], ["at"]), node("Shape", ["at"], ["s"]),
                        node("ConstantOfShape", ["s"], ["f"]), node("Cast", ["at"], ["a"], to=F32),
                        node("Add", ["a", "f"], ["y"])],
    "NonZero as rows": [node("NonZero", ["m"], ["at"]), constant("shape", 2, -1, 1),
                        node("Reshape", ["at", "shape"], ["y"])],
    "Compress": COUNT + [node("Compress", ["x", "above"], ["y"], axis=0)],
    "Compress of all": COUNT + [node("Cast", ["m"], ["b"], to=BOOL),
                                constant("flat", -1), node("Reshape", ["b", "flat"], ["f"]),
                                node("Compress", ["m", "f"], ["y"])],
    "Range to a count": COUNT + [node("Range", ["s0", "k", "s1"], ["y"])],
    "Range down": COUNT + [scalar("m2", -2), node("Range", ["k", "s0", "m2"], ["y"])],
    "Range of floats": [node("ReduceMax", ["x"], ["top"], keepdims=0), scalar("f0", 0.0, np.float32),
                        scalar("step", 0.25, np.float32), node("Range", ["f0", "top", "step"], ["y"])],
    "Expand to a count": COUNT + [constant("three", 3),
                                  node("Concat", ["count", "three"], ["to"], axis=0),
                                  node("Expand", ["zero", "to"], ["y"])],
    "Slice to a count": COUNT + [node("Slice", ["x", "all", "count"], ["y"])],
    "Slice from the end": COUNT + [node("Neg", ["count"], ["from"]), constant("end", 2**62),
                                   node("Slice", ["x", "from", "end"], ["y"])],
    "Slice of a slice of a selection": COUNT + [
        node("Compress", ["x", "above"], ["kept"], axis=0), constant("two", 2), constant("five", 5),
        constant("end", 2**40), node("Slice", ["kept", "one", "end"], ["rest"]),
        node("Slice", ["rest", "two", "five"], ["y"])],
    "Tile by a count": COUNT + [node("Tile", ["x", "count"], ["y"])],
    "ConstantOfShape": COUNT + [constant("three", 3),
                                node("Concat", ["three", "count"], ["to"], axis=0),
                                node("ConstantOfShape", ["to"], ["y"])],
    "Reshape to a count": COUNT + [constant("rest", -1), scalar("n24", 24),
                                   node("Concat", ["count", "rest"], ["to"], axis=0),
                                   node("Range", ["s0", "n24", "s1"], ["e"]),
                                   node("Reshape", ["e", "to"], ["t"]),
                                   node("ReduceSum", ["t", "one"], ["y"], keepdims=0)],
    "Reshape by a count": COUNT + [constant("rest", -1), scalar("n24", 24),
                                   node("Concat", ["rest", "count"], ["to"], axis=0),
                                   node("Range", ["s0", "n24", "s1"], ["e"]),
                                   node("Reshape", ["e", "to"], ["y"])],
    "Reshape to the shape of a slice": COUNT + [
        node("Slice", ["m", "all", "count", "one"], ["v"]), node("Shape", ["v"], ["s"]),
        node("Reshape", ["v", "s"], ["y"])],
    "Pad by a count": COUNT + [node("Concat", ["count", "all"], ["pads"], axis=0),
                               node("Pad", ["x", "pads"], ["y"])],
    "Split at a count": COUNT + [
        node("Shape", ["x"], ["n"]), node("Sub", ["n", "count"], ["left"]),
        node("Concat", ["count", "left"], ["parts"], axis=0), node("Split", ["x", "parts"], ["p", "q"], axis=0),
        node("Concat", ["q", "p"], ["y"], axis=0)],
    "Split of a selection in halves": split_selection(node("Div", ["n", "two"], ["first"])),
    "Split of a selection at up to two": split_selection(node("Min", ["n", "two"], ["first"])),
    "OneHot of a count": COUNT + [constant("values", 0, 1), constant("i", 0, 2, 1),
                                  node("Add", ["k", "s1"], ["depth"]),
                                  node("OneHot", ["i", "depth", "values"], ["y"])],
    "Trilu at a count": COUNT + [node("Trilu", ["m", "k"], ["y"])],
    "TopK of a count": COUNT + [node("TopK", ["x", "count"], ["y", "at"])],
    "TopK of another axis's count": COUNT + [
        node("Compress", ["x", "above"], ["kept"], axis=0), node("Shape", ["kept"], ["n"]),
        scalar("n24", 24), node("Range", ["s0", "n24", "s1"], ["e"]), node("TopK", ["e", "n"], ["y", "at"])],
    "Slice backwards beyond a selection of eight": [
        constant("eight", *range(8)), node("Gather", ["x", "eight"], ["part"]), node("Relu", ["part"], ["some"]),
        node("NonZero", ["some"], ["at"]), constant("flat", -1), node("Reshape", ["at", "flat"], ["kept"]),
        constant("far", -100), constant("near", -9), constant("from", 0),
        node("Slice", ["kept", "flat", "far", "from", "flat"], ["a"]),
        node("Slice", ["kept", "flat", "near", "from", "flat"], ["b"]),
        node("Concat", ["a", "b"], ["both"], axis=0), node("Cast", ["both"], ["y"], to=F32)],
    "Loop of a count": COUNT + [node("Cast", ["count"], ["f"], to=F32),
                                scalar("yes", True, np.bool_), node("Loop", ["k", "yes", "f"], ["y"], body=helper.make_graph(
                                    [node("Add", ["v", "f"], ["w"]), node("Identity", ["c"], ["d"])],
                                    "body", [helper.make_tensor_value_info("i", I64, []),
                                             helper.make_tensor_value_info("c", BOOL, []),
                                             helper.make_tensor_value_info("v", F32, [1])],
                                    [helper.make_tensor_value_info("d", BOOL, []),
                                     helper.make_tensor_value_info("w", F32, [1])]))],
    "sum of sizes found to be equal": COUNT + [
        node("Slice", ["x", "all", "count"], ["part"]), twos("count", "f"),
        node("Compress", ["x", "above"], ["kept"], axis=0), node("Add", ["part", "f"], ["sum"]),
        node("Concat", ["sum", "kept"], ["both"], axis=0), node("Expand", ["sum", "count"], ["same"]),
        node("Mul", ["same", "kept"], ["product"]), node("Add", ["product", "part"], ["y"])],
    "product of sizes found to be equal": COUNT + [
        node("Compress", ["x", "above"], ["kept"], axis=0), twos("count", "f"),
        node("MatMul", ["kept", "f"], ["y"])],
    "two counts": COUNT + [node("Range", ["s0", "k", "s1"], ["r"]), scalar("two", 2),
                           node("GreaterOrEqual", ["r", "two"], ["late"]),
                           node("Compress", ["r", "late"], ["kept"], axis=0),
                           node("Shape", ["kept"], ["n"]), node("Squeeze", ["n"], ["more"]),
                           node("Range", ["s0", "more", "s1"], ["y"])],
}


def model(nodes, opset=18):
    graph = helper.make_graph(nodes, "sizes", [helper.make_tensor_value_info("x", F32, ["n"]),
                                               helper.make_tensor_value_info("m", F32, ["a", "b"])],
                              [helper.make_empty_tensor_value_info("y")])
    used = {i for n in nodes for i in n.input}
    for i in [i for i in graph.input if i.name not in used]:
        graph.input.remove(i)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def rows(rng, n, above):
    """n numbers, of which some are above 0; multiples of a quarter."""
    x = -rng.integers(0, 5, n) / 4
    x[rng.permutation(n)[:above]] = rng.integers(1, 9, above) / 4
    return x.astype(np.float32)


def run_cases(library, check):
    rng = np.random.default_rng(7)
    for label, nodes in CASES.items():
        made = model(nodes)
        try:
            loaded = library.load(made.SerializeToString())
        except Refused as e:
            check(label, False, f"refused: {e}")
            continue
        binding, reference = loaded.bind(), ReferenceEvaluator(made)
        names = [i.name for i in made.graph.input]
        for n, above in [(8, 3), (8, 4), (8, 8), (12, 6), (8, 1), (12, 2)]:
            given = {"x": rows(rng, n, above), "m": rows(rng, n, above).reshape(4, -1)}
            given = {k: given[k] for k in names}
            expected = np.asarray(reference.run(None, given)[0])
            try:
                y = binding.run(given)["y"]
                same = y.shape == expected.shape and np.array_equal(y, expected)
                check(f"{label}, {above} of {n}", same, f"{y} is not {expected}")
            except Refused as e:
                check(f"{label}, {above} of {n}", False, f"{e}")
        binding.free()
        loaded.free()


def run_empty(library, check):
    """Nothing is selected."""
    for label in ("NonZero", "NonZero and Gather", "Compress", "Range to a count", "two counts",
                  "Slice to a count", "Tile by a count", "ConstantOfShape"):
        loaded = library.load(model(CASES[label]).SerializeToString())
        y = loaded.run({k: v for k, v in (("x", np.zeros(8, "f4")), ("m", np.zeros((4, 2), "f4")))
                        if k in [p[0] for p in loaded.ports(0)]})["y"]
        check(f"{label} of zeros", y.size == 0, f"{y.shape}")
        loaded.free()


def run_refusals(library, check):
    """A size that does not fit is told with the node that computes it; the next run is right."""
    loaded = library.load(model(CASES["Reshape to a count"]).SerializeToString())
    binding = loaded.bind()
    binding.run({"x": rows(np.random.default_rng(1), 8, 4)})
    for above in (5, 7):
        try:
            binding.run({"x": rows(np.random.default_rng(1), 8, above)})
            check(f"24 by {above}", False, "it is not refused")
        except Refused as e:
            check(f"24 by {above}", e.status == "ERR_SHAPE" and "do not fit together" in e.message, f"{e}")
    y = binding.run({"x": rows(np.random.default_rng(1), 8, 6)})["y"]
    check("24 by 6", y.shape == (6,), f"{y.shape}")
    binding.free()
    loaded.free()
    differing = COUNT + [constant("five", 5), node("ConstantOfShape", ["five"], ["f"]),
                         node("Compress", ["x", "above"], ["kept"], axis=0),
                         node("Add", ["kept", "f"], ["y"])]
    loaded = library.load(model(differing).SerializeToString())
    binding = loaded.bind()
    for above in (5, 4, 5, 6, 5):
        given = rows(np.random.default_rng(above), 8, above)
        try:
            y = binding.run({"x": given})["y"]
            check("5 and 5", above == 5 and np.array_equal(y, given[given > 0]), f"{above}: {y}")
        except Refused as e:
            told = f"'Add': sizes that the run computed do not fit together: 5 is not {above}"
            named = e.status == "ERR_SHAPE" and told in e.message
            check("5 and others", above != 5 and named, f"{above}: {e}")
    binding.free()
    loaded.free()
    product = COUNT + [constant("five", 5), twos("five", "f"), node("Compress", ["x", "above"], ["kept"], axis=0),
                       node("MatMul", ["kept", "f"], ["p"], name="product"), node("Neg", ["p"], ["y"])]
    loaded = library.load(model(product).SerializeToString())
    try:
        loaded.run({"x": rows(np.random.default_rng(1), 8, 4)})
        check("a product of 4 and 5", False, "it is not refused")
    except Refused as e:
        check("a product of 4 and 5", "'product': sizes" in e.message and "is not" in e.message, f"{e}")
    loaded.free()
    negative = COUNT + [constant("five", -5), node("Add", ["count", "five"], ["less"], name="taking"),
                        node("ConstantOfShape", ["less"], ["y"])]
    loaded = library.load(model(negative).SerializeToString())
    try:
        loaded.run({"x": rows(np.random.default_rng(1), 8, 2)})
        check("a negative size", False, "it is not refused")
    except Refused as e:
        check("a negative size", e.status == "ERR_SHAPE" and "a size is -3" in e.message and
              "'taking'" in e.message, f"{e}")
    loaded.free()


def run_empty_refusals(library, check):
    """Nothing has no greatest element, and no range has a step of 0; the next run is right."""
    steps = COUNT + [scalar("four", 4), node("Range", ["s0", "four", "k"], ["y"])]
    for label, nodes, expected in (("ArgMax", CASES["ArgMax of a part"], None), ("Range", steps, [0, 2])):
        loaded = library.load(model(nodes).SerializeToString())
        binding = loaded.bind()
        for above in (2, 0, 2):
            given = rows(np.random.default_rng(3), 8, above)
            expected = expected or [np.argmax(given[given > 0])]
            try:
                y = binding.run({"x": given})["y"]
                check(f"{label} of {above}", above and np.ravel(y).tolist() == expected, f"{y}")
            except Refused as e:
                check(f"{label} of {above}", not above and e.status == "ERR_SHAPE", f"{e}")
        binding.free()
        loaded.free()


def run_other_branches(library, check):
    """A branch that is not taken needs no elements of an input; one that is taken does."""
    last = node("ArgMax", ["x"], ["at"], axis=0, keepdims=0)
    first = scalar("never", -1)
    row = [constant("one", 1), node("Shape", ["x"], ["n"]), node("Concat", ["one", "n"], ["to"], axis=0),
           node("Reshape", ["x", "to"], ["row"]), constant("at", 0)]
    is_some = [node("ReduceSum", ["x"], ["sum"], keepdims=0), scalar("zero", 0, np.float32),
               node("Greater", ["sum", "zero"], ["is_some"])]
    of_size = [node("Size", ["x"], ["size"]), scalar("s0", 0), node("Greater", ["size", "s0"], ["is_some"])]
    for label, condition, taken, other in (
            ("ArgMax", is_some, [last, node("Identity", ["at"], ["r"])], [first, node("Identity", ["never"], ["r"])]),
            ("ArgMax of some", of_size, [last, node("Identity", ["at"], ["r"])],
             [first, node("Identity", ["never"], ["r"])]),
            ("Reshape", is_some, [*row, node("Squeeze", ["row", "at"], ["r"])], [node("Neg", ["x"], ["r"])])):
        made = model(condition + [chosen("is_some", branch(*taken), branch(*other))])
        reference = ReferenceEvaluator(made)
        for interpreted in (False, True):
            loaded = library.load(made.SerializeToString(), interpreted=interpreted)
            binding = loaded.bind()
            for x in ([1, 3, 2], [], [-1, -2, 0.5], [2]):
                given = {"x": np.array(x, np.float32)}
                expected, y = np.asarray(reference.run(None, given)[0]), binding.run(given)["y"]
                check(f"{label} in a branch, {x}, {interpreted}",
                      y.shape == expected.shape and np.array_equal(y, expected), f"{y}, not {expected}")
            binding.free()
            loaded.free()
    loaded = library.load(model(is_some + [chosen("is_some", branch(first, node("Identity", ["never"], ["r"])),
                                                  branch(last, node("Identity", ["at"], ["r"])))]).SerializeToString())
    binding = loaded.bind()
    try:
        check("ArgMax of nothing", False, str(binding.run({"x": np.zeros(0, np.float32)})))
    except Refused as e:
        check("ArgMax of nothing", e.status == "ERR_SHAPE" and "must be at least 1" in e.message, f"{e}")
    y = binding.run({"x": np.array([-3, -1], np.float32)})["y"]
    check("ArgMax after nothing", y == 1, f"{y}")
    binding.free()
    loaded.free()


def run_products(library, check):
    """Shapes of 2⁶⁴ + 4 elements, which are 4 in 64 bits, do not fit 4 of them."""
    nodes = [constant("places", 0, 1, 2, 3), node("Gather", ["x", "places"], ["four"]),
             node("Relu", ["four"], ["sizes"]), node("Cast", ["sizes"], ["shape"], to=I64),
             node("Reshape", ["four", "shape"], ["r"]), node("Shape", ["r"], ["y"])]
    loaded = library.load(model(nodes).SerializeToString())
    binding = loaded.bind()
    for sizes, fits in (([2, 2, 1, 1], True), ([173620, 5581, 49477, 384773], False), ([4, 1, 1, 1], True),
                        ([0, 173620, 5581, 384773], False)):
        try:
            y = binding.run({"x": np.array(sizes, np.float32)})["y"]
            check(f"shape {sizes}", fits and y.tolist() == sizes, f"{y}")
        except Refused as e:
            check(f"shape {sizes}", not fits and "do not fit together" in e.message, f"{e}")
    binding.free()
    loaded.free()


def run_split(library, check):
    """Parts that do not add up to the axis are refused, whichever of them is read."""
    for name in ("p", "q"):
        nodes = COUNT + [constant("two", 2), node("Concat", ["count", "two"], ["parts"], axis=0),
                         node("Split", ["x", "parts"], ["p", "q"], axis=0), node("Neg", [name], ["y"])]
        loaded = library.load(model(nodes).SerializeToString())
        binding = loaded.bind()
        for above in (6, 5, 7, 6, 0):
            given = rows(np.random.default_rng(above), 8, above)
            expected = -(given[:6] if name == "p" else given[6:])
            try:
                y = binding.run({"x": given})["y"]
                check(f"part {name} at {above}", above == 6 and np.array_equal(y, expected), f"{y}")
            except Refused as e:
                told = f"do not fit together: {above + 2} is not 8"
                check(f"part {name} at {above}", above != 6 and told in e.message, f"{e}")
        binding.free()
        loaded.free()


def run_no_parts(library, check):
    """An axis with elements has no split into no parts."""
    nodes = [constant("none"), node("NonZero", ["x"], ["at"]),
             node("SplitToSequence", ["at", "none"], ["s"], axis=1), node("SequenceLength", ["s"], ["y"])]
    try:
        y = library.load(model(nodes).SerializeToString()).run({"x": np.ones(3, np.float32)})["y"]
        check("no parts", False, f"{y}")
    except Refused as e:
        check("no parts", e.status == "ERR_SHAPE" and "the 0 parts add up to 0" in e.message, f"{e}")


def run_sums_of_integers(library, check):
    """A sum over an input of integers is a size that a run computes, however long the input is."""
    nodes = [constant("all", 0), node("ReduceSum", ["mask", "all"], ["count"], keepdims=1),
             node("Slice", ["x", "all", "count"], ["y"])]
    graph = helper.make_graph(nodes, "mask", [helper.make_tensor_value_info("x", F32, ["n"]),
                                              helper.make_tensor_value_info("mask", I64, ["n"])],
                              [helper.make_empty_tensor_value_info("y")])
    loaded = library.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                                            ir_version=9).SerializeToString())
    binding, rng = loaded.bind(), np.random.default_rng(5)
    for n in (8, 300, 3000):
        mask, x = rng.integers(0, 2, n), rng.normal(size=n).astype(np.float32)
        y = binding.run({"x": x, "mask": mask})["y"]
        check(f"a mask of {n}", np.array_equal(y, x[:mask.sum()]), f"{y.shape}, not {mask.sum()}")
    binding.free()
    loaded.free()


def run_explanation(build, check):
    """A step whose sizes are computed reads the step that computes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "range.onnx"
        onnx.save(model(CASES["Range to a count"]), path)
        r = subprocess.run([Path(build) / "tenon", "explain", path, "--size", "n=8"],
                           capture_output=True, text=True)
        onnx.save(model(CASES["If of a count"]), path)
        skipped = subprocess.run([Path(build) / "tenon", "explain", path, "--size", "n=8"],
                                 capture_output=True, text=True)
    check("tenon explain of branches", skipped.returncode == 0 and
          skipped.stdout.count("  skipped   in runs that take another branch\n") == 2, skipped)
    check("tenon explain", r.returncode == 0 and "step 2: Range\n  reads     step 1\n" in r.stdout, r)


def run_check(build, check):
    """Interpreted runs compute the same sizes."""
    with tempfile.TemporaryDirectory() as folder:
        for label, names in (("NonZero and Gather", "ab"), ("two counts", "n")):
            path = Path(folder) / "checked.onnx"
            onnx.save(model(CASES[label]), path)
            r = subprocess.run([Path(build) / "tenon", "check", path, "--nodes"] +
                               [f"--size={name}=9" for name in names], capture_output=True, text=True)
            check(f"tenon check of {label}", r.returncode == 0, r)


def main():
    library, check = Library(sys.argv[1]), Checks()
    run_cases(library, check)
    run_empty(library, check)
    run_refusals(library, check)
    run_empty_refusals(library, check)
    run_other_branches(library, check)
    run_products(library, check)
    run_split(library, check)
    run_no_parts(library, check)
    run_sums_of_integers(library, check)
    run_explanation(sys.argv[1], check)
    run_check(sys.argv[1], check)
    check("tn_close", library.close() == 0)
    return check.end(240)


if __name__ == "__main__":
    sys.exit(main())
