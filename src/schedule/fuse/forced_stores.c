/* Wishes which values the fusion search stores, because its estimates do not see the cost of
   computing them inside of their readers: a contraction there gets no register tile of its own, and
   an expensive function is computed again for each tile. These values are stored:

     - the last value of a contraction's epilogue, if a window reads it, a select of more points, or
       another contraction, where the epilogue has an expensive function or the contraction is long
       and of computed operands, as attention's is; or if a piece of a join moves it;
     - an operand that the windows of a contraction read several times over;
     - an operand of a contraction that is converted from 16-bit floats and read many times;
     - an operand of a contraction that is packed in words, for tiles of warps, which are cut from
       nests without arrays;
     - an operand of a contraction that is joined of pieces, as by a concatenation, or combined of
       many elements of another contraction's result, as those of Winograd's algorithm are;
     - the result of a scan that a contraction reads.

   Where kernels have costs, this is the start from which stores are chosen (grouping). */
#include "schedule/fuse/search_state.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/tensor_rows.h"
#include "target/machine.h"

enum { MOST_AFTER = 256 }; /* values after a contraction among which its epilogue is sought */

typedef struct forcing {
  grouping *s;
  const value_list *readers; /* of each value, by position */
  bool *feeds; /* of each value: a contraction reads it, perhaps through elementwise values with one
                  reader each */
} forcing;

static value *value_of(const forcing *f, const node *tensor) {
  return map_get(&f->s->values->of, tensor);
}

static bool is_elementwise(const value *v) {
  return v->body && !value_is_reduction(v) && !value_is_never_stored(v) &&
         !v->memory.is_never_inlined;
}

/** True for a contraction that may be stored and has a register tile. */
static bool is_tiled_contraction(const value *v) {
  return value_is_contraction(v) && v->body && !value_is_never_stored(v) && v->facts->tiles.own > 0;
}

static void find_feeds(forcing *f) {
  const values *v = f->s->values;
  f->feeds = arena_calloc(f->s->work, v->at.n + 1, sizeof *f->feeds);
  for (size_t i = v->at.n; i-- > 0;) {
    const value *x = v->at.at[i];
    bool passes = is_elementwise(x) && !x->memory.stores.n && f->readers[i].n == 1;
    f->feeds[i] = passes ? f->feeds[f->readers[i].at[0]->position] : is_tiled_contraction(x);
  }
}

/** Times that a reader reads each element of a value, if it reads all of them. */
static double times_read(const value *reader, const value *v) {
  double times = reader->facts->size.points / v->facts->size.points;
  for (size_t i = 0; i < reader->reduction.n; i++)
    times *= ix_likely(range_extent(reader->reduction.ranges[i]));
  return times;
}

/** True if an index takes each element of an axis at most once: a whole range, a digit of one, or
    several digits of a number. */
static bool is_movement(const node *x, const node *size) {
  size_t n = ix_terms(x);
  if (n == 1) return ix_atom(x, 0)->op != OP_RANGE || range_extent(x) == size;
  for (size_t i = 0; i < n; i++) {
    double place = (double)ix_coefficient_at(x, i), below = 0;
    for (size_t k = 0; k < n; k++) {
      double other = (double)ix_coefficient_at(x, k);
      if (k != i && other == place) return false;
      if (other < place) below += other * (double)ix_atom(x, k)->hi;
    }
    if (place <= below) return false;
  }
  return true;
}

static bool is_moved_only(const value *v, const node *read) {
  for (size_t k = 0; k < v->rank; k++)
    if (!is_movement(read->src[1 + k], v->dims[k])) return false;
  return true;
}

/** True if some index is a sum, as those of windows are. */
static bool has_sums(const value *v, const node *read) {
  for (size_t k = 0; k < v->rank; k++)
    if (ix_terms(read->src[1 + k]) > 1) return true;
  return false;
}

static void force_store(value *v) { v->memory.wish = WISH_FORCED; }

/** Stores the operands that windows of contractions read several times over. */
static void store_window_operands(forcing *f) {
  const values *v = f->s->values;
  for (size_t i = 0; i < v->at.n; i++) {
    const value *r = v->at.at[i];
    for (size_t k = 0; f->feeds[i] && k < r->inputs.elements.n; k++) {
      const node *read = r->inputs.elements.at[k];
      value *from = value_of(f, read->src[0]);
      if (from && (is_elementwise(from) || is_tiled_contraction(from)) && has_sums(from, read) &&
          !is_moved_only(from, read) && times_read(r, from) > MACHINE_WINDOW_REUSE_LEAST)
        force_store(from);
    }
  }
}

/** True if a value selects between tensors by its coordinates, or follows from one that does. */
static bool is_joined(const forcing *f, const value *v, const bool joined[]) {
  bool by_coordinates = false, follows = false;
  size_t pieces = 0;
  if (!is_elementwise(v) || v->memory.is_cut || v->memory.stores.n) return false;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = value_of(f, v->inputs.tensors.at[i]);
    bool is_condition = from && value_is_index_function(from);
    by_coordinates |= is_condition && v->tensor->op == OP_WHERE;
    pieces += !is_condition;
    follows |= from && joined[from->position] && from->facts->size.points == v->facts->size.points;
  }
  return follows || (by_coordinates && pieces > 1);
}

/** The elements of a contraction's result from which an element of a value is computed: of that
   contraction from which most are; of a select those of one operand. */
typedef struct combination {
  const value *contraction; /* NULL: none */
  size_t n;
} combination;

static combination combination_of_input(const forcing *f, const value *v, size_t i,
                                        const combination all[]) {
  const value *from = value_of(f, v->inputs.elements.at[i]->src[0]);
  if (!from) return (combination){0};
  return is_tiled_contraction(from) ? (combination){from, 1} : all[from->position];
}

static combination combination_of(const forcing *f, const value *v, const combination all[]) {
  combination most = {0};
  for (size_t i = 0; is_elementwise(v) && i < v->inputs.elements.n; i++) {
    combination of = combination_of_input(f, v, i, all);
    for (size_t k = 0; of.contraction && v->tensor->op != OP_WHERE && k < i; k++) {
      combination other = combination_of_input(f, v, k, all);
      if (other.contraction == of.contraction) of.n += other.n;
    }
    if (of.n > most.n) most = of;
  }
  return most;
}

/** True if a value converts 16-bit floats to f32. */
static bool widens_halves(const value *v) {
  if (!is_elementwise(v) || v->tensor->dtype != DT_F32) return false;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    dtype t = (dtype)v->inputs.tensors.at[i]->dtype;
    if (t == DT_F16 || t == DT_BF16) return true;
  }
  return false;
}

/** True if a value multiplies, or sums products of, words of which warps compute tiles. */
static bool multiplies_for_warps(const forcing *f, const value *v) {
  const node *n = v->tensor;
  if (n->op == OP_REDUCE) n = n->src[0];
  return f->s->m->warp_tiles && tensor_row_of((op)n->op);
}

/** Stores the operands of contractions that each tile would compute at too high a cost: those
   joined of pieces, which it would select among, those that combine many elements of another
   contraction's result, and those converted from 16-bit floats that are read many times. */
static void store_costly_operands(forcing *f) {
  const values *v = f->s->values;
  bool *joined = arena_calloc(f->s->work, v->at.n + 1, sizeof *joined);
  combination *all = arena_calloc(f->s->work, v->at.n + 1, sizeof *all);
  for (size_t i = 0; i < v->at.n; i++) {
    const value *r = v->at.at[i];
    joined[i] = is_joined(f, r, joined);
    all[i] = combination_of(f, r, all);
    for (size_t k = 0; f->feeds[i] && k < r->inputs.tensors.n; k++) {
      value *from = value_of(f, r->inputs.tensors.at[k]);
      bool is_costly =
          from && (joined[from->position] || all[from->position].n >= MACHINE_COMBINED_ELEMENTS);
      double times = from ? times_read(r, from) : 0;
      bool is_converted = from && widens_halves(from) && times > MACHINE_CONVERTED_REUSE_LEAST;
      bool is_packed = from && is_elementwise(from) && !tensor_row_of((op)from->tensor->op) &&
                       multiplies_for_warps(f, r);
      if (is_converted || (is_costly && times > MACHINE_OPERAND_REUSE_LEAST)) force_store(from);
      if (is_packed) from->memory.wish = WISH_KEPT;
    }
  }
}

/** True if v reads elements of the values in `region` at its own coordinates alone. */
static bool reads_in_place(const value *v, const map *region) {
  for (size_t i = 0; i < v->inputs.elements.n; i++) {
    const node *read = v->inputs.elements.at[i];
    const value *from = map_get(region, read->src[0]);
    if (from && !value_reads_in_place(v, read, from->rank)) return false;
  }
  return true;
}

/** The epilogue of a contraction: elementwise values of the same size that follow in place. */
typedef struct epilogue {
  value *last;       /* the last value through which all others are read; the contraction itself */
  bool is_expensive; /* its ops, or its contraction, cost too much for computing it again */
} epilogue;

static bool is_expensive(const value *v) {
  return v->facts->code.own.once >= MACHINE_EXPENSIVE_EPILOGUE;
}

/** True if all operands of a value are computed; products of more elements than it has stand for
    their operands. */
static bool has_computed_operands(const forcing *f, const value *v, size_t depth) {
  for (size_t i = 0; i < v->inputs.tensors.n; i++) {
    const value *from = value_of(f, v->inputs.tensors.at[i]);
    if (!from || !from->body) return false;
    bool is_term = is_elementwise(from) && from->facts->size.points > v->facts->size.points;
    if (is_term && (!depth || !has_computed_operands(f, from, depth - 1))) return false;
  }
  return true;
}

/** True if a contraction is long and reads no weights: attention's product with the values. */
static bool is_long_product(const forcing *f, const value *c) {
  double terms = 1;
  for (size_t i = 0; i < c->reduction.n; i++)
    terms *= ix_likely(range_extent(c->reduction.ranges[i]));
  return terms > MACHINE_INLINED_PRODUCT_MOST && has_computed_operands(f, c, FUSION_MOST_CHAIN);
}

static size_t count_reads_of(const value *v, const map *region) {
  size_t n = 0;
  for (size_t i = 0; i < v->inputs.tensors.n; i++) n += map_has(region, v->inputs.tensors.at[i]);
  return n;
}

/** Follows the values from a contraction on, in topological order, up to the first that is not
    computed in place. `open` counts the reads that lead out of the region. */
static epilogue find_epilogue(const forcing *f, value *c) {
  const values *all = f->s->values;
  bool expensive = is_long_product(f, c);
  epilogue e = {.last = c, .is_expensive = expensive};
  map region = {0};
  size_t open = f->readers[c->position].n;
  map_set(f->s->work, &region, c->tensor, c);
  size_t end = c->position + MOST_AFTER < all->at.n ? c->position + MOST_AFTER : all->at.n;
  for (size_t i = c->position + 1; i < end && open; i++) {
    value *v = all->at.at[i];
    size_t reads = count_reads_of(v, &region);
    if (!reads) continue;
    if (!is_elementwise(v) || v->facts->size.points != c->facts->size.points ||
        !reads_in_place(v, &region))
      break;
    map_set(f->s->work, &region, v->tensor, v);
    expensive |= is_expensive(v);
    open = open - reads + f->readers[i].n;
    if (open == f->readers[i].n) e = (epilogue){v, expensive};
    if (v->memory.stores.n) break;
  }
  return e;
}

/** True if a value reads an epilogue's last value in a way that would compute it again, or, as a
    piece of a join that is moved, would lose its tiles. */
static bool repeats(const forcing *f, const value *reader, const epilogue *e) {
  double times = times_read(reader, e->last);
  bool is_piece = map_has(&f->s->values->places, reader->tensor);
  for (size_t i = 0; i < reader->inputs.elements.n; i++) {
    const node *read = reader->inputs.elements.at[i];
    if (read->src[0] != e->last->tensor) continue;
    if (is_piece && !value_reads_in_place(reader, read, e->last->rank)) return true;
    if (times <= 1) continue;
    if (!is_moved_only(e->last, read)) return true;
    if (e->is_expensive && times > MACHINE_OPERAND_REUSE_LEAST && f->feeds[reader->position])
      return true;
  }
  return false;
}

static void store_epilogues(forcing *f) {
  const values *v = f->s->values;
  for (size_t i = 0; i < v->at.n; i++) {
    if (!is_tiled_contraction(v->at.at[i])) continue;
    arena_mark here = arena_save(f->s->work);
    epilogue e = find_epilogue(f, v->at.at[i]);
    arena_rewind(f->s->work, here);
    for (size_t k = 0; k < f->readers[e.last->position].n; k++)
      if (repeats(f, f->readers[e.last->position].at[k], &e)) force_store(e.last);
  }
}

/** Follows the only readers of a value as long as they are elementwise and of its size. */
static const value *follow_chain(const forcing *f, const value *v) {
  for (size_t i = 0; i < FUSION_MOST_CHAIN; i++) {
    const value_list *r = &f->readers[v->position];
    if (r->n != 1 || !is_elementwise(r->at[0]) || r->at[0]->memory.stores.n ||
        r->at[0]->facts->size.points != v->facts->size.points)
      break;
    v = r->at[0];
  }
  return v;
}

/** Stores the results of scans that contractions read. */
static void store_scans(forcing *f) {
  const values *v = f->s->values;
  for (size_t i = 0; i < v->at.n; i++) {
    value *x = v->at.at[i];
    if (!is_elementwise(x) || !value_reads_scan(v, x)) continue;
    const value *last = follow_chain(f, x);
    for (size_t k = 0; k < f->readers[last->position].n; k++) {
      const value *r = f->readers[last->position].at[k];
      if (!r->scan && !value_reads_scan(v, r) && f->feeds[r->position] &&
          times_read(r, x) > MACHINE_OPERAND_REUSE_LEAST)
        force_store(x);
    }
  }
}

void fusion_force_stores(grouping *s) {
  arena_mark here = arena_save(s->work);
  forcing f = {.s = s, .readers = s->readers};
  find_feeds(&f);
  store_window_operands(&f);
  store_costly_operands(&f);
  store_epilogues(&f);
  store_scans(&f);
  arena_rewind(s->work, here);
}
