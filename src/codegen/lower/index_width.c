/* Chooses integer types for index arithmetic: 32 bits where the target prefers them and every bound
   allows it, else 64. AFFINE nodes (sums of scaled indices) become products and sums. Floor
   division becomes C's division where the dividend is not negative, else C's with a correction. */
#include "codegen/codegen.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"

#include "base/map.h"

typedef struct widening {
  ir *g;
  arena *a;
  dtype type; /* of indices from now on */
  map image;  /* node → the node over such integers */
} widening;

static const node *image(widening *w, const node *n) { return map_get(&w->image, n); }

static const node *number(widening *w, int64_t value) { return ir_const_int(w->g, w->type, value); }

static const node *widen_affine(widening *w, const node *n) {
  const node *sum = NULL;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *t = image(w, n->src[i]);
    if (n->ints[i + 1] != 1) t = ir_op2(w->g, OP_MUL, t, number(w, n->ints[i + 1]));
    sum = sum ? ir_op2(w->g, OP_ADD, sum, t) : t;
  }
  if (!sum) return number(w, n->ints[0]);
  return n->ints[0] ? ir_op2(w->g, OP_ADD, sum, number(w, n->ints[0])) : sum;
}

/** True if an index is at least 1; a minimum is where both sides are. Its bounds may be wider: the
    number of workers is a minimum of sums of which a proof is needed. */
static bool is_positive(ir *g, const node *n) {
  for (; n->op == OP_MIN && n->lo < 1; n = n->src[1])
    if (!ix_prove_le(g, ix_const(g, 1), n->src[0])) return false;
  return ix_prove_le(g, ix_const(g, 1), n);
}

/** Floor division and modulus by a positive divisor, from C's. */
static const node *widen_division(widening *w, const node *n) {
  const node *a = image(w, n->src[0]), *b = image(w, n->src[1]);
  if (!is_positive(w->g, n->src[1]))
    diag_raise(ir_diag(w->g), TN_ERR_INTERNAL,
               "an index is divided by a value that may not be positive");
  bool mod = n->op == OP_MOD;
  if (n->src[0]->lo >= 0) return ir_op2(w->g, mod ? OP_CMOD : OP_CDIV, a, b);
  const node *rest = ir_op2(w->g, OP_CMOD, a, b);
  const node *below = ir_op2(w->g, OP_LT, rest, number(w, 0));
  if (mod) return ir_op3(w->g, OP_WHERE, below, ir_op2(w->g, OP_ADD, rest, b), rest);
  const node *q = ir_op2(w->g, OP_CDIV, a, b);
  return ir_op3(w->g, OP_WHERE, below, ir_op2(w->g, OP_SUB, q, number(w, 1)), q);
}

static const node *widen(widening *w, const node *n) {
  bool is_index = n->dtype == DT_INDEX;
  if (is_index && n->op == OP_AFFINE) return widen_affine(w, n);
  if (is_index && (n->op == OP_FLOORDIV || n->op == OP_MOD)) return widen_division(w, n);
  const node **src = arena_alloc(w->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = image(w, n->src[i]);
  if (n->op == OP_CAST && src[0]->dtype == (is_index ? w->type : n->dtype)) return src[0];
  node_spec s = node_spec_with_sources(n, src, n->n_src);
  if (is_index) s.dtype = w->type;
  return ir_make(w->g, &s);
}

const node *codegen_index_width(ir *g, const node *sink, const target *t) {
  widening w = {.g = g, .a = ir_arena(g)};
  node_list order = topo_sort(w.a, &sink, 1, NULL, NULL);
  bool fits = t->index32; /* in 32 bits, with room for sums */
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->dtype == DT_INDEX) fits &= n->lo > INT32_MIN / 2 && n->hi < INT32_MAX / 2;
  }
  w.type = fits ? DT_I32 : DT_I64;
  for (size_t i = 0; i < order.n; i++)
    map_set(w.a, &w.image, order.at[i], (void *)widen(&w, order.at[i]));
  return image(&w, sink);
}
