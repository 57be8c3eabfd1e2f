/* What a model file says of the types of values, in words and beside what they are. */
#ifndef TENON_FORMATS_DECLARED_H
#define TENON_FORMATS_DECLARED_H

#include "base/arena.h"
#include "formats/onnx/proto.h"

#include <tenon/model.h>

/** "f32 [batch, 3]", "sequence of f32", "f32 of any shape". In `a`. */
const char *declared_text(arena *a, const onnx_type *t);

/** Whether a port may be of the type that a file declares: what either leaves open fits. */
bool declared_fits(const onnx_type *t, const tn_port *port);

/** A port's own type, as a file would declare it. Lists are in `a`. */
onnx_type declared_port(arena *a, const tn_port *port);

#endif
