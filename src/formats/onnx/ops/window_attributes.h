/* Attributes of sliding windows, for convolution and pooling: kernel, strides, dilations, pads. */
#ifndef TENON_FORMATS_ONNX_OPS_WINDOW_ATTRIBUTES_H
#define TENON_FORMATS_ONNX_OPS_WINDOW_ATTRIBUTES_H

#include "formats/onnx/importer/importer.h"

#include <tenon/ops.h>

enum { WINDOW_AXES = 3 };

/** One entry for each spatial axis of x (N, C, D…). */
typedef struct windows {
  size_t n; /* spatial axes, 1 to 3 */
  int64_t kernel[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
  int64_t low[WINDOW_AXES], high[WINDOW_AXES]; /* pads */
} windows;

/** Reads kernel, strides and dilations, each in 1 … INT32_MAX, with pads of 0. The kernel's sizes
   are those of `weights` (M, C, K…), which kernel_shape must equal if present; without weights
   (NULL) they are kernel_shape. */
windows window_attributes_read(onnx_call *c, const node *x, const node *weights);

/** Sets the pads for windows over x from attribute pads or auto_pad. */
void window_attributes_pad(onnx_call *c, windows *w, const node *x);

/** Reads a list attribute of `n` elements; if it is absent, the list keeps its defaults. */
void window_attributes_list(const onnx_call *c, const char *name, size_t n, int64_t *list);

/** The descriptor of a convolution with these windows and the attribute `group`. */
tn_conv_desc window_conv_desc(const onnx_call *c, const windows *w);

/** Raises TN_ERR_SHAPE unless x has the channels that weights expect. */
void window_check_channels(onnx_call *c, const node *x, const node *channels);

/** Modes of attribute auto_pad. */
typedef enum auto_pad_mode {
  AUTO_PAD_NOTSET,
  AUTO_PAD_VALID,
  AUTO_PAD_SAME_UPPER,
  AUTO_PAD_SAME_LOWER
} auto_pad_mode;
auto_pad_mode window_auto_pad(const onnx_call *c);

/** Splits the total padding of axis i into halves; the odd element goes after, or before if
    `more_before`. */
void window_split_pads(windows *w, size_t i, int64_t total, bool more_before);

#endif
