#include "value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory. */

static void *or_die(void *at) {
  if (!at) fprintf(stderr, "out of memory\n"), abort();
  return at;
}

void *model_alloc(memory *m, size_t n, size_t size) {
  if (!(m->n & (m->n + 1))) m->at = or_die(realloc(m->at, (2 * m->n + 1) * sizeof *m->at));
  return m->at[m->n++] = or_die(calloc(n + 1, size));
}

void model_free(memory *m) {
  for (size_t i = 0; i < m->n; i++) free(m->at[i]);
  free(m->at);
  *m = (memory){0};
}

size_t shape_count(tn_shape s) {
  size_t n = 1;
  for (int32_t i = 0; i < s.rank; i++) n *= (size_t)s.size[i];
  return n;
}

bool is_same_shape(tn_shape a, tn_shape b) {
  bool same = a.rank == b.rank;
  for (int32_t i = 0; same && i < a.rank; i++) same = a.size[i] == b.size[i];
  return same;
}

/* Computing. */

static int32_t apply(value_op op, int32_t a, int32_t b) {
  uint32_t x = (uint32_t)a, y = (uint32_t)b;
  switch (op) {
  case BY_SUM: return (int32_t)(x + y);
  case BY_DIFFERENCE: return (int32_t)(x - y);
  case BY_PRODUCT: return (int32_t)(x * y);
  case BY_LARGEST: return a > b ? a : b;
  case BY_SMALLEST: return a < b ? a : b;
  case BY_XOR: return (int32_t)(x ^ y);
  }
  return 0;
}

static int32_t moved(const value *v, const int32_t *const src[], size_t i) {
  if (v->map[i] < 0) return v->fill;
  size_t at = (size_t)v->map[i], first = v->src[0]->count;
  return at < first ? src[0][at] : src[1][at - first];
}

static int32_t taken(const value *v, const int32_t *const src[], size_t i) {
  int64_t n = (int64_t)v->src[0]->count, at = src[1][i];
  if (at < 0) at += n;
  return at < 0 || at >= n ? 0 : src[0][at];
}

static void change(const value *v, const int32_t *const src[], int32_t *out) {
  memcpy(out, src[0], v->count * sizeof *out);
  for (size_t i = 0; i < v->src[1]->count; i++) out[v->map[i]] = src[1][i];
}

static void reduce(const value *v, const int32_t x[], int32_t *out) {
  for (size_t i = 0; i < v->count; i++) out[i] = v->op == BY_LARGEST ? INT32_MIN : 0;
  for (size_t i = 0; i < v->src[0]->count; i++) out[v->map[i]] = apply(v->op, out[v->map[i]], x[i]);
}

static int32_t element(const value *v, const int32_t *const src[], const int32_t out[], size_t i) {
  switch (v->kind) {
  case VALUE_MOVED: return moved(v, src, i);
  case VALUE_TAKEN: return taken(v, src, i);
  case VALUE_RUNNING: return v->map[i] < 0 ? src[0][i] : apply(v->op, out[v->map[i]], src[0][i]);
  case VALUE_BINARY: return apply(v->op, src[0][i], src[1][i]);
  case VALUE_CHOSEN: return src[0][i] ? src[1][i] : src[2][i];
  default: return 0;
  }
}

static void compute(const value *v, const int32_t *const src[], int32_t *out) {
  if (v->kind == VALUE_CHANGED)
    change(v, src, out);
  else if (v->kind == VALUE_REDUCED)
    reduce(v, src[0], out);
  else
    for (size_t i = 0; i < v->count; i++) out[i] = element(v, src, out, i);
}

value *value_new(memory *m, value v) {
  value *made = model_alloc(m, 1, sizeof *made);
  const int32_t *src[3] = {NULL, NULL, NULL};
  v.count = shape_count(v.shape);
  for (size_t i = 0; i < v.n_src; i++) v.is_open |= v.src[i]->is_open;
  for (size_t i = 0; i < v.n_src; i++) src[i] = v.src[i]->data;
  if (!v.is_open && v.n_src) {
    v.data = model_alloc(m, v.count, sizeof *v.data);
    compute(&v, src, v.data);
  }
  *made = v;
  return made;
}

value *value_constant(memory *m, tn_shape shape, const int32_t data[]) {
  size_t bytes = shape_count(shape) * sizeof *data;
  int32_t *copy = model_alloc(m, shape_count(shape), sizeof *data);
  if (bytes) memcpy(copy, data, bytes);
  return value_new(m, (value){.kind = VALUE_CONSTANT, .shape = shape, .data = copy});
}

/* Plans. */

static bool is_held(const value *v) { return v->of && v->held == v->of->held; }

static value *new_image(memory *m, value *v, unsigned plan, value **all) {
  value *image = model_alloc(m, 1, sizeof *image);
  *image = *v;
  image->data = NULL;
  if (is_held(v)) image->kind = VALUE_HELD, image->n_src = 0;
  for (size_t i = 0; i < image->n_src; i++) image->src[i] = value_image(m, v->src[i], plan, all);
  image->next = *all;
  return *all = image;
}

value *value_image(memory *m, value *v, unsigned plan, value **all) {
  if (v->image_of == plan) return v->image;
  v->image = v->n_src || is_held(v) ? new_image(m, v, plan, all) : v;
  v->image_of = plan;
  return v->image;
}

static const int32_t *new_result(memory *m, value *v, const int32_t *const inputs[], unsigned run) {
  const int32_t *src[3];
  if (v->kind == VALUE_HELD) return v->of->now->data;
  if (v->kind == VALUE_INPUT) return inputs[v->input];
  if (v->kind == VALUE_CONSTANT) return v->data;
  for (size_t i = 0; i < v->n_src; i++) src[i] = value_result(m, v->src[i], inputs, run);
  int32_t *out = model_alloc(m, v->count, sizeof *out);
  compute(v, src, out);
  return out;
}

const int32_t *value_result(memory *m, value *image, const int32_t *const inputs[], unsigned run) {
  if (image->result_of == run) return image->result;
  image->result = new_result(m, image, inputs, run);
  image->result_of = run;
  return image->result;
}

/* What a value depends on. */

static bool is_of(const value *v, const state *s) { return v->of == s; }

static bool is_old(const value *v, const state *s) {
  (void)s;
  return v->of && v != v->of->now && !is_held(v);
}

static bool depends(value *v, bool (*on)(const value *v, const state *s), const state *s,
                    unsigned question) {
  if (v->asked == question) return false;
  v->asked = question;
  if (on(v, s)) return true;
  for (size_t i = 0; i < v->n_src; i++)
    if (depends(v->src[i], on, s, question)) return true;
  return false;
}

static unsigned questions;

bool value_is_old(value *v) { return depends(v, is_old, NULL, ++questions); }
bool value_reads(value *v, const state *s) { return depends(v, is_of, s, ++questions); }
