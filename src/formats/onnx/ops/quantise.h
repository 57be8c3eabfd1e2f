/* Quantised integers, for operators that compute with them. */
#ifndef TENON_FORMATS_ONNX_OPS_QUANTISE_H
#define TENON_FORMATS_ONNX_OPS_QUANTISE_H

#include "formats/onnx/importer/importer.h"

/** Adds the zero point, which may have no node, to x, for integers rounded to the nearest one
   before, and converts to the type, with saturation. Raises for types of more than 16 bits. */
value onnx_quantise(onnx_call *c, value x, value zero, dtype t);

/** How floats become floats of 8 bits: the attributes saturate and round_mode. */
storage_rounding onnx_storage_rounding(const onnx_call *c);

#endif
