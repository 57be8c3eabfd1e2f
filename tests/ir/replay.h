/* Interprets graphs, kernels and schedules on pseudo-random contents that follow from a seed, to
   compare them before and after passes. VARs (runtime scalars) have a value between their bounds,
   BUFFERs and PARAMs (arrays) are filled by their id, and a CUSTOM (host function) adds its inputs.
   Floats are small multiples of 1/4, so that short sums and products are exact. */
#ifndef TENON_TESTS_IR_REPLAY_H
#define TENON_TESTS_IR_REPLAY_H

#include "base/vec.h"
#include "ir/core/binder.h"
#include "ir/core/scalar_eval.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/interp.h"
#include "schedule/schedule.h"
#include "support/interp_kernel.h"

#include "../random/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct replay {
  arena *a; /* its diag raises failures */
  uint64_t seed;
  VEC(interp_var) vars;
  VEC(interp_array) params; /* by slot */
  map buffers;              /* BUFFER → interp_array */
} replay;

/* Sizes. */

/** Returns a VAR's value: the number at the end of its name, or 13, clamped to its bounds. */
static inline int64_t replay_var(const node *v) {
  size_t digits = strcspn(v->text, "0123456789");
  int64_t wanted = v->text[digits] ? strtoll(v->text + digits, NULL, 10) : 13;
  return wanted < v->ints[0] ? v->ints[0] : wanted > v->ints[1] ? v->ints[1] : wanted;
}

static inline int64_t replay_index(replay *r, const node *n) {
  node_list order = topo_sort(r->a, &n, 1, NULL, NULL);
  map value = {0};
  bool overflow = false;
  uint64_t v = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    uint64_t *args = arena_alloc(r->a, (x->n_src + 1) * sizeof *args);
    for (uint32_t k = 0; k < x->n_src; k++)
      args[k] = (uint64_t)(uintptr_t)map_get(&value, x->src[k]);
    v = x->op == OP_CONST    ? (uint64_t)node_int(x)
        : x->op == OP_VAR    ? (uint64_t)replay_var(x)
        : x->op == OP_AFFINE ? scalar_eval_affine(x->ints, x->n_src, args, &overflow)
                             : scalar_eval((op)x->op, DT_INDEX, DT_INDEX, args, &overflow);
    map_set(r->a, &value, x, (void *)(uintptr_t)v);
  }
  if (overflow) diag_raise(r->a->diag, TN_ERR_SHAPE, "a size overflows");
  return (int64_t)v;
}

/* Contents. */

static inline uint64_t replay_element(dtype t, uint64_t h) {
  if (t == DT_BOOL) return h & 1;
  int64_t small = (int64_t)(h % 33) - 16;
  if (dtype_is_float(t)) return scalar_from_double(t, (double)small / 4);
  return scalar_cast(t, DT_I64, (uint64_t)(dtype_is_signed(t) ? small / 2 : small + 16));
}

static inline interp_array replay_array(replay *r, const node *shape, uint64_t number) {
  interp_array a = {.dtype = (dtype)shape->dtype, .rank = shape->rank};
  size_t count = 1, bytes = dtype_bytes(a.dtype);
  for (size_t i = 0; i < a.rank; i++)
    count *= (size_t)(a.dims[i] = replay_index(r, shape->dims[i]));
  a.bytes = count * bytes;
  a.data = arena_alloc(r->a, a.bytes + 1);
  for (size_t i = 0; i < count; i++)
    scalar_store(a.dtype, (char *)a.data + i * bytes,
                 replay_element(a.dtype, rng_mix(rng_mix(r->seed + number) + i)));
  return a;
}

static inline void replay_add_var(replay *r, const node *v) {
  for (size_t i = 0; i < r->vars.n; i++)
    if (!strcmp(r->vars.at[i].name, v->text)) return;
  vec_push(r->a, &r->vars, (interp_var){v->text, replay_var(v)});
}

/** Fills all BUFFERs, PARAMs and VARs that a graph reaches. */
static inline void replay_prepare(replay *r, const node *const roots[], size_t n) {
  node_list order = topo_sort(r->a, roots, n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    if (x->op == OP_VAR) replay_add_var(r, x);
    if (x->op == OP_BUFFER && !map_has(&r->buffers, x)) {
      interp_array a = replay_array(r, x, (uint64_t)x->ints[0]);
      map_set(r->a, &r->buffers, x, arena_copy(r->a, &a, sizeof a));
    }
    if (x->op != OP_PARAM) continue;
    while (r->params.n <= (size_t)x->ints[0])
      vec_push(r->a, &r->params, (interp_array){.dtype = DT_VOID});
    interp_array *p = &r->params.at[x->ints[0]];
    if (p->dtype == DT_VOID) *p = replay_array(r, x, (uint64_t)x->ints[0]);
  }
}

/* Running. */

static inline const interp_array *replay_buffer(void *user, int64_t uid, int64_t version) {
  const replay *r = user;
  for (size_t i = 0; i < r->buffers.n; i++) {
    const node *b = r->buffers.at[i].key;
    if (b->ints[0] == uid && b->ints[1] == version) return r->buffers.at[i].value;
  }
  return NULL;
}

/** Computes a CUSTOM: element i is the sum of elements i of its inputs, repeated cyclically. */
static inline tn_status replay_custom(void *user, const node *n, const interp_array inputs[],
                                      size_t n_inputs, interp_array *result, diag *d) {
  size_t bytes = dtype_bytes(result->dtype);
  (void)user, (void)n, (void)d;
  for (size_t i = 0; i < result->bytes / bytes; i++) {
    uint64_t sum = scalar_cast(result->dtype, DT_I64, 1);
    bool overflow = false;
    for (size_t k = 0; k < n_inputs; k++) {
      size_t wide = dtype_bytes(inputs[k].dtype), count = inputs[k].bytes / wide;
      if (!count) continue;
      uint64_t x = scalar_load(inputs[k].dtype, (char *)inputs[k].data + i % count * wide);
      uint64_t args[] = {sum, scalar_cast(result->dtype, inputs[k].dtype, x)};
      sum = scalar_eval(OP_ADD, result->dtype, result->dtype, args, &overflow);
    }
    scalar_store(result->dtype, (char *)result->data + i * bytes, sum);
  }
  return TN_OK;
}

static inline interp_env replay_env(replay *r) {
  return (interp_env){.params = r->params.at,
                      .n_params = r->params.n,
                      .vars = r->vars.at,
                      .n_vars = r->vars.n,
                      .buffer = replay_buffer,
                      .custom = replay_custom,
                      .kernel = interp_kernel_node,
                      .user = r};
}

static inline void replay_check(const replay *r, tn_status s) {
  if (s != TN_OK) diag_rethrow(r->a->diag);
}

/** Copies arrays for writing. */
static inline interp_array *replay_copies(replay *r, const interp_array *from, size_t n) {
  interp_array *to = arena_alloc(r->a, (n + 1) * sizeof *to);
  for (size_t i = 0; i < n; i++) {
    to[i] = from[i];
    to[i].data = arena_alloc(r->a, from[i].bytes + 1);
    if (from[i].bytes) memcpy(to[i].data, from[i].data, from[i].bytes);
  }
  return to;
}

/** Marks the slots that a LINEAR stores to; false if it is not parallel. */
static inline bool replay_stored_slots(const replay *r, const node *linear, bool stored[]) {
  bool is_shared_out = false;
  for (uint32_t i = 0; i < linear->n_src; i++) {
    const node *n = linear->src[i], *to = n->op == OP_STORE ? n->src[0] : NULL;
    while (to && to->op == OP_AFTER) to = to->src[0];
    if (to && to->op == OP_PARAM && (size_t)to->ints[0] < r->params.n) stored[to->ints[0]] = true;
    is_shared_out |= n->op == OP_SPECIAL && !strcmp(n->text, "core_id");
  }
  return is_shared_out;
}

/** Records worker `w` as the owner of each element whose bytes it changed; raises if another worker
    owns the element. */
static inline void replay_own_stores(const replay *r, const interp_array *before,
                                     const interp_array *after, int64_t *owner, int64_t w) {
  size_t wide = before->dtype == DT_VOID ? 1 : dtype_bytes(before->dtype);
  for (size_t i = 0; i < before->bytes / wide; i++) {
    if (!memcmp((char *)before->data + i * wide, (char *)after->data + i * wide, wide)) continue;
    if (owner[i] && owner[i] != w + 1)
      diag_raise(r->a->diag, TN_ERR_INTERNAL, "workers %d and %d both store element %zu",
                 (int)owner[i] - 1, (int)w, i);
    owner[i] = w + 1;
  }
}

/** Raises if two workers of a LINEAR store the same element. Each runs on the contents, and again
    with all bits of stored slots inverted: one of the runs changes each stored element. */
static inline void replay_check_stores(replay *r, const node *linear, int64_t workers) {
  bool *stored = arena_calloc(r->a, r->params.n + 1, sizeof *stored);
  int64_t **owner = arena_calloc(r->a, r->params.n + 1, sizeof *owner);
  if (!replay_stored_slots(r, linear, stored)) return;
  for (size_t s = 0; s < r->params.n; s++)
    owner[s] = arena_calloc(r->a, r->params.at[s].bytes + 1, sizeof *owner[s]);
  for (int64_t run = 0; run < 2 * workers; run++) {
    diag d = {0};
    interp_array *before = replay_copies(r, r->params.at, r->params.n);
    for (size_t s = 0; s < r->params.n && run % 2; s++)
      for (size_t i = 0; i < before[s].bytes && stored[s]; i++)
        ((unsigned char *)before[s].data)[i] ^= before[s].dtype == DT_BOOL ? 1 : 0xff;
    interp_array *after = replay_copies(r, before, r->params.n);
    interp_env e = replay_env(r);
    e.params = after;
    if (interp_linear(&e, linear, run / 2, workers, r->a->mem, &d) != TN_OK) continue;
    for (size_t s = 0; s < r->params.n; s++)
      replay_own_stores(r, &before[s], &after[s], owner[s], run / 2);
  }
}

enum { REPLAY_WARP = 4 };

/** The extent of a launch index that a LINEAR lists, 1 without it. */
static inline int64_t replay_launch(const node *linear, const char *name, bool *has_teams) {
  for (uint32_t i = 0; i < linear->n_src; i++) {
    const node *n = linear->src[i];
    if (n->op != OP_SPECIAL || strcmp(n->text, name) != 0) continue;
    *has_teams = true;
    return n->src[0]->hi;
  }
  return 1;
}

/** Workers of a warp: those of a tile that it computes, or some number. */
static inline int64_t replay_warp(const node *linear) {
  for (uint32_t i = 0; i < linear->n_src; i++) {
    const tensor_tile *t = tensor_tile_of((op)linear->src[i]->op);
    if (t && t->workers > 1) return t->workers;
  }
  return REPLAY_WARP;
}

/** Runs a kernel (SINK of stage K, or LINEAR in teams or on `workers` workers, no two of which may
   store one element) and returns its params. */
static inline interp_array *replay_kernel(replay *r, const node *kernel, int64_t workers) {
  interp_array *params = replay_copies(r, r->params.at, r->params.n);
  interp_env e = replay_env(r);
  e.params = params;
  if (kernel->op == OP_SINK) {
    replay_check(r, interp_kernel(&e, kernel, r->a->mem, r->a->diag));
    return params;
  }
  bool has_teams = false;
  interp_teams teams = {.warp = replay_warp(kernel), .seed = (uint64_t)workers};
  teams.groups = replay_launch(kernel, "g0", &has_teams);
  teams.workers = replay_launch(kernel, "l0", &has_teams);
  if (has_teams) {
    replay_check(r, interp_linear_in_teams(&e, kernel, &teams, r->a->mem, r->a->diag));
    return params;
  }
  if (workers > 1) replay_check_stores(r, kernel, workers);
  for (int64_t w = 0; w < workers; w++)
    replay_check(r, interp_linear(&e, kernel, w, workers, r->a->mem, r->a->diag));
  return params;
}

/** True if two arrays have the same bits, or floats within `rtol` of each other. */
static inline bool replay_same(const interp_array *a, const interp_array *b, double rtol) {
  if (a->bytes != b->bytes) return false;
  if (a->dtype == DT_VOID) return true;
  size_t wide = dtype_bytes(a->dtype);
  for (size_t i = 0; i < a->bytes / wide; i++) {
    uint64_t x = scalar_load(a->dtype, (char *)a->data + i * wide);
    uint64_t y = scalar_load(b->dtype, (char *)b->data + i * wide);
    if (x == y) continue;
    if (!dtype_is_float(a->dtype)) return false;
    double u = scalar_to_double(a->dtype, x), v = scalar_to_double(b->dtype, y);
    if (!(fabs(u - v) <= rtol * fabs(u)) && !(isnan(u) && isnan(v))) return false;
  }
  return true;
}

/* Schedules. */

static inline interp_array replay_schedule_buffer(replay *r, const schedule_buffer *b) {
  if (b->origin) {
    interp_array *at = map_get(&r->buffers, b->origin);
    return *replay_copies(r, at, 1);
  }
  interp_array a = {.dtype = b->dtype, .rank = 1, .dims = {replay_index(r, b->size)}};
  a.bytes = (size_t)a.dims[0] * dtype_bytes(a.dtype);
  a.data = arena_alloc(r->a, a.bytes + 1);
  memset(a.data, 0xff, a.bytes); /* NaN or −1, to expose reads before writes */
  return a;
}

/** Returns a step's arrays in the shapes of its kernel's PARAMs, on the memory of the buffers. */
static inline interp_array *replay_step_params(replay *r, const schedule_step *s,
                                               const interp_array *buffers) {
  interp_array *params = arena_calloc(r->a, s->n_buffers + 1, sizeof *params);
  node_list order = topo_sort(r->a, &s->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM) continue;
    interp_array *a = &params[p->ints[0]];
    *a = buffers[s->buffers[p->ints[0]]];
    a->rank = p->rank;
    for (size_t k = 0; k < p->rank; k++) a->dims[k] = replay_index(r, p->dims[k]);
  }
  return params;
}

static inline void replay_step(replay *r, const schedule_step *s, interp_array *buffers) {
  if (s->kind == STEP_CUSTOM) {
    interp_array *inputs = arena_alloc(r->a, (s->n_buffers + 1) * sizeof *inputs);
    for (size_t i = 0; i < s->n_buffers; i++) inputs[i] = buffers[s->buffers[i]];
    replay_custom(NULL, s->custom, inputs, s->n_buffers - 1, &inputs[s->n_buffers - 1], NULL);
    return;
  }
  if (s->kind == STEP_COPY) {
    const interp_array *to = &buffers[s->buffers[0]], *from = &buffers[s->buffers[1]];
    if (to->bytes) memcpy(to->data, from->data, to->bytes);
    return;
  }
  interp_env e = replay_env(r);
  e.params = replay_step_params(r, s, buffers);
  e.n_params = s->n_buffers;
  replay_check(r, interp_kernel(&e, s->kernel, r->a->mem, r->a->diag));
}

/** Runs all steps in order and returns the buffers. */
static inline interp_array *replay_schedule(replay *r, const schedule *s) {
  interp_array *buffers = arena_alloc(r->a, (s->buffers.n + 1) * sizeof *buffers);
  for (size_t i = 0; i < s->buffers.n; i++) {
    const schedule_buffer *b = &s->buffers.at[i];
    buffers[i] = replay_schedule_buffer(r, b);
    if (b->within)
      buffers[i].data = (char *)buffers[b->within - 1].data + b->start * dtype_bytes(b->dtype);
  }
  for (size_t i = 0; i < s->steps.n; i++) replay_step(r, &s->steps.at[i], buffers);
  return buffers;
}

/** Raises unless a schedule's steps give the results of its graph. */
static inline void replay_compare(replay *r, const schedule_request *q, const schedule *s,
                                  double rtol) {
  for (size_t i = 0; i < s->buffers.n; i++) replay_prepare(r, &s->buffers.at[i].size, 1);
  replay_prepare(r, q->roots, q->n_roots);
  interp_env e = replay_env(r);
  interp_array *expected = arena_calloc(r->a, q->n_roots + 1, sizeof *expected);
  replay_check(r, interp_tensor(&e, q->roots, q->n_roots, expected, r->a));
  interp_array *buffers = replay_schedule(r, s);
  for (size_t i = 0; i < q->n_roots; i++)
    if (!replay_same(&expected[i], &buffers[s->outputs[i]], rtol))
      diag_raise(r->a->diag, TN_ERR_INTERNAL, "the schedule gives another value for root %zu", i);
}

#endif
