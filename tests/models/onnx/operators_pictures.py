"""Test cases of ONNX operators on images: padding, depth to space and back, resizing: {name:
cases(version, rng)}."""

import itertools

import numpy as np

from cases import Case, In, const, one, stated
from operators_networks import BOOL, F16, F32, F64, some, thinned, varying


@thinned(25)
def pad(version, rng):
    def made(x, low, high, value=None, axes=None, label="", more=(), **attributes):
        if version < 11:
            name = "paddings" if version < 2 else "pads"
            given = {} if value is None else {"value": float(value)}
            return one("Pad", x, **{name: [*low, *high]}, **given, label=label, more=more,
                       **attributes)
        dtype = (x.array if isinstance(x, In) else x).dtype
        inputs = [const([*low, *high])]
        if value is not None or axes is not None:
            inputs.append(None if value is None else In(np.array(value, dtype), kind="const"))
        if axes is not None:
            inputs.append(const(axes))
        return one("Pad", x, *inputs, label=f"{low} {high} {label}", more=more, **attributes)
    x = some(rng, (2, 3, 4))
    modes = ["constant", "reflect", "edge"] + (["wrap"] if version >= 19 else [])
    for mode in modes:
        yield made(x, [0, 1, 2], [1, 0, 3], mode=mode)
        yield made(x, [0, 0, 3], [0, 0, 1], mode=mode)
        yield made(x, [0, 0, 0], [0, 0, 0], mode=mode)
        if version >= 11:
            yield made(x, [0, -1, 2], [1, 0, -1], mode=mode, label="that cut")
        wide, more = varying(rng, (2, 3, 4), (5, 3, 4))
        yield made(wide, [0, 1, 1], [0, 2, 0], mode=mode, more=more)
    yield made(x, [0, 1, 2], [1, 0, 3])
    yield made(x, [0, 1, 2], [1, 0, 3], value=2.5)
    yield made(some(rng, (0, 3)), [1, 1], [1, 0], value=1.5, label="of nothing")
    for t in [F64, F16] + ([BOOL, np.dtype("i4"), np.dtype("i8"), np.dtype("u1")]
                           if version >= 13 else []):
        yield made(some(rng, (2, 3), t), [0, 1], [2, 0], value=1)
    if version >= 11:
        yield one("Pad", x, const([0, 1, 2, 1, 0, 3]), np.array(2.5, F32), label="value an input")
    if version >= 18:
        yield made(x, [1, 2], [0, 3], axes=[2, 0])
        yield made(x, [1], [3], value=1.0, axes=[-1])
    if version >= 19:
        yield made(x, [0, 7, 0], [0, 8, 0], mode="wrap", label="more than once")
    n, more = varying(rng, (2, 3), (5, 3))
    if version >= 13:
        yield Case("Pad by a size", [
            ("Shape", ["x0"], ["s"], {}), ("Slice", ["s", "0", "1"], ["n"], {}),
            ("Concat", ["0", "0", "n", "0"], ["p"], {"axis": 0}),
            ("Pad", ["x0", "p"], ["y"], {})], {"x0": n, "0": const([0]), "1": const([1])}, ["y"],
            0, more)


def depth_to_space(version, rng):
    for mode in (None, "DCR", "CRD") if version >= 11 else (None,):
        given = {"mode": mode} if mode else {}
        for s, block in (((2, 8, 3, 4), 2), ((1, 9, 2, 2), 3), ((1, 3, 2, 2), 1), ((0, 4, 2, 3), 2)):
            yield one("DepthToSpace", some(rng, s), blocksize=block, **given)
        x, more = varying(rng, (2, 8, 3, 4), (5, 8, 2, 7), ("n", 8, "h", "w"))
        yield one("DepthToSpace", x, blocksize=2, more=more, **given)
    for t in (F64, F16):
        yield one("DepthToSpace", some(rng, (1, 4, 2, 2), t), blocksize=2)


def space_to_depth(version, rng):
    for mode in (None, "DCR", "CRD") if version >= 28 else (None,):
        given = {"mode": mode} if mode else {}
        for s, block in (((2, 2, 4, 6), 2), ((1, 1, 6, 3), 3), ((1, 3, 2, 2), 1)):
            yield one("SpaceToDepth", some(rng, s), blocksize=block, **given)
        x, more = varying(rng, (2, 3, 4, 6), (5, 3, 4, 6))
        yield one("SpaceToDepth", x, blocksize=2, more=more, **given)
    yield one("SpaceToDepth", some(rng, (1, 4, 2, 2), F64), blocksize=2)


def upsample(version, rng):
    if version < 7:   # which the references do not know
        x = some(rng, (1, 2, 3, 4))
        yield stated(one("Upsample", x, height_scale=2.0, width_scale=3.0, mode="nearest"),
                     x.repeat(2, 2).repeat(3, 3))
        return
    def made(x, scales, label="", more=(), **attributes):
        if version < 9:
            return one("Upsample", x, scales=scales, label=label, more=more, **attributes)
        return one("Upsample", x, const(scales, F32), label=f"{scales} {label}", more=more,
                   **attributes)
    for mode in ("nearest", "linear"):
        x = some(rng, (1, 2, 3, 4))
        for scales in ([1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.5, 2.0], [1.0, 1.0, 1.0, 1.0]):
            yield made(x, scales, mode=mode)
    yield made(some(rng, (1, 1, 2, 2)), [1.0, 1.0, 2.0, 2.0])
    yield made(some(rng, (2, 3)), [2.0, 2.5], mode="nearest")
    x, more = varying(rng, (2, 3, 4, 6), (5, 3, 2, 7), ("n", 3, "h", "w"))
    yield made(x, [1.0, 1.0, 2.0, 3.0], mode="nearest", more=more)


MAPPINGS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def resized_beyond_f32():
    """Sizes beyond 2^24, of which f32 has not all; the first resized axis has rows of ones, twos, …"""
    whole = 2**24
    for n, to, mapping, expected in ((1, whole + 1, "half_pixel", [1] * 4),
                                     (1, whole + 1, "asymmetric", [1] * 4),
                                     (whole, whole + 1, "half_pixel", [16] * 4),
                                     (whole + 3, 4, "align_corners", [1, 6, 11, 17])):
        x = (1 + (np.arange(n) >> 20)).astype(np.uint8).reshape(1, 1, 1, n)
        yield Case(f"Resize of {n} to {to} by {mapping}", [
            ("Resize", ["x0", "", "", "to"], ["r"], {
                "mode": "nearest", "coordinate_transformation_mode": mapping,
                "nearest_mode": "floor" if mapping == "asymmetric" else "round_prefer_floor"}),
            ("Shape", ["r"], ["s"], {}), ("Slice", ["r", "last", "end", "axis"], ["y"], {})],
            {"x0": In(x), "to": const([1, 1, 1, to]), "last": const([-4]), "end": const([2**40]),
             "axis": const([3])}, ["s", "y"],
            expected={"s": np.array([1, 1, 1, to]), "y": np.array([[[expected]]], np.uint8)})


@thinned(19)
def resize(version, rng):
    def made(x, scales=None, sizes=None, roi=None, label="", more=(), **attributes):
        if version < 11:
            return one("Resize", x, const(scales, F32), label=f"{scales} {label}", more=more,
                       **attributes)
        none = const([], F32)
        roi = none if roi is None else const(roi, F32)
        by = const(scales, F32) if scales else none if version < 13 else None
        inputs = [x, roi, by] + ([const(sizes)] if sizes else [])
        return one("Resize", *inputs, label=f"{scales or sizes} {label}", more=more, **attributes)
    x = some(rng, (1, 2, 5, 6))
    SCALES = [[1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.4, 2.5], [1.0, 1.0, 0.6, 0.5]]
    if version < 11:
        for mode, scales in itertools.product(("nearest", "linear"), SCALES):
            yield made(x, scales, mode=mode)
        return
    mappings = MAPPINGS + (["half_pixel_symmetric"] if version >= 19 else [])
    mappings += ["tf_half_pixel_for_nn"] if version < 13 else []
    for scales, mapping, rounding in itertools.product(SCALES, mappings, ROUNDINGS):
        if (mapping, rounding, scales) == ("half_pixel_symmetric", "floor", SCALES[2]):
            continue   # 1.5 / 0.6 - 0.5 is 2, and just less in the runtime's sums
        yield made(x, scales, mode="nearest", coordinate_transformation_mode=mapping,
                   nearest_mode=rounding)
    for scales, mapping in itertools.product(SCALES, mappings):
        if mapping == "tf_half_pixel_for_nn":
            continue
        yield made(x, scales, mode="linear", coordinate_transformation_mode=mapping)
        yield made(x, scales, mode="cubic", coordinate_transformation_mode=mapping)
        yield made(x, scales, mode="cubic", coordinate_transformation_mode=mapping,
                   cubic_coeff_a=-0.5, exclude_outside=1)
    for mode, size in itertools.product(("nearest", "linear", "cubic"), ([7, 3], [1, 1], [5, 9])):
        yield made(x, sizes=[1, 2, *size], mode=mode)
        yield made(x, sizes=[1, 2, *size], mode=mode,
                   coordinate_transformation_mode="pytorch_half_pixel")
    yield made(some(rng, (3, 4)), [2.0, 1.5], mode="linear")
    yield made(some(rng, (1, 1, 3, 4, 3)), [1.0, 1.0, 2.0, 1.5, 0.5], mode="linear")
    for mode in ("nearest", "linear"):
        yield made(x, [1.0, 1.0, 0.8, 1.5], roi=[0, 0, 0.2, 0.1, 1, 1, 0.7, 1.2], mode=mode,
                   coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.0)
    for t in (F16, np.dtype("i4"), np.dtype("u1")):
        yield made(some(rng, (1, 1, 3, 3), t), [1.0, 1.0, 2.0, 2.0], mode="nearest")
    for mode in ("nearest", "linear"):
        n, more = varying(rng, (2, 3, 4, 6), (5, 3, 3, 7), ("n", 3, "h", "w"))
        yield made(n, [1.0, 1.0, 2.0, 3.0], mode=mode, more=more)
        yield made(n, [1.0, 1.0, 0.5, 1.0], mode=mode, more=more, label="halved")
    if version >= 13:
        n, more = varying(rng, (2, 3, 4, 6), (5, 3, 3, 7), ("n", 3, "h", "w"))
        yield Case("Resize to twice the sizes", [
            ("Shape", ["x0"], ["s"], {}), ("Mul", ["s", "by"], ["to"], {}),
            ("Resize", ["x0", "", "", "to"], ["y"], {"mode": "linear"})],
            {"x0": n, "by": const([1, 1, 2, 2])}, ["y"], 0, more)
    if version >= 19:
        yield from resized_beyond_f32()
    if version >= 18:
        yield one("Resize", x, None, const([2.0, 0.5], F32), axes=[3, 2], mode="linear")
        # Without exclude_outside the runtime leaves out what is outside, too.
        wide = some(rng, (1, 1, 16, 12))
        for mode, scales in itertools.product(("linear", "cubic"), ([1.0, 1.0, 0.5, 0.25],
                                                                    [1.0, 1.0, 0.3, 2.0])):
            yield made(wide, scales, mode=mode, antialias=1, exclude_outside=1)
        yield stated(made(np.array([[[[0, 4, 8, 16]]]], F32), [1.0, 1.0, 1.0, 0.5], mode="linear",
                          antialias=1), np.array([[[[2.5, 11.5]]]], F32))
        for p, size in itertools.product(("not_larger", "not_smaller", "stretch"),
                                         ([7, 8], [3, 9], [2, 2])):
            yield one("Resize", x, None, None, const(size), axes=[2, 3], mode="linear",
                      keep_aspect_ratio_policy=p, label=str(size))
        # 7 / 6 of 3 is half of 7, which f32's 7 / 6 is below
        yield one("Resize", some(rng, (1, 1, 6, 3)), None, None, const([7, 20]), axes=[2, 3],
                  mode="nearest", keep_aspect_ratio_policy="not_larger")
        for p, width in itertools.product(("not_larger", "not_smaller"), (3, 6, 12)):
            if (p, width) == ("not_larger", 3):
                continue   # half of a size that varies, rounded: refused
            n, more = varying(rng, (1, 2, 9, 6), (1, 2, 4, 6), (1, 2, "h", 6))
            yield Case(f"Resize to a height that stays and {width}, {p}", [
                ("Shape", ["x0"], ["s"], {}), ("Slice", ["s", "2", "3"], ["h"], {}),
                ("Concat", ["h", "w"], ["to"], {"axis": 0}),
                ("Resize", ["x0", "", "", "to"], ["y"],
                 {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": p})],
                {"x0": n, "2": const([2]), "3": const([3]), "w": const([width])}, ["y"], 0, more)


PICTURES = {"Pad": pad, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth,
            "Upsample": upsample, "Resize": resize}
