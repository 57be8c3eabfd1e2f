/* ONNX TfIdfVectorizer, of integers or numbers of strings: how often each n-gram of a pool is in a
   row, of elements next to each other or with as many between them as are skipped. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

enum { GRAMS_MAX = 1 << 20, GRAM_TERMS_MAX = 4096 };

typedef struct vectorizer {
  const onnx_ints *pool, *counts, *columns; /* of the result, one for each n-gram */
  int64_t least, most, skips;               /* sizes of n-grams that count; elements between */
  const node *length;                       /* of a row */
} vectorizer;

/** The first element in the pool of the n-grams of a size, and of the next one. */
static int64_t first_element(const vectorizer *v, size_t size) {
  return size <= v->counts->n ? v->counts->at[size - 1] : (int64_t)v->pool->n;
}

static int64_t grams_of_size(const vectorizer *v, size_t size) {
  return (first_element(v, size + 1) - first_element(v, size)) / (int64_t)size;
}

/** The pool; of strings their numbers. */
static const onnx_ints *read_pool(onnx_call *c) {
  onnx_ints *pool = arena_calloc(onnx_builder(c)->arena, 1, sizeof *pool);
  if (!onnx_is_string_input(c, 0)) return onnx_ints_attribute(c, "pool_int64s");
  pool->at = onnx_string_numbers(c, "pool_strings", &pool->n);
  return pool;
}

static vectorizer read_vectorizer(onnx_call *c, const node *length) {
  vectorizer v = {.pool = read_pool(c),
                  .counts = onnx_ints_attribute(c, "ngram_counts"),
                  .columns = onnx_ints_attribute(c, "ngram_indexes"),
                  .least = onnx_int_attribute(c, "min_gram_length", 1),
                  .most = onnx_int_attribute(c, "max_gram_length", 1),
                  .skips = onnx_int_attribute(c, "max_skip_count", 0),
                  .length = length};
  int64_t grams = 0;
  if (!v.pool || !v.pool->n || v.pool->n > GRAMS_MAX || v.columns->n > GRAMS_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the pool is empty, or has more than %d elements", GRAMS_MAX);
  if (v.least < 1 || v.most < v.least || v.skips < 0 || v.most > GRAM_TERMS_MAX ||
      v.skips > GRAM_TERMS_MAX || v.most * (v.skips + 1) > GRAM_TERMS_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "n-grams of %lld to %lld elements with %lld skipped",
              (long long)v.least, (long long)v.most, (long long)v.skips);
  for (size_t size = 1; size <= v.counts->n; size++) {
    if (first_element(&v, size) < 0 || first_element(&v, size) > first_element(&v, size + 1))
      onnx_fail(c, TN_ERR_FORMAT, "ngram_counts are not places in the pool, one after the other");
    grams += grams_of_size(&v, size);
  }
  if (grams > (int64_t)v.columns->n)
    onnx_fail(c, TN_ERR_FORMAT, "there are %lld n-grams, but %zu ngram_indexes", (long long)grams,
              v.columns->n);
  return v;
}

/** Element `place` of each n-gram of a size: (1, grams). */
static value gram_elements(onnx_call *c, const vectorizer *v, size_t size, size_t place) {
  size_t n = (size_t)grams_of_size(v, size);
  int64_t *all = arena_alloc(onnx_builder(c)->arena, n * sizeof *all);
  for (size_t i = 0; i < n; i++)
    all[i] = v->pool->at[(size_t)first_element(v, size) + i * size + place];
  return onnx_computed_tensor(c, DT_I64, all, 1, n);
}

/** The rows with zeros behind them, so that an n-gram begins at each element. */
static value padded_rows(builder *b, value x, int64_t more) {
  const node *none = ix_const(b->ir, 0);
  if (!more) return x;
  return value_of(shape_pad(b, x.node, 1, none, ix_const(b->ir, more), ir_const(b->ir, DT_I64, 0)));
}

/** Whether an n-gram that begins at an element ends in the row: (length, 1). */
static value ends_in_row(builder *b, const vectorizer *v, int64_t more) {
  const node *first = ix_const(b->ir, more);
  value end = build_arange(b, first, ix_add(b->ir, first, v->length), 1, DT_I64);
  value is_in = build_lt(b, end, value_of(ex_size(b, v->length, DT_I64)));
  return build_unsqueeze(b, is_in, (tn_axes){.count = 1, .axis = {1}});
}

/** How often each n-gram of a size is in the rows, its elements `step` apart: (rows, grams). */
static value count_grams(onnx_call *c, const vectorizer *v, value x, size_t size, int64_t step) {
  builder *b = onnx_builder(c);
  int64_t more = ((int64_t)size - 1) * step;
  value rows = padded_rows(b, x, more), is_there = more ? ends_in_row(b, v, more) : (value){0};
  for (size_t k = 0; k < size; k++) {
    const node *first = ix_const(b->ir, (int64_t)k * step);
    value part = build_slice(b, rows, 1, first, ix_add(b->ir, first, v->length), 1);
    part = build_unsqueeze(b, part, (tn_axes){.count = 1, .axis = {2}});
    value same = build_eq(b, part, gram_elements(c, v, size, k));
    is_there = is_there.node ? build_logical_and(b, is_there, same) : same;
  }
  return build_sum(b, build_cast(b, is_there, DT_F32), (tn_axes){.count = 1, .axis = {1}}, false);
}

/** The counts of the n-grams of a size, zeros for a size that is not asked for: (rows, grams). */
static value count_size(onnx_call *c, const vectorizer *v, value x, size_t size) {
  builder *b = onnx_builder(c);
  sizes s = {2, {x.node->dims[0], ix_const(b->ir, grams_of_size(v, size))}};
  value sum = build_full(b, &s, DT_F32, 0);
  if ((int64_t)size < v->least || (int64_t)size > v->most) return sum;
  for (int64_t step = 1; step <= (size == 1 ? 1 : v->skips + 1); step++)
    if (v->length->hi > ((int64_t)size - 1) * step)
      sum = build_add(b, sum, count_grams(c, v, x, size, step));
  return sum;
}

/** The n-gram whose count each column of the result has; `n` for none. Raises if two n-grams have
    one column. */
static int64_t *grams_of_columns(onnx_call *c, const vectorizer *v, size_t n, size_t *columns) {
  int64_t most = 0;
  for (size_t i = 0; i < v->columns->n; i++) {
    if (v->columns->at[i] < 0 || v->columns->at[i] > GRAMS_MAX)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "ngram_indexes[%zu] is %lld, not in 0 … %d", i,
                (long long)v->columns->at[i], GRAMS_MAX);
    if (v->columns->at[i] > most) most = v->columns->at[i];
  }
  *columns = (size_t)most + 1;
  int64_t *gram = arena_alloc(onnx_builder(c)->arena, *columns * sizeof *gram);
  for (size_t i = 0; i < *columns; i++) gram[i] = (int64_t)n;
  for (size_t i = 0; i < n; i++) {
    int64_t *at = &gram[v->columns->at[i]];
    if (*at != (int64_t)n)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "two n-grams with one index are not supported");
    *at = (int64_t)i;
  }
  return gram;
}

/** Raises if an n-gram is in the pool twice, of which only one would count. */
static void check_grams_differ(onnx_call *c, const vectorizer *v) {
  arena *a = onnx_builder(c)->arena;
  string_map seen = {0};
  for (size_t size = 1; size <= v->counts->n; size++)
    for (int64_t i = 0; i < grams_of_size(v, size); i++) {
      str key = str_new(a);
      for (size_t k = 0; k < size; k++)
        str_addf(&key, " %lld",
                 (long long)v->pool->at[(size_t)first_element(v, size) + (size_t)i * size + k]);
      if (string_map_get(&seen, str_text(&key)))
        onnx_fail(c, TN_ERR_UNSUPPORTED, "an n-gram is in the pool twice");
      string_map_set(a, &seen, str_text(&key), c);
    }
}

void onnx_TfIdfVectorizer(onnx_call *c) {
  static const char *const modes[] = {"TF", "IDF", "TFIDF"};
  builder *b = onnx_builder(c);
  value x = onnx_is_string_input(c, 0) ? onnx_string_input(c, 0) : onnx_input(c, 0);
  size_t mode = ENUM_ATTRIBUTE(c, "mode", modes), n = 0, columns;
  bool is_vector = x.node->rank == 1;
  if (x.node->rank != 1 && x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 1 or 2", x.node->rank);
  vectorizer v = read_vectorizer(c, x.node->dims[x.node->rank - 1u]);
  check_grams_differ(c, &v);
  x = build_cast(b, x, DT_I64);
  if (is_vector) x = build_unsqueeze(b, x, (tn_axes){.count = 1});
  value *counts = arena_alloc(b->arena, (v.counts->n + 1) * sizeof *counts);
  for (size_t size = 1; size <= v.counts->n; size++) {
    counts[size - 1] = count_size(c, &v, x, size);
    n += (size_t)grams_of_size(&v, size);
  }
  sizes none = {2, {x.node->dims[0], ix_const(b->ir, 1)}};
  counts[v.counts->n] = build_full(b, &none, DT_F32, 0);
  int64_t *gram = grams_of_columns(c, &v, n, &columns);
  value y = build_concat(b, counts, v.counts->n, 1), weights = onnx_ml_floats(c, "weights");
  if (mode && weights.node && !node_is_bits(weights.node->dims[0], n))
    onnx_fail(c, TN_ERR_FORMAT, "weights has %lld entries for %zu n-grams",
              (long long)node_int(weights.node->dims[0]), n);
  if (mode == 1) y = build_cast(b, build_gt(b, y, build_num(b, 0)), DT_F32);
  if (mode && weights.node) y = build_mul(b, y, weights);
  y = build_concat(b, (value[]){y, counts[v.counts->n]}, 2, 1);
  y = build_take(b, y, onnx_computed_tensor(c, DT_I64, gram, columns, 0), 1);
  c->outputs[0] = is_vector ? build_squeeze(b, y, (tn_axes){.count = 1}) : y;
}
