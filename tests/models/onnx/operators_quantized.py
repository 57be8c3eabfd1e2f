"""Test cases of ONNX's quantised operators and integer products, of windows of signals, and of CenterCropPad:
{name: cases(version, rng)}."""

import itertools

import numpy as np

from cases import const, one
from operators import F32, F64, some

I8, U8, I16, U16, I32 = (np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4"))


def outputs(case, *names):
    (op, ins, _, attributes), = case.nodes
    case.nodes, case.outputs = [(op, ins, list(names), attributes)], list(names)
    return case


def joined(*cases):
    return lambda version, rng: itertools.chain(*(of(version, rng) for of in cases))


def integers(rng, shape, kind):
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind, endpoint=True)


def kinds(version):
    return [U8, I8] + ([U16, I16] if version >= 21 else [])


def quantize(version, rng):
    x = (some(rng, (3, 4, 2), F32) * 60).astype(F32)
    yield one("QuantizeLinear", x, const(0.5, F32))
    for t in kinds(version):
        zero = integers(rng, (), t)
        yield one("QuantizeLinear", x, const(0.37, F32), const(zero, t))
        if version >= 13:
            for axis in (0, 1, -1):
                n = x.shape[axis]
                yield one("QuantizeLinear", x, np.abs(some(rng, (n,), F32)) + F32.type(0.1),
                          integers(rng, (n,), t), axis=axis)
    yield one("QuantizeLinear", np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30], F32),
              const(1.0, F32), const(128, U8), label="of halves")
    if version >= 21:
        yield one("QuantizeLinear", x, np.abs(some(rng, (3, 2, 2), F32)) + F32.type(0.1),
                  integers(rng, (3, 2, 2), U8), axis=1, block_size=2)


def dequantize(version, rng):
    for t in kinds(version):
        x = integers(rng, (3, 4, 2), t)
        yield one("DequantizeLinear", x, const(0.37, F32))
        yield one("DequantizeLinear", x, const(0.37, F32), const(integers(rng, (), t), t))
        if version >= 13:
            for axis in (0, 1, -1):
                n = x.shape[axis]
                yield one("DequantizeLinear", x, some(rng, (n,), F32), integers(rng, (n,), t), axis=axis)
    yield one("DequantizeLinear", integers(rng, (3, 4), I32), const(0.01, F32))
    if version >= 21:
        yield one("DequantizeLinear", integers(rng, (3, 5), U8), some(rng, (3, 3), F32),
                  integers(rng, (3, 3), U8), axis=1, block_size=2)


def dynamic_quantize(version, rng):
    for x in (some(rng, (3, 4), F32), np.abs(some(rng, (3, 4), F32)) + F32.type(1),
              -np.abs(some(rng, (3, 4), F32)), np.zeros((2, 3), F32)):
        yield outputs(one("DynamicQuantizeLinear", x), "y", "scale", "zero")
    yield one("DynamicQuantizeLinear", x)


def quantized_matmul(version, rng):
    for t, u in itertools.product((U8, I8), (U8, I8)):
        for shapes in (((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5))):
            x, y = (integers(rng, s, k) for s, k in zip(shapes, (t, u)))
            yield one("QLinearMatMul", x, const(0.01, F32), const(integers(rng, (), t), t), y,
                      const(0.02, F32), const(integers(rng, (), u), u), const(0.05, F32), const(3, t))


def windows_of(rng, integer):
    for t, group, how in ((U8, 1, {}), (U8, 2, {"pads": [1, 1, 1, 1]}), (U8, 1, {"strides": [2, 2]})):
        x, w = integers(rng, (2, 4, 5, 5), t), integers(rng, (6, 4 // group, 3, 3), U8 if integer else t)
        yield x, w, {"group": group, **how}


def conv_integer(version, rng):
    for x, w, how in windows_of(rng, True):
        yield one("ConvInteger", x, w, **how)
        yield one("ConvInteger", x, w, const(120, x.dtype), const(100, w.dtype), **how)


def quantized_conv(version, rng):
    for x, w, how in windows_of(rng, False):
        for scale in (const(0.02, F32), const(np.full(6, 0.03), F32)):
            zero = const(100, w.dtype) if not scale.array.shape else const(np.full(6, 100), w.dtype)
            given = [x, const(0.01, F32), const(120, x.dtype), w, scale, zero, const(2.0, F32),
                     const(9, x.dtype)]
            yield one("QLinearConv", *given, **how)
            yield one("QLinearConv", *given, integers(rng, (6,), I16).astype(I32), **how)


def integer_matmul(version, rng):
    for a, b in ((U8, U8), (I8, I8), (U8, I8)):
        x, y = some(rng, (3, 4), a, -90, 90), some(rng, (4, 5), b, -90, 90)
        yield one("MatMulInteger", x, y)
        yield one("MatMulInteger", x, y, const(7, a), const(3, b))
        yield one("MatMulInteger", x, y, const([5], a))
        yield one("MatMulInteger", x, y, const(4, a), some(rng, (5,), b))
    yield one("MatMulInteger", some(rng, (2, 3, 4), U8), some(rng, (4, 5), U8), None, const(9, U8))
    x, y = some(rng, (17, 65), U8, 0, 255), some(rng, (65, 33), U8, 0, 255)
    yield one("MatMulInteger", x, y, const(128, U8), const(131, U8), label="words")


SCALES = const(0.5, F32), const(0.25, F32), const(8, F32)  # results are exact, ties among them


def exact_products(version, rng):
    x_scale, y_scale, scale = SCALES
    for a, b, to in ((U8, U8, U8), (U8, I8, U8), (I8, I8, I8)):
        for m, n, k in ((3, 5, 4), (17, 33, 64)):
            x, y = some(rng, (m, k), a, -90, 90), some(rng, (k, n), b, -90, 90)
            yield one("QLinearMatMul", x, x_scale, const(3, a), y, y_scale, const(5, b), scale,
                      const(7, to))
    x, y = some(rng, (2, 3, 4), U8), some(rng, (4, 5), U8)
    yield one("QLinearMatMul", x, x_scale, const(0, U8), y, y_scale, const(0, U8), scale, const(0, U8))


def exact_convolutions(version, rng):
    for a, b in ((U8, U8), (U8, I8)):
        x, w = some(rng, (2, 4, 6, 5), a, -90, 90), some(rng, (3, 4, 3, 2), b, -90, 90)
        yield one("ConvInteger", x, w)
        yield one("ConvInteger", x, w, const(7, a), const(0, b), pads=[1, 0, 2, 1], strides=[2, 1])
        yield one("ConvInteger", x, w, const(7, a), const(3, b), pads=[1, 1, 1, 1])
    x, w = some(rng, (1, 16, 7, 7), U8, 0, 255), some(rng, (9, 16, 3, 3), U8, 0, 255)
    yield one("ConvInteger", x, w, const(131, U8), pads=[1, 1, 1, 1], label="words")
    x, w = some(rng, (1, 4, 5, 5), U8), some(rng, (6, 2, 3, 3), U8)
    yield one("ConvInteger", x, w, const(2, U8), group=2)


def exact_quantised_convolutions(version, rng):
    x_scale, w_scale, scale = SCALES
    for a, b, to in ((U8, U8, U8), (U8, I8, U8), (I8, I8, I8)):
        x, w = some(rng, (1, 16, 6, 6), a, -90, 90), some(rng, (8, 16, 3, 3), b, -90, 90)
        zeros = const(9, a), const(0, b), const(11, to)
        yield one("QLinearConv", x, x_scale, zeros[0], w, w_scale, zeros[1], scale, zeros[2],
                  pads=[1, 1, 1, 1])
        yield one("QLinearConv", x, x_scale, zeros[0], w, w_scale, zeros[1], scale, zeros[2],
                  some(rng, (8,), I32, -900, 900), strides=[2, 2])
    each = const([0.25, 0.5, 1, 2, 4, 0.125, 0.25, 8], F32)
    x, w = some(rng, (1, 3, 6, 6), U8), some(rng, (8, 3, 3, 3), I8)
    yield one("QLinearConv", x, x_scale, const(4, U8), w, each, const([0] * 8, I8), scale, const(3, U8))


def causal_conv(version, rng):
    for t in (F32, F64):
        x, w, bias = some(rng, (2, 3, 6), t), some(rng, (3, 1, 4), t), some(rng, (3,), t)
        for given in ([x, w], [x, w, bias], [x, w, bias, some(rng, (2, 3, 3), t)]):
            for how in ({}, {"activation": "silu"}) if t == F32 else ({},):
                yield outputs(one("CausalConvWithState", *given, terms=4, **how), "y", "state")


def window(op):
    def cases(version, rng):
        for n, periodic in itertools.product((6, 10), (0, 1)):
            yield one(op, const(n, I32), periodic=periodic)
        yield one(op, const(9, I32), output_datatype=10)
    return cases


def centre(version, rng):
    x = some(rng, (4, 7, 5), F32)
    for to in ((4, 7, 5), (2, 9, 5), (3, 4, 8), (7, 2, 2)):
        yield one("CenterCropPad", x, const(to))
    yield one("CenterCropPad", x, const([10, 2]), axes=[1, 2])
    yield one("CenterCropPad", x, const([8]), axes=[-1])
    yield one("CenterCropPad", integers(rng, (3, 4), I32), const([4, 3]))


OPERATORS = {
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize, "MatMulInteger": integer_matmul,
    "QLinearMatMul": joined(quantized_matmul, exact_products),
    "ConvInteger": joined(conv_integer, exact_convolutions),
    "QLinearConv": joined(quantized_conv, exact_quantised_convolutions),
    "CausalConvWithState": causal_conv,
    "HannWindow": window("HannWindow"), "HammingWindow": window("HammingWindow"),
    "BlackmanWindow": window("BlackmanWindow"), "CenterCropPad": centre,
}
