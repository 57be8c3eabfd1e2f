#include "schedule/work.h"

#include "ir/binder.h"
#include "ir/scalars.h"

/** So many times the product of some sizes. */
typedef struct product {
  double each;
  node_list sizes;
} product;

typedef VEC(product) sum;

/** What is read of an array, or written to it. */
typedef struct access {
  const node *array; /* a PARAM */
  bool is_write;
  sum parts;
} access;

typedef struct working {
  arena *arena;
  sum operations;
  VEC(access) accesses;
} working;

/** Kernels that are equal have other ones. */
static bool is_scalar(const node *n) {
  return n->op == OP_VAR && scalar_number(n->text, SCALAR_OF_KERNEL) != SIZE_MAX;
}

/** Whether an extent is a number that sizes are computed to as soon as variables have values. */
static bool is_size(const working *w, const node *extent) {
  if (extent->free->n) return false;
  node_list all = topo_sort(w->arena, &extent, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    op o = (op)all.at[i]->op;
    bool is_known = o == OP_CONST || o == OP_VAR || o == OP_AFFINE || o == OP_MUL || o == OP_MIN ||
                    o == OP_MAX || o == OP_FLOORDIV || o == OP_MOD;
    if (!is_known || all.at[i]->dtype != DT_INDEX || is_scalar(all.at[i])) return false;
  }
  return true;
}

static void times(const working *w, product *p, const node *extent) {
  if (node_is_const(extent))
    p->each *= (double)node_int(extent);
  else if (is_size(w, extent))
    vec_push(w->arena, &p->sizes, extent);
  else if (extent->hi < BOUND_HIGH)
    p->each *= (double)extent->hi;
}

static void times_ranges(const working *w, product *p, const node *const ranges[], size_t n) {
  for (size_t i = 0; i < n; i++) times(w, p, range_extent(ranges[i]));
}

/** A product of the same sizes as the last one becomes part of that. */
static void add(const working *w, sum *s, product p) {
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

static void add_arithmetic(working *w, const node *n) {
  product p = {.each = n->op == OP_FMA ? 2 : 1};
  times_ranges(w, &p, n->free->at, n->free->n);
  add(w, &w->operations, p);
}

/** States with an op are combined with a term in each turn, arrays element by element. */
static void add_fold(working *w, const node *f) {
  for (size_t i = 0; i < fold_states(f); i++) {
    product p = {.each = 1};
    if (fold_op(f, i) < 0) continue;
    times_ranges(w, &p, f->free->at, f->free->n);
    times_ranges(w, &p, fold_range(f), fold_ranges(f));
    if (fold_component(f, i) >= 0)
      times_ranges(w, &p, stage_range(fold_step(f, i)), stage_ranges(fold_step(f, i)));
    add(w, &w->operations, p);
  }
}

/* Arrays. */

static void add_part(working *w, const node *array, bool is_write, product p) {
  size_t i = 0;
  while (i < w->accesses.n &&
         (w->accesses.at[i].array != array || w->accesses.at[i].is_write != is_write))
    i++;
  if (i == w->accesses.n)
    vec_push(w->arena, &w->accesses, (access){.array = array, .is_write = is_write});
  add(w, &w->accesses.at[i].parts, p);
}

static void add_read(working *w, const node *index) {
  product p = {.each = 1};
  times_ranges(w, &p, index->free->at, index->free->n);
  add_part(w, index->src[0], false, p);
}

static void add_writes(working *w, const node *out) {
  const node *stage = out->src[out->n_src - 1];
  for (uint32_t i = 0; i + 1 < out->n_src; i++) {
    product p = {.each = 1};
    times_ranges(w, &p, stage_range(stage), stage_level(stage, i));
    add_part(w, out->src[i], true, p);
  }
}

/* All of it. */

static void put(const working *w, work *out, work_kind kind, double scale, const product *p) {
  vec_push(w->arena, &out->items, (work_item){kind, p->sizes.n, scale * p->each});
  for (size_t i = 0; i < p->sizes.n; i++) vec_push(w->arena, &out->sizes, p->sizes.at[i]);
}

static void put_access(const working *w, work *out, const access *x) {
  double bytes = (double)dtype_bytes((dtype)x->array->dtype);
  product all = {.each = 1};
  for (size_t i = 0; i < x->array->rank; i++) times(w, &all, x->array->dims[i]);
  put(w, out, WORK_ARRAY, bytes, &all);
  for (size_t i = 0; i < x->parts.n; i++) put(w, out, WORK_PART, bytes, &x->parts.at[i]);
}

work work_of(arena *a, const node *sink) {
  working w = {.arena = a};
  work out = {0};
  node_list all = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    const node *n = all.at[i];
    if (is_arithmetic(n)) add_arithmetic(&w, n);
    if (n->op == OP_FOLD) add_fold(&w, n);
    if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM) add_read(&w, n);
    if (n->op == OP_OUT) add_writes(&w, n);
  }
  for (size_t i = 0; i < w.operations.n; i++)
    put(&w, &out, WORK_OPERATIONS, 1, &w.operations.at[i]);
  for (size_t i = 0; i < w.accesses.n; i++) put_access(&w, &out, &w.accesses.at[i]);
  return out;
}

work_amount work_amount_of(const work_item items[], size_t n, const int64_t sizes[]) {
  work_amount w = {0, 0};
  double left = 0; /* of the array at hand */
  for (size_t i = 0; i < n; i++) {
    double amount = items[i].each;
    for (size_t k = 0; k < items[i].n_sizes; k++) amount *= (double)*sizes++;
    if (items[i].kind == WORK_OPERATIONS) {
      w.operations += amount;
    } else if (items[i].kind == WORK_ARRAY) {
      left = amount;
    } else {
      double part = amount < left ? amount : left;
      w.bytes += part;
      left -= part;
    }
  }
  return w;
}
