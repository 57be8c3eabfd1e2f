/* ONNX operators on strings, which the host computes (formats/host): StringConcat, StringSplit,
   StringNormalizer and RegexFullMatch, and Tokenizer of ONNX Runtime's domain, which exporters of
   classical machine learning write. Where the size of a result follows from the strings, a first
   step computes it. */
#include "formats/host/regex_step.h"
#include "formats/host/string_steps.h"
#include "formats/host/token_steps.h"
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/reduction.h"

void onnx_StringConcat(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x[] = {onnx_string_input(c, 0), onnx_string_input(c, 1)};
  sizes both[] = {sizes_of(x[0].node), sizes_of(x[1].node)}, s = sizes_broadcast(b, both, 2);
  for (size_t i = 0; i < 2; i++) x[i] = value_of(shape_broadcast(b, x[i].node, &s));
  host_step step = {.run = string_concat};
  c->outputs[0] = onnx_strings(c, onnx_host_step(c, step, x, 2, DT_I64, &s));
}

/** The largest element, or 0 of none. */
static const node *largest(builder *b, value x) {
  axis_list all = axes_from(0, x.node->rank);
  const node *most = x.node->rank ? node_reduce(b, OP_MAX, x.node, &all, false) : x.node;
  return build_maximum(b, value_of(most), build_int(b, 0)).node;
}

void onnx_StringSplit(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_string_input(c, 0);
  const onnx_attribute *delimiter = onnx_find_attribute(c, "delimiter", ONNX_ATTRIBUTE_STRING);
  arena *a = &c->m->host->arena;
  split_options o = {.most = onnx_int_attribute(c, "maxsplit", -1)};
  if (delimiter) {
    o.n = delimiter->s.n;
    o.delimiter = arena_copy(a, delimiter->s.at, o.n + 1);
  }
  host_step step = {.run = string_count_parts, .options = arena_copy(a, &o, sizeof o)};
  sizes s = sizes_of(x.node);
  value count = onnx_host_step(c, step, &x, 1, DT_I64, &s);
  const node *most = onnx_computed_size(c, largest(b, count), 0, ONNX_SIZE_MAX);
  sizes parts = sizes_insert(b, s, s.rank, most);
  step.run = string_split;
  c->outputs[0] = onnx_strings(c, onnx_host_step(c, step, &x, 1, DT_I64, &parts));
  c->outputs[1] = count;
}

static void close_normal(const void *options) {
  string_locale_close(((const normal_options *)options)->locale);
}

/** The numbers of stop words, as they are compared, in the arena of the steps. */
static void read_stops(onnx_call *c, normal_options *o) {
  size_t n;
  int64_t *stops = onnx_string_numbers(c, "stopwords", &n);
  for (size_t i = 0; i < n && !o->is_case_sensitive; i++) {
    stops[i] = string_change_case(c->m->host->strings, stops[i], CASE_LOWER, o->locale);
    if (stops[i] < 0) onnx_fail(c, TN_ERR_MEMORY, "out of memory");
  }
  if (n) o->stops = arena_copy(&c->m->host->arena, stops, n * sizeof *stops);
  o->n_stops = n;
}

void onnx_StringNormalizer(onnx_call *c) {
  static const char *const changes[] = {"NONE", "LOWER", "UPPER"};
  ir *g = onnx_builder(c)->ir;
  arena *a = &c->m->host->arena;
  value x = onnx_string_input(c, 0);
  bool is_row = x.node->rank == 2 && node_is_bits(x.node->dims[0], 1);
  if (x.node->rank != 1 && !is_row)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected C or 1xC", x.node->rank);
  normal_options *o = arena_calloc(a, 1, sizeof *o);
  o->change = (case_change)ENUM_ATTRIBUTE(c, "case_change_action", changes);
  o->is_case_sensitive = onnx_int_attribute(c, "is_case_sensitive", 0) != 0;
  sizes none = {0}, s = sizes_of(x.node);
  host_step step = {.run = string_count_kept, .destroy = close_normal, .options = o};
  value count = onnx_host_step(c, step, &x, 1, DT_I64, &none); /* closes the locale in the end */
  o->locale = string_locale_open(onnx_string_attribute(c, "locale", "en_US"));
  read_stops(c, o);
  const node *length = s.at[s.rank - 1];
  s.at[s.rank - 1] = ir_item(g, count.node, NULL, 1, ix_max(g, length, ix_const(g, 1)));
  step.run = string_normalise;
  step.destroy = NULL;
  c->outputs[0] = onnx_strings(c, onnx_host_step(c, step, &x, 1, DT_I64, &s));
}

/** A pattern of the model, which is to be closed. */
static regex *open_pattern(onnx_call *c, const char *text, size_t n, bool is_whole) {
  regex *r;
  if (regex_open(c->m->host->mem, text, n, is_whole, &r, c->m->b.diag) != TN_OK)
    diag_rethrow(c->m->b.diag);
  return r;
}

void onnx_RegexFullMatch(onnx_call *c) {
  value x = onnx_string_input(c, 0);
  const onnx_attribute *pattern = onnx_find_attribute(c, "pattern", ONNX_ATTRIBUTE_STRING);
  if (!pattern) onnx_fail(c, TN_ERR_FORMAT, "attribute 'pattern' is missing");
  sizes s = sizes_of(x.node);
  host_step step = {.run = regex_match_all, .destroy = regex_step_close};
  c->outputs[0] = onnx_host_step(c, step, &x, 1, DT_BOOL, &s);
  c->m->host->all.at[c->m->host->all.n - 1].options =
      open_pattern(c, pattern->s.at, pattern->s.n, true);
}

/* Tokenizer. */

/** Opens the patterns: of a step that exists, so that it closes those that are open if one fails.
    A separator that is empty has each code point as a token. */
static void open_token_patterns(onnx_call *c, token_options *o) {
  static const char point[] = "(?s).";
  const onnx_attribute *separators = onnx_find_attribute(c, "separators", ONNX_ATTRIBUTE_STRINGS),
                       *token = onnx_find_attribute(c, "tokenexp", ONNX_ATTRIBUTE_STRING);
  size_t n = separators ? separators->strings.n : 0;
  bool are_points = n == 1 && !separators->strings.at[0].n;
  if (!n && (!token || !token->s.n))
    onnx_fail(c, TN_ERR_FORMAT, "there are neither 'separators' nor a 'tokenexp'");
  if (are_points && o->least > 1)
    onnx_fail(c, TN_ERR_FORMAT, "tokens are single characters, and mincharnum is %lld",
              (long long)o->least);
  o->are_tokens = !n || are_points;
  o->patterns = arena_calloc(&c->m->host->arena, n + 1, sizeof *o->patterns);
  onnx_bytes all = are_points ? (onnx_bytes){point, sizeof point - 1}
                   : n        ? (onnx_bytes){0}
                              : token->s;
  for (size_t i = 0; i < (n ? n : 1); i++) {
    const onnx_bytes *text = o->are_tokens ? &all : &separators->strings.at[i];
    o->patterns[o->n] = open_pattern(c, text->at, text->n, false);
    o->n++;
  }
}

static token_options *token_options_of(onnx_call *c) {
  token_options *o = arena_calloc(&c->m->host->arena, 1, sizeof *o);
  const onnx_attribute *padding = onnx_find_attribute(c, "pad_value", ONNX_ATTRIBUTE_STRING);
  o->least = onnx_int_attribute(c, "mincharnum", 0);
  o->has_marks = onnx_int_attribute(c, "mark", 0) != 0;
  if (o->least < 1 || !padding)
    onnx_fail(c, TN_ERR_FORMAT, "mincharnum is %lld, or there is no pad_value",
              (long long)o->least);
  o->begin = importer_string_number(c->m, &(onnx_bytes){"\2", 1});
  o->end = importer_string_number(c->m, &(onnx_bytes){"\3", 1});
  o->padding = importer_string_number(c->m, &padding->s);
  return o;
}

void onnx_microsoft_Tokenizer(onnx_call *c) {
  value x = onnx_string_input(c, 0);
  if (x.node->rank != 1 && x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 1 or 2", x.node->rank);
  token_options *o = token_options_of(c);
  sizes none = {0}, s = sizes_of(x.node);
  host_step step = {.run = token_count_most, .destroy = token_close, .options = o};
  value most = onnx_host_step(c, step, &x, 1, DT_I64, &none); /* closes the patterns in the end */
  open_token_patterns(c, o);
  s = sizes_insert(onnx_builder(c), s, s.rank, onnx_computed_size(c, most.node, 0, ONNX_SIZE_MAX));
  step = (host_step){.run = token_split, .options = o};
  c->outputs[0] = onnx_strings(c, onnx_host_step(c, step, &x, 1, DT_I64, &s));
}
