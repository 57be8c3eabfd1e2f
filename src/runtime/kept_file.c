/* What a file of the cache holds of an executable. */
#include "ir/loop.h"
#include "ir/scalars.h"
#include "ir/var.h"
#include "runtime/inside.h"
#include "runtime/kept.h"

#include <string.h>

/* All fields, by position: one more is a warning (-Wmissing-field-initializers), and is to be
   written and read here too, unless it follows from the others. */
_Static_assert(sizeof((executable_buffer){0, 0, 0, 0, 0, 0, 0}) == sizeof(executable_buffer), "");
_Static_assert(sizeof((executable_step){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) ==
                   sizeof(executable_step),
               "");

/* Writing: variables, buffers, outputs, kernels, sizes, steps. */

static executable_place *places_of(arena *a, const node_list *nodes) {
  executable_place *places = arena_alloc(a, (nodes->n + 1) * sizeof *places);
  for (size_t i = 0; i < nodes->n; i++)
    places[i] = (executable_place){nodes->at[i]->ints[0], nodes->at[i]->ints[1], i};
  executable_sort_places(places, nodes->n);
  return places;
}

static void add_list(str *to, const size_t list[], size_t n) {
  wire_add(to, n);
  for (size_t i = 0; i < n; i++) wire_add(to, list[i]);
}

static void add_vars(str *to, const executable *p) {
  wire_add(to, p->n_vars);
  for (size_t i = 0; i < p->n_vars; i++) {
    wire_add_text(to, p->vars[i].name);
    wire_add(to, (uint64_t)p->vars[i].min);
    wire_add(to, (uint64_t)p->vars[i].max);
  }
}

static void add_buffers(str *to, const executable *p, const kept_graph *g) {
  const executable_place *places = places_of(to->arena, &g->buffers);
  wire_add(to, p->n_buffers);
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    bool is_input = b->role == ROLE_INPUT;
    wire_add(to, b->dtype);
    wire_add(to, b->role);
    wire_add(to, b->is_written);
    if (is_input) wire_add(to, executable_find_place(places, g->buffers.n, b->uid, b->version));
    if (!is_input) wire_add(to, b->first);
    if (!is_input) wire_add(to, b->last);
  }
}

static void add_work(str *to, const executable_work *w) {
  wire_add(to, w->n_items);
  for (size_t i = 0; i < w->n_items; i++) {
    wire_add(to, w->items[i].kind);
    wire_add(to, w->items[i].n_sizes);
    str_add_bytes(to, (const char *)&w->items[i].each, sizeof w->items[i].each);
  }
}

static void add_program(str *to, const tn_program *p) {
  program_record r = program_tell(p);
  wire_add_text(to, r.name);
  wire_add_block(to, r.key, r.key_bytes);
  wire_add(to, r.n_globals);
  for (size_t i = 0; i < r.n_globals; i++) wire_add(to, (uint64_t)r.globals[i]);
  wire_add(to, r.n_values);
  for (size_t i = 0; i < r.n_values; i++) wire_add_text(to, r.value_names[i]);
}

static bool is_scalar(const char *name) {
  return scalar_number(name, SCALAR_OF_KERNEL) != SIZE_MAX;
}

/** The variables that kernels have by numbers; what others are is in their names. */
static void add_scalars(str *to, const tn_program *p, const size_t values[]) {
  for (size_t i = 0; i < p->facts.n_values; i++)
    if (is_scalar(p->facts.value_names[i])) wire_add(to, values[i]);
}

static void add_loop(str *to, const executable *p, const executable_step *s) {
  wire_add(to, s->trips);
  wire_add(to, s->trip == SIZE_MAX ? p->n_vars : s->trip);
  wire_add(to, s->n_states);
  for (size_t i = 0; i < s->n_states; i++) {
    const schedule_state *x = &s->states[i];
    const size_t all[] = {x->init, x->result, x->now, x->next, x->spare};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) wire_add(to, all[k]);
  }
}

static void add_steps(str *to, const executable *p, const kept_graph *g) {
  const executable_place *places = places_of(to->arena, &g->customs);
  wire_add(to, p->n_steps);
  for (size_t i = 0; i < p->n_steps; i++) {
    const executable_step *s = &p->steps[i];
    wire_add(to, s->kind);
    wire_add_text(to, s->name);
    wire_add(to, s->kind == STEP_KERNEL ? s->program
                 : s->kind == STEP_LOOP
                     ? s->n_steps
                     : executable_find_place(places, g->customs.n, s->uid, s->output));
    add_list(to, s->buffers, s->n_buffers);
    if (s->kind == STEP_KERNEL) add_scalars(to, p->programs[s->program], s->values);
    if (s->kind == STEP_LOOP) add_loop(to, p, s);
  }
}

void kept_add(str *to, const executable *p, const executable_request *r, const kept_graph *g) {
  add_vars(to, p);
  add_buffers(to, p, g);
  add_list(to, p->outputs, r->n_roots);
  wire_add(to, p->n_programs);
  for (size_t i = 0; i < p->n_programs; i++) {
    add_program(to, p->programs[i]);
    add_work(to, &p->works[i]);
  }
  launch_write(&p->sizes, to);
  launch_write(&p->work_sizes, to);
  add_steps(to, p, g);
}

/* Reading. */

typedef struct reading {
  executable *p;
  const executable_request *r;
  const kept_graph *g;
  arena *work;
  wire_reader w;
  program_record *records;
  size_t n_records;
  size_t n_work_sizes;
  size_t *listed;  /* of each buffer, 1 + the last loop that lists it */
  size_t *made_in; /* of each, 1 + the last loop that has a state there after a trip */
  size_t *turns;   /* of each STATE, 1 + the loop that says what it stands for */
} reading;

static void require(reading *k, bool holds) {
  if (!holds) k->w.failed = true;
}

static const size_t *read_list(reading *k, size_t *n, size_t limit) {
  *n = wire_count(&k->w, sizeof(uint64_t));
  size_t *list = arena_alloc(&k->p->arena, (*n + 1) * sizeof *list);
  for (size_t i = 0; i < *n; i++) list[i] = (size_t)wire_below(&k->w, limit);
  return list;
}

static void read_vars(reading *k) {
  executable *p = k->p;
  p->n_vars = wire_count(&k->w, 3 * sizeof(uint64_t));
  p->vars = arena_calloc(&p->arena, p->n_vars + 1, sizeof *p->vars);
  for (size_t i = 0; i < p->n_vars; i++) {
    tn_program_var *v = &p->vars[i];
    v->name = wire_text(&k->w, &p->arena);
    v->min = (int64_t)wire_number(&k->w);
    v->max = (int64_t)wire_number(&k->w);
    require(k, v->min <= v->max && (!i || strcmp(v[-1].name, v->name) < 0));
  }
}

static void read_input(reading *k, executable_buffer *b) {
  size_t leaf = (size_t)wire_below(&k->w, k->g->buffers.n);
  if (k->w.failed) return;
  const node *n = k->g->buffers.at[leaf];
  b->uid = n->ints[0];
  b->version = n->ints[1];
  require(k, b->dtype == (dtype)n->dtype);
  require(k, !b->is_written || (k->r->may_overwrite && k->r->may_overwrite(k->r->user, n)));
}

static void read_buffers(reading *k) {
  executable *p = k->p;
  p->n_buffers = wire_count(&k->w, 4 * sizeof(uint64_t));
  p->buffers = arena_calloc(&p->arena, p->n_buffers + 1, sizeof *p->buffers);
  for (size_t i = 0; i < p->n_buffers && !k->w.failed; i++) {
    executable_buffer *b = &p->buffers[i];
    b->dtype = (dtype)wire_below(&k->w, DT_LIMIT);
    b->role = (executable_role)wire_below(&k->w, ROLE_STATE + 1);
    b->is_written = wire_below(&k->w, 2);
    require(k, dtype_is_data(b->dtype));
    if (b->role == ROLE_INPUT) {
      read_input(k, b);
    } else {
      b->first = (size_t)wire_number(&k->w);
      b->last = (size_t)wire_number(&k->w);
    }
  }
  if (k->w.failed) return;
  executable_list_inputs(p);
  for (size_t i = 1; i < p->n_inputs; i++)
    require(k, p->inputs[i].uid != p->inputs[i - 1].uid ||
                   p->inputs[i].version != p->inputs[i - 1].version);
}

static void read_outputs(reading *k) {
  executable *p = k->p;
  size_t n;
  p->outputs = (size_t *)read_list(k, &n, p->n_buffers);
  require(k, n == k->r->n_roots);
  for (size_t i = 0; i < n && !k->w.failed; i++) {
    const executable_buffer *b = &p->buffers[p->outputs[i]];
    require(k, b->role != ROLE_SCRATCH && b->role != ROLE_STATE &&
                   b->dtype == (dtype)k->r->roots[i]->dtype);
  }
}

static void read_record(reading *k, program_record *r) {
  r->name = wire_text(&k->w, k->work);
  r->key = wire_block(&k->w, &r->key_bytes);
  r->n_globals = wire_count(&k->w, sizeof(uint64_t));
  int64_t *globals = arena_alloc(k->work, (r->n_globals + 1) * sizeof *globals);
  for (size_t i = 0; i < r->n_globals; i++) globals[i] = (int64_t)wire_number(&k->w);
  r->globals = globals;
  r->n_values = wire_count(&k->w, sizeof(uint64_t));
  const char **names = arena_alloc(k->work, (r->n_values + 1) * sizeof *names);
  for (size_t i = 0; i < r->n_values; i++) names[i] = wire_text(&k->w, k->work);
  r->value_names = names;
}

static void read_work(reading *k, executable_work *w) {
  w->n_items = wire_count(&k->w, 3 * sizeof(uint64_t));
  w->first = k->n_work_sizes;
  work_item *items = arena_alloc(&k->p->arena, (w->n_items + 1) * sizeof *items);
  for (size_t i = 0; i < w->n_items; i++) {
    items[i].kind = (work_kind)wire_below(&k->w, WORK_PART + 1);
    items[i].n_sizes = (size_t)wire_below(&k->w, UINT32_MAX);
    uint64_t each = wire_number(&k->w);
    memcpy(&items[i].each, &each, sizeof each);
    k->n_work_sizes += items[i].n_sizes;
  }
  w->items = items;
}

static void read_programs(reading *k) {
  executable *p = k->p;
  k->n_records = wire_count(&k->w, 5 * sizeof(uint64_t));
  k->records = arena_calloc(k->work, k->n_records + 1, sizeof *k->records);
  p->works = arena_calloc(&p->arena, k->n_records + 1, sizeof *p->works);
  for (size_t i = 0; i < k->n_records && !k->w.failed; i++) {
    read_record(k, &k->records[i]);
    read_work(k, &p->works[i]);
  }
}

static void read_sizes(reading *k) {
  executable *p = k->p;
  const char **names = arena_alloc(k->work, (p->n_vars + 1) * sizeof *names);
  for (size_t i = 0; i < p->n_vars; i++) names[i] = p->vars[i].name;
  p->sizes = launch_read(&k->w, &p->arena, names, p->n_vars);
  p->work_sizes = launch_read(&k->w, &p->arena, names, p->n_vars);
  require(k, p->sizes.n_results >= p->n_buffers + k->r->n_sizes);
  require(k, p->work_sizes.n_results == k->n_work_sizes);
}

/* Steps. */

static void read_kernel(reading *k, executable_step *s) {
  executable *p = k->p;
  s->program = (size_t)wire_below(&k->w, k->n_records);
  s->buffers = read_list(k, &s->n_buffers, p->n_buffers);
  if (k->w.failed) return;
  const program_record *r = &k->records[s->program];
  size_t *values = arena_alloc(&p->arena, (r->n_values + 1) * sizeof *values);
  require(k, s->n_buffers == r->n_globals);
  for (size_t i = 0; i < r->n_values; i++) {
    const char *name = r->value_names[i];
    if (is_scalar(name))
      values[i] = (size_t)wire_below(&k->w, p->n_vars);
    else
      require(k, executable_find_value(p, name, &values[i]));
  }
  s->values = values;
}

static void read_custom(reading *k, executable_step *s) {
  executable *p = k->p;
  size_t at = (size_t)wire_below(&k->w, k->g->customs.n);
  s->buffers = read_list(k, &s->n_buffers, p->n_buffers);
  if (k->w.failed) return;
  const node *n = k->g->customs.at[at];
  size_t n_inputs = (size_t)n->ints[2];
  s->uid = n->ints[0];
  s->output = n->ints[1];
  require(k, s->n_buffers == n_inputs + 1);
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) {
    const node *x = i < n_inputs ? n->src[i] : n;
    const executable_buffer *b = &p->buffers[s->buffers[i]];
    require(k, b->dtype == (dtype)x->dtype);
    require(k, i < n_inputs || b->role != ROLE_INPUT || b->is_written);
  }
}

/** A buffer that the loop lists, with memory of its own. */
static size_t read_listed(reading *k, size_t step) {
  size_t b = (size_t)wire_below(&k->w, k->p->n_buffers);
  require(k, !k->w.failed && k->listed[b] == step + 1);
  return b;
}

static bool are_alike(const executable *p, size_t a, size_t b) {
  return p->buffers[a].dtype == p->buffers[b].dtype && p->sizes.results[a] == p->sizes.results[b];
}

/** Buffers of the plan's that no other state of the loop is in. */
static void claim_made(reading *k, size_t buffer, size_t step) {
  executable_role role = k->p->buffers[buffer].role;
  require(k, (role == ROLE_OUTPUT || role == ROLE_SCRATCH) && k->made_in[buffer] != step + 1);
  k->made_in[buffer] = step + 1;
}

static void claim_turn(reading *k, size_t buffer, size_t step) {
  require(k, k->p->buffers[buffer].role == ROLE_STATE && !k->turns[buffer]);
  k->turns[buffer] = step + 1;
}

static void read_state(reading *k, schedule_state *x, size_t step) {
  x->init = read_listed(k, step);
  x->result = read_listed(k, step);
  x->now = read_listed(k, step);
  x->next = read_listed(k, step);
  x->spare = read_listed(k, step);
  if (k->w.failed) return;
  const size_t all[] = {x->result, x->now, x->next, x->spare};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    require(k, are_alike(k->p, x->init, all[i]));
  claim_made(k, x->result, step);
  if (x->now == x->result && x->next == x->result && x->spare == x->result) return;
  claim_made(k, x->spare, step);
  claim_turn(k, x->now, step);
  claim_turn(k, x->next, step);
}

static void read_states(reading *k, executable_step *s, size_t step) {
  s->n_states = wire_count(&k->w, 5 * sizeof(uint64_t));
  schedule_state *states = arena_calloc(&k->p->arena, s->n_states + 1, sizeof *states);
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) k->listed[s->buffers[i]] = step + 1;
  for (size_t i = 0; i < s->n_states && !k->w.failed; i++) read_state(k, &states[i], step);
  for (size_t i = 0; i < s->n_states && !k->w.failed; i++)
    require(k, k->made_in[states[i].init] != step + 1 && k->turns[states[i].init] != step + 1);
  s->states = states;
}

/** The number of a trip counts from 0 on. */
static bool is_trip(const tn_program_var *v) { return var_is_trip(v->name) && !v->min; }

static void read_loop(reading *k, executable_step *s, size_t step) {
  executable *p = k->p;
  s->n_steps = (size_t)wire_below(&k->w, p->n_steps - step);
  s->buffers = read_list(k, &s->n_buffers, p->n_buffers);
  size_t first = p->n_buffers + k->r->n_sizes;
  s->trips = (size_t)wire_below(&k->w, p->sizes.n_results);
  require(k, s->trips >= first);
  s->trip = (size_t)wire_below(&k->w, p->n_vars + 1);
  if (s->trip == p->n_vars) s->trip = SIZE_MAX;
  require(k, s->trip == SIZE_MAX || k->w.failed || is_trip(&p->vars[s->trip]));
  read_states(k, s, step);
}

static size_t depth_of(const executable *p, size_t step) {
  size_t depth = 0;
  for (; step != SIZE_MAX && depth <= LOOP_DEPTH; step = p->steps[step].around) depth++;
  return depth - 1;
}

/** Whether a step is in the loop, or the loop itself, that says what a buffer stands for. */
static bool is_turning(const reading *k, size_t step, size_t buffer) {
  while (step != SIZE_MAX && k->turns[buffer] != step + 1) step = k->p->steps[step].around;
  return step != SIZE_MAX;
}

/** What a loop uses that was there before lives on to its end. */
static bool outlives(const executable *p, size_t step, const executable_buffer *b) {
  for (; step != SIZE_MAX; step = p->steps[step].around)
    if (b->first <= step && b->last < step + p->steps[step].n_steps) return false;
  return true;
}

static void check_buffers(reading *k, size_t step) {
  const executable_step *s = &k->p->steps[step];
  for (size_t i = 0; i < s->n_buffers; i++) {
    const executable_buffer *b = &k->p->buffers[s->buffers[i]];
    require(k, b->role != ROLE_SCRATCH || outlives(k->p, step, b));
    require(k, b->role != ROLE_STATE || is_turning(k, step, s->buffers[i]));
  }
}

/** Loops lie inside of one another; what one lists lives as long as it runs, what has no memory of
    its own is used in its loop alone, and no loop has host functions. */
static void check_loops(reading *k) {
  executable *p = k->p;
  if (k->w.failed) return;
  executable_find_loops(p);
  for (size_t i = 0; i < p->n_steps && !k->w.failed; i++) {
    const executable_step *s = &p->steps[i];
    size_t around = s->around;
    require(k, around == SIZE_MAX || i + s->n_steps <= around + p->steps[around].n_steps);
    require(k, around == SIZE_MAX || s->kind != STEP_CUSTOM);
    require(k, depth_of(p, i) <= LOOP_DEPTH);
    if (!k->w.failed) check_buffers(k, i);
  }
}

/** What lives between steps has its place from the first that uses it to the last. */
static void check_lives(reading *k, size_t step, bool lives[]) {
  const executable_step *s = &k->p->steps[step];
  for (size_t i = 0; i < s->n_buffers && !k->w.failed; i++) {
    const executable_buffer *b = &k->p->buffers[s->buffers[i]];
    bool *is_alive = &lives[s->buffers[i]];
    *is_alive = *is_alive || b->first == step;
    require(k,
            b->role != ROLE_SCRATCH || (*is_alive && step <= b->last && b->last < k->p->n_steps));
  }
}

static void read_steps(reading *k) {
  executable *p = k->p;
  p->n_steps = wire_count(&k->w, 4 * sizeof(uint64_t));
  p->steps = arena_calloc(&p->arena, p->n_steps + 1, sizeof *p->steps);
  bool *lives = arena_calloc(k->work, p->n_buffers + 1, sizeof *lives);
  k->listed = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->listed);
  k->made_in = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->made_in);
  k->turns = arena_calloc(k->work, p->n_buffers + 1, sizeof *k->turns);
  for (size_t i = 0; i < p->n_steps && !k->w.failed; i++) {
    executable_step *s = &p->steps[i];
    s->kind = (step_kind)wire_below(&k->w, STEP_LOOP + 1);
    s->name = wire_text(&k->w, &p->arena);
    if (s->kind == STEP_KERNEL)
      read_kernel(k, s);
    else if (s->kind == STEP_LOOP)
      read_loop(k, s, i);
    else
      read_custom(k, s);
    check_lives(k, i, lives);
  }
  check_loops(k);
}

bool kept_read(executable *p, const executable_request *r, const kept_graph *g, const void *data,
               size_t bytes, arena *work, program_record **records, size_t *n_records) {
  reading k = {.p = p, .r = r, .g = g, .work = work};
  k.w = (wire_reader){.at = data, .end = (const unsigned char *)data + bytes};
  read_vars(&k);
  read_buffers(&k);
  read_outputs(&k);
  read_programs(&k);
  read_sizes(&k);
  read_steps(&k);
  *records = k.records;
  *n_records = k.n_records;
  return !k.w.failed && k.w.at == k.w.end;
}
