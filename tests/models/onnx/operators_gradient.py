"""Test cases of Gradient, compared with numerical differences: the references do not know it."""

import numpy as np

from cases import Case, In, const

F32, F64 = np.float32, np.float64
GRADIENT = "ai.onnx.preview.training.Gradient"
STEP = 1e-5


def differences(f, values, name):
    """The gradient of the sum of f by central differences, in f64."""
    def total(at, step):
        moved = {n: np.array(v, F64) for n, v in values.items()}
        moved[name][at] += step
        return np.sum(f(**moved))
    return np.array([(total(at, STEP) - total(at, -STEP)) / (2 * STEP) for at in np.ndindex(values[name].shape)],
                    F64).reshape(values[name].shape).astype(F32)


def made(label, nodes, values, f, zs=(), constants={}, y="y", dims={}):
    """Gradients of y by all values but zs."""
    xs = [n for n in values if n not in zs]
    given = {n: In(np.asarray(v, F32), dims.get(n)) for n, v in values.items()}
    given |= {n: const(v) for n, v in constants.items()}
    how = {"xs": xs, "y": y} | ({"zs": list(zs)} if zs else {})
    outputs = [f"d_{n}" for n in xs]
    node = (GRADIENT, [*xs, *zs], outputs, how)
    return Case(f"Gradient {label}", [*nodes, node], given, outputs, terms=4,
                expected={f"d_{n}": differences(f, values, n) for n in xs})


def random(rng, *shape):
    """Values away from 0, where some functions have no derivative."""
    v = rng.uniform(0.3, 1.7, shape) * rng.choice([-1, 1], shape)
    return np.asarray(v, F32)


UNARY = {"Neg": np.negative, "Exp": np.exp, "Reciprocal": lambda x: 1 / x, "Relu": lambda x: np.maximum(x, 0),
         "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Tanh": np.tanh, "Sin": np.sin, "Cos": np.cos, "Abs": np.abs,
         "Softplus": lambda x: np.log1p(np.exp(x)), "Identity": lambda x: x, "Sqrt": np.sqrt, "Log": np.log}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}


def weighted(node, names, attributes={}):
    """A node, and a product that gives each element of its result a gradient of its own."""
    return [(node, names, ["h"], attributes), ("Mul", ["h", "w"], ["y"], {})]


def elementwise(rng):
    for op, f in UNARY.items():
        x, w = random(rng, 2, 3), random(rng, 2, 3)
        x = np.abs(x) if op in ("Sqrt", "Log") else x
        yield made(op, weighted(op, ["x"]), {"x": x, "w": w}, lambda x, w, f=f: f(x) * w)
    for op, f in BINARY.items():
        for a, b in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((4, 2, 3), (2, 1))):
            a, b = np.abs(random(rng, *a)), random(rng, *b)
            w = random(rng, *np.broadcast_shapes(a.shape, b.shape))
            yield made(f"{op} {a.shape} {b.shape}", weighted(op, ["a", "b"]), {"a": a, "b": b, "w": w},
                       lambda a, b, w, f=f: f(a, b) * w)
    for op, by in (("Sum", 1), ("Mean", 3)):
        yield made(op, weighted(op, ["a", "b", "c"]),
                   {"a": random(rng, 2, 3), "b": random(rng, 3), "c": random(rng, 2, 1), "w": random(rng, 2, 3)},
                   lambda a, b, c, w, by=by: (a + b + c) / by * w)


def products(rng):
    for a, b in (((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
                 ((2, 1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,))):
        a, b = random(rng, *a), random(rng, *b)
        w = random(rng, *np.matmul(a, b).shape)
        yield made(f"MatMul {a.shape} {b.shape}", weighted("MatMul", ["a", "b"]), {"a": a, "b": b, "w": w},
                   lambda a, b, w: np.matmul(a, b) * w)


def shapes(rng):
    x = random(rng, 2, 3, 4)
    for op, attributes, more, f in (
            ("Reshape", {}, {"s": [4, -1]}, lambda x: x.reshape(4, 6)), ("Flatten", {"axis": 2}, {}, lambda x: x.reshape(6, 4)),
            ("Transpose", {}, {}, np.transpose), ("Transpose", {"perm": [1, 2, 0]}, {}, lambda x: x.transpose(1, 2, 0)),
            ("Unsqueeze", {}, {"s": [1, -1]}, lambda x: x[:, None, :, :, None]),
            ("Expand", {}, {"s": [5, 2, 3, 4]}, lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
            ("ReduceSum", {}, {"s": [1]}, lambda x: x.sum(1, keepdims=True)), ("ReduceSum", {}, {}, np.sum),
            ("ReduceSum", {"keepdims": 0}, {"s": [0, -1]}, lambda x: x.sum((0, 2))),
            ("ReduceSum", {"noop_with_empty_axes": 1}, {}, lambda x: x),
            ("ReduceMean", {"keepdims": 0}, {"s": [-2]}, lambda x: x.mean(1)), ("ReduceMean", {}, {}, np.mean),
            ("ReduceMean", {"noop_with_empty_axes": 1}, {}, lambda x: x)):
        w = random(rng, *np.shape(f(x)))
        yield made(f"{op} {attributes} {more}", weighted(op, ["x", *more], attributes), {"x": x, "w": w},
                   lambda x, w, f=f: f(x) * w, constants=more)
    y = random(rng, 1, 3, 1)
    yield made("Squeeze", weighted("Squeeze", ["x"]), {"x": y, "w": random(rng, 3)}, lambda x, w: x.reshape(3) * w)


def loss(x, w, b, t):
    return np.mean((1 / (1 + np.exp(-(x @ w + b))) - t) ** 2)


def networks(rng):
    nodes = [("MatMul", ["x", "w"], ["p"], {}), ("Add", ["p", "b"], ["q"], {}), ("Sigmoid", ["q"], ["s"], {}),
             ("Sub", ["s", "t"], ["e"], {}), ("Mul", ["e", "e"], ["r"], {}), ("ReduceMean", ["r"], ["y"], {"keepdims": 0})]
    values = {"w": random(rng, 3, 4), "b": random(rng, 4), "x": random(rng, 5, 3), "t": random(rng, 5, 4)}
    yield made("of a layer", nodes, values, loss, zs=("x", "t"))
    yield made("of a layer with sizes that vary", nodes, values, loss, zs=("x", "t"),
               dims={"x": ["n", 3], "t": ["n", 4]})
    others = {f"other_{n}": In(random(rng, *v.shape)) for n, v in values.items()}
    yield Case("Gradient at other values", [*nodes, (GRADIENT, list(others), ["d_w"],
                                                     {"xs": ["w", "b", "x", "t"], "y": "y"})],
               {n: In(v) for n, v in values.items()} | others, ["d_w"], terms=4,
               expected={"d_w": differences(loss, {n: others[f"other_{n}"].array for n in values}, "w")})


def gemm(a, b, c, how):
    a, b = a.T if how.get("transA") else a, b.T if how.get("transB") else b
    return how.get("alpha", 1) * a @ b + how.get("beta", 1) * c


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def layers(rng):
    for how in ({}, {"transA": 1, "alpha": 0.5}, {"transB": 1, "beta": -2.0}, {"transA": 1, "transB": 1}):
        for c in ((2, 4), (4,), (2, 1), ()):
            a = random(rng, *((3, 2) if how.get("transA") else (2, 3)))
            b = random(rng, *((4, 3) if how.get("transB") else (3, 4)))
            yield made(f"Gemm {how} {c}", weighted("Gemm", ["a", "b", "c"], how),
                       {"a": a, "b": b, "c": random(rng, *c), "w": random(rng, 2, 4)},
                       lambda a, b, c, w, how=how: gemm(a, b, c, how) * w)
    yield made("Gemm without a third matrix", weighted("Gemm", ["a", "b"]),
               {"a": random(rng, 2, 3), "b": random(rng, 3, 4), "w": random(rng, 2, 4)}, lambda a, b, w: a @ b * w)
    for axis in (-1, 0, 1):
        values = {"x": random(rng, 2, 3, 4), "w": random(rng, 2, 3, 4)}
        yield made(f"Softmax {axis}", weighted("Softmax", ["x"], {"axis": axis}), values,
                   lambda x, w, axis=axis: softmax(x, axis) * w, dims={"x": ["n", 3, 4], "w": ["n", 3, 4]})
        yield made(f"LogSoftmax {axis}", weighted("LogSoftmax", ["x"], {"axis": axis}), values,
                   lambda x, w, axis=axis: np.log(softmax(x, axis)) * w)
    for axis, index in ((0, [1, 1, -1]), (1, [[0, 2], [2, 2]]), (-1, 3), (2, [])):
        x, index = random(rng, 2, 3, 4), np.array(index, np.int64)
        w = random(rng, *np.take(x, index, axis).shape)
        yield made(f"Gather {axis} {index.shape}", weighted("Gather", ["x", "i"], {"axis": axis}), {"x": x, "w": w},
                   lambda x, w, axis=axis, index=index: np.take(x, index, axis) * w, constants={"i": index})


def convolve(x, k, b, how):
    """A convolution as a sum over the elements of the kernel."""
    n, groups = x.ndim - 2, how.get("group", 1)
    step, apart, pads = how.get("strides", [1] * n), how.get("dilations", [1] * n), how.get("pads", [0] * 2 * n)
    x = np.pad(x, [(0, 0), (0, 0), *((pads[i], pads[n + i]) for i in range(n))])
    sizes = [(x.shape[2 + i] - (k.shape[2 + i] - 1) * apart[i] - 1) // step[i] + 1 for i in range(n)]
    y = np.zeros((x.shape[0], k.shape[0], *sizes)) + b.reshape(-1, *[1] * n)
    xs, ys, ks = np.split(x, groups, 1), np.split(y, groups, 1), np.split(k, groups, 0)
    for at in np.ndindex(k.shape[2:]):
        part = tuple(slice(at[i] * apart[i], at[i] * apart[i] + (sizes[i] - 1) * step[i] + 1, step[i]) for i in range(n))
        for i in range(groups):
            ys[i] += np.einsum("nc...,mc->nm...", xs[i][(..., *part)], ks[i][(..., *at)])
    return y


def convolutions(rng):
    for x, k, how in (
            ((2, 3, 5), (4, 3, 2), {}), ((1, 2, 5, 6), (3, 2, 3, 2), {"strides": [2, 2], "pads": [1, 0, 2, 1]}),
            ((2, 4, 5, 5), (4, 2, 2, 3), {"group": 2, "dilations": [2, 1]}), ((2, 3, 6, 4), (6, 1, 3, 3), {"group": 3, "pads": [1] * 4}),
            ((1, 2, 7, 7), (2, 2, 2, 3), {"strides": [3, 2]}), ((1, 1, 4, 3, 4), (2, 1, 2, 2, 3), {"pads": [0, 1, 1, 0, 0, 1]}),
            ((1, 2, 4), (2, 2, 2), {"strides": [3], "pads": [0, 2]})):
        x, k, b = random(rng, *x), random(rng, *k), random(rng, k[0])
        w = random(rng, *convolve(x, k, b, how).shape)
        values = {"x": x, "k": k, "b": b, "w": w}
        yield made(f"Conv {x.shape} {k.shape} {how}", weighted("Conv", ["x", "k", "b"], how), values,
                   lambda x, k, b, w, how=how: convolve(x, k, b, how) * w)
        if x.ndim == 4:
            nodes = [("Conv", ["x", "k", "b"], ["h"], how), ("Mul", ["h", "h"], ["y"], {})]
            yield made(f"Conv of varying sizes {how}", nodes, {n: values[n] for n in "xkb"},
                       lambda x, k, b, how=how: convolve(x, k, b, how) ** 2, dims={"x": ["n", x.shape[1], "h", "w"]})


def edges(rng):
    a, b = random(rng, 2, 3), random(rng, 2, 3)
    add = [("Add", ["a", "b"], ["c"], {})]
    yield made("of a sum", add, {"a": a, "b": b}, lambda a, b: a + b, y="c")
    yield made("by what y does not depend on", [*add, ("Exp", ["a"], ["y"], {})], {"a": a, "b": b},
               lambda a, b: np.exp(a))
    yield made("of a variable", [("Exp", ["a"], ["h"], {})], {"a": a}, lambda a: a, y="a")
    yield Case("Gradient by a node's result", [*add, ("Tanh", ["c"], ["y"], {}),
                                               (GRADIENT, ["c"], ["d_c"], {"xs": ["c"], "y": "y"})],
               {"a": In(a), "b": In(b)}, ["d_c"], terms=4,
               expected={"d_c": differences(lambda c: np.tanh(c), {"c": a + b}, "c")})
    yield made("of a tensor that is read twice", [("Mul", ["a", "a"], ["h"], {}), ("Mul", ["h", "a"], ["y"], {})],
               {"a": a}, lambda a: a ** 3)
    zeros, by = np.zeros(4, F32), np.array([2, 1, 0, -1], F32)
    yield Case("Gradient of powers of 0", [("Pow", ["a", "b"], ["y"], {}),
                                           (GRADIENT, ["a", "b"], ["d_a", "d_b"], {"xs": ["a", "b"], "y": "y"})],
               {"a": In(zeros), "b": In(by)}, ["d_a", "d_b"],
               expected={"d_a": np.array([0, 1, 0, -np.inf], F32), "d_b": np.array([0, 0, 0, -np.inf], F32)})


def means(rng):
    """Means of more elements than f16 has numbers for, in f16."""
    for shape, dims in (((3, 65536), None), ((2, 100000), ["n", "m"])):
        x = np.zeros(shape, np.float16)
        nodes = [("ReduceMean", ["x", "s"], ["m"], {"keepdims": 0}), ("Mul", ["m", "w"], ["y"], {})]
        yield Case(f"Gradient of a mean of {shape}",
                   [*nodes, (GRADIENT, ["x"], ["d_x"], {"xs": ["x"], "y": "y"})],
                   {"x": In(x, dims), "s": const([1]), "w": const(1000, np.float16)}, ["d_x"],
                   expected={"d_x": np.full(shape, 1000 / shape[1], np.float16)})


def gradient(version, rng):
    for family in (edges, means, elementwise, products, layers, convolutions, shapes, networks):
        yield from family(rng)
