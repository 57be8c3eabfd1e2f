/* Implements the loop nests of a fusion group. The order of a nest's ranges is a chain of sets,
   each within the next: ranges of a smaller set are outside of the rest. Placing a value whose free
   ranges are a new set between two of the chain refines it; where the chain forbids that, the value
   runs further in. */
#include "schedule/fuse/loop_nests.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "schedule/fuse/cost_model.h"

#include <string.h>

static range_mask bit(size_t i) { return UINT64_C(1) << i; }

/** True if a is a subset of b. */
static bool within(range_mask a, range_mask b) { return !(a & ~b); }

nest *nests_deepest(const nests *s, range_mask free) {
  nest *deepest = NULL;
  for (; free; free &= free - 1) {
    nest *n = s->nest_of[__builtin_ctzll(free)];
    if (!deepest || n->depth > deepest->depth) deepest = n;
  }
  return deepest;
}

static const node *add_range(nests *s, nest *of, const node *size) {
  size_t k = s->n_ranges++;
  const node *range = range_make(s->g, size, KIND_LOOP);
  s->range[k] = range;
  s->nest_of[k] = of;
  s->size[k] = ix_likely(size);
  of->own |= bit(k);
  map_set(ir_arena(s->g), &s->number, range, (void *)(uintptr_t)(k + 1));
  return range;
}

static const node *add_split_range(nests *s, nest *of, const node *size, int64_t block) {
  const node *outer = add_range(s, of, ix_const(s->g, node_int(size) / block));
  const node *inner = add_range(s, of, ix_const(s->g, block));
  return ix_add(s->g, ix_scale(s->g, outer, block), inner);
}

nest *nests_add(nests *s, nest_kind kind, size_t n, const node *const sizes[],
                const int64_t blocks[], range_mask outer) {
  arena *a = ir_arena(s->g);
  size_t more = n;
  for (size_t i = 0; i < n && blocks; i++) more += blocks[i] > 1;
  if (s->n_ranges + more > MOST_RANGES) return NULL;
  nest *made = arena_calloc(a, 1, sizeof *made);
  range_mask *chain = arena_alloc(a, (more + 1) * sizeof *chain);
  const node **index = arena_alloc(a, (n + 1) * sizeof *index);
  const nest *around = nests_deepest(s, outer);
  *made = (nest){.kind = kind,
                 .outer = outer,
                 .depth = around ? around->depth + 1 : 1,
                 .chain = chain,
                 .n_index = n,
                 .index = index,
                 .extents = sizes};
  for (size_t i = 0; i < n; i++) {
    bool is_one = node_is_bits(sizes[i], 1);
    if (blocks && blocks[i] > 1)
      index[i] = add_split_range(s, made, sizes[i], blocks[i]);
    else
      index[i] = is_one ? ix_const(s->g, 0) : add_range(s, made, sizes[i]);
  }
  made->chain[made->n_order++] = made->own;
  vec_push(a, &s->at, made);
  return made;
}

range_mask nests_free_ranges(const nests *s, const node *n) {
  range_mask free = 0;
  for (uint32_t i = 0; i < n->free->n; i++) {
    uintptr_t number = (uintptr_t)map_get(&s->number, n->free->at[i]);
    if (number) free |= bit(number - 1);
  }
  return free;
}

/** The smallest set of outermost ranges that holds `part`: `part` itself if the order is still
 * free. */
static range_mask enclosing_in_nest(const nest *n, range_mask part) {
  range_mask before = 0;
  for (size_t i = 0; i < n->n_order; i++) {
    if (within(part, n->chain[i])) return within(before, part) ? part : n->chain[i];
    before = n->chain[i];
  }
  return n->own;
}

static void refine_order(nest *n, range_mask part) {
  range_mask before = 0;
  for (size_t i = 0; i < n->n_order; before = n->chain[i++]) {
    if (n->chain[i] == part || !part) return;
    if (!within(part, n->chain[i])) continue;
    if (!within(before, part) || before == part) return;
    memmove(n->chain + i + 1, n->chain + i, (n->n_order++ - i) * sizeof *n->chain);
    n->chain[i] = part;
    return;
  }
}

range_mask nests_enclosing(const nests *s, range_mask free) {
  range_mask open = 0;
  while (free) {
    const nest *n = nests_deepest(s, free);
    open |= enclosing_in_nest(n, free & n->own);
    free = (free & ~n->own) | n->outer;
  }
  return open;
}

void nests_fix_order(nests *s, range_mask free) {
  while (free) {
    nest *n = nests_deepest(s, free);
    refine_order(n, free & n->own);
    free = (free & ~n->own) | n->outer;
  }
}

double nests_trip_count(const nests *s, range_mask open) {
  double times = 1;
  for (; open; open &= open - 1) times *= s->size[__builtin_ctzll(open)];
  return times;
}

size_t nests_loop_order(const nests *s, const nest *n, const node *order[MOST_RANGES]) {
  size_t count = 0;
  range_mask listed = 0;
  for (size_t i = 0; i < n->n_order; i++) {
    for (range_mask rest = n->chain[i] & ~listed; rest; rest &= rest - 1)
      order[count++] = s->range[__builtin_ctzll(rest)];
    listed |= n->chain[i];
  }
  return count;
}
