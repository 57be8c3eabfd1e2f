/* Serialises code records for the disk cache, and reads them back with checks: kernels one after
   another, then the kind and the bytes of the code. */
#include "compile/code_record.h"

#include "compile/program_spec.h"

#include <string.h>

static void write_limits(str *to, const tn_program_spec *s, const launch_limits *l) {
  for (size_t i = 0; i < s->n_globals; i++) {
    serialise_number(to, l->arrays[i].is_stored);
    serialise_number(to, l->arrays[i].element);
    serialise_number(to, l->arrays[i].rank);
  }
  for (size_t i = 0; i < 2 * s->n_values; i++) serialise_number(to, (uint64_t)l->bounds[i]);
  launch_exprs_write(&l->dims, to);
}

static void write_kernel(str *to, const compiled_kernel *k) {
  const tn_program_spec *s = k->spec;
  serialise_text(to, s->entry);
  serialise_number(to, (uint64_t)s->core_id);
  serialise_number(to, s->n_globals);
  for (size_t i = 0; i < s->n_globals; i++) serialise_number(to, (uint64_t)s->globals[i]);
  serialise_number(to, s->n_values);
  for (size_t i = 0; i < s->n_values; i++) serialise_text(to, s->value_names[i]);
  serialise_number(to, s->scratch);
  launch_exprs_write(&k->sizes, to);
  write_limits(to, s, &k->limits);
}

void code_record_write(str *to, const tn_code *code, const compiled_kernel compiled[], size_t n) {
  for (size_t i = 0; i < n; i++) write_kernel(to, &compiled[i]);
  serialise_number(to, code->kind);
  serialise_block(to, code->data, code->bytes);
}

static const int64_t *read_globals(deserialiser *r, size_t *n, arena *a) {
  *n = deserialise_count(r, sizeof(uint64_t));
  int64_t *slots = arena_alloc(a, *n * sizeof *slots);
  for (size_t i = 0; i < *n; i++) slots[i] = (int64_t)deserialise_number(r);
  return slots;
}

static const char *const *read_names(deserialiser *r, size_t *n, arena *a) {
  *n = deserialise_count(r, sizeof(uint64_t));
  const char **names = arena_alloc(a, *n * sizeof *names);
  for (size_t i = 0; i < *n; i++) names[i] = deserialise_text(r, a);
  return names;
}

static launch_limits read_limits(deserialiser *r, const tn_program_spec *s, arena *a) {
  launch_operand *arrays = arena_alloc(a, (s->n_globals + 1) * sizeof *arrays);
  int64_t *bounds = arena_alloc(a, (2 * s->n_values + 1) * sizeof *bounds);
  size_t n = 0;
  for (size_t i = 0; i < s->n_globals; i++) {
    arrays[i].is_stored = deserialise_below(r, 2);
    arrays[i].element = (uint32_t)deserialise_below(r, UINT32_MAX);
    arrays[i].rank = (uint32_t)deserialise_below(r, UINT32_MAX);
    n += arrays[i].rank;
  }
  for (size_t i = 0; i < 2 * s->n_values; i++) bounds[i] = (int64_t)deserialise_number(r);
  launch_exprs dims = launch_exprs_read(r, a, s->value_names, s->n_values);
  if (dims.n_results != n) r->failed = true;
  return (launch_limits){arrays, bounds, dims};
}

static void read_kernel(deserialiser *r, code_record_kernel *k, arena *a) {
  tn_program_spec *s = &k->spec;
  *s = (tn_program_spec){.size = sizeof *s, .name = "", .source = ""};
  s->entry = deserialise_text(r, a);
  s->core_id = (int64_t)deserialise_number(r);
  s->globals = read_globals(r, &s->n_globals, a);
  s->value_names = read_names(r, &s->n_values, a);
  s->scratch = deserialise_number(r);
  k->sizes = launch_grid_read(r, a, s->value_names, s->n_values);
  k->limits = read_limits(r, s, a);
  if (s->core_id < -1 || s->core_id >= (int64_t)s->n_values) r->failed = true;
}

bool code_record_read(code_record *p, const void *data, size_t bytes, size_t n, arena *a) {
  deserialiser r = {.at = data, .end = (const unsigned char *)data + bytes};
  code_record_kernel *kernels = arena_calloc(a, n, sizeof *kernels);
  for (size_t i = 0; i < n && !r.failed; i++) read_kernel(&r, &kernels[i], a);
  uint64_t kind = deserialise_number(&r);
  bool is_known = kind <= TN_CODE_PRODUCT;
  *p =
      (code_record){.code.kind = is_known ? (tn_code_kind)kind : TN_CODE_BYTES, .kernels = kernels};
  p->code.data = deserialise_block(&r, &p->code.bytes);
  return !r.failed && r.at == r.end && is_known && p->code.bytes;
}

static bool has_slot(const tn_program_spec *kernel, int64_t slot) {
  for (size_t i = 0; i < kernel->n_globals; i++)
    if (kernel->globals[i] == slot) return true;
  return false;
}

/** Parallel code has the worker's number and count as values besides. */
static bool has_value(const tn_program_spec *kernel, const char *name) {
  if (!strcmp(name, "core_id") || !strcmp(name, "core_count")) return true;
  for (size_t i = 0; i < kernel->n_values; i++)
    if (!strcmp(kernel->value_names[i], name)) return true;
  return false;
}

bool code_record_fits_kernel(const code_record_kernel *k, ir *g, const node *sink) {
  const tn_program_spec *s = &k->spec;
  tn_program_spec kernel;
  program_spec_derive(g, sink, &kernel);
  bool fits = true;
  for (size_t i = 0; i < s->n_globals; i++) fits = fits && has_slot(&kernel, s->globals[i]);
  for (size_t i = 0; i < s->n_values; i++) fits = fits && has_value(&kernel, s->value_names[i]);
  return fits;
}
