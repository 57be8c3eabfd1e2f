#!/usr/bin/env python3
"""Tests loops whose steps change shapes or compute sizes, which the host runs step by step. Results,
compiled and interpreted, are those of ONNX Runtime at three sets of inputs.

    test_host_loops.py BUILD
"""

import sys
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
from tenon import Library, Refused

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
ONWARD = node("Identity", ["on"], ["goes"])
RNG = np.random.default_rng(7)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def constant(name, numbers, dtype=np.int64):
    return node("Constant", [], [name], value=numpy_helper.from_array(np.array(numbers, dtype)))


def ports(described):
    return [helper.make_tensor_value_info(*p) for p in described]


def body(nodes, states, outputs):
    return helper.make_graph(nodes, "body", ports([("i", I64, []), ("on", BOOL, []), *states]),
                             ports([("goes", BOOL, []), *outputs]))


def loop(inputs, outputs, *described):
    return node("Loop", inputs, outputs, body=body(*described), name="the loop")


def model(nodes, inputs, outputs, checked=True, **weights):
    held = [numpy_helper.from_array(np.asarray(x), name) for name, x in
            {"yes": np.array(True), "one": np.ones(1, np.float32), **weights}.items()]
    graph = helper.make_graph(nodes, "graph", ports(inputs), ports(outputs), held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    if checked:
        onnx.checker.check_model(made)
    return made.SerializeToString()


N, X, Y = ["n"], ("x", F32, ["n"]), ("y", F32, ["m"])
COUNT = ("k", I64, [])


def decoder():
    """Ids grow by the best one until the first sequence's is the end, or after 12 steps."""
    words, width, end = 17, 8, 3
    steps = [node("Gather", ["words", "ids"], ["e"], axis=0),
             node("ReduceMean", ["e", "first"], ["h"], keepdims=0),
             node("MatMul", ["h", "out"], ["scores"]),
             node("ArgMax", ["scores"], ["next"], axis=1, keepdims=1),
             node("Concat", ["ids", "next"], ["more"], axis=1),
             node("ReduceMin", ["next"], ["least"], keepdims=0),
             node("Equal", ["least", "end"], ["ends"]), node("Not", ["ends"], ["goes"])]
    return model([loop(["twelve", "yes", "prompt"], ["all", "y"], steps, [("ids", I64, ["b", "t"])],
                       [("more", I64, ["b", "u"]), ("scores", F32, ["b", words])])],
                 [("prompt", I64, ["b", "t"])], [("all", I64, ["b", "u"]), ("y", F32, ["s", "b", words])],
                 words=some(words, width), out=some(width, words), twelve=np.array(12),
                 end=np.array(end), first=np.array([1]))


def cache():
    """Attention to a cache, which each step appends to, from one of no rows."""
    steps = [constant("row", [1]), node("Unsqueeze", ["h", "row"], ["q"]),
             node("Concat", ["c", "q"], ["d"], axis=1), node("MatMul", ["q", "w"], ["v"]),
             node("Transpose", ["d"], ["t"], perm=[0, 2, 1]), node("MatMul", ["v", "t"], ["a"]),
             node("Softmax", ["a"], ["p"], axis=-1), node("MatMul", ["p", "d"], ["o"]),
             node("Squeeze", ["o", "row"], ["r"]), node("Tanh", ["r"], ["g"]), ONWARD]
    return model([loop(["k", "yes", "cache", "x"], ["kept", "y"], steps,
                       [("c", F32, ["b", "t", 8]), ("h", F32, ["b", 8])],
                       [("d", F32, ["b", "u", 8]), ("g", F32, ["b", 8])])],
                 [("x", F32, ["b", 8]), COUNT, ("cache", F32, ["b", "t", 8])],
                 [("kept", F32, ["b", "u", 8]), ("y", F32, ["b", 8])], w=some(8, 8))


def counting():
    """Each step counts the elements above 0 by the places where they are."""
    steps = [constant("zero", 0, np.float32), node("Greater", ["s", "zero"], ["above"]),
             node("NonZero", ["above"], ["at"]), node("Shape", ["at"], ["shape"]),
             constant("last", 1), node("Gather", ["shape", "last"], ["count"]),
             node("Cast", ["count"], ["f"], to=F32), constant("tenth", 0.1, np.float32),
             node("Mul", ["f", "tenth"], ["d"]), node("Sub", ["s", "d"], ["t"]), ONWARD]
    return model([loop(["six", "yes", "x"], ["y", "counts"], steps, [("s", F32, N)],
                       [("t", F32, N), ("count", I64, [])])],
                 [X], [Y, ("counts", I64, ["six"])], six=np.array(6))


def without_count(count="", **weights):
    steps = [node("Add", ["s", "s"], ["t"]), node("Abs", ["t"], ["a"]),
             node("ReduceMax", ["a"], ["top"], keepdims=0), constant("limit", 100, np.float32),
             node("Less", ["top", "limit"], ["goes"])]
    return model([loop([count, "yes", "x"], ["y", "rows"], steps, [("s", F32, N)],
                       [("t", F32, N), ("s", F32, N)])], [X], [Y, ("rows", F32, ["k", "n"])], **weights)


def nested(*inner):
    """An inner loop of as many steps as the outer one took before."""
    inside = helper.make_graph([*inner, node("Identity", ["on2"], ["goes2"])], "inside",
                               ports([("j", I64, []), ("on2", BOOL, []), ("u", F32, N)]),
                               ports([("goes2", BOOL, []), ("v", F32, ["m"])]))
    return model([loop(["k", "yes", "x"], ["y"],
                       [node("Loop", ["i", "", "s"], ["t"], body=inside, name="inner"), ONWARD],
                       [("s", F32, N)], [("t", F32, ["m"])])], [X, COUNT], [Y])


def deep():
    """Nine loops in each other, one more than a plan has."""
    inner = [node("Add", ["s8", "x"], ["t8"])]
    for i in reversed(range(9)):
        last = [("s%d" % i, F32, N)]
        inside = helper.make_graph(
            [*inner, node("Identity", ["on%d" % i], ["goes%d" % i])], "body%d" % i,
            ports([("i%d" % i, I64, []), ("on%d" % i, BOOL, []), *last]),
            ports([("goes%d" % i, BOOL, []), ("t%d" % i, F32, N)]))
        inner = [node("Loop", ["k" if i % 4 == 0 else "once", "", "s%d" % (i - 1) if i else "x"],
                      ["t%d" % (i - 1) if i else "y"], body=inside, name="loop %d" % i)]
    return model(inner, [X, COUNT], [Y], once=np.array(1))


def branches():
    steps = [constant("two", 2), node("Mod", ["i", "two"], ["p"]), node("Cast", ["p"], ["odd"], to=BOOL),
             node("If", ["odd"], ["t"], then_branch=branch(node("Concat", ["s", "x"], ["r"], axis=0)),
                  else_branch=branch(node("Neg", ["s"], ["r"]))), ONWARD]
    return model([loop(["five", "yes", "x"], ["y"], steps, [("s", F32, N)], [("t", F32, ["m"])])],
                 [X], [Y], five=np.array(5))


def doubling():
    """No step, or one whose condition is false at first: the initial state, and no entries."""
    return model([loop(["k", "go", "x"], ["y", "e"],
                       [node("Concat", ["s", "s"], ["t"], axis=0), node("Neg", ["x"], ["d"]), ONWARD],
                       [("s", F32, N)], [("t", F32, ["m"]), ("d", F32, N)])],
                 [X, COUNT, ("go", BOOL, [])], [Y, ("e", F32, ["k", "n"])])


def slices():
    steps = [constant("axis", [0]), node("Unsqueeze", ["i", "axis"], ["end"]),
             node("Slice", ["s", "axis", "end"], ["part"]), node("ReduceSum", ["part"], ["sum"], keepdims=0),
             node("Add", ["s", "sum"], ["t"]), ONWARD]
    return model([loop(["four", "yes", "x"], ["y"], steps, [("s", F32, N)], [("t", F32, N)])], [X], [Y],
                 four=np.array(4))


def alike():
    """Two states that grow alike, and are added."""
    steps = [node("Concat", ["s", "one"], ["t"], axis=0), node("Concat", ["r", "one"], ["q"], axis=0),
             node("Add", ["t", "q"], ["p"]), ONWARD]
    return model([loop(["four", "yes", "x", "x"], ["a", "y"], steps, [("s", F32, N), ("r", F32, N)],
                       [("t", F32, ["m"]), ("p", F32, ["m"])])], [X], [("a", F32, ["m"]), Y],
                 four=np.array(4))


def apart():
    """States of one size, of which each step shows some to grow otherwise: the body is imported again
    for each."""
    steps = [node("Concat", ["a", "b"], ["c"], axis=0), node("Identity", ["a"], ["d"]), ONWARD]
    return model([loop(["k", "yes", "x", "z"], ["p", "y"], steps, [("a", F32, N), ("b", F32, N)],
                       [("d", F32, N), ("c", F32, ["m"])])],
                 [("x", F32, [2]), ("z", F32, [2]), COUNT], [("p", F32, N), Y])


def shrinking():
    """States that are empty after a first step: sizes that are computed are known then."""
    steps = [constant("axis", [0]), node("Unsqueeze", ["i", "axis"], ["end"]),
             node("Slice", ["s", "axis", "end"], ["part"]), node("Neg", ["part"], ["t"]), ONWARD]
    return model([loop(["k", "yes", "x"], ["y"], steps, [("s", F32, N)], [("t", F32, ["m"])])],
                 [X, COUNT], [Y])


def chosen():
    """Elements of x at positive places, of an axis that may be empty."""
    return model([node("Greater", ["x", "zero"], ["above"]), node("NonZero", ["above"], ["at"]),
                  node("Shape", ["at"], ["shape"]), node("Slice", ["shape", "one_", "two"], ["count"]),
                  node("Slice", ["x", "start", "count"], ["part"]), node("Neg", ["part"], ["y"])],
                 [X], [Y], zero=np.float32(0), one_=np.array([1]), two=np.array([2]), start=np.array([0]))


def scan():
    inside = helper.make_graph(
        [constant("zero", 0, np.float32), node("Greater", ["e", "zero"], ["above"]),
         node("Compress", ["e", "above"], ["part"]), node("ReduceSum", ["part"], ["sum"], keepdims=0),
         node("Add", ["s", "sum"], ["t"]), node("Mul", ["e", "t"], ["z"])],
        "inside", ports([("s", F32, []), ("e", F32, N)]), ports([("t", F32, []), ("z", F32, N)]))
    return model([node("Scan", ["s0", "x"], ["last", "y"], body=inside, num_scan_inputs=1, name="the scan",
                       scan_input_directions=[1], scan_output_directions=[1], scan_output_axes=[1])],
                 [("s0", F32, []), ("x", F32, ["k", "n"])],
                 [("last", F32, []), ("y", F32, ["n", "k"])])


def repeated(state, *steps, more=(), **weights):
    """k steps that make t of a state s, of any shape."""
    return model([*more, loop(["k", "yes", state], ["y"], [*steps, ONWARD], [("s", F32, None)], [("t", F32, None)])],
                 [X, COUNT], [("y", F32, None)], checked=False, **weights)


def halves():
    """Each step adds the halves of what is left: sizes that fit no open ones."""
    return repeated("x", node("Split", ["s"], ["a", "b"], axis=0, num_outputs=2), node("Add", ["a", "b"], ["t"]))


def parts_of(number, declared=F32, more=()):
    """Adds halves of rows, of which there is a number, and gives the sum of each step."""
    return model([loop(["k", "yes", "x"], ["y", "e"],
                       [constant("rows", [number, -1]), constant("flat", [-1]), node("Reshape", ["s", "rows"], ["a"]),
                        node("Split", ["a"], ["p", "q"], axis=1, num_outputs=2), node("Add", ["p", "q"], ["r"]),
                        node("Reshape", ["r", "flat"], ["t"]), node("ReduceSum", ["t"], ["e"], keepdims=0), *(more or [ONWARD])],
                       [("s", F32, N)], [("t", F32, ["m"]), ("e", declared, [])])],
                 [X, COUNT], [("y", F32, None), ("e", declared, None)], checked=False)


def swapped():
    """Halves whose order each step changes: only the size of the input decides."""
    return repeated("x", node("Split", ["s", "parts"], ["a", "b"], axis=0), node("Concat", ["b", "a", "one"], ["c"], axis=0),
                    constant("zero", [0]), constant("end", [-1]), node("Slice", ["c", "zero", "end"], ["t"]),
                    more=[node("Shape", ["x"], ["n"]), constant("two", [2]), node("Div", ["n", "two"], ["half"]),
                          node("Concat", ["half", "half"], ["parts"], axis=0)])


def broadcast():
    """A state of one element is as large as x after a step."""
    return repeated("one", node("Add", ["s", "x"], ["t"]))


def ranks():
    """A scalar that is a vector after a step, which grows then."""
    return repeated("zero", constant("axis", [-1]), node("Reshape", ["s", "axis"], ["v"]), node("Concat", ["v", "x"], ["t"], axis=0),
                    zero=np.float32(0))


def ranks_up(trips):
    """Each step adds an axis."""
    return model([loop([trips, "yes", "x"], ["y"], [constant("axis", [0]), node("Unsqueeze", ["s", "axis"], ["t"]), ONWARD],
                       [("s", F32, None)], [("t", F32, None)])], [X, COUNT], [("y", F32, None)], checked=False,
                 three=np.array(3))


def ranks_of_entries():
    """A state whose rank changes, and entries whose rank does not."""
    steps = [constant("axis", [-1]), node("Reshape", ["s", "axis"], ["v"]), node("Concat", ["v", "x"], ["t"], axis=0),
             node("ReduceSum", ["t"], ["e"], keepdims=0), node("Size", ["s"], ["n"])]
    return model([loop(["k", "yes", "zero"], ["y", "e", "n"], [*steps, ONWARD], [("s", F32, None)],
                       [("t", F32, None), ("e", F32, []), ("n", I64, [])])],
                 [X, COUNT], [("y", F32, None), ("e", F32, ["k"]), ("n", I64, ["k"])], checked=False, zero=np.float32(0))


def inside(*nodes):
    """An inner loop of two steps in a body: v of u."""
    inner = helper.make_graph([*nodes, node("Identity", ["on2"], ["goes2"])], "inside",
                              ports([("j", I64, []), ("on2", BOOL, []), ("u", F32, None)]),
                              ports([("goes2", BOOL, []), ("v", F32, None)]))
    return node("Loop", ["two", "", "s"], ["t"], body=inner, name="inner")


def halves_inside():
    return repeated("x", inside(node("Split", ["u"], ["a", "b"], axis=0, num_outputs=2), node("Add", ["a", "b"], ["v"])),
                    two=np.array(2))


def ranks_inside():
    """An inner loop of a body whose state gets a rank in its first step; the outer state then too."""
    return repeated("zero", inside(constant("axis", [-1]), node("Reshape", ["u", "axis"], ["r"]),
                                   node("Concat", ["r", "x"], ["v"], axis=0)), two=np.array(2), zero=np.float32(0))


def scan_of_halves():
    """Entries whose halves steps add to a state: two sizes that fit for those of a run."""
    steps = [node("Split", ["e"], ["a", "b"], axis=0, num_outputs=2), node("Add", ["a", "b"], ["c"]),
             node("Add", ["s", "c"], ["t"]), node("Neg", ["e"], ["z"])]
    inside = helper.make_graph(steps, "inside", ports([("s", F32, None), ("e", F32, N)]),
                               ports([("t", F32, None), ("z", F32, N)]))
    return model([node("Scan", ["s0", "x"], ["last", "y"], body=inside, num_scan_inputs=1, name="the scan",
                       scan_output_directions=[1])],
                 [("s0", F32, ["h"]), ("x", F32, ["k", "n"])], [("last", F32, None), ("y", F32, ["k", "n"])],
                 checked=False)


def until():
    """A scalar becomes a vector, which grows until it has 8 elements; there is no trip count."""
    steps = [constant("axis", [-1]), node("Reshape", ["s", "axis"], ["v"]), node("Concat", ["v", "x"], ["t"], axis=0),
             node("Size", ["t"], ["n"]), constant("most", 8), node("Less", ["n", "most"], ["goes"])]
    return model([loop(["", "yes", "zero"], ["y"], steps, [("s", F32, None)], [("t", F32, None)])], [X],
                 [("y", F32, None)], checked=False, zero=np.float32(0))


def branch(*nodes):
    return helper.make_graph(list(nodes), "branch", [], [helper.make_empty_tensor_value_info("r")])


def branches_of_sizes():
    """Halves as long as there are some."""
    halve = branch(node("Split", ["s"], ["a", "b"], axis=0, num_outputs=2), node("Add", ["a", "b"], ["r"]))
    return repeated("x", node("Size", ["s"], ["n"]), constant("least", 1), node("Greater", ["n", "least"], ["some"]),
                    node("If", ["some"], ["t"], then_branch=halve, else_branch=branch(node("Neg", ["s"], ["r"]))))


def read_in_branches():
    """One result of a loop is read in branches alone, and nothing reads the other."""
    steps = [node("Concat", ["s", "x"], ["t"], axis=0), node("Neg", ["x"], ["d"]), ONWARD]
    branches = {name: branch(node(op, ["grown"], ["r"])) for name, op in
                (("then_branch", "Neg"), ("else_branch", "Abs"))}
    return model([loop(["k", "yes", "x"], ["grown", "rows"], steps, [("s", F32, N)],
                       [("t", F32, ["m"]), ("d", F32, N)]),
                  node("Size", ["x"], ["n"]), constant("most", 4), node("Less", ["n", "most"], ["some"]),
                  node("If", ["some"], ["y"], **branches)], [X, COUNT], [("y", F32, None)], checked=False)


def nothing_in_branches():
    """The loop's results are read in a branch alone, of which nothing remains, as it is of size 0."""
    inner = branch(constant("end", [-1]), constant("first", [0]), node("Slice", ["sums", "end", "end", "first"], ["none"]),
                   node("Shape", ["none"], ["m"]), node("TopK", ["none", "m"], ["v", "at"], axis=0),
                   node("Cast", ["at"], ["r"], to=F32))
    outer = branch(loop(["k", "yes", "x"], ["grown", "sums"],
                        [node("Concat", ["s", "x"], ["t"], axis=0), node("ReduceSum", ["s"], ["e"], keepdims=0), ONWARD],
                        [("s", F32, N)], [("t", F32, ["m"]), ("e", F32, [])]),
                   node("ReduceMax", ["x"], ["high"], keepdims=0), node("Greater", ["high", "one"], ["is_high"]),
                   node("If", ["is_high"], ["r"], then_branch=inner, else_branch=branch(node("Neg", ["x"], ["r"]))))
    return model([node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "one"], ["is_some"]),
                  node("If", ["is_some"], ["y"], then_branch=outer, else_branch=branch(node("Abs", ["x"], ["r"])))],
                 [X, COUNT], [("y", F32, None)], checked=False)


def shrinks_and_grows():
    steps = [node("Split", ["s"], ["a", "b"], axis=0, num_outputs=2), node("Add", ["a", "b"], ["t"]),
             node("Concat", ["r", "a"], ["q"], axis=0), ONWARD]
    return model([loop(["k", "yes", "x", "x"], ["y", "all"], steps, [("s", F32, N), ("r", F32, N)],
                       [("t", F32, ["m"]), ("q", F32, ["l"])])], [X, COUNT], [Y, ("all", F32, ["l"])])


def unrolled():
    """A loop in one that is unrolled, as its state is a sequence."""
    inner = helper.make_graph([node("Concat", ["u", "x"], ["v"], axis=0), node("Identity", ["on2"], ["goes2"])], "inside",
                              ports([("j", I64, []), ("on2", BOOL, []), ("u", F32, None)]),
                              ports([("goes2", BOOL, []), ("v", F32, None)]))
    listed = helper.make_tensor_sequence_value_info
    steps = helper.make_graph(
        [node("Loop", ["k", "", "x"], ["g"], body=inner, name="inner"), node("SequenceInsert", ["q", "g"], ["p"]), ONWARD],
        "body", [*ports([("i", I64, []), ("on", BOOL, [])]), listed("q", F32, None)],
        [*ports([("goes", BOOL, [])]), listed("p", F32, None)])
    return model([node("SequenceEmpty", [], ["none"]), node("Loop", ["two", "", "none"], ["all"], body=steps, name="outer"),
                  node("ConcatFromSequence", ["all"], ["y"], axis=0)], [X, COUNT], [Y], two=np.array(2))


def in_branch():
    """A loop in a branch that the sum of x takes."""
    then = helper.make_graph([loop(["k", "yes", "x"], ["r"], [node("Concat", ["s", "x"], ["t"], axis=0), ONWARD],
                                   [("s", F32, N)], [("t", F32, ["m"])])], "then", [],
                             [helper.make_empty_tensor_value_info("r")])
    other = helper.make_graph([node("Neg", ["x"], ["r"])], "else", [], [helper.make_empty_tensor_value_info("r")])
    return model([node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["above"]),
                  node("If", ["above"], ["y"], then_branch=then, else_branch=other)], [X, COUNT], [Y], zero=np.float32(0))


def of_sequence():
    """A body that reads a sequence of the graph around, and an optional value that is absent."""
    none = helper.make_tensor_type_proto(F32, ["n"])
    return repeated("x", constant("two", 2), node("Mod", ["i", "two"], ["at"]), constant("first", 0),
                    node("SequenceAt", ["all", "first"], ["e"]), node("Concat", ["s", "e"], ["c"], axis=0),
                    node("OptionalHasElement", ["none"], ["has"]),
                    node("If", ["has"], ["t"], then_branch=branch(node("OptionalGetElement", ["none"], ["r"])),
                         else_branch=branch(node("Neg", ["c"], ["r"]))),
                    more=[node("Neg", ["x"], ["z"]), node("SequenceConstruct", ["z", "x"], ["all"]),
                          node("Optional", [], ["none"], type=none)])


def of_function(name, inputs):
    """A function whose body of a loop refers to its attribute, and reads an input that the call may leave
    out."""
    clip = node("Clip", ["c", "low"], ["t"])
    grow = refer(node("Concat", ["s", "x"], ["c"]), "axis", "along", onnx.AttributeProto.INT)
    leak = refer(node("LeakyRelu", ["t"], ["u"]), "alpha", "slope", onnx.AttributeProto.FLOAT)
    opset = [helper.make_opsetid("", 18)]
    grown = helper.make_function("own", "Grown", ["x", "k", "low"], ["y"],
                                 [loop(["k", "", "x"], ["y"], [grow, clip, leak, ONWARD], [("s", F32, N)],
                                       [("u", F32, ["m"])])], opset, ["along"],
                                 [helper.make_attribute("slope", 0.5)])
    graph = helper.make_graph([node("Grown", inputs, ["y"], domain="own", along=0, name=name)], "graph", ports([X, COUNT]),
                              ports([Y]), [numpy_helper.from_array(np.float32(-0.25), "least")])
    made = helper.make_model(graph, opset_imports=[*opset, helper.make_opsetid("own", 1)], ir_version=8, functions=[grown])
    onnx.checker.check_model(made)
    return made.SerializeToString()


def refer(made, name, of, kind):
    """A node whose attribute is that of the function."""
    made.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=of, type=kind))
    return made


def of_functions():
    """A loop in a function in a loop in a function, in a branch of which a node refers to an attribute."""
    real, opset = onnx.AttributeProto.FLOAT, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    steps = [node("Concat", ["s", "x"], ["c"], axis=0), constant("zero", 0), node("Equal", ["i", "zero"], ["first"]),
             node("If", ["first"], ["t"], then_branch=branch(refer(node("LeakyRelu", ["c"], ["r"]), "alpha", "slope", real)),
                  else_branch=branch(node("Neg", ["c"], ["r"]))), ONWARD]
    grown = [("s", F32, N)], [("t", F32, ["m"])]
    inner = helper.make_function("own", "Inner", ["x", "k"], ["y"], [loop(["k", "", "x"], ["y"], steps, *grown)], opset,
                                 ["slope"])
    call = refer(node("Inner", ["s", "two"], ["t"], domain="own"), "slope", "angle", real)
    outer = helper.make_function("own", "Outer", ["x", "k", "two"], ["y"],
                                 [loop(["k", "", "x"], ["y"], [call, ONWARD], *grown)], opset, ["angle"])
    graph = helper.make_graph([node("Outer", ["x", "k", "two"], ["y"], domain="own", angle=0.25)], "graph",
                              ports([X, COUNT]), ports([Y]), [numpy_helper.from_array(np.array(2), "two")])
    return helper.make_model(graph, opset_imports=opset, ir_version=8, functions=[inner, outer]).SerializeToString()


def vectors(*sizes, **more):
    return [{"x": some(n), **{name: np.array(x[i]) for name, x in more.items()}}
            for i, n in enumerate(sizes)]


ADDED = node("Add", ["u", "x"], ["v"])
JOINED = node("Concat", ["u", "x"], ["v"], axis=0)
CASES = {
    "a decoder": (decoder(), [{"prompt": RNG.integers(0, 17, s)} for s in ((1, 3), (2, 5), (4, 1))]),
    "a cache": (cache(), [{"x": some(2, 8), "k": np.array(5), "cache": some(2, 0, 8)},
                          {"x": some(1, 8), "k": np.array(9), "cache": some(1, 3, 8)},
                          {"x": some(3, 8), "k": np.array(1), "cache": some(3, 1, 8)}]),
    "NonZero in steps": (counting(), vectors(5, 9, 1)),
    "entries of any number of steps": (without_count(), vectors(5, 9, 1)),
    "entries of the greatest number of steps": (without_count("most", most=np.array(2**63 - 1)),
                                                vectors(2, 3, 5)),
    "inner steps that change": (nested(ADDED), vectors(5, 9, 1, k=[4, 0, 7])),
    "growth in steps of growth": (nested(JOINED), vectors(2, 3, 1, k=[4, 0, 5])),
    "branches of different shapes": (branches(), vectors(5, 2, 1)),
    "no steps": (doubling(), vectors(5, 2, 1, k=[3, 1, 0], go=[False, True, True])),
    "a Slice by the step's number": (slices(), vectors(5, 6, 4)),
    "two states that grow alike": (alike(), vectors(2, 1, 6)),
    "states that change otherwise": (apart(), [{"x": some(2), "z": some(2), "k": np.array(k)}
                                               for k in (3, 1, 0)]),
    "states that are empty": (shrinking(), vectors(5, 3, 4, k=[3, 2, 0])),
    "no loop, and sizes that empty arrays have": (chosen(), vectors(3, 0, 5)),
    "nine loops": (deep(), vectors(3, 1, 4, k=[2, 1, 2])),
    "halves": (halves(), vectors(8, 24, 4, k=[3, 2, 0])),
    "halves of five rows": (parts_of(5), vectors(20, 40, 10, k=[2, 3, 1])),
    "halves of eleven rows": (parts_of(11), vectors(44, 88, 22, k=[2, 3, 1])),
    "swapped halves": (swapped(), vectors(8, 24, 4, k=[3, 2, 0])),
    "a state that broadcasts": (broadcast(), vectors(5, 3, 1, k=[4, 1, 2])),
    "a state that broadcasts to none": (broadcast(), vectors(0, 3, 5, k=[2, 0, 3])),
    "a scalar that becomes a vector": (ranks(), vectors(5, 3, 1, k=[4, 1, 2])),
    "an axis more in each step": (ranks_up("three"), vectors(5, 3, 1, k=[0, 0, 0])),
    "an axis more in each of k steps": (ranks_up("k"), vectors(5, 3, 1, k=[2, 0, 4])),
    "entries of a state that changes its rank": (ranks_of_entries(), vectors(5, 3, 1, k=[4, 1, 2])),
    "halves in an inner loop": (halves_inside(), vectors(16, 64, 4, k=[2, 3, 0])),
    "a rank that an inner loop gives": (ranks_inside(), vectors(5, 3, 1, k=[3, 1, 2])),
    "a loop in a branch": (in_branch(), [{"x": np.abs(some(3)), "k": np.array(3)}, {"x": -np.abs(some(4)), "k": np.array(1)},
                                         {"x": np.abs(some(2)), "k": np.array(0)}]),
    "a sequence that steps read": (of_sequence(), vectors(5, 3, 1, k=[3, 1, 2])),
    "a function with an absent input": (of_function("f", ["x", "k"]), vectors(5, 3, 1, k=[3, 1, 2])),
    "a function with all inputs": (of_function("f", ["x", "k", "least"]), vectors(5, 3, 1, k=[3, 1, 2])),
    "functions in loops": (of_functions(), vectors(5, 3, 1, k=[2, 1, 0])),
    "a rank that a condition ends": (until(), vectors(3, 1, 5)),
    "branches that sizes take": (branches_of_sizes(), vectors(8, 4, 1, k=[4, 1, 2])),
    "a result that branches read": (read_in_branches(), vectors(5, 3, 1, k=[4, 1, 2])),
    "a result of which nothing remains": (nothing_in_branches(), [
        {"x": np.array(x, np.float32), "k": np.array(3)} for x in ([3, 4], [-1, 0.5, 0.25], [0.5, 0.75, 0.25])]),
    "states that shrink and grow": (shrinks_and_grows(), vectors(8, 24, 4, k=[3, 2, 0])),
    "a loop in an unrolled one": (unrolled(), vectors(5, 3, 1, k=[2, 1, 0])),
    "a Scan of halves": (scan_of_halves(), [{"s0": some(n), "x": some(k, 2 * n)}
                                             for k, n in ((3, 6), (1, 2), (5, 8))]),
    "a Scan": (scan(), [{"s0": some(), "x": some(*s)} for s in ((4, 3), (1, 7), (6, 1))]),
}


onnxruntime.set_default_logger_severity(3)


def compare(check, label, library, made, sets, interpreted):
    reference = onnxruntime.InferenceSession(made)
    names = [o.name for o in reference.get_outputs()]
    loaded = library.load(made, interpreted=interpreted)
    for i, inputs in enumerate(sets):
        got = loaded.run(inputs)
        for name, want in zip(names, reference.run(None, inputs)):
            y = got[name] if want.size else got[name].reshape(want.shape)  # sizes that ONNX leaves open
            holds = y.shape == want.shape and y.dtype == want.dtype and np.allclose(
                y, want, rtol=1e-4, atol=1e-5)
            check(f"{label}, inputs {i}, {name}{', interpreted' * interpreted}", holds,
                  f"{got[name]}, not {want}")
    loaded.free()


# Failures: (model, inputs, status, words of the message).

GROWN = node("Concat", ["s", "x"], ["t"], axis=0)
RAGGED = model([loop(["k", "yes", "x"], ["y", "e"], [GROWN, ONWARD],
                     [("s", F32, N)], [("t", F32, ["m"]), ("t", F32, ["m"])])], [X, COUNT],
               [Y, ("e", F32, ["k", "m"])])
ENDLESS = model([loop(["", "yes", "x"], ["y"], [GROWN, ONWARD], [("s", F32, N)], [("t", F32, ["m"])])],
                [X], [Y])
NEGATIVE = model([loop(["k", "yes", "x"], ["y"],
                       [constant("two", [2]), node("Sub", ["two", "i"], ["size"]),
                        node("ConstantOfShape", ["size"], ["z"]),
                        node("Concat", ["s", "z"], ["t"], axis=0), ONWARD],
                       [("s", F32, N)], [("t", F32, ["m"])])], [X, COUNT], [Y])
FAILURES = {
    "entries of different shapes": (RAGGED, {"x": some(2), "k": np.array(3)}, "ERR_SHAPE",
                                    ["the loop", "step 1", "scan output 0", "size 6", "has 4"]),
    "a step that does not fit": (NEGATIVE, {"x": some(3), "k": np.array(5)}, "ERR_SHAPE",
                                 ["the loop", "step 3", "-1"]),
    "no end": (ENDLESS, {"x": some(2)}, "ERR_UNSUPPORTED", ["the loop", "neither a trip count nor"]),
    "a rank that it has after more steps": (ranks(), {"x": some(2), "k": np.array(0)}, "ERR_SHAPE",
                                            ["the loop", "rank 0 after 0 steps", "rank 1"]),
    "an entry of another type": (parts_of(11, TensorProto.INT32), {"x": some(44), "k": np.array(2)}, "ERR_DTYPE",
                                 ["the loop", "step 0: output 2 of the body is f32, and is declared as i32"]),
    "a condition of many elements": (parts_of(11, more=[node("Equal", ["t", "t"], ["goes"])]),
                                     {"x": some(22), "k": np.array(1)}, "ERR_SHAPE",
                                     ["the loop", "the condition has 11 elements, expected 1"]),
}


def check_failure(check, label, library, made, inputs, status, words):
    try:
        library.load(made).run(inputs)
        check(label, False, "it is not refused")
    except Refused as r:
        check(label, r.status == status and all(w in r.message for w in words), f"{r.status}: {r.message}")


def check_no_entries(check, library):
    """A Scan of no entries, which ONNX Runtime refuses, has its initial states."""
    made, _ = CASES["a Scan"]
    for interpreted in (False, True):
        loaded = library.load(made, interpreted=interpreted)
        got = loaded.run({"s0": np.float32(3), "x": some(0, 4)})
        check("a Scan of no entries", got["last"] == 3 and got["y"].size == 0, got)
        loaded.free()


def check_copy(check, library):
    """A model that is copied needs no file, although runs import the body."""
    import tempfile
    for label in ("a scalar that becomes a vector", "halves", "halves in an inner loop"):
        made, sets = CASES[label]
        with tempfile.TemporaryDirectory(prefix="tenon-loops-") as folder:
            path = Path(folder) / "m.onnx"
            path.write_bytes(made)
            loaded = library.load(path, copy=True)
            path.write_bytes(b"")
        want, = onnxruntime.InferenceSession(made).run(None, sets[0])
        got = loaded.run(sets[0])["y"]
        check(f"{label}, copied", got.shape == want.shape and np.allclose(got, want, atol=1e-5), got)
        loaded.free()


def check_threads(check, library, label):
    """Runs of one model at once each have their results."""
    from threading import Thread
    made, _ = CASES[label]
    loaded, wrong = library.load(made), []
    reference = onnxruntime.InferenceSession(made)

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(seed + 1).astype(np.float32)
        inputs = {"x": x, "k": np.array(seed + 2)}
        want, = reference.run(None, inputs)
        binding = loaded.bind()
        for _ in range(10):
            got = binding.run(inputs)["y"]
            if got.shape != want.shape or not np.allclose(got, want):
                wrong.append((seed, got, want))
        binding.free()
    threads = [Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(f"{label}, runs at once", not wrong, str(wrong[:1]))
    loaded.free()


def main():
    check, library = Checks(), Library(Path(sys.argv[1]))
    for label, (made, sets) in CASES.items():
        for interpreted in (False, True):
            try:
                compare(check, label, library, made, sets, interpreted)
            except Refused as r:
                check(label, False, f"{r.status}: {r.message}")
    for label, failure in FAILURES.items():
        check_failure(check, label, library, *failure)
    check_no_entries(check, library)
    check_copy(check, library)
    check_threads(check, library, "growth in steps of growth")
    check_threads(check, library, "a scalar that becomes a vector")
    library.close()
    return check.end(290)


sys.exit(main())
