/* Compiles parts of a random program into plans, binds inputs and outputs, runs the bindings, and
   compares outputs, states, result types and predicted memory with the model (value.h). An output
   may be carried into the next run's input. */
#include "program.h"

#include <stdio.h>
#include <string.h>

/* Inputs and outputs. */

static const char *input_name(size_t i) {
  static const char *const names[MOST_INPUTS] = {"i0", "i1", "i2"};
  return names[i];
}

/** Makes inputs; the last one's size may be a variable. */
static void make_inputs(program *p, plan *made) {
  made->n_inputs = rng_below(&p->r, MOST_INPUTS);
  for (size_t i = 0; i < made->n_inputs; i++) {
    tn_shape shape = made->inputs[i] = random_shape(p);
    value *v = value_new(&p->memory,
                         (value){.kind = VALUE_INPUT, .shape = shape, .input = i, .is_open = true});
    handle h = new_handle(p, tn_input(p->context, input_name(i), shape, TN_I32), v);
    say(p, "t%d = input(%s, %s)", h.number, input_name(i), shape_text(p, shape));
    add_handle(p, h);
  }
  if (rng_chance(&p->r, 50)) make_rows(p, made, made->n_inputs, input_name(made->n_inputs));
  made->n_inputs += made->rows.tensor != NULL;
}

static bool has_assigns(const program *p) {
  for (size_t i = 0; i < p->n_states; i++)
    if (innermost_mark(p, p->states[i])) return true;
  return false;
}

/** Makes an output, often one that can be carried. */
static handle make_output(program *p, const plan *made) {
  if (made->rows.tensor && rng_chance(&p->r, 60)) return made->rows;
  handle h = random_operand(p);
  bool fits = made->n_inputs && !made->varies[0] && rng_chance(&p->r, 40);
  return fits ? fitted(p, h, made->inputs[0]) : h;
}

static void change_some(program *p) {
  if (rng_chance(&p->r, 20))
    write_by_host(p);
  else
    assign_random(p);
}

static size_t make_items(program *p, const plan *made, handle outputs[]) {
  size_t n = 0, items = rng_below(&p->r, 2 * MOST_ITEMS);
  unsigned assigns = rng_chance(&p->r, 25) ? 0 : 55;
  for (size_t i = 0; i < items && n < MOST_ITEMS; i++) {
    if (rng_chance(&p->r, assigns))
      change_some(p);
    else if (rng_chance(&p->r, 40))
      add_expression(p);
    else
      outputs[n++] = make_output(p, made);
  }
  if (!n && !has_assigns(p)) outputs[n++] = make_output(p, made);
  return n;
}

/* Compiling. */

/** Returns the version of a state after pending assignments of outer scopes, which happen now. */
static value *version_outside(const program *p, state *s) {
  mark *m = innermost_mark(p, s);
  return m ? m->before : s->now;
}

static void settle_outside(program *p) {
  for (size_t i = 0; i < p->n_states; i++)
    settle(p, p->states[i], version_outside(p, p->states[i]));
  forget_unseen(p);
}

static void mark_taken(const plan *made, state *s, const value *before) {
  for (value *v = s->now; v != before; v = v->src[0]) {
    v->plan = (unsigned)made->number;
    note_taken(v, made->number);
  }
}

/** Moves pending assignments from the context's model to the plan's. */
static void take_assigns(program *p, plan *made) {
  made->assigned = model_alloc(&p->memory, p->n_states, sizeof(state *));
  made->contents = model_alloc(&p->memory, p->n_states, sizeof(value *));
  for (size_t i = 0; i < p->n_states; i++) {
    state *s = p->states[i];
    mark *m = innermost_mark(p, s);
    if (m) {
      mark_taken(made, s, m->before);
      made->assigned[made->n_assigned] = s;
      made->contents[made->n_assigned++] = s->now;
    }
  }
}

static void forget_assigns(program *p) {
  for (size_t i = 0; i < p->n_states; i++) {
    p->states[i]->now = p->states[i]->settled;
    p->states[i]->n_marks = 0;
  }
  forget_unseen(p);
}

static void make_images(program *p, plan *made) {
  unsigned number = (unsigned)made->number;
  for (size_t i = 0; i < made->n_assigned; i++)
    made->contents[i] = value_image(&p->memory, made->contents[i], number, &made->images);
  for (size_t i = 0; i < made->n_out; i++)
    made->out[i] = value_image(&p->memory, made->out[i], number, &made->images);
}

/** True if a plan reads a state; any state if s is NULL. */
static bool holds(const plan *made, const state *s) {
  for (const value *v = made->images; v; v = v->next)
    if (v->kind == VALUE_HELD && (!s || v->of == s)) return true;
  return false;
}

/** True if a plan computes an assignment of its own, or one taken by another plan. */
static bool has_taken(const plan *made, bool own) {
  for (const value *v = made->images; v; v = v->next)
    if (v->kind == VALUE_CHANGED && v->plan && (v->plan == (unsigned)made->number) == own)
      return true;
  return false;
}

static bool has_hosts(const plan *made) {
  for (const value *v = made->images; v; v = v->next)
    if (v->kind == VALUE_HOST) return true;
  return false;
}

static void count_plan(program *p, const plan *made) {
  cover(p, COVERED_PLANS);
  if (made->n_inputs) cover(p, COVERED_PLANS_OF_INPUTS);
  if (made->rows.tensor) cover(p, COVERED_PLANS_OF_ROWS);
  if (has_hosts(made)) cover(p, COVERED_PLANS_OF_HOSTS);
  if (made->n_assigned) cover(p, COVERED_PLANS_OF_ASSIGNS);
  if (has_taken(made, true) && made->n_out) cover(p, COVERED_PLANS_OF_OWN);
  if (has_taken(made, false)) cover(p, COVERED_PLANS_OF_OTHERS);
  if (holds(made, NULL) && !made->n_assigned && !made->n_inputs) cover(p, COVERED_PLANS_OF_READ);
  if (states_in_place(made->made)) cover(p, COVERED_PLANS_IN_PLACE);
}

/* Bindings. */

static tn_shape input_shape(const plan *made, const bound *b, size_t i) {
  return made->varies[i] ? with_rows(made->inputs[i], (tn_dim)b->rows) : made->inputs[i];
}

static size_t input_bytes(const plan *made, const bound *b, size_t i) {
  return shape_count(input_shape(made, b, i)) * sizeof(int32_t);
}

static void take_memory(program *p, const plan *made, bound *b, size_t i) {
  size_t bytes = input_bytes(made, b, i);
  b->inputs[i] = model_alloc(&p->memory, bytes, 1);
  if (made->is_used[i])
    tn_binding_input(b->binding, input_name(i), input_shape(made, b, i), TN_I32, b->inputs[i],
                     bytes);
}

/** Sets an input to new numbers, mostly in the same memory; a carried input goes on or restarts. */
static void give_input(program *p, plan *made, bound *b, size_t i) {
  if (b->is_carried[i] && b->runs && rng_chance(&p->r, 70)) return;
  bool resized = made->varies[i] && (!b->runs || rng_chance(&p->r, 60));
  if (resized) b->rows = (size_t)rng_between(&p->r, made->least, MOST_ROWS);
  if (!b->inputs[i] || b->is_carried[i] || resized || rng_chance(&p->r, 20))
    take_memory(p, made, b, i);
  for (size_t k = 0; k < input_bytes(made, b, i) / sizeof(int32_t); k++)
    b->inputs[i][k] = (int32_t)rng_between(&p->r, -9, 9);
}

void give_inputs(program *p, plan *made, bound *b) {
  for (size_t i = 0; i < made->n_inputs; i++) give_input(p, made, b, i);
  if (b->runs && b->rows != b->rows_before) cover(p, COVERED_RESIZED);
}

/** Finds the inputs that the plan uses; unused ones are not its ports. */
static void find_used(program *p, plan *made) {
  bound any = {.rows = 1};
  check_status(p, tn_plan_bind(made->made, &any.binding), "bind");
  for (size_t i = 0; i < made->n_inputs; i++) {
    size_t bytes = input_bytes(made, &any, i);
    void *data = model_alloc(&p->memory, bytes, 1);
    made->is_used[i] = tn_binding_input(any.binding, input_name(i), input_shape(made, &any, i),
                                        TN_I32, data, bytes) == TN_OK;
  }
  tn_binding_free(any.binding);
}

static const char *output_name(program *p, size_t i) {
  char *name = model_alloc(&p->memory, 24, 1);
  snprintf(name, 24, "%zu", i);
  return name;
}

/** Carries an output of fitting shape to an input. */
static void carry(program *p, const plan *made, bound *b, size_t input) {
  size_t k = rng_below(&p->r, made->n_out);
  bool fits = made->n_out && is_same_shape(made->out[k]->shape, made->inputs[input]) &&
              made->out[k]->varies == made->varies[input];
  if (!fits || !made->is_used[input]) return;
  say(p, "carry(binding %d, output %zu, i%zu)", (int)(b - made->bound), k, input);
  cover(p, COVERED_CARRIED);
  if (tn_binding_carry(b->binding, output_name(p, k), input_name(input)) != TN_OK)
    fail(p, "carry: %s", tn_binding_message(b->binding));
  b->is_carried[input] = true;
  b->carried[input] = k;
}

static void bind_output(program *p, const plan *made, bound *b) {
  size_t bytes = made->n_out ? value_count(made->out[0], MOST_ROWS) * sizeof(int32_t) : 0;
  if (!made->n_out || rng_chance(&p->r, 70)) return;
  b->output = model_alloc(&p->memory, bytes, 1);
  tn_binding_output(b->binding, "0", TN_I32, b->output, bytes);
}

static void bind_plan(program *p, plan *made) {
  find_used(p, made);
  made->n_bound = 1 + rng_below(&p->r, MOST_BINDINGS);
  for (size_t i = 0; i < made->n_bound; i++) {
    bound *b = &made->bound[i];
    check_status(p, tn_plan_bind(made->made, &b->binding), "bind");
    bind_output(p, made, b);
    for (size_t k = 0; k < made->n_inputs; k++)
      if (rng_chance(&p->r, 50)) carry(p, made, b, k);
  }
}

static void make_plan(program *p, plan *made) {
  handle outputs[MOST_ITEMS];
  tn_tensor *tensors[MOST_ITEMS];
  made->n_out = make_items(p, made, outputs);
  say(p, "plan %d = plan_compile(%zu outputs)", made->number, made->n_out);
  for (size_t i = 0; i < made->n_out; i++) {
    say(p, "  output %zu: t%d", i, outputs[i].number);
    made->out[i] = value_now(p, &outputs[i]);
    tensors[i] = outputs[i].tensor;
  }
  tn_plan_desc d = TN_PLAN_DESC_INIT;
  d.variants = (tn_variants)rng_below(&p->r, TN_VARIANTS_ONE + 1);
  say(p, "  variants %d", (int)d.variants);
  tn_status s = tn_plan_compile(p->context, tensors, made->n_out, &d, &made->made);
  check_status(p, s, "plan_compile");
  settle_outside(p);
  take_assigns(p, made);
  make_images(p, made);
  forget_assigns(p);
  count_plan(p, made);
}

static void run_bound(program *p, plan *made, bound *b);

/** Leaves a scope without inputs open at times, so that readers of the plan's assignments live
    on. */
void compile_plan(program *p) {
  bool scoped = rng_chance(&p->r, 70) && p->depth + 1 < MOST_DEPTH;
  plan *made = p->plans[p->n_plans] = model_alloc(&p->memory, 1, sizeof *made);
  made->number = (int)++p->n_plans;
  if (scoped) begin_scope(p);
  if (scoped && rng_chance(&p->r, 60)) make_inputs(p, made);
  make_plan(p, made);
  bind_plan(p, made);
  for (size_t n = rng_below(&p->r, 3); n; n--)
    run_bound(p, made, &made->bound[rng_below(&p->r, made->n_bound)]);
  if (made->n_inputs || (scoped && rng_chance(&p->r, 50))) end_scope(p);
}

/* Runs. */

bool touches(const plan *made, const state *s) {
  bool touched = holds(made, s);
  for (size_t i = 0; i < made->n_assigned; i++) touched |= !s || made->assigned[i] == s;
  return touched;
}

/** Models the pending assignments that a run computes first. Whether a state that is only read
    belongs to the plan is the compiler's choice. */
static bool settle_for_run(program *p, const plan *made) {
  bool touched = false, surely = false;
  for (size_t i = 0; i < p->n_states; i++)
    touched |= is_pending(p->states[i]) && touches(made, p->states[i]);
  for (size_t i = 0; i < made->n_assigned; i++) surely |= is_pending(made->assigned[i]);
  if (touched)
    cover(p, COVERED_RUNS_AFTER_ASSIGNS);
  else if (any_pending(p))
    cover(p, COVERED_RUNS_BESIDE_ASSIGNS);
  if (touched) settle_all(p);
  return touched && !surely;
}

/** Computes the expected results of a run from the states' contents before it. */
static void expect(program *p, const plan *made, const bound *b, const int32_t *out[],
                   const int32_t *contents[]) {
  const int32_t *inputs[MOST_INPUTS] = {b->inputs[0], b->inputs[1], b->inputs[2]};
  run now = {inputs, b->rows, ++p->last_run};
  for (size_t i = 0; i < made->n_out; i++) out[i] = value_result(&p->memory, made->out[i], &now);
  for (size_t i = 0; i < made->n_assigned; i++)
    contents[i] = value_result(&p->memory, made->contents[i], &now);
}

static void check_type(program *p, const bound *b, size_t i, const char *what, tn_shape shape) {
  tn_type t = tn_binding_type(b->binding, output_name(p, i));
  if (t.dtype != TN_I32) fail(p, "%s has type %d", what, (int)t.dtype);
  if (!is_same_shape(t.shape, shape))
    fail(p, "%s is %s, not %s", what, shape_text(p, t.shape), shape_text(p, shape));
}

static void check_output(program *p, const plan *made, bound *b, size_t i, const char *what,
                         const int32_t expected[]) {
  const value *v = made->out[i];
  tn_shape shape = v->varies ? with_rows(v->shape, (tn_dim)b->rows_before) : v->shape;
  size_t n = shape_count(shape);
  int32_t *got = model_alloc(&p->memory, n, sizeof *got);
  check_type(p, b, i, what, shape);
  for (size_t k = 0; k < n; k++) got[k] = ~expected[k];
  if (tn_binding_read(b->binding, output_name(p, i), TN_I32, got, n * sizeof *got) != TN_OK)
    fail(p, "%s: %s", what, tn_binding_message(b->binding));
  check_equal(p, what, shape, got, expected);
  if (!i && b->output) check_equal(p, "output memory", shape, b->output, expected);
  cover(p, COVERED_OUTPUTS);
}

/** Checks the outputs of the last run. */
static void check_outputs(program *p, const plan *made, bound *b, const int32_t *const expected[]) {
  for (size_t i = 0; i < made->n_out; i++) {
    char what[64];
    snprintf(what, sizeof what, "plan %d, output %zu", made->number, i);
    check_output(p, made, b, i, what, expected[i]);
  }
}

/** Changes variable sizes and checks tn_binding_memory. */
static void ask_memory(program *p, plan *made, bound *b) {
  tn_memory m = TN_MEMORY_INIT;
  size_t i = made->n_inputs - 1, outputs = 0;
  b->rows = (size_t)rng_between(&p->r, made->least, MOST_ROWS);
  take_memory(p, made, b, i);
  say(p, "memory(plan %d, binding %d) of %zu rows", made->number, (int)(b - made->bound), b->rows);
  cover(p, COVERED_ASKED);
  if (tn_binding_memory(b->binding, &m) != TN_OK)
    fail(p, "memory of plan %d: %s", made->number, tn_binding_message(b->binding));
  for (size_t k = 0; k < made->n_out; k++)
    outputs += value_count(made->out[k], b->rows) * sizeof(int32_t);
  if (m.outputs != outputs)
    fail(p, "plan %d needs %zu bytes for outputs, not %zu", made->number, (size_t)m.outputs,
         outputs);
}

/** Updates the model's states after a run; plans still know their earlier contents. */
static void change_states(program *p, const plan *made, const int32_t *const contents[]) {
  for (size_t i = 0; i < made->n_assigned; i++) {
    state *s = made->assigned[i];
    value *v = value_constant(&p->memory, s->shape, contents[i]);
    v->of = s;
    v->held = s->held;
    s->settled = s->now = v;
  }
}

static void carry_outputs(program *p, const plan *made, bound *b, const int32_t *const out[]) {
  for (size_t i = 0; i < made->n_inputs; i++) {
    size_t bytes = input_bytes(made, b, i);
    if (!b->is_carried[i]) continue;
    b->inputs[i] = model_alloc(&p->memory, bytes, 1);
    if (bytes) memcpy(b->inputs[i], out[b->carried[i]], bytes);
  }
}

static bool has_rows(const plan *made) {
  return made->n_inputs && made->varies[made->n_inputs - 1];
}

/** Checks the effects of a completed run. */
static void check_run(program *p, plan *made, bound *b, const int32_t *const out[],
                      const int32_t *const contents[]) {
  b->rows_before = b->rows;
  check_outputs(p, made, b, out);
  carry_outputs(p, made, b, out);
  change_states(p, made, contents);
  if (!has_rows(made) || rng_chance(&p->r, 60)) return;
  ask_memory(p, made, b);
  check_outputs(p, made, b, out);
}

void run_with(program *p, plan *made, bound *b, void (*execute)(program *p, plan *made, bound *b)) {
  const int32_t *out[MOST_ITEMS];
  const int32_t **contents = model_alloc(&p->memory, made->n_assigned, sizeof *contents);
  bool is_unsure = settle_for_run(p, made);
  expect(p, made, b, out, contents);
  cover(p, b->runs++ ? COVERED_RUNS_AGAIN : COVERED_RUNS);
  execute(p, made, b);
  note_run(p, made->number, b->rows);
  check_run(p, made, b, out, contents);
  if (is_unsure) realize_pending(p);
  check_calls(p);
  check_maps(p);
}

static void run_now(program *p, plan *made, bound *b) {
  say(p, "run(plan %d, binding %d)", made->number, (int)(b - made->bound));
  if (tn_binding_run(b->binding) != TN_OK)
    fail(p, "run of plan %d: %s", made->number, tn_binding_message(b->binding));
}

static void run_bound(program *p, plan *made, bound *b) {
  if (b->is_started) return;
  give_inputs(p, made, b);
  run_with(p, made, b, run_now);
}

void run_plan(program *p) {
  if (!p->n_plans) return;
  plan *made = p->plans[rng_below(&p->r, p->n_plans)];
  run_bound(p, made, &made->bound[rng_below(&p->r, made->n_bound)]);
}

/** Frees a plan; its bindings stay usable. */
void free_plan(program *p) {
  plan *made = p->n_plans ? p->plans[rng_below(&p->r, p->n_plans)] : NULL;
  if (!made || !made->made) return;
  say(p, "plan_free(plan %d)", made->number);
  cover(p, COVERED_FREED);
  tn_plan_free(made->made);
  made->made = NULL;
}

void run_all_plans(program *p) {
  for (size_t i = 0; i < p->n_plans; i++)
    if (rng_chance(&p->r, 70)) run_bound(p, p->plans[i], &p->plans[i]->bound[0]);
}

void count_plans(program *p) {
  for (size_t i = 0; i < p->n_plans; i++) {
    size_t runs = 0;
    for (size_t k = 0; k < p->plans[i]->n_bound; k++) runs += p->plans[i]->bound[k].runs;
    if (!runs) cover(p, COVERED_NEVER_RUN);
  }
}
