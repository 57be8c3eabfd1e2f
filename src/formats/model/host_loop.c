/* Loops that the host runs. The body is imported as a graph with sizes left open, of which the
   first run makes a plan; its variants serve all trips. A body that fits no open sizes, or whose
   states change their ranks, is late, as models are (late_graph.h): its plan imports it again for
   the shapes of each step. A run of the loop takes a binding of the plan, sets what stays alike and
   the initial states, and lets the binding carry states from trip to trip, so that they are copied
   once, at the end.

   The results are kept under the run that they are of until further steps have handed them out;
   what a run that failed left is freed by the next one of its execution. */
#include "formats/model/host_loop.h"

#include "formats/model/declared_type.h"
#include "formats/model/late_graph.h"
#include "formats/model/loop_results.h"
#include "tensor/plan/binding.h"

#include <string.h>

/** A binding that no run uses. */
typedef struct idle_binding {
  struct idle_binding *next;
  tn_binding *binding;
} idle_binding;

typedef struct host_loop {
  const mem *mem;
  tn_context *context;
  model_file *file; /* the body */
  arena arena;      /* of the graph's lists */
  model_graph graph;
  bool is_interpreted;
  importer_loop form; /* lists and graph lie in the arena of the steps */
  size_t n_first;     /* inputs of the body, and outputs, before the states: of a Loop one each */
  size_t n_results;
  const importer_type *types; /* of the body's outputs */
  results_store results;
  mutex lock; /* of all that follows */
  diag diag;  /* of the ir and of making the plan */
  tn_plan *plan;
  idle_binding *idle;
} host_loop;

/** Options of the step that hands out a result. */
typedef struct loop_result {
  host_loop *loop;
  size_t number;
} loop_result;

/* A run. */

/** A loop under way. */
typedef struct loop_run {
  host_loop *l;
  const host_arrays *a;
  tn_binding *b;
  loop_results *results;
  const int64_t *open;  /* sizes that the loop does not know */
  const size_t *ranks;  /* of the next array, and of those behind it */
  const int64_t *fixed; /* the next of those sizes that it does */
  size_t first_array;   /* of the states, among those of the step */
  int64_t trip;         /* the number of the step at hand */
  int64_t most;         /* trips */
  bool goes_on;
  tn_failure *failure;
} loop_run;

static const plan_port *input_port(const loop_run *r, size_t i) {
  return &r->l->plan->ports.inputs[i];
}

static tn_status fail_binding(const loop_run *r, tn_status s) {
  return tn_fail(r->failure, s, "step %lld: %.1800s", (long long)r->trip, tn_binding_message(r->b));
}

/** The sizes of the next array of the step. */
static tn_shape next_shape(loop_run *r) {
  tn_shape s = {.rank = (int32_t)*r->ranks++};
  for (int32_t k = 0; k < s.rank; k++, r->fixed++)
    s.size[k] = *r->fixed < 0 ? *r->open++ : *r->fixed;
  return s;
}

static size_t shape_bytes(const tn_shape *s, dtype t) {
  size_t n = dtype_bytes(t);
  for (int32_t k = 0; k < s->rank; k++) n *= (size_t)s->size[k];
  return n;
}

static tn_status set_input(const loop_run *r, size_t i, tn_shape s, const void *data) {
  dtype t = input_port(r, i)->dtype;
  tn_status status = tn_binding_input_at(r->b, i, s, (tn_dtype)t, data, shape_bytes(&s, t));
  return status == TN_OK ? status : fail_binding(r, status);
}

/** An array that a Scan scans. */
typedef struct scanned_array {
  tn_shape entry;
  const char *data;
  size_t bytes; /* of an entry */
} scanned_array;

static tn_status set_entry(const loop_run *r, size_t i, const scanned_array *x) {
  bool backward = r->l->form.reads_backward[i];
  size_t at = (size_t)(backward ? r->most - 1 - r->trip : r->trip);
  return set_input(r, r->l->n_first + r->l->form.n_states + i, x->entry, x->data + at * x->bytes);
}

/** Notes an array that is scanned, and that there are as many steps as it has entries. */
static tn_status open_scanned(loop_run *r, size_t i, scanned_array *x) {
  const importer_loop *form = &r->l->form;
  const plan_port *p = input_port(r, r->l->n_first + form->n_states + i);
  tn_shape whole = next_shape(r);
  if (i && whole.size[0] != r->most)
    return tn_fail(r->failure, TN_ERR_SHAPE, "scan inputs have %lld and %lld entries",
                   (long long)r->most, (long long)whole.size[0]);
  r->most = whole.size[0];
  *x = (scanned_array){.entry = {.rank = whole.rank - 1},
                       .data = r->a->data[r->first_array + form->n_states + i]};
  for (int32_t k = 0; k < x->entry.rank; k++) x->entry.size[k] = whole.size[k + 1];
  x->bytes = shape_bytes(&x->entry, p->dtype);
  return TN_OK;
}

/** Sets the inputs of the first step, but for entries of what is scanned. */
static tn_status set_inputs(loop_run *r, scanned_array scanned[]) {
  const importer_loop *form = &r->l->form;
  size_t n = form->n_states + form->n_scanned, all = r->l->plan->ports.n_inputs - r->l->n_first;
  tn_status s = TN_OK;
  if (r->l->n_first) s = set_input(r, 0, (tn_shape){.rank = 0}, &r->trip);
  for (size_t i = 0; i < all && s == TN_OK; i++) {
    if (i >= form->n_states && i < n) {
      s = open_scanned(r, i - form->n_states, &scanned[i - form->n_states]);
      continue;
    }
    tn_shape shape = next_shape(r);
    s = set_input(r, r->l->n_first + i, shape, r->a->data[r->first_array + i]);
    if (i < form->n_states) r->results->at[i].row = shape;
  }
  return s;
}

static tn_status refuse_entry(const loop_run *r, size_t i, const tn_shape *is) {
  const tn_shape *was = &r->results->at[r->l->form.n_states + i].row;
  int32_t k = 0;
  if (is->rank != was->rank)
    return tn_fail(r->failure, TN_ERR_SHAPE,
                   "step %lld: its entry of scan output %zu has rank %d, and that of step 0 has %d",
                   (long long)r->trip, i, (int)is->rank, (int)was->rank);
  while (is->size[k] == was->size[k]) k++;
  return tn_fail(r->failure, TN_ERR_SHAPE,
                 "step %lld: axis %d of its entry of scan output %zu has size %lld, and that of "
                 "step 0 has %lld",
                 (long long)r->trip, (int)k, i, (long long)is->size[k], (long long)was->size[k]);
}

/** Appends the entry that a step gave to a scan output. */
static tn_status keep_entry(const loop_run *r, size_t i) {
  const importer_loop *form = &r->l->form;
  size_t output = r->l->n_first + form->n_states + i;
  loop_array *x = &r->results->at[form->n_states + i];
  tn_type t = tn_binding_type_at(r->b, output);
  size_t bytes = shape_bytes(&t.shape, (dtype)t.dtype);
  if (!r->trip) x->row = t.shape;
  bool is_alike = x->row.rank == t.shape.rank;
  for (int32_t k = 0; is_alike && k < t.shape.rank; k++)
    is_alike = x->row.size[k] == t.shape.size[k];
  if (!is_alike) return refuse_entry(r, i, &t.shape);
  tn_status s = loop_array_grow(&r->l->results, x, bytes, r->failure);
  if (s == TN_OK) s = tn_binding_read_at(r->b, output, t.dtype, x->data + x->bytes, bytes);
  if (s != TN_OK) return r->failure->status == s ? s : fail_binding(r, s);
  x->bytes += bytes;
  return s;
}

/** Asks the caller's observer whether the loop goes on. */
static tn_status check_goes_on(const loop_run *r) {
  tn_context *c = r->l->context;
  int64_t total = r->most == INT64_MAX ? 0 : r->most;
  if (!c->progress.step || execution_ask_progress(&c->progress, &c->reports.lock, r->trip, total))
    return TN_OK;
  return tn_fail(r->failure, TN_ERR_CANCELLED, "cancelled after %lld steps", (long long)r->trip);
}

/** Refuses outputs of a step that are not of the types that the graph around the loop has: of a
    body that fits no sizes which an import tried, these are those that the file declares. */
static tn_status check_outputs(const loop_run *r) {
  const host_loop *l = r->l;
  for (size_t i = 0; i < l->n_first + l->n_results; i++) {
    if (i >= l->n_first && !l->form.is_wanted[i - l->n_first]) continue;
    tn_type t = tn_binding_type_at(r->b, i);
    if ((dtype)t.dtype != l->types[i].dtype)
      return tn_fail(r->failure, TN_ERR_DTYPE,
                     "step %lld: output %zu of the body is %s, and is declared as %s",
                     (long long)r->trip, i, dtype_name((dtype)t.dtype),
                     dtype_name(l->types[i].dtype));
    size_t bytes = shape_bytes(&t.shape, (dtype)t.dtype);
    if (i < l->n_first && bytes != sizeof r->goes_on)
      return tn_fail(r->failure, TN_ERR_SHAPE,
                     "step %lld: the condition has %zu elements, expected 1", (long long)r->trip,
                     bytes);
  }
  return TN_OK;
}

static tn_status take_step(loop_run *r, const scanned_array scanned[]) {
  const importer_loop *form = &r->l->form;
  tn_status s = check_goes_on(r);
  for (size_t i = 0; i < form->n_scanned && s == TN_OK; i++) s = set_entry(r, i, &scanned[i]);
  if (s != TN_OK) return s;
  s = tn_binding_run(r->b);
  if (s != TN_OK) return fail_binding(r, s);
  s = check_outputs(r);
  if (s != TN_OK) return s;
  if (r->l->n_first) s = tn_binding_read_at(r->b, 0, TN_BOOL, &r->goes_on, sizeof r->goes_on);
  if (s != TN_OK) return fail_binding(r, s);
  for (size_t i = 0; i < form->n_entries && s == TN_OK; i++)
    if (form->is_wanted[form->n_states + i]) s = keep_entry(r, i);
  return s;
}

/** Keeps the states after the last step. */
static tn_status keep_states(const loop_run *r) {
  const importer_loop *form = &r->l->form;
  tn_status s = TN_OK;
  for (size_t i = 0; i < form->n_states && s == TN_OK; i++) {
    loop_array *x = &r->results->at[i];
    if (!form->is_wanted[i]) continue;
    tn_type t = tn_binding_type_at(r->b, r->l->n_first + i);
    size_t bytes = shape_bytes(&t.shape, (dtype)t.dtype);
    x->row = t.shape;
    s = loop_array_grow(&r->l->results, x, bytes, r->failure);
    if (s != TN_OK) return s;
    s = tn_binding_read_at(r->b, r->l->n_first + i, t.dtype, x->data, bytes);
    if (s != TN_OK) return fail_binding(r, s);
    x->bytes = bytes;
  }
  return s;
}

/** Keeps the initial states, the results of no steps; their rows are known. */
static tn_status keep_initial_states(const loop_run *r) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < r->l->form.n_states && s == TN_OK; i++) {
    loop_array *x = &r->results->at[i];
    if (!r->l->form.is_wanted[i]) continue;
    size_t bytes = shape_bytes(&x->row, input_port(r, r->l->n_first + i)->dtype);
    s = loop_array_grow(&r->l->results, x, bytes, r->failure);
    if (s == TN_OK && bytes) memcpy(x->data, r->a->data[r->first_array + i], bytes);
    x->bytes = bytes;
  }
  return s;
}

/** The shapes of entries that no step gave: sizes that steps compute are 0. */
static void set_empty_rows(const loop_run *r) {
  const importer_loop *form = &r->l->form;
  for (size_t i = form->n_states; i < r->l->n_results; i++) {
    const plan_port *p = &r->l->plan->ports.outputs[r->l->n_first + i];
    tn_shape *row = &r->results->at[i].row;
    row->rank = (int32_t)r->l->types[r->l->n_first + i].rank;
    for (int32_t k = 0; k < row->rank; k++)
      row->size[k] = !p->is_late && p->size[k].is_fixed ? p->size[k].offset : 0;
  }
}

static tn_status take_steps(loop_run *r) {
  scanned_array *scanned = mem_calloc(r->l->mem, r->l->form.n_scanned + 1, sizeof *scanned);
  if (!scanned) return tn_fail(r->failure, TN_ERR_MEMORY, "out of memory");
  if (!r->goes_on) r->most = 0;
  tn_status s = set_inputs(r, scanned);
  while (s == TN_OK && r->goes_on && r->trip < r->most) {
    s = take_step(r, scanned);
    if (s == TN_OK) r->trip++;
  }
  if (s == TN_OK) s = r->trip ? keep_states(r) : keep_initial_states(r);
  if (s == TN_OK && !r->trip) set_empty_rows(r);
  mem_free(r->l->mem, scanned, (r->l->form.n_scanned + 1) * sizeof *scanned);
  return s;
}

/** Reads what the arrays of the step say of the loop. */
static void read_bounds(loop_run *r) {
  const importer_loop *form = &r->l->form;
  const host_arrays *a = r->a;
  r->most = INT64_MAX;
  r->goes_on = true;
  if (form->has_trips) r->most = *(const int64_t *)a->data[r->first_array++];
  if (form->has_condition) r->goes_on = *(const bool *)a->data[r->first_array++];
  if (r->most < 0) r->most = 0;
  size_t n = r->l->plan->ports.n_inputs - r->l->n_first;
  r->ranks = form->ranks;
  r->fixed = form->fixed;
  r->open = r->first_array + n < a->n_inputs ? a->data[a->n_inputs - 1] : NULL;
}

/** Refuses a result of another rank than the graph around the loop has it. */
static tn_status check_ranks(const loop_run *r) {
  for (size_t i = 0; i < r->l->n_results; i++) {
    int32_t is = r->results->at[i].row.rank;
    size_t was = r->l->types[r->l->n_first + i].rank;
    if (!r->l->form.is_wanted[i] || (size_t)is == was) continue;
    bool is_by_count = r->l->form.has_trips && r->trip == r->most;
    return tn_fail(r->failure, TN_ERR_SHAPE,
                   "result %zu has rank %d after %lld steps, and was taken to have rank %zu: steps "
                   "change it%s",
                   i, (int)is, (long long)r->trip, was,
                   is_by_count ? "; give the trip count when the model is loaded "
                                 "(tn_model_desc.values)"
                               : "");
  }
  return TN_OK;
}

/** Writes the number of steps and the sizes of wanted results. */
static void tell_sizes(const loop_run *r) {
  int64_t *to = r->a->data[r->a->n_inputs];
  *to++ = r->results->trips = r->trip;
  for (size_t i = 0; i < r->l->n_results; i++) {
    const tn_shape *row = &r->results->at[i].row;
    r->results->at[i].is_kept = r->l->form.is_wanted[i];
    for (int32_t k = 0; r->l->form.is_wanted[i] && k < row->rank; k++) *to++ = row->size[k];
  }
}

/* Plan and bindings. */

static const char plan_name[] = "body of a loop";

/** Makes the plan of a late body, whose states take any shape. */
static tn_status make_late_plan(host_loop *l) {
  bool *is_free = mem_calloc(l->mem, l->graph.n_inputs + 1, sizeof *is_free);
  if (!is_free) return diag_set(&l->diag, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < l->form.n_states; i++) is_free[l->n_first + i] = true;
  const late_graph of = {.context = l->context,
                         .file = l->file,
                         .graph = &l->graph,
                         .name = plan_name,
                         .variants = TN_VARIANTS_STEADY,
                         .is_interpreted = l->is_interpreted,
                         .is_body = true,
                         .is_free = is_free};
  tn_status s = late_graph_make_plan(&of, &l->diag, &l->plan);
  mem_free(l->mem, is_free, (l->graph.n_inputs + 1) * sizeof *is_free);
  return s;
}

static tn_status make_plan(host_loop *l) {
  if (l->graph.is_late) return make_late_plan(l);
  plan_graph g = model_graph_of_plan(&l->graph, l->file);
  g.name = plan_name;
  g.title = NULL;
  g.variants = TN_VARIANTS_STEADY; /* sizes that each step changes are there once */
  g.is_interpreted = l->is_interpreted;
  return plan_build(l->context, &g, &l->diag, &l->plan);
}

static tn_status open_binding(host_loop *l, tn_binding **out, tn_failure *f) {
  diag d = {0};
  tn_status s = binding_open(l->plan, &d, out);
  for (size_t i = 0; i < l->form.n_states && s == TN_OK; i++) {
    s = tn_binding_carry_at(*out, l->n_first + i, l->n_first + i);
    if (s != TN_OK) diag_set(&d, s, "%s", tn_binding_message(*out));
  }
  if (s == TN_OK) return s;
  binding_close(*out);
  *out = NULL;
  return tn_fail(f, s, "%s", d.text);
}

/** Takes a binding that no run uses, or opens one. */
static tn_status take_binding(host_loop *l, idle_binding **out, tn_failure *f) {
  mutex_lock(&l->lock);
  tn_status s = l->plan ? TN_OK : make_plan(l);
  if (s != TN_OK) *f = l->diag.failure;
  *out = l->idle;
  if (*out) l->idle = (*out)->next;
  mutex_unlock(&l->lock);
  if (s != TN_OK || *out) return s;
  *out = mem_calloc(l->mem, 1, sizeof **out);
  if (!*out) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  s = open_binding(l, &(*out)->binding, f);
  if (s == TN_OK) return s;
  mem_free(l->mem, *out, sizeof **out);
  *out = NULL;
  return s;
}

static void free_binding(const host_loop *l, idle_binding *b) {
  binding_close(b->binding);
  mem_free(l->mem, b, sizeof *b);
}

static void give_back(host_loop *l, idle_binding *b) {
  mutex_lock(&l->lock);
  b->next = l->idle;
  l->idle = b;
  mutex_unlock(&l->lock);
}

/* Steps. */

static tn_status run_loop(const void *options, string_table *t, const host_arrays *a,
                          tn_failure *f) {
  host_loop *l = (host_loop *)options;
  idle_binding *b;
  (void)t;
  loop_results_free(&l->results, results_store_take(&l->results, a->run));
  tn_status s = take_binding(l, &b, f);
  if (s != TN_OK) return s;
  loop_results *results = loop_results_open(&l->results, a->run);
  loop_run r = {.l = l, .a = a, .b = b->binding, .results = results, .failure = f};
  if (results) {
    read_bounds(&r);
    s = take_steps(&r);
    if (s == TN_OK) s = check_ranks(&r);
  } else {
    s = tn_fail(f, TN_ERR_MEMORY, "out of memory");
  }
  if (s == TN_OK) {
    tell_sizes(&r);
    results_store_keep(&l->results, results);
    give_back(l, b);
    return s;
  }
  loop_results_free(&l->results, results);
  free_binding(l, b);
  return s;
}

static void copy_rows(const host_loop *l, size_t number, const loop_results *r, char *to) {
  const loop_array *x = &r->at[number];
  size_t states = l->form.n_states;
  bool backward = number >= states && l->form.writes_backward && r->trips &&
                  l->form.writes_backward[number - states];
  size_t rows = backward ? (size_t)r->trips : 1, bytes = x->bytes / rows;
  for (size_t i = 0; i < rows && bytes; i++)
    memcpy(to + (rows - 1 - i) * bytes, x->data + i * bytes, bytes);
}

static tn_status hand_out(const void *options, string_table *t, const host_arrays *a,
                          tn_failure *f) {
  const loop_result *of = options;
  results_store *store = &of->loop->results;
  loop_results *r = results_store_take(store, a->run);
  (void)t;
  if (!r) return tn_fail(f, TN_ERR_INTERNAL, "the loop did not run");
  loop_array *x = &r->at[of->number];
  bool fits = x->bytes == a->bytes[a->n_inputs];
  if (fits) copy_rows(of->loop, of->number, r, a->data[a->n_inputs]);
  loop_array_free(store, x);
  if (loop_results_are_empty(store, r))
    loop_results_free(store, r);
  else
    results_store_keep(store, r);
  return fits ? TN_OK : tn_fail(f, TN_ERR_INTERNAL, "result %zu has another size", of->number);
}

static void close_loop(const void *options) {
  host_loop *l = (host_loop *)options;
  results_store_free(&l->results);
  while (l->idle) {
    idle_binding *b = l->idle;
    l->idle = b->next;
    free_binding(l, b);
  }
  plan_release(l->plan);
  model_graph_free(&l->graph);
  arena_free(&l->arena);
  model_file_release(l->file);
  mutex_free(&l->lock);
  mem_free(l->mem, l, sizeof *l);
}

static const host_steps *steps_of_body(const void *options) {
  return ((const host_loop *)options)->graph.host;
}

/* Opening. */

static tn_status import_body(host_loop *l, const model_graph_request *of) {
  model_graph_request r = {.mem = l->mem,
                           .device = of->device,
                           .context = l->context,
                           .is_interpreted = l->is_interpreted,
                           .is_body = true,
                           .file = l->file,
                           .sizes = l->form.changing,
                           .n_sizes = l->form.n_changing,
                           .copies_weights = of->copies_weights,
                           .is_open = !l->form.may_be_late,
                           .may_be_exact = l->form.may_be_late,
                           .is_late = l->form.late,
                           .late_reason = l->form.late_reason,
                           .stop = of->stop};
  l->file->onnx->graph = &l->form.body;
  if (l->form.opsets->n) l->file->onnx->opsets = *l->form.opsets;
  return model_graph_import(&l->graph, &r, &l->diag);
}

/** The types of the outputs of an imported body. */
static const importer_type *imported_types(const host_loop *l, arena *a) {
  const model_graph *g = &l->graph;
  importer_type *types = arena_alloc(a, (g->n_outputs + 1) * sizeof *types);
  for (size_t i = 0; i < g->n_outputs; i++) {
    const node *x = g->nodes[g->n_inputs + i];
    types[i] = (importer_type){(dtype)x->dtype, x->rank, g->is_string[g->n_inputs + i]};
  }
  return types;
}

/** The types that the file declares for the outputs of a body; NULL: not of all. */
static const importer_type *declared_types(const host_loop *l, arena *a) {
  const onnx_values *outputs = &l->form.body.outputs;
  importer_type *types = arena_alloc(a, (outputs->n + 1) * sizeof *types);
  for (size_t i = 0; i < outputs->n; i++) {
    const onnx_type *t = &outputs->at[i].type;
    dtype elements = declared_type_elements(t);
    if (elements == DT_VOID || !t->has_shape) return NULL;
    types[i] = (importer_type){elements, t->dims.n, t->dtype == ONNX_STRING};
  }
  return types;
}

/** Finds the types of the outputs, of a late body those that an import with sizes gave. */
static void find_types(host_loop *l, arena *a) {
  model_graph *g = &l->graph;
  if (l->form.late)
    g->late_types = l->form.late;
  else if (!g->is_late)
    l->types = imported_types(l, a);
  else if (!g->late_types)
    g->late_types = declared_types(l, a);
  if (g->is_late) l->types = g->late_types;
  if (!l->types)
    diag_raise(a->diag, TN_ERR_UNSUPPORTED,
               "only a run of the body tells the types of its results, and it does not declare "
               "them%s%.1000s",
               g->exact_reason ? ": " : "", g->exact_reason ? g->exact_reason : "");
}

/** The steps of an imported loop. */
static importer_loop_body steps_of(host_loop *l, arena *a) {
  find_types(l, a);
  host_step *results = arena_calloc(a, l->n_results + 1, sizeof *results);
  for (size_t i = 0; i < l->n_results; i++) {
    const loop_result result = {l, i};
    results[i] = (host_step){.run = hand_out, .options = arena_copy(a, &result, sizeof result)};
  }
  return (importer_loop_body){
      .inputs = l->graph.nodes,
      .outputs = l->graph.nodes + l->graph.n_inputs,
      .types = l->types,
      .is_late = l->graph.is_late,
      .late_reason = l->graph.exact_reason,
      .reads_later = l->graph.is_late || l->graph.has_late_body,
      .run = {.run = run_loop, .destroy = close_loop, .options = l, .inner = steps_of_body},
      .results = results};
}

typedef struct loop_opening {
  host_loop *l;
  arena *a;
  importer_loop_body steps;
} loop_opening;

static void make_steps(void *arg) {
  loop_opening *o = arg;
  o->steps = steps_of(o->l, o->a);
}

importer_loop_body host_loop_open(const model_graph_request *of, const importer_loop *from,
                                  arena *a, diag *d) {
  host_loop *l = mem_calloc(of->mem, 1, sizeof *l);
  if (!l) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  l->mem = of->mem;
  l->context = of->context;
  l->is_interpreted = of->is_interpreted;
  l->form = *from;
  l->n_first = from->is_scan ? 0 : 1;
  l->n_results = from->n_states + from->n_entries;
  results_store_init(&l->results, l->mem, l->n_results);
  mutex_init(&l->lock);
  arena_init(&l->arena, l->mem, &l->diag);
  l->graph.arena = &l->arena;
  tn_status s = model_file_open_body(&l->file, of->file, &l->diag);
  if (s == TN_OK) s = import_body(l, of);
  if (s != TN_OK) {
    d->failure = l->diag.failure;
    close_loop(l);
    diag_rethrow(d);
  }
  loop_opening o = {l, a, {0}};
  if (diag_catch(d, make_steps, &o) == TN_OK) return o.steps;
  close_loop(l);
  diag_rethrow(d);
}
