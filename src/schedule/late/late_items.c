/* Implements the extraction of ITEMs: rebuilds the graph from sources to roots with a VAR for each
   ITEM. Its element is read by a GATHER, which is 0 outside of the tensor, so that its array is
   never one that something else writes. */
#include "schedule/late/late_items.h"

#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/transform/substitute.h"

#include <string.h>

typedef struct extracting {
  ir *g;
  arena *a;
  const schedule_request *request;
  const normalised *n;
  schedule_items *items;
  map image;  /* node → the same without ITEMs */
  map var_of; /* ITEM without ITEMs below → its VAR */
  map name;   /* labelled nodes, and those that were searched → name_of */
} extracting;

static const node *image_of(const extracting *x, const node *n) {
  const node *image = map_get(&x->image, n);
  return image ? image : n;
}

/** The first source of a node that is no number known before the run; NULL: there is none. */
static const node *first_computed(const node *n) {
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *s = n->src[i];
    while (s->op == OP_CAST && s->src[0]->dtype == DT_INDEX) s = s->src[0];
    if (s->op != OP_CONST && s->op != OP_VAR) return s;
  }
  return NULL;
}

/** Names the labelled nodes; the first label of a node stays. A constant is anybody's. */
static void name_labelled(extracting *x) {
  for (size_t i = x->request->n_labels; i-- > 0;)
    if (!node_is_const(x->n->labelled[i]))
      map_set(x->a, &x->name, x->n->labelled[i], (void *)x->request->labels[i].text);
}

/** The name that the caller gave to a tensor, or to the nearest one that it is computed from, also
    by its sizes. Each node is visited once in all searches. */
static const char *name_of(extracting *x, const node *n) {
  const node *from = n;
  while (n && !map_has(&x->name, n)) n = first_computed(n);
  const char *name = n ? map_get(&x->name, n) : "";
  for (; from != n; from = first_computed(from)) map_set(x->a, &x->name, from, (void *)name);
  return name;
}

static const node *var_of_item(extracting *x, const node *item) {
  const int64_t bounds[] = {item->lo, item->hi};
  const char *text = arena_printf(x->a, VAR_LATE_PREFIX "%zu", x->items->at.n);
  return ir_make(x->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = text,
                                    .n_text = strlen(text)});
}

/** Finds the ITEMs that the bound of another one mentions. */
static void find_bounds(const extracting *x, schedule_item *of) {
  VEC(size_t) found = {0};
  node_list order = topo_sort(x->a, &of->most, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    uintptr_t number = (uintptr_t)map_get(&x->items->of, order.at[i]);
    if (number) vec_push(x->a, &found, (size_t)number - 1);
  }
  of->bounded_by = found.at;
  of->n_bounded_by = found.n;
}

/** The variable of an ITEM whose sources hold no ITEM; `from`: the ITEM of the graph. */
static const node *replace_item(extracting *x, const node *item, const node *from) {
  const node *known = map_get(&x->var_of, item);
  if (known) return known;
  if (!x->items->at.n) name_labelled(x);
  schedule_item made = {.var = var_of_item(x, item),
                        .value = ir_item_element(x->g, item),
                        .min = item->ints[0],
                        .most = item->src[item->n_src - 1],
                        .name = arena_printf(x->a, "%s", name_of(x, from->src[0]))};
  find_bounds(x, &made);
  map_set(x->a, &x->var_of, item, (void *)made.var);
  vec_push(x->a, &x->items->at, made);
  map_set(x->a, &x->items->of, made.var, (void *)(uintptr_t)x->items->at.n);
  return made.var;
}

static void rebuild(extracting *x, const node *n) {
  bool changed = false;
  const node **src = arena_alloc(x->a, (n->n_src + 1) * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(x, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *made = changed ? subst_rebuild(x->g, n, src) : n;
  if (n->op == OP_ITEM) made = replace_item(x, made, n);
  if (made != n) map_set(x->a, &x->image, n, (void *)made);
}

/** Adds the elements as roots, between those of the request and the labelled nodes. */
static void add_roots(extracting *x, normalised *n) {
  size_t n_labels = x->request->n_labels, n_items = x->items->at.n, at = 0;
  const node **all = arena_alloc(x->a, (n->n_roots + n_items + n_labels + 1) * sizeof *all);
  for (size_t i = 0; i < n->n_roots; i++) {
    const node *root = all[at++] = image_of(x, n->roots[i]);
    for (size_t k = 0; k < root->rank; k++) vec_push(x->a, &x->items->sizes, root->dims[k]);
  }
  for (size_t i = 0; i < n_items; i++) all[at++] = x->items->at.at[i].value;
  for (size_t i = 0; i < n_labels; i++) all[at++] = image_of(x, n->labelled[i]);
  x->items->first = n->n_roots;
  n->roots = all;
  n->n_roots += n_items;
  n->labelled = all + n->n_roots;
  n->items = x->items;
}

void late_items_check(ir *g, const schedule_request *r, const normalised *n) {
  arena_mark here = arena_save(ir_scratch(g));
  node_list order = topo_sort(ir_scratch(g), n->roots, n->n_roots + r->n_labels, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ITEM && order.at[i]->free->n)
      diag_raise(ir_diag(g), TN_ERR_UNSUPPORTED,
                 "a size follows from an element that a loop computes in each of its steps");
  arena_rewind(ir_scratch(g), here);
}

void late_items_extract(ir *g, const schedule_request *r, normalised *n) {
  extracting x = {.g = g, .a = ir_arena(g), .request = r, .n = n};
  node_list order = topo_sort(x.a, n->roots, n->n_roots + r->n_labels, NULL, NULL);
  x.items = arena_calloc(x.a, 1, sizeof *x.items);
  for (size_t i = 0; i < order.n; i++) rebuild(&x, order.at[i]);
  if (x.items->at.n) add_roots(&x, n);
}
