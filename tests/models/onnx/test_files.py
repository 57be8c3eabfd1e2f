#!/usr/bin/env python3
"""Tests ONNX files that cannot be run: the message names the file, the node, and a way out. Also
tests where weights may lie: in the file or in external files.

    test_files.py BUILD
"""

import os
import subprocess
import sys
import tempfile
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
from tenon import INPUT, Library, Refused
from test_programs import network

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
BOOL = TensorProto.BOOL
check = Checks()


def node(op, inputs, outputs, name=None, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name or f"the {op}",
                            **attributes)


def model(*nodes, inputs=None, outputs=("y",), weights=(), opset=18, ir_version=8, domains=()):
    inputs = inputs or [helper.make_tensor_value_info("x", FLOAT, ["n", 4])]
    graph = helper.make_graph(list(nodes), "g", inputs,
                              [onnx.ValueInfoProto(name=n) for n in outputs],
                              [numpy_helper.from_array(np.array(a), n) for n, a in weights])
    sets = [helper.make_opsetid("", opset), *[helper.make_opsetid(d, v) for d, v in domains]]
    return helper.make_model(graph, opset_imports=sets, ir_version=ir_version)


def ports(*types):
    return [helper.make_tensor_value_info(n, t, s) for n, t, s in types]


def loop(*nodes, state=("x", "t"), outputs=1, inputs="9 yes x", more=(), op="Loop", **attributes):
    """Makes a model of a loop whose body has these nodes."""
    given = [] if op == "Scan" else [("i", INT64, []), ("on", BOOL, [])]
    out = [] if op == "Scan" else [("on", BOOL, [])]
    body = helper.make_graph(
        list(nodes), "body", ports(*given, *[(f"s{i}", FLOAT, [4]) for i in range(len(state) // 2)]),
        ports(*out, *[(n, FLOAT, None) for n in state[1:]]))
    return model(*more, node(op, inputs, " ".join(f"y{i}" for i in range(outputs)), body=body,
                             **attributes),
                 inputs=ports(("x", FLOAT, [4])), outputs=("y0",),
                 weights=[("9", np.array(9)), ("3", np.array(3)), ("yes", np.array(True))])


TRAINING = "ai.onnx.preview.training"


def gradient(*nodes, inputs="x", outputs="d", weights=(), **attributes):
    """Makes a model of a gradient of y, which these nodes give."""
    return model(*nodes, node("Gradient", inputs, outputs, domain=TRAINING, **({"y": "y"} | attributes)),
                 outputs=outputs.split(), domains=[(TRAINING, 1)],
                 weights=[("yes", np.array(True)), *weights])


def branch(name):
    return helper.make_graph([helper.make_node("Neg", ["x"], [name])], name, [], ports((name, FLOAT, None)))


STEP = node("Neg", "s0", "t", "inner")


def without_number(m):
    m.graph.node[0].input[0] = ""
    return m


def nested(depth, *innermost):
    """Makes a model of nested loops."""
    for i in range(depth - 1):
        body = loop(*innermost or [STEP]).graph.node[-1].attribute[0].g
        innermost = [node("Loop", "3 yes s0", "t", f"loop {i}", body=body)]
    return loop(*innermost or [STEP], inputs="3 yes x")


LOOPS = {
    "an operator in a body that is not supported": (
        loop(node("Wavelet", "s0", "t")), "ERR_UNSUPPORTED", ["Wavelet", "'the Wavelet'"]),
    "a loop without a body": (
        model(node("Scan", "x", "y", num_scan_inputs=1)), "ERR_FORMAT", ["'the Scan'", "body"]),
    "a body of two inputs": (
        loop(STEP, inputs="9 yes"), "ERR_FORMAT", ["'the Loop'", "3 inputs", "expected 2"]),
    "more outputs than a body gives": (
        loop(STEP, outputs=2), "ERR_FORMAT", ["'the Loop'", "2 outputs"]),
    "what nothing in a body gives": (
        loop(node("Add", "s0 nothing", "t", "inner")), "ERR_FORMAT",
        ["'the Loop'", "'inner'", "'nothing'"]),
    "a failure in a body": (
        loop(node("Softmax", "s0", "t", "inner", axis=3)), "ERR_SHAPE", ["'the Loop'", "'inner'"]),
    "a state of another type": (
        loop(node("Cast", "s0", "t", to=INT64)), "ERR_DTYPE", ["'the Loop'", "f32", "i64"]),
    "a loop without an end": (
        without_number(loop(STEP)), "ERR_UNSUPPORTED", ["'the Loop'", "neither a trip count nor a condition"]),
    "nothing to scan": (
        loop(STEP, op="Scan", inputs="x", num_scan_inputs=0), "ERR_FORMAT",
        ["'the Scan'", "num_scan_inputs is 0"]),
    "a direction that is none": (
        loop(node("Neg", "s0", "t"), op="Scan", inputs="x", num_scan_inputs=1,
             scan_input_directions=[2]), "ERR_FORMAT", ["'the Scan'", "scan_input_directions is 2"]),
    "directions of another number": (
        loop(node("Neg", "s0", "t"), op="Scan", inputs="x", num_scan_inputs=1,
             scan_output_directions=[0, 1]), "ERR_FORMAT", ["'the Scan'", "2 entries"]),
    "an axis that is not there": (
        loop(node("Neg", "s0", "t"), op="Scan", inputs="x", num_scan_inputs=1,
             scan_input_axes=[1]), "ERR_SHAPE", ["'the Scan'", "axis 1"]),
}

# label: (model, status, words of the message)
REFUSED = {
    "unsupported operators, all at once": (
        model(node("Wavelet", "x", "a"), node("Exp", "a", "b"), node("Contour", "b", "c", "nonzero 1"),
              node("Contour", "c", "d", "nonzero 2"), node("Wavelet", "d", "e", "det 2"),
              node("Wavelet", "e", "f", "det 3"), node("Wavelet", "f", "y", "det 4"), opset=20),
        "ERR_UNSUPPORTED", ["Wavelet", "Contour", "opset 20", "'the Wavelet'", "'nonzero 1'",
                            "'nonzero 2'", "'det 2'", "1 more"]),
    "branches": (
        model(helper.make_node("If", ["x"], ["y"], name="the If", **{
            name: helper.make_graph([], name, [], []) for name in ("then_branch", "else_branch")})),
        "ERR_DTYPE", ["If", "'the If'", "'x' is f32, expected bool"]),
    "branches that data takes, of other types": (
        model(node("IsNaN", "x", "n"), helper.make_node("If", ["n"], ["y"], name="the If", **{
            name: helper.make_graph([node(op, "x", "z")], name, [], [onnx.ValueInfoProto(name="z")])
            for name, op in (("then_branch", "Exp"), ("else_branch", "IsInf"))}),
              inputs=ports(("x", FLOAT, []))),
        "ERR_DTYPE", ["'the If'", "is f32 in the then_branch and bool in the else_branch"]),
    "branches that data takes, of other ranks": (
        model(node("IsNaN", "x", "n"), helper.make_node("If", ["n"], ["y"], name="the If", **{
            name: helper.make_graph([node(op, ins, "z")], name, [], [onnx.ValueInfoProto(name="z")])
            for name, op, ins in (("then_branch", "Exp", "x"), ("else_branch", "Expand", "x s"))}),
              inputs=ports(("x", FLOAT, [])), weights=[("s", np.array([2]))]),
        "ERR_SHAPE", ["'the If'", "has shape scalar in the then_branch and 2 in the else_branch"]),
    "an operator of the branch that is taken": (
        model(helper.make_node("If", ["c"], ["y"], name="the If", **{
            name: helper.make_graph([node(op, "x", "z")], name, [], [onnx.ValueInfoProto(name="z")])
            for name, op in (("then_branch", "Wavelet"), ("else_branch", "Exp"))}),
              weights=[("c", np.array(True))]),
        "ERR_UNSUPPORTED", ["'the If'", "'the Wavelet'", "not supported"]),
    "operators of another domain": (
        model(helper.make_node("Fused", ["x"], ["y"], name="mine", domain="com.example"),
              domains=[("com.example", 3)]),
        "ERR_UNSUPPORTED", ["Fused", "com.example", "opset 3", "'mine'"]),
    "a node without a name": (model(helper.make_node("Wavelet", ["x"], ["y"])), "ERR_UNSUPPORTED",
                              ["Wavelet", "'y'"]),
    "an opset that is too new": (model(node("Exp", "x", "y"), opset=29), "ERR_UNSUPPORTED",
                                 ["opset 29", "28"]),
    "an operator that is too new": (model(node("Gelu", "x", "y"), opset=6), "ERR_UNSUPPORTED",
                                    ["Gelu", "opset 6", "from opset 20", "'the Gelu'"]),
    "an IR version that is too new": (model(node("Exp", "x", "y"), ir_version=15),
                                      "ERR_UNSUPPORTED", ["IR version 15", "14"]),
    "an IR version that is too old": (model(node("Exp", "x", "y"), ir_version=2),
                                      "ERR_UNSUPPORTED", ["IR version 2", "convert"]),
    "an unknown attribute": (model(node("Exp", "x", "y", base=2.0)), "ERR_UNSUPPORTED",
                             ["Exp", "'the Exp'", "'base'"]),
    "an attribute of another type": (model(node("Concat", "x x", "y", axis=1.5)), "ERR_FORMAT",
                                     ["Concat", "'the Concat'", "axis"]),
    "too few inputs": (model(node("Add", "x", "y")), "ERR_FORMAT", ["'the Add'", "expected 2 inputs, got 1"]),
    "too many inputs": (model(node("Exp", "x x", "y")), "ERR_FORMAT", ["'the Exp'", "expected 1 input, got 2"]),
    "an input left out": (model(helper.make_node("Add", ["x", ""], ["y"], name="sum")),
                          "ERR_FORMAT", ["'sum'", "input 1"]),
    "too many outputs": (model(node("Exp", "x", "y z")), "ERR_UNSUPPORTED", ["'the Exp'", "'z'"]),
    "a value that nothing gives": (model(node("Add", "x lost", "y")), "ERR_FORMAT",
                                   ["'lost'", "'the Add'"]),
    "nodes in the wrong order": (model(node("Exp", "a", "y"), node("Tanh", "x", "a")),
                                 "ERR_FORMAT", ["'a'", "'the Exp'"]),
    "an output that nothing gives": (model(node("Exp", "x", "a")), "ERR_FORMAT", ["'y'"]),
    "shapes that do not fit": (
        model(node("MatMul", "x w", "y"), weights=[("w", np.ones((3, 2), np.float32))]),
        "ERR_SHAPE", ["'the MatMul'", "4", "3"]),
    "types that do not fit": (
        model(node("MatMul", "x w", "y"), weights=[("w", np.ones((4, 2), bool))]), "ERR_DTYPE",
        ["'the MatMul'", "'x' is f32", "'w' is bool"]),
    "a sum of two types": (
        model(node("Add", "x w", "y"), weights=[("w", np.ones(4, np.float64))]), "ERR_DTYPE",
        ["'the Add'", "f32", "f64"]),
    "a reshape to another number of elements": (
        model(node("Reshape", "x to", "y"), weights=[("to", np.array([3, 5]))],
              inputs=ports(("x", FLOAT, [2, 4]))),
        "ERR_SHAPE", ["'the Reshape'", "8", "15"]),
    "a shape with two -1": (
        model(node("Reshape", "x to", "y"), weights=[("to", np.array([-1, -1]))]), "ERR_SHAPE",
        ["'the Reshape'", "-1"]),
    "an axis that is not there": (model(node("Concat", "x x", "y", axis=5)), "ERR_SHAPE",
                                  ["'the Concat'", "5"]),
    "a step of 0": (
        model(node("Slice", "x a b a z", "y"), weights=[("a", np.array([0])), ("b", np.array([2])),
                                                        ("z", np.array([0]))]),
        "ERR_FORMAT", ["'the Slice'", "the step along axis 0 is 0"]),
    "a cast to complex numbers": (model(node("Cast", "x", "y", to=TensorProto.COMPLEX64)), "ERR_UNSUPPORTED",
                                  ["'the Cast'", "attribute 'to' is type c64, which is not supported"]),
    "a gradient without a rule": (
        gradient(node("Sin", "x", "h"), node("Erf", "h", "y"), xs=["x"]), "ERR_UNSUPPORTED",
        ["'the Gradient'", "the gradient of Erf (node 'the Erf') is not supported"]),
    "a gradient through a branch": (
        gradient(node("If", "yes", "h", then_branch=branch("t"), else_branch=branch("e")), node("Neg", "h", "y"),
                 xs=["x"]), "ERR_UNSUPPORTED", ["'the Gradient'", "If node 'the If', which has a graph"]),
    "a gradient of a gradient's result": (
        gradient(node("Mul", "x x", "l"), node("Gradient", "x", "z", "inner", domain=TRAINING, xs=["x"], y="l"),
                 node("Mul", "z x", "y"), xs=["x"]), "ERR_UNSUPPORTED", ["'the Gradient'", "y depends on Gradient node 'inner'"]),
    "a gradient of a gradient that is hidden": (
        gradient(node("Mul", "w x", "l"), node("Gradient", "w", "z", "inner", domain=TRAINING, xs=["w"], y="l"),
                 node("Mul", "z x", "y"), xs=["x"], weights=[("w", np.ones(4, np.float32))]), "ERR_UNSUPPORTED",
        ["'the Gradient'", "y depends on Gradient node 'inner'"]),
    "a gradient by no tensor": (gradient(node("Neg", "x", "y"), xs=["nowhere"]), "ERR_FORMAT",
                                ["'the Gradient'", "'nowhere'"]),
    "a gradient of integers": (gradient(node("Cast", "x", "i", to=INT64), node("Neg", "i", "y"), xs=["x"]),
                               "ERR_DTYPE", ["'the Gradient'", "'y' is i64"]),
    "a gradient by more than is given": (gradient(node("Neg", "x", "y"), xs=["x", "z"]), "ERR_FORMAT",
                                         ["'the Gradient'", "1 inputs and 1 outputs do not fit to 2 xs and 0 zs"]),
    "a gradient by a tensor twice": (gradient(node("Neg", "x", "y"), inputs="x x", xs=["x"], zs=["x"]), "ERR_FORMAT",
                                     ["'the Gradient'", "'x' is named twice"]),
    "a gradient of nothing": (gradient(node("Neg", "x", "h"), xs=["x"]), "ERR_FORMAT", ["'the Gradient'", "'y'"]),
    "a cast to nothing": (model(node("Cast", "x", "y", to=99)), "ERR_UNSUPPORTED", ["'the Cast'"]),
    "an input of strings": (model(node("Exp", "x", "y"), inputs=ports(("x", STRING, [2]))),
                            "ERR_UNSUPPORTED", ["'x'", "string"]),
    "an input of unknown rank": (model(node("Exp", "x", "y"), inputs=ports(("x", FLOAT, None))),
                                 "ERR_UNSUPPORTED", ["'x'", "rank"]),
    "pads of another number": (
        model(node("Conv", "x w", "y", pads=[1, 1, 1]), inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "ERR_FORMAT", ["'the Conv'", "pads", "3", "4"]),
    "an auto_pad that there is not": (
        model(node("Conv", "x w", "y", auto_pad="MIDDLE"), inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "ERR_FORMAT", ["'the Conv'", "MIDDLE"]),
    "groups that do not divide": (
        model(node("Conv", "x w", "y", group=2), inputs=ports(("x", FLOAT, [1, 3, 5, 5])),
              weights=[("w", np.ones((2, 1, 3, 3), np.float32))]),
        "ERR_SHAPE", ["'the Conv'"]),
    "a stride of 0": (
        model(node("Conv", "x w", "y", strides=[0, 1]), inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "ERR_FORMAT", ["'the Conv'", "strides[0] is 0"]),
    "strides of 0 with auto_pad": (
        model(node("Conv", "x w", "y", strides=[0, 0], auto_pad="SAME_UPPER"),
              inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "ERR_FORMAT", ["'the Conv'", "strides[0] is 0"]),
    "a dilation that is huge": (
        model(node("Conv", "x w", "y", dilations=[2**62, 2**62], auto_pad="SAME_UPPER"),
              inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "ERR_FORMAT", ["'the Conv'", "dilations[0] is 4611686018427387904"]),
    "pads that are negative and large": (
        model(node("Conv", "x w", "y", pads=[-2**62, 0, -2**62, 0]),
              inputs=ports(("x", FLOAT, [1, 1, 5, 5])),
              weights=[("w", np.ones((1, 1, 3, 3), np.float32))]),
        "", ["'the Conv'"]),
    "a permutation that is none": (model(node("Transpose", "x", "y", perm=[0, 0])), "",
                                   ["'the Transpose'"]),
    "axes by the thousand": (
        model(node("Unsqueeze", "x a", "y"), weights=[("a", np.arange(1000))]), "ERR_UNSUPPORTED",
        ["'the Unsqueeze'"]),
    "a slice's bounds of different lengths": (
        model(node("Slice", "x a b", "y"), weights=[("a", np.array([0])), ("b", np.array([2, 3]))]),
        "ERR_SHAPE", ["'the Slice'"]),
    "a shape below zero": (
        model(node("Reshape", "x to", "y"), weights=[("to", np.array([-2, -2]))],
              inputs=ports(("x", FLOAT, [2, 2]))),
        "ERR_SHAPE", ["'the Reshape'", "-2"]),
    "a shape to expand to below zero": (
        model(node("Expand", "x to", "y"), weights=[("to", np.array([-1, 4]))]),
        "ERR_SHAPE", ["'the Expand'", "-1"]),
    "a weight of 31 dimensions": (
        model(node("MatMul", "w w", "y"), weights=[("w", np.ones((1,) * 31, np.float32))]),
        "ERR_UNSUPPORTED", ["'w'", "31", "29"]),
    "an input of 13 dimensions": (
        model(node("Exp", "x", "y"), inputs=ports(("x", FLOAT, [1] * 13))),
        "ERR_UNSUPPORTED", ["input 'x'", "13", "12"]),
    "an output of 13 dimensions": (
        model(node("Exp", "w", "y"), weights=[("w", np.ones((1,) * 13, np.float32))]),
        "ERR_UNSUPPORTED", ["output 'y'", "13", "12"]),
    "two inputs of one name": (
        model(node("Exp", "x", "y"), inputs=ports(("x", FLOAT, [3]), ("x", FLOAT, [4]))),
        "ERR_FORMAT", ["inputs 0 and 1", "'x'"]),
    "two outputs of one name": (model(node("Exp", "x", "y"), outputs=("y", "y")), "ERR_FORMAT",
                                ["outputs 0 and 1", "'y'"]),
    "an output that is a weight": (
        model(node("Exp", "x", "w"), node("Exp", "w", "y", "exp 2"), weights=[("w", np.ones(3))]),
        "ERR_FORMAT", ["'the Exp'", "'w'", "initializer"]),
    "a remainder of floats": (
        model(node("Mod", "x x", "y")), "ERR_DTYPE", ["'the Mod'", "fmod"]),
    "a shift to nowhere": (
        model(node("BitShift", "x x", "y", direction="UP"), inputs=ports(("x", TensorProto.UINT8, [4]))),
        "ERR_FORMAT", ["'the BitShift'", "'UP'"]),
    "a choice between types": (
        model(node("Where", "x x w", "y"), weights=[("w", np.array([1, 2, 3, 4]))]), "ERR_DTYPE",
        ["'the Where'", "f32", "i64"]),
    "a range without a step": (
        model(node("Range", "a a z", "y"), weights=[("a", np.array(3)), ("z", np.array(0))]),
        "ERR_FORMAT", ["'the Range'", "step"]),
    "a range by less than nothing": (
        model(node("Range", "a b c", "y"), weights=[("a", np.array(0, np.float32)), ("b", np.array(5, np.float32)), ("c", np.array(-0.0, np.float32))]),
        "ERR_FORMAT", ["'the Range'", "step"]),
    "a range to what is no number": (
        model(node("Range", "a b c", "y"), weights=[("a", np.array(0, np.float32)), ("b", np.array(np.nan, np.float32)), ("c", np.array(1, np.float32))]),
        "ERR_FORMAT", ["'the Range'", "from 0 to nan by 1"]),
    "a range of more than can be counted": (
        model(node("Range", "a b c", "y"), weights=[("a", np.array(-2**63, np.int64)), ("b", np.array(2**63 - 1, np.int64)), ("c", np.array(1, np.int64))]),
        "ERR_UNSUPPORTED", ["'the Range'", "2^63"]),
    "a range of bools": (
        model(node("Range", "a a a", "y"), weights=[("a", np.array(True))]), "ERR_DTYPE",
        ["'the Range'", "bool"]),
    "a range to what may be below 0, without a sign": (
        model(node("Shape", "x", "s", end=1), node("Squeeze", "s", "n"),
              node("Cast", "n", "u", to=TensorProto.UINT64), node("Sub", "u 5", "l"),
              node("Range", "5 l 5", "y"), weights=[("5", np.array(5, np.uint64))]),
        "ERR_UNSUPPORTED", ["'the Range'", "when the model runs"]),
    "an axis that is data": (
        model(node("ArgMax", "x", "a"), node("CumSum", "x a", "y"), inputs=ports(("x", FLOAT, [3]))),
        "ERR_UNSUPPORTED", ["'the CumSum'", "'a'", "when the model runs"]),
    "sizes below zero": (
        model(node("Resize", "x none none to", "y", axes=[1]), inputs=ports(("x", FLOAT, [3, 4])),
              weights=[("none", np.zeros(0, np.float32)), ("to", np.array([-1]))]),
        "ERR_SHAPE", ["'the Resize'", "-1", "negative"]),
    "sizes that give no ratio": (
        model(node("Resize", "x none none to", "y", keep_aspect_ratio_policy="not_larger"),
              inputs=ports(("x", FLOAT, [3, 4])),
              weights=[("none", np.zeros(0, np.float32)), ("to", np.array([0, 5]))]),
        "ERR_SHAPE", ["'the Resize'", "axis 0, of size 3, cannot be made 0"]),
    "no parts of a sequence": (
        model(node("SplitToSequence", "x p", "s", axis=1), node("SequenceLength", "s", "y"),
              weights=[("p", np.zeros(0, np.int64))]), "ERR_SHAPE",
        ["'the SplitToSequence'", "0 parts add up to 0", "axis 1 has size 4"]),
    "a shape of two dimensions": (
        model(node("Reshape", "x s", "y"), inputs=ports(("x", FLOAT, [3, 4])),
              weights=[("s", np.array([[4, 3]]))]), "ERR_SHAPE",
        ["'the Reshape'", "'s' has 2 dimensions, expected a vector of integers"]),
    "a shape of floats": (
        model(node("Expand", "x s", "y"), inputs=ports(("x", FLOAT, [1]), ("s", FLOAT, [2]))),
        "ERR_DTYPE", ["'the Expand'", "'s' is f32, expected a vector of integers"]),
    "axes of floats": (
        model(node("ReduceSum", "x a", "y"), weights=[("a", np.array([1], np.float32))]),
        "ERR_DTYPE", ["'the ReduceSum'", "'a' is f32, expected a vector of integers"]),
    "a transform of negative length": (
        model(node("DFT", "x n", "y", axis=1), inputs=ports(("x", FLOAT, [1, 4, 1])),
              weights=[("n", np.array(-4))]), "ERR_SHAPE",
        ["'the DFT'", "dft_length is -4, expected at least 1"]),
    "frames of negative length": (
        model(node("STFT", "x by w n", "y"), inputs=ports(("x", FLOAT, [1, 8, 1])),
              weights=[("by", np.array(2)), ("w", np.ones(4, np.float32)), ("n", np.array(-4))]),
        "ERR_SHAPE", ["'the STFT'", "frame_length is -4, expected at least 1"]),
    "parts that are too many": (
        model(node("Split", "x p", "y z", axis=1), weights=[("p", np.array([1, 2, 1]))]), "ERR_SHAPE",
        ["'the Split'", "3 sizes", "2 outputs"]),
    "parts that do not add up": (
        model(node("Split", "x p", "y z", axis=1), weights=[("p", np.array([1, 2]))]), "ERR_SHAPE",
        ["'the Split'", "4"]),
    "an index of floats": (
        model(node("Gather", "x x", "y")), "ERR_DTYPE", ["'the Gather'", "f32"]),
    "places of too many axes": (
        model(node("GatherND", "x i", "y"), weights=[("i", np.zeros((2, 3), np.int64))]), "ERR_SHAPE",
        ["'the GatherND'", "2x3"]),
    "updates of another shape": (
        model(node("ScatterElements", "x i u", "y"), inputs=ports(("x", FLOAT, [3, 4])),
              weights=[("i", np.zeros((1, 2), np.int64)), ("u", np.zeros((2, 1), np.float32))]),
        "ERR_SHAPE", ["'the ScatterElements'", "2x1", "1x2"]),
    "a reduction of its own": (
        model(node("ScatterND", "x i u", "y", reduction="mean"), inputs=ports(("x", FLOAT, [3])),
              weights=[("i", np.zeros((1, 1), np.int64)), ("u", np.zeros(1, np.float32))]),
        "ERR_FORMAT", ["'the ScatterND'", "'mean'"]),
    "an equation of bools": (
        model(node("Einsum", "x", "y", equation="ii"), inputs=ports(("x", BOOL, [2, 2]))),
        "ERR_DTYPE", ["'the Einsum'", "bool"]),
    "an equation without an operand": (
        model(node("Einsum", "x x", "y", equation="ij->ij")), "ERR_FORMAT",
        ["'the Einsum'", "operand 1"]),
    "an equation with digits": (
        model(node("Einsum", "x", "y", equation="i2->i")), "ERR_FORMAT", ["'the Einsum'", "'2'"]),
    "a letter from nowhere": (
        model(node("Einsum", "x", "y", equation="ij->ik")), "ERR_FORMAT",
        ["'the Einsum'", "no operand"]),
    "more letters than axes": (
        model(node("Einsum", "x", "y", equation="ijk->i")), "ERR_SHAPE", ["'the Einsum'", "3 letters"]),
    "heads that do not divide": (
        model(node("Attention", "x x x", "y", q_num_heads=3, kv_num_heads=3), opset=23,
              inputs=ports(("x", FLOAT, [1, 2, 8]))),
        "ERR_SHAPE", ["'the Attention'", "3 heads", "8"]),
    "keys without values of the past": (
        model(helper.make_node("Attention", ["x", "x", "x", "", "x"], ["y"], name="half"), opset=23,
              inputs=ports(("x", FLOAT, [1, 2, 3, 8]))),
        "ERR_FORMAT", ["'half'", "past_key"]),
    "an odd rotation": (
        model(node("RotaryEmbedding", "x c c", "y", rotary_embedding_dim=3), opset=23,
              inputs=ports(("x", FLOAT, [1, 2, 3, 8])),
              weights=[("c", np.zeros((1, 3, 1), np.float32))]),
        "ERR_SHAPE", ["'the RotaryEmbedding'", "is 3, not an even number of at most 8"]),
    "an activation that is none": (
        model(node("RNN", "x w r", "y", activations=["Sine"]), inputs=ports(("x", FLOAT, [2, 1, 3])),
              weights=[("w", np.zeros((1, 4, 3), np.float32)), ("r", np.zeros((1, 4, 4), np.float32))]),
        "ERR_FORMAT", ["'the RNN'", "'Sine'"]),
    "weights of another network": (
        model(node("GRU", "x w r", "y"), inputs=ports(("x", FLOAT, [2, 1, 3])),
              weights=[("w", np.zeros((1, 4, 3), np.float32)), ("r", np.zeros((1, 4, 4), np.float32))]),
        "ERR_SHAPE", ["'the GRU'", "'w'", "1x4x3", "1x12x3"]),
    "an output given twice": (
        model(node("Exp", "x", "y"), node("Tanh", "x", "y")), "ERR_FORMAT",
        ["'the Tanh'", "'the Exp'", "'y'"]),
    "an output that is not built, used": (
        model(node("Dropout", "x", "d mask"), node("Exp", "mask", "y"), opset=7),
        "ERR_UNSUPPORTED", ["'the Exp'", "'mask'", "'the Dropout'"]),
    "dropout that may be in training": (
        model(node("ArgMax", "x", "i"), node("Cast", "i", "t", to=BOOL), node("Dropout", "x r t", "y"),
              weights=[("r", np.array(0.5, np.float32))], inputs=ports(("x", FLOAT, [4]))),
        "ERR_UNSUPPORTED", ["'the Dropout'", "mode", "runs", "initializer"]),
    "a pool without a window": (
        model(node("MaxPool", "x", "y"), inputs=ports(("x", FLOAT, [1, 1, 5]))), "ERR_FORMAT",
        ["'the MaxPool'", "kernel_shape"]),
    "a pool of a matrix": (
        model(node("MaxPool", "x", "y", kernel_shape=[2]), inputs=ports(("x", FLOAT, [3, 4]))),
        "ERR_SHAPE", ["'the MaxPool'", "2 dimensions"]),
    "a window of 2^62": (
        model(node("AveragePool", "x", "y", kernel_shape=[2**62], auto_pad="SAME_UPPER"),
              inputs=ports(("x", FLOAT, [1, 1, 5]))),
        "ERR_FORMAT", ["'the AveragePool'", "kernel_shape[0] is 4611686018427387904"]),
    "a window larger than its axis": (
        model(node("MaxPool", "x", "y", kernel_shape=[7]), inputs=ports(("x", FLOAT, [1, 1, 5]))),
        "ERR_SHAPE", ["'the MaxPool'", "a window of 7 is larger than its padded axis, of size 5"]),
    "numbers by a step of 0": (
        model(node("Range", "a a a", "y"), weights=[("a", np.array(0))]), "ERR_FORMAT",
        ["'the Range'", "the step is 0"]),
    "pads larger than the window": (
        model(node("MaxPool", "x", "y", kernel_shape=[2], pads=[2, 0]),
              inputs=ports(("x", FLOAT, [1, 1, 5]))),
        "ERR_FORMAT", ["'the MaxPool'", "pad_low[0] is 2"]),
    "a result of -1": (
        model(node("ConvTranspose", "x w", "y", output_shape=[-1]),
              inputs=ports(("x", FLOAT, [1, 1, 5])),
              weights=[("w", np.ones((1, 1, 3), np.float32))]),
        "ERR_FORMAT", ["'the ConvTranspose'", "output_shape[0] is -1"]),
    "a norm of power 0": (
        model(node("GlobalLpPool", "x", "y", p=0), inputs=ports(("x", FLOAT, [1, 1, 5]))),
        "ERR_FORMAT", ["'the GlobalLpPool'", "p is 0, expected a positive number"]),
    "a local norm of no channels": (
        model(node("LRN", "x", "y", size=0), inputs=ports(("x", FLOAT, [1, 1, 5]))),
        "ERR_FORMAT", ["'the LRN'", "size is 0"]),
    "a product of three axes": (
        model(node("Gemm", "x w", "y"), inputs=ports(("x", FLOAT, [2, 3, 4])),
              weights=[("w", np.ones((2, 3, 4), np.float32))]),
        "ERR_SHAPE", ["'the Gemm'", "'x'", "3 dimensions"]),
    "a constant without a value": (model(node("Constant", "", "y")), "ERR_FORMAT",
                                   ["'the Constant'", "0 attributes"]),
    "a shape of constants below zero": (
        model(node("ConstantOfShape", "to", "y"), weights=[("to", np.array([3, -1]))]),
        "ERR_SHAPE", ["'the ConstantOfShape'", "-1"]),
    "a bound of three numbers": (
        model(node("Clip", "x low", "y"), weights=[("low", np.ones(3, np.float32))]), "ERR_SHAPE",
        ["'the Clip'", "'low'", "must be a scalar"]),
    "pads of another number than 2 an axis": (
        model(node("Pad", "x p", "y"), weights=[("p", np.array([1, 2, 3]))]), "ERR_SHAPE",
        ["'the Pad'", "3 pads", "4"]),
    "pads that cut more than there is": (
        model(node("Pad", "x p", "y"), weights=[("p", np.array([0, -9, 0, 0]))],
              inputs=ports(("x", FLOAT, [2, 4]))),
        "", ["'the Pad'"]),
    "pads that cut 2^63": (
        model(node("Pad", "x p", "y"), weights=[("p", np.array([0, -2**63, 0, 0]))],
              inputs=ports(("x", FLOAT, [2, 4]))),
        "", ["'the Pad'"]),
    "pads of 2^62": (
        model(node("Pad", "x p", "y"), weights=[("p", np.array([0, 2**62, 0, 2**62]))],
              inputs=ports(("x", FLOAT, [2, 4]))),
        "", ["'the Pad'"]),
    "pads of 2^62 that wrap": (
        model(node("Pad", "x p", "y", mode="wrap"), weights=[("p", np.array([0, 2**62, 0, 0]))],
              inputs=ports(("x", FLOAT, [2, 4])), opset=19),
        "ERR_UNSUPPORTED", ["'the Pad'"]),
    "pads of an unknown mode": (
        model(node("Pad", "x p", "y", mode="twice"), weights=[("p", np.array([0, 1, 0, 1]))]),
        "ERR_FORMAT", ["'the Pad'", "'twice'"]),
    "nothing that wraps": (
        model(node("Pad", "x p", "y", mode="wrap"), weights=[("p", np.array([0, 1]))], opset=19,
              inputs=ports(("x", FLOAT, [0]))),
        "ERR_SHAPE", ["'the Pad'", "empty"]),
    "blocks that do not divide": (
        model(node("DepthToSpace", "x", "y", blocksize=2), inputs=ports(("x", FLOAT, [1, 6, 2, 2]))),
        "ERR_SHAPE", ["'the DepthToSpace'", "channels, 6"]),
    "blocks of 2^62": (
        model(node("SpaceToDepth", "x", "y", blocksize=2**62),
              inputs=ports(("x", FLOAT, [1, 6, 2, 2]))),
        "ERR_FORMAT", ["'the SpaceToDepth'", "blocksize"]),
    "a scale of 0": (
        model(node("Resize", "x r s", "y"), weights=[("r", np.zeros(0, np.float32)),
                                                     ("s", np.array([1, 0], np.float32))]),
        "ERR_FORMAT", ["'the Resize'", "scale of axis 1 is 0"]),
    "a scale of NaN": (
        model(node("Resize", "x r s", "y"), weights=[("r", np.zeros(0, np.float32)),
                                                     ("s", np.array([1, np.nan], np.float32))]),
        "ERR_FORMAT", ["'the Resize'", "scale of axis 1"]),
    "scales of another number": (
        model(node("Resize", "x r s", "y"), weights=[("r", np.zeros(0, np.float32)),
                                                     ("s", np.ones(3, np.float32))]),
        "ERR_SHAPE", ["'the Resize'", "scales has 3 elements, expected 2"]),
    "neither scales nor sizes": (model(node("Resize", "x", "y")), "ERR_FORMAT",
                                 ["'the Resize'", "neither"]),
    "scales that are computed": (
        model(node("Exp", "x", "s"), node("Resize", "x x s", "y"), inputs=ports(("x", FLOAT, [1]))),
        "ERR_UNSUPPORTED", ["'the Resize'", "'s'"]),
    "an antialias": (
        model(node("Resize", "x r s", "y", antialias=1), weights=[
            ("r", np.zeros(0, np.float32)), ("s", np.ones(2, np.float32))]),
        "ERR_FORMAT", ["'the Resize'", "antialias"]),
    "no outputs": (model(node("Neg", "x", "y"), outputs=()), "ERR_UNSUPPORTED",
                   ["the graph has no outputs"]),
    **LOOPS,
    "two weights of one name": (
        model(node("Exp", "x", "y"), weights=[("w", np.ones(1)), ("w", np.ones(1))]), "ERR_FORMAT",
        ["'w'"]),
}


def check_refusals(library, folder):
    for label, (m, status, words) in REFUSED.items():
        path = folder / "refused.onnx"
        onnx.save(m, path)
        for source, place in ((path, str(path)), (path.read_bytes(), "")):
            try:
                library.load(source).free()
                check(label, False, "was loaded")
            except Refused as e:
                missing = [w for w in [*words, place] if w not in e.message]
                check(label, e.status == (status or e.status) and e.status != "ERR_INTERNAL"
                      and not missing, f"lacks {missing}: {e}")


def check_nesting(library):
    """Runs the deepest allowed nest of loops, of three steps each: the total is odd."""
    m = library.load(nested(8, node("Neg", "s0", "t")).SerializeToString())
    y = m.run({"x": np.ones(4, np.float32)})["y0"]
    check("eight loops in each other", np.all(y == -1), y)
    m.free()


def check_command(build, folder):
    """Checks the same file in the command: exit status 1, one message, nothing written."""
    path, out = folder / "refused.onnx", folder / "out.npy"
    onnx.save(REFUSED["unsupported operators, all at once"][0], path)
    run = [build / "tenon", "run", path, "--output", f"y={out}"]
    r = subprocess.run(run, capture_output=True, text=True)
    check("tenon run", r.returncode == 1 and "'nonzero 1'" in r.stderr and str(path) in r.stderr
          and not r.stdout and not out.exists(), r)
    r = subprocess.run([build / "tenon", "inspect", path], capture_output=True, text=True)
    check("tenon inspect", all(w in r.stdout + r.stderr for w in ("Wavelet", "Contour", "nonzero 2")), r)


def check_damage(library):
    """Loads truncated and corrupted networks: each is refused, or runs."""
    whole = network().SerializeToString()
    rng = np.random.default_rng(1)
    for n in sorted({*range(0, 200, 7), *rng.integers(0, len(whole), 60)}):
        try:
            library.load(whole[:int(n)])
            check(f"{n} bytes", False, "were loaded")
        except Refused as e:
            says = n == 0 or ("truncated" in e.message and f" {n}" in e.message)
            check(f"{n} bytes", e.status == "ERR_FORMAT" and says, e)
    small = model(node("MatMul", "x w", "a"), node("Reshape", "a to", "y"),
                  weights=[("w", np.ones((4, 2), np.float32)), ("to", np.array([-1, 2]))])
    data = small.SerializeToString()
    for _ in range(400):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), 1 + rng.integers(4)):
            changed[at] = rng.integers(256)
        try:
            library.load(bytes(changed)).free()
            check("changed bytes", True)
        except Refused as e:
            check("changed bytes", e.status in ("ERR_FORMAT", "ERR_UNSUPPORTED", "ERR_SHAPE",
                                                "ERR_DTYPE", "ERR_ARGUMENT", "ERR_IO"), e)


def sparse(name, values, indices, dims):
    return helper.make_sparse_tensor(numpy_helper.from_array(np.array(values, np.float32), name),
                                     numpy_helper.from_array(np.array(indices, np.int64), "at"), dims)


def check_sparse(library):
    """Runs models with sparse constants, and refuses those with indices outside of them."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    flat, pairs = [0, 5, 11], [[0, 0], [1, 1], [2, 3]]
    dense = np.zeros((3, 4), np.float32)
    dense[0, 0], dense[1, 1], dense[2, 3] = 1, 2, 3

    def of(*nodes, weights=()):
        m = model(*nodes, inputs=ports(("x", FLOAT, [3, 4])))
        m.graph.sparse_initializer.extend(weights)
        return m.SerializeToString()

    for indices in (flat, pairs):
        w = sparse("w", [1, 2, 3], indices, [3, 4])
        for source in (of(node("Add", "x w", "y"), weights=[w]),
                       of(node("Constant", "", "w", sparse_value=w), node("Add", "x w", "y"))):
            m = library.load(source)
            y = m.run({"x": x})["y"]
            check("a sparse constant", np.array_equal(y, x + dense), y)
            m.free()
    for what, w, *words in (
            ("an index beyond", sparse("w", [1, 2], [0, 12], [3, 4]), "'w'", "index 1 is 12", "to 11"),
            ("an index below", sparse("w", [1], [[0, -1]], [3, 4]), "'w'", "-1", "to 3"),
            ("too few values", sparse("w", [1], [0, 1], [3, 4]), "sparse tensor 'w'", "[1]", "[2]"),
            ("three coordinates", sparse("w", [1], [[0, 1, 2]], [3, 4]), "[1, 3]", "[n, 2]")):
        try:
            library.load(of(node("Add", "x w", "y"), weights=[w]))
            check(what, False, "was loaded")
        except Refused as e:
            check(what, e.status == "ERR_FORMAT" and all(w in e.message for w in words), e)


def check_binding(library):
    """Runs bindings with missing or wrong inputs."""
    m = library.load(model(node("Add", "x z", "y"), inputs=ports(
        ("x", FLOAT, ["n", 4]), ("z", FLOAT, ["n", 1]))).SerializeToString())

    def refused(what, inputs, status, *words):
        try:
            m.run(inputs)
            check(what, False, "ran")
        except Refused as e:
            check(what, e.status == status and all(w in e.message for w in words), e)

    x, z = np.ones((2, 4), np.float32), np.ones((2, 1), np.float32)
    refused("an input missing", {"x": x}, "ERR_ARGUMENT", "z")
    refused("all inputs missing", {}, "ERR_ARGUMENT", "x", "z")
    refused("another size", {"x": np.ones((2, 5), np.float32), "z": z}, "ERR_SHAPE", "x", "5", "4")
    refused("another rank", {"x": x[0], "z": z}, "ERR_SHAPE", "x")
    refused("sizes that disagree", {"x": x, "z": z[:1]}, "ERR_SHAPE", "z")
    refused("another name", {"x": x, "Z": z}, "ERR_ARGUMENT", "Z")
    y = m.run({"x": x.astype(np.int32), "z": z.astype(np.float64)})["y"]
    check("another host type is converted", y.dtype == np.float32 and np.all(y == 2), y)
    check("the ports", m.ports(INPUT) == [("x", np.float32, ["n", "4"]),
                                          ("z", np.float32, ["n", "1"])], m.ports(INPUT))
    m.free()


def check_network(library, folder):
    """Runs the example's network on random images, with its weights in external files."""
    rng = np.random.default_rng(2)
    m = network()
    session = onnxruntime.InferenceSession(m.SerializeToString())
    (folder / "apart").mkdir()
    path = folder / "apart" / "net.onnx"
    onnx.save(m, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    stored = path.read_bytes()
    binding = library.load(path).bind()
    for n in (1, 3, 8):
        data = rng.standard_normal((n, 3, 224, 224)).astype(np.float32)
        expected = session.run(None, {"data": data})[0]
        actual = binding.run({"data": data})["scores"]
        close = np.isclose(actual, expected, rtol=1e-3, atol=1e-4 * expected.std())
        check(f"network, batch {n}", actual.shape == expected.shape and close.all(),
              f"{np.abs(actual - expected).max()}")
    binding.free()

    def refused(what, source, status, *words):
        try:
            library.load(source)
            check(what, False, "was loaded")
        except Refused as e:
            check(what, e.status == status and all(w in e.message for w in words), e)

    refused("weights apart, from memory", stored, "ERR_IO", "folder")
    if os.path.exists("/dev/fd"):
        to_read, to_write = os.pipe()
        os.write(to_write, stored)
        os.close(to_write)
        refused("weights apart, from a pipe", f"/dev/fd/{to_read}", "ERR_IO", "from a pipe",
                "give the model's path")
        os.close(to_read)
    weights = path.parent / "weights.bin"
    size = weights.stat().st_size
    os.truncate(weights, size // 2)
    refused("weights cut short", path, "ERR_FORMAT", "net.onnx", "weights.bin", "beyond the end")
    weights.unlink()
    refused("weights missing", path, "ERR_IO", "net.onnx", "weights.bin")
    path.write_bytes(stored.replace(b"weights.bin", b"../../x.bin"))
    refused("weights outside of the folder", path, "ERR_FORMAT", "../../x.bin")


def check_cut(library, folder):
    """Cuts files of loaded models: weights that kernels read as they are, or packed, are read where
    they are first used, and an error if they are not there any more; those of a model that was
    copied are there."""
    rng = np.random.default_rng(3)
    table = rng.standard_normal((600, 64)).astype(np.float32)
    weight = rng.standard_normal((64, 600)).astype(np.float32)
    rows, product = node("Gather", "table i", "rows"), node("MatMul", "rows w", "y")
    at = np.array([3, 599, 0, 7])

    def of(*nodes, weights):
        return model(*nodes, inputs=ports(("i", INT64, ["n"])), weights=weights)

    whole = {"table": of(node("Gather", "table i", "y"), weights=[("table", table)]),
             "table, w": of(rows, product, weights=[("table", table), ("w", weight)])}
    expected = {"table": table[at], "table, w": table[at] @ weight}
    for name, m in whole.items():
        for apart in (False, True):
            path = folder / f"cut{len(name)}{apart}.onnx"
            onnx.save(m, path, save_as_external_data=apart, location=path.name + ".data",
                      size_threshold=0)
            cut = Path(f"{path}.data") if apart else path
            contents = cut.read_bytes()
            what = f"{name} {'apart' if apart else 'inside'}"
            loaded = library.load(path)
            os.truncate(cut, 100)
            for _ in range(2):
                try:
                    loaded.run({"i": at})
                    check(f"{what}, cut after loading", False, "ran")
                except Refused as e:
                    says = cut.name in e.message and "it has 100 bytes" in e.message
                    check(f"{what}, cut after loading", e.status == "ERR_IO" and says, e)
            cut.write_bytes(contents)
            binding = loaded.bind()
            close = np.allclose(binding.run({"i": at})["y"], expected[name], rtol=1e-4, atol=1e-4)
            check(f"{what}, whole again", close)
            os.truncate(cut, 0)
            close = np.allclose(binding.run({"i": at})["y"], expected[name], rtol=1e-4, atol=1e-4)
            check(f"{what}, cut after running", close)
            binding.free()
            loaded.free()
            cut.write_bytes(contents)
            loaded = library.load(path, copy=True)
            os.truncate(cut, 0)
            close = np.allclose(loaded.run({"i": at})["y"], expected[name], rtol=1e-4, atol=1e-4)
            check(f"{what}, copied and cut", close)
            loaded.free()


def check_unused(library):
    """An output that is not built, and that nobody asks for, is no obstacle."""
    loaded = library.load(model(node("Dropout", "x", "d mask"), node("Exp", "d", "y"),
                                opset=7).SerializeToString())
    x = np.ones((2, 4), np.float32)
    check("an unused output", np.allclose(loaded.run({"x": x})["y"], np.exp(x)))
    loaded.free()


def main(build):
    library = Library(build)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_refusals(library, folder)
        check_nesting(library)
        check_unused(library)
        check_command(Path(build).resolve(), folder)
        check_damage(library)
        check_sparse(library)
        check_binding(library)
        check_network(library, folder)
        check_cut(library, folder)
    check("tn_close", library.close() == 0)
    return check.end(401)


sys.exit(main(sys.argv[1]))
