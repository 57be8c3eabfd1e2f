/* Loads ONNX model files: maps the file, parses it, then maps each file of external data once and
   points tensors into the maps. External files must lie in the model's folder, links followed, so
   that a model cannot read other files. */
#include "formats/onnx/file/onnx_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
  const char *folder; /* of external data; "": the working directory */
  const char *path;   /* of the model, if `folder` is its own; else NULL */
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

static void map_external(const loader *l, const onnx_tensor *t) {
  onnx_model *m = l->model;
  const char *path =
      arena_printf(l->arena, "%s%s%s", l->folder, *l->folder ? "/" : "", t->external->location);
  vec_reserve(l->arena, &m->external_files, m->external_files.n + 1);
  file_map *f = &m->external_files.at[m->external_files.n];
  if (file_map_open_within(f, path, l->folder, l->path, l->diag)) fail_tensor(l, t);
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
  if (t->bytes) t->data = file->data + offset;
  onnx_unpack_elements(t, l->arena);
}

static void load_external(void *arg) {
  const loader *l = arg;
  onnx_tensors *list = &l->model->external;
  if (list->n) qsort(list->at, list->n, sizeof *list->at, compare_locations);
  for (size_t i = 0; i < list->n; i++) {
    if (!i || compare_locations(&list->at[i - 1], &list->at[i])) map_external(l, list->at[i]);
    set_data(l, list->at[i], &vec_last(&l->model->external_files));
  }
}

tn_status onnx_map_external_data(onnx_model *m, const char *folder, arena *a, diag *d) {
  return diag_catch(d, load_external, &(loader){folder, NULL, m, a, d});
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

static tn_status load_mapped(onnx_model **out, const char *path, const char *folder,
                             const file_map *file, arena *a, diag *d) {
  folder_request r = {path, a, NULL};
  tn_status s = folder ? TN_OK : diag_catch(d, find_folder, &r);
  if (s == TN_OK) s = onnx_parse_model(out, file->data, file->bytes, a, d);
  if (s != TN_OK || !(*out)->external.n) return s;
  if (!folder && !has_folder(path, file))
    return diag_set(d, TN_ERR_IO,
                    "tensor '%.100s' has external data, which cannot be found for a model from a "
                    "pipe; give the model's path",
                    (*out)->external.at[0]->name);
  loader l = {r.folder, path, *out, a, d};
  return folder ? onnx_map_external_data(*out, folder, a, d) : diag_catch(d, load_external, &l);
}

tn_status onnx_load_file(onnx_model **out, const char *path, const char *name, const char *folder,
                         arena *a, diag *d) {
  *out = NULL;
  file_map file;
  tn_status s = file_map_open_or_pipe(&file, path, d);
  if (s != TN_OK) return s;
  s = load_mapped(out, path, folder, &file, a, d);
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

void onnx_tensor_drop_pages(const onnx_model *m, const onnx_tensor *t) {
  if (contains(&m->file, t->data)) file_map_evict(&m->file, t->data, t->bytes);
  for (size_t i = 0; i < m->external_files.n; i++) {
    const file_map *f = &m->external_files.at[i];
    if (contains(f, t->data)) file_map_evict(f, t->data, t->bytes);
  }
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
