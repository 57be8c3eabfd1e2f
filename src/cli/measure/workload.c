/* Parses built-in benchmark workloads such as "matmul:512x512x512:bf16" by a table of kinds, and
   builds their graphs. */
#include "cli/measure/workload.h"

#include "cli/core/text_format.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct workload_kind {
  const char *name, *form;
  uint8_t n_sizes;    /* numbers after the name */
  uint8_t first_zero; /* index of the first number that may be 0 */
  char separator;     /* between the numbers */
  bool has_axis;      /* an axis follows, after a colon */
  bool allows_i8;
  bool is_bytes; /* the number may have a suffix: 64M */
  size_t (*inputs)(const workload *w, tn_shape shapes[]);
  tn_tensor *(*build)(const workload *w, tn_context *tn, tn_tensor *const in[]);
  double (*operations)(const workload *w); /* of contractions; NULL: none */
};

/** Casts i8 to i32, the accumulation type of quantised models. */
static tn_tensor *widen_integers(const workload *w, tn_tensor *x) {
  return w->dtype == TN_I8 ? tn_cast(x, TN_I32) : x;
}

/* matmul */

static size_t matmul_inputs(const workload *w, tn_shape shapes[]) {
  shapes[0] = tn_shape(w->size[0], w->size[2]);
  shapes[1] = tn_shape(w->size[2], w->size[1]);
  return 2;
}

static tn_tensor *matmul_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)tn;
  return tn_matmul(widen_integers(w, in[0]), widen_integers(w, in[1]));
}

static double matmul_operations(const workload *w) {
  return 2.0 * (double)w->size[0] * (double)w->size[1] * (double)w->size[2];
}

/* conv: N,C,H,W,K,R,stride,pad */

static size_t conv_inputs(const workload *w, tn_shape shapes[]) {
  const int64_t *s = w->size;
  shapes[0] = tn_shape(s[0], s[1], s[2], s[3]);
  shapes[1] = tn_shape(s[4], s[1], s[5], s[5]);
  return 2;
}

static tn_tensor *conv_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)tn;
  tn_conv_desc desc = TN_CONV_DESC_INIT;
  for (int i = 0; i < 2; i++) {
    desc.stride[i] = w->size[6];
    desc.pad_low[i] = desc.pad_high[i] = w->size[7];
  }
  return tn_conv(widen_integers(w, in[0]), widen_integers(w, in[1]), NULL, &desc);
}

static double conv_operations(const workload *w) {
  const int64_t *s = w->size;
  double high = floor((double)(s[2] + 2 * s[7] - s[5]) / (double)s[6]) + 1;
  double across = floor((double)(s[3] + 2 * s[7] - s[5]) / (double)s[6]) + 1;
  return 2.0 * (double)s[0] * (double)s[4] * high * across * (double)s[1] * (double)s[5] *
         (double)s[5];
}

/* attention: HxSxD (heads, sequence length, head size), of one sequence */

static size_t attention_inputs(const workload *w, tn_shape shapes[]) {
  for (int i = 0; i < 3; i++) shapes[i] = tn_shape(w->size[0], w->size[1], w->size[2]);
  return 3;
}

static tn_tensor *attention_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  tn_tensor *scale = tn_num(tn, 1 / sqrt((double)w->size[2]));
  tn_tensor *scores = tn_mul(tn_matmul(in[0], tn_swapaxes(in[1], -2, -1)), scale);
  return tn_matmul(tn_softmax(scores, -1), in[2]);
}

static double attention_operations(const workload *w) {
  return 4.0 * (double)w->size[0] * (double)w->size[1] * (double)w->size[1] * (double)w->size[2];
}

/* kinds of one matrix: RxC */

static size_t table_inputs(const workload *w, tn_shape shapes[]) {
  shapes[0] = tn_shape(w->size[0], w->size[1]);
  return 1;
}

static size_t add_inputs(const workload *w, tn_shape shapes[]) {
  shapes[0] = shapes[1] = tn_shape(w->size[0], w->size[1]);
  return 2;
}

static size_t layernorm_inputs(const workload *w, tn_shape shapes[]) {
  shapes[0] = tn_shape(w->size[0], w->size[1]);
  shapes[1] = shapes[2] = tn_shape(w->size[1]);
  return 3;
}

static tn_tensor *softmax_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return tn_softmax(in[0], -1);
}

static tn_tensor *layernorm_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return tn_layer_norm(in[0], in[1], in[2], -1, 1e-5);
}

static tn_tensor *gelu_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return tn_gelu(in[0]);
}

static tn_tensor *add_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return tn_add(in[0], in[1]);
}

static tn_tensor *sum_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)tn;
  return tn_sum(in[0], tn_axes(w->axis), false);
}

static tn_tensor *transpose_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return tn_transpose(in[0]);
}

/* copy:BYTES */

static size_t copy_inputs(const workload *w, tn_shape shapes[]) {
  shapes[0] = tn_shape(w->size[0] / (int64_t)tn_dtype_size(w->dtype));
  return 1;
}

static tn_tensor *copy_build(const workload *w, tn_context *tn, tn_tensor *const in[]) {
  (void)w, (void)tn;
  return in[0];
}

static const workload_kind kinds[] = {
    {"matmul", "MxNxK", 3, 3, 'x', false, true, false, matmul_inputs, matmul_build,
     matmul_operations},
    {"conv", "N,C,H,W,K,R,stride,pad", 8, 7, ',', false, true, false, conv_inputs, conv_build,
     conv_operations},
    {"attention", "HxSxD", 3, 3, 'x', false, false, false, attention_inputs, attention_build,
     attention_operations},
    {"softmax", "RxC", 2, 2, 'x', false, false, false, table_inputs, softmax_build, NULL},
    {"layernorm", "RxC", 2, 2, 'x', false, false, false, layernorm_inputs, layernorm_build, NULL},
    {"gelu", "RxC", 2, 2, 'x', false, false, false, table_inputs, gelu_build, NULL},
    {"add", "RxC", 2, 2, 'x', false, true, false, add_inputs, add_build, NULL},
    {"sum", "RxC:axis", 2, 2, 'x', true, true, false, table_inputs, sum_build, NULL},
    {"transpose", "RxC", 2, 2, 'x', false, true, false, table_inputs, transpose_build, NULL},
    {"copy", "BYTES", 1, 1, 'x', false, true, true, copy_inputs, copy_build, NULL},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Parsing. */

static const workload_kind *find_kind(const char *text) {
  for (size_t i = 0; i < KINDS; i++) {
    size_t n = strlen(kinds[i].name);
    if (!strncmp(text, kinds[i].name, n) && text[n] == ':') return &kinds[i];
  }
  return NULL;
}

static _Noreturn void fail_form(command *c, const workload_kind *k, const char *text) {
  command_usage_error(c, "\"%s\" does not have the form %s:%s%s", text, k->name, k->form,
                      k->allows_i8 ? "[:f16|:bf16|:i8]" : "[:f16|:bf16]");
}

/** A text being parsed. */
typedef struct parser {
  command *c;
  const char *text, *at;
  bool is_bytes; /* numbers may have a suffix: 64M */
} parser;

/** Parses a number; false if there is none. Raises if it is out of range. */
static bool parse_number(parser *r, int64_t min, int64_t max, int64_t *out) {
  char *end;
  bool has_sign = min < 0 && *r->at == '-',
       has_digit = r->at[has_sign] >= '0' && r->at[has_sign] <= '9';
  if (!has_digit) return false;
  errno = 0;
  long long n = strtoll(r->at, &end, 10);
  if (errno || n < min || n > max)
    command_usage_error(r->c, "\"%s\": %.*s is not a number from %lld to %lld", r->text,
                        (int)(end - r->at), r->at, (long long)min, (long long)max);
  int64_t unit = r->is_bytes ? text_byte_multiplier(*end) : 1;
  if (unit > 1) end++;
  if (n > max / unit)
    command_usage_error(r->c, "\"%s\": %.*s exceeds %lld", r->text, (int)(end - r->at), r->at,
                        (long long)max);
  r->at = end;
  *out = n * unit;
  return true;
}

static bool parse_sizes(const workload_kind *k, parser *r, workload *w) {
  for (int i = 0; i < k->n_sizes; i++) {
    if (i && *r->at++ != k->separator) return false;
    if (!parse_number(r, i < k->first_zero, INT64_C(1) << 40, &w->size[i])) return false;
  }
  int64_t axis = 0;
  if (!k->has_axis) return true;
  if (*r->at++ != ':' || !parse_number(r, -2, 1, &axis)) return false;
  w->axis = (int)axis;
  return true;
}

static bool parse_type(const workload_kind *k, const char *at, workload *w) {
  static const tn_dtype types[] = {TN_F32, TN_F16, TN_BF16, TN_I8};
  w->dtype = TN_F32;
  if (!*at) return true;
  if (*at != ':') return false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(at + 1, tn_dtype_name(types[i]))) continue;
    w->dtype = types[i];
    return types[i] != TN_I8 || k->allows_i8;
  }
  return false;
}

bool workload_parse(command *c, const char *text, workload *w) {
  const workload_kind *k = find_kind(text);
  if (!k) return false;
  *w = (workload){.kind = k};
  parser r = {c, text, text + strlen(k->name) + 1, k->is_bytes};
  if (!parse_sizes(k, &r, w) || !parse_type(k, r.at, w)) fail_form(c, k, text);
  if (k->inputs == copy_inputs && w->size[0] % (int64_t)tn_dtype_size(w->dtype))
    command_usage_error(c, "\"%s\": the size is not a whole number of %s elements", text,
                        tn_dtype_name(w->dtype));
  if (k->inputs == conv_inputs &&
      (w->size[2] + 2 * w->size[7] < w->size[5] || w->size[3] + 2 * w->size[7] < w->size[5]))
    command_usage_error(c, "\"%s\": the window is larger than the padded image", text);
  return true;
}

void workload_reject(command *c, const char *text) {
  const char *names[KINDS];
  str forms = str_new(&c->arena);
  for (size_t i = 0; i < KINDS; i++) {
    names[i] = kinds[i].name;
    if (!strcmp(text, names[i])) fail_form(c, &kinds[i], text);
    str_addf(&forms, "%s%s:%s", i ? " " : "", names[i], kinds[i].form);
  }
  if (!strchr(text, ':')) return;
  const char *word = arena_printf(&c->arena, "%.*s", (int)strcspn(text, ":"), text);
  const char *near = text_nearest_word(word, names, KINDS);
  command_usage_error(c, "unknown workload \"%s\"%s", text,
                      near ? text_suggestion(&c->arena, near)
                           : arena_printf(&c->arena, "; workloads are %s", str_text(&forms)));
}

size_t workload_inputs(const workload *w, tn_shape shapes[WORKLOAD_INPUTS]) {
  return w->kind->inputs(w, shapes);
}

tn_tensor *workload_build(const workload *w, tn_context *tn, tn_tensor *const in[WORKLOAD_INPUTS]) {
  return w->kind->build(w, tn, in);
}

double workload_operations(const workload *w) {
  return w->kind->operations ? w->kind->operations(w) : 0;
}
