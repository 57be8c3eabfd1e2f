/* The builders of ops.def's rows. */
#ifndef TENON_FORMATS_ONNX_OPS_H
#define TENON_FORMATS_ONNX_OPS_H

#include "formats/onnx/import.h"

#define ONNX_OP(name, versions, attributes, least, most, outputs) void onnx_##name(onnx_call *c);
#include "formats/onnx/ops.def"
#undef ONNX_OP

#endif
