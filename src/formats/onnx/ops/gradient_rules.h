/* Derivatives of ONNX operators, for Gradient: how the gradient of an operator's result gives those
   of its operands. */
#ifndef TENON_FORMATS_ONNX_OPS_GRADIENT_RULES_H
#define TENON_FORMATS_ONNX_OPS_GRADIENT_RULES_H

#include "formats/onnx/importer/importer.h"

/** A node that is differentiated: its operands are the call's inputs. */
typedef struct gradient_call {
  onnx_call *c;
  value y, dy; /* its result, and the gradient of that, of one shape */
  value *dx;   /* to be set for each operand of floats; may have the shape to which it broadcasts */
} gradient_call;

typedef void (*gradient_rule)(gradient_call *g);

/** The rule of an operator; NULL: it has none. */
gradient_rule gradient_rule_of(const onnx_node *n);

/** The sum of a gradient over the axes along which an operand of this shape was broadcast. */
value gradient_sum_to(builder *b, value d, const sizes *to);

#endif
