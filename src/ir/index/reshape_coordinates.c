/* Maps coordinates through a reshape: splits both shapes into the smallest groups of dimensions
   with equal products, and linearises and delinearises each group on its own. */
#include "ir/index/reshape_coordinates.h"

static bool is_one(const node *n) { return node_is_bits(n, 1); }

/** Delinearises: writes the coordinates of a flat position in dimensions [first, last). */
static void delinearise(ir *g, const node *flat, const node *const dims[], size_t first,
                        size_t last, const node *to[]) {
  while (last-- > first) {
    if (is_one(dims[last]) || node_is_bits(dims[last], 0)) { /* an empty array has no element */
      to[last] = ix_const(g, 0);
    } else if (last == first) { /* the position is inside: no modulus */
      to[last] = flat;
    } else {
      const node *by = ix_max(g, dims[last], ix_const(g, 1));
      to[last] = ix_mod(g, flat, by);
      flat = ix_floordiv(g, flat, by);
    }
  }
}

/** Linearises: the flat position of coordinates e in dimensions [first, last). */
static const node *linearise(ir *g, const node *const dims[], const node *const e[], size_t first,
                             size_t last) {
  const node *flat = ix_const(g, 0);
  for (size_t i = first; i < last; i++) flat = ix_add(g, ix_mul(g, flat, dims[i]), e[i]);
  return flat;
}

/** The dimensions of one shape: those before `next` are in groups, `product` is the size of the
    group that is growing. */
typedef struct side {
  const node *const *dims;
  size_t rank, next;
  const node *product;
} side;

static void add_dimension(ir *g, side *s) {
  s->product = ix_mul(g, s->product, s->dims[s->next++]);
}

/** True if product a grows next: it is known to be smaller, or the only constant one. */
static bool is_below(const node *a, const node *b) {
  if (a->op == OP_CONST && b->op == OP_CONST) return node_int(a) < node_int(b);
  return a->op == OP_CONST;
}

/** Grows a group on both sides until the products are equal; false if the dimensions run out. */
static bool grow_group(ir *g, side *a, side *b) {
  while (a->product != b->product) {
    side *less = is_below(a->product, b->product) ? a : b;
    if (less->next == less->rank) less = less == a ? b : a;
    if (less->next == less->rank) return false;
    add_dimension(g, less);
  }
  return true;
}

void reshape_coordinates(ir *g, size_t rank, const node *const dims[], const node *const e[],
                         size_t from_rank, const node *const from_dims[], const node *to[]) {
  side a = {dims, rank, 0, NULL}, b = {from_dims, from_rank, 0, NULL};
  while (b.next < from_rank) {
    size_t first_a = a.next, first_b = b.next;
    a.product = b.product = ix_const(g, 1);
    add_dimension(g, &b);
    if (!grow_group(g, &a, &b)) { /* all remaining dimensions are one group */
      a.next = rank;
      b.next = from_rank;
    }
    delinearise(g, linearise(g, dims, e, first_a, a.next), from_dims, first_b, b.next, to);
  }
}
