/* Counts the operations and bytes of a kernel symbolically: as sums of products of sizes, which are
   evaluated when the variables have values. The bytes read of an array, and those written, are at
   most all of it; of one that a FOLD updates in place, those of the updates. */
#include "schedule/kernels/kernel_counts.h"

#include "ir/core/binder.h"
#include "ir/core/tensor_rows.h"
#include "ir/transform/liftable_scalars.h"

/** A number times the product of some sizes. */
typedef struct product {
  double each;
  node_list sizes;
} product;

typedef VEC(product) sum;

/** The reads of an array, or its writes. */
typedef struct access {
  const node *array; /* a PARAM */
  bool is_write;
  sum parts;
} access;

typedef struct counting {
  arena *arena;
  sum operations;
  VEC(access) accesses;
  map updated; /* INDEXes by which FOLDs start as an array that they update, and their OUTs */
} counting;

/** True for a lifted variable: equal kernels have other values of it. */
static bool is_lifted_var(const node *n) {
  return n->op == OP_VAR && lifted_var_number(n->text, LIFTED_VAR_OF_KERNEL) != SIZE_MAX;
}

/** True if an extent can be computed from the variables of the graph alone. */
static bool is_size(const counting *w, const node *extent) {
  if (extent->free->n) return false;
  node_list all = topo_sort(w->arena, &extent, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    op o = (op)all.at[i]->op;
    bool is_known = o == OP_CONST || o == OP_VAR || o == OP_AFFINE || o == OP_MUL || o == OP_MIN ||
                    o == OP_MAX || o == OP_FLOORDIV || o == OP_MOD;
    if (!is_known || all.at[i]->dtype != DT_INDEX || is_lifted_var(all.at[i])) return false;
  }
  return true;
}

static void multiply(const counting *w, product *p, const node *extent) {
  if (node_is_const(extent))
    p->each *= (double)node_int(extent);
  else if (is_size(w, extent))
    vec_push(w->arena, &p->sizes, extent);
  else if (extent->hi < BOUND_HIGH)
    p->each *= (double)extent->hi;
}

static void multiply_ranges(const counting *w, product *p, const node *const ranges[], size_t n) {
  for (size_t i = 0; i < n; i++) multiply(w, p, range_extent(ranges[i]));
}

/** Adds a product to a sum; one of the same sizes as the last is joined with it. */
static void add_product(const counting *w, sum *s, product p) {
  product *last = s->n ? &vec_last(s) : NULL;
  bool same = last && last->sizes.n == p.sizes.n;
  for (size_t i = 0; same && i < p.sizes.n; i++) same = last->sizes.at[i] == p.sizes.at[i];
  if (same)
    last->each += p.each;
  else
    vec_push(w->arena, s, p);
}

/* Arithmetic. */

static bool is_arithmetic(const node *n) {
  bool moves = n->op == OP_CAST || n->op == OP_BITCAST || n->op == OP_WHERE;
  return op_is_elementwise((op)n->op) && n->dtype != DT_INDEX && !moves;
}

static void add_arithmetic(counting *w, const node *n) {
  const tensor_row *row = tensor_row_of((op)n->op);
  product p = {.each = row ? 2 * row->group - 1 : n->op == OP_FMA ? 2 : 1};
  multiply_ranges(w, &p, n->free->at, n->free->n);
  add_product(w, &w->operations, p);
}

/** Counts an operation a trip for each state with an op; for an array, one an element. */
static void add_fold(counting *w, const node *f) {
  for (size_t i = 0; i < fold_n_states(f); i++) {
    product p = {.each = 1};
    if (fold_op(f, i) < 0) continue;
    multiply_ranges(w, &p, f->free->at, f->free->n);
    multiply_ranges(w, &p, fold_range(f), fold_n_ranges(f));
    if (fold_component(f, i) >= 0)
      multiply_ranges(w, &p, stage_range(fold_step(f, i)), stage_n_ranges(fold_step(f, i)));
    add_product(w, &w->operations, p);
  }
}

/* Arrays. */

static void add_part(counting *w, const node *array, bool is_write, product p) {
  size_t i = 0;
  while (i < w->accesses.n &&
         (w->accesses.at[i].array != array || w->accesses.at[i].is_write != is_write))
    i++;
  if (i == w->accesses.n)
    vec_push(w->arena, &w->accesses, (access){.array = array, .is_write = is_write});
  add_product(w, &w->accesses.at[i].parts, p);
}

/** The FOLD whose state an OUT stores to the array that it started as, where that is all it stores;
    NULL: none. */
static const node *update_of(const node *out) {
  const node *stage = out->src[out->n_src - 1], *v = out->n_src == 2 ? stage_value(stage, 0) : NULL;
  if (!v || v->op != OP_INDEX || v->src[0]->op != OP_FOLD) return NULL;
  const node *fold = v->src[0], *start = fold_init(fold, 0);
  if (v->ints[0] || fold_n_states(fold) != 1 || fold_component(fold, 0) < 0) return NULL;
  if (start->op != OP_STAGE || stage_n_values(start) != 1) return NULL;
  const node *read = stage_value(start, 0);
  return read->op == OP_INDEX && read->src[0] == out->src[0] ? fold : NULL;
}

/** Counts what a FOLD's updates read and write of an array, in place of all of it. */
static void add_updates(counting *w, const node *out, const node *fold) {
  product p = {.each = 1};
  multiply_ranges(w, &p, fold->free->at, fold->free->n);
  multiply_ranges(w, &p, fold_range(fold), fold_n_ranges(fold));
  multiply_ranges(w, &p, stage_range(fold_step(fold, 0)), stage_n_ranges(fold_step(fold, 0)));
  if (fold_op(fold, 0) >= 0) add_part(w, out->src[0], false, p);
  add_part(w, out->src[0], true, p);
  map_set(w->arena, &w->updated, out, (void *)fold);
  map_set(w->arena, &w->updated, stage_value(fold_init(fold, 0), 0), (void *)fold);
}

static void add_writes(counting *w, const node *out) {
  const node *stage = out->src[out->n_src - 1];
  for (uint32_t i = 0; i + 1 < out->n_src; i++) {
    product p = {.each = 1};
    multiply_ranges(w, &p, stage_range(stage), stage_loop_depth(stage, i));
    add_part(w, out->src[i], true, p);
  }
}

/* The list of terms. */

static void put_term(const counting *w, kernel_count_terms *out, kernel_count_kind kind,
                     double scale, const product *p) {
  vec_push(w->arena, &out->items, (kernel_count_term){kind, p->sizes.n, scale * p->each});
  for (size_t i = 0; i < p->sizes.n; i++) vec_push(w->arena, &out->sizes, p->sizes.at[i]);
}

static void put_access(const counting *w, kernel_count_terms *out, const access *x) {
  double bytes = (double)dtype_bytes((dtype)x->array->dtype);
  product all = {.each = 1};
  for (size_t i = 0; i < x->array->rank; i++) multiply(w, &all, x->array->dims[i]);
  put_term(w, out, COUNT_ARRAY_BYTES, bytes, &all);
  for (size_t i = 0; i < x->parts.n; i++)
    put_term(w, out, COUNT_TOUCHED_BYTES, bytes, &x->parts.at[i]);
}

kernel_count_terms kernel_counts_of(arena *a, const node *sink) {
  counting w = {.arena = a};
  kernel_count_terms out = {0};
  node_list all = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    const node *fold = all.at[i]->op == OP_OUT ? update_of(all.at[i]) : NULL;
    if (fold) add_updates(&w, all.at[i], fold);
  }
  for (size_t i = 0; i < all.n; i++) {
    const node *n = all.at[i];
    if (is_arithmetic(n)) add_arithmetic(&w, n);
    if (n->op == OP_FOLD) add_fold(&w, n);
    if (map_has(&w.updated, n)) continue;
    if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM) {
      product p = {.each = 1};
      multiply_ranges(&w, &p, n->free->at, n->free->n);
      add_part(&w, n->src[0], false, p);
    }
    if (n->op == OP_OUT) add_writes(&w, n);
  }
  for (size_t i = 0; i < w.operations.n; i++)
    put_term(&w, &out, COUNT_OPERATIONS, 1, &w.operations.at[i]);
  for (size_t i = 0; i < w.accesses.n; i++) put_access(&w, &out, &w.accesses.at[i]);
  return out;
}

kernel_counts kernel_counts_evaluate(const kernel_count_term items[], size_t n,
                                     const int64_t sizes[]) {
  kernel_counts w = {0, 0};
  double uncounted = 0; /* bytes of the current array that are not counted yet */
  for (size_t i = 0; i < n; i++) {
    double amount = items[i].each;
    for (size_t k = 0; k < items[i].n_sizes; k++) amount *= (double)*sizes++;
    if (items[i].kind == COUNT_OPERATIONS) {
      w.operations += amount;
    } else if (items[i].kind == COUNT_ARRAY_BYTES) {
      uncounted = amount;
    } else {
      double part = amount < uncounted ? amount : uncounted;
      w.bytes += part;
      uncounted -= part;
    }
  }
  return w;
}
