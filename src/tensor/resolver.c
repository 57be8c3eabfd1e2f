#include "tensor/resolver.h"

#include "ir/loop.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "ir/var.h"
#include "tensor/leaf.h"
#include "tensor/state.h"

static bool is_new(const resolver *r, const node *n) { return !map_has(&r->image, n); }

/** For runs, what a state held before a run beside the context is what it holds. */
static const node *current(const resolver *r, const node *buffer) {
  const cell *k = r->for_runs ? leaf_of(r->c, buffer)->was : NULL;
  return k ? k->settled : buffer;
}

/** A state's first contents, before they are in its storage, are what they are computed from. */
static const node *image_of_buffer(const resolver *r, const node *n) {
  const leaf *l = leaf_of(r->c, n);
  if (l->failure) diag_raise(&r->c->diag, l->failure->status, "%s", l->failure->text);
  if (l->kind != LEAF_DATA || l->memory || !l->cell || !l->cell->init) return current(r, n);
  const node *init = map_get(&r->image, l->cell->init);
  return init ? init : l->cell->init;
}

/** The view that a SET changes, of the image of what it is a view of: that parts of it have values
    of their own does not matter. */
static const node *view_image(resolver *r, const node *set) {
  arena *a = &r->c->arena;
  node_list chain = {0};
  for (const node *v = set->src[1]; v != set->src[0]; v = v->src[0]) vec_push(a, &chain, v);
  const node *image = map_get(&r->image, set->src[0]);
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = arena_copy(a, v->src, v->n_src * sizeof *src);
    src[0] = image;
    for (uint32_t i = 1; i < v->n_src; i++) src[i] = resolver_image(r, v->src[i]);
    image = subst_rebuild(r->c->ir, v, src);
  }
  return image;
}

/** The node over the images of its sources. */
static const node *rebuilt(resolver *r, const node *n) {
  const node *view = n->op == OP_SET ? view_image(r, n) : NULL;
  arena_mark here = arena_here(&r->c->arena);
  const node **src = arena_alloc(&r->c->arena, n->n_src * sizeof *src);
  bool changed = false;
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = view && i == 1 ? view : map_get(&r->image, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *image = changed ? subst_rebuild(r->c->ir, n, src) : n;
  arena_reset(&r->c->arena, here);
  return image;
}

/** Whether it is what a state holds now: such versions are known to runs, too. */
static bool is_held(const resolver *r, const node *n) {
  const node *buffer = n->op == OP_BUFFER ? n : leaf_realised(r->c, n);
  return buffer && (leaf_of(r->c, buffer)->cell || leaf_of(r->c, buffer)->was);
}

/** Whether runs compute a node anew, though it may have a value. Its sources have been asked. */
static bool varies(resolver *r, const node *n) {
  bool held = is_held(r, n), vary = held;
  for (uint32_t i = 0; i < n->n_src && !vary; i++) vary = map_has(&r->vary, n->src[i]);
  if (vary) map_set(&r->c->arena, &r->vary, n, (void *)n);
  return vary && !held;
}

static const node *image_of(resolver *r, const node *n) {
  const bool anew = r->for_runs && varies(r, n);
  const node *buffer = anew ? NULL : leaf_realised(r->c, n);
  const node *other = buffer ? map_get(&r->image, buffer) : NULL;
  if (buffer) return other ? other : current(r, buffer);
  if (n->op == OP_BUFFER) return image_of_buffer(r, n);
  const node *image = rebuilt(r, n);
  buffer = image == n || anew ? NULL : leaf_realised(r->c, image);
  if (buffer) return buffer;
  if (n->op == OP_CUSTOM && image != n)
    vec_push(&r->c->arena, &r->customs, (custom_image){n, image});
  return image;
}

static bool enters(const node *n, void *user) {
  const resolver *r = user;
  return is_new(r, n) && (!leaf_realised(r->c, n) || (r->for_runs && !is_held(r, n)));
}

const node *resolver_image(resolver *r, const node *root) {
  node_list order = topo_sort(&r->c->arena, &root, 1, enters, r);
  for (size_t i = 0; i < order.n; i++)
    if (is_new(r, order.at[i]))
      map_set(&r->c->arena, &r->image, order.at[i], (void *)image_of(r, order.at[i]));
  return map_get(&r->image, root);
}

void resolver_refuse_open(tn_context *c, const node *root) {
  static const char text[] = "it depends on the %s %s, which has a value in a plan's runs only";
  resolver none = {.c = c};
  node_list order = topo_sort(&c->arena, &root, 1, enters, &none);
  if (order.n && loop_find_open(&c->arena, order.at, order.n)[order.n - 1])
    loop_refuse_open(&c->diag);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (leaf_realised(c, n)) continue;
    if (n->op == OP_VAR) diag_raise(&c->diag, TN_ERR_ARGUMENT, text, "size", var_name(n->text));
    const leaf *l = n->op == OP_BUFFER ? leaf_of(c, n) : NULL;
    if (l && l->kind == LEAF_INPUT) diag_raise(&c->diag, TN_ERR_ARGUMENT, text, "input", l->name);
  }
}
