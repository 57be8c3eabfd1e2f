#include "formats/model.h"

#include <string.h>

typedef struct reading {
  model_data *m;
  const char *path, *folder;
} reading;

static tn_status read_bytes(const reading *r) {
  model_data *m = r->m;
  tn_status s = onnx_parse(&m->onnx, m->bytes, m->n_bytes, &m->arena, &m->diag);
  if (s != TN_OK || !m->onnx->external.n) return s;
  if (r->folder) return onnx_load_external(m->onnx, r->folder, &m->arena, &m->diag);
  return diag_set(&m->diag, TN_ERR_IO,
                  "tensor '%.200s' lies in a file of its own: name the folder of such files",
                  m->onnx->external.at[0]->name);
}

static void read_body(void *arg) {
  reading *r = arg;
  model_data *m = r->m;
  tn_status s =
      r->path ? onnx_load_from(&m->onnx, r->path, r->folder, &m->arena, &m->diag) : read_bytes(r);
  if (s != TN_OK) diag_rethrow(&m->diag);
}

static tn_status copy_bytes(model_data *m, const void *data, size_t bytes) {
  m->bytes = mem_alloc(m->mem, bytes);
  m->n_bytes = bytes;
  char none[MEM_TEXT];
  if (!m->bytes) return diag_set(&m->diag, TN_ERR_MEMORY, "%s", mem_none(bytes, none));
  if (bytes) memcpy(m->bytes, data, bytes);
  return TN_OK;
}

tn_status model_data_open(model_data **out, const char *path, const void *data, size_t bytes,
                          const char *folder, const mem *m, diag *d) {
  *out = NULL;
  model_data *made = mem_calloc(m, 1, sizeof *made);
  if (!made) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  atomic_init(&made->count, 1);
  made->mem = m;
  arena_init(&made->arena, m, &made->diag);
  tn_status s = path ? TN_OK : copy_bytes(made, data, bytes);
  reading r = {made, path, folder};
  if (s == TN_OK) s = diag_catch(&made->diag, read_body, &r);
  if (s == TN_OK) {
    *out = made;
    return TN_OK;
  }
  diag_copy(d, &made->diag);
  model_data_release(made);
  return s;
}

void model_data_release(model_data *m) {
  if (!m || atomic_fetch_sub_explicit(&m->count, 1, memory_order_acq_rel) > 1) return;
  onnx_close(m->onnx);
  arena_free(&m->arena);
  mem_free(m->mem, m->bytes, m->n_bytes);
  mem_free(m->mem, m, sizeof *m);
}
