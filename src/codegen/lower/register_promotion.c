/* Promotes small arrays to registers (scalar replacement). An array in scratch memory whose every
   access has a constant address, as after unrolling, and whose elements are stored in few groups
   that do not overlap, becomes one register a group; a single element of a group is extracted from
   it. Arrays that a loop fills are spilled to memory after it where another loop needs the
   registers before they are read, or where they are read in a loop at varying addresses. Such
   arrays stay in memory where a loop that fills them may be empty. A group takes a vector register;
   of a worker of a team, as many registers of 32 bits as hold it. */
#include "codegen/codegen.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

#include "base/map.h"

#include <stdlib.h>

/** Elements that are stored together: one register. */
typedef struct cell {
  int64_t first;
  uint16_t lanes;
  bool is_stored; /* by a store that no empty loop can leave out */
} cell;

typedef VEC(cell) cell_list;

/** An array of scratch memory. */
typedef struct array {
  const node *alloc;
  cell_list cells;  /* sorted once all accesses are known */
  size_t own;       /* registers that the cells take */
  node_list loops;  /* ranges that stored values depend on: the loops that fill it */
  size_t registers; /* taken by the array and those inside of it */
  bool is_spilled;  /* to memory, at the end of the loop that fills it */
  bool refused;     /* stays an array */
} array;

typedef struct promotion {
  ir *g;
  const target *target;
  arena *a;
  map arrays;  /* ALLOC → array */
  map roots;   /* AFTER → the ALLOC or PARAM that it orders */
  map image;   /* node → its replacement */
  map storage; /* ALLOC or AFTER of a promoted array → const node *[cells] */
  map spills;  /* AFTER of a spilled array → its copy in memory */
} promotion;

static const node *root_of(const promotion *p, const node *storage) {
  const node *root = map_get(&p->roots, storage);
  return root ? root : storage;
}

/** The array of an access; NULL: none in scratch memory. */
static array *array_of(const promotion *p, const node *access) {
  return map_get(&p->arrays, root_of(p, access->src[0]));
}

static bool is_access(const node *n) { return n->op == OP_LOAD || n->op == OP_STORE; }

static uint16_t lanes_of(const node *access) {
  return access->op == OP_STORE ? access->src[2]->lanes : access->lanes;
}

static bool is_after_loop(const node *storage) {
  for (uint32_t i = 1; i < storage->n_src && storage->op == OP_AFTER; i++)
    if (storage->src[i]->op == OP_END) return true;
  return false;
}

/* Arrays to promote. */

static int by_first(const void *a, const void *b) {
  const cell *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

/** Sorts cells and drops duplicates; false if some overlap. */
static bool sort_cells(cell_list *l) {
  size_t n = 0;
  if (l->n) qsort(l->at, l->n, sizeof *l->at, by_first);
  for (size_t i = 0; i < l->n; i++) {
    const cell *last = n ? &l->at[n - 1] : NULL, *c = &l->at[i];
    if (last && last->first == c->first && last->lanes == c->lanes) {
      l->at[n - 1].is_stored |= c->is_stored;
      continue;
    }
    if (last && last->first + last->lanes > c->first) return false;
    l->at[n++] = *c;
  }
  l->n = n;
  return true;
}

/** The cell that an access is to, as a whole or by one element; the number of cells: none. */
static size_t find_cell(const array *a, int64_t first, uint16_t lanes) {
  size_t low = 0, high = a->cells.n;
  while (low < high) {
    size_t mid = (low + high) / 2;
    const cell *c = &a->cells.at[mid];
    if (c->first + c->lanes <= first)
      low = mid + 1;
    else
      high = mid;
  }
  if (low == a->cells.n || a->cells.at[low].first > first) return a->cells.n;
  const cell *c = &a->cells.at[low];
  return lanes == 1 || (c->first == first && c->lanes == lanes) ? low : a->cells.n;
}

/** True if all loops around a store, inside of the place of its array, have an iteration. */
static bool is_always_run(const array *a, const node *store) {
  for (uint32_t i = 0; i < store->free->n; i++) {
    const node *r = store->free->at[i];
    if (!node_is_free_in(r, a->alloc) && range_extent(r)->lo < 1) return false;
  }
  return true;
}

static void note_store(promotion *p, array *a, const node *store) {
  cell c = {node_int(store->src[1]), lanes_of(store), is_always_run(a, store)};
  vec_push(p->a, &a->cells, c);
  for (uint32_t i = 0; i < store->free->n; i++)
    if (!nodes_contain(a->loops.at, a->loops.n, store->free->at[i]))
      vec_push(p->a, &a->loops, store->free->at[i]);
}

static void note_access(promotion *p, const node *n) {
  if (n->op == OP_AFTER) map_set(p->a, &p->roots, n, (void *)root_of(p, n->src[0]));
  if (n->op == OP_ALLOC && n->ints[1] == 1) {
    array *a = arena_calloc(p->a, 1, sizeof *a);
    a->alloc = n;
    map_set(p->a, &p->arrays, n, a);
  }
  array *a = is_access(n) ? array_of(p, n) : NULL;
  if (!a) return;
  bool varies = !node_is_const(n->src[1]), is_rows = n->op == OP_LOAD && n->n_src > 2;
  a->is_spilled |= varies;
  a->refused |= is_rows || (varies && (n->op == OP_STORE || !is_after_loop(n->src[0])));
  if (n->op == OP_STORE && !a->refused) note_store(p, a, n);
}

/** Registers that the cells of an array take. */
static size_t registers_of(const promotion *p, const array *a) {
  size_t all = 0, bytes = dtype_bytes((dtype)a->alloc->dtype);
  for (size_t c = 0; c < a->cells.n; c++)
    all += target_registers_for(p->target, a->cells.at[c].lanes * bytes);
  return all;
}

/** Finds the arrays to promote: few cells that do not overlap, and loads of one cell each. */
static void find_arrays(promotion *p, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) note_access(p, order->at[i]);
  for (size_t i = 0; i < order->n; i++) {
    array *a = order->at[i]->op == OP_ALLOC ? map_get(&p->arrays, order->at[i]) : NULL;
    if (!a || a->refused) continue;
    a->refused = !sort_cells(&a->cells);
    a->own = registers_of(p, a);
    a->refused |= a->own > p->target->registers;
  }
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    array *a = n->op == OP_LOAD ? array_of(p, n) : NULL;
    if (!a || a->refused || !node_is_const(n->src[1])) continue;
    a->refused = find_cell(a, node_int(n->src[1]), lanes_of(n)) == a->cells.n;
  }
}

/* Arrays that are live around others, as the sums of blocks are around the sums of terms, stay in
   memory where both together exceed the registers. */

static size_t place_depth(const array *a) { return a->alloc->n_src - 1; }

static int inner_first(const void *a, const void *b) {
  size_t x = place_depth(*(array *const *)a), y = place_depth(*(array *const *)b);
  return (x < y) - (x > y);
}

/** True if an array is made in a loop that another one, made outside of it, is filled in. */
static bool is_inside(const array *inner, const array *outer) {
  const node *const *in = inner->alloc->src + 1, *const *out = outer->alloc->src + 1;
  size_t n_in = place_depth(inner), n_out = place_depth(outer);
  bool is_filled_around = false;
  for (size_t i = 0; i < n_out; i++)
    if (!nodes_contain(in, n_in, out[i])) return false;
  for (size_t i = 0; i < n_in; i++)
    is_filled_around |=
        !nodes_contain(out, n_out, in[i]) && nodes_contain(outer->loops.at, outer->loops.n, in[i]);
  return is_filled_around;
}

static bool have_same_place(const array *a, const array *b) {
  if (place_depth(a) != place_depth(b)) return false;
  for (uint32_t i = 1; i < a->alloc->n_src; i++)
    if (a->alloc->src[i] != b->alloc->src[i]) return false;
  return true;
}

typedef VEC(array *) array_list;

/** Spills arrays that are filled one after the other and read together, if they exceed the
 * registers.
 */
static void find_spilled(const array_list *all, size_t registers) {
  for (size_t i = 0; i < all->n; i++) {
    size_t together = 0;
    for (size_t k = 0; k < all->n; k++)
      if (have_same_place(all->at[i], all->at[k])) together += all->at[k]->registers;
    all->at[i]->is_spilled |= together > registers && together > all->at[i]->registers;
  }
}

static void refuse_outer_arrays(promotion *p, const node_list *order) {
  array_list all = {0};
  size_t registers = p->target->registers;
  for (size_t i = 0; i < order->n; i++) {
    array *a = order->at[i]->op == OP_ALLOC ? map_get(&p->arrays, order->at[i]) : NULL;
    if (a && !a->refused && a->cells.n > 1) vec_push(p->a, &all, a);
  }
  if (all.n) qsort(all.at, all.n, sizeof *all.at, inner_first);
  for (size_t i = 0; i < all.n; i++) {
    array *a = all.at[i];
    size_t inside = 0;
    for (size_t k = 0; k < i; k++)
      if (is_inside(all.at[k], a) && all.at[k]->registers > inside) inside = all.at[k]->registers;
    a->refused = inside && inside + a->own > registers;
    a->registers = inside + (a->refused ? 0 : a->own);
  }
  find_spilled(&all, registers);
}

/** Refuses arrays to be spilled after loops that may have stored nothing: registers are read there
    whatever readers of their elements ask before. */
static void refuse_unstored(promotion *p, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    array *a = order->at[i]->op == OP_ALLOC ? map_get(&p->arrays, order->at[i]) : NULL;
    for (size_t c = 0; a && a->is_spilled && c < a->cells.n; c++)
      a->refused |= !a->cells.at[c].is_stored;
  }
}

/* Registers in place of arrays. */

static const node *image_of(const promotion *p, const node *n) {
  const node *with = map_get(&p->image, n);
  return with ? with : n;
}

static const node **source_images(promotion *p, const node *n) {
  const node **src = arena_alloc(p->a, (n->n_src + 1) * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = image_of(p, n->src[i]);
  return src;
}

static const node *make_register(promotion *p, const array *a, size_t c) {
  const node *alloc = a->alloc, **src = source_images(p, alloc);
  int64_t ints[] = {ir_fresh_id(p->g), 0};
  src[0] = ix_const(p->g, 1);
  node_spec s = node_spec_with_sources(alloc, src, alloc->n_src);
  s.ints = ints;
  s.lanes = a->cells.at[c].lanes;
  return ir_make(p->g, &s);
}

/** A cell after the effects of an AFTER, without stores to other cells. */
static const node *cell_after(promotion *p, const array *a, size_t c, const node *after,
                              const node *below) {
  const node **src = arena_alloc(p->a, after->n_src * sizeof *src);
  size_t n = 0;
  src[n++] = below;
  for (uint32_t i = 1; i < after->n_src; i++) {
    const node *e = after->src[i];
    bool here = e->op == OP_STORE && array_of(p, e) == a;
    if (!here || node_int(e->src[1]) == a->cells.at[c].first) src[n++] = image_of(p, e);
  }
  if (n == 1) return below;
  return ir_make(p->g, &(node_spec){.op = OP_AFTER,
                                    .dtype = (dtype)after->dtype,
                                    .lanes = below->lanes,
                                    .src = src,
                                    .n_src = n});
}

/** The storage of one cell as an access through `storage` sees it. */
static const node *cell_storage(promotion *p, const array *a, const node *storage, size_t c) {
  size_t bytes = a->cells.n * sizeof(const node *);
  VEC(const node *) chain = {0}; /* AFTERs without an image of this cell yet */
  const node **known, *at = NULL;
  for (const node *s = storage; !at; s = s->src[0]) {
    known = map_get(&p->storage, s);
    if (!known) map_set(p->a, &p->storage, s, known = arena_calloc(p->a, 1, bytes));
    if (!known[c] && s->op == OP_ALLOC) known[c] = make_register(p, a, c);
    if (!(at = known[c])) vec_push(p->a, &chain, s);
  }
  while (chain.n) {
    const node *after = vec_pop(&chain);
    known = map_get(&p->storage, after);
    at = known[c] = cell_after(p, a, c, after, at);
  }
  return at;
}

static const node *make_load(promotion *p, const node *like, uint16_t lanes, const node *storage,
                             const node *address) {
  return ir_make(p->g, &(node_spec){.op = OP_LOAD,
                                    .dtype = (dtype)like->dtype,
                                    .lanes = lanes,
                                    .src = (const node *[]){storage, address},
                                    .n_src = 2});
}

/** An array in memory that holds the registers of another one after a loop. */
static const node *spill_array(promotion *p, const array *a, const node *after) {
  const node *known = map_get(&p->spills, after), *zero = ix_const(p->g, 0);
  if (known) return known;
  int64_t ints[] = {ir_fresh_id(p->g), a->alloc->ints[1]};
  node_spec s = node_spec_with_sources(a->alloc, source_images(p, a->alloc), a->alloc->n_src);
  s.ints = ints;
  const node *copy = ir_make(p->g, &s), **src = arena_alloc(p->a, (a->cells.n + 1) * sizeof *src);
  src[0] = copy;
  for (size_t c = 0; c < a->cells.n; c++) {
    const node *value =
        make_load(p, a->alloc, a->cells.at[c].lanes, cell_storage(p, a, after, c), zero);
    const node *to[] = {copy, ix_const(p->g, a->cells.at[c].first), value};
    src[c + 1] = ir_node(p->g, OP_STORE, DT_VOID, to, 3, NULL, 0);
  }
  copy = ir_node(p->g, OP_AFTER, (dtype)copy->dtype, src, a->cells.n + 1, NULL, 0);
  map_set(p->a, &p->spills, after, (void *)copy);
  return copy;
}

static const node *promote_load(promotion *p, const array *a, const node *n) {
  if (a->is_spilled && is_after_loop(n->src[0]))
    return make_load(p, n, n->lanes, spill_array(p, a, n->src[0]), n->src[1]);
  size_t c = find_cell(a, node_int(n->src[1]), n->lanes);
  const cell *of = &a->cells.at[c];
  const node *whole =
      make_load(p, n, of->lanes, cell_storage(p, a, n->src[0], c), ix_const(p->g, 0));
  int64_t lane = node_int(n->src[1]) - of->first;
  if (of->lanes == n->lanes) return whole;
  return ir_make(p->g, &(node_spec){.op = OP_EXTRACT,
                                    .dtype = (dtype)n->dtype,
                                    .src = &whole,
                                    .n_src = 1,
                                    .ints = &lane,
                                    .n_int = 1});
}

static const node *promote_store(promotion *p, const array *a, const node *n) {
  size_t c = find_cell(a, node_int(n->src[1]), lanes_of(n));
  const node **src = source_images(p, n);
  src[0] = cell_storage(p, a, n->src[0], c);
  src[1] = ix_const(p->g, 0);
  return ir_node(p->g, OP_STORE, DT_VOID, src, n->n_src, NULL, 0);
}

static const node *rebuild_node(promotion *p, const node *n) {
  const array *a = is_access(n) ? array_of(p, n) : NULL;
  if (a && !a->refused) return n->op == OP_LOAD ? promote_load(p, a, n) : promote_store(p, a, n);
  for (uint32_t i = 0; i < n->n_src; i++)
    if (image_of(p, n->src[i]) != n->src[i]) return subst_rebuild(p->g, n, source_images(p, n));
  return n;
}

const node *codegen_promote_registers(ir *g, const node *sink, const target *t) {
  promotion p = {.g = g, .target = t, .a = ir_arena(g)};
  node_list order = topo_sort(p.a, &sink, 1, NULL, NULL);
  find_arrays(&p, &order);
  refuse_outer_arrays(&p, &order);
  refuse_unstored(&p, &order);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *with = rebuild_node(&p, n);
    if (with != n) map_set(p.a, &p.image, n, (void *)with);
  }
  return image_of(&p, sink);
}
