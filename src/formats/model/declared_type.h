/* Types that a model file declares for its values: as text, and compared with the types that the
   imported graph has. */
#ifndef TENON_FORMATS_MODEL_DECLARED_TYPE_H
#define TENON_FORMATS_MODEL_DECLARED_TYPE_H

#include "base/arena.h"
#include "formats/onnx/file/onnx_file.h"
#include "ir/core/dtype.h"

#include <tenon/model.h>

/** A type as text: "f32 [batch, 3]", "sequence of f32", "f32 of any shape". In `a`. */
const char *declared_type_text(arena *a, const onnx_type *t);

/** True if a port's type agrees with a declared one; an unknown size agrees with any. */
bool declared_type_fits(const onnx_type *t, const tn_port *port);

/** The type of a tensor's elements, of strings that of their numbers; VOID: of another value, or
   not known. */
dtype declared_type_elements(const onnx_type *t);

/** A port's type in the form of a declaration. Lists are in `a`. */
onnx_type declared_type_of_port(arena *a, const tn_port *port);

#endif
