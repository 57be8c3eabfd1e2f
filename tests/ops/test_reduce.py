"""Tests reductions, running reductions and normalisations against NumPy, computed in f64."""

import warnings

import numpy as np

from binding import FLOATS, INTEGERS, REDUCE, UNSIGNED, Cases, dtype

c = Cases()
tn = c.tn
np.seterr(all="ignore")
warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of empty means


def logsumexp(x, axis, keepdims):
    m = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    m = np.where(np.isinf(m), 0, m)
    s = np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m
    return s if keepdims else np.squeeze(s, axis)


REDUCE_OF = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean,
             "logsumexp": logsumexp, "any": np.any, "all": np.all}


def sum_type(kind):
    return kind if kind in FLOATS else "u64" if kind in UNSIGNED else "i64"


def result_type(rule, kind):
    return {"SUM": sum_type(kind), "NUMBER": kind, "TEST": "bool",
            "FLOAT": kind if kind in FLOATS else "f32"}[rule]


def every(axes, rank):
    """Returns axes in NumPy's form."""
    return tuple(range(rank)) if axes is None else tuple(axes)


def bounds(name, wide, of_magnitudes):
    """Returns the error bound of a result in ulps, and the sum of terms that it refers to."""
    if name in ("sum", "mean"):
        return 4, of_magnitudes(REDUCE_OF[name])
    if name == "logsumexp":
        return 2, of_magnitudes(np.max) if wide.size else 0
    return wide.size if name == "prod" else 0, 0


def reduce(name, rule, x, axes, keepdims, label="", tensor=None):
    kind = x.dtype.name if x.dtype.name == "bool" else None
    kind = kind or next(k for k in [*FLOATS, *INTEGERS] if dtype(k) == x.dtype)
    wide = x
    if kind in FLOATS or rule == "FLOAT":
        wide = x.astype(np.float64)
    elif rule == "SUM":
        wide = x.astype(dtype(sum_type(kind)))
    over = dict(axis=every(axes, x.ndim), keepdims=keepdims)
    e = REDUCE_OF[name](wide, **over)
    e = np.asarray(e).astype(dtype(result_type(rule, kind)))
    t = tensor or tn.of(x)
    c.check(f"{name} {kind}{list(x.shape)} {axes} {label}",
            getattr(tn, name)(t, axes, keepdims), e,
            *bounds(name, wide, lambda of: of(np.abs(wide), **over)))


def values(name, shape, kind):
    if name == "prod" and kind in FLOATS:
        return c.rng.uniform(0.5, 1.5, shape).astype(dtype(kind))
    if name in ("any", "all"):
        return (c.rng.uniform(0, 1, shape) < (0.2 if name == "any" else 0.9)).astype(dtype(kind))
    if name in ("max", "min") and kind in INTEGERS:
        return c.integers(shape, kind)
    return c.some(shape, kind)


for i, (name, rule) in enumerate(REDUCE):
    for axes, keepdims in [([1], False), (None, True), ([0, -1], False), ([], False), ([2], True)]:
        reduce(name, rule, values(name, (5, 7, 33), "f32"), axes, keepdims)
    kinds = [*FLOATS[1:], "u8", "i16", "i64", "u64", "bool"]
    for kind in kinds:
        if not (rule == "NUMBER" and kind == "bool"):
            reduce(name, rule, values(name, (3, 37), kind), [1], False)
    x = values(name, (6, 9), "f32")
    reduce(name, rule, x, [0], False, "permuted", tn.permuted(x))
    reduce(name, rule, x, [1], False, "sliced", tn.sliced(x))
    reduce(name, rule, np.broadcast_to(x[0], (4, 9)), [0], False, "expanded", tn.expanded(x[0], 4))
    reduce(name, rule, values(name, (1, 1), "f32"), [0], False)
    reduce(name, rule, values(name, (0, 4), "f32"), [1], False)
    if rule == "NUMBER":
        c.refuse(f"{name} of nothing", getattr(tn, name)(tn.of(c.floats((0, 4))), [0], False),
                 "ERR_SHAPE", name)
        c.refuse(f"{name} of bools", getattr(tn, name)(tn.of(c.some(3, "bool")), None, False),
                 "ERR_DTYPE", "bool")
    else:
        reduce(name, rule, values(name, (0, 4), "f32"), [0], False)
    if name not in ("any", "all"):
        x = values(name, (4, 5), "f32")
        x[1, 2], x[2, 0], x[3, 3] = np.nan, np.inf, -np.inf
        reduce(name, rule, x, [1], False, "with NaN")

for kind in FLOATS:
    x = tn.of(np.full((1, 2, 3), -0.0, dtype(kind)))
    w = tn.of(np.ones((1, 2, 1), dtype(kind)))
    for label, y in [("sum", tn.sum(x, [2], True)), ("mean", tn.mean(x, [2], True)),
                     ("cumsum", tn.cumsum(x, 2)), ("avg_pool", tn.avg_pool(x, None)),
                     ("matmul", tn.matmul(x, tn.permute(x, [0, 2, 1]))),
                     ("conv", tn.conv(x, w, None, None))]:
        c.check(f"{label} of -0 {kind}", y, np.zeros(y.type[1], dtype(kind)))
    for name in ("max", "min", "prod"):
        c.check(f"{name} of -0 {kind}", getattr(tn, name)(x, [2], False),
                np.full((1, 2), -0.0, dtype(kind)))
x = np.full((2, 3), -np.inf, np.float32)
reduce("logsumexp", "FLOAT", x, [1], False, "all -inf")
reduce("logsumexp", "FLOAT", np.array([[1000, 1000.5], [-1e30, -1e30]], np.float32), [1], False)
reduce("sum", "SUM", np.full((1, 70000), 100, np.int8), [1], False, "past 8 bits")
reduce("sum", "SUM", np.ones((2, 5000), np.float16), [1], False, "past 11 bits")
reduce("mean", "FLOAT", np.full((1, 4096), 60000, np.float16), [1], False, "past f16")
reduce("sum", "SUM", c.floats((3, 100003)), [1], False, "long")

for kind in FLOATS + ["i32", "bool"]:
    x = c.some((4, 5, 6), kind)
    for axes, ddof, keepdims in [([1], 0, False), (None, 1, True), ([0, 2], 1, False),
                                 ([], 0, True)]:
        for name, of in (("var", np.var), ("std", np.std)):
            e = of(x.astype(np.float64), axis=every(axes, 3), ddof=ddof, keepdims=keepdims)
            e = np.asarray(e).astype(dtype(kind if kind in FLOATS else "f32"))
            c.check(f"{name} {kind} {axes}", getattr(tn, name)(tn.of(x), axes, ddof, keepdims), e,
                    ulps=8)
x = c.floats((3, 4)) + 1e4
c.check("var far from 0", tn.var(tn.of(x), [1], 0, False),  # the mean's error, squared
        np.var(x.astype(np.float64), axis=1).astype(np.float32), ulps=16)
c.check("var without freedom", tn.var(tn.of(x), [1], 4, False), np.full(3, np.nan, np.float32))
c.check("std of nothing", tn.std(tn.of(c.floats((2, 0))), [1], 0, True),
        np.full((2, 1), np.nan, np.float32))
c.refuse("ddof -1", tn.var(tn.of(x), None, -1, False), "ERR_ARGUMENT", "ddof")

# ---- Where the extreme is ----

for name, of in (("argmax", np.argmax), ("argmin", np.argmin)):
    for kind in FLOATS + ["i8", "u64"]:
        x = c.some((5, 17), kind)
        for axis, keepdims in ((0, False), (-1, True)):
            c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), axis, keepdims),
                    of(x.astype(np.float64), axis=axis, keepdims=keepdims).astype(np.int64))
    x = np.array([[1, np.nan, np.nan, 9], [-np.inf] * 4, [np.inf, np.inf, 1, 2], [3, 3, 3, 3]],
                 np.float32)
    c.check(f"{name} of NaN and equals", getattr(tn, name)(tn.of(x), 1, False),
            of(x, axis=1).astype(np.int64))
    y = c.integers((3, 4), "i64")
    c.check(f"{name} of large", getattr(tn, name)(tn.sliced(y), 1, False),
            of(y, axis=1).astype(np.int64))
    c.refuse(f"{name} of nothing", getattr(tn, name)(tn.of(c.floats((3, 0))), 1, False),
             "ERR_SHAPE", name)
    c.refuse(f"{name} without axis", getattr(tn, name)(tn.of(c.floats((3, 2))), 2, False),
             "ERR_SHAPE", "axis 2")

# ---- Running reductions ----

for name, of in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
    for kind in FLOATS + ["i8", "u16", "bool"]:
        x = values("prod" if name == "cumprod" else "sum", (3, 9), kind)
        wide = x.astype(np.float64 if kind in FLOATS else dtype(sum_type(kind)))
        for axis in (0, -1):
            terms = of(np.abs(wide), axis=axis)
            c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), axis),
                    of(wide, axis=axis).astype(dtype(sum_type(kind))), terms=terms)
    for n in (0, 1, 64, 65, 1000, 5000, 17001):
        x = c.some((2, n), "i32") | 1
        c.check(f"{name} of {n}", getattr(tn, name)(tn.of(x), 1), of(x.astype(np.int64), axis=1))
    x = np.array([1, np.inf, 2, -np.inf, np.nan, 3], np.float32)
    c.check(f"{name} of infinities", getattr(tn, name)(tn.of(x), 0), of(x))
for n in (100, 20001):
    x = np.full(n, 1e20, np.float32)
    x[0] = 0
    c.check(f"cumprod of {n} after 0", tn.cumprod(tn.of(x), 0), np.zeros(n, np.float32))
x = np.tile(np.array([1e-30, 1e20, 1e20, 1e-20], np.float32), 30)[:70]
with np.errstate(under="ignore"):
    c.check("cumprod of great and small", tn.cumprod(tn.of(x), 0), np.cumprod(x))
x = c.floats((2, 20000))
c.check("cumsum long", tn.cumsum(tn.of(x), 1),
        np.cumsum(x.astype(np.float64), 1).astype(np.float32),
        terms=np.cumsum(np.abs(x.astype(np.float64)), 1))
for shape, axis in (((16000,), 0), ((100000,), 0), ((3, 20001), 1), ((2, 16003, 3), 1), ((5, 67), 1)):
    x = c.some(shape, "i32")
    c.check(f"cumsum {shape}", tn.cumsum(tn.of(x), axis), np.cumsum(x.astype(np.int64), axis))
    for name, of in (("cummax", np.maximum), ("cummin", np.minimum)):
        c.check(f"{name} {shape}", getattr(tn, name)(tn.of(x), axis), of.accumulate(x, axis))
c.refuse("cumsum of a scalar", tn.cumsum(tn.num(1), 0), "ERR_SHAPE", "cumsum")

# ---- Softmax and normalisation ----


def softmax(x, axis):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x, axis):
    s = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return s - np.log(np.sum(np.exp(s), axis=axis, keepdims=True))


def softmax_bounds(name, x, axis):
    """Returns error bounds of softmax: x less the maximum is rounded, and its exponential is off by
    that; the logarithm is of 1 or more."""
    x = x.astype(np.float64)
    below = np.max(x, axis=axis, keepdims=True) - x
    below = np.where(np.isfinite(below), below, 0)
    return (4 + below, 0) if name == "softmax" else (4, np.maximum(below, 1))


for name, of in (("softmax", softmax), ("log_softmax", log_softmax)):
    for kind in FLOATS + ["i32"]:
        x = c.some((4, 33), kind)
        e = of(x.astype(np.float64), -1).astype(dtype(kind if kind in FLOATS else "f32"))
        c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), -1), e, *softmax_bounds(name, x, -1))
    for axis in (0, 1, 2):
        x = c.floats((3, 5, 4), scale=20)
        c.check(f"{name} axis {axis}", getattr(tn, name)(tn.of(x), axis),
                of(x.astype(np.float64), axis).astype(np.float32), *softmax_bounds(name, x, axis))
    x = c.floats((4, 6)) * 300
    x[0], x[1, 2], x[2, 3], x[3, 1] = -np.inf, -np.inf, np.inf, np.nan
    c.check(f"{name} of infinities", getattr(tn, name)(tn.of(x), 1),
            of(x.astype(np.float64), 1).astype(np.float32), *softmax_bounds(name, x, 1))
    c.check(f"{name} of nothing", getattr(tn, name)(tn.of(c.floats((2, 0))), 1),
            np.zeros((2, 0), np.float32))


def normalised(x, axes, eps):
    x = x.astype(np.float64)
    mean, var = np.mean(x, axis=axes, keepdims=True), np.var(x, axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def by_channel(v, rank):
    return v.astype(np.float64).reshape(-1, *[1] * (rank - 2))


for kind in FLOATS:
    x = c.floats((2, 6, 5, 3), kind) + dtype(kind).type(1)
    w, b = c.floats((6,), kind), c.floats((6,), kind)
    m, v = c.floats((6,), kind), (np.abs(c.floats((6,), "f64")) + 0.1).astype(dtype(kind))
    t = {n: tn.of(a) for n, a in dict(x=x, w=w, b=b, m=m, v=v).items()}
    W, B, M, V = (by_channel(a, 4) for a in (w, b, m, v))
    wide = x.astype(np.float64)
    lw, lb = c.floats((5, 3), kind), c.floats((3,), kind)
    e = normalised(x, (2, 3), 1e-5)
    c.check(f"layer_norm {kind}", tn.layer_norm(t["x"], tn.of(lw), tn.of(lb), 2, 1e-5),
            (e * lw.astype(np.float64) + lb.astype(np.float64)).astype(dtype(kind)), ulps=16,
            terms=1)
    c.check(f"layer_norm bare {kind}", tn.layer_norm(t["x"], None, None, -1, 1e-3),
            normalised(x, (3,), 1e-3).astype(dtype(kind)), ulps=16, terms=1)
    rms = wide / np.sqrt(np.mean(wide**2, axis=(3,), keepdims=True) + 1e-6)
    c.check(f"rms_norm {kind}", tn.rms_norm(t["x"], tn.of(lb), -1, 1e-6),
            (rms * lb.astype(np.float64)).astype(dtype(kind)), ulps=8)
    c.check(f"instance_norm {kind}", tn.instance_norm(t["x"], t["w"], t["b"], 1e-5),
            (e * W + B).astype(dtype(kind)), ulps=16, terms=1)
    g = normalised(x.reshape(2, 3, 2, 5, 3), (2, 3, 4), 1e-5).reshape(x.shape)
    c.check(f"group_norm {kind}", tn.group_norm(t["x"], t["w"], t["b"], 3, 1e-5),
            (g * W + B).astype(dtype(kind)), ulps=16, terms=1)
    bn = (wide - M) / np.sqrt(V + 1e-5)
    c.check(f"batch_norm {kind}",
            tn.batch_norm(t["x"], t["m"], t["v"], t["w"], t["b"], 1e-5),
            (bn * W + B).astype(dtype(kind)), ulps=16, terms=1)
    c.check(f"batch_norm bare {kind}", tn.batch_norm(t["x"], t["m"], t["v"], None, None, 1e-5),
            bn.astype(dtype(kind)), ulps=16, terms=1)

x, w = tn.of(c.floats((2, 6, 5))), tn.of(c.floats((4,)))
c.refuse("4 groups of 6", tn.group_norm(x, None, None, 4, 1e-5), "ERR_SHAPE", "4 groups", "6")
c.refuse("weight of 4 for 6", tn.group_norm(x, w, None, 3, 1e-5), "ERR_SHAPE", "weight", "6")
c.refuse("mean of 4 for 6", tn.batch_norm(x, w, w, None, None, 0), "ERR_SHAPE", "mean")
c.refuse("weight stretches x", tn.layer_norm(x, tn.of(c.floats((3, 1, 5))), None, -1, 0),
         "ERR_SHAPE", "weight")
c.refuse("vector", tn.instance_norm(w, None, None, 1e-5), "ERR_SHAPE", "instance_norm")

c.done(least=380)
