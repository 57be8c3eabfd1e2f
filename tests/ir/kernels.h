/* Random legal kernels: nests of one to three ranges, constant and symbolic, whose values are made
   of elements of params read along, against and across the ranges, of folds of one and two states,
   and of staged arrays. */
#ifndef TENON_TESTS_IR_KERNELS_H
#define TENON_TESTS_IR_KERNELS_H

#include "ir/binder.h"

#include "../random/random.h"

#include <string.h>

enum { KERNEL_RANGES = 8 };

typedef struct kernel_maker {
  ir *g;
  rng r;
  dtype type;
  int64_t slots;   /* params so far */
  unsigned budget; /* parts it may still be made of */
  size_t n;        /* open ranges */
  const node *open[KERNEL_RANGES];
} kernel_maker;

static inline const node *kernel_extent(kernel_maker *m) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 16};
  int64_t bounds[] = {0, 9};
  if (rng_chance(&m->r, 20))
    return ir_make(
        m->g,
        &(node_spec){
            .op = OP_VAR, .dtype = DT_INDEX, .ints = bounds, .n_int = 2, .text = "n", .n_text = 1});
  return ix_const(m->g, sizes[rng_below(&m->r, sizeof sizes / sizeof *sizes)]);
}

static inline const node *kernel_param(kernel_maker *m, size_t rank, const node *const dims[]) {
  int64_t slot = m->slots++;
  return ir_node(m->g, OP_PARAM, m->type, dims, rank, &slot, 1);
}

static inline const node *kernel_number(kernel_maker *m) {
  return ir_const(m->g, m->type, (double)rng_between(&m->r, -3, 3));
}

/** An element of a param of rank 0 to 2: along an open range, against it, or shifted by one, where
    it is 0 outside. */
static inline const node *kernel_element(kernel_maker *m) {
  const node *dims[2] = {0}, *at[2] = {0}, *gate = NULL;
  size_t rank = rng_below(&m->r, 3);
  for (size_t i = 0; i < rank; i++) {
    const node *r = m->open[rng_below(&m->r, m->n)], *last;
    dims[i] = range_extent(r);
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

static inline const node *kernel_open(kernel_maker *m) {
  return m->open[m->n++] = range_make(m->g, kernel_extent(m), KIND_LOOP);
}

/** The sum, maximum or exclusive or of a value over one range or two. */
static inline const node *kernel_reduction(kernel_maker *m) {
  op o = dtype_is_int(m->type) && rng_chance(&m->r, 30) ? OP_XOR
         : rng_chance(&m->r, 50)                        ? OP_ADD
                                                        : OP_MAX;
  size_t before = m->n, n = 1 + rng_below(&m->r, 2);
  const node *ranges[2];
  for (size_t i = 0; i < n; i++) ranges[i] = kernel_open(m);
  const node *fold = fold_reduce(m->g, o, kernel_value(m), n, ranges);
  m->n = before;
  return fold;
}

/** Two states that step at once, from each other's old value: s := t, t := s + v. */
static inline const node *kernel_scan(kernel_maker *m) {
  size_t before = m->n;
  const node *r = kernel_open(m), *v = kernel_value(m), *old[2];
  for (int64_t i = 0; i < 2; i++)
    old[i] = index_make(m->g, m->type, state_make(m->g, m->type, r, i), 0, 0, NULL);
  const node *inits[] = {kernel_number(m), kernel_number(m)};
  const node *steps[] = {old[1], ir_op2(m->g, OP_ADD, old[0], v)};
  int64_t none[] = {-1, -1};
  const node *fold = fold_make(
      m->g,
      &(fold_spec){
          .n_states = 2, .n_ranges = 1, .inits = inits, .steps = steps, .ops = none, .ranges = &r});
  m->n = before;
  return index_make(m->g, m->type, fold, (int64_t)rng_below(&m->r, 2), 0, NULL);
}

/** An array that is written down inside the kernel, read at the end of an open range's reach. */
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
  return index_make(m->g, m->type, stage, 0, 1, &at);
}

static inline const node *kernel_value(kernel_maker *m) {
  unsigned part = m->budget ? (unsigned)rng_below(&m->r, 10) : 9;
  if (m->budget) m->budget--;
  bool room = m->n + 2 < KERNEL_RANGES;
  if (part < 2 && room) return kernel_reduction(m);
  if (part == 2 && room) return kernel_scan(m);
  if (part == 3 && room) return kernel_staged(m);
  if (part < 7) {
    op o = rng_chance(&m->r, 50) ? OP_ADD : rng_chance(&m->r, 50) ? OP_SUB : OP_MAX;
    const node *a = kernel_value(m);
    return ir_op2(m->g, o, a, kernel_value(m));
  }
  if (part == 7) return ir_cast(m->g, m->open[rng_below(&m->r, m->n)], m->type);
  return kernel_element(m);
}

/** OUT of one value over one to three ranges; the result lies along them, turned round or not. */
static inline const node *kernel_out(kernel_maker *m) {
  size_t rank = 1 + rng_below(&m->r, 3);
  const node *ranges[3] = {0}, *dims[3] = {0}, *at[3] = {0};
  m->n = 0;
  for (size_t i = 0; i < rank; i++) ranges[i] = kernel_open(m);
  for (size_t i = 0; i < rank; i++) {
    const node *r = ranges[rank - 1 - i];
    if (rank != 2 || rng_chance(&m->r, 80)) r = ranges[i];
    if (rank == 2 && i == 1 && r == at[0]) r = ranges[0];
    at[i] = r;
    dims[i] = range_extent(r);
  }
  const node *param = kernel_param(m, rank, dims), *v = kernel_value(m);
  const node *stage = stage_make(m->g, &(stage_spec){.n_values = 1,
                                                     .n_ranges = rank,
                                                     .values = &v,
                                                     .ranks = &rank,
                                                     .coords = at,
                                                     .extents = dims,
                                                     .ranges = ranges,
                                                     .cut = true});
  return ir_node(m->g, OP_OUT, DT_VOID, (const node *[]){param, stage}, 2, NULL, 0);
}

/** The kernel of a seed. */
static inline const node *kernel_random(ir *g, uint64_t seed) {
  static const dtype types[] = {DT_I32, DT_F32, DT_I64, DT_U8};
  kernel_maker m = {.g = g, .r = {seed}, .type = types[seed % 4], .budget = 8};
  const node *outs[2];
  size_t n = 1 + rng_chance(&m.r, 20);
  for (size_t i = 0; i < n; i++) outs[i] = kernel_out(&m);
  return ir_make(
      g,
      &(node_spec){
          .op = OP_SINK, .dtype = DT_VOID, .src = outs, .n_src = n, .text = "random", .n_text = 6});
}

#endif
