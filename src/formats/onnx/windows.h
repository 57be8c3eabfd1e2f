/* What attributes say of the windows of convolutions and poolings. */
#ifndef TENON_FORMATS_ONNX_WINDOWS_H
#define TENON_FORMATS_ONNX_WINDOWS_H

#include "formats/onnx/import.h"

enum { WINDOWS_AXES = 3 };

/** One entry an axis of x (N, C, D…) after the second. */
typedef struct windows {
  size_t n; /* of these axes, 1 to 3 */
  int64_t kernel[WINDOWS_AXES], stride[WINDOWS_AXES], dilation[WINDOWS_AXES];
  int64_t low[WINDOWS_AXES], high[WINDOWS_AXES]; /* pads */
} windows;

/** Kernel, strides and dilations, each in 1 … INT32_MAX. The kernel is that of `weights` (M, C,
   K…), which kernel_shape may repeat; NULL: it is kernel_shape. Pads are 0. */
windows windows_read(onnx_call *c, const node *x, const node *weights);

/** Adds the pads that `pads`, or auto_pad for windows over x, asks for. */
void windows_pad(onnx_call *c, windows *w, const node *x);

/** A list attribute of `n` numbers into an array; what is there stays if there is none. */
void windows_list(const onnx_call *c, const char *name, size_t n, int64_t *into);

/** How auto_pad shares pads out. */
typedef enum windows_sharing {
  WINDOWS_GIVEN,
  WINDOWS_NONE,
  WINDOWS_UPPER,
  WINDOWS_LOWER
} windows_sharing;
windows_sharing windows_auto_pad(const onnx_call *c);

/** `all` pads of axis i, half before and half after it; an odd one goes after, or before. */
void windows_share(windows *w, size_t i, int64_t all, bool more_before);

#endif
