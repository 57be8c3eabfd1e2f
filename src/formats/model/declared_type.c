/* Types that a model file declares: as text for messages and listings, and compared with the types
   of ports, which the importer infers. */
#include "formats/model/declared_type.h"

#include "base/str.h"

#include <inttypes.h>
#include <string.h>

static const char *container_prefix(onnx_type_kind kind) {
  switch (kind) {
  case ONNX_TYPE_SEQUENCE: return "sequence of ";
  case ONNX_TYPE_OPTIONAL: return "optional ";
  case ONNX_TYPE_MAP: return "map to ";
  default: return "";
  }
}

static void add_dim(str *s, const onnx_dim *d) {
  if (d->value >= 0)
    str_addf(s, "%" PRId64, d->value);
  else
    str_add(s, d->param && *d->param ? d->param : "?");
}

/** The tensor type inside of containers, whose names are appended to `prefix`; NULL: unknown. */
static const onnx_type *unwrap_tensor(const onnx_type *t, str *prefix) {
  while (t && t->kind != ONNX_TYPE_TENSOR && t->kind != ONNX_TYPE_NONE) {
    str_add(prefix, container_prefix(t->kind));
    t = t->elem;
  }
  return t && t->kind == ONNX_TYPE_TENSOR ? t : NULL;
}

dtype declared_type_elements(const onnx_type *t) {
  if (t->kind == ONNX_TYPE_TENSOR && t->dtype == ONNX_STRING) return DT_I64;
  bool is_data = t->kind == ONNX_TYPE_TENSOR && dtype_is_data((dtype)t->dtype);
  return is_data ? (dtype)t->dtype : DT_VOID;
}

const char *declared_type_text(arena *a, const onnx_type *t) {
  str s = str_new(a);
  const onnx_type *tensor = unwrap_tensor(t, &s);
  const char *dtype = tensor ? onnx_dtype_name(tensor->dtype) : NULL;
  str_add(&s, dtype ? dtype : "unknown type");
  if (tensor && !tensor->has_shape) str_add(&s, " of any shape");
  if (tensor && tensor->has_shape) {
    str_add(&s, " [");
    for (size_t i = 0; i < tensor->dims.n; i++) {
      if (i) str_add(&s, ", ");
      add_dim(&s, &tensor->dims.at[i]);
    }
    str_add(&s, "]");
  }
  return str_text(&s);
}

bool declared_type_fits(const onnx_type *t, const tn_port *port) {
  const tn_shape *shape = &port->type.shape;
  if (t->kind != ONNX_TYPE_TENSOR) return true;
  int32_t dtype = port->is_string ? ONNX_STRING : (int32_t)port->type.dtype;
  if (t->dtype != ONNX_UNDEFINED && t->dtype != dtype) return false;
  if (!t->has_shape) return true;
  bool fits = (int64_t)t->dims.n == shape->rank;
  for (size_t i = 0; fits && i < t->dims.n; i++)
    fits = t->dims.at[i].value < 0 || shape->size[i] < 0 || t->dims.at[i].value == shape->size[i];
  return fits;
}

onnx_type declared_type_of_port(arena *a, const tn_port *port) {
  onnx_type t = {.kind = ONNX_TYPE_TENSOR, .has_shape = true};
  t.dtype = port->is_string ? ONNX_STRING : (int32_t)port->type.dtype;
  for (int32_t i = 0; i < port->type.shape.rank; i++) {
    bool is_named = strcmp(port->sizes[i], "…") != 0;
    vec_push(a, &t.dims, (onnx_dim){port->type.shape.size[i], is_named ? port->sizes[i] : NULL});
  }
  return t;
}
