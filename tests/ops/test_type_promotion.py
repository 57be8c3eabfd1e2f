"""Tests how operands of operators meet: broadcasting of shapes, type promotion, operators of three
operands (where, clip, lerp), casts and bit casts."""

import math

import numpy as np

from binding import DTYPES, FLOATS, SIGNED, UNSIGNED, Cases, close, dtype

c = Cases()
tn = c.tn
np.seterr(all="ignore")

# ---- The comparison itself ----

for kind in FLOATS:
    x = np.array([1.5, 1e-30, 3e4, -0.25, 0]).astype(dtype(kind))
    off = np.nextafter(x, dtype(kind).type(9)).astype(np.float64)
    x = x.astype(np.float64)
    c.true(f"one ulp {kind}", not close(off, x, kind, 0, 0).any() and
           close(off, x, kind, 1, 0).all())
    c.true(f"three ulps {kind}", not close(x + 3 * (off - x), x, kind, 1, 0).any())
    c.true(f"of a sum {kind}", close(off, x, kind, 1, 1e4).all())
zeros, kinds = np.array([0.0, -0.0]), np.array([np.nan, np.inf, -np.inf, 1])
c.true("signs of zero", close(zeros, zeros, "f32", 4, 0).all() and
       not close(zeros, zeros[::-1], "f32", 4, 0).any())
c.true("what is no number", close(kinds, kinds, "f32", 0, 0).all() and
       not close(np.roll(kinds, 1), kinds, "f32", 4, 1e9).any())

# ---- Broadcasting, and operands that are views ----

for a, b in [((3, 1, 5), (4, 1)), ((), (2, 3)), ((1,), (0,)), ((2, 0, 3), (1, 3)), ((7,), (7,)),
             ((1, 1), (5, 6))]:
    x, y = c.floats(a), c.floats(b)
    c.check(f"add {a} {b}", tn.add(tn.of(x), tn.of(y)), x + y)
x, y = c.floats((6, 5)), c.floats((6, 5))
c.check("sub permuted", tn.sub(tn.permuted(x), tn.of(y)), x - y)
c.check("sub sliced", tn.sub(tn.sliced(x), tn.permuted(y)), x - y)
c.check("sub expanded", tn.sub(tn.expanded(x[0], 6), tn.sliced(y)), x[:1] - y)
c.check("exp sliced", tn.exp(tn.sliced(x)), np.exp(x.astype(np.float64)).astype(np.float32), 1)
c.check("sqrt of nothing", tn.sqrt(tn.of(c.floats((0, 3)))), np.zeros((0, 3), np.float32))

# ---- Types that meet ----

RANK = ["bool", *UNSIGNED, *SIGNED, "f16", "bf16", "f32", "f64"]


def promoted(a, b):
    if a == b:
        return a
    halves = {"f16", "bf16"}
    kinds = [0 if t == "bool" else 2 if t in FLOATS else 1 for t in (a, b)]
    if kinds[0] != kinds[1]:
        return a if kinds[0] > kinds[1] else b
    if {a, b} == halves:
        return "f32"
    if kinds[0] == 2:
        return max(a, b, key=lambda t: (dtype(t).itemsize, t))
    return np.promote_types(dtype(a), dtype(b)).name.replace("uint", "u").replace(
        "int", "i").replace("float", "f")


scalars = {t: tn.of(c.some((), t)) for t in RANK}
for a in RANK:
    for b in RANK:
        got = tn.add(scalars[a], scalars[b]).type[0]
        c.true(f"{a} meets {b}", got == dtype(promoted(a, b)), f"in {got}")
for a, b in [("u8", "i8"), ("u64", "i64"), ("i32", "f16"), ("f16", "bf16"), ("bool", "i16"),
             ("u32", "i8"), ("bool", "f64")]:
    x, y = c.some((4, 3), a), c.some(3, b)
    t = dtype(promoted(a, b))
    c.check(f"mul {a} {b}", tn.mul(tn.of(x), tn.of(y)), x.astype(t) * y.astype(t))
    c.check(f"lt {a} {b}", tn.lt(tn.of(x), tn.of(y)), x.astype(t) < y.astype(t))

for t in RANK:
    kind = 0 if t == "bool" else 2 if t in FLOATS else 1
    with_int, with_num = ("i64", t, t)[kind], ("f32", "f32", t)[kind]
    c.true(f"int with {t}", tn.add(scalars[t], tn.int(3)).type[0] == dtype(with_int))
    c.true(f"num with {t}", tn.mul(tn.num(0.5), scalars[t]).type[0] == dtype(with_num))
x = c.floats(5, "f64")
c.check("num keeps its digits", tn.mul(tn.of(x), tn.num(0.1)), x * 0.1)
c.check("weak sqrt", tn.mul(tn.of(x), tn.sqrt(tn.num(2))), x * np.sqrt(2.0))
c.check("weak sum", tn.add(tn.of(np.array([250], np.uint8)), tn.add(tn.int(2), tn.int(3))),
        np.array([255], np.uint8))
c.check("num alone", tn.num(0.1), np.float32(0.1))
c.check("int alone", tn.int(-7), np.int64(-7))
c.check("weak where", tn.where(tn.of(np.array([True, False])), tn.int(1), tn.num(0.5)),
        np.array([1, 0.5], np.float32))
c.refuse("300 in u8", tn.add(tn.of(np.array([1], np.uint8)), tn.int(300)), "ERR_DTYPE", "300", "u8")
c.refuse("-1 in u64", tn.add(tn.of(np.array([1], np.uint64)), tn.neg(tn.int(1))), "ERR_DTYPE", "-1")

# ---- Three operands ----

for kind in ("f32", "i8", "bool", "bf16", "u64"):
    x, y, k = c.some((4, 5), kind), c.some((5,), kind), c.some((4, 1), "bool")
    c.check(f"where {kind}", tn.where(tn.of(k), tn.of(x), tn.of(y)), np.where(k, x, y))
x, y = c.floats((4, 5)), c.floats((4, 5), "f64")
k = np.array([0, np.nan, -0.0, 2, 1], np.float32)
c.check("where float", tn.where(tn.of(k), tn.of(x), tn.of(y)), np.where(k != 0, x, y))
c.check("clip", tn.clip(tn.of(x), tn.num(-0.5), tn.of(np.float32(0.5))), np.clip(x, -0.5, 0.5))
c.check("clip low", tn.clip(tn.of(x), tn.of(x[:1] * 0), None), np.maximum(x, 0))
i = c.integers((3, 4), "i16")
c.check("clip high", tn.clip(tn.of(i), None, tn.int(100)), np.minimum(i, 100))
c.check("clip meets", tn.clip(tn.of(i), tn.of(np.array(-5, np.int64)), tn.num(9)),
        np.clip(i.astype(np.float32), -5, 9))
for kind in ("f32", "f64", "f16"):
    x, y = c.floats((4, 5), kind), c.floats((5,), kind)
    wide = x.astype(np.float64)
    c.check(f"lerp {kind}", tn.lerp(tn.of(x), tn.of(y), tn.num(0.25)),
            (wide + 0.25 * (y.astype(np.float64) - wide)).astype(dtype(kind)),
            terms=np.abs(wide) + np.abs(y.astype(np.float64)))

# ---- Conversions ----


def convert(x, kind):
    """Converts by truncation and clamping; NaN becomes 0."""
    t = dtype(kind)
    if kind == "bool":
        return x != 0
    if kind in FLOATS:
        return x.astype(t)
    if x.dtype.kind in "iub":
        return x.astype(t)
    info = np.iinfo(t)

    def one(v):
        if math.isnan(v):
            return 0
        return info.min if v <= info.min else info.max if v >= info.max else int(v)
    return np.array([one(float(v)) for v in x], t)


WIDE = np.array([0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.5, 128, 255.5, 256, 32768, 65535.9, 2**31 - 1,
                 2**31, 2**32, 1e10, 2.0**62, 2.0**63, 2.0**64, 1e30, -129, -32769, -2.0**31, -1e10,
                 -1e30, np.inf, -np.inf, np.nan, 65520, 1e-8, 3.0e38])
for to in DTYPES:
    for kind in ("f32", "f64"):
        x = WIDE.astype(dtype(kind))
        c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), convert(x, to))
    for kind in ("f16", "i32", "i64", "u64", "bool"):
        x = c.some(20, kind) if kind in FLOATS + ["bool"] else c.integers(20, kind)
        c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), convert(x, to))

# Every f16, and the f32 at and beside each of them and each tie between two, in vectors and a rest.
halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
singles = halves.astype(np.float32)
ties = (singles[:0x7bff] + singles[1:0x7c00]) / 2
near = np.concatenate([singles, ties, -ties, np.float32([65520, 1e-45, 3e38])])
near = np.concatenate([near, np.nextafter(near, np.float32(np.inf)),
                       np.nextafter(near, np.float32(-np.inf))])
for n in (1, 3, 21, near.size):
    c.check(f"cast {n} f16", tn.cast(tn.of(halves[-n:]), "f32"), singles[-n:])
    c.check(f"cast {n} f32 to f16", tn.cast(tn.of(near[-n:]), "f16"), near[-n:].astype(np.float16))
c.check("double all f16", tn.add(tn.of(halves), tn.of(halves)), halves + halves)

c.check("cast num", tn.cast(tn.num(0.1), "f64"), np.float64(0.1))
c.check("cast weak int", tn.cast(tn.int(300), "u8"), np.uint8(44))
for a, b in [("f32", "i32"), ("u64", "f64"), ("f16", "bf16"), ("bf16", "u16"), ("i8", "u8")]:
    x = c.floats(9, a) if a in FLOATS else c.integers(9, a)
    back = tn.bitcast(tn.bitcast(tn.of(x), b), a)
    c.check(f"bitcast {a} {b}", back, x)
c.check("bitcast f32 u32", tn.bitcast(tn.of(np.array([1, -0.0], np.float32)), "u32"),
        np.array([0x3F800000, 0x80000000], np.uint32))
c.check("bitcast u8 bool", tn.bitcast(tn.of(np.array([0, 1, 7], np.uint8)), "bool"),
        np.array([False, True, True]))
c.refuse("bitcast f32 i64", tn.bitcast(tn.of(c.floats(2)), "i64"), "ERR_DTYPE", "bitcast", "size")
c.refuse("cast to string", tn.cast(tn.of(c.floats(2)), 8), "ERR_DTYPE", "string")
c.refuse("shapes", tn.add(tn.of(c.floats((2, 3))), tn.of(c.floats((2, 4)))), "ERR_SHAPE", "add",
         "2x3", "2x4")
c.done(least=355)
