/* The tables of graph inputs and of computed values. Numbers of inputs are reused, with a version
   that counts their uses, so that no two BUFFERs that ever existed are equal nodes. Both tables
   observe the ir: an input is closed with its last node, a computed value dropped with its node. */
#include "tensor/state/graph_input.h"

#include "ir/core/node_device.h"
#include "tensor/context/host_function.h"
#include "tensor/state/state_record.h"

#include <string.h>

static graph_input *input_at(tn_context *c, int64_t uid) { return &c->graph_inputs.at[uid]; }

graph_input *graph_input_of(tn_context *c, const node *n) { return input_at(c, n->ints[0]); }

bool graph_input_is_of_runs(tn_context *c, const node *n) {
  return n->op == OP_VAR || (n->op == OP_BUFFER && graph_input_of(c, n)->kind != GRAPH_INPUT_DATA);
}

static tn_status open_input(tn_context *c, graph_input_kind kind, int64_t *uid) {
  graph_input_table *t = &c->graph_inputs;
  if (!t->free && t->n == t->cap) {
    size_t cap = t->cap ? 2 * t->cap : 64;
    graph_input *at = mem_resize(&c->mem, t->at, t->cap * sizeof *at, cap * sizeof *at);
    if (!at) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    t->at = at;
    t->cap = cap;
  }
  size_t i = t->free ? t->free - 1 : t->n++;
  int64_t version = t->free ? t->at[i].version + 1 : 0;
  if (t->free) t->free = t->at[i].next_free;
  t->at[i] = (graph_input){.kind = kind, .version = version};
  *uid = (int64_t)i;
  return TN_OK;
}

static void close_input(tn_context *c, int64_t uid) {
  graph_input l = *input_at(c, uid);
  *input_at(c, uid) = (graph_input){
      .kind = GRAPH_INPUT_FREE, .version = l.version, .next_free = c->graph_inputs.free};
  c->graph_inputs.free = (size_t)uid + 1;
  if (l.former_state) l.former_state->n_former_inputs--;
  if (l.memory) buffer_release(l.memory);
  state_storage_release(l.former_storage);
  failure_release(c, l.failure);
  mem_strfree(&c->mem, l.name);
  host_function_release(l.host_function);
}

/** Arguments and result of make_buffer. */
typedef struct buffer_job {
  tn_context *c;
  dtype dtype;
  size_t rank;
  const node *const *dims;
  int64_t ints[3];
  size_t n_ints;
  const node *made;
} buffer_job;

static void make_buffer(void *arg) {
  buffer_job *j = arg;
  j->made = ir_retain(ir_node(j->c->ir, OP_BUFFER, j->dtype, j->dims, j->rank, j->ints, j->n_ints));
}

tn_status graph_input_open(tn_context *c, graph_input_kind kind, uint8_t device, dtype t,
                           size_t rank, const node *const dims[], const node **out) {
  buffer_job j = {.c = c, .dtype = t, .rank = rank, .dims = dims};
  j.n_ints = 2 + node_device_argument(device, j.ints + 2);
  *out = NULL;
  tn_status s = open_input(c, kind, &j.ints[0]);
  if (s != TN_OK) return s;
  j.ints[1] = input_at(c, j.ints[0])->version;
  s = diag_catch(&c->diag, make_buffer, &j);
  if (s != TN_OK) close_input(c, j.ints[0]);
  *out = j.made;
  return s;
}

tn_status graph_input_open_custom(tn_context *c, struct host_function *host, int64_t *uid) {
  tn_status s = open_input(c, GRAPH_INPUT_HOST_FUNCTION, uid);
  if (s == TN_OK) input_at(c, *uid)->host_function = host_function_retain(host);
  return s;
}

void graph_input_close_custom(tn_context *c, int64_t uid) {
  if (!input_at(c, uid)->n_nodes) close_input(c, uid);
}

void graph_input_set_memory(tn_context *c, const node *n, tn_buffer *memory) {
  graph_input *l = graph_input_of(c, n);
  tn_buffer *old = l->memory;
  l->memory = buffer_retain(memory);
  if (old) buffer_release(old);
}

/* ---- Computed values ----

   An entry holds a reference to its BUFFER, but none to its node. */

typedef struct computed_value {
  const node *key, *buffer;
} computed_value;

static bool has_key(const void *entry, const void *key) {
  return ((const computed_value *)entry)->key == key;
}

static computed_value *find_computed(const tn_context *c, const node *n) {
  return hash_table_get(&c->computed_values, node_hash(n), n, has_key);
}

const node *computed_value_of(tn_context *c, const node *n) {
  const computed_value *r = find_computed(c, n);
  return r ? r->buffer : NULL;
}

void computed_value_set(tn_context *c, const node *n, const node *buffer) {
  if (find_computed(c, n)) return;
  hash_table_reserve(&c->computed_values, &c->mem, &c->diag);
  computed_value *r = mem_alloc(&c->mem, sizeof *r);
  if (!r) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  *r = (computed_value){n, ir_retain(buffer)};
  hash_table_insert(&c->computed_values,
                    hash_table_find(&c->computed_values, node_hash(n), n, has_key), node_hash(n),
                    r);
}

void computed_value_forget(tn_context *c, const node *n) {
  computed_value *r = find_computed(c, n);
  if (!r) return;
  hash_table_remove(&c->computed_values, node_hash(n), r);
  ir_release(c->ir, r->buffer);
  mem_free(&c->mem, r, sizeof *r);
}

/* ---- Observation of nodes ---- */

static void count_node(void *context, const node *n) {
  if (n->op == OP_CUSTOM) graph_input_of(context, n)->n_nodes++;
}

static void release_node(void *context, const node *n) {
  tn_context *c = context;
  if (c->computed_values.n) computed_value_forget(c, n);
  if (n->op == OP_BUFFER) close_input(c, n->ints[0]);
  if (n->op == OP_CUSTOM && !--graph_input_of(c, n)->n_nodes) close_input(c, n->ints[0]);
}

ir_observer graph_input_observer(tn_context *c) {
  return (ir_observer){count_node, release_node, c};
}

void graph_input_free_all(tn_context *c) {
  void *r;
  for (size_t at = 0; (r = hash_table_next(&c->computed_values, &at));)
    mem_free(&c->mem, r, sizeof(computed_value));
  hash_table_free(&c->computed_values, &c->mem);
  for (size_t i = 0; i < c->graph_inputs.n; i++)
    if (c->graph_inputs.at[i].kind != GRAPH_INPUT_FREE) close_input(c, (int64_t)i);
  mem_free(&c->mem, c->graph_inputs.at, c->graph_inputs.cap * sizeof *c->graph_inputs.at);
}
