/* Runs an interpreted plan: the interpreter of tensor graphs computes the outputs from a copy of
   the plan's graph with the numbers of the run's facts. Nothing is rewritten or compiled, so that
   compiled results can be compared with these. */
#include "device/memory/span.h"
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "ir/transform/copy_graph.h"
#include "tensor/plan/binding.h"

#include <string.h>

typedef struct interpretation {
  tn_binding *b;
  arena *a;              /* of the arrays */
  ir *ir;                /* of the copy */
  interp_array *arrays;  /* by number of a BUFFER */
  interp_array *results; /* by output */
} interpretation;

static const node *replace_fact(void *user, const node *n, const node *const src[]) {
  (void)src;
  const interpretation *j = user;
  size_t fact = n->op == OP_VAR ? plan_find_fact(j->b->plan, n->text) : SIZE_MAX;
  return fact == SIZE_MAX ? NULL : ix_const(j->ir, j->b->facts[fact]);
}

/** The elements of a value that existed when the plan was made: its own memory where the host sees
    it, else a copy. */
static void *read_memory(const interpretation *j, const plan_source *s, interp_array *x) {
  tn_span span;
  diag *d = &j->b->diag;
  if (buffer_span(s->memory, &span, d) != TN_OK) diag_rethrow(d);
  void *data = span_host_pointer(&span);
  if (data) return data;
  data = arena_alloc(j->a, x->bytes + 1);
  if (span_read(&span, x->dtype, x->dtype, data, x->bytes / dtype_bytes(x->dtype), d) != TN_OK)
    diag_rethrow(d);
  return data;
}

static void *read_input(const interpretation *j, const plan_source *s, const interp_array *x) {
  const plan_port *p = string_map_get(&j->b->plan->ports.input_of, s->input);
  void *data = arena_alloc(j->a, x->bytes + 1);
  if (binding_read_input(j->b, (size_t)(p - j->b->plan->ports.inputs), x->dtype, data) != TN_OK)
    diag_rethrow(&j->b->diag);
  return data;
}

/** Reads the contents of a BUFFER of the copy, whose sizes are numbers. */
static void read_buffer(const interpretation *j, const node *n) {
  const plan_source *s = &j->b->plan->sources[n->ints[0]];
  interp_array *x = &j->arrays[n->ints[0]];
  *x = (interp_array){.dtype = (dtype)n->dtype, .rank = n->rank, .bytes = dtype_bytes(n->dtype)};
  for (size_t i = 0; i < n->rank; i++) x->bytes *= (size_t)(x->dims[i] = node_int(n->dims[i]));
  if (s->input)
    x->data = read_input(j, s, x);
  else if (s->memory)
    x->data = read_memory(j, s, x);
  else
    diag_raise(&j->b->diag, TN_ERR_UNSUPPORTED, "a plan with states cannot be interpreted");
}

static const interp_array *find_array(void *user, int64_t number, int64_t version) {
  const interpretation *j = user;
  (void)version;
  return j->arrays[number].data ? &j->arrays[number] : NULL;
}

/** Takes the sizes of an output that the run has computed; the others are known. */
static void take_sizes(bound_output *o, const plan_port *p, const interp_array *x, diag *d) {
  bool agrees = x->rank == o->rank;
  for (size_t i = 0; agrees && i < o->rank; i++) {
    if (p->size[i].is_computed) o->size[i] = x->dims[i];
    agrees = o->size[i] == x->dims[i];
  }
  if (!agrees) diag_raise(d, TN_ERR_INTERNAL, "output %s has other sizes than its port", p->name);
  o->count = x->bytes / dtype_bytes(x->dtype);
}

static void write_output(const interpretation *j, size_t i) {
  bound_output *o = &j->b->outputs[i];
  const interp_array *x = &j->results[i];
  diag *d = &j->b->diag;
  tn_span span;
  take_sizes(o, &j->b->plan->ports.outputs[i], x, d);
  if (binding_reserve_output(j->b, i, j->b->context->device) != TN_OK) diag_rethrow(d);
  if (!o->count) return;
  if (buffer_span(o->memory, &span, d) != TN_OK) diag_rethrow(d);
  if (span_write(&span, x->dtype, x->dtype, x->data, (size_t)o->count, d) != TN_OK) diag_rethrow(d);
}

/** Calls the host function of a CUSTOM node. */
static tn_status call_host(void *user, const node *n, const interp_array inputs[], size_t n_inputs,
                           interp_array *result, diag *d) {
  const interpretation *j = user;
  const executable_host *host = &j->b->plan->template.host;
  void **data = arena_alloc(j->a, (n_inputs + 1) * sizeof *data);
  uint64_t *bytes = arena_alloc(j->a, (n_inputs + 1) * sizeof *bytes);
  for (size_t i = 0; i <= n_inputs; i++) {
    const interp_array *x = i < n_inputs ? &inputs[i] : result;
    data[i] = x->data;
    bytes[i] = x->bytes;
  }
  const executable_call c = {n->ints[0], n->ints[1], n_inputs, data, bytes, NULL, j};
  return host->call(host->user, &c, &d->failure);
}

static void interpret(void *arg) {
  interpretation *j = arg;
  const tn_plan *p = j->b->plan;
  const plan_template *t = &p->template;
  size_t n = p->ports.n_outputs;
  const node **roots = arena_alloc(j->a, (n + 1) * sizeof *roots);
  ir_copy_sorted(j->ir, j->a, &t->order, t->roots, n, replace_fact, j, roots);
  j->arrays = arena_calloc(j->a, p->n_sources + 1, sizeof *j->arrays);
  j->results = arena_calloc(j->a, n + 1, sizeof *j->results);
  node_list order = topo_sort(j->a, roots, n, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_BUFFER) read_buffer(j, order.at[i]);
  interp_env e = {.buffer = find_array, .custom = t->host.call ? call_host : NULL, .user = j};
  if (interp_tensor(&e, roots, n, j->results, j->a) != TN_OK) diag_rethrow(&j->b->diag);
  for (size_t i = 0; i < n; i++) write_output(j, i);
}

tn_status binding_interpret(tn_binding *b) {
  const mem *m = &b->context->mem;
  arena work;
  arena_init(&work, m, &b->diag);
  interpretation j = {.b = b, .a = &work, .ir = ir_new(m, &b->diag, false)};
  tn_status s = j.ir ? diag_catch(&b->diag, interpret, &j)
                     : diag_set(&b->diag, TN_ERR_MEMORY, "out of memory");
  ir_free(j.ir);
  arena_free(&work);
  return s;
}
