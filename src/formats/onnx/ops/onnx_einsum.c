/* ONNX Einsum: parses the equation and contracts operands from left to right, two at a time. A
   label is summed as soon as neither a later operand nor the result has it. Fusion turns each
   product and sum into a contraction. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

/** A tensor and the label of each axis: a letter, or, for axes of an ellipsis, ELLIPSIS + their
    distance from the end. */
enum { ELLIPSIS = 1 };
typedef struct term {
  value v;
  size_t n;
  unsigned char label[SIZES_MAX_RANK];
} term;

/** Sets of labels. */
typedef struct labels {
  bool has[256];
} labels;

static size_t find_label(const term *t, unsigned char label) {
  size_t i = 0;
  while (i < t->n && t->label[i] != label) i++;
  return i;
}

static void add_label(onnx_call *c, term *t, unsigned char label) {
  if (t->n == SIZES_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "a term has more than %d axes", SIZES_MAX_RANK);
  t->label[t->n++] = label;
}

/** Parses the labels of a term up to a comma, an arrow or the end, and returns the rest of the
   text. An ellipsis stands for `ellipsis` axes. */
static const char *parse_term(onnx_call *c, const char *text, size_t ellipsis, term *t) {
  for (; *text && *text != ',' && *text != '-'; text++) {
    bool is_letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
    if (is_letter) {
      add_label(c, t, (unsigned char)*text);
    } else if (!strncmp(text, "...", 3)) {
      for (size_t i = ellipsis; i-- > 0;) add_label(c, t, (unsigned char)(ELLIPSIS + i));
      text += 2;
    } else if (*text != ' ') {
      onnx_fail(c, TN_ERR_FORMAT, "unexpected character '%c' in the equation", *text);
    }
  }
  return text;
}

/** The number of axes that the ellipsis of a term stands for. */
static size_t ellipsis_rank(onnx_call *c, const char *text, size_t rank) {
  size_t letters = 0;
  bool has_ellipsis = false;
  for (; *text && *text != ',' && *text != '-'; text++) {
    has_ellipsis = has_ellipsis || *text == '.';
    letters += *text != '.' && *text != ' ';
  }
  if (has_ellipsis ? letters > rank : letters != rank)
    onnx_fail(c, TN_ERR_SHAPE, "a term has %zu letters, but its operand has %zu dimensions",
              letters, rank);
  return rank - letters;
}

/** Merges axes that share a label: sums over one of them with product but the diagonal set to 0. */
static void merge_diagonals(onnx_call *c, term *t) {
  builder *b = onnx_builder(c);
  for (size_t i = 0; i < t->n; i++)
    for (size_t k = t->n - 1; k > i; k--) {
      if (t->label[k] != t->label[i]) continue;
      const node *n = t->v.node;
      sizes s = sizes_of(n);
      if (s.at[i] != s.at[k]) sizes_refuse_mismatch(b, &s, 1, s.at[i], s.at[k]);
      const node *is_diagonal =
          ex_binary(b, OP_EQ, ex_iota(b, DT_I64, &s, i), ex_iota(b, DT_I64, &s, k));
      const node *diagonal = ex_where(b, is_diagonal, n, ex_int(b, n, 0));
      axis_list reduced = axes_from(k, k + 1);
      t->v = value_of(node_reduce(b, OP_ADD, diagonal, &reduced, false));
      memmove(t->label + k, t->label + k + 1, --t->n - k);
    }
}

/** Sums over the axes whose labels are not needed later. */
static void sum_unneeded(builder *b, term *t, const labels *needed) {
  for (size_t i = t->n; i-- > 0;) {
    if (needed->has[t->label[i]]) continue;
    axis_list reduced = axes_from(i, i + 1);
    t->v = value_of(node_reduce(b, OP_ADD, t->v.node, &reduced, false));
    memmove(t->label + i, t->label + i + 1, --t->n - i);
  }
}

/** Permutes the axes to the order of another term's labels; missing axes get size 1. */
static value align_axes(builder *b, const term *t, const term *order) {
  int64_t axes[SIZES_MAX_RANK];
  sizes s = {.rank = order->n};
  size_t n = 0;
  for (size_t i = 0; i < order->n; i++) {
    size_t axis = find_label(t, order->label[i]);
    s.at[i] = axis < t->n ? t->v.node->dims[axis] : ix_const(b->ir, 1);
    if (axis < t->n) axes[n++] = (int64_t)axis;
  }
  return value_of(shape_reshape(b, shape_permute(b, t->v.node, axes), &s));
}

/** The product of two terms, with the labels of both. */
static term multiply_terms(onnx_call *c, const term *x, const term *y) {
  builder *b = onnx_builder(c);
  term p = *x;
  for (size_t i = 0; i < y->n; i++)
    if (find_label(x, y->label[i]) == x->n) add_label(c, &p, y->label[i]);
  p.v = build_mul(b, align_axes(b, x, &p), align_axes(b, y, &p));
  return p;
}

/** Result labels of an equation without an arrow: the ellipsis, then the letters that occur once,
    sorted. */
static void implicit_result(onnx_call *c, const term *in, size_t n, size_t ellipsis, term *out) {
  size_t count[256] = {0};
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < in[i].n; k++) count[in[i].label[k]]++;
  for (size_t i = ellipsis; i-- > 0;) add_label(c, out, (unsigned char)(ELLIPSIS + i));
  for (int l = 'A'; l <= 'z'; l++)
    if (count[l] == 1) add_label(c, out, (unsigned char)l);
}

static void check_result(onnx_call *c, const term *in, size_t n, const term *out) {
  for (size_t i = 0; i < out->n; i++) {
    bool is_found = false;
    for (size_t k = 0; k < n; k++)
      is_found = is_found || find_label(&in[k], out->label[i]) < in[k].n;
    if (!is_found) onnx_fail(c, TN_ERR_FORMAT, "the result has a letter that no operand has");
    if (find_label(out, out->label[i]) < i)
      onnx_fail(c, TN_ERR_FORMAT, "the result has '%c' twice", out->label[i]);
  }
}

/** Parses the equation: the labels of the operands and of the result. */
static void parse_equation(onnx_call *c, term *in, size_t n, term *out) {
  builder *b = onnx_builder(c);
  const char *text = onnx_string_attribute(c, "equation", "");
  size_t longest = 0; /* axes of the longest ellipsis, which the result's stands for */
  for (size_t i = 0; i < n; i++) {
    value x = onnx_input(c, i);
    size_t ellipsis = ellipsis_rank(c, text, x.node->rank);
    if (ellipsis > longest) longest = ellipsis;
    if (ellipsis > 32 - ELLIPSIS)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "an ellipsis stands for %zu axes; at most %d are supported",
                ellipsis, 32 - ELLIPSIS);
    in[i] = (term){.v = build_cast(b, x, accumulation_type((dtype)x.node->dtype))};
    text = parse_term(c, text, ellipsis, &in[i]);
    if (i + 1 < n && *text++ != ',')
      onnx_fail(c, TN_ERR_FORMAT, "the equation has no term for operand %zu", i + 1);
  }
  if (*text && strncmp(text, "->", 2))
    onnx_fail(c, TN_ERR_FORMAT, "expected \"->\" or the end of the equation, found '%.20s'", text);
  if (!*text)
    implicit_result(c, in, n, longest, out);
  else if (*parse_term(c, text + 2, longest, out))
    onnx_fail(c, TN_ERR_FORMAT, "unexpected text after the result of the equation");
  check_result(c, in, n, out);
}

/** The labels of the result and of the operands from `first` on. */
static labels labels_from(const term *in, size_t first, size_t n, const term *out) {
  labels l = {{false}};
  for (size_t k = 0; k < out->n; k++) l.has[out->label[k]] = true;
  for (size_t i = first; i < n; i++)
    for (size_t k = 0; k < in[i].n; k++) l.has[in[i].label[k]] = true;
  return l;
}

void onnx_Einsum(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  check_operand_type(b, RULE_NUMBER, (dtype)onnx_input(c, 0).node->dtype);
  size_t n = c->n_inputs;
  term *in = arena_calloc(b->arena, n, sizeof *in), out = {.n = 0}, product;
  parse_equation(c, in, n, &out);
  for (size_t i = 0; i < n; i++) merge_diagonals(c, &in[i]);
  for (size_t i = 0; i < n; i++) {
    labels later = labels_from(in, i + 1, n, &out), needed = later;
    for (size_t k = 0; i && k < product.n; k++) needed.has[product.label[k]] = true;
    sum_unneeded(b, &in[i], &needed);
    product = i ? multiply_terms(c, &product, &in[i]) : in[0];
    sum_unneeded(b, &product, &later);
  }
  value y = align_axes(b, &product, &out);
  c->outputs[0] = build_cast(b, y, (dtype)onnx_input(c, 0).node->dtype);
}
