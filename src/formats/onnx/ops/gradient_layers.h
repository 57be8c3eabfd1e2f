/* Derivatives of layers: products of matrices, convolutions, Gather and Softmax (gradient_rules.h).
 */
#ifndef TENON_FORMATS_ONNX_OPS_GRADIENT_LAYERS_H
#define TENON_FORMATS_ONNX_OPS_GRADIENT_LAYERS_H

#include "formats/onnx/ops/gradient_rules.h"

void gradient_of_conv(gradient_call *g);
void gradient_of_gather(gradient_call *g);
void gradient_of_gemm(gradient_call *g);
void gradient_of_log_softmax(gradient_call *g);
void gradient_of_matmul(gradient_call *g);
void gradient_of_softmax(gradient_call *g);

#endif
