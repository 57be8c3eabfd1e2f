"""Test cases of ONNX operators that read images at computed places, or put windows back into
images: {name: cases(version, rng)}."""

import itertools

import numpy as np

from cases import const, one, stated
from operators_networks import F32, some, varying


def grid_of(rng, shape, dtype=F32):
    """Makes places within the image and beyond its edges."""
    return rng.uniform(-1.6, 1.6, shape).astype(dtype)


def grid_sample(version, rng):
    linear, nearest, cubic = (("bilinear", "nearest", "bicubic") if version < 20 else
                              ("linear", "nearest", "cubic"))
    x, grid = some(rng, (2, 3, 5, 4)), grid_of(rng, (2, 6, 7, 2))
    for mode, padding, align in itertools.product((linear, nearest, cubic),
                                                  ("zeros", "border", "reflection"), (0, 1)):
        yield one("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=align)
    yield one("GridSample", x, grid)
    for padding, align in itertools.product(("zeros", "border", "reflection"), (0, 1)):
        far = np.array([[-7, 9], [3.2, -4.1], [1, -1], [0, 0], [-1, 1]], F32).reshape(1, 1, 5, 2)
        yield one("GridSample", x[:1], far, mode=linear, padding_mode=padding, align_corners=align,
                  label="far outside")
    beyond = np.array([1e30, -1e30, np.inf, -np.inf], F32).reshape(1, 1, 2, 2)
    corner = x[:1, :, :1, 3:]   # not so in the runtime
    yield stated(one("GridSample", x[:1], beyond, mode=linear, padding_mode="border",
                     align_corners=1), np.concatenate([corner, corner], 3))
    infinite = x.copy()
    infinite[:, :, 0, 0] = np.inf
    yield one("GridSample", infinite, np.full((2, 1, 1, 2), 0.9, F32), mode=nearest)
    n, more = varying(rng, (2, 3, 5, 4), (2, 3, 3, 6), (2, 3, "h", "w"))
    yield one("GridSample", n, grid, mode=linear, more=more)
    if version >= 20:
        for mode, align in itertools.product((linear, nearest), (0, 1)):
            yield one("GridSample", some(rng, (1, 2, 3, 4, 5)), grid_of(rng, (1, 2, 3, 2, 3)),
                      mode=mode, align_corners=align)


def affine_grid(version, rng):
    for align in (0, 1):
        yield one("AffineGrid", some(rng, (2, 2, 3)), const([2, 3, 4, 5]), align_corners=align)
        yield one("AffineGrid", some(rng, (2, 3, 4)), const([2, 3, 4, 5, 2]), align_corners=align)
    yield one("AffineGrid", some(rng, (1, 2, 3)), const([1, 1, 1, 6]))


def col2im(version, rng):
    yield one("Col2Im", some(rng, (1, 5, 5)), const([5, 5]), const([1, 5]))
    yield one("Col2Im", some(rng, (2, 3 * 4, 20)), const([5, 6]), const([2, 2]))
    yield one("Col2Im", some(rng, (1, 9, 4)), const([6, 7]), const([3, 3]), strides=[2, 4])
    yield one("Col2Im", some(rng, (1, 9, 9)), const([5, 5]), const([1, 9]), pads=[0, 3, 0, 3],
              strides=[2, 1], dilations=[1, 1], label="more pads than needed")
    yield one("Col2Im", some(rng, (1, 4, 9)), const([5, 5]), const([2, 2]), dilations=[2, 2])
    yield one("Col2Im", some(rng, (1, 10, 12)), const([3, 4, 5]), const([1, 1, 5]),
              pads=[0, 0, 0, 0, 0, 0])
    yield one("Col2Im", some(rng, (1, 6, 5)), const([9]), const([3]), strides=[2], pads=[1, 1])
    n, more = varying(rng, (2, 4, 9), (5, 4, 9))
    yield one("Col2Im", n, const([4, 4]), const([2, 2]), more=more)


def max_unpool(version, rng):
    def places(shape, out):
        n, c, *image = shape
        picked = [rng.permutation(int(np.prod(out)))[:int(np.prod(image))] for _ in range(n * c)]
        flat = np.stack(picked) + np.arange(n * c)[:, None] * int(np.prod(out))
        return flat.reshape(shape).astype(np.int64)
    yield one("MaxUnpool", some(rng, (1, 1, 2, 2)), places((1, 1, 2, 2), (4, 4)), kernel_shape=[2, 2],
              strides=[2, 2])
    yield one("MaxUnpool", some(rng, (2, 3, 2, 3)), places((2, 3, 2, 3), (4, 6)),
              kernel_shape=[2, 2], strides=[2, 2])
    yield one("MaxUnpool", some(rng, (1, 2, 3, 3)), places((1, 2, 3, 3), (3, 3)),
              kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield one("MaxUnpool", some(rng, (2, 2, 4)), places((2, 2, 4), (8,)), kernel_shape=[2],
              strides=[2])


def regions(rng, n, height, width):
    low = rng.uniform(0, 0.6, (n, 2)) * [width, height]
    return np.concatenate([low, low + rng.uniform(0.5, 0.6, (n, 2)) * [width, height]], 1).astype(F32)


def roi_align(version, rng):
    x, rois, batch = some(rng, (2, 3, 9, 8)), regions(rng, 4, 9, 8), np.array([1, 0, 1, 1])
    modes = ("avg",) if version < 16 else ("avg", "max")
    for mode, ratio in itertools.product(modes, (1, 2, 3)):
        yield one("RoiAlign", x, rois, batch, mode=mode, output_height=3, output_width=2,
                  sampling_ratio=ratio)
    yield one("RoiAlign", x, rois * 4, batch, spatial_scale=0.25, sampling_ratio=2, output_height=2)
    yield one("RoiAlign", x, rois - 3, batch, sampling_ratio=2, output_width=3, label="outside")
    if version >= 16:
        for mapping in ("half_pixel", "output_half_pixel"):
            yield one("RoiAlign", x, rois, batch, sampling_ratio=2, output_width=4, output_height=3,
                      coordinate_transformation_mode=mapping)


def max_roi_pool(version, rng):
    rois = np.concatenate([np.array([[1], [0], [1]], F32), regions(rng, 3, 9, 8)], 1)
    x = some(rng, (2, 3, 9, 8))
    for size in ([1, 1], [2, 3], [4, 2]):
        yield one("MaxRoiPool", x, rois, pooled_shape=size)
    yield one("MaxRoiPool", x, rois * np.array([1, 2, 2, 2, 2], F32), pooled_shape=[2, 2],
              spatial_scale=0.5)
    yield one("MaxRoiPool", x, np.array([[0, 6, 7, 12, 13]], F32), pooled_shape=[3, 3],
              label="beyond the edge")


def deform_conv(version, rng):
    def made(x, w, offset_groups=1, bias=None, mask=False, label="", **attributes):
        stride, dilation = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
        pads = attributes.get("pads", [0] * 4)
        out = [(x[2 + i] + pads[i] + pads[2 + i] - (w[2 + i] - 1) * dilation[i] - 1) // stride[i] + 1
               for i in range(2)]
        elements = offset_groups * w[2] * w[3]
        inputs = [some(rng, x), some(rng, w), some(rng, (x[0], elements * 2, *out))]
        if bias or mask:
            inputs.append(some(rng, (w[0],)) if bias else None)
        if mask:
            inputs.append(rng.uniform(0, 1, (x[0], elements, *out)).astype(F32))
        if offset_groups > 1:
            attributes["offset_group"] = offset_groups
        return one("DeformConv", *inputs, terms=w[1] * w[2] * w[3], label=label, **attributes)
    yield made((1, 1, 3, 3), (1, 1, 2, 2))
    yield made((2, 4, 5, 6), (6, 4, 3, 3), pads=[1, 1, 1, 1], bias=True, mask=True)
    yield made((2, 4, 5, 6), (6, 2, 2, 3), group=2, offset_groups=2, strides=[2, 1])
    yield made((1, 4, 6, 6), (2, 4, 2, 2), dilations=[2, 1], mask=True, kernel_shape=[2, 2])


OPERATORS = {"GridSample": grid_sample, "AffineGrid": affine_grid, "Col2Im": col2im,
             "MaxUnpool": max_unpool, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool,
             "DeformConv": deform_conv}
