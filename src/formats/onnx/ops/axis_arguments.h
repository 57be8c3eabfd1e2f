/* Axes and shapes that are arguments of ONNX nodes: axes are an attribute in older operator
   versions and an input in newer ones; shapes are inputs. */
#ifndef TENON_FORMATS_ONNX_OPS_AXIS_ARGUMENTS_H
#define TENON_FORMATS_ONNX_OPS_AXIS_ARGUMENTS_H

#include "formats/onnx/importer/importer.h"
#include "tensor/ops/operators.h"

/** Converts a list of axes; raises for more than TN_MAX_RANK. */
tn_axes axes_from_list(onnx_call *c, const int64_t *list, size_t n);

/** Reads the axes of a node: attribute "axes" below version `since`, input 1 from then on. False if
    absent. */
bool axes_argument(onnx_call *c, int64_t since, tn_axes *axes);

/** Reads the elements of an input as sizes, which may be negative. */
sizes shape_argument(onnx_call *c, size_t input);

/** As shape_argument, where 0 and -1 say how to find a size (onnx_target_elements). */
sizes target_shape_argument(onnx_call *c, size_t input);

/** Raises if size i may be negative. */
void shape_argument_check_size(onnx_call *c, const sizes *s, size_t i);

#endif
