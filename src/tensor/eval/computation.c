/* Evaluates a set of result nodes: takes their executable from the cache or compiles it, binds
   input and output buffers, and runs it. If a result becomes a state's new contents and the
   executable updates it in place, the state's buffer is reused. */
#include "tensor/eval/computation.h"

#include "device/memory/buffer_resize.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/executable_cache.h"
#include "tensor/state/graph_input.h"

size_t computation_add(computation *k, const node *root) {
  size_t number = (size_t)(uintptr_t)map_get(&k->result_of, root);
  if (number) return number - 1;
  uint64_t count;
  if (!dims_static_count(root, &count) || count > (uint64_t)PTRDIFF_MAX / dtype_bytes(root->dtype))
    diag_raise(&k->c->diag, TN_ERR_SHAPE, "more elements than memory can hold");
  vec_push(&k->c->arena, &k->results, (computation_result){.root = root});
  map_set(&k->c->arena, &k->result_of, root, (void *)(uintptr_t)k->results.n);
  return k->results.n - 1;
}

/* Compiling. */

static bool may_overwrite_input(void *user, const node *buffer) {
  return reference_counts_may_overwrite(user, buffer);
}

typedef struct root_job {
  computation *k;
  const node **roots;
} root_job;

static void list_roots(void *arg) {
  root_job *l = arg;
  l->roots = arena_alloc(&l->k->c->arena, l->k->results.n * sizeof *l->roots);
  for (size_t i = 0; i < l->k->results.n; i++) l->roots[i] = l->k->results.at[i].root;
}

static tn_status compile_results(computation *k) {
  root_job l = {.k = k};
  tn_status s = diag_catch(&k->c->diag, list_roots, &l);
  executable_cache_request a = {.roots = l.roots,
                                .n_roots = k->results.n,
                                .order = &k->counts.order,
                                .may_overwrite = may_overwrite_input,
                                .user = &k->counts};
  return s == TN_OK ? executable_cache_get(k->c, &a, &k->compiled) : s;
}

/* Memory. */

static void list_buffers(void *arg) {
  computation *k = arg;
  const node_list *order = &k->counts.order;
  size_t n = executable_buffers(k->compiled.executable);
  k->buffers = arena_calloc(&k->c->arena, n + 1, sizeof *k->buffers);
  for (size_t i = 0, b = 0; i < order->n; i++) {
    if (order->at[i]->op != OP_BUFFER) continue;
    size_t at = k->compiled.inputs[b++];
    if (at != SIZE_MAX && !k->buffers[at].input) k->buffers[at].input = order->at[i];
  }
}

static tn_status place_inputs(computation *k) {
  const node_list *order = &k->counts.order;
  tn_status s = TN_OK;
  for (size_t i = 0, b = 0; i < order->n && s == TN_OK; i++) {
    if (order->at[i]->op != OP_BUFFER) continue;
    size_t at = k->compiled.inputs[b++];
    if (at == SIZE_MAX) continue;
    s = execution_set_buffer(k->execution, at, graph_input_of(k->c, order->at[i])->memory,
                             &k->c->diag);
  }
  return s;
}

static tn_status set_scalars(computation *k) {
  const executable_cache_result *a = &k->compiled;
  tn_status s = TN_OK;
  for (size_t i = 0; i < a->n_vars && s == TN_OK; i++)
    if (a->vars[i] != SIZE_MAX)
      s = execution_set_var(k->execution, a->vars[i], a->values[i], &k->c->diag);
  return s;
}

/** True if a buffer of the executable holds the contents of a state. */
static bool is_state_memory(const computation *k, const computation_buffer *b,
                            const state_record *of) {
  return b->input && graph_input_of(k->c, b->input)->state == of;
}

/** Finds the memory of a result: the state's that is overwritten, or its own. */
static tn_status place_result(computation *k, size_t i) {
  diag *d = &k->c->diag;
  computation_result *r = &k->results.at[i];
  uint64_t bytes;
  r->buffer = executable_output(k->compiled.executable, i);
  computation_buffer *b = &k->buffers[r->buffer];
  bool is_shared = b->is_output;
  bool is_input =
      executable_buffer_at(k->compiled.executable, r->buffer)->role == BUFFER_ROLE_INPUT;
  b->is_output = true;
  if (is_input && r->owner && is_state_memory(k, b, r->owner)) {
    r->memory = buffer_retain(graph_input_of(k->c, r->owner->versions.committed)->memory);
    return TN_OK;
  }
  tn_status s = execution_buffer_bytes(k->execution, r->buffer, &bytes, d);
  if (s == TN_OK)
    s = buffer_reserve(executable_device_of(k->compiled.executable, r->buffer), &r->memory, bytes,
                       d);
  if (s != TN_OK || is_input || is_shared) return s;
  return execution_set_buffer(k->execution, r->buffer, r->memory, d);
}

tn_status computation_open(computation *k) {
  const execution_source queues = {.pool = &k->c->queues};
  if (!k->results.n) return TN_OK;
  tn_status s = compile_results(k);
  if (s == TN_OK) s = diag_catch(&k->c->diag, list_buffers, k);
  if (s == TN_OK) s = execution_open(&k->execution, k->compiled.executable, &queues, &k->c->diag);
  if (s == TN_OK) execution_set_host(k->execution, &k->compiled.host);
  context_reports *reports = &k->c->reports;
  if (s == TN_OK)
    s = execution_set_tracer(k->execution, &reports->tracer, &reports->lock, &k->c->diag);
  if (s == TN_OK) execution_set_progress(k->execution, &k->c->progress, &reports->lock);
  if (s == TN_OK) s = place_inputs(k);
  if (s == TN_OK) s = set_scalars(k);
  for (size_t i = 0; i < k->results.n && s == TN_OK; i++) s = place_result(k, i);
  return s;
}

/* Running. */

/** Copies a result that the executable found to be equal to an input or to another result. */
static tn_status copy_shared_result(computation *k, const computation_result *r) {
  tn_buffer *at = execution_buffer(k->execution, r->buffer);
  uint64_t bytes;
  if (at == r->memory) return TN_OK;
  tn_status s = execution_buffer_bytes(k->execution, r->buffer, &bytes, &k->c->diag);
  return s == TN_OK ? buffer_copy_prefix(r->memory, at, bytes, &k->c->diag) : s;
}

tn_status computation_run(computation *k) {
  tn_status s = k->execution ? execution_start(k->execution, &k->c->diag) : TN_OK;
  for (size_t i = 0; i < k->results.n && s == TN_OK; i++)
    s = copy_shared_result(k, &k->results.at[i]);
  return s;
}

bool computation_was_written(const computation *k, size_t i) {
  const computation_result *r = &k->results.at[i];
  return k->execution && r->memory && execution_buffer(k->execution, r->buffer) == r->memory &&
         execution_was_filled_by_host(k->execution, r->buffer);
}

void computation_close(computation *k) {
  execution_close(k->execution);
  executable_release(k->compiled.executable);
  if (k->compiled.host.release) k->compiled.host.release(k->compiled.host.user);
  for (size_t i = 0; i < k->results.n; i++)
    if (k->results.at[i].memory) buffer_release(k->results.at[i].memory);
}
