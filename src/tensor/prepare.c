#include "tensor/prepare.h"

#include "schedule/constants.h"
#include "tensor/dims.h"

#include <stdlib.h>

enum { ALIGN_BYTES = 64 };

typedef struct preparing {
  tn_context *c;
  const plan_graph *g;
  arena *work;
  prepared *out;
  constants found;
  const node **values;
  executable *executable;
  tn_progress progress;
} preparing;

static bool is_constant(void *user, const node *buffer) {
  const preparing *p = user;
  return p->g->leaf(p->g->user, buffer).memory != NULL;
}

/** The plan itself is still to be compiled. */
static bool tell(void *user, const char *what, uint64_t done, uint64_t total) {
  const tn_progress *to = user;
  return done == total || to->step(to->user, what, done, total);
}

static uint64_t bytes_of(const constant *k) {
  uint64_t count = 0;
  dims_count(k->value, &count);
  return count * dtype_bytes((dtype)k->value->dtype);
}

static int by_bytes(const void *x_, const void *y_) {
  const constant *x = x_, *y = y_;
  uint64_t a = bytes_of(x), b = bytes_of(y);
  if (a != b) return a < b ? 1 : -1;
  return (x->leaf->id > y->leaf->id) - (x->leaf->id < y->leaf->id);
}

/** Large ones first: what a value is computed from and the value itself are there at once, besides
    all values before it. */
static void compile(preparing *p) {
  tn_context *c = p->c;
  const char *name = arena_printf(p->work, "%s, constants", p->g->name);
  qsort(p->found.at.at, p->found.at.n, sizeof *p->found.at.at, by_bytes);
  p->values = arena_alloc(p->work, p->found.at.n * sizeof *p->values);
  for (size_t i = 0; i < p->found.at.n; i++) p->values[i] = p->found.at.at[i].value;
  p->progress = (tn_progress){tell, &c->progress, NULL};
  executable_request r = {.name = name,
                          .roots = p->values,
                          .n_roots = p->found.at.n,
                          .target = c->target,
                          .math = (int)c->math,
                          .dump = &c->dump,
                          .progress = c->progress.step ? &p->progress : NULL,
                          .logger = &c->logger,
                          .disk = c->disk,
                          .reports = &c->reports};
  if (executable_make(&p->executable, &r, &c->mem, p->work->diag) != TN_OK)
    diag_rethrow(p->work->diag);
  p->out->kernels = executable_kernels(p->executable);
}

static void require(const preparing *p, tn_status s) {
  if (s != TN_OK) diag_rethrow(p->work->diag);
}

static void open_execution(preparing *p) {
  diag *d = p->work->diag;
  prepared *out = p->out;
  out->read = arena_calloc(p->work, executable_buffers(p->executable) + 1, sizeof *out->read);
  require(p, execution_open(&out->execution, p->executable, NULL, d));
  node_list order = topo_sort(p->work, p->values, p->found.at.n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    size_t at =
        n->op == OP_BUFFER ? executable_input(p->executable, n->ints[0], n->ints[1]) : SIZE_MAX;
    if (at == SIZE_MAX) continue;
    out->read[at] = n;
    require(p, execution_set_buffer(out->execution, at, p->g->leaf(p->g->user, n).memory, d));
  }
}

/** All values lie in one buffer, for the sake of its pages: the place of each, and the bytes. */
static uint64_t place(const preparing *p, uint64_t offsets[]) {
  uint64_t end = 0, bytes;
  for (size_t i = 0; i < executable_buffers(p->executable); i++) {
    offsets[i] = end;
    if (executable_buffer_at(p->executable, i)->role != ROLE_OUTPUT) continue;
    require(p, execution_bytes(p->out->execution, i, &bytes, p->work->diag));
    end += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
  }
  return end;
}

static tn_buffer *hold(preparing *p, tn_buffer *made) {
  vec_push(p->work, &p->out->held, made);
  return made;
}

/** A value may be one of the inputs seen in another way, or another value. */
static tn_buffer *memory_of(preparing *p, size_t at, tn_buffer *all, const uint64_t offsets[]) {
  execution *e = p->out->execution;
  diag *d = p->work->diag;
  tn_buffer *view = execution_buffer(e, at);
  uint64_t bytes;
  if (view) return view;
  require(p, execution_bytes(e, at, &bytes, d));
  vec_reserve(p->work, &p->out->held, p->out->held.n + 1);
  require(p, buffer_view(all, offsets[at], bytes, &view, d));
  require(p, execution_set_buffer(e, at, hold(p, view), d));
  return view;
}

/** Memory is asked for now: without it, the rest would be compiled in vain. */
static void open_memory(preparing *p) {
  diag *d = p->work->diag;
  uint64_t *offsets = arena_alloc(p->work, executable_buffers(p->executable) * sizeof *offsets);
  uint64_t bytes = place(p, offsets);
  tn_buffer *all;
  tn_span span;
  vec_reserve(p->work, &p->out->held, 1);
  require(p, buffer_open(p->c->device, bytes ? bytes : 1, &all, d));
  require(p, buffer_span(hold(p, all), &span, d));
  for (size_t i = 0; i < p->found.at.n; i++) {
    size_t at = executable_output(p->executable, i);
    map_set(p->work, &p->out->memory, p->found.at.at[i].leaf, memory_of(p, at, all, offsets));
  }
}

static void make(void *arg) {
  preparing *p = arg;
  compile(p);
  open_execution(p);
  open_memory(p);
}

void prepare_constants(tn_context *c, const plan_graph *g, const node *const roots[], size_t n,
                       arena *work, prepared *out) {
  preparing p = {.c = c, .g = g, .work = work, .out = out};
  *out = (prepared){.graph = g};
  p.found = schedule_constants(g->ir, &(constants_request){.roots = roots,
                                                           .n_roots = n,
                                                           .is_constant = is_constant,
                                                           .user = &p,
                                                           .vector = c->target->target.vector_bytes,
                                                           .math = (int)c->math});
  out->roots = p.found.roots;
  if (!p.found.at.n) return;
  tn_status s = diag_catch(work->diag, make, &p);
  executable_release(p.executable);
  if (s != TN_OK) diag_rethrow(work->diag);
}

static void was_read(void *user, size_t buffer) {
  const prepared *p = user;
  p->graph->was_read(p->graph->user, p->read[buffer]);
}

tn_status prepare_run(prepared *p, diag *d) {
  if (!p->execution) return TN_OK;
  if (p->graph->was_read) execution_watch_inputs(p->execution, was_read, p);
  tn_status s = execution_run(p->execution, d);
  execution_close(p->execution);
  p->execution = NULL;
  return s;
}

void prepare_release(prepared *p) {
  execution_close(p->execution);
  for (size_t i = 0; i < p->held.n; i++) buffer_release(p->held.at[i]);
}
