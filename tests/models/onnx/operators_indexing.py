"""Test cases of ONNX operators that reduce, scan along axes, repeat, gather and scatter: {name:
cases(version, rng)}; and of sizes that these compute."""

import itertools

import numpy as np

from cases import BF16, ONNX_TYPE, Case, In, const, one, stated
from operators import BOOL, F16, F32, F64, INTS, reduction, some, with_batch

I4, I8, I1, U1 = (np.dtype(t) for t in ("i4", "i8", "i1", "u1"))


def fewer(cases_of, keep, of_nothing=True):
    """Returns every `keep`-th case, and the last ones, which have variable sizes and, if defined,
    empty arrays."""
    def cases(version, rng):
        all_of = list(cases_of(version, rng))
        yield from all_of[:-6:keep] + all_of[-6:(None if of_nothing else -3)]
    return cases


def argument(op):
    def cases(version, rng):
        x = some(rng, (3, 4, 5), F32)
        for axis, keep in itertools.product((0, 1, 2) + ((-1, -3) if version >= 11 else ()), (0, 1)):
            yield one(op, x, axis=axis, keepdims=keep)
        for t in (F64, I4, I8, U1, I1):
            yield one(op, some(rng, (4, 6), t), axis=1)
        yield one(op, x, label="of axis 0")
        if version >= 12:
            ties = some(rng, (4, 9), I4, 0, 3)
            for last in (0, 1):
                yield one(op, ties, axis=1, select_last_index=last)
                yield one(op, ties.astype(F32), axis=0, keepdims=0, select_last_index=last)
        many = {"x0": some(rng, (5, 7), F32)}
        yield one(op, In(some(rng, (2, 3), F32), ["n", "m"]), axis=1, more=[many])
    return cases


def running(op):
    def cases(version, rng):
        for reverse, exclusive in itertools.product((0, 1), (0, 1)):
            ways = {"reverse": reverse, "exclusive": exclusive}
            for axis in (0, 1, -1):
                yield one(op, some(rng, (3, 4), F32, 1), const(axis, np.int32), **ways)
            yield one(op, with_batch(some(rng, (2, 3), F32), "n"), const(0), **ways,
                      more=[{"x0": some(rng, (7, 3), F32)}])
        for t in (F64, I4, I8):
            yield one(op, some(rng, (3, 5), t, 1, 4), const(1))
        yield one(op, some(rng, (0, 3), F32), const(0), label="of nothing")
        yield one(op, some(rng, (5,), F32), const([0]), label="its axis in a list")
    return cases


def size(version, rng):
    for s in ((), (3,), (2, 0, 4), (2, 3, 4)):
        yield one("Size", some(rng, s, F32))
    yield one("Size", with_batch(some(rng, (2, 3), F32), "n", "m"),
              more=[{"x0": some(rng, (7, 1), F32)}])


def numbers(version, rng):
    def made(start, limit, delta, t):
        return one("Range", *[const(v, t) for v in (start, limit, delta)],
                   label=f"{start} {limit} {delta}")
    for t in (I4, I8, np.dtype("i2")):
        for ends in ((0, 5, 1), (3, 9, 3), (3, 10, 3), (10, 4, -2), (10, 5, -2), (5, 5, 1),
                     (5, 0, 1), (-3, 3, 2)):
            yield made(*ends, t)
    yield made(-30000, 30000, 10000, np.dtype("i2"))
    for t in (F32, F64) + ((F16, BF16) if version >= 27 else ()):
        for ends in ((0, 5, 1), (0.5, 3, 0.75), (3, -2, -1.5), (1, 0, 1)):
            yield made(*ends, t)


def eye(version, rng):
    for s, k in itertools.product(((3, 3), (2, 5), (4, 1)), (None, 0, 1, -2, 9)):
        yield one("EyeLike", some(rng, s, F32), **({} if k is None else {"k": k}))
    for t in (I4, BOOL, F64):
        yield one("EyeLike", some(rng, (2, 3), F32), dtype=ONNX_TYPE[t])
        yield one("EyeLike", some(rng, (2, 3), t))
    yield one("EyeLike", with_batch(some(rng, (2, 3), F32), "n"), k=1,
              more=[{"x0": some(rng, (7, 3), F32)}])


def split(version, rng):
    def made(x, parts, n, axis, **attributes):
        inputs = [x]
        if parts is not None and version < 13:
            attributes["split"] = parts
        elif parts is not None:
            inputs.append(const(parts))
        elif version >= 18:
            attributes["num_outputs"] = n
        case = one("Split", *inputs, axis=axis, label=f"{parts} {n}", **attributes)
        (op, names, _, all_of), = case.nodes
        case.outputs = [f"y{i}" for i in range(n)]
        case.nodes = [(op, names, case.outputs, all_of)]
        return case
    x = some(rng, (6, 4, 5), F32)
    for axis in (0, 1) + ((-2, -3) if version >= 11 else ()):
        yield made(x, None, 2, axis)
    yield made(x, [1, 3, 2], 3, 0)
    yield made(x, [2, 3], 2, 2)
    yield made(x, [4], 1, 1)
    if version < 2:   # also as an input, of x's type
        given = one("Split", x, const([1, 3, 2], F32), axis=0)
        given.nodes = [("Split", ["x0", "x1"], ["y0", "y1", "y2"], {"axis": 0})]
        given.outputs, given.expected = ["y1"], {"y1": x[1:4]}
        yield given
    yield made(some(rng, (6, 2), I8), [6, 0], 2, 0)
    if version >= 18:
        yield made(x, None, 4, 0)
        yield made(x, None, 3, 2)
    n = with_batch(some(rng, (2, 6), F32), "n")
    n.more = [{"x0": some(rng, (5, 6), F32)}]
    yield made(n, None, 3, 1, more=n.more)


def tile(version, rng):
    if version < 6:   # which the references do not know
        x = some(rng, (2, 3), F32)
        yield stated(one("Tile", x, const(3), const(1)), np.tile(x, (1, 3)))
        yield stated(one("Tile", x, const(2), const(0)), np.tile(x, (2, 1)))
        yield stated(one("Tile", x, const(2, F32), const(1, F32)), np.tile(x, (1, 2)))
        return
    for s, times in (((2, 3), [2, 1]), ((2, 3), [1, 3]), ((2,), [0]), ((1, 2, 3), [3, 2, 2])):
        yield one("Tile", some(rng, s, F32), const(times), label=str(times))
    for t in (BOOL, I8, F16):
        yield one("Tile", some(rng, (2, 3), t), const([2, 2]))
    yield one("Tile", with_batch(some(rng, (2, 3), F32), "n"), const([2, 2]),
              more=[{"x0": some(rng, (5, 3), F32)}])


def triangle(version, rng):
    for s, upper in itertools.product(((4, 4), (2, 3, 5), (5, 3)), (None, 0, 1)):
        way = {} if upper is None else {"upper": upper}
        yield one("Trilu", some(rng, s, F32), **way)
        for k in (-1, 2, 9):
            yield one("Trilu", some(rng, s, F32), const(k), label=str(k), **way)
    for t in (BOOL, I8):
        yield one("Trilu", some(rng, (3, 3), t), upper=0)
    yield one("Trilu", with_batch(some(rng, (2, 3, 3), F32), "", "n"), const(1),
              more=[{"x0": some(rng, (5, 6, 3), F32)}])


def gather(version, rng):
    x = some(rng, (5, 4, 3), F32)
    for axis in (None, 0, 1, 2) + ((-1,) if version >= 11 else ()):
        way = {} if axis is None else {"axis": axis}
        for shape in ((), (4,), (2, 3)):
            yield one("Gather", x, some(rng, shape, I8, 0, 3), **way)
    for t in (BOOL, I4, F16):
        yield one("Gather", some(rng, (5, 4), t), np.array([1, 4], np.int32))
    if version >= 11:
        yield one("Gather", x, np.array([-1, -5, 4]))
    table = In(some(rng, (7, 3), F32), kind="const")
    yield one("Gather", table, In(some(rng, (2, 3), I8, 0, 7), ["n", "m"]), label="embedding",
              more=[{"x1": some(rng, (5, 1), I8, 0, 7)}])
    yield one("Gather", with_batch(some(rng, (2, 3), F32), "n"), const(1), axis=1,
              more=[{"x0": some(rng, (5, 3), F32)}])


def gather_elements(version, rng):
    x = some(rng, (4, 5, 3), F32)
    for axis in (None, 0, 1, 2, -1):
        way = {} if axis is None else {"axis": axis}
        yield one("GatherElements", x, some(rng, (4, 5, 3), I8, -3, 3), **way)
        yield one("GatherElements", x, some(rng, (2, 3, 3), I8, 0, 3).astype(np.int32), **way)
    yield one("GatherElements", some(rng, (3, 4), BOOL), some(rng, (3, 9), I8, 0, 4), axis=1)


def gather_nd(version, rng):
    x = some(rng, (3, 4, 5), F32)
    for shape in ((1,), (3,), (2, 2), (2, 3, 1), (2, 1, 3)):
        yield one("GatherND", x, some(rng, shape, I8, -3, 3))
    yield one("GatherND", some(rng, (3, 4), I4), some(rng, (6, 2), I8, 0, 3))
    if version >= 12:
        yield one("GatherND", x, some(rng, (3, 1), I8, 0, 3), batch_dims=1)
        yield one("GatherND", x, some(rng, (3, 2, 2), I8, 0, 3), batch_dims=1)
        yield one("GatherND", x, some(rng, (3, 4, 1), I8, 0, 3), batch_dims=2)
    yield one("GatherND", x, In(some(rng, (2, 2), I8, 0, 3), ["n", 2]),
              more=[{"x1": some(rng, (7, 2), I8, 0, 3)}])


def ways_of(version):
    """Returns the reductions that a version has."""
    return [None] + ["none", "add", "mul"] * (version >= 16) + ["max", "min"] * (version >= 18)


def scatter_elements(version, rng):
    x = some(rng, (4, 5, 3), F32)
    for way, axis in itertools.product(ways_of(version), (0, 1, -1)):
        how = {"reduction": way} if way else {}
        shape, most = [4, 5, 3], x.shape[axis]
        shape[axis] = 2
        if way in (None, "none"):  # no place is repeated
            others = [n for i, n in enumerate(x.shape) if i != axis % 3]
            places = np.broadcast_to(np.array([1, -most]), [*others, 2])
            yield one("ScatterElements", x, np.moveaxis(places, -1, axis).copy(),
                      some(rng, shape, F32), axis=axis, **how)
            continue
        for shape[axis] in (2, 7):
            yield one("ScatterElements", x, some(rng, shape, I8, -most, most),
                      some(rng, shape, F32), axis=axis, terms=5, **how)
    yield one("ScatterElements", x, np.array([[[1, 0]], [[2, 1]]]), some(rng, (2, 1, 2), F32))
    # updates by other rows of the array that they change, which has no other reader
    yield Case("ScatterElements of its own rows",
               [("Neg", ["x"], ["data"], {}),
                ("Slice", ["data", "last", "first", "axis", "back"], ["updates"], {}),
                ("ScatterElements", ["data", "at", "updates"], ["y"], {"axis": 1})],
               {"x": In(some(rng, (4, 2), F32)), "at": In(np.array([[1, 0], [0, 1]] * 2)),
                "last": const([-1]), "first": const([-9]), "axis": const([0]),
                "back": const([-1])}, ["y"])
    for t in (I4, I8, BOOL, F64):
        yield one("ScatterElements", some(rng, (3, 4), t), np.array([[1, 3]], np.int32),
                  some(rng, (1, 2), t), axis=1)
    at, updates = np.array([1, 1, 3, 2]), np.array([True, True, False, False])
    x = np.array([True, False, True, True, False])
    for way, y in (("add", [1, 1, 1, 1, 0]), ("mul", [1, 0, 0, 0, 0]), ("max", [1, 1, 1, 1, 0]),
                   ("min", [1, 0, 0, 0, 0])):
        if way in ways_of(version):
            yield stated(one("ScatterElements", x, at, updates, reduction=way), np.array(y, BOOL))


def scatter_nd(version, rng):
    x = some(rng, (4, 5, 3), F32)
    for way in ways_of(version):
        how = {"reduction": way} if way else {}
        several = way not in (None, "none")
        for index in ([[1]], [[2], [0]], [[[3, 1], [0, -5]]], [[0, 4, 2], [3, 0, -3]]):
            index = np.array(index * (2 if several else 1))
            yield one("ScatterND", x, index, some(rng, index.shape[:-1] + x.shape[index.shape[-1]:],
                                                  F32), terms=4, **how)
    for t in (I4, BOOL, F64):
        yield one("ScatterND", some(rng, (3, 4), t), np.array([[1], [2]]), some(rng, (2, 4), t))
    if version >= 16:
        yield one("ScatterND", some(rng, (7, 64), F32), some(rng, (40, 1), I8, 0, 7),
                  some(rng, (40, 64), F32), terms=40, reduction="add")
    yield one("ScatterND", with_batch(some(rng, (3, 4), F32), "n"), np.array([[1], [2]]),
              some(rng, (2, 4), F32), more=[{"x0": some(rng, (7, 4), F32)}])


def scatter(version, rng):
    x = some(rng, (4, 5, 3), F32)
    for axis in (0, 1, 2):
        shape = [4, 5, 3]
        shape[axis] = 2
        others = [n for i, n in enumerate(x.shape) if i != axis]
        places = np.broadcast_to(np.array([0, 2]), [*others, 2])
        yield one("Scatter", x, np.moveaxis(places, -1, axis).copy(), some(rng, shape, F32), axis=axis)
    yield one("Scatter", some(rng, (3, 4), I8), np.array([[1, 3]], np.int32), some(rng, (1, 2), I8),
              axis=1)


def top_k(version, rng):
    def made(x, k, label="", more=(), **attributes):
        inputs = [x] if version < 10 else [x, const([k])]
        given = {"k": k} if version < 10 else {}
        case = one("TopK", *inputs, label=f"k {k} {label}", more=more, **given, **attributes)
        (op, ins, _, how), = case.nodes
        case.nodes, case.outputs = [(op, ins, ["y", "z"], how)], ["y", "z"]
        return case
    ways = ({}, {"largest": 0}, {"largest": 1, "sorted": 1}) if version >= 11 else ({},)
    x = some(rng, (3, 5, 4), F32)
    for way in ways:
        for axis in (0, 1, 2) + ((-1,) if version >= 11 else ()):
            for k in (1, x.shape[axis]):
                yield made(x, k, axis=axis, **way)
        yield made(x, 2, **way)
        yield made(np.array([[3, 1, 3, 3, 1, 2], [5, 5, 5, 5, 5, 5]], F32), 4, "with equal ones", **way)
        yield made(np.array([np.inf, -np.inf, 0, -0.0, 1], F32), 5, "of special values", **way)
        yield made(some(rng, (2, 40), F64), 7, **way)
        for long, k in ((some(rng, (3, 301), F32), 4), (some(rng, (5000,), F64), 1)):
            yield made(long, k, "of a long axis", **way)
        yield made(some(rng, (2, 200), I8, 0, 4), 3, "of a long axis with equal ones", **way)
        for t in [I8] + ([I4] if version >= 11 else []):
            yield made(some(rng, (3, 6), t), 3, **way)
        yield made(with_batch(some(rng, (3, 6), F32), "n"), 2, "of rows that vary", **way,
                   more=[{"x0": some(rng, (5, 6), F32)}])


def reverse_sequence(version, rng):
    x = some(rng, (4, 3, 2), F32)
    yield one("ReverseSequence", x, np.array([4, 1, 2]))
    yield one("ReverseSequence", x, np.array([3, 1, 2, 3]), time_axis=1, batch_axis=0)
    yield one("ReverseSequence", some(rng, (4, 3), I8), np.array([1, 4, 3]), time_axis=0, batch_axis=1)
    yield one("ReverseSequence", In(some(rng, (4, 3, 2), F32), [4, "n", 2]), In(np.array([4, 1, 2]), ["n"]),
              more=[{"x0": some(rng, (4, 2, 2), F32), "x1": np.array([2, 3])}])


def one_hot(version, rng):
    for axis in (None, 0, 1, -1):
        way = {} if axis is None else {"axis": axis}
        yield one("OneHot", some(rng, (2, 3), I8, 0, 5), const(5), const([0.0, 1], F32), **way)
    yield one("OneHot", np.array([0, 7, 2, -1, -6]), const([6]), const([2, 5]))
    yield one("OneHot", np.array([0.0, 2.0, 1.0], F32), const(3.0, F32), some(rng, (2,), F32))
    yield one("OneHot", np.array([3, 1], np.int32), const(4), some(rng, (2,), I8))
    yield one("OneHot", In(some(rng, (2,), I8, 0, 4), ["n"]), const(4), const([0.0, 1], F32),
              more=[{"x0": some(rng, (5,), I8, 0, 4)}])


def nonzero(version, rng):
    for t in (BOOL, F32, I4, I8, U1):
        yield one("NonZero", some(rng, (3, 4), I8, 0, 3).astype(t))
    yield one("NonZero", np.array([0.0, -0.0, np.nan, 2], F32))
    # elements of a scalar have no coordinates, but before version 13, in which it is a vector
    for x in (3, 0):
        yield stated(one("NonZero", np.array(x, F32), label=str(x)),
                     np.zeros((0 if version >= 13 else 1, int(x != 0)), I8))
    yield one("NonZero", np.zeros((2, 0, 3), F32))
    yield one("NonZero", np.zeros((2, 5), F32))
    yield one("NonZero", with_batch(some(rng, (3, 6), I8, 0, 3), "n"),
              more=[{"x0": some(rng, (5, 6), I8, 0, 2)}])


def compress(version, rng):
    x, mask = some(rng, (3, 4, 2), F32), np.array([True, False, True])
    for axis, n in ((0, 3), (1, 3), (-2, 2), (-1, 2), (None, 3)):
        way = {} if axis is None else {"axis": axis}
        yield one("Compress", x, mask[:n], **way)
    yield one("Compress", some(rng, (3, 4), I8), np.zeros(4, BOOL), axis=1)
    yield one("Compress", with_batch(some(rng, (3, 6), F64), "n"), mask, axis=1,
              more=[{"x0": some(rng, (5, 6), F64), "x1": ~mask}])


def unique(version, rng):
    def made(x, **attributes):
        case = one("Unique", x, **attributes)
        (op, ins, _, how), = case.nodes
        case.outputs = ["y", "first", "place", "count"]
        case.nodes = [(op, ins, case.outputs, how)]
        return case
    x = some(rng, (3, 4, 5), I8, 0, 2)
    for t in (F32, I8, F64):
        for is_sorted in (0, 1):
            yield made(some(rng, (4, 9), I8, 0, 12).astype(t), sorted=is_sorted)
    for axis in (0, 1, -1):
        yield made(x[:, :, :2].astype(F32), axis=axis)
    yield made(with_batch(some(rng, (20, 2), I8, 0, 3).astype(F32), "n"), axis=0, sorted=0,
               more=[{"x0": some(rng, (33, 2), I8, 0, 3).astype(F32)}])


def suppression(version, rng):
    def boxes(batch, n):
        return rng.uniform(0, 9, (batch, n, 4)).astype(F32)

    def scores(batch, classes, n):
        return rng.integers(0, 40, (batch, classes, n)).astype(F32)

    for most in (0, 3, 100):
        yield one("NonMaxSuppression", boxes(2, 12), scores(2, 3, 12), const([most]), const([0.3], F32),
                  const([9.0], F32))
    yield one("NonMaxSuppression", boxes(1, 20), scores(1, 1, 20), const(20), const(0.5, F32),
              center_point_box=1)
    yield one("NonMaxSuppression", boxes(1, 5), scores(1, 1, 5))
    yield one("NonMaxSuppression", In(boxes(1, 6), [1, "n", 4]),
              In(scores(1, 2, 6), [1, 2, "n"]), const([5]), const([0.2], F32),
              more=[{"x0": boxes(1, 11), "x1": scores(1, 2, 11)}])


def reduced(op, *ints, of_nothing=True):
    return fewer(reduction(op, 18, lambda v: [F32, F64, *ints]), 4, of_nothing)


OPERATORS = {
    "ReduceMin": fewer(reduction("ReduceMin", 18, lambda v: [F32, F64, I4, I8] + (
        [I1, U1] if v >= 12 else []) + ([BOOL] if v >= 20 else [])), 3),
    "ReduceMean": reduced("ReduceMean", of_nothing=False), "ReduceProd": reduced("ReduceProd", I4, I8),
    "ReduceL1": reduced("ReduceL1", I4), "ReduceL2": reduced("ReduceL2"),
    "ReduceSumSquare": reduced("ReduceSumSquare", I4),
    "ReduceLogSum": reduced("ReduceLogSum"), "ReduceLogSumExp": reduced("ReduceLogSumExp"),
    "ArgMax": argument("ArgMax"), "ArgMin": argument("ArgMin"),
    "CumSum": running("CumSum"), "CumProd": running("CumProd"),
    "Size": size, "Range": numbers, "EyeLike": eye, "Split": split, "Tile": tile,
    "Trilu": triangle, "Gather": gather, "GatherElements": gather_elements,
    "GatherND": gather_nd, "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd, "OneHot": one_hot, "NonZero": nonzero, "Compress": compress,
    "Unique": unique, "NonMaxSuppression": suppression, "Scatter": scatter, "TopK": top_k,
    "ReverseSequence": reverse_sequence,
}


# ---- Shape arithmetic ----

def chains(rng):
    """Cases like operators.chains: sizes computed as exporters write them."""
    def case(label, nodes, inputs=None, outputs=("y",), more=()):
        return Case(label, nodes, inputs or part, list(outputs), 0, list(more or others))

    part = {"x": with_batch(some(rng, (2, 3, 4), F32), "n", "t"),
            "0": const([0]), "1": const([1]), "3": const([3]), "-1": const([-1]), "2": const([2]),
            "s0": const(0), "s1": const(1), "s2": const(2), "v": const([2.5], F32)}
    others = [{"x": some(rng, s, F32)} for s in ((5, 1, 4), (1, 7, 4))]
    shape_of = ("Shape", ["x"], ["s"], {})
    sizes = [shape_of, ("Gather", ["s", "s0"], ["n"], {}), ("Gather", ["s", "s1"], ["t"], {})]
    lists = [("Unsqueeze", ["n", "0"], ["n1"], {}), ("Unsqueeze", ["t", "0"], ["t1"], {})]
    yield case("heads and back", [
        *sizes, *lists, ("Concat", ["n1", "t1", "2", "2"], ["to"], {"axis": 0}),
        ("Reshape", ["x", "to"], ["h"], {}), ("Transpose", ["h"], ["p"], {"perm": [0, 2, 1, 3]}),
        ("Transpose", ["p"], ["q"], {"perm": [0, 2, 1, 3]}),
        ("Concat", ["n1", "t1", "-1"], ["back"], {"axis": 0}),
        ("Reshape", ["q", "back"], ["y"], {})], outputs=["y", "p"])
    yield case("positions", [*sizes, ("Range", ["s0", "t", "s1"], ["y"], {})])
    yield case("positions of the second half", [
        *sizes, ("Div", ["t", "s2"], ["half"], {}), ("Range", ["half", "t", "s1"], ["y"], {})])
    yield case("every second position, from the end", [
        *sizes, ("Neg", ["s2"], ["back"], {}), ("Range", ["t", "s0", "back"], ["y"], {})])
    yield case("a shape that is split", [
        shape_of, ("Split", ["s"], ["n", "t", "k"], {"axis": 0}),
        ("Concat", ["t", "n"], ["to"], {"axis": 0}), ("Expand", ["v", "to"], ["y"], {})])
    yield case("a shape with one number written into it", [
        shape_of, ("ScatterND", ["s", "places", "1"], ["to"], {}),
        ("Expand", ["v", "to"], ["y"], {})],
        {**part, "places": const([[2]])})
    yield case("a shape with numbers added to it", [
        shape_of, ("ScatterElements", ["s", "places", "terms"], ["to"], {"reduction": "add"}),
        ("Expand", ["v", "to"], ["y"], {})],
        {**part, "places": const([0, -1, 0]), "terms": const([1, 2, 3])})
    yield case("running sums of a shape", [
        shape_of, ("CumSum", ["s", "s0"], ["to"], {}), ("Expand", ["v", "to"], ["y"], {})])
    yield case("-1 where a size stays", [
        *sizes, *lists, ("Concat", ["n1", "-1", "3"], ["asked"], {"axis": 0}),
        ("Equal", ["asked", "-1"], ["open"], {}), ("Where", ["open", "t1", "asked"], ["to"], {}),
        ("Expand", ["v", "to"], ["y"], {})])
    yield case("the number of elements", [
        ("Size", ["x"], ["n"], {}), ("Range", ["s0", "n", "s1"], ["y"], {})])
    yield case("the product of a shape", [
        shape_of, ("ReduceProd", ["s"], ["n"], {"keepdims": 1}), ("Expand", ["v", "n"], ["y"], {})])
    yield case("a causal mask", [
        *sizes, *lists, ("Concat", ["t1", "t1"], ["to"], {"axis": 0}),
        ("Expand", ["v", "to"], ["ones"], {}), ("Trilu", ["ones"], ["y"], {"upper": 0})])
    yield case("the last of a sequence", [
        *sizes, ("Sub", ["t", "s1"], ["last"], {}), ("Gather", ["x", "last"], ["y"], {"axis": 1})])
    yield case("a table by positions", [
        *sizes, ("Range", ["s0", "t", "s1"], ["at"], {}),
        ("Gather", ["x", "at"], ["y"], {"axis": 1})])
    yield case("rows and columns", [
        *sizes, ("Range", ["s0", "t", "s1"], ["i"], {}), ("Unsqueeze", ["i", "1"], ["column"], {}),
        ("LessOrEqual", ["i", "column"], ["y"], {})])
    yield case("repeated as often as there are rows", [
        *sizes, *lists, ("Concat", ["n1", "1"], ["times"], {"axis": 0}),
        ("Expand", ["v", "times"], ["a"], {}), ("Tile", ["a", "times"], ["y"], {})])
    yield case("one of each size", [
        *sizes, ("OneHot", ["s1", "t", "values"], ["y"], {})],
        {**part, "values": const([0.0, 1], F32)})
