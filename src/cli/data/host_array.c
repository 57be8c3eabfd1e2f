/* Implements arrays in the command's arena, aligned to 64 bytes so that the library can use them
   without a copy. Random elements come from SplitMix64, so that a seed gives the same inputs on
   every machine. */
#include "cli/data/host_array.h"

#include "base/file.h"
#include "cli/core/text_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64 };

typedef struct allocation {
  arena *arena;
  size_t bytes;
  char *memory;
} allocation;

static void allocate_body(void *arg) {
  allocation *m = arg;
  m->memory = arena_alloc(m->arena, m->bytes);
}

host_array host_array_alloc(command *c, const char *name, tn_dtype dtype, tn_shape shape) {
  host_array a = {.dtype = dtype, .shape = shape, .elements = 1};
  bool is_empty = false;
  for (int32_t i = 0; i < shape.rank; i++) is_empty |= !shape.size[i];
  for (int32_t i = 0; i < shape.rank && !is_empty; i++) {
    if ((size_t)shape.size[i] > SIZE_MAX / 64 / a.elements)
      diag_raise(&c->diag, TN_ERR_MEMORY, "\"%s\" is too large for this machine's memory", name);
    a.elements *= (size_t)shape.size[i];
  }
  if (is_empty) a.elements = 0;
  a.bytes = a.elements * tn_dtype_size(dtype);
  allocation m = {.arena = &c->arena, .bytes = a.bytes + ALIGN};
  if (diag_catch(&c->diag, allocate_body, &m))
    diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory: \"%s\", %s, needs %s", name,
               tensor_type_text(c, dtype, (size_t)shape.rank, shape.size, NULL),
               text_bytes(&c->arena, a.bytes));
  a.data = m.memory + (ALIGN - (uintptr_t)m.memory % ALIGN) % ALIGN;
  return a;
}

/* Filling. */

/** The next 64 random bits of a sequence (Steele, Lea and Flood, 2014: SplitMix). */
static uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/** A sum of four uniform numbers, with mean 0 and variance 1: nearly normal, without functions
   whose rounding depends on the machine. */
static double random_float(uint64_t *state) {
  uint64_t bits = random_bits(state);
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += (double)(bits >> 16 * i & 0xffff) / 65535 - 0.5;
  return sum * 1.7320508075688772;
}

void host_array_fill(host_array *a, fill_kind fill, uint64_t *seed) {
  bool is_float = tn_dtype_kind_of(a->dtype) == TN_KIND_FLOAT;
  size_t size = tn_dtype_size(a->dtype);
  char *element = a->data;
  for (size_t i = 0; i < a->elements; i++, element += size) {
    double value = fill == FILL_ONES;
    if (fill == FILL_RANDOM)
      value = is_float ? random_float(seed) : (double)(random_bits(seed) >> 63);
    tn_element_set(a->dtype, element, value);
  }
}

host_array host_array_read_output(command *c, tn_binding *b, size_t i, const char *name) {
  tn_type type = tn_binding_type_at(b, i);
  host_array a = host_array_alloc(c, name, type.dtype, type.shape);
  command_check_binding(c, tn_binding_read_at(b, i, type.dtype, a.data, a.bytes), b);
  return a;
}

/* Strings. */

void host_array_find_strings(command *c, host_array *a, const tn_model *m) {
  const int64_t *numbers = a->data;
  a->strings = arena_alloc(&c->arena, (a->elements + 1) * sizeof *a->strings);
  for (size_t i = 0; i < a->elements; i++) {
    const char *text = tn_model_string(m, numbers[i], NULL);
    if (!text)
      diag_raise(&c->diag, TN_ERR_INTERNAL, "%lld is no string's number", (long long)numbers[i]);
    a->strings[i] = arena_printf(&c->arena, "%s", text);
  }
}

void host_array_number_strings(command *c, const host_array *a, tn_model *m) {
  int64_t *numbers = a->data;
  for (size_t i = 0; a->strings && i < a->elements; i++)
    command_check_status(
        c, tn_model_string_number(m, a->strings[i], strlen(a->strings[i]), &numbers[i]));
}

/* Files. */

host_array host_array_load(command *c, const char *path, tn_file_format format, tn_dtype expected) {
  tn_array_file *file;
  command_check_status(c, tn_array_file_open(c->context, path, format, &file));
  const tn_array from = tn_array_file_get(file);
  bool is_16 = expected == TN_BF16 && from.type.dtype == TN_U16;
  bool is_8 = expected >= TN_F8E4M3FN && from.type.dtype == TN_U8;
  bool is_bits = format == TN_FILE_NPY && (is_16 || is_8);
  host_array a = host_array_alloc(c, path, is_bits ? expected : from.type.dtype, from.type.shape);
  if (a.bytes) memcpy(a.data, from.data, a.bytes);
  unsigned char *bytes = a.data;
  for (size_t i = 0; a.dtype == TN_BOOL && i < a.bytes; i++) bytes[i] = bytes[i] != 0;
  tn_array_file_close(file);
  return a;
}

/** The elements as ONNX files have them: those of 4 and 2 bits packed. */
static write_part packed_elements(command *c, const host_array *a) {
  bool has_2 = a->dtype == TN_U2 || a->dtype == TN_I2;
  size_t bits = a->dtype == TN_U4 || a->dtype == TN_I4 || a->dtype == TN_F4E2M1 ? 4 : has_2 ? 2 : 8;
  if (bits == 8) return (write_part){a->data, a->bytes};
  size_t n = (a->elements * bits + 7) / 8;
  const unsigned char *from = a->data;
  unsigned char *to = arena_calloc(&c->arena, n + 1, 1);
  for (size_t i = 0; i < a->elements; i++)
    to[i * bits / 8] |= (unsigned char)((from[i] & ((1u << bits) - 1)) << i * bits % 8);
  return (write_part){to, n};
}

void host_array_save(command *c, const host_array *a, const char *path, tn_file_format format,
                     const char *name) {
  const tn_type type = {a->dtype, a->shape};
  size_t n = tn_array_header(type, format, name, NULL, 0);
  void *header = arena_alloc(&c->arena, n);
  tn_array_header(type, format, name, header, n);
  bool is_onnx = format == TN_FILE_ONNX;
  const write_part data = is_onnx ? packed_elements(c, a) : (write_part){a->data, a->bytes};
  const write_part parts[] = {{header, n}, data};
  tn_status s = path ? file_write_parts(path, parts, 2, &c->diag)
                     : file_write_fd(STDOUT_FILENO, "standard output", parts, 2, &c->diag);
  if (s != TN_OK) diag_rethrow(&c->diag);
}

/* Text. */

const char *tensor_type_text(command *c, tn_dtype dtype, size_t rank, const int64_t size[],
                             const char *const words[]) {
  str s = str_new(&c->arena);
  str_addf(&s, "%s [", tn_dtype_name(dtype));
  for (size_t i = 0; i < rank; i++) {
    if (i) str_add(&s, ", ");
    if (words)
      str_add(&s, text_escape(&c->arena, words[i]));
    else
      str_addf(&s, "%" PRId64, size[i]);
  }
  str_add(&s, "]");
  return str_text(&s);
}

double host_array_value(const host_array *a, size_t i) {
  return tn_element_get(a->dtype, (const char *)a->data + i * tn_dtype_size(a->dtype));
}

/** An integer or bool element, sign- or zero-extended to 64 bits. */
static uint64_t integer_element(const host_array *a, size_t i) {
  const char *element = (const char *)a->data + i * tn_dtype_size(a->dtype);
  if (tn_dtype_size(a->dtype) == 1) return (uint64_t)(int64_t)tn_element_get(a->dtype, element);
  switch (a->dtype) {
#define LOAD(dtype, number, text, bytes, host) \
  case dtype: {                                \
    host value;                                \
    memcpy(&value, element, sizeof value);     \
    return (uint64_t)value;                    \
  }
    TN_DTYPE_LIST(LOAD)
#undef LOAD
  default: return 0;
  }
}

/** An element in both forms: floats compare as doubles, integers exactly by their bits. */
typedef struct number {
  double value;
  uint64_t bits;
} number;

static bool is_less(tn_dtype_kind kind, number x, number y) {
  if (kind == TN_KIND_FLOAT) return x.value < y.value;
  return kind == TN_KIND_SIGNED ? (int64_t)x.bits < (int64_t)y.bits : x.bits < y.bits;
}

host_array_summary host_array_summarise(const host_array *a) {
  host_array_summary s = {0, SIZE_MAX, SIZE_MAX, 0};
  tn_dtype_kind kind = tn_dtype_kind_of(a->dtype);
  number least = {0}, greatest = {0};
  double sum = 0;
  for (size_t i = 0; i < a->elements && !a->strings; i++) {
    number x = {.value = host_array_value(a, i)};
    s.nans += isnan(x.value);
    if (isnan(x.value)) continue;
    if (kind != TN_KIND_FLOAT) x.bits = integer_element(a, i);
    sum += x.value;
    if (s.least == SIZE_MAX || is_less(kind, x, least)) {
      least = x;
      s.least = i;
    }
    if (s.greatest == SIZE_MAX || is_less(kind, greatest, x)) {
      greatest = x;
      s.greatest = i;
    }
  }
  s.mean = a->elements > s.nans && !a->strings ? sum / (double)(a->elements - s.nans) : NAN;
  return s;
}

const char *host_array_type_name(const host_array *a) {
  return a->strings ? "string" : tn_dtype_name(a->dtype);
}

const char *host_array_type_text(command *c, const host_array *a) {
  const char *text = tensor_type_text(c, a->dtype, (size_t)a->shape.rank, a->shape.size, NULL);
  return a->strings ? arena_printf(&c->arena, "%s%s", host_array_type_name(a), strchr(text, ' '))
                    : text;
}

bool host_array_is_like(const host_array *a, const host_array *b) {
  bool same = a->dtype == b->dtype && !a->strings == !b->strings && a->shape.rank == b->shape.rank;
  for (int32_t i = 0; same && i < a->shape.rank; i++) same = a->shape.size[i] == b->shape.size[i];
  return same;
}

const char *host_array_index_text(command *c, const host_array *a, size_t i) {
  int64_t index[TN_MAX_RANK];
  str s = str_new(&c->arena);
  for (int32_t k = a->shape.rank; k-- > 0; i /= (size_t)a->shape.size[k])
    index[k] = (int64_t)(i % (size_t)a->shape.size[k]);
  for (int32_t k = 0; k < a->shape.rank; k++)
    str_addf(&s, "%s%lld", k ? ", " : "", (long long)index[k]);
  return arena_printf(&c->arena, "[%s]", str_text(&s));
}

/** A string in quotes, as --input takes it. */
static const char *quoted_text(arena *a, const char *text) {
  str s = str_new(a);
  for (; *text; text++) str_addf(&s, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
  return arena_printf(a, "\"%s\"", text_escape(a, str_text(&s)));
}

const char *host_array_element_text(command *c, const host_array *a, size_t i) {
  if (a->strings) return quoted_text(&c->arena, a->strings[i]);
  switch (tn_dtype_kind_of(a->dtype)) {
  case TN_KIND_BOOL: return integer_element(a, i) ? "true" : "false";
  case TN_KIND_FLOAT: return text_number(&c->arena, host_array_value(a, i));
  case TN_KIND_SIGNED: return arena_printf(&c->arena, "%" PRId64, (int64_t)integer_element(a, i));
  default: return arena_printf(&c->arena, "%" PRIu64, integer_element(a, i));
  }
}

json_t *host_array_element_json(command *c, const host_array *a, size_t i) {
  if (a->strings) return text_json(&c->arena, a->strings[i]);
  tn_dtype_kind kind = tn_dtype_kind_of(a->dtype);
  if (kind == TN_KIND_FLOAT) return text_json_float(host_array_value(a, i));
  uint64_t bits = integer_element(a, i);
  if (kind == TN_KIND_BOOL) return json_boolean(bits != 0);
  bool fits = kind == TN_KIND_SIGNED || bits <= INT64_MAX;
  return fits ? json_integer((json_int_t)bits) : json_real((double)bits);
}
