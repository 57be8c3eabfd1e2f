/* Places buffers with known lifetimes in one arena (dynamic storage allocation). First by birth,
   best fit: a sweep over time with a list of holes and a heap of live slots by death. If that is
   above the lower bound (the most bytes alive at once), also by size: the largest first, each into
   the smallest gap between those that live with it; the smaller plan wins. */
#include "schedule/memory/memory_plan.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Most slots for placing by size, which takes quadratic time. */
enum { MOST_BY_SIZE = 1024 };

typedef struct hole {
  uint64_t offset, bytes;
} hole;

typedef struct placing {
  arena *a;
  VEC(hole) holes;                /* by offset; none touch each other or `end` */
  VEC(memory_plan_slot *) living; /* a heap by `last`: the first to die on top */
  uint64_t end, most;             /* end of the last live slot; its maximum so far */
  uint64_t alive, least;          /* live bytes; their maximum so far */
} placing;

static uint64_t round_up(uint64_t bytes) {
  return (bytes + MEMORY_PLAN_ALIGN - 1) / MEMORY_PLAN_ALIGN * MEMORY_PLAN_ALIGN;
}

static _Noreturn void raise_out_of_memory(placing *p) {
  diag_raise(p->a->diag, TN_ERR_MEMORY, "out of memory");
}

static void remove_hole(placing *p, size_t i) {
  p->holes.n--;
  memmove(p->holes.at + i, p->holes.at + i + 1, (p->holes.n - i) * sizeof *p->holes.at);
}

static uint64_t take_hole(placing *p, uint64_t bytes) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < p->holes.n; i++) {
    bool fits = p->holes.at[i].bytes >= bytes;
    if (fits && (best == SIZE_MAX || p->holes.at[i].bytes < p->holes.at[best].bytes)) best = i;
  }
  if (best == SIZE_MAX) {
    uint64_t offset = p->end;
    if (p->end > UINT64_MAX - bytes) raise_out_of_memory(p);
    p->end += bytes;
    if (p->end > p->most) p->most = p->end;
    return offset;
  }
  hole *h = &p->holes.at[best];
  uint64_t offset = h->offset;
  h->offset += bytes;
  h->bytes -= bytes;
  if (!h->bytes) remove_hole(p, best);
  return offset;
}

static void return_hole(placing *p, uint64_t offset, uint64_t bytes) {
  size_t i = 0;
  while (i < p->holes.n && p->holes.at[i].offset < offset) i++;
  vec_push(p->a, &p->holes, (hole){0, 0});
  memmove(p->holes.at + i + 1, p->holes.at + i, (p->holes.n - 1 - i) * sizeof *p->holes.at);
  p->holes.at[i] = (hole){offset, bytes};
  hole *h = p->holes.at;
  if (i + 1 < p->holes.n && offset + bytes == h[i + 1].offset) {
    h[i].bytes += h[i + 1].bytes;
    remove_hole(p, i + 1);
  }
  if (i > 0 && h[i - 1].offset + h[i - 1].bytes == offset) {
    h[i - 1].bytes += h[i].bytes;
    remove_hole(p, i);
  }
  h = &vec_last(&p->holes);
  if (h->offset + h->bytes < p->end) return;
  p->end = h->offset; /* the last hole joins the free space beyond the end */
  p->holes.n--;
}

static void swap(memory_plan_slot **a, memory_plan_slot **b) {
  memory_plan_slot *t = *a;
  *a = *b;
  *b = t;
}

static void add_living(placing *p, memory_plan_slot *s) {
  vec_push(p->a, &p->living, s);
  memory_plan_slot **h = p->living.at;
  for (size_t i = p->living.n - 1; i && h[i]->last < h[(i - 1) / 2]->last; i = (i - 1) / 2)
    swap(&h[i], &h[(i - 1) / 2]);
}

static memory_plan_slot *first_to_die(placing *p) {
  memory_plan_slot **h = p->living.at, *top = h[0];
  size_t n = --p->living.n;
  h[0] = h[n];
  for (size_t i = 0;;) {
    size_t least = i, l = 2 * i + 1;
    for (size_t k = l; k <= l + 1 && k < n; k++)
      if (h[k]->last < h[least]->last) least = k;
    if (least == i) return top;
    swap(&h[i], &h[least]);
    i = least;
  }
}

/** Places slots in order of birth, each in the smallest hole that fits. `least` becomes the lower
   bound of any placement. */
static uint64_t place_by_life(arena *a, memory_plan_slot slots[], size_t n, uint64_t *least) {
  placing p = {.a = a};
  for (size_t i = 0; i < n; i++) {
    while (p.living.n && p.living.at[0]->last < slots[i].first) {
      const memory_plan_slot *dead = first_to_die(&p);
      return_hole(&p, dead->offset, round_up(dead->bytes));
      p.alive -= round_up(dead->bytes);
    }
    if (!slots[i].bytes) slots[i].offset = 0;
    if (!slots[i].bytes) continue;
    if (slots[i].bytes > UINT64_MAX - MEMORY_PLAN_ALIGN) raise_out_of_memory(&p);
    slots[i].offset = take_hole(&p, round_up(slots[i].bytes));
    add_living(&p, &slots[i]);
    p.alive += round_up(slots[i].bytes);
    if (p.alive > p.least) p.least = p.alive;
  }
  *least = p.least;
  return p.most;
}

static int by_size(const void *a, const void *b) {
  const memory_plan_slot *x = *(memory_plan_slot *const *)a, *y = *(memory_plan_slot *const *)b;
  return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : (x > y) - (x < y);
}

/** The offset of the smallest gap for s between those that live with it, or beyond them. */
static uint64_t smallest_gap(const memory_plan_slot *s, memory_plan_slot *const placed[],
                             size_t n) {
  uint64_t end = 0, best = 0, least = UINT64_MAX;
  for (size_t i = 0; i < n; i++) {
    const memory_plan_slot *p = placed[i];
    if (p->first > s->last || s->first > p->last) continue;
    uint64_t room = p->offset > end ? p->offset - end : 0;
    if (room >= round_up(s->bytes) && room < least) {
      best = end;
      least = room;
    }
    if (p->offset + round_up(p->bytes) > end) end = p->offset + round_up(p->bytes);
  }
  return least == UINT64_MAX ? end : best;
}

/** Places slots in order of decreasing size. UINT64_MAX if that overflows. */
static uint64_t place_by_size(arena *a, memory_plan_slot slots[], size_t n) {
  memory_plan_slot **order = arena_alloc(a, n * sizeof *order);
  memory_plan_slot **placed = arena_alloc(a, n * sizeof *placed); /* by offset */
  uint64_t total = 0;
  for (size_t i = 0; i < n; i++) order[i] = &slots[i];
  qsort(order, n, sizeof *order, by_size);
  for (size_t i = 0; i < n; i++) {
    memory_plan_slot *s = order[i];
    s->offset = s->bytes ? smallest_gap(s, placed, i) : 0;
    if (s->offset > UINT64_MAX - round_up(s->bytes)) return UINT64_MAX;
    uint64_t end = s->offset + round_up(s->bytes);
    if (end > total) total = end;
    size_t k = i;
    for (; k > 0 && placed[k - 1]->offset > s->offset; k--) placed[k] = placed[k - 1];
    placed[k] = s;
  }
  return total;
}

uint64_t memory_plan_place(arena *a, memory_plan_slot slots[], size_t n) {
  uint64_t least, total = place_by_life(a, slots, n, &least);
  if (total == least || n > MOST_BY_SIZE) return total;
  memory_plan_slot *others = arena_copy(a, slots, n * sizeof *slots);
  uint64_t other = place_by_size(a, others, n);
  if (other >= total) return total;
  memcpy(slots, others, n * sizeof *slots);
  return other;
}

bool memory_plan_overlaps(const memory_plan_slot slots[], size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n && slots[k].first <= slots[i].last; k++)
      if (slots[i].offset < slots[k].offset + slots[k].bytes &&
          slots[k].offset < slots[i].offset + slots[i].bytes)
        return true;
  return false;
}
