/* Lists of axes, which older operators have as an attribute and newer ones as an input; and shapes
   that are inputs. */
#ifndef TENON_FORMATS_ONNX_AXES_H
#define TENON_FORMATS_ONNX_AXES_H

#include "formats/onnx/import.h"
#include "tensor/build.h"

/** Numbers as axes; raises if there are more than tensors have. */
tn_axes axes_list(onnx_call *c, const int64_t *at, size_t n);

/** The axes of a node: attribute "axes" of versions below `since`, input 1 from there on. False if
    none are given. */
bool axes_given(onnx_call *c, int64_t since, tn_axes *axes);

/** The elements of an input as sizes; any may be negative. */
sizes axes_sizes(onnx_call *c, size_t input);

/** Raises for a size of a shape that is negative, or may be. */
void axes_check_size(onnx_call *c, const sizes *s, size_t i);

#endif
