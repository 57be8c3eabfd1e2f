/* Plans a program's scratch memory: finds the live ranges of its own arrays and places them by the
   interval packing of the memory plan. An array is live from its ALLOC (its allocation) to its last
   access; an access inside a loop that does not contain the ALLOC counts to the end of that loop.
   Arrays that are never read get no memory. */
#include "codegen/scratch_plan.h"

#include "base/vec.h"
#include "schedule/memory/memory_plan.h"

#include <inttypes.h>

/** An array and its live range, as positions in the list. */
typedef struct live_range {
  const node *alloc;
  size_t depth; /* loops around the ALLOC */
  memory_plan_slot slot;
  bool is_read;
} live_range;

typedef struct scratch {
  arena *a;
  const node *linear;
  map roots;        /* AFTER → its storage root */
  map lives;        /* ALLOC → live_range */
  size_t *end;      /* of the loop that each RANGE opens, by position */
  VEC(size_t) open; /* positions of the RANGEs open at the current position */
  VEC(live_range *) all;
  uint64_t warp_bytes, group_bytes; /* of shared arrays, each in a place of its own */
} scratch;

/** Finds the position of each loop's END. */
static void find_loop_ends(scratch *s) {
  VEC(size_t) open = {0};
  s->end = arena_calloc(s->a, s->linear->n_src, sizeof *s->end);
  for (size_t i = 0; i < s->linear->n_src; i++) {
    if (s->linear->src[i]->op == OP_RANGE) vec_push(s->a, &open, i);
    if (s->linear->src[i]->op == OP_END) s->end[vec_pop(&open)] = i;
  }
}

static uint64_t bytes_of(scratch *s, const node *alloc) {
  uint64_t bytes = dtype_bytes((dtype)alloc->dtype), all;
  int64_t most = alloc->src[0]->hi;
  if (most < 1) most = 1;
  if (!__builtin_mul_overflow((uint64_t)most, bytes, &all) && all <= INT64_MAX / 2) return all;
  diag_raise(s->a->diag, TN_ERR_UNSUPPORTED,
             "alloc (node %" PRIu64
             ") of up to %lld elements of %s is too large for scratch memory",
             alloc->id, (long long)most, dtype_name((dtype)alloc->dtype));
}

static void begin_live_range(scratch *s, const node *alloc, size_t at) {
  live_range *x = arena_calloc(s->a, 1, sizeof *x);
  *x = (live_range){.alloc = alloc, .depth = s->open.n};
  x->slot = (memory_plan_slot){.first = at, .last = at, .bytes = bytes_of(s, alloc)};
  map_set(s->a, &s->lives, alloc, x);
  vec_push(s->a, &s->all, x);
}

/** The storage root of an access. Chains of AFTERs are long: roots are memoised. */
static const node *root_of(scratch *s, const node *storage) {
  const node *root = storage;
  while (root->op == OP_AFTER && !map_has(&s->roots, root)) root = root->src[0];
  if (root->op == OP_AFTER) root = map_get(&s->roots, root);
  for (; storage->op == OP_AFTER && !map_has(&s->roots, storage); storage = storage->src[0])
    map_set(s->a, &s->roots, storage, (void *)root);
  return root;
}

static void extend_live_range(scratch *s, const node *access, size_t at) {
  live_range *x = map_get(&s->lives, root_of(s, access->src[0]));
  if (!x) return;
  x->slot.last = s->open.n > x->depth ? s->end[s->open.at[x->depth]] : at;
  x->is_read |= access->op == OP_LOAD;
}

static void add_instruction(scratch *s, const node *n, size_t at) {
  switch (n->op) {
  case OP_RANGE: vec_push(s->a, &s->open, at); return;
  case OP_END: s->open.n--; return;
  case OP_ALLOC:
    if (n->ints[1] == SPACE_SCRATCH) begin_live_range(s, n, at);
    if (n->ints[1] == SPACE_WARP) s->warp_bytes += bytes_of(s, n);
    if (n->ints[1] == SPACE_GROUP) s->group_bytes += bytes_of(s, n);
    return;
  case OP_LOAD:
  case OP_STORE: extend_live_range(s, n, at); return;
  default: return;
  }
}

scratch_plan scratch_plan_make(arena *a, const node *linear) {
  scratch s = {.a = a, .linear = linear};
  scratch_plan plan = {0};
  find_loop_ends(&s);
  for (size_t i = 0; i < linear->n_src; i++) add_instruction(&s, linear->src[i], i);
  memory_plan_slot *slots = arena_alloc(a, (s.all.n + 1) * sizeof *slots);
  const node **allocs = arena_alloc(a, (s.all.n + 1) * sizeof *allocs);
  size_t n = 0;
  for (size_t i = 0; i < s.all.n; i++) {
    if (!s.all.at[i]->is_read) continue;
    slots[n] = s.all.at[i]->slot;
    allocs[n++] = s.all.at[i]->alloc;
  }
  plan.bytes = memory_plan_place(a, slots, n);
  plan.warp_bytes = s.warp_bytes;
  plan.group_bytes = s.group_bytes;
  for (size_t i = 0; i < n; i++)
    map_set(a, &plan.offsets, allocs[i], (void *)(uintptr_t)(slots[i].offset + 1));
  return plan;
}

int64_t scratch_plan_offset(const scratch_plan *p, const node *alloc) {
  return (int64_t)(uintptr_t)map_get(&p->offsets, alloc) - 1;
}
