/* Implements views: the array of a kernel that accesses a part of a larger one begins at the first
   element of the part, and its coordinates count from there. Kernels that differ only in where
   their part lies then become equal, and one that reads and writes parts of one array has two
   arrays. Along the outermost axis the view has the size of the part. Along others it keeps the
   size of the array, as its rows lie as far apart, so that its end may be beyond that of the array:
   the buffer is made longer by the elements before the part. One that a step without a kernel takes
   as a whole array keeps its size: it has views of rows alone, as inputs and outputs have. */
#include "schedule/memory/buffer_views.h"

#include "ir/core/binder.h"
#include "ir/core/tensor_loop.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/substitute.h"
#include "schedule/core/param_like.h"
#include "schedule/kernels/kernel_buffers.h"
#include "schedule/loops/outline_loops.h"
#include "schedule/memory/array_parts.h"

/** An array of a kernel, and the view that takes its place. */
typedef struct view {
  const node *from, *to;      /* PARAMs; `from` NULL: there is none */
  int64_t first[IR_MAX_RANK]; /* coordinates in `from` of the first element */
} view;

typedef struct viewing {
  ir *g;
  arena *a; /* of the rewriting of one kernel */
  schedule *s;
  map views;      /* node that stands for a part of a buffer (part_key) → its view's number + 1 */
  bool *is_whole; /* each buffer: a step takes it as a whole array */
  const node *out; /* of the kernel */
  view read, written;
} viewing;

/** A node that stands for a number of elements of a buffer from one on: equal parts have one. */
static const node *part_key(ir *g, size_t buffer, const node *size, int64_t start) {
  const node *both[] = {size, ix_const(g, start)};
  int64_t ints[] = {(int64_t)buffer};
  return ir_node(g, OP_PARAM, DT_U8, both, 2, ints, 1);
}

/** The view of a buffer that begins at an element, and has the sizes of `param`. */
static size_t view_buffer(viewing *w, size_t buffer, const node *param, int64_t start) {
  const node *size = ir_element_count(w->g, param), *key = part_key(w->g, buffer, size, start);
  size_t known = (size_t)(uintptr_t)map_get(&w->views, key);
  if (known) return known - 1;
  schedule_buffer b = {.dtype = (dtype)param->dtype,
                       .size = size,
                       .within = buffer + 1,
                       .start = start,
                       .device = w->s->buffers.at[buffer].device};
  vec_push(ir_arena(w->g), &w->s->buffers, b);
  map_set(ir_arena(w->g), &w->views, key, (void *)(uintptr_t)w->s->buffers.n);
  return w->s->buffers.n - 1;
}

static size_t outermost_axis(const node *param) {
  size_t k = 0;
  while (k + 1 < param->rank && node_is_bits(param->dims[k], 1)) k++;
  return k;
}

/** True if the part is known to be within the array. An outermost size may vary: all of it is in
   the part then. */
static bool may_view(const array_part *p) {
  for (size_t k = 0; k < p->param->rank; k++) {
    const node *size = p->param->dims[k];
    bool fits = node_is_const(size) ? p->low[k] >= 0 && p->high[k] < node_int(size)
                                    : p->low[k] == 0 && k == outermost_axis(p->param);
    if (!fits) return false;
  }
  return p->param->rank > 0;
}

/** Makes the view of a part; none if the part begins and ends as the array does. */
static view view_of(viewing *w, const array_part *p) {
  view v = {0};
  if (!p->param || p->is_all || !may_view(p)) return v;
  const node **dims = arena_copy(w->a, p->param->dims, p->param->rank * sizeof *dims);
  size_t buffer = (size_t)p->param->ints[0], outer = outermost_axis(p->param);
  schedule_buffer *b = &w->s->buffers.at[buffer];
  int64_t start = 0, more = 0, stride = 1;
  for (size_t k = p->param->rank; k-- > 0;
       stride *= node_is_const(dims[k]) ? node_int(dims[k]) : 1) {
    if (k != outer && (b->is_output || b->origin || w->is_whole[buffer])) continue;
    v.first[k] = p->low[k];
    start += p->low[k] * stride;
    if (k != outer) more += p->low[k] * stride;
  }
  if (node_is_const(dims[outer])) dims[outer] = ix_const(w->g, p->high[outer] - p->low[outer] + 1);
  if (!start && dims[outer] == p->param->dims[outer]) return v;
  v.from = p->param;
  v.to = param_like(w->g, p->param, dims, 0);
  size_t number = view_buffer(w, buffer, v.to, start);
  v.to = param_like(w->g, p->param, dims, number);
  b = &w->s->buffers.at[buffer];
  if (more > b->padding) b->padding = more;
  return v;
}

static void shift_coords(viewing *w, const view *v, const node **at) {
  for (size_t k = 0; k < v->from->rank; k++) at[k] = ix_add_const(w->g, at[k], -v->first[k]);
}

static const node *rewrite_stage(viewing *w, const node *stage, const node *const src[]) {
  binder_layout p = binder_layout_of(OP_STAGE, stage->ints);
  const node **to = arena_copy(w->a, src, stage->n_src * sizeof *to);
  for (size_t i = 0, first = 0; i < p.arrays; first += stage_rank(stage, i++)) {
    if (w->out->src[i] != w->written.from) continue;
    shift_coords(w, &w->written, to + p.coords + first);
    for (size_t k = 0; k < w->written.to->rank; k++)
      to[p.extents + first + k] = w->written.to->dims[k];
  }
  return subst_rebuild(w->g, stage, to);
}

static const node *rewrite_out(viewing *w, const node *out, const node *const src[]) {
  const node **to = arena_copy(w->a, src, out->n_src * sizeof *to);
  for (uint32_t i = 0; i + 1 < out->n_src; i++)
    if (out->src[i] == w->written.from) to[i] = w->written.to;
  return subst_rebuild(w->g, out, to);
}

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  viewing *w = user;
  if (w->written.from && n == w->out) return rewrite_out(w, n, src);
  if (w->written.from && n == w->out->src[w->out->n_src - 1]) return rewrite_stage(w, n, src);
  if (n->op != OP_INDEX || !w->read.from || n->src[0] != w->read.from) return NULL;
  const node **at = arena_copy(w->a, src + 1, (n->n_src - 1) * sizeof *at);
  shift_coords(w, &w->read, at);
  return index_make(w->g, (dtype)n->dtype, w->read.to, 0, w->read.to->rank, at);
}

/** Replaces the parts of a buffer in a kernel by views. */
static void view_parts(viewing *w, schedule_step *step, size_t buffer) {
  node_list nodes = topo_sort(w->a, &step->kernel, 1, NULL, NULL);
  array_accesses x = array_accesses_of(&nodes, step->kernel, buffer);
  if (array_parts_overlap(&x.read, &x.written)) return;
  w->out = step->kernel->src[0];
  w->read = view_of(w, &x.read);
  w->written = view_of(w, &x.written);
  if (w->read.from || w->written.from)
    ir_copy(w->g, w->a, &step->kernel, 1, rewrite_node, w, &step->kernel);
}

/** The number of first buffers that a step takes as whole arrays: of a loop, results and initial
    states, which are copied. */
static size_t whole_buffers(const schedule_step *s) {
  if (s->kind == STEP_LOOP) return s->n_outputs + loop_n_states(s->plan->loop);
  return s->kernel ? 0 : s->n_buffers;
}

static bool *find_whole(ir *g, const schedule *s) {
  bool *is_whole = arena_calloc(ir_arena(g), s->buffers.n + 1, sizeof *is_whole);
  for (size_t i = 0; i < s->steps.n; i++)
    for (size_t k = 0; k < whole_buffers(&s->steps.at[i]); k++)
      is_whole[s->steps.at[i].buffers[k]] = true;
  return is_whole;
}

void buffer_views_make(ir *g, schedule *s) {
  viewing w = {.g = g, .a = ir_scratch(g), .s = s, .is_whole = find_whole(g, s)};
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    size_t bytes;
    if (!step->kernel || sink_schedule(step->kernel, &bytes)) continue;
    arena_mark here = arena_save(w.a);
    for (size_t k = 0; k < step->n_buffers; k++)
      if (s->buffers.at[step->buffers[k]].n_places) view_parts(&w, step, step->buffers[k]);
    arena_rewind(w.a, here);
    step->buffers = kernel_buffers(g, step->kernel, &step->n_buffers);
  }
  for (size_t i = 0; i < s->buffers.n; i++) {
    schedule_buffer *b = &s->buffers.at[i];
    if (b->padding) b->size = ix_add_const(g, b->size, b->padding);
  }
}
