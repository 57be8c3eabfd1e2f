#include "ir/address.h"
#include "ir/binder.h"

enum { MOST_PARTS = 64 };

/** (of div unit) mod radix; radix 0: without the mod. */
typedef struct part {
  const node *of;
  int64_t unit, radix;
} part;

/** What is known where an element is. */
typedef struct knowledge {
  const node *stage;
  part parts[MOST_PARTS];
  size_t n;
} knowledge;

/* Parts of numbers. */

static bool divides_by(part *p, int64_t by) {
  if (p->radix && p->radix % by) return false;
  p->radix /= by;
  return !__builtin_mul_overflow(p->unit, by, &p->unit);
}

static bool leaves(part *p, int64_t by) {
  if (p->radix && p->radix % by) return false;
  p->radix = by;
  return true;
}

/** An index as a part of what no div or mod by a constant is taken of, as far as that is known. */
static part part_of(const node *x) {
  const node *chain[MOST_PARTS];
  size_t n = 0;
  part whole = {x, 1, 0}, p = whole;
  for (; n < MOST_PARTS && (p.of->op == OP_FLOORDIV || p.of->op == OP_MOD); p.of = p.of->src[0]) {
    if (!node_is_const(p.of->src[1]) || node_int(p.of->src[1]) <= 0) return whole;
    chain[n++] = p.of;
  }
  while (n-- > 0) {
    int64_t by = node_int(chain[n]->src[1]);
    if (!(chain[n]->op == OP_MOD ? leaves(&p, by) : divides_by(&p, by))) return whole;
  }
  return p;
}

/* What follows from what. */

/** The part of a number that begins at a unit. */
static const part *part_at(const knowledge *k, const node *x, int64_t unit) {
  for (size_t i = 0; i < k->n; i++)
    if (k->parts[i].of == x && k->parts[i].unit == unit && k->parts[i].radix != 1)
      return &k->parts[i];
  return NULL;
}

/** Whether all of a number is known by its parts. */
static bool is_known(const knowledge *k, const node *x) {
  for (int64_t unit = 1; x->lo < 0 || unit <= x->hi;) {
    const part *p = part_at(k, x, unit);
    if (p && !p->radix) return true;
    if (!p || __builtin_mul_overflow(unit, p->radix, &unit)) return false;
  }
  return true;
}

static bool is_outside(const knowledge *k, const node *x) {
  const node *const *ranges = stage_range(k->stage);
  for (size_t i = 0; i < stage_ranges(k->stage); i++)
    if (node_is_free_in(ranges[i], x)) return false;
  return true;
}

static bool holds(const knowledge *k, part p) {
  for (size_t i = 0; i < k->n; i++)
    if (k->parts[i].of == p.of && k->parts[i].unit == p.unit && k->parts[i].radix == p.radix)
      return true;
  return false;
}

static void learn(knowledge *k, part p) {
  if (k->n < MOST_PARTS && !holds(k, p)) k->parts[k->n++] = p;
}

/** A term of a sum, by how far one step of it goes. */
typedef struct digit {
  uint64_t weight, most;
} digit;

/** Puts a digit where weights ascend. */
static void insert(digit d[], size_t n, digit x) {
  for (; n > 0 && d[n - 1].weight > x.weight; n--) d[n] = d[n - 1];
  d[n] = x;
}

/** Whether each weight exceeds all that the smaller digits add up to. */
static bool is_mixed_radix(const digit d[], size_t n) {
  uint64_t below = 0;
  for (size_t i = 0; i < n; i++) {
    uint64_t more;
    if (d[i].weight <= below) return false;
    if (i + 1 < n && (__builtin_mul_overflow(d[i].weight, d[i].most, &more) ||
                      __builtin_add_overflow(below, more, &below)))
      return false;
  }
  return true;
}

/** Learns the unknown terms of a known sum, if it is another one for all of their values. */
static void open_sum(knowledge *k, const node *sum) {
  digit d[MOST_PARTS];
  part terms[MOST_PARTS];
  size_t n = 0;
  for (size_t i = 0; i < ix_terms(sum); i++) {
    const node *atom = ix_atom(sum, i);
    part p = part_of(atom);
    int64_t factor = ix_factor(sum, i);
    if (is_outside(k, atom) || is_known(k, p.of) || holds(k, p)) continue;
    if (n == MOST_PARTS) return;
    uint64_t weight = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
    terms[n] = p;
    insert(d, n++, (digit){weight, (uint64_t)atom->hi - (uint64_t)atom->lo});
  }
  if (!is_mixed_radix(d, n)) return;
  for (size_t i = 0; i < n; i++) learn(k, terms[i]);
}

static knowledge known_from(const node *stage, size_t n, const node *const coords[]) {
  knowledge k = {.stage = stage};
  for (size_t i = 0; i < n; i++) learn(&k, part_of(coords[i]));
  return k;
}

static knowledge coordinates_of(const node *stage, size_t value) {
  return known_from(stage, stage_rank(stage, value), stage_coords(stage, value));
}

/** Learns all that follows. */
static void conclude(knowledge *k) {
  for (size_t before = 0; before < k->n;) {
    before = k->n;
    for (size_t i = 0; i < before; i++)
      if (is_known(k, k->parts[i].of)) open_sum(k, k->parts[i].of);
  }
}

bool stage_range_follows(const node *stage, const node *range, size_t n,
                         const node *const coords[]) {
  knowledge k = known_from(stage, n, coords);
  conclude(&k);
  return is_known(&k, range);
}

bool stage_writes_once(const node *stage, size_t value) {
  knowledge k = coordinates_of(stage, value);
  conclude(&k);
  for (size_t i = 0; i < stage_level(stage, value); i++)
    if (!is_known(&k, stage_range(stage)[i])) return false;
  return true;
}

/** Where an element lies among all: it follows, and div and mod of one sum meet in it again. */
static const node *place_of(ir *g, const node *stage, size_t value) {
  const node *at = address_of(g, stage_rank(stage, value), stage_extents(stage, value),
                              stage_coords(stage, value));
  return at->op == OP_WHERE ? at->src[1] : at; /* what is outside is not written */
}

const node *stage_overwritten_along(ir *g, const node *stage, size_t value) {
  knowledge k = coordinates_of(stage, value);
  learn(&k, part_of(place_of(g, stage, value)));
  conclude(&k);
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (node_is_free_in(r, stage_value(stage, value)) && !is_known(&k, r)) return r;
  }
  return NULL;
}
