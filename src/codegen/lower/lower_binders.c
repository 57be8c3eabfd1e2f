/* Lowers binders, the loop nodes of a kernel, to storage, stores and loops.

     STAGE  an array: becomes ALLOC, STORE and END over its ranges; its readers load from
            AFTER(ALLOC, END)
     OUT    the outputs: become the same into their params, or copies of an array that has other
            readers
     FOLD   a reduction: becomes its states and a loop (lower_folds.c)

   An ALLOC's further sources are the ranges that its contents depend on: a storage for each of
   their iterations. */
#include "codegen/codegen.h"
#include "codegen/lower/fold_analysis.h"
#include "codegen/lower/lowering.h"
#include "codegen/lower/remainder_loops.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "laws/laws.h"

/* INDEX: a load from the value's array. */

const node *lower_index_at(lowering *l, const node *n, const node *const *coords) {
  const node *of = n->src[0];
  if (of->op == OP_PARAM) {
    home param = {.storage = lower_node(l, of),
                  .rank = of->rank,
                  .extents = lower_nodes(l, of->dims, of->rank)};
    return lower_home_load(l, (dtype)n->dtype, &param, coords);
  }
  const home *all = map_get(&l->homes, of);
  return lower_home_load(l, (dtype)n->dtype, &all[n->ints[0]], coords);
}

static const node *lower_index(lowering *l, const node *n) {
  if (n->src[0]->op == OP_STATE) return lower_state_load(l, n);
  return lower_index_at(l, n, lower_nodes(l, n->src + 1, n->n_src - 1));
}

/* STAGE and OUT. */

/** A store inside of loops. Loops that its address does not depend on are sources too: equal stores
   of the parts of a split loop would be one node else. */
static const node *store_inside(lowering *l, const node *storage, const node *address,
                                const node *value, const node *const *loops, size_t n) {
  const node **src = arena_alloc(l->a, (n + 3) * sizeof *src);
  size_t count = 0;
  src[count++] = storage;
  src[count++] = address;
  src[count++] = value;
  for (size_t i = 0; i < n; i++) {
    range_kind kind = loops[i] ? range_kind_of(loops[i]) : KIND_UNROLL;
    bool is_loop = kind != KIND_UNROLL && kind != KIND_VECTOR;
    if (is_loop && !node_is_free_in(loops[i], address)) src[count++] = loops[i];
  }
  return ir_node(l->g, OP_STORE, DT_VOID, src, count, NULL, 0);
}

/** The loops that store a STAGE's values to homes; storage[i] is that of the i-th. */
static const node *store_values(lowering *l, const node *s, const home *homes,
                                const node *const *storage) {
  size_t n = stage_n_values(s), *levels = arena_alloc(l->a, n * sizeof *levels);
  const node *const *loops = lower_loops(l, stage_range(s), stage_n_ranges(s));
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < n; i++) {
    levels[i] = stage_loop_depth(s, i);
    const node *address = lower_stage_address(l, &homes[i], s, i);
    const node *x =
        store_inside(l, storage[i], address, lower_node(l, stage_value(s, i)), loops, levels[i]);
    effects[i] = lower_store_once(l, x, &homes[i], s, i);
  }
  return lower_close_loops(l, effects, levels, n, loops, stage_n_ranges(s));
}

static void lower_stage(lowering *l, const node *s) {
  size_t n = stage_n_values(s);
  const node **storage = arena_alloc(l->a, n * sizeof *storage);
  home *homes = arena_alloc(l->a, n * sizeof *homes);
  for (size_t i = 0; i < n; i++) {
    homes[i] = lower_home(l, s, i);
    const node *start = lower_start(l, s, i, &homes[i]);
    storage[i] = start ? lower_after(l, homes[i].storage, &start, 1, NULL, 0) : homes[i].storage;
  }
  const node *end = store_values(l, s, homes, storage);
  for (size_t i = 0; i < n; i++)
    homes[i].storage = map_has(&l->turns, s) ? lower_build_ahead(l, s, homes[i].storage, end)
                                             : lower_after(l, homes[i].storage, &end, 1, NULL, 0);
  map_set(l->a, &l->homes, s, homes);
}

/** The reads of a param among the nodes of a nest, as effects inside of some ranges: its loads, and
    the whole loops of loads further inside. */
static node_list reads_inside(lowering *l, const node *param, const node_list *nodes,
                              const node *const *values, size_t n_values, const range_set *inside) {
  node_list reads = {0};
  map deeper = {0}; /* nodes that use such a load within a deeper loop */
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i];
    bool is_read = n->op == OP_LOAD && node_storage_root(n->src[0]) == param;
    for (uint32_t k = 0; k < n->n_src && !is_read; k++) is_read = map_has(&deeper, n->src[k]);
    if (!is_read) continue;
    bool is_whole = n->op == OP_LOAD || n->op == OP_END;
    if (is_whole && range_set_is_subset(n->free, inside))
      vec_push(l->a, &reads, n);
    else
      map_set(l->a, &deeper, n, (void *)n);
  }
  for (size_t i = 0; i < n_values; i++)
    if (map_has(&deeper, values[i]))
      diag_raise(ir_diag(l->g), TN_ERR_INTERNAL,
                 "a param is read in loops inside those of its store");
  return reads;
}

/** The params of an OUT. Params that the kernel also reads are stored to after all of the nest's
   loads, so that every value is computed from old contents. */
static const node **params_after_reads(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = lower_nodes(l, out->src, out->n_src - 1);
  const node **values = lower_nodes(l, stage->src, stage_n_values(stage));
  const node *const *loops = lower_loops(l, stage_range(stage), stage_n_ranges(stage));
  node_list nodes = topo_sort(l->a, values, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i + 1 < out->n_src; i++) {
    const range_set *inside = ix_const(l->g, 0)->free;
    for (size_t k = 0; k < stage_loop_depth(stage, i); k++)
      if (loops[k]) inside = range_set_union(l->g, inside, loops[k]->free);
    node_list reads = reads_inside(l, params[i], &nodes, values, stage_n_values(stage), inside);
    if (reads.n) params[i] = lower_after(l, params[i], reads.at, reads.n, NULL, 0);
  }
  return params;
}

/** The nest of a STAGE that copies arrays which lie in its outputs: the loops that make them run
    inside of the STAGE's other ranges. */
static const node *nest_of_outputs(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], *const *range = stage_range(stage);
  size_t n = stage_n_values(stage), n_kept = 0, count = 0;
  const node **kept = arena_alloc(l->a, (stage_n_ranges(stage) + 1) * sizeof *kept);
  const node **effects = arena_alloc(l->a, n * sizeof *effects);
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (!lower_is_own_range(l, stage, range[i])) kept[n_kept++] = *lower_loops(l, &range[i], 1);
  for (size_t i = 0; i < n; i++) {
    const node *v = stage_value(stage, i);
    if (map_has(&l->outputs, v)) {
      const home *all = map_get(&l->homes, v->src[0]);
      effects[count] = all[v->ints[0]].storage->src[1];
    } else {
      home to = lower_param_home(l, stage, i);
      const node *x =
          store_inside(l, lower_node(l, out->src[i]), lower_stage_address(l, &to, stage, i),
                       lower_node(l, v), kept, n_kept);
      effects[count] = lower_store_once(l, x, &to, stage, i);
    }
    if (!nodes_contain(effects, count, effects[count])) count++;
  }
  return lower_close_loops(l, effects, NULL, count, kept, n_kept);
}

static const node *lower_out(lowering *l, const node *out) {
  const node *stage = out->src[out->n_src - 1], **params = lower_nodes(l, out->src, out->n_src - 1);
  node_list effects = {0};
  if (lower_has_outputs(l, stage)) return nest_of_outputs(l, out);
  home *homes = arena_alloc(l->a, out->n_src * sizeof *homes);
  for (size_t i = 0; i + 1 < out->n_src; i++) homes[i] = lower_param_home(l, stage, i);
  if (map_get(&l->direct, stage) == out)
    return store_values(l, stage, homes, params_after_reads(l, out));
  for (size_t i = 0; i + 1 < out->n_src; i++) {
    homes[i].storage = params[i];
    vec_push(l->a, &effects, lower_copy_array(l, stage, i, out, &homes[i], -1));
  }
  return lower_group(l, &effects);
}

/* Each node by its op. */

static const node *lower_by_op(lowering *l, const node *n) {
  switch (n->op) {
  case OP_INDEX: return lower_index(l, n);
  case OP_STAGE:
    if (!map_has(&l->direct, n) && !map_has(&l->in_place, n)) lower_stage(l, n);
    return n;
  case OP_FOLD: lower_fold(l, n); return n;
  case OP_STATE: lower_state(l, n); return n;
  case OP_RANGE:
    if (range_is_digit(n)) return lower_digit(l, n);
    return subst_rebuild(l->g, n, lower_nodes(l, n->src, n->n_src));
  case OP_OUT: return lower_out(l, n);
  case OP_DISTINCT: return lower_node(l, n->src[0]);
  default: return subst_rebuild(l->g, n, lower_nodes(l, n->src, n->n_src));
  }
}

/* All nodes in dependence order, in which a STATE follows its FOLD's initial values, and a state
   after the step the steps too (lower_state_dependences). */

typedef struct frame {
  const node *n;
  const node *const *dependences;
  size_t count, visited;
} frame;

typedef struct walk {
  lowering *l;
  map seen;
  VEC(frame) stack;
} walk;

static void push_node(walk *w, const node *n) {
  if (map_has(&w->seen, n)) return;
  map_set(w->l->a, &w->seen, n, NULL);
  node_list own = {0};
  const node *fold = n->op == OP_STAGE ? map_get(&w->l->starts, n) : NULL;
  if (n->op == OP_STATE) own = lower_state_dependences(w->l, n);
  if (fold) own = lower_start_dependences(w->l, n, fold);
  frame f = {n, own.n ? own.at : n->src, own.n ? own.n : n->n_src, 0};
  vec_push(w->l->a, &w->stack, f);
}

static void lower_graph(lowering *l, const node *sink) {
  walk w = {.l = l};
  push_node(&w, sink);
  while (w.stack.n) {
    frame *f = &vec_last(&w.stack);
    if (f->visited < f->count) {
      push_node(&w, f->dependences[f->visited++]);
      continue;
    }
    const node *n = f->n;
    w.stack.n--;
    map_set(l->a, &l->image, n, (void *)lower_by_op(l, n));
  }
}

/** Finds stages with a single user, an OUT: they store to its params without an array. */
static void find_direct_stages(lowering *l, const node_list *order) {
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

/** A lowered graph with loops for the ranges of kind tile of which no op was made, or copies: the
    sums of a warp's tile are in registers. */
static const node *loops_for_tiles(ir *g, const node *sink, range_kind kind) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *r = order.at[i];
    if (r->op == OP_RANGE && range_kind_of(r) == KIND_TILE)
      map_set(a, &with, r, (void *)range_with(g, r, range_extent(r), kind));
  }
  return with.n ? subst(g, sink, &with) : sink;
}

const node *codegen_lower(ir *g, const node *sink) {
  lowering l = {.g = g, .a = ir_arena(g)};
  sink = lower_pin_steps(&l, fold_analysis_separate_emits(g, sink));
  node_list order = topo_sort(l.a, &sink, 1, NULL, NULL);
  find_direct_stages(&l, &order);
  l.teams = team_arrays_of(g, sink);
  const node *fused = lower_fuse_emits(&l, sink, &order);
  if (fused != sink) {
    sink = fused;
    order = topo_sort(l.a, &sink, 1, NULL, NULL);
    find_direct_stages(&l, &order);
    l.teams = team_arrays_of(g, sink);
  }
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_FOLD) lower_fold_register(&l, order.at[i]);
  fold_analysis_in_place(l.a, sink, &l.in_place);
  lower_find_starts(&l, &order);
  fold_analysis_scopes(g, sink, &l.places);
  lower_find_turns(&l, sink, &order);
  lower_find_outputs(&l, &order);
  law_collect_vectorised(&(laws){.g = g}, sink, NULL, &l.lanes);
  lower_graph(&l, sink);
  range_kind kind = l.has_warp_tiles ? KIND_UNROLL : KIND_LOOP;
  sink = lower_enclose_slots(&l, lower_node(&l, sink));
  return remainder_loops_separate(g, loops_for_tiles(g, sink, kind));
}
