"""Tests operators that write where indices say (scatter, scatter_nd, bincount), running maxima, and
those of order (sort, argsort, topk, searchsorted), in every type, against NumPy."""

import ctypes

import numpy as np

from binding import DTYPES, FLOATS, INTEGERS, STORAGE, Cases, Tensor, dtype

c = Cases()
tn = c.tn
np.seterr(all="ignore")
NONE, ADD, MUL, MIN, MAX = range(5)


def topk(x, k, axis, largest):
    out = (ctypes.c_void_p * 2)()
    tn.topk(x, k, axis, largest, ctypes.addressof(out))
    return [Tensor(tn, out[i]) for i in range(2)]


def unique(x, axis, is_sorted=True):
    out = (ctypes.c_void_p * 4)()
    tn.unique(x, axis, is_sorted, ctypes.addressof(out))
    return [Tensor(tn, out[i]) for i in range(4)]


# ---- Scatters ----

def combine(reduction, kind, a, b):
    if kind == "bool":
        return {NONE: b, ADD: a | b, MAX: a | b, MUL: a & b, MIN: a & b}[reduction]
    if reduction in (MIN, MAX):
        return (np.minimum if reduction == MIN else np.maximum)(a, b)
    return {NONE: b, ADD: a + b, MUL: a * b}[reduction]


def wide(x, kind):
    return x.astype(np.float32 if kind in ("f16", "bf16") else x.dtype)


def scatter(x, index, updates, axis, reduction, kind):
    y = wide(x, kind).copy()
    updates = np.broadcast_to(wide(updates, kind), index.shape)
    for at in np.ndindex(index.shape):
        to = list(at)
        to[axis] = int(index[at])
        n = x.shape[axis]
        if -n <= to[axis] < n:
            y[tuple(to)] = combine(reduction, kind, y[tuple(to)], updates[at])
    return y.astype(x.dtype)


def scatter_nd(x, index, updates, reduction, kind):
    y = wide(x, kind).copy()
    k = index.shape[-1]
    updates = np.broadcast_to(wide(updates, kind), index.shape[:-1] + x.shape[k:])
    for at in np.ndindex(index.shape[:-1]):
        to = tuple(int(i) for i in index[at])
        if all(-n <= i < n for i, n in zip(to, x.shape)):
            y[to] = combine(reduction, kind, y[to], updates[at])
    return y.astype(x.dtype)


for kind in DTYPES:
    for reduction in (NONE, ADD, MUL, MIN, MAX):
        x, u = c.some((4, 5, 6), kind), c.some((3, 7, 6), kind)
        index = c.rng.integers(-5, 5, (3, 7, 6))
        c.check(f"scatter {kind} {reduction}",
                tn.scatter(tn.of(x), tn.of(index), tn.of(u), 1, reduction),
                scatter(x, index, u, 1, reduction, kind))
        index, u = c.rng.integers(-4, 4, (5, 9, 2)), c.some((5, 9, 6), kind)
        c.check(f"scatter_nd {kind} {reduction}",
                tn.scatter_nd(tn.of(x), tn.of(index), tn.of(u), reduction),
                scatter_nd(x, index, u, reduction, kind))
for kind in STORAGE:
    x, u = (c.some(n, "f32").astype(dtype(kind)) for n in (9, 5))
    index = np.array([3, 3, 0, -1, 3])
    c.check(f"scatter {kind}", tn.scatter(tn.of(x), tn.of(index), tn.of(u), 0, NONE),
            scatter(x, index, u, 0, NONE, kind))

x, u = c.some((6, 4), "i32"), c.some((6, 4), "i32")
index = np.array([[0, 5, -6, 6], [-7, 9, 2, 2], [2**40, -2**40, 1, 1]])
for reduction in (NONE, ADD):
    c.check(f"scatter out of range {reduction}",
            tn.scatter(tn.of(x), tn.of(index), tn.of(u[:3]), 0, reduction),
            scatter(x, index, u[:3], 0, reduction, "i32"))
for kind in ("u8", "i16", "u64"):
    i = (np.abs(index) % 6).astype(dtype(kind))
    c.check(f"scatter at {kind}", tn.scatter(tn.of(x), tn.of(i), tn.of(u[:3]), -2, ADD),
            scatter(x, i, u[:3], 0, ADD, "i32"))
c.check("scatter of a number", tn.scatter(tn.of(x), tn.of(index), tn.int(1), 0, ADD),
        scatter(x, index, np.int32(1), 0, ADD, "i32"))
c.check("scatter of a row", tn.scatter(tn.of(x), tn.of(index), tn.of(u[0]), 0, NONE),
        scatter(x, index, u[0], 0, NONE, "i32"))
c.check("scatter promotes", tn.scatter(tn.of(x), tn.of(index), tn.of(u[:3].astype(np.float32)), 0,
                                       ADD), scatter(x.astype(np.float32), index, u[:3], 0, ADD, "f32"))
c.check("scatter_nd of a number", tn.scatter_nd(tn.of(x), tn.of(index[:, :1]), tn.int(7), NONE),
        scatter_nd(x, index[:, :1], np.int32(7), NONE, "i32"))
c.check("scatter_nd of everything", tn.scatter_nd(tn.of(x), tn.of(np.zeros((2, 0), np.int64)),
                                                  tn.of(np.stack([x, u])), ADD), x + x + u)
c.check("scatter nothing", tn.scatter(tn.of(x), tn.of(index[:0]), tn.of(u[:0]), 0, ADD), x)
c.check("scatter into nothing", tn.scatter(tn.of(x[:0]), tn.of(index), tn.of(u[:3]), 0, ADD), x[:0])
ones = np.ones(70000, np.float16)
c.check("scatter past f16", tn.scatter(tn.of(np.zeros(2, np.float16)),
                                       tn.of(np.zeros(3000, np.int64)), tn.of(ones[:3000]), 0, ADD),
        np.array([3000, 0], np.float16))
order = c.rng.integers(0, 50, 5000)
c.check("the last update stays", tn.scatter(tn.of(np.full(64, -1)), tn.of(order),
                                            tn.of(np.arange(5000)), 0, NONE),
        scatter(np.full(64, -1), order, np.arange(5000), 0, NONE, "i64"))
t, i, v = tn.of(x), tn.of(index), tn.of(u[:3])
for label, tensor, status, words in [
        ("scatter axis", tn.scatter(t, i, v, 2, NONE), "ERR_SHAPE", ["scatter", "axis 2"]),
        ("scatter rank", tn.scatter(t, tn.of(index[0]), v, 0, NONE), "ERR_SHAPE", ["ranks"]),
        ("scatter updates", tn.scatter(t, i, tn.of(u[:2]), 0, NONE), "ERR_SHAPE", ["2x4", "3x4"]),
        ("scatter index", tn.scatter(t, tn.of(x.astype(np.float32)), v, 0, NONE), "ERR_DTYPE",
         ["f32"]),
        ("scatter reduction", tn.scatter(t, i, v, 0, 5), "ERR_ARGUMENT", ["tn_reduction"]),
        ("scatter_nd index", tn.scatter_nd(t, tn.of(np.zeros((2, 3), np.int64)), v, NONE),
         "ERR_SHAPE", ["2x3", "at most 2 axes"]),
        ("scatter_nd updates", tn.scatter_nd(t, i, tn.of(u[:2]), NONE), "ERR_SHAPE", [])]:
    c.refuse(label, tensor, status, *words)

# ---- Counts ----

for kind in INTEGERS:
    x = c.integers((7, 30), kind, -3, 12)
    inside = x[(x >= 0) & (x < 9)].astype(np.int64)
    c.check(f"bincount {kind}", tn.bincount(tn.of(x), None, 9), np.bincount(inside, minlength=9))
x = c.integers((7, 30), "i32", -3, 12)
kept = (x >= 0) & (x < 9)
for kind in FLOATS + ["i8", "u16", "bool"]:
    w = np.ones((7, 30), dtype(kind)) if kind in ("f16", "bf16") else c.some((7, 30), kind)
    of = w if kind in FLOATS else w.astype(np.uint64 if kind == "u16" else np.int64)
    e = np.zeros(9, np.float64 if kind in FLOATS else of.dtype)
    np.add.at(e, x[kept], of[kept].astype(e.dtype))
    terms = np.zeros(9)
    np.add.at(terms, x[kept], np.abs(w[kept].astype(np.float64)))
    c.check(f"bincount of {kind}", tn.bincount(tn.of(x), tn.of(w), 9),
            e.astype(dtype(kind) if kind in FLOATS else of.dtype), terms=terms)
c.check("bincount of a number", tn.bincount(tn.of(x), tn.int(3), 9),
        3 * np.bincount(x[kept], minlength=9))
c.check("bincount of nothing", tn.bincount(tn.of(x[:0]), None, 3), np.zeros(3, np.int64))
c.check("bincount of length 0", tn.bincount(tn.of(x), None, 0), np.zeros(0, np.int64))
c.check("bincount of u64", tn.bincount(tn.of(np.array([2**64 - 1, 1], np.uint64)), None, 3),
        np.array([0, 1, 0]))
c.refuse("bincount of f32", tn.bincount(tn.num(1.5), None, 3), "ERR_DTYPE", "bincount")
c.refuse("bincount weights", tn.bincount(tn.of(x), tn.of(np.ones(7, np.float32)), 3), "ERR_SHAPE",
         "7x30")
c.refuse("bincount length", tn.bincount(tn.of(x), None, -1), "ERR_SHAPE", "the length, -1, is")

# ---- Running maxima ----

for name, of in (("cummax", np.maximum), ("cummin", np.minimum)):
    for kind in FLOATS + INTEGERS:
        x = c.some((3, 40), kind)
        for axis in (0, -1):
            c.check(f"{name} {kind}", getattr(tn, name)(tn.of(x), axis),
                    of.accumulate(x, axis).astype(dtype(kind)))
    x = c.floats((2, 20000))
    x[0, 11000] = np.nan
    c.check(f"{name} long", getattr(tn, name)(tn.of(x), 1), of.accumulate(x, 1))
    x = np.array([[-np.inf, np.inf, 1]], np.float32)
    c.check(f"{name} of infinities", getattr(tn, name)(tn.of(x), 1), of.accumulate(x, 1))
    c.refuse(f"{name} of bools", getattr(tn, name)(tn.of(np.array([True])), 0), "ERR_DTYPE", name)
    c.refuse(f"{name} axis", getattr(tn, name)(tn.num(1), 0), "ERR_SHAPE", name)

# ---- Order ----


def with_specials(shape, kind):
    """Returns elements with many equal ones and, of floats, NaNs of either sign, zeros and
    infinities."""
    x = c.some(shape, kind) if kind != "bool" else c.rng.integers(0, 2, shape).astype(bool)
    if kind in INTEGERS:
        info = np.iinfo(dtype(kind))
        extremes = np.array([info.min, info.max], dtype(kind))
        x = np.where(c.rng.random(shape) < 0.2, c.rng.choice(extremes, shape), x)
    if kind in FLOATS:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-7]).astype(dtype(kind))
        x = np.where(c.rng.random(shape) < 0.4, c.rng.choice(special, shape), x)
    return x


def order(x, axis, descending):
    """Returns the indices of a stable sort where NaNs are the greatest."""
    key = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    if x.dtype.kind in "iub":
        key = np.unique(key, return_inverse=True)[1].reshape(x.shape)
    else:
        key = np.where(np.isnan(key), np.inf, key), np.isnan(key)
        key = np.unique(np.where(key[1], 0, key[0]), return_inverse=True)[1].reshape(x.shape)
        key = np.where(np.isnan(x.astype(np.float64)), x.size, key)
    return np.argsort(-key if descending else key, axis=axis, kind="stable")


def elements(x, axis, descending):
    """Returns sorted elements, where -0 comes before 0."""
    y = np.take_along_axis(x, order(x, axis, descending), axis)
    if x.dtype.kind in "iub":
        return y
    zeros = (y == 0)
    negative = np.sum((x == 0) & np.signbit(x), axis=axis, keepdims=True)
    rank = np.cumsum(zeros, axis=axis)
    n = np.sum(zeros, axis=axis, keepdims=True)
    is_negative = (rank > n - negative) if descending else (rank <= negative)
    return np.where(zeros, np.where(is_negative, -0.0, 0.0).astype(x.dtype), y)


for kind in DTYPES:
    for shape, axis in (((3, 40), -1), ((30, 4), 0), ((2, 300, 3), 1)):
        for descending in (False, True):
            x = with_specials(shape, kind)
            label = f"{kind} {shape} {descending}"
            c.check(f"sort {label}", tn.sort(tn.of(x), axis, descending),
                    elements(x, axis, descending))
            c.check(f"argsort {label}", tn.argsort(tn.of(x), axis, descending),
                    order(x, axis, descending))
for kind in STORAGE:
    x = c.rng.integers(0, 16, 100).astype(np.float32).astype(dtype(kind))
    c.check(f"sort {kind}", tn.sort(tn.of(x), 0, False),
            np.sort(x.astype(np.float32)).astype(dtype(kind)))
for n in (0, 1, 2, 63, 64, 65, 128, 129, 1000, 5000):
    x = c.integers(n, "i32", -50, 50) if n < 5000 else c.integers(n, "i32")
    for descending in (False, True):
        c.check(f"sort of {n} {descending}", tn.sort(tn.of(x), 0, descending),
                elements(x, 0, descending))
        c.check(f"argsort of {n} {descending}", tn.argsort(tn.of(x), 0, descending),
                order(x, 0, descending))
x = c.floats((0, 100))
c.check("sort no rows", tn.sort(tn.of(x), 1, False), x)
x = c.floats((70, 90))
c.check("sort permuted", tn.sort(tn.permuted(x), 1, False), np.sort(x, 1))
c.check("sort sliced", tn.sort(tn.sliced(x), 0, True), -np.sort(-x, 0))
c.check("sort of a sort", tn.sort(tn.sort(tn.of(x), 0, False), 1, False), np.sort(np.sort(x, 0), 1))
c.check("take of argsort", tn.gather_elements(tn.of(x), tn.argsort(tn.of(x), 1, False), 1),
        np.sort(x, 1))
c.check("sort of a number", tn.sort(tn.unsqueeze(tn.num(2.5), (0,)), 0, False),
        np.array([2.5], np.float32))
c.refuse("sort of a scalar", tn.sort(tn.num(1), 0, False), "ERR_SHAPE", "sort")
c.refuse("argsort axis", tn.argsort(tn.of(x), 2, False), "ERR_SHAPE", "argsort", "axis 2", "2 axes")

# ---- Top k ----

for kind in DTYPES:
    for shape, axis, k in (((3, 40), 1, 5), ((300, 2), 0, 3), ((2, 1500), 1, 400)):
        for largest in (False, True):
            x = with_specials(shape, kind)
            index = np.take(order(x, axis, largest), np.arange(k), axis)
            values, indices = topk(tn.of(x), k, axis, largest)
            label = f"topk {kind} {shape} {largest}"
            c.check(label, values, np.take_along_axis(x, index, axis))
            c.check(f"{label} indices", indices, index)
x = c.floats(20000)
for k in (0, 1, 16, 300, 20000):
    values, indices = topk(tn.of(x), k, 0, True)
    c.check(f"top {k}", values, np.sort(x)[::-1][:k])
    c.check(f"top {k} indices", indices, order(x, 0, True)[:k])
x = np.zeros(5000, np.float32)
c.check("top of equal ones", topk(tn.of(x), 20, 0, True)[1], np.arange(20))
for t in topk(tn.of(x), 5001, 0, True) + topk(tn.of(x), -1, 0, True):
    c.refuse("topk k", t, "ERR_SHAPE", "topk")
c.refuse("topk axis", topk(tn.of(x), 1, 1, True)[0], "ERR_SHAPE", "axis 1", "1 axis")

# ---- Sorted search ----

for kind in DTYPES:
    for n in (0, 1, 7, 64, 100):
        x = with_specials(n, kind)
        x = np.take(x, order(x, 0, False))
        v = np.concatenate([with_specials(20, kind), x])
        both = np.concatenate([x, v])
        rank = order(both, 0, False)
        for right in (False, True):
            key = np.empty(both.size, np.int64)  # equal numbers for equal elements
            nan = np.isnan(both.astype(np.float64))
            last = both[rank].astype(np.float64) if kind in FLOATS else both[rank]
            same = (last[1:] == last[:-1]) | (nan[rank][1:] & nan[rank][:-1])
            key[rank] = np.concatenate([[0], np.cumsum(~same)])
            e = np.searchsorted(key[:n], key[n:], "right" if right else "left")
            c.check(f"searchsorted {kind} {n} {right}",
                    tn.searchsorted(tn.of(x), tn.of(v), right), e)
x, v = np.sort(c.floats((3, 50)), 1), c.floats((3, 20))
c.check("searchsorted rows", tn.searchsorted(tn.of(x), tn.of(v), False),
        np.stack([np.searchsorted(a, b) for a, b in zip(x, v)]))
c.check("searchsorted of a number", tn.searchsorted(tn.of(x[0]), tn.num(0.25), True),
        np.array(np.searchsorted(x[0], 0.25, "right")))
c.check("searchsorted promotes", tn.searchsorted(tn.of(np.arange(9)), tn.of(v), True),
        np.searchsorted(np.arange(9), v, "right"))
x = np.sort(c.floats(100003))
c.check("searchsorted long", tn.searchsorted(tn.of(x), tn.of(v), False), np.searchsorted(x, v))
c.refuse("searchsorted rows", tn.searchsorted(tn.of(x.reshape(1, -1)), tn.of(v), False),
         "ERR_SHAPE", "searchsorted", "3x20", "must have one axis")


# ---- Distinct slices ----


def expected_unique(x, axis, is_sorted):
    """Returns the results of numpy.unique, or those in the order of the first occurrences."""
    y, first, place, counts = np.unique(x, True, True, True, axis)
    if is_sorted:
        return y, first, place.reshape(-1), counts
    order = np.argsort(first)
    number = np.argsort(order)
    return y.take(order, axis), first[order], number[place.reshape(-1)], counts[order]


def check_unique(label, x, axis=0):
    for is_sorted in (True, False):
        for name, got, e in zip(("slices", "first", "places", "counts"),
                                unique(tn.of(x), axis, is_sorted),
                                expected_unique(x, axis, is_sorted)):
            c.check(f"unique {label}, sorted {is_sorted}: {name}", got, e)


for kind in ("f32", "f64", "f16", "i8", "u8", "i16", "u32", "i64", "u64", "bool"):
    for n in (1, 40, 700):
        x = c.some((n,), kind)
        check_unique(f"{kind} {n}", x[c.rng.integers(0, 1 + n // 3, n)])
check_unique("floats that are equal or no number",
             np.array([np.nan, 0.0, -0.0, np.inf, -np.nan, -np.inf, 0.0, 1e-40, np.nan], np.float32))
for shape, axis in (((60, 3), 0), ((3, 60), 1), ((4, 50, 2), -2), ((80, 1), 0), ((2, 2, 90), 2)):
    check_unique(f"{shape} along {axis}", c.integers(shape, "i32", 0, 2), axis)
check_unique("columns of floats", c.integers((200, 2), "i32", 0, 6).astype(np.float32) - 3)
check_unique("long", c.integers((20000,), "i64", -1800, 1800))
check_unique("all equal", np.full((5, 4), 7, np.int8), 1)
for is_sorted in (True, False):
    for got, e in zip(unique(tn.of(np.zeros((0,), np.float32)), 0, is_sorted),
                      (np.zeros(0, np.float32), *[np.zeros(0, np.int64)] * 3)):
        c.check(f"unique of nothing, sorted {is_sorted}", got, e)
for t in unique(tn.of(np.zeros((3, 2), np.float32)), 2):
    c.refuse("unique axis", t, "ERR_SHAPE", "unique", "axis 2")

# ---- Non-maximum suppression ----


def expected_nms(boxes, scores, most):
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    area = np.prod(high - low, 1)
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        both = np.prod(np.maximum(np.minimum(high[i], high[kept]) - np.maximum(low[i], low[kept]), 0), 1)
        if not (both > most * (area[i] + area[kept] - both)).any():
            kept.append(i)
    return np.array(kept, np.int64)


for n in (0, 1, 2, 50, 300):
    boxes = c.rng.uniform(0, 10, (n, 4)).astype(np.float32)
    scores = c.integers((n,), "i32", 0, max(n // 2, 1)).astype(np.float32)
    for most in (0.0, 0.4, 1.0):
        c.check(f"nms {n} {most}", tn.nms(tn.of(boxes), tn.of(scores), most),
                expected_nms(boxes.astype(np.float64), scores, most))
boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 4, 4], [4, 4, 5, 5], [1, 1, 1, 1]], np.float32)
for kind in ("f16", "f64"):
    x = np.array([np.nan, -np.inf, 3, 3, -5])
    c.check(f"nms of {kind}", tn.nms(tn.of(boxes.astype(dtype(kind))), tn.of(x.astype(dtype(kind))), 0.5),
            np.array([0, 2, 4]))
apart = np.array([[i, 0, i + 1, 1] for i in range(0, 10, 2)], np.float32)
for kind in ("u8", "i32", "i64", "u64"):
    least, most = np.iinfo(dtype(kind)).min, np.iinfo(dtype(kind)).max
    x = np.array([least, least + 1, most, least, 5], dtype(kind))
    c.check(f"nms of {kind}", tn.nms(tn.of(apart), tn.of(x), 0.5), np.array([2, 4, 1, 0, 3]))
c.refuse("nms of integers", tn.nms(tn.of(boxes.astype(np.int32)), tn.of(np.zeros(5, np.float32)), 0.5),
         "ERR_DTYPE", "nms", "the boxes are i32")
c.refuse("nms boxes", tn.nms(tn.of(boxes), tn.of(np.zeros(4, np.float32)), 0.5), "ERR_SHAPE", "nms", "5x4")
c.done(least=759)
