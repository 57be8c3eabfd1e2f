"""Tests movement operators (reshape, permute, slice, pad, …), gathers and scatters, and tensors
made from nothing: exact, in every type."""

import numpy as np

from binding import DTYPES, END, FLOATS, INTEGERS, Cases, dtype

c = Cases()
tn = c.tn
np.seterr(all="ignore")
CONSTANT, REFLECT, EDGE = 0, 1, 2


def same(label, tensor, expected):
    c.check(label, tensor, expected)


x = c.integers((4, 5, 6), "i32")
t = tn.of(x)

# ---- Shapes and orders ----

same("reshape", tn.reshape(t, (10, 12)), x.reshape(10, 12))
same("reshape -1", tn.reshape(t, (3, -1, 4)), x.reshape(3, -1, 4))
same("reshape permuted", tn.reshape(tn.permute(t, (2, 0, 1)), (8, 15)),
     x.transpose(2, 0, 1).reshape(8, 15))
same("reshape sliced", tn.reshape(tn.slice(t, 1, 1, 4, 1), (24, 3)), x[:, 1:4].reshape(24, 3))
same("reshape ones", tn.reshape(tn.of(x[:1, :1]), (6, 1)), x[:1, :1].reshape(6, 1))
same("reshape nothing", tn.reshape(tn.of(x[:0]), (5, 0, 3)), x[:0].reshape(5, 0, 3))
same("reshape scalar", tn.reshape(tn.num(2.5), (1, 1)), np.array([[2.5]], np.float32))
same("flatten", tn.flatten(t, 0, 1), x.reshape(20, 6))
same("flatten all", tn.flatten(tn.transpose(t), 0, -1), x.transpose().ravel())
same("flatten scalar", tn.flatten(tn.int(3), 0, -1), np.array([3]))
same("expand", tn.expand(tn.of(x[:, :1]), (2, 4, 3, 6)), np.broadcast_to(x[:, :1], (2, 4, 3, 6)))
same("expand -1", tn.expand(tn.of(x[:1]), (7, -1, -1)), np.broadcast_to(x[:1], (7, 5, 6)))
same("expand to nothing", tn.expand(tn.of(x[:1]), (0, 5, 6)), x[:0])
same("permute", tn.permute(t, (-1, 0, 1)), x.transpose(2, 0, 1))
same("transpose", tn.transpose(t), x.T)
same("swapaxes", tn.swapaxes(t, 0, -1), x.swapaxes(0, 2))
same("flip", tn.flip(t, (0, -1)), np.flip(x, (0, 2)))
same("flip nothing", tn.flip(tn.of(x[:0]), None), x[:0])
same("flip no axis", tn.flip(t, ()), x)
y = x[:1, :, :1]
same("squeeze", tn.squeeze(tn.of(y), (0,)), y[0])
same("squeeze all", tn.squeeze(tn.of(y), None), y[0, :, 0])
same("unsqueeze", tn.unsqueeze(t, (0, -1, 2)), x[None, :, None, :, :, None])
same("unsqueeze scalar", tn.unsqueeze(tn.int(4), (0, 1)), np.array([[4]]))

for label, tensor, status, words in [
        ("reshape", tn.reshape(t, (7, 7)), "ERR_SHAPE", ["4x5x6", "120", "49"]),
        ("reshape -1", tn.reshape(t, (7, -1)), "ERR_SHAPE", ["7x-1", "120", "no multiple of 7"]),
        ("reshape two -1", tn.reshape(t, (-1, -1)), "ERR_SHAPE", ["more than once"]),
        ("reshape -2", tn.reshape(t, (-2, 60)), "ERR_SHAPE", ["negative"]),
        ("flatten", tn.flatten(t, 2, 1), "ERR_SHAPE", ["flatten"]),
        ("expand", tn.expand(t, (4, 5, 7)), "ERR_SHAPE", ["4x5x6", "4x5x7"]),
        ("expand away", tn.expand(t, (5, 6)), "ERR_SHAPE", ["5x6"]),
        ("expand new -1", tn.expand(t, (-1, 4, 5, 6)), "ERR_SHAPE", ["axis 0"]),
        ("permute twice", tn.permute(t, (0, 0, 1)), "ERR_SHAPE", ["twice"]),
        ("permute few", tn.permute(t, (0, 1)), "ERR_SHAPE", ["2"]),
        ("transposed axis", tn.swapaxes(t, 0, 3), "ERR_SHAPE", ["axis 3"]),
        ("squeeze", tn.squeeze(t, (1,)), "ERR_SHAPE", ["axis 1", "5"]),
        ("unsqueeze", tn.unsqueeze(t, (5,)), "ERR_SHAPE", ["axis 5"]),
        ("unsqueeze all", tn.unsqueeze(t, None), "ERR_SHAPE", ["TN_ALL"]),
        ("unsqueeze all of a scalar", tn.unsqueeze(tn.int(1), None), "ERR_SHAPE", ["TN_ALL"]),
        ("too many axes", tn.unsqueeze(t, tuple(range(10))), "ERR_SHAPE", ["13"])]:
    c.refuse(label, tensor, status, *words)

# Results have 12 axes at most.
most = tn.of(x[:1, :1, :1].reshape(12 * (1,)))
index = tn.of(np.zeros((1, 1), np.int64))
for label, tensor in [
        ("unsqueeze", tn.unsqueeze(most, (0,))), ("stack", tn.stack_of([most, most], 3)),
        ("one_hot", tn.one_hot(most, 3, "f32")), ("take", tn.take(most, index, 5)),
        ("matmul", tn.matmul(tn.unsqueeze(most, (12,)), most))]:
    c.refuse(f"{label} past 12 axes", tensor, "ERR_SHAPE", "13")
y = x[:1, :1, :1].reshape(12 * (1,))
ones = 12 * (1,)
same("tile to 12 axes", tn.tile(tn.of(x[0, 0, :1]), ones), y)
same("repeat of 12 axes", tn.repeat(most, 3, 2), np.repeat(y, 2, 3))
same("take of 12 axes", tn.take(most, tn.of(np.zeros(2, np.int64)), 5), np.take(y, [0, 0], 5))
same("one_hot to 12 axes", tn.one_hot(tn.of(0 * y[0]), 1, "i32"), 0 * y + 1)
same("roll of 12 axes", tn.roll(most, 2, 1), y)
same("cumsum of 12 axes", tn.cumsum(most, 0), y.astype(np.int64))
same("matmul of 12 axes", tn.matmul(most, most), y * y)
same("matmul of a row", tn.matmul(tn.of(x[0, 0, :1]), most), (y * y)[0])
same("expand to 12 axes", tn.expand(tn.int(1), ones), np.ones(ones, np.int64))
same("pad of 12 axes", tn.pad(most, 12 * (0,), (1, *ones[1:]), CONSTANT, 0.0),
     np.pad(y, [(0, 1)] * 12))

# ---- Slices ----

BOUNDS = [(1, 4, 1), (0, END, 2), (-3, -1, 1), (4, 1, -1), (-1, END, -2), (2, 2, 1), (-100, 100, 3),
          (100, -100, -1), (3, 1, 1), (0, 6, 100), (END, END, 1), (5, END, -5), (-6, -7, -1)]
for start, stop, step in BOUNDS:
    python = slice(None if start == END else start, None if stop == END else stop, step)
    e = x[:, :, python] if start != END else x[:, :, 6:]
    same(f"slice {start}:{stop}:{step}", tn.slice(t, 2, start, stop, step), e)
same("slice of slice", tn.slice(tn.slice(t, 2, 5, END, -2), 2, 1, END, 1), x[:, :, 5::-2][:, :, 1:])
FAR = [2**k - one for k in (7, 31, 44, 50, 60, 62, 63) for one in (0, 1) if 2**k - one < END]
for far in FAR:
    same(f"slice -{far}:{far}", tn.slice(t, 2, -far, far, 2), x[:, :, ::2])
    same(f"slice {far}:-{far}", tn.slice(t, 2, far, -far - 1 if far == END - 1 else -far, -1),
         x[:, :, ::-1])
same("slice from the least", tn.slice(t, 2, -2**63, 4, 1), x[:, :, :4])
same("slice to the least", tn.slice(t, 2, 4, -2**63, -2), x[:, :, 4::-2])
c.refuse("slice past 2^44", tn.slice(t, 0, 10**15, END, 1), "ERR_SHAPE", "2^44")
c.refuse("arange past 2^44", tn.arange(2**45, 2**45 + 4, 1, "i64"), "ERR_SHAPE", "2^44")
c.refuse("slice step", tn.slice(t, 0, 0, 1, 0), "ERR_ARGUMENT", "slice", "step")
for i, part in enumerate(tn.split_into(t, 1, 3, (2, 0, 3))):
    same(f"split {i}", part, np.split(x, (2, 2), 1)[i])
for i, part in enumerate(tn.split_into(t, -1, 3)):
    same(f"split equal {i}", part, np.split(x, 3, 2)[i])
for sizes in (None, (2, 2), (4, 2)):
    for part in tn.split_into(t, 1, 2, sizes):
        c.refuse("split", part, "ERR_SHAPE", "split", "5")

# ---- Padding ----

SPREAD = np.array([[-0.0, np.nan, 1.5], [np.inf, -2.5, 3]], np.float32)
for kind in DTYPES:
    y = c.some((3, 4), kind)
    same(f"pad {kind}", tn.pad(tn.of(y), (1, 0), (2, 3), CONSTANT, 1.0),
         np.pad(y, ((1, 2), (0, 3)), constant_values=1))
same("pad NaN", tn.pad(tn.of(SPREAD), (0, 2), (1, 0), CONSTANT, -0.0),
     np.pad(SPREAD, ((0, 1), (2, 0)), constant_values=-0.0))
same("pad saturates", tn.pad(tn.of(np.zeros(1, np.int8)), (1,), (0,), CONSTANT, 1e9),
     np.array([127, 0], np.int8))
same("pad of nothing", tn.pad(tn.of(x[:0]), (1, 0, 0), (1, 0, 0), CONSTANT, 7.0),
     np.full((2, 5, 6), 7, np.int32))
for low, high in [((2, 0, 5), (3, 0, 1)), ((0, 4, 0), (0, 4, 0)), ((0, 0, 0), (0, 0, 0))]:
    widths = list(zip(low, high))
    same(f"pad reflect {widths}", tn.pad(t, low, high, REFLECT, 0.0), np.pad(x, widths, "reflect"))
    same(f"pad edge {widths}", tn.pad(t, low, high, EDGE, 0.0), np.pad(x, widths, "edge"))
same("pad edge far", tn.pad(tn.of(SPREAD), (0, 9), (3, 0), EDGE, 0.0),
     np.pad(SPREAD, ((0, 3), (9, 0)), "edge"))
c.refuse("reflect far", tn.pad(t, (4, 0, 0), (0, 0, 0), REFLECT, 0.0), "ERR_SHAPE", "pad", "4")
c.refuse("edge of nothing", tn.pad(tn.of(x[:0]), (1, 0, 0), (0, 0, 0), EDGE, 0.0), "ERR_SHAPE")
c.refuse("pad rank", tn.pad(t, (1, 1), (1, 1), CONSTANT, 0.0), "ERR_SHAPE", "each axis")
c.refuse("pad negative", tn.pad(t, (-1, 0, 0), (0, 0, 0), CONSTANT, 0.0), "ERR_SHAPE", "negative")
c.refuse("pad mode", tn.pad(t, (0, 0, 0), (0, 0, 0), 9, 0.0), "ERR_ARGUMENT", "9")

# ---- Several tensors ----

for kind in DTYPES:
    a, b, d = (c.some((3, n, 2), kind) for n in (2, 1, 4))
    same(f"concat {kind}", tn.concat_of([tn.of(v) for v in (a, b, d)], 1),
         np.concatenate((a, b, d), 1))
y = -np.abs(SPREAD)
joined = tn.concat_of([tn.of(SPREAD), tn.of(y), tn.of(SPREAD[:0])], 0)
same("concat of NaN and -0", tn.bitcast(joined, "u32"), np.concatenate((SPREAD, y)).view(np.uint32))
same("concat last", tn.concat_of([t, tn.permuted(x), tn.sliced(x)], -1),
     np.concatenate((x, x, x), -1))
same("concat one", tn.concat_of([t], 0), x)
parts = [c.integers((1 + i % 3, 2), "i16") for i in range(40)]
same("concat many", tn.concat_of([tn.of(p) for p in parts], 0), np.concatenate(parts))
a, b = c.integers((2, 2), "i8"), c.integers((2, 3), "u16")
same("concat meets", tn.concat_of([tn.of(a), tn.of(b)], 1),
     np.concatenate((a.astype(np.int32), b.astype(np.int32)), 1))
kinds = ["u64", "i8", "f16"]
mixed = [c.some((2,), k) for k in kinds]
same("concat meets of the highest kind", tn.concat_of([tn.of(m) for m in mixed], 0),
     np.concatenate([m.astype(np.float16) for m in mixed]))
for axis in (0, 1, -1):
    same(f"stack {axis}", tn.stack_of([t, tn.sliced(x), t], axis), np.stack((x, x, x), axis))
same("stack weak", tn.stack_of([tn.int(1), tn.num(2.5)], 0), np.array([1, 2.5], np.float32))
c.refuse("concat", tn.concat_of([t, tn.of(x[:, :3])], 0), "ERR_SHAPE", "concat", "4x5x6", "4x3x6")
c.refuse("concat scalars", tn.concat_of([tn.int(1), tn.int(2)], 0), "ERR_SHAPE", "axis 0")
c.refuse("stack", tn.stack_of([t, tn.of(x[:, :3])], 0), "ERR_SHAPE", "stack", "4x3x6")

# ---- Repetition ----

same("tile", tn.tile(t, (2, 1, 3)), np.tile(x, (2, 1, 3)))
same("tile longer", tn.tile(t, (2, 1, 2, 1)), np.tile(x, (2, 1, 2, 1)))
same("tile shorter", tn.tile(t, (3,)), np.tile(x, 3))
same("tile none", tn.tile(t, (0, 1, 1)), np.tile(x, (0, 1, 1)))
same("repeat", tn.repeat(t, 1, 3), np.repeat(x, 3, 1))
same("repeat none", tn.repeat(t, -1, 0), np.repeat(x, 0, 2))
for shift in (0, 1, -2, 7, -13):
    same(f"roll {shift}", tn.roll(t, 1, shift), np.roll(x, shift, 1))
same("roll nothing", tn.roll(tn.of(x[:0]), 0, 3), x[:0])
c.refuse("repeat", tn.repeat(t, 0, -1), "ERR_SHAPE", "repeat")
c.refuse("tile", tn.tile(t, (1, 1, -1)), "ERR_SHAPE", "negative")

# ---- By index ----

for kind in INTEGERS:
    i = c.integers((2, 3), kind, -5 if kind[0] == "i" else 0, 4)
    same(f"take {kind}", tn.take(t, tn.of(i), 1), np.take(x, i.astype(np.int64), 1))
for axis in (0, 2):
    i = c.integers((3,), "i64", -4, 3)
    same(f"take axis {axis}", tn.take(tn.sliced(x), tn.of(i), axis), np.take(x, i, axis))
same("take one", tn.take(t, tn.int(-1), 0), x[-1])
same("take nothing", tn.take(t, tn.of(np.zeros((0,), np.int32)), 1), x[:, :0])
i = np.array([4, 5, -5, -6, 2**62, -2**62], np.int64)
e = np.zeros((4, 6, 6), np.int32)
e[:, 0], e[:, 2] = x[:, 4], x[:, 0]
same("take out of range", tn.take(t, tn.of(i), 1), e)
same("take u64 out of range", tn.take(t, tn.of(np.array([2**64 - 1, 1], np.uint64)), 1),
     np.stack([np.zeros((4, 6), np.int32), x[:, 1]], 1))

# ---- Selections, whose sizes are computed ----

for kind in INTEGERS:
    v = c.integers((3, 4, 2), kind, 0, 2)
    same(f"nonzero {kind}", tn.nonzero(tn.of(v)), np.argwhere(v))
v = np.array([[0.0, -0.0, np.nan], [np.inf, 1e-40, 0.0]], np.float32)
same("nonzero of floats", tn.nonzero(tn.of(v)), np.array([[0, 2], [1, 0], [1, 1]]))
same("nonzero of nothing", tn.nonzero(tn.of(x[:0])), np.zeros((0, 3), np.int64))
same("nonzero of zeros", tn.nonzero(tn.of(np.zeros((7, 9), bool))), np.zeros((0, 2), np.int64))
same("nonzero of a scalar", tn.nonzero(tn.of(np.array(5, np.int32))), np.zeros((1, 0), np.int64))
v = np.arange(100000) % 7 == 3
same("nonzero of a long vector", tn.nonzero(tn.of(v)), np.argwhere(v))
for axis, n in ((0, 4), (1, 5), (-1, 6), (1, 2), (1, 0)):
    v = np.arange(n) % 3 != 1
    same(f"compress axis {axis} by {n}", tn.compress(tn.sliced(x), tn.of(v), axis),
         np.compress(v, x, axis))
same("compress by nothing true", tn.compress(t, tn.of(np.zeros(5, bool)), 1), x[:, :0])
for shape in ((4, 5, 6), (5, 6), (4, 1, 6), (1,), ()):
    v = np.arange(int(np.prod(shape))).reshape(shape) % 4 != 2
    same(f"masked_select by {shape}", tn.masked_select(tn.sliced(x), tn.of(v)),
         x[np.broadcast_to(v, x.shape)])
c.refuse("compress", tn.compress(t, tn.of(np.zeros(7, bool)), 1), "ERR_SHAPE", "no longer than axis 1")
c.refuse("compress", tn.compress(t, t, 1), "ERR_DTYPE", "it must be a bool")

for kind in ("f16", "bool", "f64"):
    y = c.some((5, 3), kind)
    same(f"take of {kind}", tn.take(tn.of(y), tn.of(np.array([3, 0], np.uint8)), 0), y[[3, 0]])
for axis, n in ((0, 7), (1, 3), (-1, 6)):
    shape = list(x.shape)
    shape[axis] = n
    i = c.integers(shape, "i32", -x.shape[axis], x.shape[axis] - 1)
    e = np.take_along_axis(x, i.astype(np.int64) % x.shape[axis], axis)
    same(f"gather_elements {axis}", tn.gather_elements(t, tn.of(i), axis), e)
i = c.integers((2, 3, 4), "i64", 0, 4)
same("gather_elements smaller", tn.gather_elements(t, tn.of(i), 1),
     np.take_along_axis(x[:2, :, :4], i, 1))
same("gather_elements out of range",
     tn.gather_elements(tn.of(x[0]), tn.of(np.full((5, 6), 5, np.int32)), 0),
     np.zeros((5, 6), np.int32))
for kind in ("i32", "bool", "f16", "u64"):
    i = np.array([[0, 2], [-1, 7], [3, -4]], np.int8)
    e = (np.where(i < 0, i + 4, i)[..., None] == np.arange(4)).astype(dtype(kind))
    same(f"one_hot {kind}", tn.one_hot(tn.of(i), 4, kind), e)
c.refuse("take by floats", tn.take(t, tn.of(c.floats(3)), 0), "ERR_DTYPE", "f32")
c.refuse("take axis", tn.take(t, tn.int(0), 3), "ERR_SHAPE", "axis 3")
c.refuse("gather_elements", tn.gather_elements(t, tn.of(np.zeros((4, 5, 7), np.int32)), 0),
         "ERR_SHAPE", "4x5x7")
c.refuse("one_hot", tn.one_hot(tn.int(1), -3, "i32"), "ERR_SHAPE", "negative")
for k in (0, 1, -2, 9, -9):
    same(f"tril {k}", tn.tril(t, k), np.tril(x, k))
    same(f"triu {k}", tn.triu(tn.permuted(x), k), np.triu(x, k))
same("tril of NaN", tn.tril(tn.of(np.full((3, 3), np.nan, np.float32)), 0),
     np.where(np.tri(3, dtype=bool), np.nan, 0).astype(np.float32))
same("triu of bools", tn.triu(tn.of(np.ones((2, 3), bool)), 1), np.triu(np.ones((2, 3), bool), 1))
c.refuse("tril", tn.tril(tn.of(x[0, 0]), 0), "ERR_SHAPE", "tril")

# ---- Made from nothing ----

for kind in DTYPES:
    same(f"zeros {kind}", tn.zeros((2, 3), kind), np.zeros((2, 3), dtype(kind)))
    same(f"ones {kind}", tn.ones((3,), kind), np.ones(3, dtype(kind)))
    same(f"full {kind}", tn.full((2, 2), kind, 3.0), np.full((2, 2), 3, dtype(kind)))
    if kind != "bool":
        same(f"arange {kind}", tn.arange(2, 30, 3, kind), np.arange(2, 30, 3).astype(dtype(kind)))
    same(f"eye {kind}", tn.eye(3, 4, kind), np.eye(3, 4, dtype=dtype(kind)))
same("full saturates", tn.full((1,), "u8", 300.0), np.array([255], np.uint8))
same("full of nothing", tn.full((0, 2), "f32", 1.0), np.zeros((0, 2), np.float32))
same("full scalar", tn.full((), "i16", -3.7), np.int16(-3))
for start, stop, step in [(0, 5, 1), (5, 0, -2), (3, 3, 1), (5, 2, 1), (-4, 9, 4), (0, -7, -3)]:
    same(f"arange {start} {stop} {step}", tn.arange(start, stop, step, "i64"),
         np.arange(start, stop, step))
for kind, ends in (("i8", (-128, 127, 100)), ("u8", (250, 260, 3)), ("i16", (-30000, 30000, 10000)),
                   ("i32", (-2 * 10**9, 2 * 10**9, 10**9)), ("u32", (2**32 - 1, 5, -2**30)),
                   ("i64", (1 - 2**44, 2**44 - 1, 2**43)), ("u64", (3, -5, -2)),
                   ("f32", (2**24, 2**24 + 4, 1))):
    same(f"arange far {kind}", tn.arange(*ends, kind), np.arange(*ends).astype(dtype(kind)))
same("arange large", tn.arange(2**40, 2**40 + 3, 1, "f64"), np.arange(2**40, 2**40 + 3) * 1.0)
for kind in FLOATS:
    for start, stop, n in [(0, 1, 11), (-3, 5, 4), (2, 2, 3), (7, 9, 1), (1, 2, 0), (5, -5, 101)]:
        c.check(f"linspace {kind} {start} {stop} {n}", tn.linspace(start, stop, n, kind),
                np.linspace(start, stop, n).astype(dtype(kind)), 1,
                    terms=max(abs(start), abs(stop)))
same("linspace ends at stop", tn.slice(tn.linspace(0.1, 1.3, 38, "f64"), 0, -1, END, 1),
     np.array([1.3]))
c.refuse("arange step", tn.arange(0, 5, 0, "i32"), "ERR_ARGUMENT", "arange", "step")
c.refuse("arange of bools", tn.arange(0, 5, 1, "bool"), "ERR_DTYPE", "bool")
c.refuse("linspace of ints", tn.linspace(0.0, 5.0, 3, "i32"), "ERR_DTYPE", "i32")
c.refuse("full of strings", tn.full((2,), 8, 0.0), "ERR_DTYPE", "string")
c.refuse("negative size", tn.zeros((2, -1), "f32"), "ERR_SHAPE", "negative")

c.done(least=278)
