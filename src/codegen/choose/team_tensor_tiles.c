/* Tiles products of words for teams by tiles of warps (tensor_rows.def): as team_tiles.c does,
   with tiles in place of indices. A group computes a block of tiles, and each of its warps some of
   them, whose rows and columns its workers divide among them; a block of the reduction is a number
   of tiles' terms:

     for … il, i, g, jl, t, v { FOLD q }
       →   for … il (LOCAL), g (WARP), jl (LOCAL), t (WARP)
             FOLD over qo, qm add STAGE over copies, i, v (FOLD over p)

   which warp_tile.h describes. Operands are copied to the group's memory, from which workers load
   words that are not their own sums'. */
#include "codegen/choose/team_tiles.h"
#include "codegen/choose/teams.h"
#include "ir/index/index_arithmetic.h"
#include "laws/warp_tile.h"
#include "target/kernel_estimates.h"
#include "target/machine.h"

enum { WORD_BYTES = 4, BANKS = 32 };

const tensor_tile *team_tensor_tile(const product *p) {
  const node *f = p->fold;
  if (fold_n_states(f) != 1 || fold_op(f, 0) != OP_ADD) return NULL;
  for (size_t i = 0; i < TENSOR_TILES; i++) {
    const tensor_tile *t = &tensor_tiles[i];
    if (t->workers > 1 && tensor_rows[t->row].op == fold_step(f, 0)->op &&
        target_has_tensor_op(p->c->target, t->op))
      return t;
  }
  return NULL;
}

bool team_tensor_fits(const product *p, int64_t block) {
  ir *g = p->c->laws.g;
  const node *extent = range_extent(fold_innermost_range(p->fold));
  bool has_more = fold_n_ranges(p->fold) > 1 || extent->lo > block;
  return has_more && extent->lo >= block && node_is_bits(ix_mod(g, extent, ix_const(g, block)), 0);
}

int64_t team_tensor_side(const team_tile *t, size_t axis) {
  if (!t->tensor) return 1;
  return axis == ROWS ? t->tensor->m : t->tensor->n;
}

/* The cost of a tile. */

/** Words of the sums, and of both operands for one tile of each copy, in a worker's registers. */
double team_tensor_registers(const team_tile *t) {
  double rows = (double)t->copies[ROWS], columns = (double)t->copies[COLUMNS];
  return rows * columns * tensor_tile_words(t->tensor, TENSOR_SUM) +
         rows * tensor_tile_words(t->tensor, TENSOR_X) +
         columns * tensor_tile_words(t->tensor, TENSOR_Y) + MACHINE_TEAM_TILE_SPARE_REGISTERS;
}

static double warps_of(const team_tile *t) {
  return (double)(t->workers[ROWS] * t->workers[COLUMNS]);
}

double team_tensor_work(const team_tile *t) {
  double sums = warps_of(t) * (double)(t->copies[ROWS] * t->copies[COLUMNS]);
  sums *= t->tensor->m * t->tensor->n * tensor_rows[t->tensor->row].group;
  return sums / MACHINE_TEAM_TILE_PRODUCTS;
}

double team_tensor_loads(const team_tile *t) {
  double words = (double)(t->copies[ROWS] * t->tensor->m + t->copies[COLUMNS] * t->tensor->n);
  return warps_of(t) * words * WORD_BYTES / MACHINE_TEAM_GROUP_BYTES_PER_CYCLE;
}

double team_tensor_bytes(const team_tile *t) {
  double indices = 0;
  for (size_t k = 0; k < AXES; k++)
    indices += (double)(t->workers[k] * t->copies[k] * team_tensor_side(t, k));
  return indices * (double)(t->block + TENSOR_WARP_COLUMNS) * WORD_BYTES;
}

/* Cutting tiles. */

bool team_tensor_cut(choice *c, const team_tile *t, size_t axis, const node *inside, cut *k) {
  const node **slow = axis == ROWS ? &k->part[axis] : &k->lane[axis];
  const node **fast = axis == ROWS ? &k->lane[axis] : &k->part[axis];
  int64_t block = axis == ROWS ? TENSOR_WARP_ROWS : warp_tile_part(t->tensor, TILE_N);
  return choice_take(c, law_split(&c->laws, c->sink, inside, block, slow, fast));
}

/** Makes a FOLD of its own of the terms of a tile. */
static bool cut_tile_terms(choice *c, const team_tile *t, cut *k) {
  laws *l = &c->laws;
  const node *terms = k->terms[0], *outer, *const * ranges;
  if (t->block > t->tensor->k &&
      !choice_take(c, law_split(l, c->sink, terms, t->tensor->k, &outer, &terms)))
    return false;
  size_t n = binder_ranges(law_find_binder(l, c->sink, terms), &ranges);
  if (n < 2 || ranges[n - 1] != terms) return false;
  return choice_take(c, law_nest(l, c->sink, ranges[n - 2])) &&
         choice_take(c, law_kind_on_axis(l, c->sink, terms, KIND_TILE, TILE_K, &k->terms[0]));
}

/** The FOLD over the tiles' terms. */
static const node *fold_of_tiles(choice *c, const cut *k) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *f = binders.at[i], *step = f->op == OP_FOLD ? fold_step(f, 0) : NULL;
    if (step && step->op == OP_INDEX && step->src[0]->op == OP_FOLD &&
        fold_innermost_range(step->src[0]) == k->terms[0])
      return f;
  }
  return NULL;
}

bool team_tensor_jam(choice *c, const team_tile *t, cut *k) {
  laws *l = &c->laws;
  if (!cut_tile_terms(c, t, k)) return false;
  const node *fold = fold_of_tiles(c, k), *unused;
  const node *all[] = {k->copies[ROWS], k->copies[COLUMNS], k->part[ROWS], k->part[COLUMNS]};
  const node *outer[4], *own[4];
  size_t n = 0;
  for (size_t i = 0; i < 4; i++)
    if (all[i]) outer[n++] = all[i];
  return fold && choice_take(c, law_interchange(l, c->sink, fold_range(fold)[0], outer, n, own)) &&
         choice_take(c, law_kind_on_axis(l, c->sink, own[n - 2], KIND_TILE, TILE_M, &unused)) &&
         choice_take(c, law_kind_on_axis(l, c->sink, own[n - 1], KIND_TILE, TILE_N, &unused));
}

bool team_tensor_fill(choice *c, const node *warp) {
  const node *rows, *columns;
  return choice_take(c, law_split(&c->laws, c->sink, warp, TENSOR_WARP_COLUMNS, &rows, &columns)) &&
         team_set_digit(c, &rows, KIND_WARP, WARP_ROWS) &&
         team_set_digit(c, &columns, KIND_WARP, WARP_COLUMNS);
}

/* Finishing. */

/** Elements that the stride of an array's rows grows by, so that the 8 × 4 words that a warp loads
    together are in different banks: 4 of one row and of 8, or 8 of one row and of 4. */
static int64_t more_of_row(const node *array, bool is_along_terms) {
  int64_t length = node_int(stage_extents(array, 0)[stage_rank(array, 0) - 1]);
  int64_t wanted = is_along_terms ? TENSOR_WARP_COLUMNS : TENSOR_WARP_ROWS;
  int64_t every = is_along_terms ? TENSOR_WARP_ROWS : BANKS;
  return (wanted - length % every + every) % every;
}

/** Widens the stride of the rows of an operand's array. */
static void widen_stride(choice *c, const node *x, const node *terms) {
  const node *array = x->src[0];
  if (array->op != OP_STAGE || stage_n_values(array) != 1 || stage_rank(array, 0) < 2) return;
  if (!node_is_const(stage_extents(array, 0)[stage_rank(array, 0) - 1])) return;
  int64_t more = more_of_row(array, node_is_free_in(terms, x->src[x->n_src - 1]));
  if (more) choice_take(c, law_pitch(&c->laws, c->sink, array, more));
}

/** A FOLD that is computed in tiles of a warp; false: there is none. */
static bool find_tiles(choice *c, warp_tile *m) {
  team_arrays t = team_arrays_of(c->laws.g, c->sink);
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++)
    if (binders.at[i]->op == OP_FOLD && warp_tile_match(c->laws.g, &t, binders.at[i], m))
      return true;
  return false;
}

bool team_tensor_finish(choice *c) {
  warp_tile m;
  if (!find_tiles(c, &m)) return false;
  widen_stride(c, m.x, m.range[TILE_K]);
  if (!find_tiles(c, &m)) return false;
  widen_stride(c, m.y, m.range[TILE_K]);
  return find_tiles(c, &m);
}
