#include "cli/array.h"

#include "cli/text.h"
#include "formats/npy/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64 };

typedef struct allocation {
  arena *arena;
  size_t bytes;
  char *at;
} allocation;

static void allocate(void *arg) {
  allocation *m = arg;
  m->at = arena_alloc(m->arena, m->bytes);
}

array array_make(command *c, const char *name, tn_dtype dtype, tn_shape shape) {
  array a = {.dtype = dtype, .shape = shape, .elements = 1};
  bool empty = false;
  for (int32_t i = 0; i < shape.rank; i++) empty |= !shape.size[i];
  for (int32_t i = 0; i < shape.rank && !empty; i++) {
    if ((size_t)shape.size[i] > SIZE_MAX / 64 / a.elements)
      diag_raise(&c->diag, TN_ERR_MEMORY, "\"%s\" is too large for this machine's memory", name);
    a.elements *= (size_t)shape.size[i];
  }
  if (empty) a.elements = 0;
  a.bytes = a.elements * tn_dtype_size(dtype);
  allocation m = {.arena = &c->arena, .bytes = a.bytes + ALIGN};
  if (diag_catch(&c->diag, allocate, &m))
    diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory: \"%s\", %s, takes %s", name,
               array_type_text(c, dtype, (size_t)shape.rank, shape.size, NULL),
               text_bytes(&c->arena, a.bytes));
  a.data = m.at + (ALIGN - (uintptr_t)m.at % ALIGN) % ALIGN;
  return a;
}

/* Filling. */

/** The next of a sequence of 64 random bits (Steele, Lea and Flood, 2014: SplitMix). */
static uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/** The sum of four uniform numbers, of mean 0 and variance 1: nearly normal, and the same on every
    machine. */
static double random_float(uint64_t *state) {
  uint64_t bits = random_bits(state);
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += (double)(bits >> 16 * i & 0xffff) / 65535 - 0.5;
  return sum * 1.7320508075688772;
}

/** What an element is set to, in the bits of its type. */
static uint64_t element(dtype t, array_fill fill, uint64_t *seed) {
  bool is_float = dtype_is_float(t);
  if (fill != FILL_RANDOM)
    return is_float ? scalar_from_double(t, fill == FILL_ONES) : fill == FILL_ONES;
  return is_float ? scalar_from_double(t, random_float(seed)) : random_bits(seed) >> 63;
}

void array_set(array *a, array_fill fill, uint64_t *seed) {
  dtype t = (dtype)a->dtype;
  size_t size = dtype_bytes(t);
  char *at = a->data;
  for (size_t i = 0; i < a->elements; i++, at += size) scalar_store(t, at, element(t, fill, seed));
}

/* Files. */

typedef struct opening {
  command *c;
  npy_array file;
  const char *path;
  tn_dtype wanted;
  array *out;
} opening;

static void open_file(void *arg) {
  opening *o = arg;
  command *c = o->c;
  const npy_array *n = &o->file;
  if (npy_open(&o->file, o->path, &c->arena, &c->diag)) diag_rethrow(&c->diag);
  if (n->rank > TN_MAX_RANK)
    diag_raise(&c->diag, TN_ERR_SHAPE, "%s has %zu axes; a tensor has at most %d", o->path, n->rank,
               TN_MAX_RANK);
  tn_shape shape = {.rank = (int32_t)n->rank};
  for (size_t i = 0; i < n->rank; i++) shape.size[i] = n->dims[i];
  bool is_bits = o->wanted == TN_BF16 && n->dtype == DT_U16;
  *o->out = array_make(c, o->path, is_bits ? TN_BF16 : (tn_dtype)n->dtype, shape);
  if (n->bytes) memcpy(o->out->data, n->data, n->bytes);
}

array array_of_output(command *c, tn_binding *b, const char *name) {
  tn_type type = tn_binding_type(b, name);
  array a = array_make(c, name, type.dtype, type.shape);
  command_check_binding(c, tn_binding_read(b, name, type.dtype, a.data, a.bytes), b);
  return a;
}

array array_read(command *c, const char *path, tn_dtype wanted) {
  array out;
  opening o = {.c = c, .path = path, .wanted = wanted, .out = &out};
  tn_status s = diag_catch(&c->diag, open_file, &o);
  npy_close(&o.file);
  if (s != TN_OK) diag_rethrow(&c->diag);
  return out;
}

void array_write(command *c, const array *a, const char *path) {
  dtype t = (dtype)a->dtype;
  size_t rank = (size_t)a->shape.rank;
  tn_status s = path ? npy_write(path, t, rank, a->shape.size, a->data, &c->arena, &c->diag)
                     : npy_write_open(STDOUT_FILENO, "standard output", t, rank, a->shape.size,
                                      a->data, &c->arena, &c->diag);
  if (s != TN_OK) diag_rethrow(&c->diag);
}

/* Telling. */

const char *array_type_text(command *c, tn_dtype dtype, size_t rank, const int64_t size[],
                            const char *const words[]) {
  str s = str_new(&c->arena);
  str_addf(&s, "%s [", tn_dtype_name(dtype));
  for (size_t i = 0; i < rank; i++) {
    if (i) str_add(&s, ", ");
    if (words)
      str_add(&s, text_safe(&c->arena, words[i]));
    else
      str_addf(&s, "%" PRId64, size[i]);
  }
  str_add(&s, "]");
  return str_text(&s);
}

uint64_t array_element(const array *a, size_t i) {
  dtype t = (dtype)a->dtype;
  return scalar_load(t, (const char *)a->data + i * dtype_bytes(t));
}

double array_number(dtype t, uint64_t bits) {
  if (dtype_is_float(t)) return scalar_to_double(t, bits);
  return dtype_is_signed(t) ? (double)(int64_t)bits : (double)bits;
}

static bool less(dtype t, uint64_t a, uint64_t b) {
  if (dtype_is_float(t)) return scalar_to_double(t, a) < scalar_to_double(t, b);
  return dtype_is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
}

array_summary array_sum_up(const array *a) {
  dtype t = (dtype)a->dtype;
  array_summary s = {0, SIZE_MAX, SIZE_MAX, 0};
  uint64_t least = 0, greatest = 0;
  double sum = 0;
  for (size_t i = 0; i < a->elements; i++) {
    uint64_t bits = array_element(a, i);
    double value = array_number(t, bits);
    s.nans += isnan(value);
    if (isnan(value)) continue;
    sum += value;
    if (s.least == SIZE_MAX || less(t, bits, least)) least = bits, s.least = i;
    if (s.greatest == SIZE_MAX || less(t, greatest, bits)) greatest = bits, s.greatest = i;
  }
  s.mean = a->elements > s.nans ? sum / (double)(a->elements - s.nans) : NAN;
  return s;
}

const char *array_type(command *c, const array *a) {
  return array_type_text(c, a->dtype, (size_t)a->shape.rank, a->shape.size, NULL);
}

const char *array_text(command *c, const array *a, size_t i) {
  dtype t = (dtype)a->dtype;
  uint64_t bits = array_element(a, i);
  if (t == DT_BOOL) return bits ? "true" : "false";
  if (dtype_is_float(t)) return text_number(&c->arena, scalar_to_double(t, bits));
  if (dtype_is_signed(t)) return arena_printf(&c->arena, "%" PRId64, (int64_t)bits);
  return arena_printf(&c->arena, "%" PRIu64, bits);
}

json_t *array_json(const array *a, size_t i) {
  dtype t = (dtype)a->dtype;
  uint64_t bits = array_element(a, i);
  if (t == DT_BOOL) return json_boolean(bits != 0);
  if (dtype_is_float(t)) return text_json_float(scalar_to_double(t, bits));
  bool fits = dtype_is_signed(t) || bits <= INT64_MAX;
  return fits ? json_integer((int64_t)bits) : json_real((double)bits);
}
