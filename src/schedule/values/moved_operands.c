/* Implements the search for operands that lie across the order in which contractions read them. A
   product of a transposed left factor multiplies each row of the right factor by elements that lie
   a row apart: a reduction reads another page at each step, which neither prefetching nor the TLB
   keeps up with. A movement is no value as a rule, since index arithmetic replaces it; here it
   becomes one, so that its copy is a choice like others: the axis that the copy has last follows
   from the layouts, and the costs of kernels decide whether it is made. */
#include "schedule/values/moved_operands.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/likely_value.h"
#include "ir/index/address_stride.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/row_major_address.h"
#include "ir/transform/element_expression.h"
#include "schedule/values/contraction.h"
#include "target/hardware.h"

#include "base/map.h"

typedef struct operand_search {
  ir *g;
  arena *a; /* scratch */
  const machine *m;
  map readers; /* tensor → the number of nodes that read it, and of roots that it is */
  node_list found;
} operand_search;

/** A contraction with the ranges of its term's axes. */
typedef struct contraction {
  const node *reduce, *product;
  const node **at; /* of each axis of the reduction's operand: a range, or 0 */
} contraction;

static contraction contraction_of(const operand_search *s, const node *reduce) {
  contraction c = {.reduce = reduce, .product = contraction_product(reduce)};
  if (!c.product) return c;
  const node *x = reduce->src[0];
  c.at = arena_alloc(s->a, (x->rank + 1u) * sizeof *c.at);
  for (size_t i = 0; i < x->rank; i++)
    c.at[i] = node_is_bits(x->dims[i], 1) ? ix_const(s->g, 0) : range_of_axis(s->g, x->dims[i], i);
  return c;
}

/** The address in a tensor of the element that an operand of the product, a view of it, has. */
static const node *address_in(const operand_search *s, const contraction *c, const node *view,
                              const node *x) {
  const node **in = arena_alloc(s->a, (c->product->rank + 1u) * sizeof *in);
  const node **from = arena_alloc(s->a, (x->rank + 1u) * sizeof *from);
  element_source_coordinates(s->g, c->reduce->src[0], c->product, c->at, in);
  element_source_coordinates(s->g, view, x, in, from);
  return row_major_address(s->g, x->rank, x->dims, from);
}

/** The position of the contraction's last axis, along which its result is contiguous. */
static size_t last_axis(const contraction *c) {
  size_t i = c->reduce->src[0]->rank;
  while (i-- > 0)
    if (!reduce_has_axis(c->reduce, i) && c->at[i]->op == OP_RANGE) return i;
  return SIZE_MAX;
}

/** True if each range of the reduction steps from page to page, of which the TLB holds too few. */
static bool reduces_across_pages(const operand_search *s, const contraction *c, const node *address,
                                 double bytes) {
  const machine *m = machine_of_device(s->m, c->reduce->device);
  double pages = 1;
  for (size_t i = 0; i < c->reduce->src[0]->rank; i++) {
    if (!reduce_has_axis(c->reduce, i) || c->at[i]->op != OP_RANGE) continue;
    double apart = (double)address_likely_stride(address, c->at[i]) * bytes;
    double own = hardware_pages_read(m->page, apart, range_likely_trips(c->at[i]));
    if (!own) return false;
    pages *= own;
  }
  return pages > m->tlb;
}

/** True if the consecutive elements lie along an axis of the result other than its last one: lanes,
    which run along that, do not read them together. */
static bool is_contiguous_elsewhere(const contraction *c, const node *address) {
  size_t last = last_axis(c);
  for (size_t i = 0; i < c->reduce->src[0]->rank; i++)
    if (c->at[i]->op == OP_RANGE && !reduce_has_axis(c->reduce, i) &&
        ix_coefficient(address, c->at[i]) == 1)
      return i != last;
  return false;
}

/** The last movement before elements are repeated; NULL: there is none. */
static const node *movement_before_repeats(const node *view, const node *x) {
  const node *last = NULL;
  for (; view != x; view = view->src[0])
    if (view->op == OP_EXPAND)
      last = NULL;
    else if (!last)
      last = view;
  return last;
}

static void count_reader(operand_search *s, const node *x) {
  uintptr_t n = (uintptr_t)map_get(&s->readers, x);
  map_set(s->a, &s->readers, x, (void *)(n + 1));
}

static void count_readers(operand_search *s, const normalised *in, const node_list *order) {
  for (size_t i = 0; i < in->n_roots; i++) count_reader(s, in->roots[i]);
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++) count_reader(s, order->at[i]->src[k]);
}

/** True for a tensor whose layout does not follow from the contraction alone: an input, or what is
    read elsewhere too. */
static bool has_other_uses(const operand_search *s, const node *x) {
  return x->op == OP_PARAM || (uintptr_t)map_get(&s->readers, x) > 1;
}

static void add_operand(operand_search *s, const contraction *c, const node *view) {
  const node *x = view;
  while (op_is_movement((op)x->op) && x->op != OP_GATHER && x->op != OP_PAD) x = x->src[0];
  const node *moved = movement_before_repeats(view, x);
  if (!moved || !has_other_uses(s, x)) return;
  const node *address = address_in(s, c, view, x);
  if (address->op == OP_WHERE || !is_contiguous_elsewhere(c, address)) return;
  if (reduces_across_pages(s, c, address, (double)dtype_bytes((dtype)x->dtype)))
    vec_push(s->a, &s->found, moved);
}

node_list moved_operands_find(ir *g, const machine *m, const normalised *in,
                              const node_list *order) {
  operand_search s = {.g = g, .a = ir_scratch(g), .m = m};
  count_readers(&s, in, order);
  for (size_t i = 0; i < order->n; i++) {
    contraction c = contraction_of(&s, order->at[i]);
    for (size_t k = 0; c.product && k < c.product->n_src; k++)
      if (c.product->src[k]->dtype != DT_INDEX) add_operand(&s, &c, c.product->src[k]);
  }
  return s.found;
}
