/* Generates random legal kernels: nests of one to three ranges, constant and symbolic, whose values
   are made of elements of params read along, against and across the ranges and at computed indices,
   of staged arrays, and of folds: reductions, and scans of scalars and arrays that emit arrays. */
#ifndef TENON_TESTS_IR_KERNELS_H
#define TENON_TESTS_IR_KERNELS_H

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "support/fold_reduction.h"
#include "support/index_var.h"

#include "../random/random.h"

#include <stdio.h>
#include <string.h>

enum { KERNEL_RANGES = 8, KERNEL_STATES = 3, KERNEL_HELD = 24 };

typedef struct kernel_maker {
  ir *g;
  rng r;
  dtype type;
  int64_t slots;   /* params so far */
  unsigned budget; /* parts that may still be added */
  bool inside;     /* extents may depend on the open ranges */
  size_t n;        /* open ranges */
  const node *open[KERNEL_RANGES];
  size_t n_held; /* states that may be read here */
  const node *held[KERNEL_HELD];
} kernel_maker;

/** Makes a variable size: may be 0, or is at least 1 and has the value at the end of its name. */
static inline const node *kernel_size(kernel_maker *m) {
  bool least = rng_chance(&m->r, 60);
  char name[16] = "n";
  if (least) snprintf(name, sizeof name, "m%u", 1 + (unsigned)rng_below(&m->r, 20));
  return index_var(m->g, name, least, least ? 100 : 9);
}

static inline const node *kernel_extent(kernel_maker *m) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 16};
  if (m->inside && rng_chance(&m->r, 8))
    return ix_add_const(m->g, m->open[rng_below(&m->r, m->n)], 1);
  if (m->n < 3 && rng_chance(&m->r, 20)) return kernel_size(m);
  return ix_const(m->g, sizes[rng_below(&m->r, m->n < 3 ? sizeof sizes / sizeof *sizes : 3)]);
}

static inline const node *kernel_param(kernel_maker *m, size_t rank, const node *const dims[]) {
  int64_t slot = m->slots++;
  return ir_node(m->g, OP_PARAM, m->type, dims, rank, &slot, 1);
}

static inline const node *kernel_number(kernel_maker *m) {
  return ir_const(m->g, m->type, (double)rng_between(&m->r, -3, 3));
}

/** Reads a param of rank 0 to 2: along an open range, against it, or shifted by one, with 0
    outside. */
static inline const node *kernel_element(kernel_maker *m) {
  const node *dims[2] = {0}, *at[2] = {0}, *gate = NULL;
  size_t rank = rng_below(&m->r, 3);
  for (size_t i = 0; i < rank; i++) {
    const node *r = m->open[rng_below(&m->r, m->n)], *last;
    dims[i] = range_extent(r)->free->n ? ix_const(m->g, r->hi + 1) : range_extent(r);
    last = ix_add_const(m->g, dims[i], -1);
    at[i] = rng_chance(&m->r, 25) ? ix_sub(m->g, last, r) : r;
    if (!rng_chance(&m->r, 15)) continue;
    at[i] = ix_add_const(m->g, r, -1);
    gate = ix_le(m->g, ix_const(m->g, 0), at[i]);
  }
  const node *x = index_make(m->g, m->type, kernel_param(m, rank, dims), 0, rank, at);
  return gate ? ir_op3(m->g, OP_WHERE, gate, x, kernel_number(m)) : x;
}

static inline const node *kernel_value(kernel_maker *m);

/** Reads a param or a readable array at a computed index, perhaps combined with the index's
    source. */
static inline const node *kernel_gathered(kernel_maker *m) {
  const node *v = kernel_value(m), *n = ix_const(m->g, 1 + (int64_t)rng_below(&m->r, 5));
  const node *at = ir_cast(m->g, v, DT_INDEX);
  at = ix_max(m->g, at, ix_const(m->g, 0));
  at = ix_min(m->g, at, ix_add_const(m->g, n, -1));
  const node *held = m->n_held ? m->held[rng_below(&m->r, m->n_held)] : NULL;
  const node *of = held && held->n_src == 2 ? held->src[0] : kernel_param(m, 1, &n);
  const node *x = index_make(m->g, m->type, of, 0, 1, &at);
  return rng_chance(&m->r, 50) ? ir_op2(m->g, OP_ADD, x, v) : x;
}

static inline const node *kernel_open(kernel_maker *m) {
  return m->open[m->n++] = range_make(m->g, kernel_extent(m), KIND_LOOP);
}

static inline op kernel_op(kernel_maker *m) {
  if (dtype_is_int(m->type) && rng_chance(&m->r, 30)) return OP_XOR;
  return rng_chance(&m->r, 50) ? OP_ADD : OP_MAX;
}

/** Reduces a value over one range or two by sum, maximum or exclusive or. */
static inline const node *kernel_reduction(kernel_maker *m) {
  op o = kernel_op(m);
  size_t before = m->n, n = 1 + rng_below(&m->r, 2);
  const node *ranges[2];
  for (size_t i = 0; i < n; i++) ranges[i] = kernel_open(m);
  const node *fold = fold_make_reduction(m->g, o, kernel_value(m), n, ranges);
  m->n = before;
  return fold;
}

/** A fold under construction: states are scalars, or arrays of one extent that step by components
    of one STAGE each or of one for all. */
typedef struct kernel_fold {
  size_t n, n_arrays, before, held;
  bool is_array[KERNEL_STATES], shared;
  const node *extent, *innermost;
  const node *inits[KERNEL_STATES], *steps[KERNEL_STATES];
  int64_t ops[KERNEL_STATES], components[KERNEL_STATES];
} kernel_fold;

/** Makes the states readable, arrays at `at` or elsewhere. */
static inline void kernel_hold(kernel_maker *m, const kernel_fold *f, const node *at) {
  for (size_t i = 0; i < f->n && m->n_held < KERNEL_HELD; i++) {
    const node *x = at;
    if (!x || rng_chance(&m->r, 25)) x = m->open[rng_below(&m->r, m->n)];
    if (rng_chance(&m->r, 15)) x = ix_const(m->g, 1);
    const node *state = fold_state_make(m->g, m->type, f->innermost, (int64_t)i);
    m->held[m->n_held++] = index_make(m->g, m->type, state, 0, f->is_array[i], &x);
  }
}

/** Makes a state's step: a term of an op, which must not read the fold's states, or a new state. */
static inline const node *kernel_step(kernel_maker *m, const kernel_fold *f, size_t i) {
  size_t held = m->n_held;
  const node *held_here[KERNEL_HELD];
  memcpy(held_here, m->held, sizeof held_here);
  if (f->ops[i] >= 0) m->n_held = f->held;
  const node *v = kernel_value(m);
  memcpy(m->held, held_here,
         sizeof held_here); /* restores the states, which a fold in the term replaced */
  m->n_held = held;
  if (f->ops[i] >= 0 || rng_chance(&m->r, 20)) return v;
  const node *old = m->held[f->held + rng_below(&m->r, held - f->held)];
  return ir_op2(m->g, rng_chance(&m->r, 70) ? OP_ADD : OP_SUB, old, v);
}

/** Makes the STAGE by which some array states step, along the extent or against it. */
static inline const node *kernel_step_stage(kernel_maker *m, const kernel_fold *f,
                                            const size_t of[], size_t n) {
  size_t before = m->n, held = m->n_held, ranks[KERNEL_STATES];
  const node *values[KERNEL_STATES], *coords[KERNEL_STATES], *extents[KERNEL_STATES];
  const node *r = m->open[m->n++] = range_make(m->g, f->extent, KIND_LOOP), *at = r;
  if (rng_chance(&m->r, 30)) at = ix_sub(m->g, ix_add_const(m->g, f->extent, -1), r);
  kernel_hold(m, f, at);
  for (size_t i = 0; i < n; i++) {
    values[i] = kernel_step(m, f, of[i]);
    ranks[i] = 1;
    coords[i] = at;
    extents[i] = f->extent;
  }
  m->n = before;
  m->n_held = held;
  return stage_make(m->g, &(stage_spec){.n_values = n,
                                        .n_ranges = 1,
                                        .values = values,
                                        .ranks = ranks,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = &r});
}

static inline void kernel_array_steps(kernel_maker *m, kernel_fold *f) {
  size_t of[KERNEL_STATES], n = 0;
  for (size_t i = 0; i < f->n; i++)
    if (f->is_array[i]) of[n++] = i;
  const node *stage = n && f->shared ? kernel_step_stage(m, f, of, n) : NULL;
  for (size_t i = 0; i < n; i++)
    f->steps[of[i]] = stage ? stage : kernel_step_stage(m, f, &of[i], 1);
}

/** Makes a state's initial value: any value, or an array for an array state. */
static inline const node *kernel_init(kernel_maker *m, const kernel_fold *f, size_t i) {
  if (!f->is_array[i] || f->components[i] || rng_chance(&m->r, 50))
    return rng_chance(&m->r, 50) ? kernel_number(m) : kernel_value(m);
  size_t before = m->n, rank = 1;
  const node *r = m->open[m->n++] = range_make(m->g, f->extent, KIND_LOOP), *v = kernel_value(m);
  m->n = before;
  return stage_make(m->g, &(stage_spec){.n_values = 1,
                                        .n_ranges = 1,
                                        .values = &v,
                                        .ranks = &rank,
                                        .coords = &r,
                                        .extents = &f->extent,
                                        .ranges = &r});
}

static inline void kernel_states(kernel_maker *m, kernel_fold *f) {
  f->n = 1 + rng_below(&m->r, KERNEL_STATES);
  f->shared = rng_chance(&m->r, 50);
  for (size_t i = 0; i < f->n; i++) {
    f->ops[i] = rng_chance(&m->r, 40) ? (int64_t)kernel_op(m) : -1;
    f->is_array[i] = rng_chance(&m->r, 40);
    f->components[i] = !f->is_array[i] ? -1 : f->shared ? (int64_t)f->n_arrays : 0;
    f->n_arrays += f->is_array[i];
    f->inits[i] = kernel_init(m, f, i);
  }
}

/** Adds emitted arrays along some of the fold's ranges: every element is written, by values that
    read states. */
static inline size_t kernel_emits(kernel_maker *m, kernel_fold *f, size_t n_ranges,
                                  const node *const ranges[], const node *values[], size_t ranks[],
                                  const node *coords[], const node *extents[]) {
  size_t n = rng_below(&m->r, 3), x = 0;
  for (size_t e = 0; e < n; e++) {
    const node *old = m->held[f->held + rng_below(&m->r, m->n_held - f->held)];
    size_t step = rng_below(&m->r, f->n);
    values[e] = old;
    if (rng_chance(&m->r, 50)) values[e] = ir_op2(m->g, OP_ADD, old, kernel_value(m));
    if (!f->is_array[step] && rng_chance(&m->r, 25)) values[e] = f->steps[step];
    bool triangle = n_ranges == 2 && node_is_free_in(ranges[0], ranges[1]);
    ranks[e] = triangle ? 0 : rng_below(&m->r, n_ranges + 1);
    size_t first = rng_below(&m->r, n_ranges);
    for (size_t i = 0; i < ranks[e]; i++, x++) {
      const node *r = ranges[(first + i) % n_ranges];
      extents[x] = range_extent(r);
      coords[x] = rng_chance(&m->r, 70) ? r : ix_sub(m->g, ix_add_const(m->g, extents[x], -1), r);
    }
  }
  return n;
}

/** Reads an element of a fold's state or emitted array. */
static inline const node *kernel_of_fold(kernel_maker *m, const node *fold) {
  size_t c = rng_below(&m->r, fold_n_states(fold) + fold_n_emits(fold));
  const node *at[2];
  for (size_t i = 0; i < fold_rank(fold, c); i++) at[i] = m->open[rng_below(&m->r, m->n)];
  return index_make(m->g, m->type, fold, (int64_t)c, fold_rank(fold, c), at);
}

static inline const node *kernel_scan(kernel_maker *m) {
  kernel_fold f = {.before = m->n, .held = m->n_held, .extent = kernel_extent(m)};
  kernel_states(m, &f);
  const node *ranges[2], *emits[2], *coords[4], *extents[4];
  size_t n_ranges = 1 + rng_chance(&m->r, 30), ranks[2];
  for (size_t i = 0; i < n_ranges; i++) ranges[i] = kernel_open(m);
  f.innermost = ranges[n_ranges - 1];
  kernel_array_steps(m, &f);
  kernel_hold(m, &f, NULL);
  for (size_t i = 0; i < f.n; i++)
    if (!f.is_array[i]) f.steps[i] = kernel_step(m, &f, i);
  size_t n_emits = kernel_emits(m, &f, n_ranges, ranges, emits, ranks, coords, extents);
  m->n = f.before;
  m->n_held = f.held;
  const node *fold = fold_make(m->g, &(fold_spec){.n_states = f.n,
                                                  .n_emits = n_emits,
                                                  .n_ranges = n_ranges,
                                                  .inits = f.inits,
                                                  .steps = f.steps,
                                                  .ops = f.ops,
                                                  .components = f.components,
                                                  .emits = emits,
                                                  .ranks = ranks,
                                                  .coords = coords,
                                                  .extents = extents,
                                                  .ranges = ranges});
  const node *one = kernel_of_fold(m, fold);
  if (rng_chance(&m->r, 40)) return one;
  return ir_op2(m->g, OP_ADD, one, kernel_of_fold(m, fold));
}

/** Makes a staged array inside the kernel and reads it at the end of an open range, or at the
    range's index if the array has it. */
static inline const node *kernel_staged(kernel_maker *m) {
  size_t before = m->n, rank = 1;
  const node *reader = m->open[rng_below(&m->r, m->n)], *extent = range_extent(reader);
  const node *r = m->open[m->n++] = range_make(m->g, extent, KIND_LOOP), *v = kernel_value(m);
  m->n = before;
  const node *stage = stage_make(m->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = 1,
                                                     .values = &v,
                                                     .ranks = &rank,
                                                     .coords = &r,
                                                     .extents = &extent,
                                                     .ranges = &r});
  const node *at = ix_sub(m->g, ix_add_const(m->g, extent, -1), reader);
  if (rng_chance(&m->r, 50)) return index_make(m->g, m->type, stage, 0, 1, &at);
  at = ix_add_const(m->g, reader, rng_between(&m->r, -2, 2));
  const node *above = ix_le(m->g, ix_const(m->g, 0), at), *below = ix_lt(m->g, at, extent);
  const node *x = index_make(m->g, m->type, stage, 0, 1, &at);
  return ir_op3(m->g, OP_WHERE, ir_op2(m->g, OP_AND, above, below), x, kernel_number(m));
}

static inline const node *kernel_value(kernel_maker *m) {
  unsigned part = m->budget ? (unsigned)rng_below(&m->r, 11) : 9;
  if (m->budget) m->budget--;
  bool room = m->n + 2 < KERNEL_RANGES;
  if (part < 2 && room) return kernel_reduction(m);
  if (part == 2 && m->n + 4 < KERNEL_RANGES) return kernel_scan(m);
  if (part == 10 && dtype_is_int(m->type)) return kernel_gathered(m);
  if ((part == 3 || part == 10) && room) return kernel_staged(m);
  if (part < 7) {
    op o = rng_chance(&m->r, 50) ? OP_ADD : rng_chance(&m->r, 50) ? OP_SUB : OP_MAX;
    const node *a = kernel_value(m);
    return ir_op2(m->g, o, a, kernel_value(m));
  }
  if (m->n_held && rng_chance(&m->r, 50)) return m->held[rng_below(&m->r, m->n_held)];
  if (part == 7) return ir_cast(m->g, m->open[rng_below(&m->r, m->n)], m->type);
  return kernel_element(m);
}

/** Returns the first range along which a nest's second value lies: those before must have indices,
    or it would not be written. */
static inline size_t kernel_second_from(kernel_maker *m, size_t rank, const node *const ranges[]) {
  size_t from = rng_chance(&m->r, 50) ? rng_below(&m->r, rank) : 0;
  for (size_t i = 0; i < from; i++)
    if (range_extent(ranges[i])->lo < 1) return i;
  return from;
}

/** Makes an OUT of a value along one to three ranges, permuted or not, and perhaps of a second one
    along some of them; the value may read what the output before it writes. */
static inline const node *kernel_out(kernel_maker *m, const node *before) {
  size_t ranks[2] = {1 + rng_below(&m->r, 3)}, rank = ranks[0], n = 1 + rng_chance(&m->r, 15);
  const node *ranges[3] = {0}, *dims[6] = {0}, *at[6] = {0}, *src[3], *values[2];
  m->n = 0;
  m->inside = false;
  for (size_t i = 0; i < rank; i++) ranges[i] = kernel_open(m);
  for (size_t i = 0; i < rank; i++) {
    const node *r = ranges[rank - 1 - i];
    if (rank != 2 || rng_chance(&m->r, 80)) r = ranges[i];
    if (rank == 2 && i == 1) r = ranges[at[0] == ranges[0]];
    at[i] = r;
    dims[i] = range_extent(r);
  }
  m->inside = true;
  values[0] = kernel_value(m);
  if (before && rng_chance(&m->r, 40)) {
    const node *of = before->src[before->n_src - 1], *x[3];
    for (size_t i = 0; i < stage_rank(of, 0); i++) x[i] = m->open[rng_below(&m->r, m->n)];
    const node *other = index_make(m->g, m->type, of, 0, stage_rank(of, 0), x);
    values[0] = ir_op2(m->g, OP_ADD, values[0], other);
  }
  src[0] = kernel_param(m, rank, dims);
  if (n == 2) {
    size_t from = kernel_second_from(m, rank, ranges);
    ranks[1] = m->n = 1 + rng_below(&m->r, rank - from);
    for (size_t i = 0; i < ranks[1]; i++) {
      m->open[i] = at[rank + i] = ranges[from + i];
      dims[rank + i] = range_extent(ranges[from + i]);
    }
    values[1] = kernel_value(m);
    src[1] = kernel_param(m, ranks[1], dims + rank);
  }
  src[n] = stage_make(m->g, &(stage_spec){.n_values = n,
                                          .n_ranges = rank,
                                          .values = values,
                                          .ranks = ranks,
                                          .coords = at,
                                          .extents = dims,
                                          .ranges = ranges,
                                          .cut = true});
  return ir_node(m->g, OP_OUT, DT_VOID, src, n + 1, NULL, 0);
}

/** Generates the kernel of a seed. */
static inline const node *kernel_random(ir *g, uint64_t seed) {
  static const dtype types[] = {DT_I32, DT_F32, DT_I64, DT_U8};
  kernel_maker m = {.g = g, .r = {seed}, .type = types[seed % 4], .budget = 8};
  const node *outs[2];
  size_t n = 1 + rng_chance(&m.r, 20);
  for (size_t i = 0; i < n; i++) outs[i] = kernel_out(&m, i ? outs[i - 1] : NULL);
  return ir_make(
      g,
      &(node_spec){
          .op = OP_SINK, .dtype = DT_VOID, .src = outs, .n_src = n, .text = "random", .n_text = 6});
}

#endif
