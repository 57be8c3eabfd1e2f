/* Axes and shapes that are arguments of ONNX nodes: axes are an attribute in older operator
   versions and an input in newer ones; shapes are inputs. */
#ifndef TENON_FORMATS_ONNX_OPS_AXIS_ARGUMENTS_H
#define TENON_FORMATS_ONNX_OPS_AXIS_ARGUMENTS_H

#include "formats/onnx/importer/importer.h"
#include "tensor/ops/operators.h"

/** Converts numbers to axes; raises if there are more than TN_MAX_RANK. */
tn_axes axes_from_list(onnx_call *c, const int64_t *at, size_t n);

/** The axes of a node: attribute "axes" of versions below `since`, input 1 from then on. False if
    there are none. */
bool axes_argument(onnx_call *c, int64_t since, tn_axes *axes);

/** The elements of an input as sizes, which may be negative. */
sizes shape_argument(onnx_call *c, size_t input);

/** Raises if size i may be negative. */
void shape_argument_check_size(onnx_call *c, const sizes *s, size_t i);

#endif
