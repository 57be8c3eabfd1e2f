"""Tests storage types: their conversions against ml_dtypes and against ONNX's saturation, and what
is moved, computed and refused."""

import ml_dtypes
import numpy as np
from onnx.numpy_helper import saturate_cast

from binding import DTYPES, STORAGE, Cases, dtype

c = Cases()
tn = c.tn
np.seterr(all="ignore")

SMALL_FLOATS = [k for k in STORAGE if k[0] == "f"]
SCALED = [k for k in SMALL_FLOATS if k != "f8e8m0"]
SMALL_INTEGERS = [k for k in STORAGE if k[0] != "f"]
PATTERNS = {k: np.arange(2 ** int(ml_dtypes.finfo(dtype(k)).bits if k in SMALL_FLOATS
                                  else ml_dtypes.iinfo(dtype(k)).bits), dtype=np.uint8).view(dtype(k))
            for k in STORAGE}

# ---- To other types: every pattern ----

for kind, x in PATTERNS.items():
    wide = x.astype(np.float32)
    for to in ("f32", "f64", "f16", "bf16"):
        c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), wide.astype(dtype(to)))
    c.check(f"cast {kind} to bool", tn.cast(tn.of(x), "bool"), wide != 0)
    inside = np.where(np.abs(wide) < 2**31, wide, 0).astype(np.float32)
    kept = x[np.abs(wide) < 2**31]
    c.check(f"cast {kind} to i32", tn.cast(tn.of(kept), "i32"),
            inside[np.abs(wide) < 2**31].astype(np.int32))
    if kind in SMALL_INTEGERS:
        for to in ("i8", "u8", "i64", "u32"):
            c.check(f"cast {kind} to {to}", tn.cast(tn.of(x), to), x.astype(np.int8).astype(dtype(to)))

# ---- From f32: every value, the midpoints, the numbers next to them, and random ones ----

for kind in SCALED:
    v = np.unique(np.abs(PATTERNS[kind].astype(np.float32)))
    v = v[np.isfinite(v)]
    v = np.concatenate([v, (v[1:] + v[:-1]) / 2, v[-1:] * 1.0625, v[-1:] * 2])
    v = np.concatenate([v, np.nextafter(v, np.float32(np.inf)), np.nextafter(v, np.float32(0))])
    r = c.rng.integers(0, 2**32, 4000, np.uint32).view(np.float32)
    near = c.floats(4000, "f32", float(v.max()) / 3)
    x = np.concatenate([v, -v, r, near, [np.inf, -np.inf]]).astype(np.float32)
    x = x[~np.isnan(x)]
    for given in ("f32", "f64", "f16", "bf16"):
        y = x.astype(dtype(given))
        y = y[np.isfinite(y.astype(np.float32))]
        c.check(f"cast {given} to {kind}", tn.cast(tn.of(y), kind),
                saturate_cast(y.astype(np.float32), dtype(kind)))
    c.check(f"cast infinities to {kind}", tn.cast(tn.of(x[-2:]), kind),
            saturate_cast(x[-2:], dtype(kind)))
    if kind != "f4e2m1":
        c.check(f"cast NaN to {kind}", tn.cast(tn.of(np.array([np.nan], np.float32)), kind),
                np.array([np.nan], dtype(kind)))
    for given in ("i8", "u8", "i32", "i64", "u64"):
        n = np.concatenate([np.arange(-40, 600), [448, 449, 464, 465, 2**31 - 1, -2**31]])
        info = np.iinfo(dtype(given))
        n = n[(n >= info.min) & (n <= info.max)].astype(dtype(given))
        c.check(f"cast {given} to {kind}", tn.cast(tn.of(n), kind),
                saturate_cast(n.astype(np.float32), dtype(kind)))
powers = np.array([1, 2, 2**-127, 2**127, 0.75, 3, 0.124, 0, -1, np.nan], np.float32)
c.check("cast f32 to f8e8m0", tn.cast(tn.of(powers), "f8e8m0"),
        np.array([127, 128, 0, 254, 127, 129, 124, 0, 255, 255], np.uint8).view(dtype("f8e8m0")))
for kind in SMALL_INTEGERS:
    info = ml_dtypes.iinfo(dtype(kind))
    n = np.arange(-300, 300)
    low = (n - int(info.min)) % (int(info.max) - int(info.min) + 1) + int(info.min)
    c.check(f"cast i32 to {kind}", tn.cast(tn.of(n.astype(np.int32)), kind), low.astype(dtype(kind)))
    x = np.array([0, 0.9, -0.9, 1.5, -1.5, 7.9, 8, -8.5, 1e9, -1e9, np.inf, -np.inf], np.float32)
    e = np.clip(np.trunc(x), int(info.min), int(info.max)).astype(np.int8).astype(dtype(kind))
    c.check(f"cast f32 to {kind}", tn.cast(tn.of(x), kind), e)

# ---- Moved ----

for kind in STORAGE:
    x = PATTERNS[kind][c.rng.integers(0, PATTERNS[kind].size, 60)].reshape(3, 4, 5)
    bits = x.view(np.uint8)
    c.check(f"permute {kind}", tn.permuted(x), x)
    c.check(f"slice {kind}", tn.sliced(x), x)
    c.check(f"concat {kind}", tn.concat_of([tn.of(x), tn.of(x[:1])], 0), np.concatenate((x, x[:1])))
    c.check(f"pad {kind}", tn.pad(tn.of(x), (1, 0, 0), (0, 2, 0), 0, 1.0),
            np.pad(bits, ((1, 0), (0, 2), (0, 0)),
                   constant_values=np.ones(1, dtype(kind)).view(np.uint8)[0]).view(dtype(kind)))
    i = np.array([2, 0, 2, 1], np.int64)
    c.check(f"take {kind}", tn.take(tn.of(x), tn.of(i), 0), x[i])
    mask = c.rng.integers(0, 2, x.shape).astype(bool)
    c.check(f"where {kind}", tn.where(tn.of(mask), tn.of(x), tn.of(x[::-1])),
            np.where(mask, bits, bits[::-1]).view(dtype(kind)))
    c.check(f"full {kind}", tn.full((2, 2), kind, 1.0), np.ones((2, 2), dtype(kind)))
    if PATTERNS[kind].size == 256:
        c.check(f"bitcast {kind}", tn.bitcast(tn.of(x), "u8"), bits)
        c.check(f"bitcast to {kind}", tn.bitcast(tn.of(bits), kind), x)
    else:
        c.refuse(f"bitcast {kind}", tn.bitcast(tn.of(x), "u8"), "ERR_DTYPE", "bits", kind)
c.check("bitcast u4 i4", tn.bitcast(tn.of(PATTERNS["u4"]), "i4"), PATTERNS["u4"].view(dtype("i4")))

# ---- Computed, in f32 or 8 bits, and rounded ----

for kind in SCALED:
    x, y = (c.floats(300, "f32").astype(dtype(kind)) for _ in range(2))
    a, b = x.astype(np.float32), y.astype(np.float32)
    for name, e in (("add", a + b), ("mul", a * b), ("sub", a - b), ("maximum", np.maximum(a, b))):
        c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), tn.of(y)), saturate_cast(e, dtype(kind)))
    c.check(f"lt {kind}", tn.lt(tn.of(x), tn.of(y)), a < b)
    c.check(f"neg {kind}", tn.neg(tn.of(x)), saturate_cast(-a, dtype(kind)))
    c.check(f"sqrt {kind}", tn.sqrt(tn.abs(tn.of(x))), saturate_cast(np.sqrt(np.abs(a)), dtype(kind)))
    c.check(f"max {kind}", tn.max(tn.of(x), (0,), False), a.max().astype(dtype(kind)))
    c.check(f"argmax {kind}", tn.argmax(tn.of(x), 0, False), np.int64(a.argmax()))
    c.check(f"times a number {kind}", tn.mul(tn.of(x), tn.num(0.5)), saturate_cast(a / 2, dtype(kind)))
    m, n = x[:299].reshape(13, 23)[:7], y[:299].reshape(23, 13)[:, :5]
    e = m.astype(np.float32) @ n.astype(np.float32)
    c.check(f"matmul_as {kind}", tn.matmul_as(tn.of(m), tn.of(n), "f32"), e, terms=23)
for kind in SMALL_INTEGERS:
    x, y = (c.rng.permutation(np.tile(PATTERNS[kind], 8)) for _ in range(2))
    a, b = x.astype(np.int32), y.astype(np.int32)
    wrap = lambda v: (v.astype(np.int32) & (PATTERNS[kind].size - 1)).astype(np.uint8).view(dtype(kind))
    for name, e in (("add", a + b), ("mul", a * b), ("sub", a - b), ("minimum", np.minimum(a, b)),
                    ("bitwise_xor", a ^ b)):
        c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), tn.of(y)), wrap(e))
    c.check(f"eq {kind}", tn.eq(tn.of(x), tn.of(y)), a == b)
    c.check(f"sum {kind}", tn.sum(tn.of(x), (0,), False),
            a.sum().astype(np.int64 if kind[0] == "i" else np.uint64))
    c.check(f"cumsum {kind}", tn.cast(tn.cumsum(tn.of(x), 0), "i64"), a.cumsum().astype(np.int64))
c.check("a number in range", tn.add(tn.of(PATTERNS["i4"]), tn.int(7)),
        ((np.arange(16) + 7) & 15).astype(np.uint8).view(dtype("i4")))
c.refuse("a number out of range", tn.add(tn.of(PATTERNS["i4"]), tn.int(8)), "ERR_DTYPE", "i4", "8")

# ---- Refused ----

x = PATTERNS["f8e5m2"]
for kind in DTYPES:
    c.refuse(f"f8e5m2 with {kind}", tn.add(tn.of(x[:1]), tn.of(np.zeros(1, dtype(kind)))), "ERR_DTYPE",
             "f8e5m2", kind, "cast")
c.refuse("f8e5m2 with f8e4m3fn", tn.add(tn.of(x[:1]), tn.of(PATTERNS["f8e4m3fn"][:1])), "ERR_DTYPE", "cast")
c.refuse("bits of floats", tn.bitwise_not(tn.of(x)), "ERR_DTYPE", "f8e5m2")
c.done(least=330)
