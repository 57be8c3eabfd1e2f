/* Casts as ONNX Cast does them, for operators that cast a part of what they compute. */
#ifndef TENON_FORMATS_ONNX_OPS_CAST_VALUES_H
#define TENON_FORMATS_ONNX_OPS_CAST_VALUES_H

#include "formats/onnx/importer/importer.h"

/** A tensor, which may be one of strings, as elements of type t, or as strings. */
value onnx_cast_any(onnx_call *c, value x, dtype t, bool to_strings);

#endif
