/* Judges whether a join saves time: the bytes of its pieces that kernels of their own write in
   place against those that are copied, and the copies' launches. */
#include "ir/core/likely_value.h"
#include "schedule/values/join_search.h"
#include "target/machine.h"

enum { MOST_BEHIND = 64 /* nodes behind a piece among which its contraction is sought */ };

double join_bytes_of(const node *x) {
  double bytes = (double)dtype_bytes((dtype)x->dtype);
  for (size_t k = 0; k < x->rank; k++) bytes *= ix_likely(x->dims[k]);
  return bytes;
}

/** True for a sum of products of two tensors. */
static bool is_tensor_contraction(const node *n) {
  const node *x = n->op == OP_REDUCE ? n->src[0] : n;
  return x != n && x->op == OP_MUL && x->src[0] != x->src[1];
}

/** True if a contraction is behind a tensor, through elementwise values and movements: no other
    shares its kernel, as sums over one tensor do. */
static bool has_contraction(const join_search *f, const node *x) {
  node_list open = {0};
  map seen = {0};
  vec_push(f->a, &open, x);
  for (size_t i = 0; i < open.n && i < MOST_BEHIND; i++) {
    const node *n = open.at[i];
    if (is_tensor_contraction(n)) return true;
    if (i && (map_has(&f->joined, n) || join_is_opaque(n))) continue;
    for (uint32_t k = 0; k < n->n_src; k++) {
      const node *s = n->src[k];
      if (!s->rank || s->dtype == DT_INDEX || map_has(&seen, s)) continue;
      map_set(f->a, &seen, s, NULL);
      vec_push(f->a, &open, s);
    }
  }
  return false;
}

/** True if a tensor is moved, and something else reads it in another place too. */
static bool is_shared(const join_search *f, const node *x) {
  while (op_is_movement((op)x->op) && x->op != OP_GATHER) {
    x = x->src[0];
    if (join_count_uses(f, x) > 1) return true;
  }
  return false;
}

/** True if a kernel of its own computes a piece in any case, and nothing else keeps it. */
static bool is_computed_apart(const join_search *f, const node *x) {
  return join_may_have_place(f, x) && !is_shared(f, x) && has_contraction(f, x);
}

bool join_is_gain(const join_search *f, const join_candidate *c) {
  const machine *m = machine_of_device(f->policy->machine, c->tensor->device);
  double placed = 0, copied = 0, launches = 1;
  for (size_t i = 0; i < c->parts.n; i++) {
    double bytes = join_bytes_of(c->parts.at[i].x);
    bool apart = is_computed_apart(f, c->parts.at[i].x);
    if (apart) placed += bytes;
    if (!apart) copied += bytes;
    launches -= !apart;
  }
  return placed && placed >= copied &&
         placed * MACHINE_SHARED_L3_NS / m->cores + launches * m->launch > 0;
}
