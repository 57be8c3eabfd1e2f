/* Implements the reference model of random programs: evaluates expressions over flat i32 arrays one
   element at a time, when a value is made or, in a plan, at each run from that run's inputs and
   states (with memoised intermediate results). Also answers which states a value depends on. */
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

size_t value_count(const value *v, size_t rows) { return v->varies ? v->count * rows : v->count; }

int32_t host_element(int32_t number, size_t output, const operands *in, size_t i) {
  uint32_t x = (uint32_t)number + (uint32_t)output;
  for (size_t k = 0; k < in->n; k++) {
    size_t n = in->count[k];
    if (n) x = x * 3 + (uint32_t)in->at[k][(i + k * output) % n];
  }
  return (int32_t)x;
}

static int32_t moved(const value *v, const operands *src, size_t i) {
  if (v->map[i] < 0) return v->fill;
  size_t at = (size_t)v->map[i], first = src->count[0];
  return at < first ? src->at[0][at] : src->at[1][at - first];
}

static int32_t taken(const operands *src, size_t i) {
  int64_t n = (int64_t)src->count[0], at = src->at[1][i];
  if (at < 0) at += n;
  return at < 0 || at >= n ? 0 : src->at[0][at];
}

static int32_t flipped(const value *v, const operands *src, size_t i) {
  return src->at[0][src->count[0] - v->count - i / v->count * v->count + i % v->count];
}

static int32_t running(const value *v, const operands *src, const int32_t out[], size_t i) {
  int64_t before = v->map ? v->map[i] : (int64_t)i - (int64_t)v->count;
  return before < 0 ? src->at[0][i] : apply(v->op, out[before], src->at[0][i]);
}

static void change(const value *v, const operands *src, int32_t *out) {
  memcpy(out, src->at[0], v->count * sizeof *out);
  for (size_t i = 0; i < src->count[1]; i++) out[v->map[i]] = src->at[1][i];
}

static void reduce(const value *v, const operands *src, int32_t *out) {
  for (size_t i = 0; i < v->count; i++) out[i] = v->op == BY_LARGEST ? INT32_MIN : 0;
  for (size_t i = 0; i < src->count[0]; i++) {
    size_t to = v->map ? (size_t)v->map[i] : i % v->count;
    out[to] = apply(v->op, out[to], src->at[0][i]);
  }
}

static int32_t element(const value *v, const operands *src, const int32_t out[], size_t i) {
  const int32_t *const *at = src->at;
  switch (v->kind) {
  case VALUE_MOVED: return moved(v, src, i);
  case VALUE_TAKEN: return taken(src, i);
  case VALUE_RUNNING: return running(v, src, out, i);
  case VALUE_BINARY: return apply(v->op, at[0][i], at[1][i % src->count[1]]);
  case VALUE_CHOSEN: return at[0][i] ? at[1][i] : at[2][i];
  case VALUE_FLIPPED: return flipped(v, src, i);
  case VALUE_HOST: return host_element(v->fill, v->input, src, i);
  default: return 0;
  }
}

static const int32_t *compute(memory *m, const value *v, const operands *src, size_t rows) {
  size_t n = value_count(v, rows);
  int32_t *out = model_alloc(m, n, sizeof *out);
  if (v->kind == VALUE_CHANGED)
    change(v, src, out);
  else if (v->kind == VALUE_REDUCED)
    reduce(v, src, out);
  else
    for (size_t i = 0; i < n; i++) out[i] = element(v, src, out, i);
  return out;
}

value *value_new(memory *m, value v) {
  value *made = model_alloc(m, 1, sizeof *made);
  operands src = {.n = v.n_src};
  v.count = shape_count(v.shape);
  for (size_t i = 0; i < v.n_src; i++) {
    v.is_open |= v.src[i]->is_open;
    src.at[i] = v.src[i]->data;
    src.count[i] = v.src[i]->count;
  }
  if (!v.is_open && v.n_src) v.data = compute(m, &v, &src, 1);
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

static const int32_t *new_result(memory *m, value *v, const run *r) {
  operands src = {.n = v->n_src};
  if (v->kind == VALUE_HELD) return v->of->now->data;
  if (v->kind == VALUE_INPUT) return r->inputs[v->input];
  if (v->kind == VALUE_CONSTANT) return v->data;
  for (size_t i = 0; i < v->n_src; i++) {
    src.at[i] = value_result(m, v->src[i], r);
    src.count[i] = value_count(v->src[i], r->rows);
  }
  return compute(m, v, &src, r->rows);
}

const int32_t *value_result(memory *m, value *image, const run *r) {
  if (image->result_of == r->number) return image->result;
  image->result = new_result(m, image, r);
  image->result_of = r->number;
  return image->result;
}

/* Dependencies of values. */

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
