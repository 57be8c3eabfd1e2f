/* ONNX Loop by steps that are imported one after another. */
#ifndef TENON_FORMATS_ONNX_OPS_ONNX_UNROLLED_LOOP_H
#define TENON_FORMATS_ONNX_OPS_ONNX_UNROLLED_LOOP_H

#include "formats/onnx/importer/importer.h"

/** True if a state of a Loop is a sequence or an absent optional value. */
bool onnx_has_sequence_state(const onnx_call *c);

/** Imports such a Loop. Its trip count and conditions do not depend on what a run computes. */
void onnx_unroll_loop(onnx_call *c);

#endif
