/* Kernels under names that depend on the kernel alone. */
#include "ir/binder.h"
#include "ir/scalars.h"
#include "ir/sink.h"
#include "ir/subst.h"
#include "ir/var.h"
#include "schedule/passes.h"

#include <string.h>

typedef struct renaming {
  ir *g;
  arena *a;
  map image;
  const size_t *buffers;
  node_list scalars;
  map places;  /* trips' numbers of which more than a value is made */
  map numbers; /* id of a range + 1 → its number */
  int64_t ranges;
} renaming;

static size_t position(const size_t buffers[], size_t n, size_t buffer) {
  for (size_t i = 0; i < n; i++)
    if (buffers[i] == buffer) return i;
  return n;
}

const size_t *kernel_buffers(ir *g, const node *sink, size_t *n) {
  VEC(size_t) buffers = {0};
  const node *out = sink->src[0];
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i + 1 < out->n_src; i++)
    vec_push(ir_arena(g), &buffers, (size_t)out->src[i]->ints[0]);
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_PARAM) continue;
    size_t buffer = (size_t)order.at[i]->ints[0];
    if (position(buffers.at, buffers.n, buffer) == buffers.n)
      vec_push(ir_arena(g), &buffers, buffer);
  }
  *n = buffers.n;
  return buffers.at;
}

/* Loops of any length have one kernel where nothing else tells their lengths. */

enum { MOST_TRIP = INT32_MAX / 4 }; /* fits in narrow indices */

static void find_places(renaming *r, const node_list *order) {
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src && order->at[i]->op != OP_CAST; k++)
      map_set(r->a, &r->places, order->at[i]->src[k], NULL);
}

static const node *unbounded(const renaming *r, const node *var) {
  static const int64_t bounds[] = {0, MOST_TRIP};
  if (!var_is_trip(var->text) || map_has(&r->places, var) || var->ints[1] > MOST_TRIP) return var;
  return ir_make(r->g, &(node_spec){.op = OP_VAR,
                                    .dtype = DT_INDEX,
                                    .ints = bounds,
                                    .n_int = 2,
                                    .text = var->text,
                                    .n_text = var->n_text});
}

static const node *numbered(renaming *r, const node *var) {
  vec_push(r->a, &r->scalars, var);
  return scalar_renamed(r->g, unbounded(r, var), SCALAR_OF_KERNEL, r->scalars.n - 1);
}

/** The range of a kernel, or one that a law makes: those come after. */
static int64_t range_renamed(void *user, int64_t id) {
  renaming *r = user;
  const void *key = (const void *)(uintptr_t)(id + 1);
  if (!map_has(&r->numbers, key)) map_set(r->a, &r->numbers, key, (void *)(uintptr_t)r->ranges++);
  return (int64_t)(uintptr_t)map_get(&r->numbers, key);
}

static const node *with_lines(renaming *r, const node *sink) {
  size_t bytes;
  const char *lines = sink_schedule(sink, &bytes);
  if (!lines) return sink;
  lines = sink_lines_renamed(r->a, lines, bytes, range_renamed, r);
  return sink_with_schedule(r->g, sink, lines, strlen(lines));
}

static bool is_numbered(const char *text) {
  return scalar_number(text, SCALAR_OF_GRAPH) != SIZE_MAX || var_is_trip(text);
}

static const node *renamed(renaming *r, const node *n) {
  const node **src = arena_alloc(r->a, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&r->image, n->src[i]);
  if (n->op == OP_PARAM) {
    int64_t slot = (int64_t)position(r->buffers, SIZE_MAX, (size_t)n->ints[0]);
    return ir_node(r->g, OP_PARAM, (dtype)n->dtype, src, n->n_src, &slot, 1);
  }
  if (n->op == OP_RANGE) {
    int64_t ints[] = {range_renamed(r, n->ints[0]), n->ints[1], n->ints[2], n->ints[3]};
    return ir_node(r->g, OP_RANGE, DT_INDEX, src, 1, ints, 4);
  }
  if (n->op == OP_VAR && is_numbered(n->text)) return numbered(r, n);
  const node *made = subst_rebuild(r->g, n, src);
  return n->op == OP_SINK ? with_lines(r, made) : made;
}

static void rename_kernel(ir *g, schedule_step *step) {
  renaming r = {.g = g, .a = ir_arena(g), .buffers = step->buffers};
  node_list order = topo_sort(r.a, &step->kernel, 1, NULL, NULL);
  find_places(&r, &order);
  for (size_t i = 0; i < order.n; i++)
    map_set(r.a, &r.image, order.at[i], (void *)renamed(&r, order.at[i]));
  step->kernel = map_get(&r.image, step->kernel);
  step->scalars = r.scalars;
}

void schedule_rename(ir *g, schedule *s) {
  for (size_t i = 0; i < s->steps.n; i++) {
    if (s->steps.at[i].kernel) rename_kernel(g, &s->steps.at[i]);
  }
}
