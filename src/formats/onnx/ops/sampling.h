/* Reads of images at places that are computed: of GridSample, RoiAlign and DeformConv. */
#ifndef TENON_FORMATS_ONNX_OPS_SAMPLING_H
#define TENON_FORMATS_ONNX_OPS_SAMPLING_H

#include "formats/onnx/importer/importer.h"
#include "tensor/ops/operators.h"

enum { SAMPLED_AXES = 3 };

/** Images of (N, C, D…), with the spatial axes D… made one. */
typedef struct sampled_images {
  builder *b;
  value flat;                     /* (N, C, D·…) */
  size_t n;                       /* spatial axes, 1 to 3 */
  const node *size[SAMPLED_AXES]; /* of these */
} sampled_images;

/** Flattens images; raises if one of the spatial axes may be empty. */
sampled_images sampled_images_of(onnx_call *c, value x);

/** A size as a number of a float type. */
value sampled_size(const sampled_images *s, size_t axis, dtype t);

/** The pixels at whole coordinates `at`, one tensor (N, P) for each spatial axis: (N, C, P).
    Coordinates are clamped to the edge. */
value sampled_pixels(const sampled_images *s, const value at[]);

/** True where a coordinate of an axis is one of a pixel. */
value sampled_is_inside(const sampled_images *s, size_t axis, value at);

/** (N, P) as (N, 1, P), for arithmetic with pixels. */
value sampled_weight(const sampled_images *s, value weight);

/** The linear interpolation between pixels at coordinates `at`; pixels outside count as 0. */
value sampled_linear(const sampled_images *s, const value at[]);

/** The largest of the terms of which sampled_linear is the sum. */
value sampled_largest(const sampled_images *s, const value at[]);

#endif
