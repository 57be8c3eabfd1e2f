/* Estimates the element operations of a kernel's nodes and finds the strides of its reads and
   writes along a range, before the kernel is lowered. */
#include "target/kernel_estimates.h"

#include "ir/index/comparison_bound.h"
#include "ir/index/row_major_address.h"
#include "ir/transform/rewrite.h"

/** Combinations of indices that a node depends on. */
static double executions(const node *n) {
  double t = 1;
  for (uint32_t i = 0; i < n->free->n; i++) t *= range_likely_trips(n->free->at[i]);
  return t;
}

static bool is_operation(const node *n) {
  return n->op == OP_INDEX ||
         (op_is_elementwise((op)n->op) && n->dtype != DT_INDEX && n->op != OP_CAST);
}

/** Iterations of a binder's own loops. */
static double trips(const node *binder) {
  const node *const *ranges;
  double t = 1;
  for (size_t i = binder_ranges(binder, &ranges); i-- > 0;) t *= range_likely_trips(ranges[i]);
  return t;
}

/** Operations of a FOLD besides its steps: reading and combining accumulators. */
static double fold_operations(const node *fold) {
  double each = 0;
  for (size_t i = 0; i < fold_n_states(fold); i++)
    if (fold_op(fold, i) >= 0)
      each += MACHINE_FOLD_STATE_OPERATIONS *
              (fold_component(fold, i) < 0 ? 1 : trips(fold_step(fold, i)));
  return each * trips(fold) * executions(fold);
}

double estimate_node_operations(const node *n) {
  return n->op == OP_FOLD ? fold_operations(n) : is_operation(n) ? executions(n) : 0;
}

size_t estimate_widest_element(const node_list *nest, const node *range) {
  size_t bytes = 1;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (!dtype_is_data((dtype)n->dtype) || (range && !node_is_free_in(range, n))) continue;
    size_t b = dtype_bytes((dtype)n->dtype);
    if (dtype_is_float((dtype)n->dtype) && b < MACHINE_COMPUTED_FLOAT_BYTES)
      b = MACHINE_COMPUTED_FLOAT_BYTES;
    if (b > bytes) bytes = b;
  }
  return bytes;
}

bool address_has_stride(ir *g, const node *range, const node *address, int64_t *stride) {
  *stride = ix_coefficient(address, range);
  return !node_is_free_in(range, ix_sub(g, address, ix_scale(g, range, *stride)));
}

int estimate_vector_accesses(ir *g, const node *range, const node *address) {
  int64_t stride;
  if (address->op == OP_WHERE && node_is_free_in(range, address->src[0])) return 0; /* by lanes */
  if (address->op == OP_WHERE) address = address->src[1];
  if (!address_has_stride(g, range, address, &stride)) return 0;
  return stride == -1 ? 2 : stride == 0 || stride == 1;
}

bool address_is_unit_stride(ir *g, const node *range, const node *address) {
  return estimate_vector_accesses(g, range, address) == 1;
}

bool coordinates_are_unit_stride(ir *g, const node *range, size_t rank, const node *const extents[],
                                 const node *const coords[]) {
  return address_is_unit_stride(g, range, row_major_address(g, rank, extents, coords));
}

const node *estimate_read_address(ir *g, const node *index) {
  if (index->op != OP_INDEX) return NULL;
  const node *from = index->src[0];
  const node *const *coords = index->src + 1;
  if (from->op == OP_PARAM) return row_major_address(g, from->rank, from->dims, coords);
  if (from->op != OP_STAGE) return NULL;
  size_t i = (size_t)index->ints[0];
  return row_major_address(g, stage_rank(from, i), stage_extents(from, i), coords);
}

bool read_is_unit_stride(ir *g, const node *range, const node *index) {
  const node *address = estimate_read_address(g, index);
  return !address || address_is_unit_stride(g, range, address);
}

double estimate_node_vectorised(ir *g, const node *n, const node *range, double lanes) {
  bool of_indices = n->dtype == DT_BOOL && n->n_src && n->src[0]->dtype == DT_INDEX;
  const node *address = estimate_read_address(g, n);
  int accesses = address ? estimate_vector_accesses(g, range, address) : !of_indices;
  return estimate_vectorised(estimate_node_operations(n) * (accesses > 1 ? accesses : 1), accesses,
                             lanes);
}

double estimate_stage_stores(const node *stage) { return trips(stage) * executions(stage); }

double estimate_stage_bytes(const node *stage) {
  double bytes = 0;
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    double size = (double)dtype_bytes((dtype)stage_value(stage, i)->dtype);
    for (size_t k = 0; k < stage_rank(stage, i); k++)
      size *= (double)stage_extents(stage, i)[k]->hi;
    bytes += size;
  }
  return bytes;
}

int64_t comparison_change_point(ir *g, const node *compare, const node *range) {
  bool is_upper;
  const node *bound = comparison_bound(g, compare, range, &is_upper);
  return bound && node_is_const(bound) ? node_int(bound) : 0;
}

/** True if a comparison changes at an index of a range of known size that is no reduction's. */
static bool changes_at_index(ir *g, const node *compare, const node *binder) {
  const node *const *own;
  size_t n = binder->op == OP_FOLD ? binder_ranges(binder, &own) : 0;
  for (uint32_t i = 0; i < compare->free->n; i++) {
    const node *range = compare->free->at[i];
    bool is_reduced = false;
    for (size_t k = 0; k < n; k++) is_reduced |= own[k] == range;
    if (!is_reduced && node_is_const(range_extent(range)) &&
        comparison_change_point(g, compare, range) > 0)
      return true;
  }
  return false;
}

bool comparison_splits_nest(ir *g, const node *compare, const node *binder) {
  for (; compare->op == OP_AND; compare = compare->src[0])
    if (!changes_at_index(g, compare->src[1], binder)) return false;
  return changes_at_index(g, compare, binder);
}
