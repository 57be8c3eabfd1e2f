#include "cli/flops.h"

#include "device/launch.h"
#include "formats/model.h"
#include "ir/loop.h"
#include "ir/topo.h"

#include <stdlib.h>
#include <string.h>

/** A variable of the model's shapes, and its value. */
typedef struct size_var {
  const char *name;
  int64_t value;
} size_var;

typedef struct counting {
  command *c;
  const tn_model *model;
  const feeds *in;
  VEC(size_var) vars; /* by name */
  node_list sizes;    /* of all products, one after another */
  VEC(size_t) ranks;  /* of each product, and of the loops that it is in */
  flops result;
} counting;

static bool is_constant(const node *n) {
  while (op_get((op)n->op)->cls == CLASS_MOVEMENT && n->n_src) n = n->src[0];
  return n->op == OP_CONST;
}

/** The product that a node sums; NULL if it is no contraction. */
static const node *product_of(const node *n) {
  if (n->op != OP_REDUCE || n->ints[0] != OP_ADD || n->src[0]->op != OP_MUL) return NULL;
  const node *m = n->src[0];
  bool is_scaled = is_constant(m->src[0]) || is_constant(m->src[1]);
  return m->src[0] == m->src[1] || is_scaled ? NULL : m;
}

/** The steps of the loops that a product is in: it depends on their ranges, and they are not below
    it. */
static size_t add_steps(counting *k, const node *product) {
  arena *a = &k->c->arena;
  node_list below = topo_sort(a, &product, 1, NULL, NULL);
  map bound = loop_bound(a, below.at, below.n);
  size_t n = 0;
  for (size_t i = 0; i < below.n; i++) {
    if (below.at[i]->op != OP_RANGE || map_has(&bound, below.at[i])) continue;
    vec_push(a, &k->sizes, range_extent(below.at[i]));
    n++;
  }
  return n;
}

static void find_products(counting *k) {
  const tn_model *m = k->model;
  arena *a = &k->c->arena;
  node_list all = topo_sort(a, m->nodes + m->n_inputs, m->n_outputs, NULL, NULL);
  bool has_loops = loop_bound(a, all.at, all.n).n > 0;
  for (size_t i = 0; i < all.n; i++) {
    const node *p = product_of(all.at[i]);
    if (!p) continue;
    for (size_t d = 0; d < p->rank; d++) vec_push(a, &k->sizes, p->dims[d]);
    vec_push(a, &k->ranks, p->rank + (has_loops ? add_steps(k, p) : 0));
    if (!dtype_is_float((dtype)p->dtype)) k->result.is_float = false;
  }
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const size_var *)a)->name, ((const size_var *)b)->name);
}

/** Variables, read off the inputs' shapes. */
static void find_vars(counting *k) {
  for (size_t i = 0; i < k->in->n; i++) {
    const node *leaf = k->model->nodes[i];
    for (size_t d = 0; d < leaf->rank; d++)
      if (leaf->dims[d]->op == OP_VAR)
        vec_push(&k->c->arena, &k->vars,
                 (size_var){leaf->dims[d]->text, k->in->at[i].value.shape.size[d]});
  }
  if (!k->vars.n) return;
  qsort(k->vars.at, k->vars.n, sizeof *k->vars.at, by_name);
  size_t kept = 1;
  for (size_t i = 1; i < k->vars.n; i++)
    if (strcmp(k->vars.at[i].name, k->vars.at[kept - 1].name)) k->vars.at[kept++] = k->vars.at[i];
  k->vars.n = kept;
}

static void count(void *arg) {
  counting *k = arg;
  arena *a = &k->c->arena;
  find_products(k);
  find_vars(k);
  const char **names = arena_alloc(a, (k->vars.n + 1) * sizeof *names);
  int64_t *values = arena_alloc(a, (k->vars.n + 1) * sizeof *values);
  for (size_t i = 0; i < k->vars.n; i++) {
    names[i] = k->vars.at[i].name;
    values[i] = k->vars.at[i].value;
  }
  launch_code code = launch_compile(a, k->sizes.at, k->sizes.n, names, k->vars.n);
  int64_t *room = arena_alloc(a, (code.n_steps + 1) * sizeof *room);
  int64_t *size = arena_alloc(a, (code.n_results + 1) * sizeof *size);
  if (launch_eval(&code, values, room, size, &k->c->diag)) diag_rethrow(&k->c->diag);
  for (size_t i = 0; i < k->ranks.n; i++) {
    double operations = 2;
    for (size_t d = 0; d < k->ranks.at[i]; d++) operations *= (double)*size++;
    k->result.operations += operations;
  }
}

flops flops_of_model(command *c, const tn_model *m, const feeds *in) {
  counting k = {.c = c, .model = m, .in = in, .result = {0, true}};
  tn_status s = diag_catch(&c->diag, count, &k);
  if (s == TN_ERR_MEMORY) diag_rethrow(&c->diag);
  return s == TN_OK ? k.result : (flops){0, true};
}
