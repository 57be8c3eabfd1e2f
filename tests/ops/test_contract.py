"""Tests matrix products, convolutions and pooling: against NumPy in f64, and against ONNX Runtime,
which decides what the options mean."""

import ctypes
import itertools

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from binding import FLOATS, Cases, ConvDesc, conv_desc, dtype, pool_desc

c = Cases()
tn = c.tn
np.seterr(all="ignore")

# ---- Matrix products ----

SHAPES = [((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)),
          ((2, 1, 3, 4), (5, 4, 2)), ((1, 1), (1, 1)), ((33, 65), (65, 31)), ((0, 3), (3, 2)),
          ((2, 0), (0, 3)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((1, 70), (70, 40))]
for a, b in SHAPES:
    x, y = c.floats(a), c.floats(b)
    e = np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    c.check(f"matmul {a} {b}", tn.matmul(tn.of(x), tn.of(y)), e, terms=a[-1])
for kind in [*FLOATS[1:], "i8", "i32", "u64"]:
    x, y = c.some((7, 9), kind), c.some((2, 9, 5), kind)
    wide = np.float64 if kind in FLOATS else dtype(kind)
    e = np.matmul(x.astype(wide), y.astype(wide)).astype(dtype(kind))
    c.check(f"matmul {kind}", tn.matmul(tn.of(x), tn.of(y)), e, terms=9)
for a, b, to in [("u8", "i8", "i32"), ("i8", "i8", "i32"), ("u8", "u8", "i32"), ("i16", "i16", "i32"),
                 ("i8", "u8", "i64"), ("u8", "i8", "f32"), ("i8", "i8", "i8")]:
    x, y = c.some((17, 43), a), c.some((43, 33), b)
    wide = np.int64 if to != "f32" else np.float64
    e = np.matmul(x.astype(wide), y.astype(wide)).astype(dtype(to))
    c.check(f"matmul_as {a} {b} {to}", tn.matmul_as(tn.of(x), tn.of(y), to), e, terms=43)
c.refuse("matmul_as bool", tn.matmul_as(tn.of(x), tn.of(y), "bool"), "ERR_DTYPE",
         "the result cannot have type bool")
# Products that fill tiles of small floats, where a device has them: rests of rows, columns, terms.
for kind in FLOATS[2:]:
    for a, b in [((64, 64), (64, 64)), ((65, 70), (70, 67)), ((3, 64, 64), (3, 64, 64)),
                 ((2, 100, 48), (48, 80))]:
        x, y = c.floats(a, kind), c.floats(b, kind)
        e = np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(dtype(kind))
        c.check(f"matmul tiles {kind} {a} {b}", tn.matmul(tn.of(x), tn.of(y)), e, terms=a[-1])
x, y = c.floats((6, 8)), c.floats((8, 6))
e = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
c.check("matmul permuted", tn.matmul(tn.permuted(x), tn.permuted(y)), e, terms=8)
c.check("matmul sliced", tn.matmul(tn.sliced(x), tn.of(y)), e, terms=8)
c.check("matmul expanded", tn.matmul(tn.expanded(x[0], 6), tn.sliced(y)),
        np.broadcast_to(x[0].astype(np.float64) @ y.astype(np.float64), (6, 6)).astype(np.float32),
        terms=8)
c.check("matmul past f16", tn.matmul(tn.of(np.full((1, 4096), 1, np.float16)),
                                     tn.of(np.full((4096, 1), 1, np.float16))),
        np.array([[4096]], np.float16))
i = c.integers((3, 4), "i8")
c.check("matmul meets", tn.matmul(tn.of(i), tn.of(np.ones((4, 2), np.float32))),
        i.astype(np.float32) @ np.ones((4, 2), np.float32))
f = tn.of(c.floats((3, 4)))
c.refuse("matmul", tn.matmul(f, tn.of(c.floats((5, 6)))), "ERR_SHAPE", "matmul", "3x4", "5x6",
         "inner sizes differ")
c.refuse("matmul batches", tn.matmul(tn.of(c.floats((2, 3, 4))), tn.of(c.floats((3, 4, 5)))),
         "ERR_SHAPE", "matmul")
c.refuse("matmul scalar", tn.matmul(f, tn.num(2)), "ERR_SHAPE", "scalar")
c.refuse("matmul bools", tn.matmul(*[tn.of(np.ones((2, 2), bool))] * 2), "ERR_DTYPE", "bool")

# ---- ONNX Runtime ----

NUMBER = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.float64): TensorProto.DOUBLE,
          np.dtype(np.int8): TensorProto.INT8}


def onnx_node(op, inputs, **attributes):
    """Runs one node in ONNX Runtime."""
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attributes)
    values = [helper.make_tensor_value_info(n, NUMBER[v.dtype], v.shape)
              for n, v in zip(names, inputs)]
    out = helper.make_tensor_value_info("y", NUMBER[inputs[0].dtype], None)
    model = helper.make_model(helper.make_graph([node], "g", values, [out]),
                              opset_imports=[helper.make_opsetid("", 22)])
    model.ir_version = 10
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))[0]


def windows(x, kernel, stride, dilation):
    """Returns the windows of (N, C, D…) as (N, C, O…, K…)."""
    n = len(kernel)
    size = [(d - r * (k - 1) - 1) // s + 1
            for d, k, s, r in zip(x.shape[2:], kernel, stride, dilation)]
    out = np.empty((*x.shape[:2], *size, *kernel), x.dtype)
    for at in itertools.product(*map(range, kernel)):
        take = tuple(slice(k * r, k * r + s * (o - 1) + 1, s)
                     for k, r, s, o in zip(at, dilation, stride, size))
        out[(slice(None),) * (2 + n) + at] = x[(slice(None),) * 2 + take]
    return out


def conv(x, w, bias, stride, dilation, low, high, groups):
    n = x.ndim - 2
    wide = np.float64 if x.dtype.kind == "f" or x.dtype.itemsize == 2 else x.dtype
    x = np.pad(x.astype(wide), [(0, 0)] * 2 + list(zip(low, high)))
    v = windows(x, w.shape[2:], stride, dilation)
    v = v.reshape(v.shape[0], groups, -1, *v.shape[2:])
    g = w.astype(wide).reshape(groups, -1, *w.shape[1:])
    o, k = "abc"[:n], "xyz"[:n]
    y = np.einsum(f"ngi{o}{k},gmi{k}->ngm{o}", v, g)
    y = y.reshape(y.shape[0], -1, *y.shape[3:])
    return y + bias.astype(wide).reshape(-1, *[1] * n) if bias is not None else y


# (x, w, stride, dilation, low, high, groups)
CONVS = [
    ((2, 3, 11), (4, 3, 3), (1,), (1,), (0,), (0,), 1),
    ((1, 4, 12), (6, 2, 4), (3,), (2,), (2,), (5,), 2),
    ((2, 3, 8, 9), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 3, 13, 10), (4, 3, 5, 2), (2, 3), (2, 1), (3, 0), (1, 2), 1),
    ((2, 6, 7, 7), (6, 1, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 6),
    ((2, 8, 5, 6), (3, 8, 1, 1), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 4, 6, 6), (8, 2, 1, 3), (2, 1), (1, 2), (0, 2), (0, 2), 2),
    ((1, 2, 5, 6, 7), (4, 1, 2, 3, 2), (1, 2, 1), (2, 1, 1), (1, 0, 1), (0, 1, 2), 2),
    ((1, 1, 3, 3), (1, 1, 3, 3), (1, 1), (1, 1), (0, 0), (0, 0), 1),
    ((1, 3, 32, 32), (16, 3, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 1),
]
for xs, ws, stride, dilation, low, high, groups in CONVS:
    x, w, b = c.floats(xs), c.floats(ws), c.floats(ws[0])
    d = dict(stride=stride, dilation=dilation, pad_low=low, pad_high=high, groups=groups)
    e = conv(x, w, b, stride, dilation, low, high, groups).astype(np.float32)
    theirs = onnx_node("Conv", [x, w, b], strides=stride, dilations=dilation, group=groups,
                       pads=[*low, *high])
    c.true(f"references agree {xs} {ws}", np.allclose(e, theirs, 1e-4, 1e-4))
    c.check(f"conv {xs} {ws}", tn.conv(tn.of(x), tn.of(w), tn.of(b), conv_desc(**d)), e,
            terms=np.prod(ws[1:]))
x, w = c.floats((2, 4, 6, 5)), c.floats((3, 4, 2, 3))
e = conv(x, w, None, (1, 1), (1, 1), (0, 0), (0, 0), 1).astype(np.float32)
c.check("conv by default", tn.conv(tn.of(x), tn.of(w), None, None), e, terms=24)
c.check("conv of views", tn.conv(tn.permuted(x), tn.sliced(w), None, None), e, terms=24)
c.check("conv of no images", tn.conv(tn.of(x[:0]), tn.of(w), None, None), e[:0])
for kind in [*FLOATS[1:], "i8", "i64"]:
    x, w, b = c.some((1, 2, 7, 6), kind), c.some((4, 1, 3, 2), kind), c.some((4,), kind)
    e = conv(x, w, b, (2, 1), (1, 1), (1, 0), (0, 1), 2).astype(dtype(kind))
    d = conv_desc(stride=(2, 1), pad_low=(1, 0), pad_high=(0, 1), groups=2)
    c.check(f"conv {kind}", tn.conv(tn.of(x), tn.of(w), tn.of(b), d), e, terms=6)

# (x, w, stride, dilation, low, high, output pad, groups)
TRANSPOSES = [
    ((1, 3, 5), (3, 4, 3), (1,), (1,), (0,), (0,), (0,), 1),
    ((2, 4, 6), (4, 3, 4), (3,), (2,), (2,), (1,), (1,), 2),
    ((1, 3, 4, 5), (3, 2, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), (1, 1), 1),
    ((1, 4, 3, 4), (4, 1, 2, 3), (2, 3), (1, 2), (0, 3), (1, 2), (0, 2), 4),
    ((1, 2, 3, 3), (2, 3, 1, 1), (2, 2), (1, 1), (0, 0), (0, 0), (1, 0), 1),
    ((1, 2, 3, 2, 3), (2, 2, 2, 2, 3), (2, 1, 2), (1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 0, 0), 1),
    ((2, 4, 5), (4, 3, 4), (2,), (1,), (1,), (1,), (0,), 1),
    ((1, 4, 5), (4, 3, 6), (3,), (1,), (4,), (7,), (2,), 2),
    ((1, 2, 7), (2, 3, 2), (2,), (1,), (5,), (6,), (1,), 1),
    ((1, 6, 3, 4), (6, 2, 4, 3), (4, 3), (1, 1), (3, 0), (0, 2), (3, 1), 3),
    ((1, 3, 4, 5), (3, 4, 6, 3), (2, 2), (1, 1), (2, 1), (3, 1), (0, 1), 1),
    ((1, 2, 2, 3, 2), (2, 2, 2, 4, 3), (2, 2, 1), (1, 1, 1), (0, 1, 1), (1, 2, 0), (1, 0, 0), 2),
]
for xs, ws, stride, dilation, low, high, more, groups in TRANSPOSES:
    x, w, b = c.floats(xs), c.floats(ws), c.floats(ws[1] * groups)
    e = onnx_node("ConvTranspose", [x, w, b], strides=stride, dilations=dilation, group=groups,
                  pads=[*low, *high], output_padding=more)
    d = conv_desc(stride=stride, dilation=dilation, pad_low=low, pad_high=high, groups=groups,
                  output_pad=more)
    c.check(f"conv_transpose {xs} {ws}", tn.conv_transpose(tn.of(x), tn.of(w), tn.of(b), d), e,
            terms=np.prod(ws[2:]) * xs[1])
x, w = c.floats((1, 2, 4)), c.floats((2, 3, 2))
c.check("conv_transpose by default", tn.conv_transpose(tn.of(x), tn.of(w), None, None),
        onnx_node("ConvTranspose", [x, w]), terms=4)
for kind in ("f16", "i16"):
    x, w = c.some((1, 2, 5), kind), c.some((2, 1, 3), kind)
    full = np.zeros((1, 1, 11))
    for at, k, ch in itertools.product(range(5), range(3), range(2)):
        full[0, 0, 2 * at + k] += float(x[0, ch, at]) * float(w[ch, 0, k])
    c.check(f"conv_transpose {kind}",
            tn.conv_transpose(tn.of(x), tn.of(w), None, conv_desc(stride=(2,))),
            full.astype(dtype(kind)))

x, w = tn.of(c.floats((1, 4, 5, 5))), tn.of(c.floats((6, 2, 3, 3)))
for label, args, status, words in [
        ("conv channels", (x, w, None, None), "ERR_SHAPE", ["1x4x5x5", "6x2x3x3", "channels"]),
        ("conv rank", (x, tn.of(c.floats((6, 4, 3))), None, None), "ERR_SHAPE", ["rank"]),
        ("conv groups", (x, w, None, conv_desc(groups=0)), "ERR_ARGUMENT", ["groups"]),
        ("conv outputs", (x, tn.of(c.floats((5, 2, 3, 3))), None, conv_desc(groups=2)), "ERR_SHAPE",
         ["groups"]),
        ("conv stride", (x, w, None, conv_desc(groups=2, stride=(0, 1))), "ERR_ARGUMENT",
         ["stride[0]"]),
        ("conv pad", (x, w, None, conv_desc(groups=2, pad_high=(0, -1))), "ERR_ARGUMENT",
         ["pad_high[1]"]),
        ("conv output_pad", (x, w, None, conv_desc(groups=2, output_pad=(1, 0))), "ERR_ARGUMENT",
         ["output_pad[0]"]),
        ("conv window", (x, w, None, conv_desc(groups=2, dilation=(3, 1))), "ERR_SHAPE",
         ["7", "5"]),
        ("conv bias", (x, w, tn.of(c.floats(5)), conv_desc(groups=2)), "ERR_SHAPE", ["bias", "6"]),
        ("conv size", (x, w, None, conv_desc(groups=2, size=3)), "ERR_ARGUMENT", ["size"])]:
    c.refuse(label, tn.conv(*args), status, *words)
c.refuse("conv_transpose output_pad",
         tn.conv_transpose(x, tn.of(c.floats((4, 1, 3, 3))), None, conv_desc(output_pad=(1, 0))),
         "ERR_ARGUMENT", "conv_transpose", "output_pad")
c.refuse("conv_transpose cut away",
         tn.conv_transpose(x, tn.of(c.floats((4, 1, 3, 3))), None, conv_desc(pad_low=(9, 0))),
         "ERR_SHAPE", "axis 0")



class LongerDesc(ctypes.Structure):
    """A descriptor with a field that a later version may append."""
    _fields_ = [("known", ConvDesc), ("later", ctypes.c_int64)]


x, w = c.floats((1, 1, 5)), c.floats((1, 1, 3))
for later in (0, 1):
    longer = LongerDesc(conv_desc(stride=(2,)), later)
    longer.known.size = ctypes.sizeof(LongerDesc)
    y = tn.conv(tn.of(x), tn.of(w), None, longer)
    if later:
        c.refuse("conv with an unknown field", y, "ERR_ARGUMENT", "tn_conv_desc")
    else:
        e = conv(x, w, None, (2,), (1,), (0,), (0,), 1).astype(np.float32)
        c.check("conv with a field of 0", y, e, terms=3)

# ---- Pooling ----

# (x, kernel, stride, dilation, low, high, ceil)
POOLS = [
    ((2, 3, 10), (3,), (1,), (1,), (0,), (0,), False),
    ((1, 2, 11), (4,), (3,), (1,), (1,), (2,), True),
    ((2, 3, 8, 9), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), False),
    ((1, 2, 9, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), False),
    ((1, 2, 9, 10), (3, 2), (2, 3), (1, 1), (1, 0), (0, 1), True),
    ((1, 1, 6, 7), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), True),
    ((1, 2, 5, 6, 7), (2, 3, 2), (2, 1, 2), (1, 1, 1), (1, 1, 0), (0, 1, 1), False),
    ((1, 1, 12, 11), (3, 2), (1, 2), (2, 3), (1, 1), (2, 1), False),
    ((1, 1, 2), (3,), (2,), (1,), (0,), (0,), True),  # windows larger than the padded axis
    ((1, 2, 4), (7,), (4,), (1,), (0,), (0,), True),
    ((1, 2, 3), (5,), (3,), (1,), (0,), (1,), True),
    ((2, 1, 3), (3,), (3,), (2,), (1,), (0,), True),
    ((1, 1, 1, 5), (3, 2), (3, 2), (1, 1), (0, 0), (1, 0), True),
]
for xs, kernel, stride, dilation, low, high, up in POOLS:
    x = c.floats(xs)
    d = dict(kernel=kernel, stride=stride, dilation=dilation, pad_low=low, pad_high=high,
             ceil_mode=up)
    a = dict(kernel_shape=kernel, strides=stride, dilations=dilation, pads=[*low, *high],
             ceil_mode=int(up))
    c.check(f"max_pool {xs} {kernel}", tn.max_pool(tn.of(x), pool_desc(**d)),
            onnx_node("MaxPool", [x], **a))
    for pads in (True, False):
        c.check(f"avg_pool {xs} {kernel} {pads}",
                tn.avg_pool(tn.of(x), pool_desc(count_include_pad=pads, **d)),
                onnx_node("AveragePool", [x], count_include_pad=int(pads), **a), terms=1)

x = c.floats((2, 3, 6, 4))
v = windows(x, (2, 3), (2, 3), (1, 1)).reshape(2, 3, 3, 1, -1)
c.check("max_pool as the kernel", tn.max_pool(tn.sliced(x), pool_desc(kernel=(2, 3))), v.max(-1))
c.check("avg_pool as the kernel", tn.avg_pool(tn.permuted(x), pool_desc(kernel=(2, 3))),
        v.astype(np.float64).mean(-1).astype(np.float32), terms=1)
c.check("max_pool by default", tn.max_pool(tn.of(x), None), x)
low = np.full((1, 1, 4), -np.inf, np.float32)
c.check("max_pool of -inf", tn.max_pool(tn.of(low), pool_desc(kernel=(3,), pad_low=(1,))),
        np.full((1, 1, 1), -np.inf, np.float32))
x[0, 0, 0, 0] = np.nan
c.check("max_pool of NaN", tn.max_pool(tn.of(x), pool_desc(kernel=(6, 4))),
        x.max((2, 3), keepdims=True))
for kind in ("i8", "u16", "f16", "f64"):
    x = c.some((1, 2, 7), kind)
    if kind == "i8":
        x = -np.abs(x) - 1
    v = windows(np.pad(x, ((0, 0), (0, 0), (1, 1)), "edge"), (3,), (2,), (1,))
    d = pool_desc(kernel=(3,), stride=(2,), pad_low=(1,), pad_high=(1,))
    c.check(f"max_pool {kind}", tn.max_pool(tn.of(x), d), v.max(-1))
    z = windows(np.pad(x, ((0, 0), (0, 0), (1, 1))), (3,), (2,), (1,))
    c.check(f"avg_pool {kind}", tn.avg_pool(tn.of(x), d),
            z.astype(np.float64).mean(-1).astype(dtype(kind if kind in FLOATS else "f32")))
# Windows of two elements, 4 apart: the middle one covers padding alone.
d = dict(kernel=(2,), stride=(1,), dilation=(4,), pad_low=(4,), pad_high=(4,))
for kind, least in (("f32", -np.inf), ("f64", -np.inf), ("i8", -128)):
    x = tn.of(np.array([[[1, 9, 2]]], dtype(kind)))
    t = dtype(kind if kind in FLOATS else "f32")
    c.check(f"max_pool of pads {kind}", tn.max_pool(x, pool_desc(**d)),
            np.array([[[1, 9, 2, least, 1, 9, 2]]]).astype(dtype(kind)))
    c.check(f"avg_pool of pads {kind}", tn.avg_pool(x, pool_desc(count_include_pad=False, **d)),
            np.array([[[1, 9, 2, 0, 1, 9, 2]]], t))
    c.check(f"avg_pool with pads {kind}", tn.avg_pool(x, pool_desc(**d)),
            np.array([[[0.5, 4.5, 1, 0, 0.5, 4.5, 1]]], t))
for name, of in (("global_max_pool", np.max), ("global_avg_pool", np.mean)):
    for shape in ((2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 2, 3)):
        x = c.floats(shape)
        e = of(x.astype(np.float64), axis=tuple(range(2, len(shape))), keepdims=True)
        c.check(f"{name} {shape}", getattr(tn, name)(tn.of(x)), e.astype(np.float32),
                terms=1 if of is np.mean else 0)
    c.refuse(name, getattr(tn, name)(tn.of(c.floats(3))), "ERR_SHAPE", name)

x = tn.of(c.floats((1, 1, 5, 5)))
for label, d, status, words in [
        ("kernel", dict(kernel=(0, 1)), "ERR_ARGUMENT", ["kernel[0]"]),
        ("pad", dict(kernel=(3, 3), pad_low=(3, 0)), "ERR_ARGUMENT", ["pad_low[0]"]),
        ("stride", dict(kernel=(3, 3), stride=(-1, 1)), "ERR_ARGUMENT", ["stride[0]"]),
        ("window", dict(kernel=(6, 1)), "ERR_SHAPE", ["6", "5"]),
        ("window, a stride more", dict(kernel=(7, 1), stride=(2, 1), ceil_mode=True), "ERR_SHAPE",
         ["7", "5"])]:
    c.refuse(f"max_pool {label}", tn.max_pool(x, pool_desc(**d)), status, "max_pool", *words)
    c.refuse(f"avg_pool {label}", tn.avg_pool(x, pool_desc(**d)), status, "avg_pool", *words)
c.refuse("max_pool bools", tn.max_pool(tn.of(np.ones((1, 1, 3), bool)), None), "ERR_DTYPE", "bool")

c.done(least=141)
