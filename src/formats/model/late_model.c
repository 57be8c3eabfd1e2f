/* Keeps what later imports of a late model need, and describes its outputs as the file declares
 * them.
 */
#include "formats/model/late_model.h"

#include "formats/model/declared_type.h"

#include <string.h>

typedef struct model_opening {
  tn_model *m;
  const tn_model_size *sizes;
  size_t n;
} model_opening;

static const char *copy_text(arena *a, const char *text) {
  return text ? arena_printf(a, "%s", text) : NULL;
}

static void copy_sizes(const model_opening *j) {
  tn_model *m = j->m;
  arena *a = &m->data->arena;
  size_t bytes = j->n ? j->sizes->size : 0;
  char *to = arena_copy(a, j->sizes, j->n * bytes);
  for (size_t i = 0; i < j->n; i++) {
    tn_model_size *s = (tn_model_size *)(to + i * bytes);
    s->name = copy_text(a, s->name);
    s->same = copy_text(a, s->same);
  }
  m->sizes = (tn_model_size *)to;
  m->n_sizes = j->n;
}

/** A number for a size that is known as the size of no other port. */
static int32_t late_variable(const tn_model *m, size_t output, int32_t axis) {
  int32_t n = 0;
  for (size_t i = 0; i < m->graph.n_inputs; i++) n += (int32_t)m->graph.nodes[i]->rank;
  return n + (int32_t)output * TN_MAX_RANK + axis;
}

static const char *size_name(arena *a, const onnx_value *v, int32_t axis) {
  const onnx_dim *dim = &v->type.dims.at[axis];
  if (dim->value >= 0) return arena_printf(a, "%lld", (long long)dim->value);
  return *dim->param ? dim->param : arena_printf(a, "%s:%d", v->name, (int)axis);
}

static tn_port declared_port(const tn_model *m, size_t i) {
  const onnx_value *v = &m->data->onnx->graph->outputs.at[i];
  dtype t = declared_type_elements(&v->type);
  bool has_rank = t != DT_VOID && v->type.has_shape && v->type.dims.n <= TN_MAX_RANK;
  tn_port port = {.size = sizeof port, .name = v->name};
  port.is_string = v->type.kind == ONNX_TYPE_TENSOR && v->type.dtype == ONNX_STRING;
  port.type.dtype = t == DT_VOID ? TN_UNDEFINED : (tn_dtype)t;
  port.type.shape.rank = has_rank ? (int32_t)v->type.dims.n : -1;
  for (int32_t k = 0; k < port.type.shape.rank; k++) {
    int64_t size = v->type.dims.at[k].value;
    port.type.shape.size[k] = size >= 0 ? size : -1;
    port.sizes[k] = size_name(&m->data->arena, v, k);
    port.min[k] = size >= 0 ? size : 0;
    port.max[k] = size >= 0 ? size : ONNX_SIZE_MAX;
    port.variable[k] = size >= 0 ? -1 : late_variable(m, i, k);
  }
  return port;
}

static void open_body(void *arg) {
  const model_opening *j = arg;
  tn_model *m = j->m;
  size_t n = m->data->onnx->graph->outputs.n;
  copy_sizes(j);
  tn_port *outputs = arena_alloc(&m->data->arena, (n + 1) * sizeof *outputs);
  for (size_t i = 0; i < n; i++) outputs[i] = declared_port(m, i);
  m->late_outputs = outputs;
  m->n_late_outputs = n;
}

tn_status late_model_open(tn_model *m, const tn_model_size *sizes, size_t n, diag *d) {
  model_opening j = {m, sizes, n};
  diag *before = m->data->arena.diag;
  m->data->arena.diag = d;
  tn_status s = diag_catch(d, open_body, &j);
  m->data->arena.diag = before;
  return s;
}
