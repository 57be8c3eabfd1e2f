/* oneDNN as a peer (peer.h): matrix products and convolutions as lists of primitives. */
#include "peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 4, ARGUMENTS_MOST = 3, MEMORIES_MOST = 6 };

/** A primitive and its arguments. */
typedef struct step {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[ARGUMENTS_MOST];
  int n;
} step;

typedef struct dnnl_work {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  step steps[STEPS_MOST];
  dnnl_memory_t memories[MEMORIES_MOST];
  int n_steps, n_memories;
  bool failed;
} dnnl_work;

const char *bench_peer_version(void) {
  static char text[32];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

/** Records a failure; later steps are skipped. */
static bool check(dnnl_work *w, dnnl_status_t s) {
  w->failed |= s != dnnl_success;
  return !w->failed;
}

/** Makes an array at `data`, or an array of the library's. */
static dnnl_memory_t array(dnnl_work *w, const dnnl_memory_desc_t *md, void *data) {
  dnnl_memory_t *m = &w->memories[w->n_memories];
  if (w->failed || !check(w, dnnl_memory_create(m, md, w->engine, data))) return NULL;
  w->n_memories++;
  return *m;
}

static dnnl_memory_t own_array(dnnl_work *w, const dnnl_memory_desc_t *md) {
  return array(w, md, DNNL_MEMORY_ALLOCATE);
}

/** Adds the primitive of a descriptor, which is freed. */
static void add_step(dnnl_work *w, dnnl_primitive_desc_t pd, int n,
                     const dnnl_exec_arg_t arguments[]) {
  step *s = &w->steps[w->n_steps];
  if (!w->failed && check(w, dnnl_primitive_create(&s->primitive, pd))) {
    memcpy(s->arguments, arguments, (size_t)n * sizeof *arguments);
    s->n = n;
    w->n_steps++;
  }
  if (pd) dnnl_primitive_desc_destroy(pd);
}

static void add_reorder(dnnl_work *w, const dnnl_memory_desc_t *from_md, dnnl_memory_t from,
                        const dnnl_memory_desc_t *to_md, dnnl_memory_t to) {
  dnnl_primitive_desc_t pd = NULL;
  if (!w->failed)
    check(w, dnnl_reorder_primitive_desc_create(&pd, from_md, w->engine, to_md, w->engine, NULL));
  add_step(w, pd, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

static dnnl_memory_desc_t describe(dnnl_work *w, int rank, const dnnl_dims_t sizes,
                                   dnnl_format_tag_t tag) {
  dnnl_memory_desc_t md;
  memset(&md, 0, sizeof md);
  check(w, dnnl_memory_desc_init_by_tag(&md, rank, sizes, dnnl_f32, tag));
  return md;
}

/* matmul: MxNxK */

static void make_matmul(dnnl_work *w, const int64_t n[], float *const in[], float *out) {
  dnnl_memory_desc_t a = describe(w, 2, (dnnl_dims_t){n[0], n[2]}, dnnl_ab);
  dnnl_memory_desc_t b = describe(w, 2, (dnnl_dims_t){n[2], n[1]}, dnnl_ab);
  dnnl_memory_desc_t c = describe(w, 2, (dnnl_dims_t){n[0], n[1]}, dnnl_ab);
  dnnl_matmul_desc_t desc;
  dnnl_primitive_desc_t pd = NULL;
  check(w, dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c));
  if (!w->failed) check(w, dnnl_primitive_desc_create(&pd, &desc, NULL, w->engine, NULL));
  add_step(w, pd, 3,
           (dnnl_exec_arg_t[]){{DNNL_ARG_SRC, array(w, &a, in[0])},
                               {DNNL_ARG_WEIGHTS, array(w, &b, in[1])},
                               {DNNL_ARG_DST, array(w, &c, out)}});
}

/* conv: N,C,H,W,K,R,stride,pad. The library chooses layouts; reordering the arrays from and to the
   given layout is part of the work, as it is for other peers. */

/** Returns a primitive's operand for a given array, reordered if necessary. */
static dnnl_memory_t reordered(dnnl_work *w, const dnnl_memory_desc_t *given, void *data,
                               const dnnl_memory_desc_t *wanted) {
  dnnl_memory_t from = array(w, given, data);
  if (w->failed || dnnl_memory_desc_equal(given, wanted)) return from;
  dnnl_memory_t to = own_array(w, wanted);
  add_reorder(w, given, from, wanted, to);
  return to;
}

static dnnl_primitive_desc_t describe_conv(dnnl_work *w, const dnnl_dims_t sizes[3],
                                           const int64_t n[]) {
  dnnl_memory_desc_t any[3];
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t pd = NULL;
  for (int i = 0; i < 3; i++) any[i] = describe(w, 4, sizes[i], dnnl_format_tag_any);
  const dnnl_dims_t strides = {n[6], n[6]}, pads = {n[7], n[7]};
  check(w,
        dnnl_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_auto,
                                           &any[0], &any[1], NULL, &any[2], strides, pads, pads));
  if (!w->failed) check(w, dnnl_primitive_desc_create(&pd, &desc, NULL, w->engine, NULL));
  return pd;
}

static void make_conv(dnnl_work *w, const int64_t n[], float *const in[], float *out) {
  const int64_t high = (n[2] + 2 * n[7] - n[5]) / n[6] + 1;
  const int64_t wide = (n[3] + 2 * n[7] - n[5]) / n[6] + 1;
  const dnnl_dims_t sizes[] = {
      {n[0], n[1], n[2], n[3]}, {n[4], n[1], n[5], n[5]}, {n[0], n[4], high, wide}};
  dnnl_primitive_desc_t pd = describe_conv(w, sizes, n);
  if (w->failed) return;
  const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
  dnnl_memory_desc_t given[3], wanted[3];
  for (int i = 0; i < 3; i++) {
    given[i] = describe(w, 4, sizes[i], dnnl_abcd);
    wanted[i] = *dnnl_primitive_desc_query_md(pd, queries[i], 0);
  }
  dnnl_memory_t x = reordered(w, &given[0], in[0], &wanted[0]);
  dnnl_memory_t k = reordered(w, &given[1], in[1], &wanted[1]);
  bool direct = dnnl_memory_desc_equal(&given[2], &wanted[2]);
  dnnl_memory_t result = array(w, &given[2], out), y = direct ? result : own_array(w, &wanted[2]);
  add_step(w, pd, 3,
           (dnnl_exec_arg_t[]){{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, k}, {DNNL_ARG_DST, y}});
  if (!direct) add_reorder(w, &wanted[2], y, &given[2], result);
}

void *bench_peer_make(const char *kind, const int64_t numbers[], float *const in[], float *out) {
  bool matmul = !strcmp(kind, "matmul");
  if (!matmul && strcmp(kind, "conv")) return NULL;
  dnnl_work *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  check(w, dnnl_engine_create(&w->engine, dnnl_cpu, 0));
  if (!w->failed) check(w, dnnl_stream_create(&w->stream, w->engine, dnnl_stream_default_flags));
  if (!w->failed) (matmul ? make_matmul : make_conv)(w, numbers, in, out);
  if (!w->failed) return w;
  bench_peer_free(w);
  return NULL;
}

int bench_peer_run(void *work) {
  dnnl_work *w = work;
  for (int i = 0; i < w->n_steps; i++) {
    const step *s = &w->steps[i];
    if (dnnl_primitive_execute(s->primitive, w->stream, s->n, s->arguments)) return 1;
  }
  return dnnl_stream_wait(w->stream) != dnnl_success;
}

void bench_peer_free(void *work) {
  dnnl_work *w = work;
  if (!w) return;
  for (int i = 0; i < w->n_steps; i++) dnnl_primitive_destroy(w->steps[i].primitive);
  for (int i = 0; i < w->n_memories; i++) dnnl_memory_destroy(w->memories[i]);
  if (w->stream) dnnl_stream_destroy(w->stream);
  if (w->engine) dnnl_engine_destroy(w->engine);
  free(w);
}
