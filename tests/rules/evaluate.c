/* Evaluates scalar expressions (trees of elementwise ops) for many inputs, op by op as scalar_eval
   defines them, and generates edge-case and random inputs for the tests of rules. */
#include "evaluate.h"

#include "base/map.h"
#include "ir/core/scalar_eval.h"

#include <math.h>

bool is_input(const node *n) { return n->op == OP_PARAM || n->op == OP_VAR; }

/** Inserts an input: PARAMs by slot, then VARs in order of appearance. */
static void add_input(program *p, const node *n, size_t position) {
  size_t i = p->inputs++;
  for (; i > 0 && n->op == OP_PARAM && p->input[i - 1]->ints[0] > n->ints[0]; i--) {
    p->input[i] = p->input[i - 1];
    p->position[i] = p->position[i - 1];
  }
  p->input[i] = n;
  p->position[i] = position;
}

program program_make(arena *a, const node *const roots[], size_t n) {
  program p = {.order = topo_sort(a, roots, n, NULL, NULL), .roots = n};
  map at = {0};
  size_t sources = 0;
  for (size_t i = 0; i < p.order.n; i++) sources += p.order.at[i]->n_src;
  p.source = arena_calloc(a, sources + 1, sizeof *p.source);
  p.value = arena_calloc(a, p.order.n, sizeof *p.value);
  sources = 0;
  for (size_t i = 0; i < p.order.n; i++) {
    const node *m = p.order.at[i];
    map_set(a, &at, m, (void *)(uintptr_t)(i + 1));
    for (uint32_t k = 0; k < m->n_src; k++)
      p.source[sources++] = (uint32_t)((uintptr_t)map_get(&at, m->src[k]) - 1);
    if (m->op == OP_CONST) p.value[i] = (uint64_t)node_int(m);
    if (is_input(m) && p.inputs < MOST_INPUTS) add_input(&p, m, i);
  }
  for (size_t i = 0; i < n; i++) p.root[i] = (size_t)((uintptr_t)map_get(&at, roots[i]) - 1);
  return p;
}

bool program_run(program *p, const uint64_t inputs[]) {
  bool overflow = false;
  const uint32_t *source = p->source;
  for (size_t i = 0; i < p->inputs; i++) p->value[p->position[i]] = inputs[i];
  for (size_t i = 0; i < p->order.n; i++) {
    const node *n = p->order.at[i];
    uint64_t args[64];
    for (uint32_t k = 0; k < n->n_src && k < 64; k++) args[k] = p->value[source[k]];
    source += n->n_src;
    if (n->op == OP_CONST || is_input(n)) continue;
    if (n->op == OP_SPLAT || n->op == OP_EXTRACT)
      p->value[i] = args[0];
    else if (n->op == OP_AFFINE)
      p->value[i] = scalar_eval_affine(n->ints, n->n_src, args, &overflow);
    else
      p->value[i] = scalar_eval((op)n->op, (dtype)n->src[scalar_typed_operand((op)n->op)]->dtype,
                                (dtype)n->dtype, args, &overflow);
  }
  return !overflow;
}

size_t edge_values(dtype t, uint64_t out[64]) {
  static const double floats[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  -1.5,
                                  2.5,
                                  -2.5,
                                  2,
                                  -2,
                                  3,
                                  0.1,
                                  -0.1,
                                  127.5,
                                  128,
                                  -128.5,
                                  255.5,
                                  32767.5,
                                  65504,
                                  65519,
                                  65520,
                                  1e5,
                                  8388607.5,
                                  8388609,
                                  0x1p31,
                                  -0x1p31,
                                  0x1p32,
                                  0x1p52,
                                  0x1p53,
                                  0x1p63,
                                  -0x1p63,
                                  0x1p64,
                                  1e30,
                                  -1e30,
                                  0x1p-14,
                                  0x1p-24,
                                  0x1p-25,
                                  0x1p-126,
                                  0x1p-149,
                                  0x1.8p-150,
                                  -0x1p-149,
                                  0x1.fffffep127,
                                  -0x1.fffffep127,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0.999999,
                                  1.000001};
  static const int64_t ints[] = {0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 4,
                                 5,
                                 7,
                                 8,
                                 10,
                                 15,
                                 16,
                                 31,
                                 32,
                                 63,
                                 64,
                                 100,
                                 127,
                                 128,
                                 -127,
                                 -128,
                                 255,
                                 256,
                                 32767,
                                 32768,
                                 -32768,
                                 65535,
                                 INT32_MAX,
                                 INT32_MIN,
                                 UINT32_MAX,
                                 INT64_MAX,
                                 INT64_MIN,
                                 INT64_MAX - 1,
                                 INT64_C(1) << 53,
                                 (INT64_C(1) << 53) + 1,
                                 -(INT64_C(1) << 60) - 1};
  size_t n = 0;
  if (dtype_is_float(t))
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
      out[n++] = scalar_from_double(t, floats[i]);
  else
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
      out[n++] = scalar_cast(t, DT_I64, (uint64_t)ints[i]);
  return n;
}

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* SplitMix64 */
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t random_value(dtype t, uint64_t *state) {
  uint64_t r = next_random(state), edge[64];
  size_t n = edge_values(t, edge);
  if (r % 8 == 0) return edge[(r >> 8) % n];
  uint64_t bits = next_random(state);
  if (dtype_is_float(t) && r % 8 < 5)
    return scalar_from_double(t, ldexp((double)(int64_t)bits, (int)(r >> 8) % 24 - 70));
  if (!dtype_is_float(t)) return scalar_cast(t, DT_U64, r % 8 < 4 ? bits : bits >> (r >> 8) % 64);
  return dtype_bits(t) == 64 ? bits : bits & ((UINT64_C(1) << dtype_bits(t)) - 1);
}

/** Maps a float's bits to an integer with the order of the values. */
static int64_t ordered(dtype t, uint64_t bits) {
  uint64_t sign = UINT64_C(1) << (dtype_bits(t) - 1);
  return bits & sign ? -(int64_t)(bits & ~sign) : (int64_t)bits;
}

uint64_t ulp_distance(dtype t, uint64_t a, uint64_t b) {
  bool nan_a = isnan(scalar_to_double(t, a)), nan_b = isnan(scalar_to_double(t, b));
  if (nan_a || nan_b) return nan_a && nan_b ? 0 : UINT64_MAX;
  int64_t x = ordered(t, a), y = ordered(t, b);
  return x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
}
