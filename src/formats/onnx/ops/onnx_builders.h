/* Declares the builder of each ONNX operator in onnx_operators.def. */
#ifndef TENON_FORMATS_ONNX_OPS_ONNX_BUILDERS_H
#define TENON_FORMATS_ONNX_OPS_ONNX_BUILDERS_H

#include "formats/onnx/importer/importer.h"

#define ONNX_OP(name, versions, attributes, min_inputs, max_inputs, max_outputs) \
  void onnx_##name(onnx_call *c);
#define ONNX_OP_OF(domain, name, versions, attributes, min_inputs, max_inputs, max_outputs) \
  void onnx_##domain##_##name(onnx_call *c);
#include "formats/onnx/ops/onnx_operators.def"
#undef ONNX_OP
#undef ONNX_OP_OF

#endif
