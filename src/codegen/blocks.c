/* Blocks of indices. Where arrays are built for one index of a nest's range after the other, and
   reductions read operands that are the same for all of these, the arrays are built for a block of
   indices at once: then such an operand is read once for a whole tile of them. */
#include "codegen/choice.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum { MOST_BLOCK = 32 };

static bool is_of_known_size(const node *stage) {
  binder_parts p = binder_parts_of(OP_STAGE, stage->ints);
  for (size_t i = p.extents; i < p.ranges; i++)
    if (!node_is_const(stage->src[i])) return false;
  return true;
}

/** Bytes of the arrays in a nest that are built for each index of a range; 0: there are none, or
    they cannot be built for several. */
static double bytes_for_each(const node_list *nest, const node *range) {
  double bytes = 0;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_STAGE || !node_is_free_in(range, n)) continue;
    if (!is_of_known_size(n)) return 0;
    bytes += weigh_bytes(n);
  }
  return bytes;
}

/** Whether a reduction that depends on a range reads a buffer whose elements do not. */
static bool shares_operands(arena *a, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *f = nest->at[i];
    if (f->op != OP_FOLD || !node_is_free_in(range, f)) continue;
    node_list body = weigh_nest(a, f);
    for (size_t k = 0; k < body.n; k++) {
      const node *n = body.at[k];
      if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM && !node_is_free_in(range, n) &&
          node_is_free_in(fold_innermost(f), n))
        return true;
    }
  }
  return false;
}

/** The largest block for which there is room: one that divides the extent, if that is not much
    smaller. */
static int64_t block_for(const choice *c, const node *range, double bytes) {
  double room = (double)hardware_scratch(&c->target->hardware, c->target->scratch) / 2;
  int64_t most = MOST_BLOCK;
  if ((double)most * bytes > room) most = (int64_t)(room / bytes);
  if (most > range_extent(range)->lo) most = range_extent(range)->lo;
  return ix_block(range_extent(range), most);
}

/** A FOLD whose states are carried through its loop with arrays that are built in it; nothing else
    that carries them may be built outside of a range. */
static bool is_scan(const node *n) {
  bool is = false;
  for (size_t i = 0; n->op == OP_FOLD && i < fold_states(n); i++)
    is |= fold_op(n, i) < 0 || fold_component(n, i) >= 0;
  return is;
}

static const node *hoist(choice *c, const node *n, const node *range) {
  const node *own;
  if (n->op == OP_STAGE) return law_hoist(&c->laws, c->sink, n, range, &own);
  if (!is_scan(n)) return NULL;
  return law_batch(&c->laws, c->sink, fold_range(n)[0], range);
}

/** Builds all arrays that depend on a range outside of it. */
static void hoist_all(choice *c, const node *range) {
  map refused = {0};
  for (bool again = true; again;) {
    again = false;
    node_list order = topo_sort(ir_arena(c->laws.g), &c->sink, 1, NULL, NULL);
    for (size_t i = 0; i < order.n && !again; i++) {
      const node *n = order.at[i];
      bool is_binder = n->op == OP_STAGE || n->op == OP_FOLD;
      if (!is_binder || !node_is_free_in(range, n) || map_has(&refused, n)) continue;
      const node *made = hoist(c, n, range);
      if (made)
        c->sink = made;
      else
        map_set(ir_arena(c->laws.g), &refused, n, (void *)n);
      again = made;
    }
  }
}

/** Whether arrays in a nest are built for each index of a range. */
static bool builds_along(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_STAGE && node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** Puts the indices of a block inside of all loops that its arrays are built for. */
static void put_inside(choice *c, const node *range) {
  const node *stage = law_binder(&c->laws, c->sink, range);
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  size_t own = range_place(stage_range(stage), range), last = stage_ranges(stage) - 1;
  while (last > own && !builds_along(&nest, stage_range(stage)[last])) last--;
  const node *made = last > own ? law_order(&c->laws, c->sink, range, last) : NULL;
  if (made) c->sink = made;
}

static bool make_blocks(choice *c, const node *stage, const node *range) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = weigh_nest(a, stage);
  double bytes = bytes_for_each(&nest, range);
  if (range_kind_of(range) != KIND_LOOP || !bytes || !shares_operands(a, &nest, range))
    return false;
  int64_t block = block_for(c, range, bytes);
  const node *outer, *inner;
  const node *made =
      block > 1 ? law_overlap(&c->laws, c->sink, range, block, &outer, &inner) : NULL;
  if (!made) return false;
  c->sink = made;
  hoist_all(c, inner);
  put_inside(c, inner);
  return true;
}

void choose_blocks(choice *c) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    if (b->op != OP_STAGE || !choice_is_out(c, b)) continue;
    for (size_t k = stage_ranges(b); k-- > 0;)
      if (make_blocks(c, b, stage_range(b)[k])) break;
  }
}
