"""Test cases of ONNX operators for test_ops.py: {name: cases(version, rng)}. Here those of
arithmetic, shapes, reductions and matrix products, and of sizes that models compute; from
operators_networks.py and operators_pictures.py those of convolutional networks."""

import itertools

import numpy as np
from onnx import TensorProto

from cases import BF16, ONNX_TYPE, Case, In, const, one, stated
from operators_networks import NETWORKS
from operators_pictures import PICTURES
from tenon import DTYPES

F32, F64, F16 = (np.dtype(t) for t in ("f4", "f8", "f2"))
INTS = [np.dtype(t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
WIDE = [np.dtype(t) for t in ("i4", "i8", "u4", "u8")]
BOOL = np.dtype(bool)
FAR = 2**63 - 1

PAIRS = [((3, 4), (3, 4)), ((2, 1, 5), (3, 1)), ((4,), ()), ((), (2, 3)), ((1,), (7,)),
         ((0, 3), (1, 3)), ((2, 3, 4), (4,))]


def some(rng, shape, dtype, low=-9, high=9):
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        least = 0 if dtype.kind == "u" else low
        return np.asarray(rng.integers(least, high, shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape) * 2).astype(dtype)


def nonzero(array):
    return np.where(array == 0, np.array(3, array.dtype), array).astype(array.dtype)


def with_batch(array, *names):
    """Makes an input whose first sizes have names."""
    return In(array, [*names, *array.shape[len(names):]])


def floats_of(version, with_bf16):
    return [F32, F64, F16] + ([BF16] if version >= with_bf16 else [])


# ---- Elementwise ----

def binary(op, with_bf16, small_ints, change=lambda y: y):
    def cases(version, rng):
        if version < 7:  # operands are alike unless broadcasting is asked for
            given = {"consumed_inputs": [0]} if version < 6 and op != "Pow" else {}
            yield one(op, some(rng, (2, 3), F32), change(some(rng, (2, 3), F32)), **given)
            yield one(op, some(rng, (4,), F64), change(some(rng, (4,), F64)), **given)
            return
        types = floats_of(version, with_bf16) + (INTS if version >= small_ints else WIDE)
        for a, b in PAIRS:
            yield one(op, some(rng, a, F32), change(some(rng, b, F32)))
        for t in types[1:]:
            yield one(op, some(rng, (2, 3), t), change(some(rng, (3,), t)))
        x, y = some(rng, (2, 5), F32), change(some(rng, (5,), F32))
        wider = {"x0": some(rng, (4, 5), F32)}
        yield one(op, with_batch(x, "n"), y, more=[wider], label="with a size that varies")
        yield one(op, x, const(2.5, F32), label="with a scalar initialiser")
        yield one(op, with_batch(x, "n"), In(change(some(rng, (2, 1), F32)), ["n", 1]),
                  label="with one size twice",
                  more=[{"x0": some(rng, (1, 5), F32), "x1": change(some(rng, (1, 1), F32))}])
    return cases


def div(version, rng):
    yield from binary("Div", 13, 14, nonzero)(version, rng)
    if version < 7:
        return
    for t in [np.dtype("i4"), np.dtype("i8")] + (INTS if version >= 14 else []):
        x = np.array([7, 8, 9, 0, 100, 127], t)
        signs = [1, -1] if t.kind == "i" else [1]
        for a, b in itertools.product(signs, signs):
            yield one("Div", (x * t.type(a)).astype(t), np.full(6, 3 * b).astype(t))
    yield one("Div", np.array([1, -1, 0], F32), np.zeros(3, F32), label="by zero")


def maximum(version, rng):
    types = floats_of(version, 13) if version >= 8 else [F32, F64]
    types += WIDE if version >= 12 else []
    if version < 6:
        yield one("Max", some(rng, (2, 2), F32), some(rng, (2, 2), F32), consumed_inputs=[0, 0])
    for t in types:
        yield one("Max", some(rng, (3, 4), t), some(rng, (3, 4), t))
    yield one("Max", some(rng, (3, 4), F32))
    yield one("Max", *[some(rng, (2, 2), F32) for _ in range(5)])
    if version >= 8:
        yield one("Max", some(rng, (3, 1), F32), some(rng, (4,), F32), some(rng, (), F32))
        nan = np.array([np.nan, 1, -np.inf, np.inf, -0.0], F32)
        yield one("Max", nan, nan[::-1].copy(), label="with NaN")


def equal(version, rng):
    if version < 7:
        for t in (BOOL, np.dtype("i4"), np.dtype("i8")):
            yield one("Equal", some(rng, (4, 5), t, -2, 2), some(rng, (4, 5), t, -2, 2))
        return
    types = [BOOL, np.dtype("i4"), np.dtype("i8")]
    types += [F32, F64, F16] + INTS if version >= 11 else []
    for t in types:
        yield one("Equal", some(rng, (4, 5), t, -2, 2), some(rng, (5,), t, -2, 2))
    if version >= 11:
        x = np.array([0.0, -0.0, np.nan, np.inf], F32)
        yield one("Equal", x, np.array([-0.0, 0.0, np.nan, np.inf], F32))


def unary(op, make=lambda x: x, with_bf16=13):
    def cases(version, rng):
        for t in floats_of(version, with_bf16):
            for shape in ((), (1,), (3, 5), (0, 2), (2, 3, 4)):
                yield one(op, make(some(rng, shape, t)))
        yield one(op, with_batch(make(some(rng, (2, 3), F32)), "n"),
                  more=[{"x0": make(some(rng, (6, 3), F32))}])
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 80, -80, 1e-30], F32)
        yield one(op, special, label="of special values")
    return cases


def positive(x):
    return np.asarray(np.abs(x) + np.array(0.5, x.dtype))


def cast_values(a, b):
    """Makes values of type a that are defined in type b."""
    if a == BOOL:
        return np.array([True, False, True])
    if a.kind in "iu":
        info = np.iinfo(a)
        ends = [info.min, info.max] if b.kind in "iu" or b == BOOL else []
        return np.array([0, 1, 2, 100, info.min // 2 if a.kind == "i" else 77, *ends], a)
    if b == BOOL:
        return np.array([0.0, -0.0, 0.25, -3, np.inf], np.float64).astype(a)
    if b.kind in "iu":
        low = [] if b.kind == "u" else [-1.0, -1.5, -2.75, -0.5]
        return np.array([0.0, 0.5, 0.99, 1.5, 2.5, 100.25, *low], np.float64).astype(a)
    return np.array([0.0, -0.0, 1 / 3, -2.7, 1e-3, 1.0009766, 65504, 1e-7, np.inf, -np.inf,
                     np.nan], np.float64).astype(a)


NAMES_OF_TYPES = {np.dtype(t): n for t, n in (
    ("f4", "FLOAT"), ("f8", "DOUBLE"), ("f2", "FLOAT16"), ("i4", "INT32"), ("i8", "INT64"),
    ("u1", "UINT8"), (bool, "BOOL"))}


def cast_strings():
    """Casts to and from strings, in the forms that the runtime gives too; it writes f32 with 8 digits and f64
    with 17, where fewer may do or more are needed."""
    def made(x, to, y, label=""):
        return stated(one("Cast", x, to=ONNX_TYPE[np.dtype(to)], label=label), y)
    def strings(*texts):
        return np.array(texts, object)
    floats = [1.5, -0.0, 0.1, 1e20, np.nan, np.inf, -np.inf, 1e-7, 100000, -2.25]
    texts = strings("1.5", "-0", "0.1", "1e+20", "NaN", "INF", "-INF", "1e-07", "100000", "-2.25")
    yield made(np.array(floats, F32), object, texts)
    yield made(np.array(floats, F64), object, texts)
    yield made(np.array([16777217 * 8, 1 / 3], F32), object, strings("1.3421773e+08", "0.33333334"), "of nine digits")
    yield made(np.array([1 / 3, 2**53 + 2], F64), object, strings("0.3333333333333333", "9007199254740994"))
    yield made(np.array([99999992, 12345.678, 0.00012], F32), object, strings("99999992", "12345.678", "0.00012"))
    yield made(np.array([1e16, 1e17, 1234567.8901], F64), object, strings("1" + "0" * 16, "1e+17", "1234567.8901"))
    yield made(np.array([1.5, 1 / 3, np.nan], F16), object, strings("1.5", "0.33325195", "NaN"))
    yield made(np.array([True, False]), object, strings("1", "0"))
    for t in (np.int8, np.int64, np.uint8, np.uint64):
        ends = np.array([np.iinfo(t).min, 7, np.iinfo(t).max], t)
        yield made(ends, object, strings(*map(str, ends)))
        yield made(strings(*map(str, ends)), t, ends)
    read = strings("1.5", " nan ", "Inf", "+INF", "-inf", "1e-5", "1E8", "\t-7\n", ".5", "3.")
    values = [1.5, np.nan, np.inf, np.inf, -np.inf, 1e-5, 1e8, -7, 0.5, 3]
    for t in (F16, F32, F64):
        with np.errstate(over="ignore"):
            yield made(read, t, np.array(values, F64).astype(t))
    yield made(strings("1.9", "-1.9", "1e3", "+5", "-0"), np.int32, np.array([1, -1, 1000, 5, 0], np.int32))
    yield made(strings("0", "1", "-3"), bool, np.array([False, True, True]))
    yield made(strings("a", ""), object, strings("a", ""), "of strings")
    yield stated(one("Cast", with_batch(np.array([["1", "2"]], object), "n"), to=TensorProto.FLOAT,
                     more=[{"x0": np.array([["1", "2"]], object)}]), np.array([[1, 2]], F32))


def cast(version, rng):
    if version < 6:   # which the references do not know
        for a, b in itertools.product(NAMES_OF_TYPES, NAMES_OF_TYPES):
            x = np.array([0, 1, 2, 100], a)
            yield stated(one("Cast", x, to=NAMES_OF_TYPES[b]), x.astype(b))
        return
    types = [np.dtype(t) for _, t in DTYPES.values()]
    if version < 13:
        types.remove(BF16)
    for a, b in itertools.product(types, types):
        yield one("Cast", cast_values(a, b), to=ONNX_TYPE[b])
    if version >= 9:
        yield from cast_strings()
    if version >= 19:
        yield one("Cast", some(rng, (3,), F32), to=TensorProto.FLOAT16, saturate=0)
    yield one("Cast", with_batch(some(rng, (2, 3), F32), "n"), to=TensorProto.INT64,
              more=[{"x0": some(rng, (5, 3), F32)}])


# ---- Shapes and movement ----

def shape(version, rng):
    for s in ((), (3,), (2, 0, 4), (1, 2, 3, 4, 5)):
        yield one("Shape", some(rng, s, F32))
    x = some(rng, (2, 3, 4), F32)
    yield one("Shape", with_batch(x, "n"), more=[{"x0": some(rng, (7, 3, 4), F32)}])
    if version >= 15:
        for start, end in itertools.product((None, 0, 1, -1, -9, 9), (None, 0, 2, -1, -9, 9)):
            ends = {k: v for k, v in (("start", start), ("end", end)) if v is not None}
            yield one("Shape", x, **ends)


def reshape(version, rng):
    x = some(rng, (2, 3, 4), F32)
    if version < 5:   # which the references do not know
        for to, shape in (([24], (24,)), ([0, -1], (2, 12)), ([4, 6], (4, 6))):
            yield stated(one("Reshape", x, shape=to), x.reshape(shape))
        return
    for to in ([24], [4, 6], [0, -1], [-1, 4], [0, 0, 2, 2], [2, 0, 4], [1, 2, 1, 12], [-1],
               [2, -1, 0]):
        yield one("Reshape", x, const(to), label=str(to))
    yield one("Reshape", some(rng, (1,), F32), const([]), label="to a scalar")
    yield one("Reshape", some(rng, (), F32), const([1, 1]))
    yield one("Reshape", some(rng, (0, 3), F32), const([0, 3, 1]), label="of nothing")
    for t in (BOOL, np.dtype("i8"), F16):
        yield one("Reshape", some(rng, (2, 6), t), const([3, 4]))
    other = {"x0": some(rng, (5, 3, 4), F32)}
    for to in ([0, -1], [-1, 12], [-1], [0, 4, 3], [0, 2, -1]):
        yield one("Reshape", with_batch(x, "n"), const(to), more=[other],
                  label=f"{to} of a size that varies")
    if version >= 14:
        yield one("Reshape", some(rng, (0, 3), F32), const([3, 0]), allowzero=1)
        yield one("Reshape", x, const([0, -1]), allowzero=0)


def expand(version, rng):
    for s, to in (((3, 1), [3, 4]), ((3, 1), [2, 1, 6]), ((), [2, 3]), ((2, 3), [1]), ((1,), [4]),
                  ((3, 4), [1, 1]), ((1, 3, 1), [2, 1, 5]), ((2, 1), [2, 0])):
        yield one("Expand", some(rng, s, F32), const(to), label=str(to))
    for t in (BOOL, np.dtype("i8"), F64):
        yield one("Expand", some(rng, (1, 2), t), const([3, 1]))
    yield one("Expand", with_batch(some(rng, (2, 1), F32), "n"), const([1, 4]),
              more=[{"x0": some(rng, (5, 1), F32)}], label="of a size that varies")


def bounds(version, starts, ends, axes=None, steps=None, dtype=np.int64):
    """Returns the bounds of a Slice: attributes or inputs."""
    if version < 10:
        axes = {"axes": axes} if axes is not None else {}
        return [], {"starts": starts, "ends": ends, **axes}
    lists = [starts, ends, axes, steps]
    while lists[-1] is None:
        lists.pop()
    return [None if v is None else const(v, dtype) for v in lists], {}


def slices(version, rng):
    x = some(rng, (5, 6, 7), F32)
    plain = [([1], [3], None), ([0, 1], [5, 4], None), ([1, 2], [4, 5], [0, 2]),
             ([-3], [-1], [1]), ([2], [FAR], [0]), ([0], [100], [2]), ([3], [3], [0]),
             ([4], [2], [0]), ([-100], [3], [1]), ([1, 0], [3, 2], [2, 0])]
    for s, e, a in plain:
        inputs, attributes = bounds(version, s, e, a)
        yield one("Slice", x, *inputs, label=f"{s} {e} {a}", **attributes)
    n = with_batch(x, "n")
    for s, e in (([1], [FAR]), ([0], [-1]), ([-2], [FAR]), ([0], [3]), ([2], [4])):
        inputs, attributes = bounds(version, s, e, [0])
        yield one("Slice", n, *inputs, label=f"{s} {e} of a size that varies",
                  more=[{"x0": some(rng, (k, 6, 7), F32)} for k in (9, 1, 3)], **attributes)
    if version < 10:
        return
    far = [([0], [FAR], [0], [2]), ([FAR], [-FAR - 1], [1], [-1]), ([-1], [-FAR], [2], [-2]),
           ([5], [0], [1], [-2]), ([4, 1], [0, 6], [0, 1], [-1, 3]), ([100], [1], [0], [-3]),
           ([0], [5], [0], [7]), ([2], [-100], [2], [-1]), ([-1], [0], [1], [-1]),
           ([-9], [-FAR], [0], [-1]), ([-9], [-FAR], [2], [-2]), ([-9], [-8], [1], [-1])]
    for s, e, a, k in far:
        inputs, _ = bounds(version, s, e, a, k)
        yield one("Slice", x, *inputs, label=f"{s} {e} {a} {k}")
        if a == [0] or a == [1]:
            inputs, _ = bounds(version, s, e, [0], k)
            yield one("Slice", n, *inputs, label=f"{s} {e} {k} of a size that varies",
                      more=[{"x0": some(rng, (m, 6, 7), F32)} for m in (8, 1)])
    inputs, _ = bounds(version, [1], [4], [2], dtype=np.int32)
    yield one("Slice", x, *inputs, label="with i32 bounds")
    inputs, _ = bounds(version, [1, 2], [3, 5], None, [1, 2])
    yield one("Slice", x, *inputs, label="without axes")
    if version >= 11:
        inputs, _ = bounds(version, [1], [-1], [-1])
        yield one("Slice", x, *inputs, label="of the last axis")
        inputs, _ = bounds(version, [0, -1], [2, -FAR], [-3, -2], [1, -1])
        yield one("Slice", x, *inputs, label="of axes from the end")


def concat(version, rng):
    types = [F32, np.dtype("i4"), np.dtype("i8"), BOOL, F16, F64]
    for t in types:
        yield one("Concat", some(rng, (2, 3), t), some(rng, (2, 1), t), axis=1)
    parts = [some(rng, (n, 3, 2), F32) for n in (1, 4, 0, 2)]
    yield one("Concat", *parts, axis=0)
    yield one("Concat", parts[1], axis=0)
    if version < 4:
        x, y = some(rng, (2, 3), F32), some(rng, (2, 1), F32)
        yield stated(one("Concat", x, y), np.concatenate([x, y], 1))
    if version >= 11:
        yield one("Concat", some(rng, (2, 3), F32), some(rng, (2, 4), F32), axis=-1)
    yield one("Concat", with_batch(parts[0], "n"), with_batch(parts[1], "m"), axis=0,
              more=[{"x0": some(rng, (3, 3, 2), F32), "x1": some(rng, (2, 3, 2), F32)}])
    yield one("Concat", with_batch(parts[1], "n"), with_batch(parts[1], "n"), axis=2,
              more=[{"x0": parts[0], "x1": parts[0]}])


def squeezed(op, cases_of):
    """Makes Squeeze or Unsqueeze: axes are an attribute before version 13, then an input."""
    def cases(version, rng):
        for s, axes in cases_of(version):
            x = some(rng, s, F32)
            if axes is None:
                yield one(op, x)
            elif version < 13:
                yield one(op, x, axes=axes)
            else:
                yield one(op, x, const(axes), label=str(axes))
        x = with_batch(some(rng, (2, 1, 3), F32), "n")
        more = [{"x0": some(rng, (5, 1, 3), F32)}]
        yield (one(op, x, axes=[1], more=more) if version < 13 else
               one(op, x, const([1]), more=more))
    return cases


def squeeze_axes(version):
    yield from (((1, 3, 1, 5), None), ((1, 3, 1, 5), [0]), ((1, 3, 1), [0, 2]), ((1,), [0]),
                ((2, 3), None), ((1, 0, 1), [2]))
    if version >= 11:
        yield from (((3, 1), [-1]), ((1, 3, 1), [-1, 0]))


def unsqueeze_axes(version):
    yield from (((3,), [0]), ((3,), [1]), ((2, 3), [0, 3]), ((2, 3), [1, 2]), ((), [0]))
    if version >= 11:
        yield from (((3,), [-1]), ((2, 3), [-1, 0]), ((2, 3), [3, 0]))


def transpose(version, rng):
    for s in ((3,), (2, 3), (2, 3, 4), (2, 1, 3, 4)):
        yield one("Transpose", some(rng, s, F32))
        for perm in list(itertools.permutations(range(len(s))))[1::4]:
            yield one("Transpose", some(rng, s, F32), perm=list(perm))
    for t in (BOOL, np.dtype("i8"), np.dtype("u1"), F64):
        yield one("Transpose", some(rng, (2, 3), t))
    yield one("Transpose", with_batch(some(rng, (2, 3, 4), F32), "n"), perm=[2, 0, 1],
              more=[{"x0": some(rng, (5, 3, 4), F32)}])


# ---- Reductions and contractions ----

def reduction(op, axes_since, types_of):
    def cases(version, rng):
        def made(x, axes, **attributes):
            if axes is None or version < axes_since:
                given = {} if axes is None else {"axes": axes}
                return one(op, x, **given, **attributes)
            return one(op, x, const(axes), label=str(axes), **attributes)
        x = some(rng, (2, 3, 4), F32)
        options = [None, [0], [1], [2], [0, 2], [0, 1, 2], [1, 2]]
        if version >= 11:
            options += [[-1], [-1, 0]]
        for axes, keep in itertools.product(options, (None, 0, 1)):
            yield made(x, axes, **({} if keep is None else {"keepdims": keep}))
        for t in types_of(version)[1:]:
            yield made(some(rng, (3, 4), t), [1])
        yield made(some(rng, (), F32), None)
        yield one(op, with_batch(x, "n"), keepdims=0, more=[{"x0": some(rng, (7, 3, 4), F32)}])
        if version >= axes_since:
            for noop in (0, 1):
                yield made(x, None, noop_with_empty_axes=noop)
                yield one(op, x, None, label="axes left out", noop_with_empty_axes=noop)
                yield one(op, x, const([]), label="no axes", noop_with_empty_axes=noop)
        empty = {"x0": some(rng, (3, 0), F32)}
        yield one(op, In(some(rng, (2, 5), F32), ["n", "m"]), keepdims=0, more=[empty])
        for t in types_of(version):
            yield made(some(rng, (3, 0), t), [1])
    return cases


def matmul(version, rng):
    for a, b in (((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4, 5)),
                 ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((1, 7), (7, 1)), ((2, 0), (0, 3)),
                 ((33, 65), (65, 17))):
        yield one("MatMul", some(rng, a, F32), some(rng, b, F32), terms=a[-1])
    for t in [F64] + (WIDE if version >= 9 else []):
        yield one("MatMul", some(rng, (3, 4), t), some(rng, (4, 2), t), terms=4)
    x = with_batch(some(rng, (2, 6), F32), "n")
    w = In(some(rng, (6, 5), F32), kind="const")
    yield one("MatMul", x, w, terms=6, more=[{"x0": some(rng, (k, 6), F32)} for k in (1, 5, 16)])
    yield one("MatMul", In(some(rng, (2, 3), F32), [2, "k"]), In(some(rng, (3, 4), F32), ["k", 4]),
              terms=9, more=[{"x0": some(rng, (2, 9), F32), "x1": some(rng, (9, 4), F32)}])


def convolution(version, rng):
    def made(x, w, bias=False, label="", more=(), **attributes):
        terms = int(np.prod(w[1:]))
        inputs = [x if isinstance(x, In) else some(rng, x, F32), In(some(rng, w, F32), kind="const")]
        if bias is not False:
            inputs.append(None if bias is None else In(some(rng, (w[0],), F32), kind="const"))
        return one("Conv", *inputs, terms=terms, label=label, more=more, **attributes)
    yield made((2, 3, 9), (4, 3, 3))
    yield made((2, 3, 9), (4, 3, 3), bias=True, pads=[1, 2], strides=[2])
    yield made((1, 2, 7, 8), (3, 2, 3, 2))
    yield made((1, 2, 7, 8), (3, 2, 3, 2), bias=None, label="bias left out")
    yield made((2, 2, 7, 8), (3, 2, 3, 3), bias=True, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield made((2, 2, 7, 8), (3, 2, 3, 3), strides=[2, 3], pads=[0, 1, 2, 1])
    yield made((1, 2, 9, 9), (2, 2, 3, 3), dilations=[2, 3])
    yield made((1, 4, 5, 5), (6, 2, 3, 3), group=2)
    yield made((1, 4, 5, 5), (4, 1, 3, 3), bias=True, group=4, pads=[1, 1, 1, 1])
    yield made((1, 3, 5, 5), (2, 3, 1, 1))
    yield made((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), bias=True, strides=[1, 2, 1])
    yield made((1, 2, 4, 4, 4), (2, 2, 3, 3, 3), pads=[1, 1, 1, 1, 1, 1])
    for mode, size, stride in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"),
                                                (7, 8), (1, 2, 3)):
        yield made((1, 1, size, size), (2, 1, 3, 4), auto_pad=mode, strides=[stride, stride])
    if version >= 11:
        yield made((1, 1, 9), (1, 1, 3), auto_pad="SAME_UPPER", dilations=[2])
    x = In(some(rng, (2, 3, 6, 6), F32), ["n", 3, 6, 6])
    yield made(x, (4, 3, 3, 3), pads=[1, 1, 1, 1], more=[{"x0": some(rng, (5, 3, 6, 6), F32)}])
    x = In(some(rng, (1, 2, 6, 7), F32), [1, 2, "h", "w"])
    yield made(x, (3, 2, 1, 1), pads=[1, 1, 1, 1], label="of a picture whose size varies",
               more=[{"x0": some(rng, (1, 2, 9, 5), F32)}])
    yield made(x, (3, 2, 3, 3), pads=[2, 2, 2, 2], label="of a picture whose size varies",
               more=[{"x0": some(rng, (1, 2, 9, 5), F32)}])
    yield one("Conv", some(rng, (1, 2, 5), F32), some(rng, (3, 2, 2), F32), terms=4,
              label="with weights as an input")


def global_pool(version, rng):
    for s in ((2, 3, 7), (1, 2, 4, 5), (2, 2, 3, 4, 2), (1, 1, 1, 1)):
        yield one("GlobalMaxPool", some(rng, s, F32))
    yield one("GlobalMaxPool", In(some(rng, (2, 3, 4, 4), F32), ["n", 3, "h", "w"]),
              more=[{"x0": some(rng, (5, 3, 2, 9), F32)}])


OPERATORS = {
    "Add": binary("Add", 13, 14), "Sub": binary("Sub", 13, 14), "Mul": binary("Mul", 13, 14),
    "Div": div, "Max": maximum, "Equal": equal,
    "Exp": unary("Exp"), "Tanh": unary("Tanh"),
    "Sqrt": unary("Sqrt", positive), "Reciprocal": unary("Reciprocal", positive),
    "Cast": cast, "Shape": shape, "Reshape": reshape, "Expand": expand, "Slice": slices,
    "Concat": concat, "Squeeze": squeezed("Squeeze", squeeze_axes),
    "Unsqueeze": squeezed("Unsqueeze", unsqueeze_axes), "Transpose": transpose,
    "ReduceSum": reduction("ReduceSum", 13,
                           lambda v: [F32, F64, *[np.dtype(t) for t in ("i4", "i8")]]),
    "ReduceMax": reduction("ReduceMax", 18, lambda v: [F32, F64, np.dtype("i4"), np.dtype("i8")] + (
        [np.dtype("i1"), np.dtype("u1")] if v >= 12 else []) + ([BOOL] if v >= 20 else [])),
    "MatMul": matmul, "Conv": convolution, "GlobalMaxPool": global_pool, **NETWORKS,
    **PICTURES,
}


# ---- Shape arithmetic ----

def chains(rng):
    """Cases of sizes that the model computes from its inputs' sizes, for opset 13 and above."""
    def case(label, nodes, inputs, outputs=("y",), more=()):
        return Case(label, nodes, inputs, list(outputs), 0, list(more))

    def pictures(*sizes):
        return [{"x": some(rng, s, F32)} for s in sizes]

    x = with_batch(some(rng, (2, 3, 4, 5), F32), "n")
    others = pictures((7, 3, 4, 5), (1, 3, 4, 5))
    part = {"x": x, "0": const([0]), "1": const([1]), "2": const([2]), "4": const([4]),
            "-1": const([-1]), "3.5": const([3.5], F32), "far": const([FAR]), "s2": const(2)}
    shape_of = ("Shape", ["x"], ["s"], {})
    yield case("flatten", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}),
        ("Concat", ["n", "-1"], ["to"], {"axis": 0}), ("Reshape", ["x", "to"], ["y"], {})],
        part, more=others)
    yield case("flatten by a product", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Slice", ["s", "1", "2"], ["c"], {}),
        ("Mul", ["n", "c"], ["nc"], {}), ("Concat", ["nc", "-1"], ["to"], {"axis": 0}),
        ("Reshape", ["x", "to"], ["y"], {})], part, more=others)
    yield case("merge and split again", [
        shape_of, ("Slice", ["s", "0", "2"], ["nc"], {}), ("Slice", ["s", "2", "far"], ["hw"], {}),
        ("Concat", ["nc", "-1"], ["to"], {"axis": 0}), ("Reshape", ["x", "to"], ["m"], {}),
        ("Concat", ["nc", "hw"], ["back"], {"axis": 0}), ("Reshape", ["m", "back"], ["y"], {})],
        part, ["y", "m"], others)
    yield case("expand a row to the batch", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}),
        ("Concat", ["n", "4"], ["to"], {"axis": 0}), ("Expand", ["3.5", "to"], ["y"], {})],
        part, more=others)
    yield case("twice the batch, by way of i32", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Cast", ["n"], ["i"], {"to": 6}),
        ("Cast", ["i"], ["l"], {"to": 7}), ("Mul", ["l", "2"], ["nn"], {}),
        ("Concat", ["nn", "4"], ["to"], {"axis": 0}), ("Expand", ["3.5", "to"], ["y"], {})],
        part, more=others)
    yield case("half of the axis", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Div", ["n", "2"], ["half"], {}),
        ("Slice", ["x", "0", "half"], ["y"], {}), ("Slice", ["x", "half", "far"], ["z"], {})],
        part, ["y", "z"], pictures((8, 3, 4, 5), (3, 3, 4, 5)))
    yield case("all but two", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Sub", ["n", "2"], ["end"], {}),
        ("Slice", ["x", "0", "end"], ["y"], {})], part, more=pictures((8, 3, 4, 5)))
    yield case("one more", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Add", ["n", "1"], ["to"], {}),
        ("Expand", ["3.5", "to"], ["y"], {})], part, more=others)
    yield case("a size as a scalar and back", [
        shape_of, ("Slice", ["s", "0", "1"], ["n1"], {}), ("Squeeze", ["n1", "0"], ["n"], {}),
        ("Mul", ["n", "s2"], ["nn"], {}), ("Unsqueeze", ["nn", "0"], ["u"], {}),
        ("Concat", ["u", "1"], ["to"], {"axis": 0}), ("Expand", ["3.5", "to"], ["y"], {})],
        part, more=others)
    yield case("the larger of two sizes", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Max", ["n", "4"], ["to"], {}),
        ("Expand", ["3.5", "to"], ["y"], {})], part, more=others)
    yield case("sizes as numbers of a tensor", [
        shape_of, ("Cast", ["s"], ["f"], {"to": 1}), ("ReduceSum", ["f", "0"], ["y"], {}),
        ("ReduceMax", ["f"], ["z"], {"keepdims": 0})], part, ["y", "z"], others)
    yield case("sizes that are known", [
        shape_of, ("Slice", ["s", "1", "far"], ["chw"], {}),
        ("Expand", ["3.5", "chw"], ["y"], {})], part, more=others)
    yield case("the shape backwards", [
        shape_of, ("Slice", ["s", "-1", "far2", "0", "-1"], ["r"], {}),
        ("Expand", ["3.5", "r"], ["y"], {})], {**part, "far2": const([-FAR])}, more=others)
    doubled = [("Add", [f"n{i}", f"n{i}"], [f"n{i + 1}"], {}) for i in range(40)]
    halved = [("Div", [f"n{i + 40}", "2"], [f"n{i + 41}"], {}) for i in range(40)]
    yield case("a size doubled forty times, and halved again", [
        shape_of, ("Slice", ["s", "0", "1"], ["n0"], {}), *doubled, *halved,
        ("Expand", ["3.5", "n80"], ["y"], {})], part, more=others)
    yield case("a quotient towards zero of what may be negative", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Sub", ["n", "4"], ["m"], {}),
        ("Div", ["m", "2"], ["y"], {})], part, more=others)
    two = {**part, "x": In(some(rng, (2, 6), F32), ["n", "m"])}
    yield case("two sizes that vary", [
        shape_of, ("Slice", ["s", "0", "1"], ["n"], {}), ("Slice", ["s", "1", "2"], ["m"], {}),
        ("Concat", ["m", "n"], ["to"], {"axis": 0}), ("Expand", ["3.5", "to"], ["e"], {}),
        ("MatMul", ["x", "e"], ["y"], {})], two, more=pictures((4, 3), (1, 1)))
    yield case("two sizes merged", [("Reshape", ["x", "-1"], ["y"], {})], two,
               more=pictures((4, 3), (1, 1)))
