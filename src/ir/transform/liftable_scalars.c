/* Implements scalar lifting: finds the liftable constants of a graph and replaces them by
   variables. They are recognised at the nodes that read them, because equal constants are one node
   by interning. */
#include "ir/transform/liftable_scalars.h"

#include "ir/core/build.h"
#include "ir/core/interval.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/substitute.h"

#include <stdio.h>
#include <string.h>

/** The integer type of a VAR that carries the bits of a type; integers carry their own value. */
static dtype carrier_type(dtype t) {
  static const dtype of_bytes[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_I64};
  bool is_own = t == DT_INDEX || (dtype_is_int(t) && t != DT_U64);
  return is_own ? t : of_bytes[dtype_bytes(t)];
}

enum { MOST_MOVEMENTS = 4 };

const node *liftable_fill_constant(const node *n) {
  for (int i = 0; i < MOST_MOVEMENTS && (n->op == OP_RESHAPE || n->op == OP_EXPAND); i++)
    n = n->src[0];
  return node_is_const(n) && dtype_is_data((dtype)n->dtype) ? n : NULL;
}

static bool value_scalar(const node *c, dtype t, liftable_scalar *s) {
  interval all = interval_of_type(t == DT_BOOL ? t : carrier_type(t));
  *s = (liftable_scalar){t, node_int(c), all.lo, all.hi};
  return true;
}

static bool index_scalar(const node *c, int64_t min, int64_t max, liftable_scalar *s) {
  *s = (liftable_scalar){DT_INDEX, node_int(c), min, max};
  return node_int(c) >= min && node_int(c) <= max;
}

static bool start_scalar(const node *n, uint32_t axis, liftable_scalar *s) {
  const node *dim = n->src[0]->dims[axis], *size = n->dims[axis];
  if (!node_is_const(dim) || !node_is_const(size) || node_int(size) < 1) return false;
  int64_t span; /* from the first element to the last */
  if (__builtin_mul_overflow(n->ints[axis], node_int(size) - 1, &span) || span == INT64_MIN)
    return false;
  int64_t last = node_int(dim) - 1;
  return index_scalar(n->src[1 + axis], span < 0 ? -span : 0, span > 0 ? last - span : last, s);
}

static bool low_scalar(const node *n, uint32_t axis, liftable_scalar *s) {
  const node *dim = n->src[0]->dims[axis], *size = n->dims[axis];
  if (!node_is_const(dim) || !node_is_const(size)) return false;
  return index_scalar(n->src[2 + axis], 0, node_int(size) - node_int(dim), s);
}

bool liftable_scalar_at(const node *n, uint32_t k, liftable_scalar *s) {
  const node *c = n->src[k], *filling = liftable_fill_constant(c);
  if (filling) return value_scalar(filling, (dtype)filling->dtype, s);
  if (!node_is_const(c)) return false;
  if (n->op == OP_CAST) return value_scalar(c, DT_I64, s);
  if (n->op == OP_SLICE && k <= n->rank) return start_scalar(n, k - 1, s);
  return n->op == OP_PAD && k < 2u + n->rank && low_scalar(n, k - 2, s);
}

bool liftable_scalar_of_root(const node *root, liftable_scalar *s) {
  const node *c = liftable_fill_constant(root);
  return c && value_scalar(c, (dtype)c->dtype, s);
}

/* Variables. */

static const char *const prefix[] = {
    [LIFTED_VAR_OF_GRAPH] = "core_scalar", [LIFTED_VAR_OF_KERNEL] = "core_value"};

void lifted_var_name(char name[LIFTED_VAR_NAME_BYTES], lifted_var_scope scope, size_t number) {
  snprintf(name, LIFTED_VAR_NAME_BYTES, "%s%zu", prefix[scope], number);
}

size_t lifted_var_number(const char *name, lifted_var_scope scope) {
  size_t n = strlen(prefix[scope]), number = 0;
  if (strncmp(name, prefix[scope], n) || !name[n]) return SIZE_MAX;
  for (name += n; *name; name++) {
    if (*name < '0' || *name > '9' || number > SIZE_MAX / 20) return SIZE_MAX;
    number = number * 10 + (size_t)(*name - '0');
  }
  return number;
}

static const node *variable(ir *g, dtype t, const int64_t bounds[2], lifted_var_scope scope,
                            size_t number) {
  char name[LIFTED_VAR_NAME_BYTES];
  lifted_var_name(name, scope, number);
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = t,
                                 .ints = bounds,
                                 .n_int = 2,
                                 .text = name,
                                 .n_text = strlen(name)});
}

const node *lifted_var_rename(ir *g, const node *var, lifted_var_scope scope, size_t number) {
  return variable(g, (dtype)var->dtype, var->ints, scope, number);
}

static const node *scalar_variable(ir *g, const liftable_scalar *s, size_t number) {
  const int64_t bounds[] = {s->min, s->max};
  return ir_bitcast(g, variable(g, carrier_type(s->dtype), bounds, LIFTED_VAR_OF_GRAPH, number),
                    s->dtype);
}

typedef struct lifting {
  ir *to;
  arena *a;
  const lifted_var_map *v;
  const node **vars;
  map *originals;
  size_t at; /* number of the next scalar */
} lifting;

/** Remakes the movements of `like`, a constant or a fill of one, on top of `var`. */
static const node *refill(lifting *l, const node *like, const node *var) {
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

/** The replacement of the next scalar, whose copy is `image`; NULL: the scalar stays. */
static const node *next_variable(lifting *l, const node *image) {
  uint32_t which = l->v->which[l->at++];
  return which ? refill(l, image, l->vars[which - 1]) : NULL;
}

static const node *lift_sources(void *user, const node *n, const node *const src[]) {
  lifting *l = user;
  liftable_scalar s;
  const node **to = NULL, *var;
  if (liftable_fill_constant(n)) return NULL;
  for (uint32_t k = 0; k < n->n_src; k++) {
    if (!liftable_scalar_at(n, k, &s) || !(var = next_variable(l, src[k]))) continue;
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

void lift_scalars(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                  const lifted_var_map *v, map *originals, const node *copies[]) {
  lifting l = {.to = to, .a = a, .v = v, .originals = originals};
  liftable_scalar s;
  l.vars = arena_alloc(a, (v->n_vars + 1) * sizeof *l.vars);
  for (size_t i = 0; i < v->n_vars; i++) l.vars[i] = scalar_variable(to, &v->vars[i], i);
  ir_copy_sorted(to, a, order, roots, n, lift_sources, &l, copies);
  for (size_t i = 0; i < n; i++) {
    const node *var = liftable_scalar_of_root(roots[i], &s) ? next_variable(&l, copies[i]) : NULL;
    if (var) copies[i] = var;
  }
}
