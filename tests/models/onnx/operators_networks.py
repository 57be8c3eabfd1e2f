"""Test cases of the ONNX operators of convolutional networks: pooling, transposed convolution,
normalisation, activations, constants: {name: cases(version, rng)}."""

import itertools

import numpy as np

from cases import BF16, Case, In, const, one, stated

F32, F64, F16 = (np.dtype(t) for t in ("f4", "f8", "f2"))
BOOL = np.dtype(bool)


def some(rng, shape, dtype=F32):
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 9, shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape) * 2).astype(dtype)


def weights(rng, shape, dtype=F32):
    return In(some(rng, shape, dtype), kind="const")


def varying(rng, shape, other, names=("n",), dtype=F32):
    """Makes an input whose first sizes have names, with a second shape."""
    x = some(rng, shape, dtype)
    return In(x, [*names, *shape[len(names):]]), [{"x0": some(rng, other, dtype)}]


def thinned(newest):
    """Returns all cases in the newest version, a rotating third of them in older ones."""
    def wrap(cases):
        def fewer(version, rng):
            all_of = list(cases(version, rng))
            return all_of if version >= newest else all_of[version % 3::3]
        return fewer
    return wrap


def outputs(case, *names):
    """Returns the node with more outputs."""
    op, inputs, _, attributes = case.nodes[0]
    return Case(case.label + f" gives {names}", [(op, inputs, list(names), attributes)],
                case.inputs, [n for n in names if n], case.terms, case.more)


def legacy(version, until=6):
    """Returns the attributes that the first opsets required."""
    return {"consumed_inputs": [0]} if version < until else {}


def floats(version, with_bf16=99):
    return [F32, F64, F16] + ([BF16] if version >= with_bf16 else [])


# ---- Activations ----

def activation(op, *options, with_bf16=99, special=True, old=True, f64=True):
    """Cases of a floating function with optional attributes."""
    def cases(version, rng):
        extra = legacy(version) if old else {}
        for t in floats(version, with_bf16):
            for given in options or ({},):
                if t == F64 and not f64:
                    continue
                yield one(op, some(rng, (3, 5), t), **given, **extra)
        for shape in ((), (1,), (0, 2), (2, 3, 4)):
            yield one(op, some(rng, shape), **extra)
        x, more = varying(rng, (2, 3), (6, 3))
        yield one(op, x, more=more, **extra)
        if special:
            values = np.array([0.0, -0.0, np.inf, -np.inf, 1, -1, 30, -30, 1e-30, 6, -6], F32)
            yield one(op, values, label="of special values", **extra)
    return cases


def relu(version, rng):
    yield from activation("Relu", with_bf16=13)(version, rng)
    if version >= 14:
        for t in ("i1", "i4", "i8"):
            yield one("Relu", some(rng, (3, 4), t))


def selu(version, rng):
    """Cases of Selu; the references use the defaults of version 6 in version 1 too."""
    if version >= 6:
        yield from activation("Selu", {}, {"alpha": 2.0, "gamma": 3.0})(version, rng)
    else:
        for given in ({"alpha": 1.6732, "gamma": 1.0507}, {"alpha": 2.0, "gamma": 3.0}):
            yield one("Selu", some(rng, (3, 5)), **given, **legacy(version))


def prelu(version, rng):
    extra = legacy(version)
    x = some(rng, (2, 3, 4))
    if version < 7:
        for slope in ((1,), (3,)):
            yield one("PRelu", x, some(rng, slope), label=str(slope), **extra)
        return
    for slope in ((), (1,), (4,), (3, 1), (2, 3, 4), (1, 1, 4)):
        yield one("PRelu", x, some(rng, slope), label=str(slope))
    for t in [F64, F16] + ([np.dtype("i4"), np.dtype("u8")] if version >= 9 else []):
        yield one("PRelu", some(rng, (2, 3), t), some(rng, (3,), t))
    x, more = varying(rng, (2, 3), (5, 3))
    yield one("PRelu", x, some(rng, (3,)), more=more)


def clip(version, rng):
    x = some(rng, (4, 5))
    if version < 11:
        for given in ({}, {"min": -1.0}, {"max": 1.5}, {"min": -0.5, "max": 0.5}):
            yield one("Clip", x, **given, **legacy(version))
        if version == 6:   # whose bounds are f32's last finite numbers by default
            yield one("Clip", np.array([np.nan, np.inf, -np.inf, 1], F32))
        else:
            yield stated(one("Clip", np.array([np.inf, -np.inf], F32)), np.array([np.inf, -np.inf], F32))
        return
    low, high = np.array(-1, F32), np.array(1.5, F32)
    for bounds in ([], [low], [None, high], [low, high], [const(-1, F32), const(1, F32)],
                   [high, low]):
        yield one("Clip", x, *bounds, label=f"{len(bounds)} bounds")
    for t in [F64, F16] + ([np.dtype(d) for d in ("i1", "u1", "i4", "i8", "u8")]
                           if version >= 12 else []):
        yield one("Clip", some(rng, (3, 4), t), np.array(1, t), np.array(3, t))
    x, more = varying(rng, (2, 3), (5, 3))
    yield one("Clip", x, low, more=more)


def dropout(version, rng):
    x = some(rng, (3, 4))
    if version < 12:
        given = {"is_test": 1} if version < 7 else {}
        yield one("Dropout", x, ratio=0.3, **given, **legacy(version))
    else:
        yield one("Dropout", x)
        yield one("Dropout", x, np.array(0.3, F32))
        yield one("Dropout", x, const(0.3, F32), const(False, BOOL), seed=3)
        yield outputs(one("Dropout", x, None, const(False, BOOL)), "y", "mask")
        yield outputs(one("Dropout", x), "y", "mask")
        yield outputs(one("Dropout", x, const(0, F32), const(True, BOOL)), "y", "mask")
    yield one("Dropout", some(rng, (0, 2), F64), **legacy(version))


# ---- Sums, products, constants ----

def variadic(op):
    def cases(version, rng):
        extra = legacy(version)
        for n in (1, 2, 5):
            yield one(op, *[some(rng, (3, 4)) for _ in range(n)], **extra)
        for t in (F64, F16) + ((BF16,) if version >= 13 else ()):
            yield one(op, some(rng, (3, 4), t), some(rng, (3, 4), t), **extra)
        if version >= 8:
            yield one(op, some(rng, (3, 1)), some(rng, (4,)), some(rng, ()))
            x, more = varying(rng, (2, 3), (5, 3))
            yield one(op, x, some(rng, (3,)), more=more)
    return cases


@thinned(13)
def gemm(version, rng):
    def made(a, b, c=None, t=F32, label="", more=(), **attributes):
        if c is not None and version < 7:
            attributes["broadcast"] = int(c != (3, 5))
        inputs = [x if isinstance(x, In) else some(rng, x, t) for x in (a, b)]
        inputs += [] if c is None else [some(rng, c, t)]
        return one("Gemm", *inputs, terms=4, label=label, more=more, **attributes)
    biases = [(3, 5), (5,), (1,)] + ([(), (3, 1), (1, 5)] if version >= 7 else [])
    biases += [None] if version >= 11 else []
    for c in biases:
        yield made((3, 4), (4, 5), c, label=f"bias {c}")
    for ta, tb in itertools.product((0, 1), (0, 1)):
        yield made((4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5), (5,), transA=ta, transB=tb)
    yield made((3, 4), (4, 5), (5,), alpha=0.5, beta=-2.0)
    for t in (F64, F16):
        yield made((3, 4), (4, 5), (5,), t, alpha=1.5)
    for t in ("i4", "i8", "u4") if version >= 9 else ():
        yield made((3, 4), (4, 5), (3, 5), np.dtype(t))
    yield made((0, 4), (4, 5), (5,), label="of nothing")
    x, more = varying(rng, (3, 4), (7, 4))
    yield made(x, weights(rng, (4, 5)), (5,), more=more)


@thinned(25)
def identity(version, rng):
    for t in (F32, F64, F16, BOOL, np.dtype("i8"), np.dtype("u1")):
        for shape in ((2, 3), (), (0, 2)):
            yield one("Identity", some(rng, shape, t))


@thinned(25)
def constant(version, rng):
    from onnx import numpy_helper

    def made(label, **value):
        """Cases of constants, added to an input, so that an operand is not constant."""
        return Case(f"Constant {label}", [("Constant", [], ["c"], value)], {}, ["c"])
    for t in (F32, F64, F16, BOOL, np.dtype("i4"), np.dtype("i8"), np.dtype("u1")):
        for shape in ((2, 3), (), (1,), (0, 2)):
            yield made(f"{t}{shape}", value=numpy_helper.from_array(some(rng, shape, t)))
    if version >= 12:
        yield made("string", value_string="äb")
        yield made("strings", value_strings=["", "c d"])
        yield made("int", value_int=-7)
        yield made("float", value_float=2.5)
        yield made("ints", value_ints=[3, -1, 2])
        yield made("floats", value_floats=[0.5, -1.25])
    to = numpy_helper.from_array(np.array([3, 2]))
    if version >= 9:
        yield Case("Constant as a shape", [("Constant", [], ["to"], {"value": to}),
                                           ("Reshape", ["x", "to"], ["y"], {})],
                   {"x": In(some(rng, (6,)))}, ["y"])


@thinned(25)
def constant_of_shape(version, rng):
    from onnx import numpy_helper
    for to in ([2, 3], [], [0, 2], [1]):
        yield one("ConstantOfShape", const(to), label=str(to))
    for t in (F32, F64, F16, BOOL, np.dtype("i4"), np.dtype("i8"), np.dtype("u1")):
        value = numpy_helper.from_array(np.array([1], t))
        yield one("ConstantOfShape", const([2, 2]), value=value, label=str(t))
    x, more = varying(rng, (2, 3), (5, 3))
    yield Case("ConstantOfShape of a shape", [("Shape", ["x0"], ["s"], {}),
                                             ("ConstantOfShape", ["s"], ["y"], {})],
               {"x0": x}, ["y"], 0, more)


@thinned(25)
def flatten(version, rng):
    x = some(rng, (2, 3, 4, 5))
    yield one("Flatten", x)
    for axis in range(-4 if version >= 11 else 0, 5):
        yield one("Flatten", x, axis=axis)
    yield one("Flatten", some(rng, (0, 3, 2)))
    if version >= 9:
        for t in (F64, np.dtype("i8"), BOOL):
            yield one("Flatten", some(rng, (2, 3, 2), t))
    x, more = varying(rng, (2, 3, 4), (5, 3, 4))
    for axis in (0, 1, 2):
        yield one("Flatten", x, axis=axis, more=more)


# ---- Windows ----

SIZES = [((2, 3, 9), {"kernel_shape": [3]}),
         ((1, 2, 7, 8), {"kernel_shape": [3, 2]}),
         ((1, 2, 7, 8), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [0, 1, 2, 1]}),
         ((2, 1, 6, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
         ((1, 1, 4, 5, 6), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 1]}),
         ((1, 1, 3, 3), {"kernel_shape": [3, 3]})]


def pooling(op, ceil_since, dilations_since, extra=({},)):
    def cases(version, rng):
        may_pad = op != "AveragePool" or version > 1
        for (shape, given), more in itertools.product(SIZES, extra):
            if may_pad or "pads" not in given:
                yield one(op, some(rng, shape), **given, **more)
        for mode, size, stride in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID"), (7, 8),
                                                    (1, 2, 3)):
            if not may_pad and mode != "VALID":
                continue
            yield one(op, some(rng, (1, 1, size, size)), kernel_shape=[3, 2], auto_pad=mode,
                      strides=[stride, stride], **extra[-1])
        if version >= ceil_since:
            for size, more in itertools.product((5, 6, 7, 8), extra):
                for pads in ([0, 0], [1, 1], [0, 1]):
                    yield one(op, some(rng, (1, 2, size)), kernel_shape=[3], strides=[2], pads=pads,
                              ceil_mode=1, **more)
            yield one(op, some(rng, (1, 1, 7, 8)), kernel_shape=[2, 3], strides=[3, 2],
                      ceil_mode=1, **extra[0])
        if version >= dilations_since:
            for more in extra:
                yield one(op, some(rng, (1, 2, 9, 8)), kernel_shape=[3, 2], dilations=[2, 3],
                          **more)
                yield one(op, some(rng, (1, 1, 9)), kernel_shape=[3], dilations=[2],
                          strides=[2], pads=[1, 1], **more)
        for t in floats(version)[1:]:
            yield one(op, some(rng, (1, 2, 5, 5), t), kernel_shape=[2, 2], **extra[0])
        yield one(op, some(rng, (0, 2, 5, 5)), kernel_shape=[2, 2], label="of no pictures",
                  **extra[0])
        x, more = varying(rng, (2, 3, 6, 6), (5, 3, 6, 6))
        yield one(op, x, kernel_shape=[3, 3], pads=[int(may_pad)] * 4, more=more, **extra[0])
    return cases


@thinned(22)
def max_pool(version, rng):
    yield from pooling("MaxPool", 10, 10)(version, rng)
    if version >= 12:
        for t in ("i1", "u1"):
            yield one("MaxPool", some(rng, (1, 2, 5, 5), t), kernel_shape=[2, 2])
    if version >= 8:
        for (shape, given), order in itertools.product(SIZES, (0, 1)):
            yield outputs(one("MaxPool", some(rng, shape), storage_order=order, **given), "y", "i")
        yield outputs(one("MaxPool", some(rng, (2, 2, 6, 5)).round(), kernel_shape=[3, 3],
                          pads=[1, 1, 1, 1], label="with equal ones"), "y", "i")


@thinned(22)
def average_pool(version, rng):
    """Cases of AveragePool; the evaluator counts pads in version 1, against the definition."""
    counts = ({}, {"count_include_pad": 1}) if version >= 7 else ({},)
    # before version 19 the count of a truncated window is unspecified
    ceil = 10 if version >= 19 else 99
    yield from pooling("AveragePool", ceil, 19, counts)(version, rng)


@thinned(22)
def lp_pool(version, rng):
    powers = ({}, {"p": 1.0}, {"p": 3.0}) if version < 2 else ({}, {"p": 1}, {"p": 3})
    yield from pooling("LpPool", 18, 18, powers)(version, rng)


def global_pooling(op, powers=False):
    def cases(version, rng):
        ps = [{}] if not powers or version < 2 else [{}, {"p": 1}, {"p": 3}]
        for p in ps:
            for s in ((2, 3, 7), (1, 2, 4, 5), (2, 2, 3, 4, 2), (1, 1, 1, 1)):
                yield one(op, some(rng, s), **p)
        for t in [] if powers else [F64, F16]:
            yield one(op, some(rng, (1, 2, 5, 5), t))
        x, more = varying(rng, (2, 3, 4, 4), (5, 3, 2, 9), ("n", 3, "h", "w"))
        yield one(op, x, more=more)
    return cases


@thinned(22)
def conv_transpose(version, rng):
    def made(x, w, bias=False, label="", more=(), **attributes):
        inputs = [x if isinstance(x, In) else some(rng, x), weights(rng, w)]
        groups = attributes.get("group", 1)
        inputs += [weights(rng, (w[1] * groups,))] if bias else []
        return one("ConvTranspose", *inputs, terms=int(np.prod(w)) // w[1], label=label, more=more,
                   **attributes)
    yield made((1, 2, 5), (2, 3, 3))
    yield made((2, 2, 4, 5), (2, 3, 3, 2), bias=True)
    yield made((1, 2, 4, 5), (2, 1, 3, 3), strides=[2, 3], pads=[1, 0, 0, 2])
    yield made((1, 2, 4, 5), (2, 1, 3, 3), strides=[3, 2], output_padding=[2, 1], kernel_shape=[3, 3])
    yield made((1, 4, 4, 4), (4, 2, 3, 3), group=2, bias=True)
    yield made((1, 4, 4, 4), (4, 1, 2, 2), group=4, strides=[2, 2])
    yield made((1, 2, 4, 4), (2, 2, 3, 3), dilations=[2, 1])
    yield made((1, 1, 3, 3, 2), (1, 2, 2, 2, 2), strides=[2, 1, 2])
    yield made((1, 1, 3, 3), (1, 2, 3, 3), strides=[3, 2], output_shape=[10, 8])
    yield made((1, 1, 3, 3), (1, 2, 3, 3), strides=[3, 2], output_shape=[8, 5])
    # an output beyond what the convolution's inputs reach, where only the bias is
    bias, w, x = some(rng, (3,)), np.ones((1, 3, 2), F32), np.array([[[1, 2]]], F32)
    y = np.array([1, 3, 2, 0, 0], F32)
    yield stated(one("ConvTranspose", x, w, bias, output_shape=[5]), y + bias[None, :, None])
    yield stated(one("ConvTranspose", x, w, output_shape=[5]),
                 np.broadcast_to(y, (1, 3, 5)).copy())
    for mode in ("SAME_UPPER", "SAME_LOWER") if version >= 11 else ():
        for stride, kernel in itertools.product((1, 2, 3), (3, 4)):
            yield made((1, 1, 4, 3), (1, 1, kernel, kernel), strides=[stride, stride], auto_pad=mode)
            yield made((1, 1, 3, 3), (1, 1, kernel, kernel), strides=[2, 2], output_shape=[7, 6],
                       auto_pad=mode)
    yield made((1, 1, 4, 4), (1, 1, 3, 3), auto_pad="VALID")
    x, more = varying(rng, (2, 3, 4, 4), (5, 3, 4, 4))
    yield made(x, (3, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], more=more)


# ---- Normalisation ----

def positive(rng, shape, t=F32):
    return np.asarray(np.abs(some(rng, shape, t)) + np.array(0.5, t)).astype(t)


@thinned(15)
def batch_norm(version, rng):
    extra = {**legacy(version, 6), **({"is_test": 1} if version < 7 else {})}
    for shape in ((2, 3), (2, 3, 5), (1, 4, 3, 3), (2, 2, 3, 2, 2), (0, 3, 4)):
        c = shape[1]
        parts = [some(rng, (c,)), some(rng, (c,)), some(rng, (c,)), positive(rng, (c,))]
        yield one("BatchNormalization", some(rng, shape), *parts, **extra)
        yield one("BatchNormalization", some(rng, shape), *[In(p, kind="const") for p in parts],
                  epsilon=0.1, momentum=0.5, **extra)
    if version >= 9:
        yield one("BatchNormalization", some(rng, (4,)), *[some(rng, (1,)) for _ in range(3)],
                  positive(rng, (1,)))
    for t in (F64, F16):
        yield one("BatchNormalization", some(rng, (2, 3, 4), t), some(rng, (3,), t),
                  some(rng, (3,), t), some(rng, (3,), t), positive(rng, (3,), t), **extra)
    if version >= 15:
        yield one("BatchNormalization", some(rng, (2, 3, 4), F16), some(rng, (3,), F16),
                  some(rng, (3,), F16), some(rng, (3,)), positive(rng, (3,)))
    x, more = varying(rng, (2, 3, 4), (5, 3, 7), ("n", 3, "w"))
    yield one("BatchNormalization", x, *[some(rng, (3,)) for _ in range(3)], positive(rng, (3,)),
              more=more, **extra)
    if version >= 14:
        for shape in ((4, 3), (2, 3, 5), (2, 3, 4, 5)):
            case = one("BatchNormalization", some(rng, shape), *[some(rng, (3,)) for _ in range(3)],
                       positive(rng, (3,)), training_mode=1, momentum=0.7, terms=8)
            yield outputs(case, "y", "mean", "variance")


def instance_norm(version, rng):
    for shape in ((2, 3, 5), (1, 4, 3, 3), (2, 2, 3, 2, 2)):
        c = shape[1]
        yield one("InstanceNormalization", some(rng, shape), some(rng, (c,)), some(rng, (c,)),
                  **legacy(version))
        yield one("InstanceNormalization", some(rng, shape), some(rng, (c,)), some(rng, (c,)),
                  epsilon=0.1, **legacy(version))
    yield one("InstanceNormalization", some(rng, (2, 3, 5), F16), some(rng, (3,), F16),
              some(rng, (3,), F16), **legacy(version))
    x, more = varying(rng, (2, 3, 4, 5), (5, 3, 2, 9), ("n", 3, "h", "w"))
    yield one("InstanceNormalization", x, some(rng, (3,)), some(rng, (3,)), more=more,
              **legacy(version))


def group_norm(version, rng):
    for shape, groups in (((2, 6, 5), 2), ((1, 4, 3, 3), 4), ((2, 4, 3, 3), 1)):
        c = shape[1] if version >= 21 else groups
        yield one("GroupNormalization", some(rng, shape), some(rng, (c,)), some(rng, (c,)),
                  num_groups=groups)
        yield one("GroupNormalization", some(rng, shape), some(rng, (c,)), some(rng, (c,)),
                  num_groups=groups, epsilon=0.1)
    x, more = varying(rng, (2, 4, 3, 5), (5, 4, 2, 9), ("n", 4, "h", "w"))
    c = 4 if version >= 21 else 2
    yield one("GroupNormalization", x, some(rng, (c,)), some(rng, (c,)), more=more, num_groups=2)


def layer_norm(version, rng):
    for axis in (-1, -2, 1, 0, None):
        given = {} if axis is None else {"axis": axis}
        x = some(rng, (2, 3, 4))
        tail = x.shape[-1 if axis is None else axis:]
        yield one("LayerNormalization", x, some(rng, tail), some(rng, tail), **given)
        yield one("LayerNormalization", x, some(rng, tail), epsilon=0.1, **given)
        full = one("LayerNormalization", x, some(rng, tail), some(rng, tail), **given)
        yield outputs(full, "y", "mean", "inverse")
        yield outputs(full, "y", "", "inverse")
    yield one("LayerNormalization", some(rng, (2, 3, 4), F16), some(rng, (4,), F16))
    yield one("LayerNormalization", some(rng, (2, 5), F64), some(rng, (5,), F64))
    x, more = varying(rng, (2, 3, 8), (5, 4, 8), ("n", "t"))
    yield one("LayerNormalization", x, some(rng, (8,)), some(rng, (8,)), more=more)


def rms_norm(version, rng):
    for axis in (-1, -2, 0):
        x = some(rng, (2, 3, 4))
        yield one("RMSNormalization", x, some(rng, x.shape[axis:]), axis=axis)
    yield one("RMSNormalization", some(rng, (2, 5)), some(rng, (5,)), epsilon=0.1)
    yield one("RMSNormalization", some(rng, (2, 5), F16), some(rng, (5,), F16))
    x, more = varying(rng, (2, 3, 8), (5, 4, 8), ("n", "t"))
    yield one("RMSNormalization", x, some(rng, (8,)), more=more)


def lrn(version, rng):
    for channels, size in itertools.product((1, 4, 7), (1, 3, 5)):
        yield one("LRN", some(rng, (2, channels, 3, 4)), size=size)
        yield one("LRN", some(rng, (1, channels, 3, 3)), size=size, alpha=0.5, beta=0.6, bias=2.0)
    for size in (2, 4):   # the evaluator counts channels by the batch
        yield one("LRN", some(rng, (5, 5, 3, 3)), size=size, alpha=0.3)
    x, more = varying(rng, (2, 3, 4, 5), (5, 3, 2, 9), ("n", 3, "h", "w"))
    yield one("LRN", x, size=3, alpha=0.5, more=more)


def along(op, first_only=False):
    def cases(version, rng):
        x = some(rng, (2, 3, 4))
        yield one(op, x)
        for axis in range(-3 if version >= 11 else 0, 3):
            yield one(op, x, axis=axis)
        for t in (F64, F16):
            yield one(op, some(rng, (3, 4), t))
        yield one(op, some(rng, (2, 1)), axis=1)
        yield one(op, np.array([[1, 3, 3, -2], [0, 0, 0, 0]], F32), label="with equal ones")
        if not first_only:
            yield one(op, some(rng, (0, 3)), axis=1)
            large = np.array([[1000, 1001, -1000, 0], [-np.inf, 2, 3, 4]], F32)
            yield one(op, large, label="of large ones")
        x, more = varying(rng, (2, 3, 4), (5, 6, 4), ("n", "t"))
        for axis in (1, 2):
            yield one(op, x, axis=axis, more=more)
    return cases


NETWORKS = {
    "Relu": relu, "PRelu": prelu, "Clip": clip, "Dropout": dropout,
    "LeakyRelu": activation("LeakyRelu", {}, {"alpha": 0.3}, with_bf16=16),
    "Elu": activation("Elu", {}, {"alpha": 0.3}),
    "Selu": selu,
    "Celu": activation("Celu", {}, {"alpha": 0.3}),
    "ThresholdedRelu": activation("ThresholdedRelu", {}, {"alpha": 2.0}),
    "HardSigmoid": activation("HardSigmoid", {}, {"alpha": 0.5, "beta": 0.6}),
    "HardSwish": activation("HardSwish", special=False, f64=False), "Mish": activation("Mish"),
    "Sigmoid": activation("Sigmoid", with_bf16=13), "Softplus": activation("Softplus", old=False),
    "Softsign": activation("Softsign", special=False, old=False),
    "Sum": variadic("Sum"), "Mean": variadic("Mean"), "Gemm": gemm,
    "Identity": identity, "Constant": constant, "ConstantOfShape": constant_of_shape,
    "Flatten": flatten,
    "MaxPool": max_pool, "AveragePool": average_pool, "LpPool": lp_pool,
    "GlobalAveragePool": global_pooling("GlobalAveragePool"),
    "GlobalLpPool": global_pooling("GlobalLpPool", True),
    "ConvTranspose": conv_transpose,
    "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm, "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm, "LRN": lrn,
    "Softmax": along("Softmax"), "LogSoftmax": along("LogSoftmax"),
    "Hardmax": along("Hardmax", True),
}
