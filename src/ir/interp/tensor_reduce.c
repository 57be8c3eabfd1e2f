/* Computes reductions: the elements that are reduced to one are read in order, by rows. An
   elementwise node that a REDUCE alone reads, as the product of a contraction, is computed by the
   same rows, so that it is never stored. Strides make places sums: an element lies at the place of
   its coordinates along the remaining axes plus that of those along the reduced axes. The first
   are listed for a block of results, the second for a row of terms, and each list serves all of the
   other one. */
#include "ir/interp/tensor_run.h"

enum { BLOCK = 64 }; /* results */

/** The running result of an element. */
typedef union state {
  uint64_t bits;     /* in the type */
  long double exact; /* of sums and products of floats, which round once, at the end */
} state;

/** An array that terms are read from. */
typedef struct operand {
  walk results, terms;    /* along the remaining axes; along the reduced ones, from the first */
  int64_t *bases, *steps; /* places of a block of results, and of a row of terms after them */
  char *row;              /* copied elements */
} operand;

typedef struct reduction {
  op o;
  bool is_exact;
  size_t n_terms; /* that are reduced to one */
  element_source source;
  operand from[3];
  char *row; /* of terms */
  state states[BLOCK];
} reduction;

/** Walks over some axes of an array. */
static walk walk_axes(const strided *a, const size_t axes[], size_t n) {
  int64_t dims[INTERP_MAX_RANK], strides[INTERP_MAX_RANK];
  for (size_t i = 0; i < n; i++) {
    dims[i] = a->dims[axes[i]];
    strides[i] = a->strides[axes[i]];
  }
  return walk_over(n, dims, strides);
}

static operand operand_over(arena *work, const strided *a, const node *n) {
  size_t reduced[INTERP_MAX_RANK], kept[INTERP_MAX_RANK], n_kept = 0;
  bool goes[INTERP_MAX_RANK] = {false};
  for (size_t i = 0; i + 1 < n->n_int; i++) goes[reduced[i] = (size_t)n->ints[i + 1]] = true;
  for (size_t i = 0; i < a->rank; i++)
    if (!goes[i]) kept[n_kept++] = i;
  return (operand){.results = walk_axes(a, kept, n_kept),
                   .terms = walk_axes(a, reduced, n->n_int - 1u),
                   .bases = arena_alloc(work, BLOCK * sizeof(int64_t)),
                   .steps = arena_alloc(work, STRIDED_ROW * sizeof(int64_t)),
                   .row = arena_alloc(work, STRIDED_ROW * sizeof(uint64_t))};
}

/** The elements that a REDUCE reads: those of an array, or those that a joined node computes. */
static element_source source_of(const run *r, const node *n) {
  const node *x = n->src[0];
  if (r->nodes.is_joined[tensor_position(r, x)]) return elementwise_source(r, x);
  return array_source(tensor_array(r, x));
}

static reduction reduction_of(run *r, const node *n) {
  reduction d = {.o = (op)n->ints[0], .n_terms = 1, .source = source_of(r, n)};
  d.is_exact = op_rounds_reduction(d.o, (dtype)n->dtype);
  for (size_t i = 1; i < n->n_int; i++) d.n_terms *= (size_t)d.source.from[0].dims[n->ints[i]];
  for (size_t i = 0; i < d.source.op.n; i++)
    d.from[i] = operand_over(&r->work, &d.source.from[i], n);
  d.row = arena_alloc(&r->work, STRIDED_ROW * sizeof(uint64_t));
  return d;
}

static void start_states(reduction *d, dtype t, size_t n) {
  uint64_t identity = 0;
  op_identity(d->o, t, &identity);
  for (size_t i = 0; i < n; i++)
    if (d->is_exact)
      d->states[i].exact = d->o == OP_MUL;
    else
      d->states[i].bits = identity;
}

static uint64_t end_state(const reduction *d, dtype t, const state *s) {
  return d->is_exact ? scalar_from_double(t, (double)s->exact) : s->bits;
}

/** n elements of an operand from a place on, of which its steps tell the distances. */
static const char *operand_row(const operand *f, const strided *a, int64_t base, size_t n) {
  size_t bytes = dtype_bytes(a->dtype);
  const char *first = a->data + base * (int64_t)bytes;
  if (walk_is_dense(&f->terms)) return first + f->steps[0] * (int64_t)bytes;
  row_gather(first, bytes, f->steps, n, f->row);
  return f->row;
}

/** Reduces a row of n terms of a result of the block. */
static void reduce_row(reduction *d, size_t result, size_t n, bool *overflow) {
  const element_source *s = &d->source;
  state *to = &d->states[result];
  const char *rows[3], *terms;
  for (size_t i = 0; i < s->op.n; i++)
    rows[i] = operand_row(&d->from[i], &s->from[i], d->from[i].bases[result], n);
  terms = element_source_row(s, rows, d->row, n, overflow);
  if (d->is_exact)
    to->exact = row_reduce_exactly(d->o, s->op.result, to->exact, terms, n);
  else
    to->bits = row_reduce(d->o, s->op.result, to->bits, terms, n);
}

/** Reduces all terms of a block of n results. */
static void reduce_block(reduction *d, size_t n, bool *overflow) {
  walk terms[3];
  size_t n_from = d->source.op.n;
  for (size_t i = 0; i < n_from; i++) {
    terms[i] = d->from[i].terms;
    walk_next(&d->from[i].results, d->from[i].bases, n);
  }
  for (size_t k = 0, length; k < d->n_terms; k += length) {
    length = strided_row_length(d->n_terms, k);
    for (size_t i = 0; i < n_from; i++) walk_next(&terms[i], d->from[i].steps, length);
    for (size_t j = 0; j < n; j++) reduce_row(d, j, length, overflow);
  }
}

void run_reduce(run *r, const node *n) {
  arena_mark here = arena_save(&r->work);
  strided *y = result_of(r, n);
  reduction *d = arena_alloc(&r->work, sizeof *d);
  bool overflow = false;
  size_t count = strided_count(y);
  *d = reduction_of(r, n);
  for (size_t k = 0, length; k < count; k += length) {
    length = count - k < BLOCK ? count - k : BLOCK;
    start_states(d, y->dtype, length);
    reduce_block(d, length, &overflow);
    for (size_t i = 0; i < length; i++)
      strided_write(y, (int64_t)(k + i), end_state(d, y->dtype, &d->states[i]));
  }
  arena_rewind(&r->work, here);
  if (overflow) raise_overflow(r, n);
}
