/* Constant folding of a variant: finds the constant parts of its graph, compiles them into an
   executable of their own, allocates one buffer for all results, and runs it last. */
#include "tensor/plan/plan_constants.h"

#include "runtime/build_executable.h"
#include "schedule/values/constant_folding.h"
#include "target/hardware.h"
#include "target/machine.h"
#include "tensor/context/fill_build_request.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/plan/variant_progress.h"

#include <stdlib.h>

enum { ALIGN_BYTES = MACHINE_BUFFER_ALIGN_BYTES };

typedef struct constants_job {
  tn_context *c;
  tn_plan *plan;
  const atomic_bool *background;
  arena *work; /* of the graph */
  plan_constants *out;
  constants constants;
  const node **values;
  executable *executable;
} constants_job;

static bool is_constant(void *user, const node *buffer) {
  const constants_job *p = user;
  return p->plan->sources[buffer->ints[0]].memory != NULL;
}

static uint64_t bytes_of(const constant *k) {
  uint64_t count = 0;
  dims_static_count(k->value, &count);
  return count * dtype_bytes((dtype)k->value->dtype);
}

static int compare_bytes(const void *x_, const void *y_) {
  const constant *x = x_, *y = y_;
  uint64_t a = bytes_of(x), b = bytes_of(y);
  if (a != b) return a < b ? 1 : -1;
  return (x->leaf->id > y->leaf->id) - (x->leaf->id < y->leaf->id);
}

/** Compiles the constants, large ones first: while one is computed, its sources and its value exist
    besides all values before it. */
static void compile_constants(constants_job *p) {
  tn_context *c = p->c;
  const char *name = arena_printf(p->work, "%s, constants", p->plan->name);
  qsort(p->constants.at.at, p->constants.at.n, sizeof *p->constants.at.at, compare_bytes);
  p->values = arena_alloc(p->work, p->constants.at.n * sizeof *p->values);
  for (size_t i = 0; i < p->constants.at.n; i++) p->values[i] = p->constants.at.at[i].value;
  variant_progress progress = {
      .caller = &c->progress, .background = p->background, .goes_on = true};
  executable_request r = context_executable_request(c, name, p->values, p->constants.at.n);
  r.tuned.is_tunable = p->plan->is_tunable;
  variant_progress_attach(&progress, &r);
  if (executable_build(&p->executable, &r, &c->mem, p->work->diag) != TN_OK)
    diag_rethrow(p->work->diag);
  p->out->n_kernels = executable_kernels(p->executable);
}

static void raise_unless_ok(const constants_job *p, tn_status s) {
  if (s != TN_OK) diag_rethrow(p->work->diag);
}

/** True if a buffer of the executable is a constant too, so that its memory stays. */
static bool is_output(const constants_job *p, size_t buffer) {
  for (size_t i = 0; i < p->constants.at.n; i++)
    if (executable_output(p->executable, i) == buffer) return true;
  return false;
}

/** True for a weight that a run reads from the file. */
static bool is_read_in_run(const constants_job *p, const plan_source *from, size_t buffer) {
  const plan_file *f = &p->plan->template.file;
  return from->weight && f->is_unread && !p->c->device->backend->streams &&
         f->is_unread(f->user, from->weight) && !is_output(p, buffer);
}

static void open_execution(constants_job *p) {
  diag *d = p->work->diag;
  plan_constants *out = p->out;
  weight_reads *reads = &out->reads;
  out->n_buffers = executable_buffers(p->executable);
  weight_reads_init(reads, &p->plan->template.file, p->c->device, out->n_buffers, p->work);
  raise_unless_ok(p, execution_open(&out->execution, p->executable, NULL, d));
  node_list order = topo_sort(p->work, p->values, p->constants.at.n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    size_t at =
        n->op == OP_BUFFER ? executable_input(p->executable, n->ints[0], n->ints[1]) : SIZE_MAX;
    if (at == SIZE_MAX) continue;
    const plan_source *from = &p->plan->sources[n->ints[0]];
    reads->weight[at] = from->weight;
    reads->is_unread[at] = is_read_in_run(p, from, at);
    if (!reads->is_unread[at])
      raise_unless_ok(p, execution_set_buffer(out->execution, at, from->memory, d));
  }
}

/** Lays the values out in one buffer, so that they share its pages: fills in their offsets, and
    returns the bytes. */
static uint64_t layout_outputs(const constants_job *p, uint64_t offsets[]) {
  uint64_t end = 0, bytes;
  for (size_t i = 0; i < executable_buffers(p->executable); i++) {
    offsets[i] = end;
    if (executable_buffer_at(p->executable, i)->role != BUFFER_ROLE_OUTPUT) continue;
    raise_unless_ok(p, execution_buffer_bytes(p->out->execution, i, &bytes, p->work->diag));
    end += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
  }
  return end;
}

static tn_buffer *retain_buffer(constants_job *p, tn_buffer *made) {
  vec_push(p->work, &p->out->retained, made);
  return made;
}

/** The memory of a constant: a view of the buffer of all, or the memory of an input or of another
    constant that it is equal to. */
static tn_buffer *memory_of_constant(constants_job *p, size_t at, tn_buffer *all,
                                     const uint64_t offsets[]) {
  execution *e = p->out->execution;
  diag *d = p->work->diag;
  tn_buffer *view = execution_buffer(e, at);
  uint64_t bytes;
  if (view) return view;
  raise_unless_ok(p, execution_buffer_bytes(e, at, &bytes, d));
  vec_reserve(p->work, &p->out->retained, p->out->retained.n + 1);
  raise_unless_ok(p, buffer_view(all, offsets[at], bytes, &view, d));
  raise_unless_ok(p, execution_set_buffer(e, at, retain_buffer(p, view), d));
  return view;
}

/** Allocates the memory of constants before the rest is compiled, which would be in vain without
    it. */
static void alloc_constants(constants_job *p) {
  diag *d = p->work->diag;
  uint64_t *offsets = arena_alloc(p->work, executable_buffers(p->executable) * sizeof *offsets);
  uint64_t bytes = layout_outputs(p, offsets);
  tn_buffer *all;
  tn_span span;
  vec_reserve(p->work, &p->out->retained, 1);
  raise_unless_ok(p, buffer_open(p->c->device, bytes ? bytes : 1, &all, d));
  raise_unless_ok(p, buffer_span(retain_buffer(p, all), &span, d));
  for (size_t i = 0; i < p->constants.at.n; i++) {
    size_t at = executable_output(p->executable, i);
    const constant *k = &p->constants.at.at[i];
    tn_buffer *memory = memory_of_constant(p, at, all, offsets);
    map_set(p->work, &p->out->memory, k->leaf, memory);
    const new_constant made = {shared_constant_key(p->plan, p->work, k->value), memory};
    vec_push(p->work, &p->out->made, made);
  }
}

/** Takes constants that other variants have from the list of those to be computed. */
static void take_shared(constants_job *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->constants.at.n; i++) {
    const constant *k = &p->constants.at.at[i];
    vec_reserve(p->work, &p->out->shared, p->out->shared.n + 1);
    shared_constant *s =
        shared_constants_find(p->plan, shared_constant_key(p->plan, p->work, k->value));
    if (!s) {
      p->constants.at.at[n++] = *k;
      continue;
    }
    p->out->shared.at[p->out->shared.n++] = s;
    map_set(p->work, &p->out->memory, k->leaf, s->memory);
  }
  p->constants.at.n = n;
}

static void prepare_constants(void *arg) {
  constants_job *p = arg;
  compile_constants(p);
  open_execution(p);
  alloc_constants(p);
}

void plan_constants_build(tn_plan *plan, ir *g, const node *const roots[], size_t n,
                          const atomic_bool *background, plan_constants *out) {
  tn_context *c = plan->context;
  constants_job p = {
      .c = c, .plan = plan, .background = background, .work = ir_arena(g), .out = out};
  const tn_hardware hardware = hardware_with_defaults(&c->target->target.hardware);
  *out = (plan_constants){.plan = plan, .work = p.work, .background = background};
  p.constants = constant_folding_find(
      g, &(constant_folding_request){.roots = roots,
                                     .n_roots = n,
                                     .is_constant = is_constant,
                                     .user = &p,
                                     .first_uid = (int64_t)plan->n_sources,
                                     .vector = c->target->target.vector_bytes,
                                     .cache = (double)hardware.l3_bytes,
                                     .math = (int)c->math,
                                     .rows = target_rows(&c->target->target)});
  out->roots = p.constants.roots;
  take_shared(&p);
  if (!p.constants.at.n) return;
  tn_status s = diag_catch(p.work->diag, prepare_constants, &p);
  executable_release(p.executable);
  if (s != TN_OK) diag_rethrow(p.work->diag);
}

static void share_constants(void *arg) {
  plan_constants *p = arg;
  for (size_t i = 0; i < p->made.n; i++) {
    vec_reserve(p->work, &p->shared, p->shared.n + 1);
    shared_constant *s = shared_constants_add(p->plan, p->made.at[i].key, p->made.at[i].memory);
    if (s) p->shared.at[p->shared.n++] = s;
  }
}

static bool is_wanted_still(void *user, const char *what, uint64_t done, uint64_t total) {
  const plan_constants *p = user;
  (void)what, (void)done, (void)total;
  return !atomic_load(p->background);
}

tn_status plan_constants_run(plan_constants *p, diag *d) {
  if (!p->execution) return TN_OK;
  tn_context *c = p->plan->context;
  const tn_progress in_background = {is_wanted_still, p, NULL};
  execution_set_progress(p->execution, p->background ? &in_background : &c->progress,
                         &c->reports.lock);
  weight_reads_attach(&p->reads, p->execution);
  tn_status s = execution_run(p->execution, d);
  execution_close(p->execution);
  weight_reads_release(&p->reads, p->n_buffers);
  p->execution = NULL;
  if (s == TN_OK) s = diag_catch(d, share_constants, p);
  return s;
}

void plan_constants_release(plan_constants *p) {
  execution_close(p->execution);
  weight_reads_release(&p->reads, p->n_buffers);
  for (size_t i = 0; i < p->retained.n; i++) buffer_release(p->retained.at[i]);
  for (size_t i = 0; i < p->shared.n; i++) shared_constant_release(p->plan, p->shared.at[i]);
}
