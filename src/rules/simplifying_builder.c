/* Implements the simplifying constructors: each function fold_… tries one kind of simplification on
   an op that is about to be created; the first result wins, else the node is created as it is.
   Rules report the name of the simplification. */
#include "rules/simplifying_builder.h"

#include "ir/core/build.h"
#include "ir/core/scalar_eval.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"

const node *simple_constant(const node *n) {
  while (n->op == OP_SPLAT || n->op == OP_EXPAND || n->op == OP_RESHAPE) n = n->src[0];
  return n->op == OP_CONST && !n->rank ? n : NULL;
}

const node *simple_fill(ir *g, const node *like, dtype t, uint64_t bits) {
  const node *c = ir_const_bits(g, t, bits);
  if (like->rank) return ir_fill(g, c, like->rank, like->dims);
  if (like->lanes == 1) return c;
  return ir_make(
      g, &(node_spec){.op = OP_SPLAT, .dtype = t, .lanes = like->lanes, .src = &c, .n_src = 1});
}

/** An op that is about to be created. */
typedef struct pending_op {
  ir *g;
  op op;
  dtype type; /* of the result */
  const node *const *src;
  const node *constant[3]; /* of each source, or NULL */
  size_t n;
  const char *rule; /* name of the simplification that was applied last */
} pending_op;

static const node *make_constant(const pending_op *m, dtype t, uint64_t bits) {
  return simple_fill(m->g, m->src[0], t, bits);
}

static const node *fold_value(pending_op *m) {
  uint64_t args[3];
  bool overflow = false;
  if (op_is_transcendental(m->op)) return NULL;
  for (size_t i = 0; i < m->n; i++) {
    if (!m->constant[i]) return NULL;
    args[i] = (uint64_t)node_int(m->constant[i]);
  }
  dtype operand = (dtype)m->src[scalar_typed_operand(m->op)]->dtype;
  uint64_t bits = scalar_eval(m->op, operand, m->type, args, &overflow);
  m->rule = "fold-value";
  return overflow ? NULL : make_constant(m, m->type, bits);
}

static const node *fold_identity(pending_op *m) {
  uint64_t e;
  if (m->n != 2 || !op_right_identity(m->op, (dtype)m->src[0]->dtype, &e)) return NULL;
  m->rule = "fold-identity";
  if (m->constant[1] && node_is_bits(m->constant[1], e)) return m->src[0];
  if (op_is_commutative(m->op) && m->constant[0] && node_is_bits(m->constant[0], e))
    return m->src[1];
  return NULL;
}

static const node *fold_absorbing(pending_op *m) {
  uint64_t z;
  if (m->n != 2 || !op_absorbing(m->op, m->type, &z)) return NULL;
  m->rule = "fold-absorbing";
  for (size_t i = 0; i < 2; i++)
    if (m->constant[i] && node_is_bits(m->constant[i], z)) return m->src[i];
  return NULL;
}

static const node *fold_idempotent(pending_op *m) {
  m->rule = "fold-idempotent";
  bool same = m->n == 2 && m->src[0] == m->src[1];
  return same && (op_facts_of(m->op)->facts & FACT_IDEMPOTENT) ? m->src[0] : NULL;
}

static const node *fold_select(pending_op *m) {
  m->rule = "fold-choice";
  if (m->op == OP_WHERE && m->constant[0]) return m->src[node_int(m->constant[0]) ? 1 : 2];
  return m->op == OP_WHERE && m->src[1] == m->src[2] ? m->src[1] : NULL;
}

static const node *fold_same_type(pending_op *m) {
  m->rule = "fold-same-type";
  bool conversion = m->op == OP_CAST || m->op == OP_BITCAST;
  return conversion && m->src[0]->dtype == m->type ? m->src[0] : NULL;
}

/** Moves constants to the right. MAX and MIN of floats keep their order: it decides between ±0. */
static const node *fold_order(pending_op *m) {
  bool picks_zero = dtype_is_float((dtype)m->src[0]->dtype) && (m->op == OP_MAX || m->op == OP_MIN);
  m->rule = "fold-order";
  if (!op_is_commutative(m->op) || picks_zero || !m->constant[0] || m->constant[1]) return NULL;
  return ir_op2(m->g, m->op, m->src[1], m->src[0]);
}

/** The simplified op, or NULL. */
static const node *simplify(pending_op *m) {
  static const node *(*const folds[])(pending_op * m) = {
      fold_value,  fold_identity,  fold_absorbing, fold_idempotent,
      fold_select, fold_same_type, fold_order};
  for (size_t i = 0; i < m->n; i++) m->constant[i] = simple_constant(m->src[i]);
  for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
    const node *r = folds[i](m);
    if (r) return r;
  }
  return NULL;
}

static bool is_index(const node *n) { return n->dtype == DT_INDEX; }

static const node *index_op(ir *g, op o, const node *a, const node *b) {
  switch (o) {
  case OP_ADD: return ix_add(g, a, b);
  case OP_SUB: return ix_sub(g, a, b);
  case OP_MUL: return ix_mul(g, a, b);
  case OP_FLOORDIV: return ix_floordiv(g, a, b);
  case OP_MOD: return ix_mod(g, a, b);
  case OP_MIN: return ix_min(g, a, b);
  case OP_MAX: return ix_max(g, a, b);
  case OP_LT: return ix_lt(g, a, b);
  case OP_LE: return ix_le(g, a, b);
  default: return a == b ? ir_const_bits(g, DT_BOOL, o == OP_EQ) : ir_op2(g, o, a, b);
  }
}

const node *simple_op1(ir *g, op o, const node *a) {
  pending_op m = {.g = g, .op = o, .type = (dtype)a->dtype, .src = &a, .n = 1};
  const node *r = simplify(&m);
  return r ? r : ir_op1(g, o, a);
}

const node *simple_op2(ir *g, op o, const node *a, const node *b) {
  if (is_index(a)) return index_op(g, o, a, b);
  bool compares = op_facts_of(o)->type == TYPE_COMPARE;
  pending_op m = {.g = g,
                  .op = o,
                  .type = compares ? DT_BOOL : (dtype)a->dtype,
                  .src = (const node *const[]){a, b},
                  .n = 2};
  const node *r = simplify(&m);
  return r ? r : ir_op2(g, o, a, b);
}

const node *simple_op3(ir *g, op o, const node *a, const node *b, const node *c) {
  pending_op m = {
      .g = g, .op = o, .type = (dtype)b->dtype, .src = (const node *const[]){a, b, c}, .n = 3};
  const node *r = simplify(&m);
  return r ? r : ir_op3(g, o, a, b, c);
}

static const node *convert(ir *g, op o, const node *a, dtype to) {
  pending_op m = {.g = g, .op = o, .type = to, .src = &a, .n = 1};
  const node *r = simplify(&m);
  return r ? r : ir_node(g, o, to, &a, 1, NULL, 0);
}

const node *simple_cast(ir *g, const node *a, dtype to) { return convert(g, OP_CAST, a, to); }
const node *simple_bitcast(ir *g, const node *a, dtype to) { return convert(g, OP_BITCAST, a, to); }

const node *rules_fold_constants(rewriter *rw, const node *n) {
  if (!op_has_scalar_eval((op)n->op)) return NULL;
  if (is_index(n) && n->op != OP_CAST && n->op != OP_WHERE) return NULL;
  pending_op m = {
      .g = rw->ir, .op = (op)n->op, .type = (dtype)n->dtype, .src = n->src, .n = n->n_src};
  const node *r = simplify(&m);
  if (!r || r == n) return NULL;
  rw->fires++;
  if (rw->fired) rw->fired(rw->user, m.rule, n, r);
  return r;
}
