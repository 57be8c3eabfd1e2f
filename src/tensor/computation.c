#include "tensor/computation.h"

#include "runtime/buffers.h"
#include "tensor/dims.h"
#include "tensor/executable_cache.h"
#include "tensor/leaf.h"

size_t computation_add(computation *k, const node *root) {
  size_t number = (size_t)(uintptr_t)map_get(&k->result_of, root);
  if (number) return number - 1;
  uint64_t count;
  if (!dims_count(root, &count) || count > (uint64_t)PTRDIFF_MAX / dtype_bytes(root->dtype))
    diag_raise(&k->c->diag, TN_ERR_SHAPE, "more elements than memory can hold");
  vec_push(&k->c->arena, &k->results, (result){.root = root});
  map_set(&k->c->arena, &k->result_of, root, (void *)(uintptr_t)k->results.n);
  return k->results.n - 1;
}

/* Compiling. */

static bool may_overwrite(void *user, const node *buffer) {
  return usage_may_overwrite(user, buffer);
}

typedef struct root_list {
  computation *k;
  const node **roots;
} root_list;

static void list_roots(void *arg) {
  root_list *l = arg;
  l->roots = arena_alloc(&l->k->c->arena, l->k->results.n * sizeof *l->roots);
  for (size_t i = 0; i < l->k->results.n; i++) l->roots[i] = l->k->results.at[i].root;
}

static tn_status compile(computation *k) {
  root_list l = {.k = k};
  tn_status s = diag_catch(&k->c->diag, list_roots, &l);
  executable_ask a = {.roots = l.roots,
                      .n_roots = k->results.n,
                      .order = &k->usage.order,
                      .may_overwrite = may_overwrite,
                      .user = &k->usage};
  return s == TN_OK ? executable_cache_get(k->c, &a, &k->answer) : s;
}

/* Memory. */

static void list_buffers(void *arg) {
  computation *k = arg;
  const node_list *order = &k->usage.order;
  size_t n = executable_buffers(k->answer.made);
  k->buffers = arena_calloc(&k->c->arena, n + 1, sizeof *k->buffers);
  for (size_t i = 0, b = 0; i < order->n; i++) {
    if (order->at[i]->op != OP_BUFFER) continue;
    size_t at = k->answer.inputs[b++];
    if (at != SIZE_MAX && !k->buffers[at].input) k->buffers[at].input = order->at[i];
  }
}

static tn_status place_inputs(computation *k) {
  const node_list *order = &k->usage.order;
  tn_status s = TN_OK;
  for (size_t i = 0, b = 0; i < order->n && s == TN_OK; i++) {
    if (order->at[i]->op != OP_BUFFER) continue;
    size_t at = k->answer.inputs[b++];
    if (at == SIZE_MAX) continue;
    s = execution_set_buffer(k->execution, at, leaf_of(k->c, order->at[i])->memory, &k->c->diag);
  }
  return s;
}

static tn_status set_scalars(computation *k) {
  const executable_answer *a = &k->answer;
  tn_status s = TN_OK;
  for (size_t i = 0; i < a->n_vars && s == TN_OK; i++)
    if (a->vars[i] != SIZE_MAX)
      s = execution_set_var(k->execution, a->vars[i], a->values[i], &k->c->diag);
  return s;
}

/** Whether a buffer is what a cell's contents are in. */
static bool is_contents(const computation *k, const known_buffer *b, const cell *of) {
  return b->input && leaf_of(k->c, b->input)->cell == of;
}

/** The memory of a result: that of the state which is overwritten, or its own. */
static tn_status place_result(computation *k, size_t i) {
  diag *d = &k->c->diag;
  result *r = &k->results.at[i];
  uint64_t bytes;
  r->at = executable_output(k->answer.made, i);
  known_buffer *b = &k->buffers[r->at];
  bool is_shared = b->is_output;
  bool is_input = executable_buffer_at(k->answer.made, r->at)->role == ROLE_INPUT;
  b->is_output = true;
  if (is_input && r->owner && is_contents(k, b, r->owner)) {
    r->memory = buffer_retain(leaf_of(k->c, r->owner->settled)->memory);
    return TN_OK;
  }
  tn_status s = execution_bytes(k->execution, r->at, &bytes, d);
  if (s == TN_OK) s = buffers_ensure(k->c->device, &r->memory, bytes, d);
  if (s != TN_OK || is_input || is_shared) return s;
  return execution_set_buffer(k->execution, r->at, r->memory, d);
}

tn_status computation_open(computation *k) {
  tn_queue *queue;
  if (!k->results.n) return TN_OK;
  tn_status s = compile(k);
  if (s == TN_OK) s = diag_catch(&k->c->diag, list_buffers, k);
  if (s == TN_OK) s = context_queue(k->c, &queue, &k->c->diag);
  if (s == TN_OK) s = execution_open(&k->execution, k->answer.made, queue, &k->c->diag);
  if (s == TN_OK) execution_set_host(k->execution, &k->answer.host);
  if (s == TN_OK) s = place_inputs(k);
  if (s == TN_OK) s = set_scalars(k);
  for (size_t i = 0; i < k->results.n && s == TN_OK; i++) s = place_result(k, i);
  return s;
}

/* Running. */

/** Results that were found to be the same as an input or as another. */
static tn_status copy_shared(computation *k, const result *r) {
  tn_buffer *at = execution_buffer(k->execution, r->at);
  uint64_t bytes;
  if (at == r->memory) return TN_OK;
  tn_status s = execution_bytes(k->execution, r->at, &bytes, &k->c->diag);
  return s == TN_OK ? buffers_copy(r->memory, at, bytes, &k->c->diag) : s;
}

tn_status computation_run(computation *k) {
  tn_status s = k->execution ? execution_run(k->execution, &k->c->diag) : TN_OK;
  for (size_t i = 0; i < k->results.n && s == TN_OK; i++) s = copy_shared(k, &k->results.at[i]);
  return s;
}

bool computation_was_filled(const computation *k, size_t i) {
  const result *r = &k->results.at[i];
  return k->execution && r->memory && execution_buffer(k->execution, r->at) == r->memory &&
         execution_was_filled(k->execution, r->at);
}

void computation_close(computation *k) {
  execution_close(k->execution);
  executable_release(k->answer.made);
  if (k->answer.host.release) k->answer.host.release(k->answer.host.user);
  for (size_t i = 0; i < k->results.n; i++)
    if (k->results.at[i].memory) buffer_release(k->results.at[i].memory);
}
