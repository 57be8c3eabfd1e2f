"""Test cases of ONNX control flow, Scan and Loop: {name: cases(version, rng)}."""

import numpy as np
from onnx import TensorProto, helper

from cases import In, const, one, stated

F32, I64 = np.dtype("f4"), np.dtype("i8")
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(nodes, inputs, outputs, weights=()):
    """Makes a body of nodes (operator, "inputs", "outputs", {attributes}) and ports (name, type,
    shape)."""
    return helper.make_graph(
        [helper.make_node(op, ins.split(), outs.split(), **attributes)
         for op, ins, outs, attributes in nodes],
        "body", [helper.make_tensor_value_info(*p) for p in inputs],
        [helper.make_tensor_value_info(*p) for p in outputs], list(weights))


def with_outputs(case, *names):
    (op, ins, _, attributes), = case.nodes
    case.nodes, case.outputs = [(op, ins, list(names), attributes)], list(names)
    return case


def some(rng, *shape):
    return rng.standard_normal(shape).astype(F32)


# ---- Scan ----

SUMS = body([("Add", "s x", "t", {}), ("Mul", "t x", "y", {}), ("Identity", "t", "z", {})],
            [("s", FLOAT, [3]), ("x", FLOAT, [3])],
            [("t", FLOAT, [3]), ("y", FLOAT, [3]), ("z", FLOAT, [3])])
NO_STATE = body([("Sub", "x w", "y", {})], [("x", FLOAT, [2]), ("w", FLOAT, [2])],
                [("y", FLOAT, [2])])
TWO = body([("Add", "a b", "c", {}), ("Identity", "a", "d", {}), ("Mul", "c x", "y", {})],
           [("a", FLOAT, []), ("b", FLOAT, []), ("x", FLOAT, [2, 3])],
           [("c", FLOAT, []), ("d", FLOAT, []), ("y", FLOAT, [2, 3])])


def scan_batches(rng):
    """Version 8, whose scans have a batch, and lengths of its sequences."""
    def sums(s, x, lengths=None, **attributes):
        case = with_outputs(one("Scan", lengths, s, x, terms=9, body=SUMS, num_scan_inputs=1,
                                **attributes), "s", "y", "z")
        t = np.cumsum(x.array[:, ::-1] if "directions" in attributes else x.array, 1, F32)
        t = t + s.array[:, None]
        last, scanned = t[:, -1], x.array[:, ::-1] if "directions" in attributes else x.array
        if lengths is not None:   # outputs behind the ends are not defined
            last = np.stack([t[i, n - 1] if n else s.array[i] for i, n in enumerate(lengths)])
            case.outputs = ["s"]
        case.expected = {"s": last, "y": t * scanned, "z": t}
        return case
    def given(*shape):
        return In(some(rng, *shape))
    yield sums(given(2, 3), given(2, 5, 3))
    yield sums(given(4, 3), given(4, 6, 3), np.array([6, 0, 1, 4]))
    yield sums(given(1, 3), given(1, 4, 3), directions=[1])
    x, w = some(rng, 3, 5, 2), some(rng, 3, 5, 2)
    yield stated(with_outputs(one("Scan", None, x, w, body=NO_STATE, num_scan_inputs=2,
                                  directions=[0, 1]), "y"), x - w[:, ::-1])


def scan(version, rng):
    if version == 8:
        yield from scan_batches(rng)
        return
    def sums(x, more=(), **attributes):
        return with_outputs(one("Scan", some(rng, 3), x, terms=9, body=SUMS, num_scan_inputs=1,
                                more=more, **attributes), "s", "y", "z")
    yield sums(some(rng, 5, 3))
    yield sums(In(some(rng, 4, 3), ["n", 3]), more=[{"x1": some(rng, 9, 3)}])
    yield sums(some(rng, 1, 3), scan_input_directions=[1])
    yield sums(some(rng, 5, 3), scan_input_directions=[1], scan_output_directions=[1, 0])
    yield sums(some(rng, 3, 6), scan_input_axes=[1], scan_output_axes=[1, 0])
    yield with_outputs(one("Scan", some(rng, 2, 4), some(rng, 4, 2), body=NO_STATE,
                           num_scan_inputs=2, scan_input_axes=[1, 0], label="of two"), "y")
    last = -1 if version >= 11 else 2
    yield with_outputs(one("Scan", np.float32(1), np.float32(2), some(rng, 2, 3, 4), body=TWO,
                           num_scan_inputs=1, terms=20, scan_input_axes=[last],
                           scan_output_axes=[1], label="of two states"), "a", "b", "y")


# ---- Loop ----

def looped(nodes, states, outputs, weights=()):
    """Makes a body whose condition is constant, or the output `goes` of its nodes."""
    ends = any("goes" in outs.split() for _, _, outs, _ in nodes)
    nodes = nodes + ([] if ends else [("Identity", "on", "goes", {})])
    return body(nodes, [("i", INT64, []), ("on", BOOL, []), *states],
                [("goes", BOOL, []), *outputs], weights)


POWERS = looped([("Cast", "i", "f", {"to": FLOAT}), ("Add", "s f", "t", {}), ("Mul", "t t", "y", {})],
                [("s", FLOAT, [2])], [("t", FLOAT, [2]), ("y", FLOAT, [2])])
ENTRIES = looped([("Identity", "i", "y", {})], [], [("y", INT64, [])])
LIMIT = helper.make_tensor("limit", FLOAT, [], [20.0])
UNTIL = looped([("Add", "s s", "t", {}), ("ReduceMax", "t", "m", {"keepdims": 0}),
                ("Less", "m limit", "goes", {})],
               [("s", FLOAT, [3])], [("t", FLOAT, [3])], [LIMIT])


ROWS_UNTIL = looped([("Add", "s s", "t", {}), ("ReduceMax", "t", "m", {"keepdims": 0}),
                     ("Less", "m limit", "goes", {}), ("Mul", "t s", "y", {})],
                    [("s", FLOAT, [3])], [("t", FLOAT, [3]), ("y", FLOAT, [3])], [LIMIT])


COPIES = looped([("Identity", "s", "t", {}), ("Identity", "i", "y", {})], [("s", FLOAT, [2])],
                [("t", FLOAT, [2]), ("y", INT64, [])])


# The inner body reads the outer one's state and index, and slices by its own index.
INNER = looped([("Mul", "u s", "v", {}), ("Gather", "s j", "e", {"axis": 0}),
                ("Cast", "i", "g", {"to": FLOAT}), ("Add", "v g", "w", {}), ("Add", "w e", "r", {})],
               [("u", FLOAT, [2])], [("w", FLOAT, [2]), ("r", FLOAT, [2])])
INNER.input[0].name, INNER.node[0].input[1] = "j", "s"
THREE = helper.make_tensor("two", INT64, [], [2])
NESTED = looped([("Loop", "two on s", "t y", {"body": INNER})], [("s", FLOAT, [2])],
                [("t", FLOAT, [2]), ("y", FLOAT, [2, 2])], [THREE])


def loop(version, rng):
    yes, no = const(True, bool), const(False, bool)
    yield with_outputs(one("Loop", const(3), yes, some(rng, 2), body=COPIES), "s", "y")
    if version == 1:
        return  # the operators of other bodies are newer
    yield with_outputs(one("Loop", const(5), None, some(rng, 2), body=POWERS, terms=30), "s", "y")
    yield with_outputs(one("Loop", const([3]), yes, some(rng, 2), body=POWERS, terms=30), "s", "y")
    yield with_outputs(one("Loop", const(4), None, body=ENTRIES), "y")
    yield with_outputs(one("Loop", const(3), None, some(rng, 2), body=NESTED, terms=30,
                           label="in a loop"), "s", "y")
    yield with_outputs(one("Loop", const(9), no, some(rng, 2), body=POWERS), "s", "y")
    start = np.array([0.5, 1, 0.25], F32)
    for steps in (2, 100):
        yield with_outputs(one("Loop", const(steps), yes, In(start), body=UNTIL), "s")
        yield with_outputs(one("Loop", const(steps), yes, In(start), body=ROWS_UNTIL), "s", "y")
    for on in (True, False):
        yield with_outputs(one("Loop", const(7), np.array(on), In(start), body=UNTIL), "s")
        yield with_outputs(one("Loop", const(7), np.array(on), In(start), body=ROWS_UNTIL), "s", "y")
    yield with_outputs(one("Loop", None, yes, In(start), body=UNTIL), "s")


# ---- If ----

def branch(*shape):
    """Makes a branch whose result has a shape of its own; other shapes have other values."""
    values = helper.make_tensor("w", FLOAT, shape, np.arange(np.prod(shape), dtype=F32) + len(shape))
    return body([("Identity", "w", "y", {})], [], [("y", FLOAT, list(shape))], [values])


def branches(version, rng):
    for on in (True, False):
        for condition in (const(on, bool), const([on], bool), np.array(on)):
            yield one("If", condition, then_branch=branch(3), else_branch=branch(2, 2))


OPERATORS = {"Scan": scan, "Loop": loop, "If": branches}
