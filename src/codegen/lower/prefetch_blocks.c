/* Finds blocks to prefetch. A contraction reads the block of an operand, as the weights of some
   output channels, in each iteration of a sweep over the results: the first time from memory, whose
   rate is below what the arithmetic asks for, and then from a near cache. Where the operand exceeds
   a share of the second cache, the next block is fetched during the whole sweep instead, a few
   lines in each iteration of one of its loops, so that memory delivers it at a constant rate.
   Blocks that are contiguous, or few contiguous pieces, are fetched so. */
#include "codegen/lower/memory_access.h"
#include "codegen/lower/prefetch.h"
#include "ir/core/binder.h"
#include "ir/index/address_stride.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"

/** Contiguous elements of a block, relative to its operand's place. */
typedef struct piece {
  int64_t first, end;
} piece;

typedef VEC(piece) piece_list;

/** The loads of a buffer in a loop whose addresses differ by constants: place + a piece. */
typedef struct operand {
  const node *param, *place;
  loop *around;
  int64_t bytes; /* of an element */
  piece_list pieces;
} operand;

typedef VEC(operand) operand_list;

/** A range inside of a block. */
typedef struct dimension {
  int64_t stride, extent;
} dimension;

typedef VEC(dimension) dimension_list;

/** The part of an operand that one iteration of a loop reads. */
typedef struct swept_block {
  const loop *next; /* its next iteration reads the next block */
  piece_list pieces;
  int64_t bytes;
} swept_block;

/** Sorts pieces, and joins those that touch. */
static void join_pieces(piece_list *pieces) {
  for (size_t i = 1; i < pieces->n; i++)
    for (size_t k = i; k && pieces->at[k].first < pieces->at[k - 1].first; k--) {
      piece swapped = pieces->at[k];
      pieces->at[k] = pieces->at[k - 1];
      pieces->at[k - 1] = swapped;
    }
  size_t n = 0;
  for (size_t i = 0; i < pieces->n; i++) {
    piece next = pieces->at[i];
    if (n && next.first <= pieces->at[n - 1].end) {
      if (next.end > pieces->at[n - 1].end) pieces->at[n - 1].end = next.end;
    } else {
      pieces->at[n++] = next;
    }
  }
  pieces->n = n;
}

static void add_load(prefetching *p, operand_list *all, const node *load) {
  const node *mask, *address = memory_access_unmask(load->src[1], &mask);
  operand o = {.param = node_storage_root(load->src[0]),
               .around = loop_tree_around(&p->tree, load)};
  if (o.param->op != OP_PARAM || mask || address->op == OP_INVALID) return;
  int64_t first = ix_offset(address);
  o.place = ix_add_const(p->g, address, -first);
  o.bytes = (int64_t)dtype_bytes((dtype)load->dtype);
  size_t i = all->n;
  while (i && (all->at[i - 1].place != o.place || all->at[i - 1].param != o.param)) i--;
  if (!i) vec_push(p->a, all, o), i = all->n;
  vec_push(p->a, &all->at[i - 1].pieces, (piece){first, first + load->lanes});
}

/** The ranges below `outer` that an operand's address depends on, by increasing stride. False: one
    has no constant extent or stride. */
static bool find_dimensions(prefetching *p, const operand *o, const loop *outer,
                            dimension_list *list) {
  for (const loop *l = o->around; l != outer; l = l->parent) {
    if (!node_is_free_in(l->range, o->place)) continue;
    dimension d = {address_stride(o->place, l->range), range_extent(l->range)->lo};
    if (d.stride <= 0 || !node_is_const(range_extent(l->range))) return false;
    vec_push(p->a, list, d);
    for (size_t k = list->n - 1; k && d.stride < list->at[k - 1].stride; k--) {
      list->at[k] = list->at[k - 1];
      list->at[k - 1] = d;
    }
  }
  return true;
}

/** The pieces that an operand's loads read in all iterations of the loops below `outer`. False:
   they leave gaps between rows. */
static bool find_pieces(prefetching *p, const operand *o, const loop *outer, piece_list *pieces) {
  dimension_list list = {0};
  if (!find_dimensions(p, o, outer, &list)) return false;
  for (size_t i = 0; i < o->pieces.n; i++) vec_push(p->a, pieces, o->pieces.at[i]);
  join_pieces(pieces);
  for (size_t k = 0; k < list.n; k++) {
    for (size_t i = 0; i < pieces->n; i++) {
      piece *w = &pieces->at[i];
      if (list.at[k].extent > 1 && list.at[k].stride > w->end - w->first) return false;
      w->end += list.at[k].stride * (list.at[k].extent - 1);
    }
    join_pieces(pieces);
  }
  return true;
}

/** True if a loop below `outer` reads the same elements in each iteration, in loops of its own. */
static bool is_swept(const operand *o, const loop *outer) {
  bool reads = false;
  for (const loop *l = o->around; l != outer; l = l->parent) {
    bool depends = node_is_free_in(l->range, o->place);
    if (!depends && reads && range_extent(l->range)->lo > 1) return true;
    reads |= depends && range_extent(l->range)->hi > 1;
  }
  return false;
}

/** Bytes of an operand that the loops from `inner` outwards read, if one iteration reads `bytes`.
 */
static double bytes_of_operand(const operand *o, const loop *inner, int64_t bytes) {
  double all = (double)bytes;
  for (const loop *l = inner; l->range; l = l->parent)
    if (node_is_free_in(l->range, o->place)) all *= range_likely_trips(l->range);
  return all;
}

/** The largest block of an operand that its cache holds beside the next one, where a loop sweeps
    over it. False: there is none, or the operand is small. */
static bool find_block(prefetching *p, const operand *o, swept_block *best) {
  double l2 = (double)p->hardware.l2_bytes;
  *best = (swept_block){0};
  for (const loop *l = o->around; l->range; l = l->parent) {
    if (!node_is_free_in(l->range, o->place) || range_extent(l->range)->hi < 2) continue;
    swept_block b = {.next = l};
    if (!find_pieces(p, o, l, &b.pieces)) break;
    for (size_t i = 0; i < b.pieces.n; i++)
      b.bytes += (b.pieces.at[i].end - b.pieces.at[i].first) * o->bytes;
    if ((double)b.bytes > MACHINE_PREFETCHED_BLOCK_L2_SHARE * l2) break;
    if (is_swept(o, l)) *best = b;
  }
  return best->next &&
         bytes_of_operand(o, best->next, best->bytes) >= MACHINE_PREFETCHED_OPERAND_L2_SHARE * l2;
}

/** A way to spread prefetches: the loop whose iterations fetch some lines of each piece. */
typedef struct spread {
  loop *in;
  int64_t iterations; /* of `in`, while one block is used */
} spread;

/** Lines of each piece that an iteration fetches, if all have the size of the longest. */
static int64_t lines_at_once(const swept_block *b, int64_t iterations, int64_t line) {
  int64_t longest = 0;
  for (size_t i = 0; i < b->pieces.n; i++) {
    int64_t length = b->pieces.at[i].end - b->pieces.at[i].first;
    if (length > longest) longest = length;
  }
  return (longest + iterations * line - 1) / (iterations * line);
}

/** Chooses the loop that fetches fewest lines twice, and not more than some at once; NULL where
   each would be fetched too often. */
static spread choose_spread(const operand *o, const swept_block *b, int64_t line) {
  spread best = {0};
  double least = MACHINE_PREFETCHES_OF_LINE * (double)lines_at_once(b, 1, line);
  for (loop *in = o->around; in != b->next; in = in->parent) {
    double iterations = 1;
    for (const loop *l = in; l != b->next; l = l->parent)
      iterations *= node_is_const(range_extent(l->range)) ? (double)range_extent(l->range)->lo : 0;
    if (iterations < 1 || iterations > INT32_MAX) continue;
    int64_t lines = lines_at_once(b, (int64_t)iterations, line);
    double fetched = (double)lines * iterations;
    if (lines * (int64_t)b->pieces.n > MACHINE_PREFETCHES_AT_ONCE) continue;
    if (fetched > least) continue;
    best = (spread){in, (int64_t)iterations};
    least = fetched;
  }
  return best;
}

/** The place of the next block: its first element, if a piece begins at 0. */
static const node *next_place(prefetching *p, const operand *o, const swept_block *b) {
  map to = {0};
  for (const loop *l = o->around; l != b->next; l = l->parent)
    map_set(p->a, &to, l->range, (void *)ix_const(p->g, 0));
  map_set(p->a, &to, b->next->range, (void *)ix_add_const(p->g, b->next->range, 1));
  return subst_ranges(p->g, o->place, &to);
}

/** The number of an iteration of a loop, counted since the block's first, times `step`. */
static const node *elements_so_far(prefetching *p, const spread *s, const loop *next,
                                   int64_t step) {
  const node *sum = ix_const(p->g, 0);
  for (const loop *l = s->in; l != next; l = l->parent) {
    sum = ix_add(p->g, sum, ix_scale(p->g, l->range, step));
    step *= range_extent(l->range)->lo;
  }
  return sum;
}

static void prefetch_block(prefetching *p, const operand *o, const swept_block *b) {
  int64_t line = (int64_t)p->hardware.line_bytes / o->bytes;
  spread s = choose_spread(o, b, line);
  if (!s.in) return;
  const node *place = next_place(p, o, b);
  for (size_t i = 0; i < b->pieces.n; i++) {
    piece w = b->pieces.at[i];
    int64_t step = (w.end - w.first + s.iterations - 1) / s.iterations;
    const node *at = ix_add(p->g, place, elements_so_far(p, &s, b->next, step));
    for (int64_t k = 0; k < step; k += line)
      vec_push(p->a, &p->found, ((prefetch){s.in, o->param, ix_add_const(p->g, at, w.first + k)}));
  }
}

void prefetch_find_blocks(prefetching *p) {
  operand_list all = {0};
  for (size_t i = 0; i < p->order.n; i++)
    if (p->order.at[i]->op == OP_LOAD) add_load(p, &all, p->order.at[i]);
  for (size_t i = 0; i < all.n; i++) {
    swept_block b;
    if (find_block(p, &all.at[i], &b)) prefetch_block(p, &all.at[i], &b);
  }
}
