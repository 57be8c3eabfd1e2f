#include "device/piece.h"

#include "device/spec.h"

#include <string.h>

static void write_terms(str *to, const tn_program_spec *s, const launch_terms *t) {
  for (size_t i = 0; i < s->n_globals; i++) {
    wire_add(to, t->arrays[i].is_stored);
    wire_add(to, t->arrays[i].element);
    wire_add(to, t->arrays[i].rank);
  }
  for (size_t i = 0; i < 2 * s->n_values; i++) wire_add(to, (uint64_t)t->bounds[i]);
  launch_write(&t->dims, to);
}

static void write_kernel(str *to, const made_kernel *made) {
  const tn_program_spec *s = made->spec;
  wire_add_text(to, s->entry);
  wire_add(to, (uint64_t)s->core_id);
  wire_add(to, s->n_globals);
  for (size_t i = 0; i < s->n_globals; i++) wire_add(to, (uint64_t)s->globals[i]);
  wire_add(to, s->n_values);
  for (size_t i = 0; i < s->n_values; i++) wire_add_text(to, s->value_names[i]);
  wire_add(to, s->scratch);
  launch_write(&made->sizes, to);
  write_terms(to, s, &made->terms);
}

void piece_write(str *to, const tn_code *code, const made_kernel made[], size_t n) {
  for (size_t i = 0; i < n; i++) write_kernel(to, &made[i]);
  wire_add(to, code->kind);
  wire_add_block(to, code->data, code->bytes);
}

static const int64_t *read_globals(wire_reader *r, size_t *n, arena *a) {
  *n = wire_count(r, sizeof(uint64_t));
  int64_t *slots = arena_alloc(a, *n * sizeof *slots);
  for (size_t i = 0; i < *n; i++) slots[i] = (int64_t)wire_number(r);
  return slots;
}

static const char *const *read_names(wire_reader *r, size_t *n, arena *a) {
  *n = wire_count(r, sizeof(uint64_t));
  const char **names = arena_alloc(a, *n * sizeof *names);
  for (size_t i = 0; i < *n; i++) names[i] = wire_text(r, a);
  return names;
}

static launch_terms read_terms(wire_reader *r, const tn_program_spec *s, arena *a) {
  launch_array *arrays = arena_alloc(a, (s->n_globals + 1) * sizeof *arrays);
  int64_t *bounds = arena_alloc(a, (2 * s->n_values + 1) * sizeof *bounds);
  size_t n = 0;
  for (size_t i = 0; i < s->n_globals; i++) {
    arrays[i].is_stored = wire_below(r, 2);
    arrays[i].element = (uint32_t)wire_below(r, UINT32_MAX);
    arrays[i].rank = (uint32_t)wire_below(r, UINT32_MAX);
    n += arrays[i].rank;
  }
  for (size_t i = 0; i < 2 * s->n_values; i++) bounds[i] = (int64_t)wire_number(r);
  launch_code dims = launch_read(r, a, s->value_names, s->n_values);
  if (dims.n_results != n) r->failed = true;
  return (launch_terms){arrays, bounds, dims};
}

static void read_kernel(wire_reader *r, piece_kernel *k, arena *a) {
  tn_program_spec *s = &k->spec;
  *s = (tn_program_spec){.size = sizeof *s, .name = "", .source = ""};
  s->entry = wire_text(r, a);
  s->core_id = (int64_t)wire_number(r);
  s->globals = read_globals(r, &s->n_globals, a);
  s->value_names = read_names(r, &s->n_values, a);
  s->scratch = wire_number(r);
  k->sizes = launch_read_sizes(r, a, s->value_names, s->n_values);
  k->terms = read_terms(r, s, a);
  if (s->core_id < -1 || s->core_id >= (int64_t)s->n_values) r->failed = true;
}

bool piece_read(piece *p, const void *data, size_t bytes, size_t n, arena *a) {
  wire_reader r = {.at = data, .end = (const unsigned char *)data + bytes};
  piece_kernel *kernels = arena_calloc(a, n, sizeof *kernels);
  for (size_t i = 0; i < n && !r.failed; i++) read_kernel(&r, &kernels[i], a);
  uint64_t kind = wire_number(&r);
  *p = (piece){.code.kind = kind == TN_CODE_SOURCE ? TN_CODE_SOURCE : TN_CODE_BYTES,
               .kernels = kernels};
  p->code.data = wire_block(&r, &p->code.bytes);
  return !r.failed && r.at == r.end && kind <= TN_CODE_SOURCE && p->code.bytes;
}

static bool has_slot(const tn_program_spec *kernel, int64_t slot) {
  for (size_t i = 0; i < kernel->n_globals; i++)
    if (kernel->globals[i] == slot) return true;
  return false;
}

/** Code that goes over threads has the numbers of workers besides. */
static bool has_value(const tn_program_spec *kernel, const char *name) {
  if (!strcmp(name, "core_id") || !strcmp(name, "core_count")) return true;
  for (size_t i = 0; i < kernel->n_values; i++)
    if (!strcmp(kernel->value_names[i], name)) return true;
  return false;
}

bool piece_fits(const piece_kernel *k, ir *g, const node *sink) {
  const tn_program_spec *s = &k->spec;
  tn_program_spec kernel;
  spec_derive(g, sink, &kernel);
  bool fits = true;
  for (size_t i = 0; i < s->n_globals; i++) fits = fits && has_slot(&kernel, s->globals[i]);
  for (size_t i = 0; i < s->n_values; i++) fits = fits && has_value(&kernel, s->value_names[i]);
  return fits;
}
