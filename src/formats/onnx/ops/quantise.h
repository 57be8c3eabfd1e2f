/* Quantised integers, for operators that compute with them. */
#ifndef TENON_FORMATS_ONNX_OPS_QUANTISE_H
#define TENON_FORMATS_ONNX_OPS_QUANTISE_H

#include "formats/onnx/importer/importer.h"

/** Rounds to the nearest integer, adds the zero point, which may have no node, and saturates.
   Raises for types of other than 8 and 16 bits. */
value onnx_quantise(onnx_call *c, value x, value zero, dtype t);

#endif
