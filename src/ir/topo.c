#include "ir/topo.h"

typedef struct frame {
  const node *n;
  uint32_t next;
} frame;

typedef VEC(frame) frames;

static void mark(const node *n, uint8_t value) { ((node *)n)->marked = value; }

/** A node is marked once it is on the stack: if there is no room, it has no mark. */
static void open(arena *a, frames *stack, const node *n) {
  vec_push(a, stack, (frame){n, 0});
  mark(n, 1);
}

static void visit(arena *a, frames *stack, node_list *out, const node *root,
                  bool (*enter)(const node *n, void *user), void *user) {
  if (root->marked) return;
  open(a, stack, root);
  while (stack->n) {
    frame *f = &vec_last(stack);
    uint32_t n_src = !enter || enter(f->n, user) ? f->n->n_src : 0;
    while (f->next < n_src && f->n->src[f->next]->marked) f->next++;
    if (f->next == n_src) {
      vec_push(a, out, f->n);
      stack->n--;
      continue;
    }
    open(a, stack, f->n->src[f->next++]);
  }
}

/** The walk, and its marks cleared again even when memory runs out in the middle. */
typedef struct walk {
  arena *a;
  frames stack;
  node_list out;
  const node *const *roots;
  size_t n;
  bool (*enter)(const node *n, void *user);
  void *user;
} walk;

static void walk_all(void *arg) {
  walk *w = arg;
  for (size_t i = 0; i < w->n; i++) visit(w->a, &w->stack, &w->out, w->roots[i], w->enter, w->user);
}

node_list topo_sort(arena *a, const node *const roots[], size_t n,
                    bool (*enter)(const node *n, void *user), void *user) {
  walk w = {.a = a, .roots = roots, .n = n, .enter = enter, .user = user};
  tn_status s = diag_catch(a->diag, walk_all, &w);
  for (size_t i = 0; i < w.out.n; i++) mark(w.out.at[i], 0);
  for (size_t i = 0; i < w.stack.n; i++) mark(w.stack.at[i].n, 0);
  if (s != TN_OK) diag_rethrow(a->diag);
  return w.out;
}
