/* Substitution of BUFFERs for computed nodes, bottom-up over the graph. For plans, nodes that read
   the contents of states are not substituted, as each run computes them anew; versions of states
   are known to runs by the contents of their states. */
#include "tensor/eval/substitute_values.h"

#include "ir/core/tensor_loop.h"
#include "ir/core/topo_sort.h"
#include "ir/core/var_names.h"
#include "ir/transform/substitute.h"
#include "tensor/eval/evaluate_items.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/state.h"

static bool has_no_image(const value_substitution *r, const node *n) {
  return !map_has(&r->image, n);
}

/** The BUFFER itself; for plans, the newest contents of a state in place of former ones, which a
    concurrent run replaced. */
static const node *current_buffer(const value_substitution *r, const node *buffer) {
  const state_record *k = r->for_plan ? graph_input_of(r->c, buffer)->former_state : NULL;
  return k ? k->versions.committed : buffer;
}

/** The image of a BUFFER. First contents of a state that are not computed yet are the expression
    that computes them. */
static const node *image_of_buffer(const value_substitution *r, const node *n) {
  const graph_input *l = graph_input_of(r->c, n);
  if (l->failure) context_raise_again(r->c, &r->c->diag, l->failure);
  if (l->kind != GRAPH_INPUT_DATA || l->memory || !l->state || !l->state->versions.init)
    return current_buffer(r, n);
  const node *init = map_get(&r->image, l->state->versions.init);
  return init ? init : l->state->versions.init;
}

/** The view that a SET changes, over the image of the version that it is a view of; computed values
    of parts of the view do not matter. */
static const node *view_image(value_substitution *r, const node *set) {
  arena *a = &r->c->arena;
  node_list chain = {0};
  for (const node *v = set->src[1]; v != set->src[0]; v = v->src[0]) vec_push(a, &chain, v);
  const node *image = map_get(&r->image, set->src[0]);
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = arena_copy(a, v->src, v->n_src * sizeof *src);
    src[0] = image;
    for (uint32_t i = 1; i < v->n_src; i++) src[i] = substitute_values(r, v->src[i]);
    image = subst_rebuild(r->c->ir, v, src);
  }
  return image;
}

/** A node rebuilt over the images of its sources. */
static const node *rebuild_node(value_substitution *r, const node *n) {
  const node *view = n->op == OP_SET ? view_image(r, n) : NULL;
  arena_mark here = arena_save(&r->c->arena);
  const node **src = arena_alloc(&r->c->arena, n->n_src * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = view && i == 1 ? view : map_get(&r->image, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *image = changed ? subst_rebuild(r->c->ir, n, src) : n;
  arena_rewind(&r->c->arena, here);
  return image;
}

/** True if a node is, or was, the contents of a state, which runs of plans know. */
static bool is_state_contents(const value_substitution *r, const node *n) {
  const node *buffer = n->op == OP_BUFFER ? n : computed_value_of(r->c, n);
  return buffer &&
         (graph_input_of(r->c, buffer)->state || graph_input_of(r->c, buffer)->former_state);
}

/** True if each run of a plan computes a node anew, whether it has a value or not. Its sources have
    been visited. */
static bool reads_states(value_substitution *r, const node *n) {
  bool held = is_state_contents(r, n), vary = held;
  for (uint32_t i = 0; i < n->n_src && !vary; i++) vary = map_has(&r->state_reads, n->src[i]);
  if (vary) map_set(&r->c->arena, &r->state_reads, n, (void *)n);
  return vary && !held;
}

static const node *make_image(value_substitution *r, const node *n) {
  const bool anew = r->for_plan && reads_states(r, n);
  const node *buffer = anew ? NULL : computed_value_of(r->c, n);
  const node *other = buffer ? map_get(&r->image, buffer) : NULL;
  if (buffer) return other ? other : current_buffer(r, buffer);
  if (n->op == OP_BUFFER) return image_of_buffer(r, n);
  if (n->op == OP_ITEM && !anew) {
    const node *number = evaluated_item(r->c, n, map_get(&r->image, n->src[n->n_src - 1]));
    if (number) return number;
  }
  const node *image = rebuild_node(r, n);
  buffer = image == n || anew ? NULL : computed_value_of(r->c, image);
  if (buffer) return buffer;
  if (n->op == OP_CUSTOM && image != n)
    vec_push(&r->c->arena, &r->host_calls, (host_call_image){n, image});
  return image;
}

static bool needs_image(const node *n, void *user) {
  const value_substitution *r = user;
  return has_no_image(r, n) &&
         (!computed_value_of(r->c, n) || (r->for_plan && !is_state_contents(r, n)));
}

const node *substitute_values(value_substitution *r, const node *root) {
  node_list order = topo_sort(&r->c->arena, &root, 1, needs_image, r);
  for (size_t i = 0; i < order.n; i++)
    if (has_no_image(r, order.at[i]))
      map_set(&r->c->arena, &r->image, order.at[i], (void *)make_image(r, order.at[i]));
  return map_get(&r->image, root);
}

void refuse_unbound_graph(tn_context *c, const node *root) {
  static const char text[] = "it depends on the %s %s, which has a value in a plan's runs only";
  value_substitution none = {.c = c};
  node_list order = topo_sort(&c->arena, &root, 1, needs_image, &none);
  if (order.n && loop_find_unbound(&c->arena, order.at, order.n)[order.n - 1])
    loop_refuse_unbound(&c->diag);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (computed_value_of(c, n)) continue;
    if (n->op == OP_VAR)
      diag_raise(&c->diag, TN_ERR_ARGUMENT, text, "size", var_user_name(n->text));
    const graph_input *l = n->op == OP_BUFFER ? graph_input_of(c, n) : NULL;
    if (l && l->kind == GRAPH_INPUT_PLAN)
      diag_raise(&c->diag, TN_ERR_ARGUMENT, text, "input", l->name);
  }
}
