/* Binders become storage, stores and loops.

   STAGE  → ALLOC, STORE, END over its ranges; its readers load from AFTER(ALLOC, END)
   OUT    → the same into its params
   FOLD   → its states and a loop (lower_folds.c)
   An ALLOC's sources are the ranges that its contents depend on: one storage an iteration. */
#include "codegen/codegen.h"
#include "codegen/folds.h"
#include "codegen/lowering.h"
#include "codegen/tails.h"
#include "ir/subst.h"
#include "laws/laws.h"

/* INDEX: a load from wherever the value lives. */

static const node *lower_index(lowering *l, const node *n) {
  const node *of = n->src[0];
  if (of->op == OP_STATE) return lower_state_index(l, n);
  if (of->op == OP_PARAM) {
    home param = {lowered(l, of), of->rank, lowered_all(l, of->dims, of->rank)};
    return lower_element(l, n, &param);
  }
  const home *all = map_get(&l->homes, of);
  return lower_element(l, n, &all[n->ints[0]]);
}

/* STAGE and OUT. */

/** A store that is done in all iterations of loops: also of those that its address does not tell,
    so that those of parts of a loop are not one. */
static const node *store_inside(lowering *l, const node *storage, const node *address,
                                const node *value, const node *const *ranges, size_t n) {
  const node **src = arena_alloc(l->a, (n + 3) * sizeof *src);
  size_t count = 0;
  src[count++] = storage;
  src[count++] = address;
  src[count++] = value;
  for (size_t i = 0; i < n; i++) {
    range_kind kind = range_kind_of(ranges[i]);
    bool is_loop = kind != KIND_UNROLL && kind != KIND_VECTOR;
    if (is_loop && !node_is_free_in(ranges[i], address)) src[count++] = ranges[i];
  }
  return ir_node(l->g, OP_STORE, DT_VOID, src, count, NULL, 0);
}

static const node *store_all(lowering *l, const node *s, const node *const *storage) {
  size_t n = stage_values(s), *levels = arena_alloc(l->a, n * sizeof *levels);
  const node *const *ranges = lowered_all(l, stage_range(s), stage_ranges(s));
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    levels[i] = stage_level(s, i);
    effects[i] = store_inside(l, storage[i], lower_address(l, s, i), lowered(l, stage_value(s, i)),
                              ranges, levels[i]);
  }
  return lower_close(l, effects, levels, n, ranges, stage_ranges(s));
}

static void lower_stage(lowering *l, const node *s) {
  size_t n = stage_values(s);
  const node **storage = arena_alloc(l->a, n * sizeof *storage);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  for (size_t i = 0; i < n; i++) {
    size_t rank = stage_rank(s, i);
    homes[i] = (home){NULL, rank, lowered_all(l, stage_extents(s, i), rank)};
    storage[i] = lower_array(l, (dtype)stage_value(s, i)->dtype, s, rank, homes[i].extents);
  }
  const node *end = store_all(l, s, storage);
  for (size_t i = 0; i < n; i++) homes[i].storage = lower_after(l, storage[i], &end, 1, NULL, 0);
  map_set(l->a, &l->homes, s, homes);
}

/** What reads a param, of the nodes of a nest, as seen inside of the first ranges of it: the loads,
    and the loops of those that other ranges are around. */
static node_list reads_inside(lowering *l, const node *param, const node_list *nodes,
                              const node *const *values, size_t n_values, const range_set *inside) {
  node_list reads = {0};
  map deeper = {0}; /* what such a load is below, outside of no loop yet */
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i];
    bool is_read = n->op == OP_LOAD && node_storage_root(n->src[0]) == param;
    for (uint32_t k = 0; k < n->n_src && !is_read; k++) is_read = map_has(&deeper, n->src[k]);
    if (!is_read) continue;
    bool is_whole = n->op == OP_LOAD || n->op == OP_END;
    if (is_whole && range_set_within(n->free, inside))
      vec_push(l->a, &reads, n);
    else
      map_set(l->a, &deeper, n, (void *)n);
  }
  for (size_t i = 0; i < n_values; i++)
    if (map_has(&deeper, values[i]))
      diag_raise(ir_diag(l->g), TN_ERR_INTERNAL, "a param is read in loops inside of its store's");
  return reads;
}

/** The params of an OUT. One that the kernel reads too is stored to after it is loaded: also what
    other values are computed from is old. */
static const node **params_after_reads(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = lowered_all(l, out->src, out->n_src - 1);
  const node **values = lowered_all(l, stage->src, stage_values(stage));
  const node *const *ranges = lowered_all(l, stage_range(stage), stage_ranges(stage));
  node_list nodes = topo_sort(l->a, values, stage_values(stage), NULL, NULL);
  for (size_t i = 0; i + 1 < out->n_src; i++) {
    const range_set *inside = ix_const(l->g, 0)->free;
    for (size_t k = 0; k < stage_level(stage, i); k++)
      inside = ir_range_union(l->g, inside, ranges[k]->free);
    node_list reads = reads_inside(l, params[i], &nodes, values, stage_values(stage), inside);
    if (reads.n) params[i] = lower_after(l, params[i], reads.at, reads.n, NULL, 0);
  }
  return params;
}

static const node *lower_out(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = lowered_all(l, out->src, out->n_src - 1);
  node_list effects = {0};
  if (map_get(&l->direct, stage) == out) return store_all(l, stage, params_after_reads(l, out));
  for (size_t i = 0; i + 1 < out->n_src; i++)
    vec_push(l->a, &effects, lower_take(l, stage, i, out, params[i], -1));
  return lower_group(l, &effects);
}

/* One node. */

static const node *rebuild(lowering *l, const node *n) {
  return subst_rebuild(l->g, n, lowered_all(l, n->src, n->n_src));
}

static const node *lower_node(lowering *l, const node *n) {
  switch (n->op) {
  case OP_INDEX: return lower_index(l, n);
  case OP_STAGE:
    if (!map_has(&l->direct, n) && !map_has(&l->in_place, n)) lower_stage(l, n);
    return n;
  case OP_FOLD: lower_fold(l, n); return n;
  case OP_STATE: lower_state(l, n); return n;
  case OP_OUT: return lower_out(l, n);
  default: return rebuild(l, n);
  }
}

/* All nodes, in an order in which a STATE comes after what its storage needs: the starts of its
   fold, and if it is one after the step, the steps too. */

typedef struct frame {
  const node *n;
  const node *const *needs;
  size_t count, next;
} frame;

typedef struct walk {
  lowering *l;
  map seen;
  VEC(frame) stack;
} walk;

static void enter(walk *w, const node *n) {
  if (map_has(&w->seen, n)) return;
  map_set(w->l->a, &w->seen, n, NULL);
  node_list needs = {0};
  if (n->op == OP_STATE) needs = lower_state_needs(w->l, n);
  frame f = {n, needs.n ? needs.at : n->src, needs.n ? needs.n : n->n_src, 0};
  vec_push(w->l->a, &w->stack, f);
}

static void lower_all(lowering *l, const node *sink) {
  walk w = {.l = l};
  enter(&w, sink);
  while (w.stack.n) {
    frame *f = &vec_last(&w.stack);
    if (f->next < f->count) {
      enter(&w, f->needs[f->next++]);
      continue;
    }
    const node *n = f->n;
    w.stack.n--;
    map_set(l->a, &l->image, n, (void *)lower_node(l, n));
  }
}

/** Stages that have one user, an OUT, are written straight into its params. */
static void find_direct(lowering *l, const node_list *order) {
  map users = {0};
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++) {
      const node *n = order->at[i], *s = n->src[k];
      bool only = s->op == OP_STAGE && n->op == OP_OUT && !map_has(&users, s);
      if (s->op == OP_STAGE) map_set(l->a, &users, s, only ? (void *)n : NULL);
    }
  for (size_t i = 0; i < order->n; i++) {
    const node *out = map_get(&users, order->at[i]);
    if (out) map_set(l->a, &l->direct, order->at[i], (void *)out);
  }
}

const node *codegen_lower(ir *g, const node *sink) {
  lowering l = {.g = g, .a = ir_arena(g)};
  sink = folds_separate(g, sink);
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_FOLD) lower_add_fold(&l, order.at[i]);
  find_direct(&l, &order);
  folds_in_place(l.a, sink, &l.in_place);
  folds_places(g, sink, &l.places);
  law_inside_vectors(g, sink, NULL, &l.lanes);
  lower_all(&l, sink);
  return tails_apart(g, lowered(&l, sink));
}
