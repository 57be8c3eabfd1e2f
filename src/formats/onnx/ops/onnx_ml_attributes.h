/* Attributes and inputs of ONNX's operators of classical machine learning. */
#ifndef TENON_FORMATS_ONNX_OPS_ONNX_ML_ATTRIBUTES_H
#define TENON_FORMATS_ONNX_OPS_ONNX_ML_ATTRIBUTES_H

#include "formats/onnx/importer/importer.h"
#include "tensor/ops/operators.h"

/** A list attribute as a vector of f32 or i64; without a node if it is absent or empty. */
value onnx_ml_floats(onnx_call *c, const char *name);
value onnx_ml_ints(onnx_call *c, const char *name);

/** The labels of classes, attribute `ints` or classlabels_strings, whose numbers they are then. */
value onnx_ml_class_labels(onnx_call *c, const char *ints, bool *are_strings);

/** An input as f64, if it is, or else f32. */
value onnx_ml_features(onnx_call *c, size_t input);

/** The scores after attribute post_transform. */
value onnx_ml_post_transform(onnx_call *c, value scores);

#endif
