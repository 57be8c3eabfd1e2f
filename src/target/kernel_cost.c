/* Implements the cost model of a scheduled kernel. Traffic: the data of an access stays in a cache
   within the outermost loop of which one iteration, with everything that it accesses, fits; loops
   around that one read it again. A read of data that an earlier read of such an iteration covers
   causes none. Lines whose addresses are far powers of two apart compete for few
   sets of a cache; if they do not fit these, they do not stay. */
#include "target/kernel_cost.h"

#include "target/hardware.h"
#include "target/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_SETS = 1 << 14, /* of a cache whose sets are looked at */
  MOST_SEGMENTS = 1 << 10,
  MOST_PLACED = 1 << 14 /* lines that are placed in sets for one footprint */
};

#define NOT_COVERED SIZE_MAX

typedef struct cache {
  double bytes; /* that stay beside everything else; ways are counted likewise */
  size_t sets;
  double bytes_per_cycle; /* bandwidth from the next level */
} cache;

typedef struct model {
  const kernel_summary *s;
  double line;
  double *inside;  /* of each loop: bytes of a cache that one iteration occupies */
  size_t *covered; /* of each access: the innermost loop in an iteration of which an earlier access
                      covers its data; NOT_COVERED: none */
  uint16_t *held;  /* scratch: lines that fall into each set */
} model;

static double larger(double a, double b) { return a > b ? a : b; }

/* Footprints. */

/** Lines that an access touches: segments of consecutive lines, apart by strides. */
typedef struct segments {
  double lines; /* of each */
  double count;
  size_t n;
  summary_stride apart[SUMMARY_MOST_STRIDES];
} segments;

static int compare_strides(const void *a, const void *b) {
  const summary_stride *x = a, *y = b;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/** True for copies, lanes, and loops inside of a loop. */
static bool is_within_iteration(const kernel_summary *s, const summary_stride *r, size_t loop) {
  return !r->loop || (r->loop != loop && summary_is_inside(s, r->loop, loop));
}

/** The lines of an access in one iteration of a loop; `whole`: in all iterations of a run. */
static segments segments_of(const model *m, const summary_access *x, size_t loop, bool whole) {
  summary_stride along[SUMMARY_MOST_STRIDES];
  segments f = {.count = 1};
  double run = x->element;
  size_t n = 0;
  for (size_t i = 0; i < x->n; i++) {
    const summary_stride *r = &x->along[i];
    bool counts = is_within_iteration(m->s, r, loop) || (whole && r->loop == loop);
    if (counts && r->trips > 1) along[n++] = *r;
  }
  qsort(along, n, sizeof *along, compare_strides);
  for (size_t i = 0; i < n; i++) {
    summary_stride *before = f.n ? &f.apart[f.n - 1] : NULL;
    double times = before ? along[i].bytes / before->bytes : 0;
    if (along[i].bytes <= larger(run, m->line))
      run += along[i].bytes * (along[i].trips - 1);
    else if (before && !before->is_irregular && !along[i].is_irregular && times <= before->trips &&
             times == floor(times)) /* of one window */
      before->trips += times * (along[i].trips - 1);
    else
      f.apart[f.n++] = along[i];
  }
  for (size_t i = 0; i < f.n; i++) f.count *= f.apart[i].trips;
  f.lines = run <= m->line ? 1 : run / m->line + 0.5; /* begins in the middle of a line */
  return f;
}

/** Counts the lines of segments in each set of a cache. */
static void place_in_sets(model *m, const segments *f, const cache *c) {
  size_t index[SUMMARY_MOST_STRIDES] = {0}, width = (size_t)ceil(f->lines);
  memset(m->held, 0, c->sets * sizeof *m->held);
  for (bool more = true; more;) {
    double address = 0;
    for (size_t k = 0; k < f->n; k++) address += (double)index[k] * f->apart[k].bytes;
    for (size_t i = 0; i < width; i++) m->held[((size_t)(address / m->line) + i) % c->sets]++;
    more = false;
    for (size_t k = 0; k < f->n && !more; k++) {
      more = (double)++index[k] < f->apart[k].trips;
      if (!more) index[k] = 0;
    }
  }
}

/** Share of the lines of segments that fall into sets which hold all of their lines. */
static double share_that_stays(model *m, const segments *f, const cache *c) {
  double ways = c->bytes / m->line / (double)c->sets, crowded = 0, all = 0;
  bool is_small = f->count <= ways || f->lines >= (double)c->sets;
  if (is_small || f->count > MOST_SEGMENTS || c->sets > MOST_SETS ||
      f->count * ceil(f->lines) > MOST_PLACED)
    return 1;
  place_in_sets(m, f, c);
  for (size_t i = 0; i < c->sets; i++) {
    all += m->held[i];
    if (m->held[i] > ways) crowded += m->held[i];
  }
  return 1 - crowded / all;
}

/** Distinct lines of an access in a loop. */
static double lines_of(const summary_access *x, const segments *f, double line) {
  double lines = f->lines * f->count, most = x->size / line + 1;
  return lines < most ? lines : most;
}

/** Lines of a cache that an access occupies in an iteration of a loop. Lines that do not stay count
    as a cache of their own. */
static double lines_occupied(model *m, const summary_access *x, size_t loop, const cache *c) {
  segments f = segments_of(m, x, loop, false);
  double stays = share_that_stays(m, &f, c);
  return lines_of(x, &f, m->line) + (1 - stays) * c->bytes / m->line;
}

/* Traffic. */

static size_t common_loop(const kernel_summary *s, size_t a, size_t b) {
  while (a != b)
    if (s->loops.at[a].depth >= s->loops.at[b].depth)
      a = s->loops.at[a].parent;
    else
      b = s->loops.at[b].parent;
  return a;
}

/** The bytes from the first to behind the last that an access touches in an iteration of a loop;
    0: along a range whose distance is a guess. */
static double extent_of(const model *m, const summary_access *x, size_t loop) {
  double extent = x->element;
  for (size_t i = 0; i < x->n; i++) {
    const summary_stride *r = &x->along[i];
    if (!is_within_iteration(m->s, r, loop)) continue;
    if (r->is_irregular) return 0;
    extent += (r->trips - 1) * r->bytes;
  }
  return extent;
}

/** True if two accesses move alike along the loops around an iteration of `loop`. */
static bool moves_alike(const model *m, const summary_access *x, const summary_access *y,
                        size_t loop) {
  size_t n = 0, found = 0;
  for (size_t i = 0; i < y->n; i++) n += !is_within_iteration(m->s, &y->along[i], loop);
  for (size_t i = 0; i < x->n; i++) {
    if (is_within_iteration(m->s, &x->along[i], loop)) continue;
    size_t k = 0;
    while (k < y->n &&
           (y->along[k].loop != x->along[i].loop || y->along[k].bytes != x->along[i].bytes))
      k++;
    if (k == y->n) return false;
    found++;
  }
  return found == n;
}

/** True if y touches all data that x does in an iteration of `loop`. */
static bool covers(const model *m, const summary_access *y, const summary_access *x, size_t loop) {
  double low = x->offset - y->offset;
  double size_x = extent_of(m, x, loop), size_y = extent_of(m, y, loop);
  if (!size_x || !size_y || low < 0 || low + size_x > size_y || !moves_alike(m, x, y, loop))
    return false;
  segments f = segments_of(m, x, loop, false), g = segments_of(m, y, loop, false);
  return lines_of(x, &f, m->line) <= lines_of(y, &g, m->line);
}

/** True if two accesses of a loop have the same addresses. */
static bool is_same_data(const summary_access *x, const summary_access *y) {
  bool same = y->loop == x->loop && y->n == x->n && y->offset == x->offset;
  for (size_t i = 0; same && i < x->n; i++)
    same = x->along[i].loop == y->along[i].loop && x->along[i].bytes == y->along[i].bytes &&
           x->along[i].trips == y->along[i].trips;
  return same;
}

static void find_covered(model *m) {
  const kernel_summary *s = m->s;
  for (size_t i = 0; i < s->accesses.n; i++) {
    const summary_access *x = &s->accesses.at[i];
    m->covered[i] = NOT_COVERED;
    for (size_t k = 0; k < i; k++) {
      const summary_access *y = &s->accesses.at[k];
      if (y->array != x->array || y->component != x->component || y->is_store != x->is_store)
        continue;
      size_t loop = common_loop(s, x->loop, y->loop);
      bool is_closer = m->covered[i] == NOT_COVERED ||
                       s->loops.at[loop].depth > s->loops.at[m->covered[i]].depth;
      if (is_closer && (is_same_data(x, y) || (!x->is_store && covers(m, y, x, loop))))
        m->covered[i] = loop;
    }
  }
}

/** Adds the lines of each access to its loop and those around. */
static void find_inside(model *m, const cache *c) {
  memset(m->inside, 0, m->s->loops.n * sizeof *m->inside);
  for (size_t i = 0; i < m->s->accesses.n; i++) {
    const summary_access *x = &m->s->accesses.at[i];
    for (size_t l = x->loop; l != m->covered[i]; l = m->s->loops.at[l].parent) {
      m->inside[l] += lines_occupied(m, x, l, c) * m->line;
      if (!l) break;
    }
  }
}

/** Lines of an access that its innermost loop loses from a cache in each iteration, as they compete
    with each other for few sets. */
static double lines_lost(model *m, const summary_access *x, const cache *c) {
  segments once = segments_of(m, x, x->loop, false);
  return (1 - share_that_stays(m, &once, c)) * lines_of(x, &once, m->line);
}

/** Bytes of an access that come from beyond a cache, and of a store that go there. */
static double traffic_of(model *m, const summary_access *x, const cache *c) {
  size_t fits = x->loop;
  for (size_t l = x->loop; l; l = m->s->loops.at[l].parent)
    if (m->inside[m->s->loops.at[l].parent] <= c->bytes)
      fits = m->s->loops.at[l].parent;
    else if (m->inside[l] <= c->bytes)
      fits = l;
  const summary_loop *l = &m->s->loops.at[fits];
  segments f = segments_of(m, x, fits, true);
  double lines = lines_of(x, &f, m->line) * (l->trips > 0 ? l->runs / l->trips : 0);
  double bytes = (lines + lines_lost(m, x, c) * m->s->loops.at[x->loop].runs) * m->line;
  return x->is_store ? MACHINE_STORED_LINE_TRANSFERS * bytes : bytes;
}

/** Times that the lines of an access take longer than lines in order, which prefetching brings
   near: runs in the innermost loop begin with lines that nothing foresees. */
static double delay_of_lines(const model *m, const summary_access *x) {
  segments run = segments_of(m, x, x->loop, true);
  if (run.count < 2) return 1;
  double late = MACHINE_UNFORESEEN_LINES < run.lines ? MACHINE_UNFORESEEN_LINES : run.lines;
  return 1 + late / run.lines * (MACHINE_UNFORESEEN_LINE_DELAY - 1);
}

/** True if an earlier read of an iteration covers an access, and a cache keeps its data until then.
 */
static bool is_held(const model *m, size_t access, const cache *c) {
  size_t covered = m->covered[access];
  return covered != NOT_COVERED && m->inside[covered] <= c->bytes;
}

/** Bytes that come from beyond a cache. Data of a kernel that fits comes in once, but for the last
    cache, which keeps it from kernel to kernel. */
static double traffic(model *m, const cache *c, bool is_last) {
  double bytes = 0;
  find_inside(m, c);
  bool fits = m->inside[0] <= c->bytes;
  for (size_t i = 0; i < m->s->accesses.n && !(fits && is_last); i++) {
    const summary_access *x = &m->s->accesses.at[i];
    if (!is_held(m, i, c) && !(fits && x->array->op != OP_PARAM))
      bytes += traffic_of(m, x, c) * (is_last && !x->is_store ? delay_of_lines(m, x) : 1);
  }
  return bytes;
}

/* Instructions. */

static double loop_cycles(const summary_loop *l) {
  double issued = l->operations + l->scalars + l->loads + l->stores + l->lanes_moved +
                  MACHINE_LOOP_INSTRUCTIONS;
  double t = l->operations / MACHINE_ISSUED_PER_CYCLE;
  t = larger(t, (l->loads + l->lanes_moved) / MACHINE_ISSUED_PER_CYCLE);
  t = larger(t, l->stores / MACHINE_STORED_PER_CYCLE);
  t = larger(t, issued / MACHINE_SLOTS_PER_CYCLE);
  if (l->chain > 0) { /* short reductions overlap with the next ones */
    double overlapped = MACHINE_REORDERED_INSTRUCTIONS / (issued * l->steps);
    t = larger(t, overlapped > 1 ? l->chain / overlapped : l->chain);
  }
  return l->depth ? t + MACHINE_LOOP_CYCLES : t;
}

/** The loop around a loop, or itself, that is divided among threads; 0: none. */
static size_t divided_loop(const kernel_summary *s, size_t loop) {
  while (loop && !s->loops.at[loop].is_divided) loop = s->loops.at[loop].parent;
  return loop;
}

/** Instructions of the slowest of `threads` threads over an equal share of all. Each thread does
    all of the work outside of divided loops. */
static double imbalance_of(const kernel_summary *s, double threads) {
  double all = 0, slowest = 0;
  for (size_t i = 0; i < s->loops.n; i++) {
    double cycles = loop_cycles(&s->loops.at[i]) * s->loops.at[i].runs;
    size_t divided = divided_loop(s, i);
    double units = divided ? larger(s->loops.at[divided].trips, 1) : 1;
    all += cycles;
    slowest += cycles * ceil(units / threads) / units;
  }
  return all > 0 ? slowest * threads / all : 1;
}

/** Cycles that the loops wait for addresses: where most iterations of the innermost loop around
    an access read from another page, and they are more than the TLB holds. */
static double page_cycles(const model *m, double page) {
  double cycles = 0;
  for (size_t i = 0; i < m->s->accesses.n; i++) {
    const summary_access *x = &m->s->accesses.at[i];
    bool is_far = false;
    for (size_t k = 0; k < x->n; k++)
      is_far |= x->loop && x->along[k].loop == x->loop &&
                hardware_pages_read(page, x->along[k].bytes, x->along[k].trips) > MACHINE_TLB_PAGES;
    if (is_far && !x->is_store && m->covered[i] != x->loop)
      cycles += MACHINE_TLB_MISS_CYCLES * m->s->loops.at[x->loop].runs;
  }
  return cycles;
}

/** Bytes of all arrays that a kernel accesses. */
static double bytes_of_arrays(const kernel_summary *s) {
  double bytes = 0;
  for (size_t i = 0; i < s->accesses.n; i++) {
    const summary_access *x = &s->accesses.at[i];
    size_t k = 0;
    while (s->accesses.at[k].array != x->array || s->accesses.at[k].component != x->component) k++;
    if (k == i) bytes += x->size;
  }
  return bytes;
}

/** Cycles that loads wait for addresses beyond the second TLB, which keeps pages as a cache keeps
    lines. */
static double walk_cycles(const model *m, double page) {
  model pages = *m;
  pages.line = page;
  cache tlb = {MACHINE_FAR_TLB_PAGES * page, 1, 1};
  double bytes = 0;
  if (bytes_of_arrays(m->s) <= tlb.bytes) return 0;
  find_inside(&pages, &tlb);
  for (size_t i = 0; i < m->s->accesses.n; i++) {
    const summary_access *x = &m->s->accesses.at[i];
    if (!x->is_store && !is_held(&pages, i, &tlb)) bytes += traffic_of(&pages, x, &tlb);
  }
  return bytes / page * MACHINE_PAGE_WALK_CYCLES;
}

double kernel_cost_searched(const kernel_cost *c) { return c->total * (1 + c->imbalance) / 2; }

kernel_cost kernel_cost_of(arena *a, const kernel_summary *s, const target *t) {
  arena_mark before = arena_save(a);
  tn_hardware h = hardware_with_defaults(&t->hardware);
  double line = (double)h.line_bytes, cycle = 1 / MACHINE_CYCLES_PER_NS;
  double l1 = hardware_l1_resident_bytes(&h);
  double l2 = MACHINE_L2_RESIDENT_SHARE * (double)h.l2_bytes, l3 = (double)h.l3_bytes;
  const cache caches[COST_LEVELS] = {
      {l1, h.page_bytes / h.line_bytes, MACHINE_L2_BYTES_PER_CYCLE},
      {l2, (size_t)(h.l2_bytes / h.line_bytes / MACHINE_FAR_CACHE_WAYS),
       MACHINE_L3_BYTES_PER_CYCLE},
      {l3, (size_t)(h.l3_bytes / h.line_bytes / MACHINE_FAR_CACHE_WAYS),
       MACHINE_MEMORY_BYTES_PER_CYCLE}};
  model m = {.s = s,
             .line = line,
             .inside = arena_alloc(a, s->loops.n * sizeof *m.inside),
             .covered = arena_calloc(a, s->accesses.n + 1, sizeof *m.covered),
             .held = arena_alloc(a, MOST_SETS * sizeof *m.held)};
  kernel_cost cost = {0};
  double power = MACHINE_BOTTLENECK_POWER;
  find_covered(&m);
  for (size_t i = 0; i < s->loops.n; i++)
    cost.core += loop_cycles(&s->loops.at[i]) * s->loops.at[i].runs;
  cost.core += page_cycles(&m, (double)h.page_bytes) + walk_cycles(&m, (double)h.page_bytes);
  cost.core *= cycle;
  double sum = pow(cost.core, power);
  for (size_t k = 0; k < COST_LEVELS; k++) {
    cost.memory[k] =
        traffic(&m, &caches[k], k + 1 == COST_LEVELS) / caches[k].bytes_per_cycle * cycle;
    sum += pow(cost.memory[k], power);
  }
  cost.total = pow(sum, 1 / power) + MACHINE_EXPOSED_TRAFFIC * (cost.memory[COST_LEVELS - 2] +
                                                                cost.memory[COST_LEVELS - 1]);
  cost.imbalance = imbalance_of(s, (double)h.cores);
  arena_rewind(a, before);
  return cost;
}
