#include "ir/weigh.h"

#include "ir/address.h"
#include "ir/rewrite.h"

double weigh_indices(const node *range) {
  const node *extent = range_extent(range);
  return extent->lo == extent->hi ? (double)extent->hi : extent->lo > 4 ? (double)extent->lo : 4;
}

static double times(const node *n) {
  double t = 1;
  for (uint32_t i = 0; i < n->free->n; i++) t *= weigh_indices(n->free->at[i]);
  return t;
}

static bool is_work(const node *n) {
  return n->op == OP_INDEX ||
         (op_is_elementwise((op)n->op) && n->dtype != DT_INDEX && n->op != OP_CAST);
}

/** How often the loops of a binder run, for each time it does. */
static double runs(const node *binder) {
  const node *const *ranges;
  double t = 1;
  for (size_t i = binder_ranges(binder, &ranges); i-- > 0;) t *= weigh_indices(ranges[i]);
  return t;
}

/** What a FOLD does in its loops besides its steps: a state with an op is read and combined. */
static double fold_work(const node *fold) {
  double each = 0;
  for (size_t i = 0; i < fold_states(fold); i++)
    if (fold_op(fold, i) >= 0)
      each += 2 * (fold_component(fold, i) < 0 ? 1 : runs(fold_step(fold, i)));
  return each * runs(fold) * times(fold);
}

double weigh_node(const node *n) {
  return n->op == OP_FOLD ? fold_work(n) : is_work(n) ? times(n) : 0;
}

node_list weigh_nest(arena *a, const node *binder) {
  binder_parts p = binder_parts_of((op)binder->op, binder->ints);
  return topo_sort(a, binder->src, p.coords, NULL, NULL);
}

size_t weigh_widest(const node_list *nest, const node *range) {
  size_t bytes = 1;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (!dtype_is_data((dtype)n->dtype) || (range && !node_is_free_in(range, n))) continue;
    size_t b = dtype_bytes((dtype)n->dtype);
    if (dtype_is_float((dtype)n->dtype) && b < 4) b = 4; /* computed in f32 */
    if (b > bytes) bytes = b;
  }
  return bytes;
}

bool weigh_is_streamed(ir *g, const node *range, const node *a) {
  if (a->op == OP_WHERE && node_is_free_in(range, a->src[0])) return false; /* lane by lane */
  if (a->op == OP_WHERE) a = a->src[1];
  int64_t c = ix_coefficient(a, range);
  return !node_is_free_in(range, ix_sub(g, a, ix_scale(g, range, c))) && (c == 0 || c == 1);
}

bool weigh_streamed(ir *g, const node *range, size_t rank, const node *const extents[],
                    const node *const coords[]) {
  return weigh_is_streamed(g, range, address_of(g, rank, extents, coords));
}

bool weigh_reads_streamed(ir *g, const node *range, const node *index) {
  const node *from = index->src[0];
  const node *const *coords = index->src + 1;
  if (from->op == OP_PARAM) return weigh_streamed(g, range, from->rank, from->dims, coords);
  if (from->op != OP_STAGE) return true;
  size_t i = (size_t)index->ints[0];
  return weigh_streamed(g, range, stage_rank(from, i), stage_extents(from, i), coords);
}

double weigh_in_lanes(ir *g, const node *n, const node *range, double lanes) {
  bool of_indices = n->dtype == DT_BOOL && n->n_src && n->src[0]->dtype == DT_INDEX;
  bool scattered = of_indices || (n->op == OP_INDEX && !weigh_reads_streamed(g, range, n));
  return weigh_left(weigh_node(n), !scattered, lanes);
}

double weigh_writes(const node *stage) { return runs(stage) * times(stage); }

double weigh_bytes(const node *stage) {
  double bytes = 0;
  for (size_t i = 0; i < stage_values(stage); i++) {
    double size = (double)dtype_bytes((dtype)stage_value(stage, i)->dtype);
    for (size_t k = 0; k < stage_rank(stage, i); k++)
      size *= (double)stage_extents(stage, i)[k]->hi;
    bytes += size;
  }
  return bytes;
}

bool weigh_is_free_order(const node *f, int math) {
  if (fold_emits(f)) return false;
  for (size_t i = 0; i < fold_states(f); i++) {
    if (fold_op(f, i) < 0 || fold_component(f, i) >= 0) return false;
    if (!math_may_reorder(math, (dtype)fold_init(f, i)->dtype)) return false;
  }
  return true;
}

bool weigh_is_read(const node *n) {
  return n->op == OP_INDEX && (n->src[0]->op == OP_PARAM || n->src[0]->op == OP_STAGE);
}

bool weigh_is_in_fold(const node_list *nest, const node *what) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *f = nest->at[i];
    for (size_t k = 0; f->op == OP_FOLD && k < fold_ranges(f); k++)
      if (node_is_free_in(fold_range(f)[k], what)) return true;
  }
  return false;
}

bool weigh_has_streams(ir *g, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (weigh_is_read(n) && node_is_free_in(range, n) && weigh_reads_streamed(g, range, n))
      return true;
  }
  return false;
}

const node *weigh_lanes(ir *g, const node *fold, const node_list *nest) {
  const node *copies = NULL;
  for (uint32_t i = 0; i < fold->free->n; i++) {
    const node *r = fold->free->at[i];
    if (range_kind_of(r) == KIND_VECTOR) return r;
    if (range_is_copies(r) && weigh_has_streams(g, nest, r)) copies = r;
  }
  return copies;
}

const node *weigh_vector(const node *stage) {
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_VECTOR) return stage_range(stage)[i];
  return NULL;
}
