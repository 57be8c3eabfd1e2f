/* Sliding windows, of which convolutions and poolings are built: a view with the windows as axes,
   and the checks of their options. */
#ifndef TENON_TENSOR_OPS_SLIDING_WINDOWS_H
#define TENON_TENSOR_OPS_SLIDING_WINDOWS_H

#include "tensor/ops/operators.h"

/** Spatial axes of convolution and pooling at most. */
enum { MAX_SPATIAL_AXES = 3 };

/** Raises TN_ERR_ARGUMENT if an option of a spatial axis is out of range. */
void window_check(builder *b, const char *option, size_t axis, int64_t v, int64_t least,
                  int64_t most);

/** Raises TN_ERR_SHAPE unless `rest`, an axis's size minus the window's, is 0 or more. */
void window_check_fits(builder *b, int64_t window, const node *size, const node *rest);

/** The windows of the last `n` axes: x (…, D…) gives (…, O…, K…), of sizes `output` and `kernel`.
    Element k of window o is x at o·stride + k·dilation. The windows lie within D. */
const node *node_windows(builder *b, const node *x, size_t n, const int64_t kernel[],
                         const int64_t stride[], const int64_t dilation[],
                         const node *const output[]);

#endif
