#include "ir/scalars.h"

#include "ir/build.h"
#include "ir/copy.h"
#include "ir/interval.h"
#include "ir/subst.h"

#include <stdio.h>
#include <string.h>

/* What is a scalar. */

/** The type of the integer that has a value's bits, with the same number. */
static dtype carrier(dtype t) {
  static const dtype of_bytes[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_I64};
  bool is_own = t == DT_INDEX || (dtype_is_int(t) && t != DT_U64);
  return is_own ? t : of_bytes[dtype_bytes(t)];
}

enum { MOST_MOVEMENTS = 4 };

const node *scalar_filling(const node *n) {
  for (int i = 0; i < MOST_MOVEMENTS && (n->op == OP_RESHAPE || n->op == OP_EXPAND); i++)
    n = n->src[0];
  return node_is_const(n) && dtype_is_data((dtype)n->dtype) ? n : NULL;
}

static bool is_value(const node *c, dtype t, scalar *s) {
  interval all = interval_of_type(t == DT_BOOL ? t : carrier(t));
  *s = (scalar){t, node_int(c), all.lo, all.hi};
  return true;
}

static bool is_place(const node *c, int64_t min, int64_t max, scalar *s) {
  *s = (scalar){DT_INDEX, node_int(c), min, max};
  return node_int(c) >= min && node_int(c) <= max;
}

static bool is_start(const node *n, uint32_t axis, scalar *s) {
  const node *dim = n->src[0]->dims[axis], *size = n->dims[axis];
  if (!node_is_const(dim) || !node_is_const(size) || node_int(size) < 1) return false;
  int64_t way; /* from the first element to the last */
  if (__builtin_mul_overflow(n->ints[axis], node_int(size) - 1, &way) || way == INT64_MIN)
    return false;
  int64_t last = node_int(dim) - 1;
  return is_place(n->src[1 + axis], way < 0 ? -way : 0, way > 0 ? last - way : last, s);
}

static bool is_low(const node *n, uint32_t axis, scalar *s) {
  const node *dim = n->src[0]->dims[axis], *size = n->dims[axis];
  if (!node_is_const(dim) || !node_is_const(size)) return false;
  return is_place(n->src[2 + axis], 0, node_int(size) - node_int(dim), s);
}

bool scalar_at(const node *n, uint32_t k, scalar *s) {
  const node *c = n->src[k], *filling = scalar_filling(c);
  if (filling) return is_value(filling, (dtype)filling->dtype, s);
  if (!node_is_const(c)) return false;
  if (n->op == OP_CAST) return is_value(c, DT_I64, s);
  if (n->op == OP_SLICE && k <= n->rank) return is_start(n, k - 1, s);
  return n->op == OP_PAD && k < 2u + n->rank && is_low(n, k - 2, s);
}

bool scalar_of_root(const node *root, scalar *s) {
  const node *c = scalar_filling(root);
  return c && is_value(c, (dtype)c->dtype, s);
}

/* Variables. */

static const char *const prefix[] = {
    [SCALAR_OF_GRAPH] = "core_scalar", [SCALAR_OF_KERNEL] = "core_value"};

void scalar_name(char name[SCALAR_NAME], scalar_scope scope, size_t number) {
  snprintf(name, SCALAR_NAME, "%s%zu", prefix[scope], number);
}

size_t scalar_number(const char *name, scalar_scope scope) {
  size_t n = strlen(prefix[scope]), number = 0;
  if (strncmp(name, prefix[scope], n) || !name[n]) return SIZE_MAX;
  for (name += n; *name; name++) {
    if (*name < '0' || *name > '9' || number > SIZE_MAX / 20) return SIZE_MAX;
    number = number * 10 + (size_t)(*name - '0');
  }
  return number;
}

static const node *variable(ir *g, dtype t, const int64_t bounds[2], scalar_scope scope,
                            size_t number) {
  char name[SCALAR_NAME];
  scalar_name(name, scope, number);
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = t,
                                 .ints = bounds,
                                 .n_int = 2,
                                 .text = name,
                                 .n_text = strlen(name)});
}

const node *scalar_renamed(ir *g, const node *var, scalar_scope scope, size_t number) {
  return variable(g, (dtype)var->dtype, var->ints, scope, number);
}

static const node *scalar_variable(ir *g, const scalar *s, size_t number) {
  const int64_t bounds[] = {s->min, s->max};
  return ir_bitcast(g, variable(g, carrier(s->dtype), bounds, SCALAR_OF_GRAPH, number), s->dtype);
}

typedef struct lifting {
  ir *to;
  arena *a;
  const scalar_vars *v;
  const node **vars;
  map *originals;
  size_t at; /* the next scalar */
} lifting;

/** `like`, of the copy, which is a scalar or has one in each element, with `var` in its place. */
static const node *filled(lifting *l, const node *like, const node *var) {
  const node *chain[MOST_MOVEMENTS];
  size_t n = 0;
  for (; !node_is_const(like); like = like->src[0]) chain[n++] = like;
  while (n) {
    const node *v = chain[--n], **src = arena_copy(l->a, v->src, v->n_src * sizeof *src);
    src[0] = var;
    var = ir_with_sources(l->to, v, src);
  }
  return var;
}

/** What stands for the next scalar, of which the copy has `image`; NULL: that. */
static const node *next(lifting *l, const node *image) {
  uint32_t which = l->v->which[l->at++];
  return which ? filled(l, image, l->vars[which - 1]) : NULL;
}

static const node *lifted(void *user, const node *n, const node *const src[]) {
  lifting *l = user;
  scalar s;
  const node **to = NULL, *var;
  if (scalar_filling(n)) return NULL;
  for (uint32_t k = 0; k < n->n_src; k++) {
    if (!scalar_at(n, k, &s) || !(var = next(l, src[k]))) continue;
    if (!to) to = arena_copy(l->a, src, n->n_src * sizeof *to);
    to[k] = var;
  }
  if (to && n->op == OP_CAST) return ir_cast(l->to, to[0], (dtype)n->dtype);
  if (to) return subst_rebuild(l->to, n, to);
  if (n->op != OP_BUFFER) return NULL;
  const node *made = ir_with_sources(l->to, n, src);
  map_set(l->a, l->originals, made, (void *)n);
  return made;
}

void scalars_lift(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                  const scalar_vars *v, map *originals, const node *copies[]) {
  lifting l = {.to = to, .a = a, .v = v, .originals = originals};
  scalar s;
  l.vars = arena_alloc(a, (v->n_vars + 1) * sizeof *l.vars);
  for (size_t i = 0; i < v->n_vars; i++) l.vars[i] = scalar_variable(to, &v->vars[i], i);
  ir_copy_sorted(to, a, order, roots, n, lifted, &l, copies);
  for (size_t i = 0; i < n; i++) {
    const node *var = scalar_of_root(roots[i], &s) ? next(&l, copies[i]) : NULL;
    if (var) copies[i] = var;
  }
}
