/* Shapes as lists of index nodes, and their text for messages: expressions in infix notation, cut
   short at TEXT_DEPTH levels and some TEXT_BYTES bytes. */
#include "tensor/context/shape.h"

#include "base/str.h"
#include "ir/core/affine.h"
#include "ir/core/var_names.h"

_Static_assert((int)SIZES_MAX_RANK == IR_MAX_RANK, "sizes hold the shape of every node");

sizes sizes_of(const node *x) {
  sizes s = {.rank = x->rank};
  for (size_t i = 0; i < x->rank; i++) s.at[i] = x->dims[i];
  return s;
}

enum { TEXT_DEPTH = 6, TEXT_BYTES = 200 };

static void add_text(str *s, const node *n, int depth, bool is_operand);

static void add_infix(str *s, const char *sign, const node *n, int depth) {
  add_text(s, n->src[0], depth, true);
  str_add(s, sign);
  add_text(s, n->src[1], depth, true);
}

static void add_call(str *s, const char *name, const node *n, int depth) {
  str_addf(s, "%s(", name);
  add_text(s, n->src[0], depth, false);
  str_add(s, ", ");
  add_text(s, n->src[1], depth, false);
  str_add(s, ")");
}

static void add_sum(str *s, const node *n, int depth) {
  for (size_t i = 0; i < ix_terms(n); i++) {
    const node *atom = ix_atom(n, i);
    int64_t c = ix_coefficient_at(n, i);
    str_add(s, c < 0 ? "-" : i ? "+" : "");
    if (c != 1 && c != -1)
      str_addf(s, "%llu*", c < 0 ? 0 - (unsigned long long)c : (unsigned long long)c);
    add_text(s, atom, depth, c != 1 && atom->op != OP_MUL);
  }
  if (ix_offset(n)) str_addf(s, "%+lld", (long long)ix_offset(n));
}

static void add_text(str *s, const node *n, int depth, bool is_operand) {
  bool is_loose = n->op == OP_AFFINE || n->op == OP_MUL || n->op == OP_FLOORDIV || n->op == OP_MOD;
  if (!depth || s->n > TEXT_BYTES) {
    str_add(s, "…");
    return;
  }
  if (is_operand && is_loose) str_add(s, "(");
  switch (n->op) {
  case OP_CONST: str_addf(s, "%lld", (long long)node_int(n)); break;
  case OP_VAR: str_addf(s, "%.100s", var_user_name(n->text)); break;
  case OP_AFFINE: add_sum(s, n, depth - 1); break;
  case OP_MUL: add_infix(s, "*", n, depth - 1); break;
  case OP_FLOORDIV: add_infix(s, "/", n, depth - 1); break;
  case OP_MOD: add_infix(s, "%", n, depth - 1); break;
  case OP_MIN: add_call(s, "min", n, depth - 1); break;
  case OP_MAX: add_call(s, "max", n, depth - 1); break;
  default: str_add(s, "…");
  }
  if (is_operand && is_loose) str_add(s, ")");
}

const char *size_text(builder *b, const node *n) {
  str s = str_new(b->arena);
  add_text(&s, n, TEXT_DEPTH, false);
  vec_push(b->arena, &b->named.single, n);
  return str_text(&s);
}

const char *size_user_text(builder *b, const node *n) {
  return n->op == OP_VAR ? arena_printf(b->arena, "%s", var_user_name(n->text)) : size_text(b, n);
}

const char *sizes_text(builder *b, const sizes *shape) {
  str s = str_new(b->arena);
  if (!shape->rank) return "scalar";
  for (size_t i = 0; i < shape->rank; i++) {
    if (i) str_add(&s, "x");
    if (!shape->at[i]) {
      str_add(&s, "-1");
      continue;
    }
    add_text(&s, shape->at[i], TEXT_DEPTH, false);
    vec_push(b->arena, &b->named.of_shapes, shape->at[i]);
  }
  return str_text(&s);
}
