/* How a kernel runs on a target: the innermost range of each output in vectors, with what is left
   over in a nest of its own; an outer range over threads where there is enough to do. */
#include "codegen/address.h"
#include "codegen/codegen.h"
#include "ir/topo.h"
#include "laws/laws.h"

enum {
  WORK_FOR_THREADS = 1 << 15,   /* element operations below which one worker is faster */
  MOST_SCRATCH_IN_LANES = 2048, /* bytes that one array may take for all lanes */
  UNITS_WANTED = 16             /* a range to be shared out should have as many indices */
};

typedef struct choice {
  laws laws;
  const target *target;
  const node *sink;
} choice;

static const node *stage_of(const node *out) { return out->src[out->n_src - 1]; }

/* What a kernel does. */

/** Indices of a range, for weighing: one that varies counts as a few. */
static double indices(const node *range) {
  const node *extent = range_extent(range);
  return extent->lo == extent->hi ? (double)extent->hi : extent->lo > 4 ? (double)extent->lo : 4;
}

/** How often a node is computed: once for all values of its free ranges. */
static double times(const node *n) {
  double t = 1;
  for (uint32_t i = 0; i < n->free->n; i++) t *= indices(n->free->at[i]);
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
  for (size_t i = binder_ranges(binder, &ranges); i-- > 0;) t *= indices(ranges[i]);
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

/** How often element operations are done at a node. */
static double work_at(const node *n) {
  return n->op == OP_FOLD ? fold_work(n) : is_work(n) ? times(n) : 0;
}

/** The element operations of a nest. */
static double work_of(arena *a, const node *stage) {
  node_list order = topo_sort(a, stage->src, stage_values(stage), NULL, NULL);
  double sum = 0;
  for (size_t i = 0; i < order.n; i++) sum += work_at(order.at[i]);
  return sum;
}

static size_t widest_bytes(arena *a, const node *stage) {
  node_list order = topo_sort(a, stage->src, stage_values(stage), NULL, NULL);
  size_t bytes = 1;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!dtype_is_data((dtype)n->dtype)) continue;
    size_t b = dtype_bytes((dtype)n->dtype);
    if (dtype_is_float((dtype)n->dtype) && b < 4) b = 4; /* computed in f32 */
    if (b > bytes) bytes = b;
  }
  return bytes;
}

/** Whether an element read or written is at consecutive addresses (or the same) along a range. */
static bool is_streamed(ir *g, const node *range, size_t rank, const node *const extents[],
                        const node *const coords[]) {
  const node *a = address_of(g, rank, extents, coords);
  if (a->op == OP_WHERE) a = a->src[1];
  int64_t c = ix_coefficient(a, range);
  return !node_is_free_in(range, ix_sub(g, a, ix_scale(g, range, c))) && (c == 0 || c == 1);
}

/** Whether an array that is built for each index of a range would be too large for each lane. */
static bool is_large_in_lanes(ir *g, const node *n, const node *range, int64_t lanes) {
  double bytes = 0;
  if (n->op != OP_STAGE || !node_is_free_in(range, n)) return false;
  for (size_t i = 0; i < stage_values(n); i++) {
    const node *size = address_size(g, stage_rank(n, i), stage_extents(n, i));
    bytes += (double)size->hi * (double)dtype_bytes((dtype)stage_value(n, i)->dtype);
  }
  return bytes * (double)lanes > MOST_SCRATCH_IN_LANES;
}

/** What vectors along a range leave of the work: 1 where they do not pay. What depends on the range
   is done once a vector instead of once an index; but an element at scattered addresses is still
   loaded by itself, and put into its lane. */
static double left_by_vectors(ir *g, const node *stage, const node *range, int64_t lanes) {
  for (size_t i = 0; i < stage_values(stage); i++)
    if (!is_streamed(g, range, stage_rank(stage, i), stage_extents(stage, i),
                     stage_coords(stage, i)))
      return 1;
  double scalar = 0, vector = 0;
  node_list order = topo_sort(ir_arena(g), stage->src, stage_values(stage), NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *p = n->op == OP_INDEX ? n->src[0] : NULL;
    if (!node_is_free_in(range, n)) {
      scalar += work_at(n);
      vector += work_at(n);
      continue;
    }
    if (is_large_in_lanes(g, n, range, lanes)) return 1;
    bool scattered = p && p->op == OP_PARAM && !is_streamed(g, range, p->rank, p->dims, n->src + 1);
    scalar += work_at(n);
    vector += scattered ? 2 * work_at(n) : work_at(n) / (double)lanes;
  }
  return scalar > 0 ? vector / scalar : 1;
}

/* What is done about it. */

/** Vectors of `lanes` along a range whose extent they divide, where the nest allows them. */
static void make_vectors(choice *c, const node *range, int64_t lanes) {
  const node *outer, *inner, *vector;
  const node *split = law_split(&c->laws, c->sink, range, lanes, &outer, &inner);
  const node *with = split ? law_kind(&c->laws, split, inner, KIND_VECTOR, &vector) : NULL;
  if (with) c->sink = with;
}

/** Vectors along a range as far as they go; what is left over in narrower ones, and at last alone.
    How much is left over of a size that varies is not known: it is not cut further. */
static void cover(choice *c, const node *range, int64_t lanes) {
  ir *g = c->laws.g;
  for (;;) {
    const node *extent = range_extent(range), *low, *high;
    while (lanes > 1 && lanes > extent->hi) lanes /= 2;
    if (lanes < 2) return;
    const node *whole = ix_scale(g, ix_floordiv(g, extent, ix_const(g, lanes)), lanes);
    if (whole == extent) {
      make_vectors(c, range, lanes);
      return;
    }
    const node *parts = law_partition(&c->laws, c->sink, range, whole, &low, &high);
    if (!parts) return; /* a size of which too little can be shown */
    c->sink = parts;
    make_vectors(c, low, lanes);
    if (!node_is_const(extent)) return;
    range = high;
  }
}

static void vectorise(choice *c, const node *out) {
  const node *stage = stage_of(out);
  size_t n = stage_ranges(stage);
  if (!n || !c->target->vector_bytes) return;
  const node *range = NULL;
  double least = 1;
  int64_t lanes = (int64_t)(c->target->vector_bytes / widest_bytes(ir_arena(c->laws.g), stage));
  for (size_t i = n; i-- > 0 && lanes > 1;) {
    double left = left_by_vectors(c->laws.g, stage, stage_range(stage)[i], lanes);
    if (left < least) range = stage_range(stage)[i], least = left;
  }
  if (range) cover(c, range, lanes);
}

/** The range to share out: the outermost with enough indices for certain, else the one with most.
 */
static const node *shared_range(const node *stage) {
  const node *best = NULL;
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) != KIND_LOOP) continue;
    if (range_extent(r)->lo >= UNITS_WANTED) return r;
    if (!best || indices(r) > indices(best)) best = r;
  }
  return best;
}

static void share_out(choice *c) {
  arena *a = ir_arena(c->laws.g);
  double work = 0;
  for (uint32_t i = 0; i < c->sink->n_src; i++) work += work_of(a, stage_of(c->sink->src[i]));
  if (!c->target->threads || work < WORK_FOR_THREADS) return;
  const node *before = c->sink;
  for (uint32_t i = 0; i < c->sink->n_src; i++) { /* all nests or none: each is some worker's */
    const node *changed, *range = shared_range(stage_of(c->sink->src[i]));
    const node *with = range ? law_kind(&c->laws, c->sink, range, KIND_THREAD, &changed) : NULL;
    c->sink = with ? with : before;
    if (!with) return;
  }
}

const node *codegen_choose(ir *g, const node *sink, const target *t) {
  choice c = {.laws = {.g = g}, .target = t, .sink = sink};
  size_t n = sink->n_src;
  const node **outs = arena_copy(ir_arena(g), sink->src, n * sizeof *outs);
  for (size_t i = 0; i < n; i++) vectorise(&c, outs[i]);
  share_out(&c);
  return c.sink;
}
