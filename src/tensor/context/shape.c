/* Shapes as lists of index nodes, and their text for messages: expressions in infix notation, cut
   short at TEXT_DEPTH levels and some TEXT_BYTES bytes. */
#include "tensor/context/shape.h"

#include "base/str.h"
#include "ir/core/affine.h"
#include "ir/core/var_names.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)SIZES_MAX_RANK == IR_MAX_RANK, "sizes hold the shape of every node");

sizes sizes_of(const node *x) {
  sizes s = {.rank = x->rank};
  for (size_t i = 0; i < x->rank; i++) s.at[i] = x->dims[i];
  return s;
}

enum { TEXT_DEPTH = 6, TEXT_BYTES = 200 };

/** How tightly an expression binds its parts. */
typedef enum binding_of { BINDS_SUM, BINDS_PRODUCT, BINDS_QUOTIENT, BINDS_ATOM } binding_of;

static binding_of binding_of_node(const node *n) {
  if (n->op == OP_AFFINE) {
    bool is_scaled = ix_terms(n) == 1 && !ix_offset(n) && ix_coefficient_at(n, 0) > 0;
    return is_scaled ? BINDS_PRODUCT : BINDS_SUM;
  }
  if (n->op == OP_MUL) return BINDS_PRODUCT;
  return n->op == OP_FLOORDIV || n->op == OP_MOD ? BINDS_QUOTIENT : BINDS_ATOM;
}

static void add_text(str *s, const node *n, int depth);

/** Adds an operand, in parentheses if it binds its parts less tightly than `least`. */
static void add_operand(str *s, const node *n, int depth, binding_of least) {
  bool is_loose = binding_of_node(n) < least;
  str_add(s, is_loose ? "(" : "");
  add_text(s, n, depth);
  str_add(s, is_loose ? ")" : "");
}

/** Adds a factor of a product. Quotients are rounded, so they are in parentheses. */
static void add_factor(str *s, const node *n, int depth) {
  add_operand(s, n, depth, binding_of_node(n) == BINDS_PRODUCT ? BINDS_PRODUCT : BINDS_ATOM);
}

static void add_product(str *s, const node *n, int depth) {
  add_factor(s, n->src[0], depth);
  str_add(s, "*");
  add_factor(s, n->src[1], depth);
}

static void add_quotient(str *s, const char *sign, const node *n, int depth) {
  add_operand(s, n->src[0], depth, BINDS_ATOM);
  str_add(s, sign);
  add_operand(s, n->src[1], depth, BINDS_ATOM);
}

static void add_call(str *s, const char *name, const node *n, int depth) {
  str_addf(s, "%s(", name);
  add_text(s, n->src[0], depth);
  str_add(s, ", ");
  add_text(s, n->src[1], depth);
  str_add(s, ")");
}

static void add_term(str *s, const node *n, size_t i, int depth) {
  const node *atom = ix_atom(n, i);
  int64_t c = ix_coefficient_at(n, i);
  unsigned long long size = c < 0 ? 0 - (unsigned long long)c : (unsigned long long)c;
  if (size != 1) str_addf(s, "%llu*", size);
  if (size != 1)
    add_factor(s, atom, depth);
  else
    add_operand(s, atom, depth, BINDS_PRODUCT);
}

static void add_first_term(str *s, const node *n, size_t i, int depth) {
  if (ix_coefficient_at(n, i) < 0) str_add(s, "-");
  add_term(s, n, i, depth);
}

/** Adds a sum, with a positive term first if there is one. */
static void add_sum(str *s, const node *n, int depth) {
  int64_t offset = ix_offset(n);
  size_t terms = ix_terms(n), first = 0;
  while (first < terms && ix_coefficient_at(n, first) < 0) first++;
  bool offset_first = first == terms && offset > 0;
  if (first == terms) first = offset_first ? terms : 0;
  if (offset_first)
    str_addf(s, "%lld", (long long)offset);
  else
    add_first_term(s, n, first, depth);
  for (size_t i = 0; i < terms; i++) {
    if (i == first) continue;
    str_add(s, ix_coefficient_at(n, i) < 0 ? " - " : " + ");
    add_term(s, n, i, depth);
  }
  if (offset_first || !offset) return;
  str_addf(s, " %s %llu", offset < 0 ? "-" : "+",
           offset < 0 ? 0 - (unsigned long long)offset : (unsigned long long)offset);
}

static void add_text(str *s, const node *n, int depth) {
  if (!depth || s->n > TEXT_BYTES) {
    str_add(s, "…");
    return;
  }
  switch (n->op) {
  case OP_CONST: str_addf(s, "%lld", (long long)node_int(n)); break;
  case OP_VAR: str_addf(s, "%.100s", var_user_name(n->text)); break;
  case OP_ITEM: str_add(s, "?"); break;
  case OP_AFFINE: add_sum(s, n, depth - 1); break;
  case OP_MUL: add_product(s, n, depth - 1); break;
  case OP_FLOORDIV: add_quotient(s, "/", n, depth - 1); break;
  case OP_MOD: add_quotient(s, "%", n, depth - 1); break;
  case OP_MIN: add_call(s, "min", n, depth - 1); break;
  case OP_MAX: add_call(s, "max", n, depth - 1); break;
  default: str_add(s, "…");
  }
}

const char *size_text(builder *b, const node *n) {
  str s = str_new(b->arena);
  add_text(&s, n, TEXT_DEPTH);
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
    add_operand(&s, shape->at[i], TEXT_DEPTH, shape->rank > 1 ? BINDS_ATOM : BINDS_SUM);
    vec_push(b->arena, &b->named.of_shapes, shape->at[i]);
  }
  return str_text(&s);
}

const char *sizes_text_of_ranks(builder *b, const sizes *shape) {
  size_t named = b->named.of_shapes.n;
  const char *text = sizes_text(b, shape);
  b->named.of_shapes.n = named;
  return text;
}

/** True if a size reads as one number or name beside others. */
static bool is_plain(const char *size) { return !strpbrk(size, " */%"); }

const char *shape_write_text(char *text, size_t bytes, size_t rank, const char *const names[],
                             const int64_t numbers[]) {
  size_t n = (size_t)snprintf(text, bytes, "%s", rank ? "" : "scalar");
  for (size_t i = 0; i < rank && n < bytes; i++) {
    const char *x = i ? "x" : "";
    if (!names)
      n += (size_t)snprintf(text + n, bytes - n, "%s%lld", x, (long long)numbers[i]);
    else
      n += (size_t)snprintf(text + n, bytes - n,
                            rank > 1 && !is_plain(names[i]) ? "%s(%s)" : "%s%s", x, names[i]);
  }
  return text;
}
