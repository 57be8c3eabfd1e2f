/* Contents of a model file: parsed from a file or from a copy of bytes in memory, with its external
   data. Reference-counted, because weights are read from the file, or lie in it. */
#include "base/memory_limit.h"
#include "formats/model/model.h"

#include <string.h>

typedef struct model_read {
  model_file *m;
  const char *path, *name, *folder;
  onnx_access access;
} model_read;

static tn_status parse_bytes(const model_read *r) {
  model_file *m = r->m;
  tn_status s = onnx_parse_model(&m->onnx, m->bytes, m->n_bytes, &m->arena, &m->diag);
  if (s != TN_OK || !m->onnx->external.n) return s;
  if (r->folder) return onnx_open_external_data(m->onnx, r->folder, r->access, &m->arena, &m->diag);
  return diag_set(
      &m->diag, TN_ERR_IO,
      "tensor '%.200s' has external data; set tn_model_desc.folder to the folder of its file",
      m->onnx->external.at[0]->name);
}

static void read_body(void *arg) {
  model_read *r = arg;
  model_file *m = r->m;
  tn_status s = r->path ? onnx_load_file(&m->onnx, r->path, r->name, r->folder, r->access,
                                         &m->arena, &m->diag)
                        : parse_bytes(r);
  if (s != TN_OK) diag_rethrow(&m->diag);
  const char *graph = *m->onnx->graph->name ? m->onnx->graph->name : "model";
  m->title = *r->name ? arena_printf(&m->arena, "%s", r->name) : graph;
}

static tn_status copy_bytes(model_file *m, const void *data, size_t bytes) {
  m->bytes = mem_alloc(m->mem, bytes);
  m->n_bytes = bytes;
  char text[MEMORY_LIMIT_TEXT_BYTES];
  if (!m->bytes)
    return diag_set(&m->diag, TN_ERR_MEMORY, "%s",
                    memory_limit_exhausted_text(m->mem, bytes, text));
  if (bytes) memcpy(m->bytes, data, bytes);
  return TN_OK;
}

tn_status model_file_open(model_file **out, const char *path, const char *name, const void *data,
                          size_t bytes, const char *folder, onnx_access access, const mem *m,
                          diag *d) {
  *out = NULL;
  model_file *made = mem_calloc(m, 1, sizeof *made);
  if (!made) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  atomic_init(&made->count, 1);
  made->mem = m;
  arena_init(&made->arena, m, &made->diag);
  made->strings = string_table_open(m);
  tn_status s = made->strings ? TN_OK : diag_set(&made->diag, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK && !path) s = copy_bytes(made, data, bytes);
  model_read r = {made, path, name, folder, access};
  if (s == TN_OK) s = diag_catch(&made->diag, read_body, &r);
  if (s == TN_OK) {
    *out = made;
    return TN_OK;
  }
  d->failure = made->diag.failure;
  model_file_release(made);
  return s;
}

tn_status model_file_open_body(model_file **out, model_file *of, diag *d) {
  model_file *whole = of->whole ? of->whole : of, *made = mem_calloc(of->mem, 1, sizeof *made);
  onnx_model *onnx = made ? mem_calloc(of->mem, 1, sizeof *onnx) : NULL;
  *out = NULL;
  if (!onnx) {
    mem_free(of->mem, made, sizeof *made);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  atomic_init(&made->count, 1);
  atomic_fetch_add_explicit(&whole->count, 1, memory_order_relaxed);
  made->mem = of->mem;
  made->whole = whole;
  made->strings = whole->strings;
  made->title = "";
  made->onnx = onnx;
  *onnx = *whole->onnx;
  onnx->graph = NULL;
  arena_init(&made->arena, of->mem, &made->diag);
  *out = made;
  return TN_OK;
}

static void release_body(model_file *m) {
  mem_free(m->mem, m->onnx, sizeof *m->onnx);
  arena_free(&m->arena);
  model_file_release(m->whole); /* a whole file, so the recursion ends here */
  mem_free(m->mem, m, sizeof *m);
}

void model_file_release(model_file *m) {
  if (!m || atomic_fetch_sub_explicit(&m->count, 1, memory_order_acq_rel) > 1) return;
  if (m->whole) {
    release_body(m);
    return;
  }
  onnx_model_unmap(m->onnx);
  string_table_free(m->strings);
  arena_free(&m->arena);
  mem_free(m->mem, m->bytes, m->n_bytes);
  mem_free(m->mem, m, sizeof *m);
}
