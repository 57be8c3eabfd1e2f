/* Implements the proofs that a STAGE (array builder) writes no element twice, as a dataflow over
   digits iterated to a fixed point: a coordinate determines its digits, all digits of an index
   determine the index, an index that is a mixed-radix sum determines its terms, and a DISTINCT its
   key. A negative DISTINCT determines nothing, but is no element. */
#include "ir/index/write_once.h"

#include "ir/core/affine.h"
#include "ir/core/binder_layout.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_proof.h"
#include "ir/index/row_major_address.h"

enum { MOST_PARTS = 64 };

/** A digit of a number: (of div unit) mod radix; radix 0: without the mod. */
typedef struct part {
  const node *of;
  int64_t unit, radix;
} part;

/** Digits that are determined by the coordinates of an element. */
typedef struct knowledge {
  const node *stage;
  part parts[MOST_PARTS];
  size_t n;
} knowledge;

/** Digit p div by; false if that is no digit. */
static bool divide_part(part *p, int64_t by) {
  if (p->radix && p->radix % by) return false;
  p->radix /= by;
  return !__builtin_mul_overflow(p->unit, by, &p->unit);
}

/** Digit p mod by; false if that is no digit. */
static bool reduce_part(part *p, int64_t by) {
  if (p->radix && p->radix % by) return false;
  p->radix = by;
  return true;
}

/** An index as a digit of the number below its chain of divs and mods by constants; if the chain is
    no digit, the index itself. */
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
    if (!(chain[n]->op == OP_MOD ? reduce_part(&p, by) : divide_part(&p, by))) return whole;
  }
  return p;
}

/** The known digit of x that begins at `unit`; NULL if there is none. */
static const part *find_part(const knowledge *k, const node *x, int64_t unit) {
  for (size_t i = 0; i < k->n; i++)
    if (k->parts[i].of == x && k->parts[i].unit == unit && k->parts[i].radix != 1)
      return &k->parts[i];
  return NULL;
}

/** True if the known digits of x, from the lowest on, make up all of it. */
static bool is_known(const knowledge *k, const node *x) {
  for (int64_t unit = 1; x->lo < 0 || unit <= x->hi;) {
    const part *p = find_part(k, x, unit);
    if (p && !p->radix) return true;
    if (!p || __builtin_mul_overflow(unit, p->radix, &unit)) return false;
  }
  return true;
}

/** True if x depends on no range of the stage. */
static bool is_invariant(const knowledge *k, const node *x) {
  const node *const *ranges = stage_range(k->stage);
  for (size_t i = 0; i < stage_n_ranges(k->stage); i++)
    if (node_is_free_in(ranges[i], x)) return false;
  return true;
}

static bool has_part(const knowledge *k, part p) {
  for (size_t i = 0; i < k->n; i++)
    if (k->parts[i].of == p.of && k->parts[i].unit == p.unit && k->parts[i].radix == p.radix)
      return true;
  return false;
}

static void add_part(knowledge *k, part p) {
  if (k->n < MOST_PARTS && !has_part(k, p)) k->parts[k->n++] = p;
}

/** A term of a sum: its absolute coefficient and the width of its bounds. */
typedef struct digit {
  uint64_t weight, most;
} digit;

/** Inserts a digit in ascending order of weights. */
static void insert_digit(digit d[], size_t n, digit x) {
  for (; n > 0 && d[n - 1].weight > x.weight; n--) d[n] = d[n - 1];
  d[n] = x;
}

/** True if each weight exceeds the largest sum of the smaller digits: distinct digits give distinct
    sums. */
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

/** Adds the unknown terms of a known sum, if they are the digits of a mixed-radix number. */
static void add_terms_of(knowledge *k, const node *sum) {
  digit d[MOST_PARTS];
  part terms[MOST_PARTS];
  size_t n = 0;
  for (size_t i = 0; i < ix_terms(sum); i++) {
    const node *atom = ix_atom(sum, i);
    part p = part_of(atom);
    int64_t factor = ix_coefficient_at(sum, i);
    if (is_invariant(k, atom) || is_known(k, p.of) || has_part(k, p)) continue;
    if (n == MOST_PARTS) return;
    uint64_t weight = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
    terms[n] = p;
    insert_digit(d, n++, (digit){weight, (uint64_t)atom->hi - (uint64_t)atom->lo});
  }
  if (!is_mixed_radix(d, n)) return;
  for (size_t i = 0; i < n; i++) add_part(k, terms[i]);
}

static knowledge knowledge_of(const node *stage, size_t n, const node *const coords[]) {
  knowledge k = {.stage = stage};
  for (size_t i = 0; i < n; i++) add_part(&k, part_of(coords[i]));
  return k;
}

static knowledge knowledge_of_value(const node *stage, size_t value) {
  return knowledge_of(stage, stage_rank(stage, value), stage_coords(stage, value));
}

/** Adds what a known DISTINCT is equal to, and its key if the others are known too. */
static void add_key_of(knowledge *k, const node *x) {
  add_part(k, part_of(x->src[0]));
  for (uint32_t i = 2; i < x->n_src; i++)
    if (!is_invariant(k, x->src[i]) && !is_known(k, x->src[i])) return;
  add_part(k, part_of(x->src[1]));
}

/** Adds digits until no new one follows. */
static void close_knowledge(knowledge *k) {
  for (size_t before = 0; before < k->n;) {
    before = k->n;
    for (size_t i = 0; i < before; i++) {
      const node *x = k->parts[i].of;
      if (!is_known(k, x)) continue;
      add_terms_of(k, x);
      if (x->op == OP_DISTINCT) add_key_of(k, x);
    }
  }
}

bool stage_range_is_determined(const node *stage, const node *range, size_t n,
                               const node *const coords[]) {
  knowledge k = knowledge_of(stage, n, coords);
  close_knowledge(&k);
  return is_known(&k, range);
}

bool stage_writes_once(const node *stage, size_t value) {
  knowledge k = knowledge_of_value(stage, value);
  close_knowledge(&k);
  for (size_t i = 0; i < stage_loop_depth(stage, value); i++)
    if (!is_known(&k, stage_range(stage)[i])) return false;
  return true;
}

static bool share_range(const node *x, const node *y) {
  for (uint32_t i = 0; i < x->free->n; i++)
    if (node_is_free_in(x->free->at[i], y)) return true;
  return false;
}

bool stages_write_apart(ir *g, const node *a, size_t value, const node *b, size_t other) {
  for (size_t p = 0; p < stage_rank(a, value); p++) {
    const node *x = stage_coords(a, value)[p], *y = stage_coords(b, other)[p];
    if (share_range(x, y)) continue;
    if (ix_prove_lt(g, x, y) || ix_prove_lt(g, y, x)) return true;
  }
  return false;
}

/** The row-major address of a value's element, in which div and mod of one sum recombine. */
static const node *element_address(ir *g, const node *stage, size_t value) {
  const node *at = row_major_address(g, stage_rank(stage, value), stage_extents(stage, value),
                                     stage_coords(stage, value));
  return at->op == OP_WHERE ? at->src[1] : at; /* elements outside are not written */
}

const node *stage_overwriting_range(ir *g, const node *stage, size_t value) {
  knowledge k = knowledge_of_value(stage, value);
  add_part(&k, part_of(element_address(g, stage, value)));
  close_knowledge(&k);
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (node_is_free_in(r, stage_value(stage, value)) && !is_known(&k, r)) return r;
  }
  return NULL;
}

/** True if a·p and b·q are one size. */
static bool products_are_equal(const node *a, int64_t p, const node *b, int64_t q) {
  int64_t left, right;
  bool is_equal = ix_terms(a) == ix_terms(b);
  for (size_t i = 0; i <= ix_terms(a) && is_equal; i++) {
    bool is_term = i < ix_terms(a);
    int64_t of_a = is_term ? ix_coefficient_at(a, i) : ix_offset(a);
    int64_t of_b = is_term ? ix_coefficient(b, ix_atom(a, i)) : ix_offset(b);
    is_equal = !__builtin_mul_overflow(of_a, p, &left) &&
               !__builtin_mul_overflow(of_b, q, &right) && left == right;
  }
  return is_equal;
}

/** An index that counts from 0 to top·unit − 1. */
typedef struct counter {
  const node *top; /* the extent of the slowest range */
  int64_t unit;
} counter;

/** Reads an index that is a range, or a sum of ranges in mixed radix, each with the product of the
    smaller extents as its coefficient. The extent of the slowest one may vary. False for others. */
static bool read_counter(const node *x, counter *c) {
  *c = (counter){x->op == OP_RANGE ? range_extent(x) : NULL, 1};
  for (size_t left = x->op == OP_RANGE || ix_offset(x) ? 0 : ix_terms(x); left; left--) {
    size_t i = 0;
    while (i < ix_terms(x) && ix_coefficient_at(x, i) != c->unit) i++;
    if (i == ix_terms(x) || ix_atom(x, i)->op != OP_RANGE) return false;
    const node *extent = range_extent(ix_atom(x, i));
    if (left == 1)
      c->top = extent;
    else if (!node_is_const(extent) || __builtin_mul_overflow(c->unit, node_int(extent), &c->unit))
      return false;
  }
  return c->top != NULL;
}

/** True if an index is proved to be 0 and the size to be 1: other indices are outside. */
static bool is_only_index(const node *x, const node *size) {
  return node_is_bits(size, 1) && !x->lo && !x->hi;
}

/** True if the ranges in an index are all a STAGE's: it takes all its values in the STAGE's loops.
 */
static bool has_own_ranges(const node *s, const node *x) {
  for (size_t i = 0; i < x->free->n; i++) {
    size_t k = 0;
    while (k < stage_n_ranges(s) && stage_range(s)[k] != x->free->at[i]) k++;
    if (k == stage_n_ranges(s)) return false;
  }
  return true;
}

bool stage_is_bijection(const node *s, size_t value) {
  const node *const *x = stage_coords(s, value), *const *dims = stage_extents(s, value);
  size_t used = 0;
  counter c;
  for (size_t i = 0; i < stage_rank(s, value); i++)
    if (!is_only_index(x[i], dims[i]) && (!read_counter(x[i], &c) || !has_own_ranges(s, x[i]) ||
                                          !products_are_equal(dims[i], 1, c.top, c.unit)))
      return false;
  for (size_t k = 0; k < stage_n_ranges(s); k++) {
    size_t times = 0;
    for (size_t i = 0; i < stage_rank(s, value); i++)
      times += node_is_free_in(stage_range(s)[k], x[i]);
    if (times > 1) return false;
    used += times;
  }
  return used == stage_n_ranges(s);
}

/** The coordinate of an array that is the digit of a number which begins at `unit`; the rank: none.
 */
static size_t find_digit(const node *s, size_t value, const node *number, int64_t unit) {
  const node *const *x = stage_coords(s, value);
  size_t i = 0, rank = stage_rank(s, value);
  for (; i < rank; i++) {
    part p = part_of(x[i]);
    if (p.of == number && p.unit == unit && p.radix != 1) break;
  }
  return i;
}

/** True if a coordinate takes each value of an axis, given that its number counts to the axis times
   the coordinate's unit. */
static bool takes_all(const node *x, const node *size) {
  int64_t radix = part_of(x).radix;
  return !radix || size->hi <= radix;
}

/** True if some of an array's coordinates are all digits of a number that the STAGE's ranges count,
    each with the values of its axis. Counts them in *n, but for the only indices of their axes. */
static bool takes_digits(const node *s, size_t value, const node *number, size_t *n) {
  const node *const *dims = stage_extents(s, value);
  counter c;
  int64_t unit = 1;
  if (!read_counter(number, &c) || !has_own_ranges(s, number)) return false;
  for (size_t k = 0; k < stage_rank(s, value); k++) {
    size_t i = find_digit(s, value, number, unit);
    if (i == stage_rank(s, value)) return false;
    const node *x = stage_coords(s, value)[i];
    *n += !is_only_index(x, dims[i]);
    if (products_are_equal(c.top, c.unit, dims[i], unit)) return takes_all(x, dims[i]);
    if (!node_is_bits(dims[i], (uint64_t)part_of(x).radix) ||
        __builtin_mul_overflow(unit, node_int(dims[i]), &unit))
      return false;
  }
  return false;
}

/** True if a coordinate is the first digit of its number. */
static bool is_first_digit(const node *x) {
  part p = part_of(x);
  return p.unit == 1 && p.radix != 1;
}

/* Each range counts one number, so no coordinate is a digit of two numbers, and n is the rank just
   if each coordinate is covered. */

bool stage_spans_array(const node *s, size_t value) {
  size_t n = 0, rank = stage_rank(s, value);
  if (stage_is_bijection(s, value)) return true;
  for (size_t k = 0; k < stage_n_ranges(s); k++) {
    size_t numbers = 0; /* that the range counts */
    for (size_t i = 0; i < rank; i++)
      numbers += is_first_digit(stage_coords(s, value)[i]) &&
                 node_is_free_in(stage_range(s)[k], stage_coords(s, value)[i]);
    if (numbers != 1) return false;
  }
  for (size_t i = 0; i < rank; i++) {
    const node *x = stage_coords(s, value)[i];
    if (is_only_index(x, stage_extents(s, value)[i]))
      n++;
    else if (is_first_digit(x) && !takes_digits(s, value, part_of(x).of, &n))
      return false;
  }
  return n == rank;
}

bool node_reads_memory(ir *g, const node *x) {
  arena_mark here = arena_save(ir_scratch(g));
  node_list order = topo_sort(ir_scratch(g), &x, 1, NULL, NULL);
  bool reads = false;
  for (size_t i = 0; i < order.n; i++) reads |= order.at[i]->op == OP_INDEX;
  arena_rewind(ir_scratch(g), here);
  return reads;
}

bool fold_array_is_placed(const node *fold, size_t component) {
  if (component >= fold_n_states(fold)) return true;
  int64_t c = fold_component(fold, component);
  return c >= 0 && !stage_spans_array(fold_step(fold, component), (size_t)c);
}

const node *stage_placed_fold(const node *stage, size_t value) {
  const node *v = stage_value(stage, value), *fold = v->op == OP_INDEX ? v->src[0] : NULL;
  bool is_element = fold && fold->op == OP_FOLD;
  return is_element && fold_array_is_placed(fold, (size_t)v->ints[0]) ? fold : NULL;
}
