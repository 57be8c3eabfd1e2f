/* Loads ONNX model files: opens the file, parses it, then opens each file of external data once and
   points tensors into them. External files must lie in the model's folder, links followed, so
   that a model cannot read other files. */
#include "formats/onnx/file/onnx_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
  const char *folder; /* of external data; "": the working directory */
  const char *path;   /* of the model, if `folder` is its own; else NULL */
  onnx_access access;
  onnx_model *model;
  arena *arena;
  diag *diag;
} loader;

static int compare_locations(const void *a, const void *b) {
  const onnx_tensor *const *x = a, *const *y = b;
  return strcmp((*x)->external->location, (*y)->external->location);
}

static _Noreturn void fail_tensor(const loader *l, const onnx_tensor *t) {
  diag_prefix(l->diag, "tensor '%.100s'", t->name);
  diag_rethrow(l->diag);
}

static void open_external(const loader *l, const onnx_tensor *t) {
  onnx_model *m = l->model;
  const char *path =
      arena_printf(l->arena, "%s%s%s", l->folder, *l->folder ? "/" : "", t->external->location);
  vec_reserve(l->arena, &m->external_files, m->external_files.n + 1);
  file_map *f = &m->external_files.at[m->external_files.n];
  tn_status s = l->access == ONNX_MAPPED
                    ? file_map_open_within(f, path, l->folder, l->path, l->diag)
                    : file_parts_open_within(f, path, l->folder, l->path, l->diag);
  if (s != TN_OK) fail_tensor(l, t);
  m->external_files.n++;
  vec_push(l->arena, &m->external_paths, path);
}

static void set_data(const loader *l, onnx_tensor *t, const file_map *file) {
  size_t offset = t->external->offset;
  if (offset > file->bytes || t->bytes > file->bytes - offset) {
    diag_set(
        l->diag, TN_ERR_FORMAT,
        "%zu bytes of external data at offset %zu extend beyond the end of '%.200s' (%zu bytes)",
        t->bytes, offset, t->external->location, file->bytes);
    fail_tensor(l, t);
  }
  if (!t->bytes) return;
  t->data = file->data + offset;
  if (file->in_parts && onnx_dtype_bits(t->dtype) >= 8)
    t->unread = arena_calloc(l->arena, 1, sizeof *t->unread);
  else if (file_map_read(file, t->data, t->bytes, l->diag) != TN_OK)
    fail_tensor(l, t);
  onnx_unpack_elements(t, l->arena);
}

static void load_external(void *arg) {
  const loader *l = arg;
  onnx_tensors *list = &l->model->external;
  if (list->n) qsort(list->at, list->n, sizeof *list->at, compare_locations);
  for (size_t i = 0; i < list->n; i++) {
    if (!i || compare_locations(&list->at[i - 1], &list->at[i])) open_external(l, list->at[i]);
    set_data(l, list->at[i], &vec_last(&l->model->external_files));
  }
}

tn_status onnx_open_external_data(onnx_model *m, const char *folder, onnx_access access, arena *a,
                                  diag *d) {
  return diag_catch(d, load_external, &(loader){folder, NULL, access, m, a, d});
}

typedef struct folder_request {
  const char *path;
  arena *arena;
  char *folder;
} folder_request;

static void find_folder(void *arg) {
  folder_request *r = arg;
  const char *end = strrchr(r->path, '/');
  int n = end ? (int)(end - r->path) : 0;
  r->folder = arena_printf(r->arena, "%.*s%s", n, r->path, end == r->path ? "/" : "");
}

/** False for standard input, which may be a file but has no folder. */
static bool has_folder(const char *path, const file_map *file) {
  return !file->is_copy && strcmp(path, "/dev/stdin") && strncmp(path, "/dev/fd/", 8);
}

static tn_status load_open(onnx_model **out, const char *path, const char *folder,
                           const file_map *file, onnx_access access, arena *a, diag *d) {
  folder_request r = {path, a, NULL};
  tn_status s = folder ? TN_OK : diag_catch(d, find_folder, &r);
  if (s == TN_OK) s = onnx_parse_file(out, file, a, d);
  if (s != TN_OK || !(*out)->external.n) return s;
  if (!folder && !has_folder(path, file))
    return diag_set(d, TN_ERR_IO,
                    "tensor '%.100s' has external data, which cannot be found for a model from a "
                    "pipe; give the model's path",
                    (*out)->external.at[0]->name);
  loader l = {r.folder, path, access, *out, a, d};
  return folder ? onnx_open_external_data(*out, folder, access, a, d)
                : diag_catch(d, load_external, &l);
}

tn_status onnx_load_file(onnx_model **out, const char *path, const char *name, const char *folder,
                         onnx_access access, arena *a, diag *d) {
  *out = NULL;
  file_map file;
  tn_status s = access == ONNX_MAPPED ? file_map_open_or_pipe(&file, path, d)
                                      : file_parts_open_or_pipe(&file, path, d);
  if (s != TN_OK) return s;
  s = load_open(out, path, folder, &file, access, a, d);
  if (s == TN_OK) {
    (*out)->file = file;
    return TN_OK;
  }
  onnx_model_unmap(*out);
  *out = NULL;
  file_map_close(&file);
  return *name ? diag_prefix(d, "%.400s", name) : s;
}

static bool contains(const file_map *f, const void *data) {
  return (uintptr_t)data - (uintptr_t)f->data < f->bytes;
}

/** The file that a tensor's data lies in; NULL: none. */
static const file_map *file_of(const onnx_model *m, const onnx_tensor *t) {
  if (contains(&m->file, t->data)) return &m->file;
  for (size_t i = 0; i < m->external_files.n; i++)
    if (contains(&m->external_files.at[i], t->data)) return &m->external_files.at[i];
  return NULL;
}

tn_status onnx_tensor_load(const onnx_model *m, const onnx_tensor *t, diag *d) {
  if (!t->unread || atomic_load(&t->unread->is_loaded)) return TN_OK;
  const file_map *f = file_of(m, t);
  tn_status s = f ? file_map_read(f, t->data, t->bytes, d) : TN_OK;
  if (s == TN_OK) atomic_store(&t->unread->is_loaded, true);
  return s;
}

tn_status onnx_tensor_copy(const onnx_model *m, const onnx_tensor *t, size_t offset, size_t bytes,
                           void *to, diag *d) {
  const file_map *f = t->unread && !atomic_load(&t->unread->is_loaded) ? file_of(m, t) : NULL;
  const char *from = (const char *)t->data + offset;
  if (f) return file_map_copy(f, from, bytes, to, d);
  if (bytes) memcpy(to, from, bytes);
  return TN_OK;
}

void onnx_tensor_drop_pages(const onnx_model *m, const onnx_tensor *t) {
  const file_map *f = file_of(m, t);
  if (f) file_map_evict(f, t->data, t->bytes);
}

tn_status onnx_model_detach(onnx_model *m, diag *d) {
  tn_status s = file_map_detach(&m->file, d);
  for (size_t i = 0; i < m->external_files.n && s == TN_OK; i++)
    s = file_map_detach(&m->external_files.at[i], d);
  return s;
}

void onnx_model_unmap(onnx_model *m) {
  if (!m) return;
  for (size_t i = 0; i < m->external_files.n; i++) file_map_close(&m->external_files.at[i]);
  m->external_files.n = 0;
  file_map_close(&m->file);
}
