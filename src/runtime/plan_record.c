/* Serialises executables for the disk cache, in the order variables, buffers, outputs, kernels,
   sizes, steps. Reading trusts nothing: every value is checked against the request's graph and the
   lists read before, so that a damaged file can at worst be rejected. */
#include "runtime/plan_record.h"

#include "ir/core/node_device.h"
#include "ir/core/tensor_loop.h"
#include "ir/core/var_names.h"
#include "ir/transform/liftable_scalars.h"

#include <string.h>

/* Lists all fields by position: a new field is a warning (-Wmissing-field-initializers), and must
   be written and read here too, unless it follows from the others. */
_Static_assert(sizeof((executable_buffer){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) ==
                   sizeof(executable_buffer),
               "");
_Static_assert(sizeof((executable_item){0, 0, 0, 0, 0, 0, 0, 0}) == sizeof(executable_item), "");
_Static_assert(sizeof((executable_step){0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) == sizeof(executable_step),
               "");

/* Writing. */

static uid_index_entry *index_by_uid(arena *a, const node_list *nodes) {
  uid_index_entry *entries = arena_alloc(a, (nodes->n + 1) * sizeof *entries);
  for (size_t i = 0; i < nodes->n; i++)
    entries[i] = (uid_index_entry){nodes->at[i]->ints[0], nodes->at[i]->ints[1], i};
  uid_index_sort(entries, nodes->n);
  return entries;
}

static void add_list(str *to, const size_t list[], size_t n) {
  serialise_number(to, n);
  for (size_t i = 0; i < n; i++) serialise_number(to, list[i]);
}

static void add_vars(str *to, const executable *p) {
  serialise_number(to, p->n_vars);
  for (size_t i = 0; i < p->n_vars; i++) {
    serialise_text(to, p->vars[i].name);
    serialise_number(to, (uint64_t)p->vars[i].min);
    serialise_number(to, (uint64_t)p->vars[i].max);
  }
}

static void add_buffers(str *to, const executable *p, const plan_cache_graph *g) {
  const uid_index_entry *entries = index_by_uid(to->arena, &g->buffers);
  serialise_number(to, p->n_buffers);
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    bool is_input = b->role == BUFFER_ROLE_INPUT, is_view = b->role == BUFFER_ROLE_VIEW;
    serialise_number(to, b->dtype);
    serialise_number(to, b->role);
    serialise_number(to, b->is_written);
    serialise_number(to, b->device);
    if (is_input) serialise_number(to, uid_index_find(entries, g->buffers.n, b->uid, b->version));
    if (!is_input) serialise_number(to, is_view ? b->within : b->first);
    if (!is_input) serialise_number(to, is_view ? b->start : b->last);
  }
}

static void add_kernel_counts(str *to, const executable_kernel_counts *w) {
  serialise_number(to, w->n_items);
  for (size_t i = 0; i < w->n_items; i++) {
    serialise_number(to, w->items[i].kind);
    serialise_number(to, w->items[i].n_sizes);
    str_add_bytes(to, (const char *)&w->items[i].each, sizeof w->items[i].each);
  }
}

static void add_program(str *to, const tn_program *p) {
  program_record r = program_record_of(p);
  serialise_text(to, r.name);
  serialise_block(to, r.key.data, r.key.bytes);
  serialise_number(to, r.n_globals);
  for (size_t i = 0; i < r.n_globals; i++) serialise_number(to, (uint64_t)r.globals[i]);
  serialise_number(to, r.n_values);
  for (size_t i = 0; i < r.n_values; i++) serialise_text(to, r.value_names[i]);
}

static bool is_lifted_scalar(const char *name) {
  return lifted_var_number(name, LIFTED_VAR_OF_KERNEL) != SIZE_MAX;
}

/** Writes the variables of lifted scalars; other launch values are found by their names. */
static void add_scalars(str *to, const tn_program *p, const size_t values[]) {
  for (size_t i = 0; i < p->facts.n_values; i++)
    if (is_lifted_scalar(p->facts.value_names[i])) serialise_number(to, values[i]);
}

static void add_loop(str *to, const executable *p, const executable_step *s) {
  serialise_number(to, s->trips);
  serialise_number(to, s->trip == SIZE_MAX ? p->n_vars : s->trip);
  serialise_number(to, s->n_states);
  serialise_number(to, s->until == SIZE_MAX ? s->n_states : s->until);
  for (size_t i = 0; i < s->n_states; i++) {
    const schedule_state *x = &s->states[i];
    const size_t all[] = {x->init, x->result, x->now, x->next, x->spare};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) serialise_number(to, all[k]);
  }
}

static void add_steps(str *to, const executable *p, const plan_cache_graph *g) {
  const uid_index_entry *entries = index_by_uid(to->arena, &g->customs);
  serialise_number(to, p->n_steps);
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    serialise_number(to, s->kind);
    serialise_text(to, s->name);
    serialise_number(to, s->device);
    serialise_number(to, s->kind == STEP_KERNEL ? s->program
                         : s->kind == STEP_LOOP ? s->n_steps
                         : s->kind == STEP_COPY
                             ? 0
                             : uid_index_find(entries, g->customs.n, s->uid, s->output));
    add_list(to, s->buffers, s->n_buffers);
    serialise_number(to, s->guard == SIZE_MAX ? p->sizes.n_results : s->guard);
    if (s->kind == STEP_KERNEL) add_scalars(to, p->programs[s->program], s->values);
    if (s->kind == STEP_LOOP) add_loop(to, p, s);
  }
}

static void add_items(str *to, const executable *p) {
  serialise_number(to, p->n_items);
  for (size_t i = 0; i < p->n_items; i++) {
    const executable_item *item = &p->items[i];
    serialise_text(to, item->name);
    serialise_number(to, item->buffer);
    serialise_number(to, item->var);
    serialise_number(to, (uint64_t)item->min);
    serialise_number(to, item->most);
    serialise_number(to, item->guard == SIZE_MAX ? p->sizes.n_results : item->guard);
  }
}

void plan_record_write(str *to, const executable *p, const executable_request *r,
                       const plan_cache_graph *g) {
  add_vars(to, p);
  add_buffers(to, p, g);
  add_list(to, p->outputs, r->n_roots);
  serialise_number(to, p->n_programs);
  for (size_t i = 0; i < p->n_programs; i++) {
    add_program(to, p->programs[i]);
    serialise_number(to, p->program_devices[i]);
    add_kernel_counts(to, &p->kernel_counts[i]);
  }
  launch_exprs_write(&p->sizes, to);
  launch_exprs_write(&p->count_sizes, to);
  add_items(to, p);
  add_steps(to, p, g);
}

/* Reading. */

typedef struct plan_reader {
  executable *p;
  const executable_request *r;
  const plan_cache_graph *g;
  arena *work;
  deserialiser w;
  program_record *records;
  size_t n_records;
  size_t n_count_sizes;
  size_t *listed;     /* of each buffer, 1 + the last loop that lists it */
  size_t *state_loop; /* of each, 1 + the last loop that stores a state there */
  size_t *alias_loop; /* of each BUFFER_ROLE_STATE, 1 + the loop that binds it */
} plan_reader;

static void require(plan_reader *k, bool holds) {
  if (!holds) k->w.failed = true;
}

static const size_t *read_list(plan_reader *k, size_t *n, size_t limit) {
  *n = deserialise_count(&k->w, sizeof(uint64_t));
  size_t *list = arena_alloc(&k->p->arena, (*n + 1) * sizeof *list);
  for (size_t i = 0; i < *n; i++) list[i] = (size_t)deserialise_below(&k->w, limit);
  return list;
}

static void read_vars(plan_reader *k) {
  executable *p = k->p;
  p->n_vars = deserialise_count(&k->w, 3 * sizeof(uint64_t));
  p->vars = arena_calloc(&p->arena, p->n_vars + 1, sizeof *p->vars);
  for (size_t i = 0; i < p->n_vars; i++) {
    tn_program_var *v = &p->vars[i];
    v->name = deserialise_text(&k->w, &p->arena);
    v->min = (int64_t)deserialise_number(&k->w);
    v->max = (int64_t)deserialise_number(&k->w);
    require(k, v->min <= v->max && (!i || strcmp(v[-1].name, v->name) < 0));
  }
}

static void read_input(plan_reader *k, executable_buffer *b) {
  size_t at = (size_t)deserialise_below(&k->w, k->g->buffers.n);
  if (k->w.failed) return;
  const node *n = k->g->buffers.at[at];
  b->uid = n->ints[0];
  b->version = n->ints[1];
  require(k, b->dtype == (dtype)n->dtype && b->device == node_device_number(n, 0));
  require(k, !b->is_written || (k->r->may_overwrite && k->r->may_overwrite(k->r->user, n)));
}

/** Reads a view, of a buffer before it. */
static void read_view(plan_reader *k, executable_buffer *b, size_t number) {
  b->within = (size_t)deserialise_below(&k->w, number);
  b->start = deserialise_number(&k->w);
  if (k->w.failed) return;
  const executable_buffer *of = &k->p->buffers[b->within];
  require(k, of->dtype == b->dtype && of->device == b->device &&
                 (of->role == BUFFER_ROLE_SCRATCH || of->role == BUFFER_ROLE_OUTPUT));
}

static void read_buffers(plan_reader *k) {
  executable *p = k->p;
  p->n_buffers = deserialise_count(&k->w, 4 * sizeof(uint64_t));
  p->buffers = arena_calloc(&p->arena, p->n_buffers + 1, sizeof *p->buffers);
  for (size_t i = 0; i < p->n_buffers && !k->w.failed; i++) {
    executable_buffer *b = &p->buffers[i];
    b->dtype = (dtype)deserialise_below(&k->w, DT_LIMIT);
    b->role = (buffer_role)deserialise_below(&k->w, BUFFER_ROLE_VIEW + 1);
    b->is_written = deserialise_below(&k->w, 2);
    b->device = (size_t)deserialise_below(&k->w, p->n_targets);
    require(k, dtype_is_data(b->dtype));
    b->within = i;
    if (b->role == BUFFER_ROLE_INPUT) {
      read_input(k, b);
    } else if (b->role == BUFFER_ROLE_VIEW) {
      read_view(k, b, i);
    } else {
      b->first = (size_t)deserialise_number(&k->w);
      b->last = (size_t)deserialise_number(&k->w);
    }
  }
  if (k->w.failed) return;
  executable_index_inputs(p);
  for (size_t i = 1; i < p->n_inputs; i++)
    require(k, p->inputs[i].uid != p->inputs[i - 1].uid ||
                   p->inputs[i].version != p->inputs[i - 1].version);
}

static void read_outputs(plan_reader *k) {
  executable *p = k->p;
  size_t n;
  p->outputs = (size_t *)read_list(k, &n, p->n_buffers);
  require(k, n == k->r->n_roots);
  for (size_t i = 0; i < n && !k->w.failed; i++) {
    const executable_buffer *b = &p->buffers[p->outputs[i]];
    require(k, (b->role == BUFFER_ROLE_INPUT || b->role == BUFFER_ROLE_OUTPUT) &&
                   b->dtype == (dtype)k->r->roots[i]->dtype);
  }
}

static void read_program_record(plan_reader *k, program_record *r) {
  r->name = deserialise_text(&k->w, k->work);
  r->key.data = deserialise_block(&k->w, &r->key.bytes);
  r->n_globals = deserialise_count(&k->w, sizeof(uint64_t));
  int64_t *globals = arena_alloc(k->work, (r->n_globals + 1) * sizeof *globals);
  for (size_t i = 0; i < r->n_globals; i++) globals[i] = (int64_t)deserialise_number(&k->w);
  r->globals = globals;
  r->n_values = deserialise_count(&k->w, sizeof(uint64_t));
  const char **names = arena_alloc(k->work, (r->n_values + 1) * sizeof *names);
  for (size_t i = 0; i < r->n_values; i++) names[i] = deserialise_text(&k->w, k->work);
  r->value_names = names;
}

static void read_kernel_counts(plan_reader *k, executable_kernel_counts *w) {
  w->n_items = deserialise_count(&k->w, 3 * sizeof(uint64_t));
  w->first = k->n_count_sizes;
  kernel_count_term *items = arena_alloc(&k->p->arena, (w->n_items + 1) * sizeof *items);
  for (size_t i = 0; i < w->n_items; i++) {
    items[i].kind = (kernel_count_kind)deserialise_below(&k->w, COUNT_TOUCHED_BYTES + 1);
    items[i].n_sizes = (size_t)deserialise_below(&k->w, UINT32_MAX);
    uint64_t each = deserialise_number(&k->w);
    memcpy(&items[i].each, &each, sizeof each);
    k->n_count_sizes += items[i].n_sizes;
  }
  w->items = items;
}

static void read_programs(plan_reader *k) {
  executable *p = k->p;
  k->n_records = deserialise_count(&k->w, 5 * sizeof(uint64_t));
  k->records = arena_calloc(k->work, k->n_records + 1, sizeof *k->records);
  p->kernel_counts = arena_calloc(&p->arena, k->n_records + 1, sizeof *p->kernel_counts);
  p->program_devices = arena_calloc(&p->arena, k->n_records + 1, sizeof *p->program_devices);
  for (size_t i = 0; i < k->n_records && !k->w.failed; i++) {
    read_program_record(k, &k->records[i]);
    p->program_devices[i] = (size_t)deserialise_below(&k->w, p->n_targets);
    read_kernel_counts(k, &p->kernel_counts[i]);
  }
}

static void read_sizes(plan_reader *k) {
  executable *p = k->p;
  const char **names = arena_alloc(k->work, (p->n_vars + 1) * sizeof *names);
  for (size_t i = 0; i < p->n_vars; i++) names[i] = p->vars[i].name;
  p->sizes = launch_exprs_read(&k->w, &p->arena, names, p->n_vars);
  p->count_sizes = launch_exprs_read(&k->w, &p->arena, names, p->n_vars);
  require(k, p->sizes.n_results >= p->n_buffers);
  require(k, p->count_sizes.n_results == k->n_count_sizes);
}

/** Reads a number of `sizes`, or SIZE_MAX; the size of a buffer is known with its place alone. */
static size_t read_guard(plan_reader *k) {
  size_t n = k->p->sizes.n_results, guard = (size_t)deserialise_below(&k->w, n + 1);
  require(k, guard >= k->p->n_buffers);
  return guard == n ? SIZE_MAX : guard;
}

/** Reads ITEMs; the sizes of the roots come last. */
static void read_items(plan_reader *k) {
  executable *p = k->p;
  size_t n_sizes = 0, n = p->sizes.n_results;
  p->n_items = deserialise_count(&k->w, 6 * sizeof(uint64_t));
  p->items = arena_calloc(&p->arena, p->n_items + 1, sizeof *p->items);
  for (size_t i = 0; i < k->r->n_roots; i++) n_sizes += k->r->roots[i]->rank;
  require(k, !p->n_items || n >= p->n_buffers + p->n_items + n_sizes);
  for (size_t i = 0; i < p->n_items && !k->w.failed; i++) {
    executable_item *item = &p->items[i];
    item->name = deserialise_text(&k->w, &p->arena);
    item->buffer = (size_t)deserialise_below(&k->w, p->n_buffers);
    item->var = (size_t)deserialise_below(&k->w, p->n_vars);
    item->min = (int64_t)deserialise_number(&k->w);
    item->most = (size_t)deserialise_below(&k->w, n);
    item->guard = read_guard(k);
    require(k, item->most >= p->n_buffers);
    if (k->w.failed) return;
    const executable_buffer *b = &p->buffers[item->buffer];
    require(k, b->role == BUFFER_ROLE_OUTPUT && b->dtype == DT_I64);
    require(k, var_is_late(p->vars[item->var].name) && item->min >= p->vars[item->var].min);
  }
  if (!k->w.failed && p->n_items)
    executable_set_root_sizes(p, k->r->roots, k->r->n_roots, n - n_sizes);
}

/* Steps. */

/** Reads a step's buffers and its guard. */
static void read_buffers_of_step(plan_reader *k, executable_step *s) {
  s->buffers = read_list(k, &s->n_buffers, k->p->n_buffers);
  s->guard = read_guard(k);
}

static void read_kernel(plan_reader *k, executable_step *s) {
  executable *p = k->p;
  s->program = (size_t)deserialise_below(&k->w, k->n_records);
  read_buffers_of_step(k, s);
  if (k->w.failed) return;
  const program_record *r = &k->records[s->program];
  require(k, s->device == p->program_devices[s->program]);
  size_t *values = arena_alloc(&p->arena, (r->n_values + 1) * sizeof *values);
  require(k, s->n_buffers == r->n_globals);
  for (size_t i = 0; i < r->n_values; i++) {
    const char *name = r->value_names[i];
    if (is_lifted_scalar(name))
      values[i] = (size_t)deserialise_below(&k->w, p->n_vars);
    else
      require(k, executable_resolve_value(p, name, &values[i]));
  }
  s->values = values;
}

/** Reads a copy between two devices, of a whole array. */
static void read_copy(plan_reader *k, executable_step *s) {
  const executable *p = k->p;
  deserialise_below(&k->w, 1);
  read_buffers_of_step(k, s);
  require(k, s->n_buffers == 2);
  if (k->w.failed) return;
  const executable_buffer *to = &p->buffers[s->buffers[0]], *from = &p->buffers[s->buffers[1]];
  require(k, to->device == s->device && from->device != s->device && to->dtype == from->dtype &&
                 p->sizes.results[s->buffers[0]] == p->sizes.results[s->buffers[1]] &&
                 (to->role == BUFFER_ROLE_OUTPUT || to->role == BUFFER_ROLE_SCRATCH ||
                  (to->role == BUFFER_ROLE_INPUT && to->is_written)));
}

/** True if a step is on the device of all its buffers; copies are not. */
static bool is_on_device(const executable *p, const executable_step *s) {
  for (size_t i = 0; i < s->n_buffers; i++)
    if (p->buffers[s->buffers[i]].device != s->device) return false;
  return true;
}

static void read_custom(plan_reader *k, executable_step *s) {
  executable *p = k->p;
  size_t at = (size_t)deserialise_below(&k->w, k->g->customs.n);
  read_buffers_of_step(k, s);
  if (k->w.failed) return;
  const node *n = k->g->customs.at[at];
  size_t n_inputs = (size_t)n->ints[2];
  s->uid = n->ints[0];
  s->output = n->ints[1];
  require(k, s->n_buffers == n_inputs + 1);
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) {
    const node *x = i < n_inputs ? n->src[i] : n;
    const executable_buffer *b = &p->buffers[s->buffers[i]];
    require(k, b->dtype == (dtype)x->dtype && b->role != BUFFER_ROLE_VIEW);
    require(k, i < n_inputs || b->role != BUFFER_ROLE_INPUT || b->is_written);
  }
}

/** Reads a buffer that the loop lists among its own. */
static size_t read_listed_buffer(plan_reader *k, size_t step) {
  size_t b = (size_t)deserialise_below(&k->w, k->p->n_buffers);
  require(k, !k->w.failed && k->listed[b] == step + 1);
  return b;
}

static bool have_same_type(const executable *p, size_t a, size_t b) {
  return p->buffers[a].dtype == p->buffers[b].dtype && p->sizes.results[a] == p->sizes.results[b];
}

/** Claims an output or scratch buffer as the memory of one state of the loop. */
static void claim_memory(plan_reader *k, size_t buffer, size_t step) {
  buffer_role role = k->p->buffers[buffer].role;
  require(k, (role == BUFFER_ROLE_OUTPUT || role == BUFFER_ROLE_SCRATCH) &&
                 k->state_loop[buffer] != step + 1);
  k->state_loop[buffer] = step + 1;
}

/** Claims a BUFFER_ROLE_STATE as an alias that this loop alone binds. */
static void claim_alias(plan_reader *k, size_t buffer, size_t step) {
  require(k, k->p->buffers[buffer].role == BUFFER_ROLE_STATE && !k->alias_loop[buffer]);
  k->alias_loop[buffer] = step + 1;
}

static void read_state(plan_reader *k, schedule_state *x, size_t step) {
  x->init = read_listed_buffer(k, step);
  x->result = read_listed_buffer(k, step);
  x->now = read_listed_buffer(k, step);
  x->next = read_listed_buffer(k, step);
  x->spare = read_listed_buffer(k, step);
  if (k->w.failed) return;
  const size_t all[] = {x->result, x->now, x->next, x->spare};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    require(k, have_same_type(k->p, x->init, all[i]));
  claim_memory(k, x->result, step);
  if (x->now == x->result && x->next == x->result && x->spare == x->result) return;
  claim_memory(k, x->spare, step);
  claim_alias(k, x->now, step);
  claim_alias(k, x->next, step);
}

static void read_states(plan_reader *k, executable_step *s, size_t step) {
  s->n_states = deserialise_count(&k->w, 5 * sizeof(uint64_t));
  s->until = (size_t)deserialise_below(&k->w, s->n_states + 1);
  if (s->until == s->n_states) s->until = SIZE_MAX;
  schedule_state *states = arena_calloc(&k->p->arena, s->n_states + 1, sizeof *states);
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) k->listed[s->buffers[i]] = step + 1;
  for (size_t i = 0; i < s->n_states && !k->w.failed; i++) read_state(k, &states[i], step);
  for (size_t i = 0; i < s->n_states && !k->w.failed; i++)
    require(k,
            k->state_loop[states[i].init] != step + 1 && k->alias_loop[states[i].init] != step + 1);
  if (!k->w.failed && s->until != SIZE_MAX)
    require(k, k->p->buffers[states[s->until].init].dtype == DT_BOOL);
  s->states = states;
}

/** True for a variable that counts trips, from 0. */
static bool counts_trips(const tn_program_var *v) { return var_is_trip(v->name) && !v->min; }

static void read_loop(plan_reader *k, executable_step *s, size_t step) {
  executable *p = k->p;
  s->n_steps = (size_t)deserialise_below(&k->w, p->n_steps - step);
  read_buffers_of_step(k, s);
  s->trips = (size_t)deserialise_below(&k->w, p->sizes.n_results);
  require(k, s->trips >= p->n_buffers);
  s->trip = (size_t)deserialise_below(&k->w, p->n_vars + 1);
  if (s->trip == p->n_vars) s->trip = SIZE_MAX;
  require(k, s->trip == SIZE_MAX || k->w.failed || counts_trips(&p->vars[s->trip]));
  read_states(k, s, step);
}

static size_t loop_depth(const executable *p, size_t step) {
  size_t depth = 0;
  for (; step != SIZE_MAX && depth <= LOOP_MAX_DEPTH; step = p->steps[step].parent) depth++;
  return depth - 1;
}

/** True if a step is the loop that binds the alias, or is inside it. */
static bool is_bound_at(const plan_reader *k, size_t step, size_t buffer) {
  while (step != SIZE_MAX && k->alias_loop[buffer] != step + 1) step = k->p->steps[step].parent;
  return step != SIZE_MAX;
}

/** True unless a buffer that is live before a loop dies inside it: each trip reads it again. */
static bool outlives(const executable *p, size_t step, const executable_buffer *b) {
  for (; step != SIZE_MAX; step = p->steps[step].parent)
    if (b->first <= step && b->last < step + p->steps[step].n_steps) return false;
  return true;
}

static void check_loop_buffers(plan_reader *k, size_t step) {
  const executable_step *s = &k->p->steps[step];
  for (size_t i = 0; i < s->n_buffers; i++) {
    const executable_buffer *b = &k->p->buffers[k->p->buffers[s->buffers[i]].within];
    require(k, b->role != BUFFER_ROLE_SCRATCH || outlives(k->p, step, b));
    require(k, b->role != BUFFER_ROLE_STATE || is_bound_at(k, step, s->buffers[i]));
  }
}

/** Checks that loops nest, that buffers used in a loop outlive it, that aliases are used only in
   the loop that binds them, and that no loop contains host functions. */
static void check_loops(plan_reader *k) {
  executable *p = k->p;
  if (k->w.failed) return;
  executable_link_loops(p);
  for (size_t i = 0; i < p->n_steps && !k->w.failed; i++) {
    const executable_step *s = &p->steps[i];
    size_t parent = s->parent;
    require(k, parent == SIZE_MAX || i + s->n_steps <= parent + p->steps[parent].n_steps);
    require(k, parent == SIZE_MAX || s->kind != STEP_CUSTOM);
    require(k, loop_depth(p, i) <= LOOP_MAX_DEPTH);
    if (!k->w.failed) check_loop_buffers(k, i);
  }
}

/** Checks that a step uses scratch buffers within their live ranges, of which the first use is the
    beginning. */
static void check_liveness(plan_reader *k, size_t step, bool live[]) {
  const executable_step *s = &k->p->steps[step];
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) {
    size_t of = k->p->buffers[s->buffers[i]].within;
    const executable_buffer *b = &k->p->buffers[of];
    bool *is_alive = &live[of];
    *is_alive = *is_alive || b->first == step;
    require(k, b->role != BUFFER_ROLE_SCRATCH ||
                   (*is_alive && step <= b->last && b->last < k->p->n_steps));
  }
}

static void read_steps(plan_reader *k) {
  executable *p = k->p;
  p->n_steps = deserialise_count(&k->w, 4 * sizeof(uint64_t));
  p->steps = arena_calloc(&p->arena, p->n_steps + 1, sizeof *p->steps);
  bool *live = arena_calloc(k->work, p->n_buffers + 1, sizeof *live);
  k->listed = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->listed);
  k->state_loop = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->state_loop);
  k->alias_loop = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->alias_loop);
  for (size_t i = 0; i < p->n_steps && !k->w.failed; i++) {
    executable_step *s = &p->steps[i];
    s->kind = (step_kind)deserialise_below(&k->w, STEP_COPY + 1);
    s->name = deserialise_text(&k->w, &p->arena);
    s->device = (size_t)deserialise_below(&k->w, p->n_targets);
    if (s->kind == STEP_KERNEL)
      read_kernel(k, s);
    else if (s->kind == STEP_COPY)
      read_copy(k, s);
    else if (s->kind == STEP_LOOP)
      read_loop(k, s, i);
    else
      read_custom(k, s);
    require(k, k->w.failed || s->kind == STEP_COPY || is_on_device(p, s));
    check_liveness(k, i, live);
  }
  check_loops(k);
}

bool plan_record_read(executable *p, const executable_request *r, const plan_cache_graph *g,
                      const void *data, size_t bytes, arena *work, program_record **records,
                      size_t *n_records) {
  plan_reader k = {.p = p, .r = r, .g = g, .work = work};
  k.w = (deserialiser){.at = data, .end = (const unsigned char *)data + bytes};
  read_vars(&k);
  read_buffers(&k);
  read_outputs(&k);
  read_programs(&k);
  read_sizes(&k);
  read_items(&k);
  read_steps(&k);
  *records = k.records;
  *n_records = k.n_records;
  return !k.w.failed && k.w.at == k.w.end;
}
