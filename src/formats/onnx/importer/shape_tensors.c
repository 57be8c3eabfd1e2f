/* Shape arithmetic. A model computes sizes with ordinary operators (Shape, Gather, Concat, Mul …),
   and these are imported as ordinary tensors. Where an operator needs such a tensor's elements,
   each is asked for at a constant position: the range sweep turns that into one scalar expression,
   rules fold it, and what is left is arithmetic on sizes, or depends on data. So no operator needs
   a second, symbolic implementation. */
#include "formats/onnx/importer/shape_tensors.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/element_expression.h"
#include "ir/transform/substitute.h"
#include "rules/rule_sets.h"
#include "tensor/ops/op_helpers.h"

enum { MOST_ELEMENTS = 256, MOST_REDUCED = 32 };

typedef struct asking {
  import *m;
  value v;
  ir *g;          /* scratch, for one question */
  node_list leaf; /* BUFFERs of the import, by PARAM slot */
  const node **found;
  size_t n;
  bool known;
  bool constant; /* asked for in their own type, and not as index nodes */
} asking;

/** A leaf whose elements are looked up, or not known. */
static const node *param(asking *q, const node *leaf, const node *const dims[], size_t rank) {
  int64_t slot = (int64_t)q->leaf.n;
  vec_push(ir_arena(q->g), &q->leaf, leaf);
  return ir_node(q->g, OP_PARAM, (dtype)leaf->dtype, dims, rank, &slot, 1);
}

/** x with one axis reduced to size 1, each element of it written out. */
static const node *written_out(builder *b, op o, const node *x, size_t axis) {
  const node *one = ix_const(b->ir, 1), *sum = NULL;
  for (int64_t i = 0; i < node_int(x->dims[axis]); i++) {
    const node *part = shape_slice(b, x, axis, ix_const(b->ir, i), one, 1);
    sum = sum ? ex_binary(b, o, sum, part) : part;
  }
  return sum;
}

/** A reduction of as many elements as shapes have; of a larger one nothing is known. */
static const node *reduction(asking *q, const node *n, const node *x) {
  builder b = q->m->b;
  sizes s = {0};
  uint32_t reduced = 0;
  bool few = true;
  b.ir = q->g;
  for (uint32_t i = 1; i < n->n_int; i++) {
    const node *size = x->dims[n->ints[i]];
    reduced |= UINT32_C(1) << n->ints[i];
    few = few && node_is_const(size) && node_int(size) > 0 && node_int(size) <= MOST_REDUCED;
  }
  for (size_t i = 0; i < x->rank; i++)
    if (!(reduced >> i & 1)) s.at[s.rank++] = x->dims[i];
  if (!few) return param(q, n, s.at, s.rank);
  for (size_t i = 0; i < x->rank; i++)
    if (reduced >> i & 1) x = written_out(&b, (op)n->ints[0], x, i);
  return shape_reshape(&b, x, &s);
}

static const node *copied(void *user, const node *n, const node *const src[]) {
  asking *q = user;
  if (n->op == OP_REDUCE) return reduction(q, n, src[0]);
  if (n->op == OP_CARRY || n->op == OP_RESULT) return param(q, n, src + 1, n->n_src - 1);
  return n->op == OP_BUFFER ? param(q, n, src, n->n_src) : NULL;
}

static const onnx_tensor *weight_of(const asking *q, const node *param) {
  return map_get(&q->m->weights, q->leaf.at[param->ints[0]]);
}

/** INDEX(PARAM of a weight; numbers) → the number that is there. */
static const node *weight_element(const asking *q, const node *n) {
  const onnx_tensor *t = weight_of(q, n->src[0]);
  size_t at = 0;
  if (!t || !t->data) return NULL;
  for (size_t i = 0; i < t->dims.n; i++) {
    const node *c = n->src[1 + i];
    if (c->op != OP_CONST || node_int(c) < 0 || node_int(c) >= t->dims.at[i]) return NULL;
    at = at * (size_t)t->dims.at[i] + (size_t)node_int(c);
  }
  dtype type = (dtype)n->dtype;
  const char *data = t->data;
  return ir_const_bits(q->g, type, scalar_load(type, data + at * dtype_bytes(type)));
}

static const node *with_weights(asking *q, const node *e) {
  arena *a = ir_arena(q->g);
  node_list order = topo_sort(a, &e, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_PARAM) continue;
    const node *c = weight_element(q, n);
    if (c) map_set(a, &with, n, (void *)c);
  }
  return subst(q->g, e, &with);
}

/* Integer data arithmetic as index arithmetic, node by node: conditions that bounds decide are
   constants. NULL where a value depends on data. */

static const node *decided(ir *g, bool is_true) { return ir_const_bits(g, DT_BOOL, is_true); }

static const node *if_decided(const node *n) { return n->op == OP_CONST ? n : NULL; }

/** True if two integers are equal, where it is the same for all sizes. */
static const node *equal_form(ir *g, const node *x, const node *y, bool wanted) {
  const node *below = ix_lt(g, x, y), *above = ix_lt(g, y, x);
  if (x == y) return decided(g, wanted);
  return node_is_bits(below, 1) || node_is_bits(above, 1) ? decided(g, !wanted) : NULL;
}

static const node *condition_form(ir *g, const node *n, const node *x, const node *y) {
  bool of_bools = n->n_src && n->src[0]->dtype == DT_BOOL;
  bool known_x = x && x->op == OP_CONST && node_int(x),
       known_y = y && y->op == OP_CONST && node_int(y);
  if (n->op == OP_AND && ((x && !known_x) || (y && !known_y))) return decided(g, false);
  if (n->op == OP_OR && (known_x || known_y)) return decided(g, true);
  if (!x || (n->n_src > 1 && !y)) return NULL;
  switch (n->op) {
  case OP_AND: return decided(g, known_x && known_y);
  case OP_OR: return decided(g, known_x || known_y);
  case OP_NOT: return decided(g, !known_x);
  case OP_NE: return of_bools ? decided(g, known_x != known_y) : equal_form(g, x, y, false);
  case OP_EQ: return of_bools ? decided(g, known_x == known_y) : equal_form(g, x, y, true);
  case OP_LT: return of_bools ? NULL : if_decided(ix_lt(g, x, y));
  case OP_LE: return of_bools ? NULL : if_decided(ix_le(g, x, y));
  default: return NULL;
  }
}

/** 2 to the power of a constant; NULL if it is none that a size can be. */
static const node *power_of_two(ir *g, const node *k) {
  bool fits = k->op == OP_CONST && node_int(k) >= 0 && node_int(k) < 62;
  return fits ? ix_const(g, (int64_t)1 << node_int(k)) : NULL;
}

/** Shifts and masks, which is what rules make of powers of two. */
static const node *bits_form(ir *g, op o, const node *x, const node *y) {
  if (o == OP_AND) {
    bool is_mask = y->op == OP_CONST && node_int(y) >= 0 && node_int(y) < INT64_MAX &&
                   !(node_int(y) & (node_int(y) + 1));
    return is_mask ? ix_mod(g, x, ix_add_const(g, y, 1)) : NULL;
  }
  const node *power = power_of_two(g, y);
  if (!power) return NULL;
  return o == OP_SHL ? ix_mul(g, x, power) : ix_floordiv(g, x, power);
}

static const node *floored(ir *g, const node *x, const node *y) {
  if (y->hi < 0) return ix_floordiv(g, ix_scale(g, x, -1), ix_scale(g, y, -1));
  return y->lo > 0 ? ix_floordiv(g, x, y) : NULL;
}

static const node *any_form(ir *g, const node *n, const map *forms) {
  const node *s[3] = {NULL, NULL, NULL};
  for (uint32_t i = 0; i < n->n_src && i < 3; i++) s[i] = map_get(forms, n->src[i]);
  if (n->dtype == DT_BOOL) return n->op == OP_CONST ? n : condition_form(g, n, s[0], s[1]);
  if (n->op == OP_CONST && dtype_is_int((dtype)n->dtype)) return ix_const(g, node_int(n));
  if (n->dtype == DT_INDEX) return n;
  if (n->op == OP_WHERE) return s[0] ? s[node_int(s[0]) ? 1 : 2] : NULL;
  for (uint32_t i = 0; i < n->n_src && i < 3; i++)
    if (!s[i] || n->src[i]->dtype == DT_BOOL) return NULL;
  bool may_wrap = dtype_bytes((dtype)n->dtype) < 4; /* no type for sizes */
  if (!dtype_is_int((dtype)n->dtype) || may_wrap) return NULL;
  switch (n->op) {
  case OP_CAST: return s[0];
  case OP_NEG: return ix_scale(g, s[0], -1);
  case OP_ADD: return ix_add(g, s[0], s[1]);
  case OP_SUB: return ix_sub(g, s[0], s[1]);
  case OP_MUL: return ix_mul(g, s[0], s[1]);
  case OP_MIN: return ix_min(g, s[0], s[1]);
  case OP_MAX: return ix_max(g, s[0], s[1]);
  case OP_FLOORDIV: return floored(g, s[0], s[1]);
  case OP_MOD: return s[1]->lo > 0 ? ix_mod(g, s[0], s[1]) : NULL;
  case OP_SHL:
  case OP_SHR:
  case OP_AND: return bits_form(g, n->op, s[0], s[1]);
  default: return NULL;
  }
}

/** Types without a sign wrap below 0, which index arithmetic does not. */
static const node *index_form(ir *g, const node *n, const map *forms) {
  const node *form = any_form(g, n, forms);
  bool has_sign = !dtype_is_int((dtype)n->dtype) || dtype_is_signed((dtype)n->dtype);
  return !form || has_sign || ix_prove_nonnegative(g, form) ? form : NULL;
}

static const node *as_index(ir *g, const node *e) {
  node_list order = topo_sort(ir_arena(g), &e, 1, NULL, NULL);
  map forms = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *form = index_form(g, n, &forms);
    if (form) map_set(ir_arena(g), &forms, n, (void *)form);
  }
  return map_get(&forms, e);
}

static const node *element(asking *q, const node *value, const node *at) {
  static const map nothing_is_cut = {0};
  const node *e = value->op == OP_PARAM
                      ? index_make(q->g, (dtype)value->dtype, value, 0, value->rank, &at)
                      : element_expression(q->g, &nothing_is_cut, value, value->rank, &at);
  rewriter rw = {.ir = q->g, .math = MATH_EXACT};
  e = with_weights(q, e);
  rewrite(&rw, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, &e, 1);
  e = with_weights(q, e); /* positions that became numbers only now */
  rewrite(&rw, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, &e, 1);
  return !q->constant ? as_index(q->g, e) : e->op == OP_CONST ? e : NULL;
}

static void ask(void *arg) {
  asking *q = arg;
  const node *x;
  ir_copy(q->g, ir_arena(q->g), &q->v.node, 1, copied, q, &x);
  q->n = 1;
  if (x->rank) {
    if (!node_is_const(x->dims[0]) || node_int(x->dims[0]) > MOST_ELEMENTS) return;
    q->n = (size_t)node_int(x->dims[0]);
  }
  q->found = arena_alloc(q->m->b.arena, (q->n + 1) * sizeof *q->found);
  for (size_t i = 0; i < q->n; i++) {
    const node *e = element(q, x, ix_const(q->g, (int64_t)i));
    if (!e) return;
    ir_copy(q->m->b.ir, ir_arena(q->g), &e, 1, NULL, NULL, &q->found[i]);
  }
  q->known = true;
}

static const node *const *elements(import *m, value v, bool constant, size_t *n) {
  asking q = {.m = m, .v = v, .constant = constant};
  if (v.node->rank > 1 || !(constant || dtype_is_int((dtype)v.node->dtype))) return NULL;
  q.g = ir_new(ir_mem(m->b.ir), m->b.diag, false);
  if (!q.g) diag_raise(m->b.diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(m->b.diag, ask, &q);
  ir_free(q.g);
  if (s != TN_OK) diag_rethrow(m->b.diag);
  *n = q.n;
  return q.known ? q.found : NULL;
}

const node *const *elements_of(import *m, value v, size_t *n) { return elements(m, v, false, n); }

const node *const *constant_tensor_elements(import *m, value v, size_t *n) {
  return elements(m, v, true, n);
}
