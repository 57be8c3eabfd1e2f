/* Finds values that depend on the number of the worker, from sources to users. */
#include "ir/core/uniform.h"

#include "ir/core/op.h"
#include "ir/core/topo_sort.h"

enum { UNIFORM = 1, APART };

/** True for nodes whose sources decide; storage is looked at by its root alone. */
static bool is_computed(const node *n, void *user) {
  const uniformity *u = user;
  return !map_has(&u->known, n) && n->op != OP_AFTER && n->op != OP_ALLOC && n->op != OP_PARAM;
}

static bool is_apart(const uniformity *u, const node *n) {
  if (n->op == OP_SPECIAL) return n->text[0] != 'g';
  if (n->op == OP_LOAD) {
    const node *root = node_storage_root(n->src[0]);
    if (root->op == OP_ALLOC && !space_is_shared(root->ints[1])) return true;
  }
  for (uint32_t i = 0; i < n->n_src; i++)
    if ((uintptr_t)map_get(&u->known, n->src[i]) == APART) return true;
  return false;
}

bool uniform_size(uniformity *u, const node *size) {
  node_list order = topo_sort(u->a, &size, 1, is_computed, u);
  for (size_t i = 0; i < order.n; i++)
    if (!map_has(&u->known, order.at[i]))
      map_set(u->a, &u->known, order.at[i],
              (void *)(uintptr_t)(is_apart(u, order.at[i]) ? APART : UNIFORM));
  return (uintptr_t)map_get(&u->known, size) != APART;
}
