/* Explains a plan for reports: renders fusion decisions, values and loop nests as text while the
   plan is compiled, and attributes time, nodes and rule firings to passes and kernels by difference
   of counters. */
#include "runtime/explanation.h"

#include "base/str.h"
#include "base/thread.h"
#include "ir/core/binder.h"

#include <math.h>
#include <string.h>

void explanation_open(explanation *x, const mem *m, bool reasons) {
  *x = (explanation){.reasons = reasons};
  arena_init(&x->arena, m, NULL);
}

void explanation_free(explanation *x) { arena_free(&x->arena); }

static const char *copy_text(explanation *x, const char *text) {
  return arena_copy(&x->arena, text, strlen(text) + 1);
}

/* Costs. */

static tn_explained_cost cost_now(const ir *g) {
  return (tn_explained_cost){clock_now_ns(), ir_node_count(g), ir_rules_fired(g)};
}

static void add_cost(tn_explained_cost *to, tn_explained_cost from, tn_explained_cost until) {
  to->ns += until.ns - from.ns;
  to->nodes += until.nodes - from.nodes;
  to->rules += until.rules - from.rules;
}

void explanation_begin(explanation *x, const ir *g) { x->last = cost_now(g); }

void explanation_end_pass(explanation *x, const ir *g, const char *name, size_t kernel) {
  tn_explained_cost now = cost_now(g);
  size_t i = 0;
  while (i < x->passes.n && strcmp(x->passes.at[i].name, name)) i++;
  if (i == x->passes.n) vec_push(&x->arena, &x->passes, (explained_pass){.name = name});
  add_cost(&x->passes.at[i].cost, x->last, now);
  if (kernel != SIZE_MAX) add_cost(&x->kernels.at[kernel].cost, x->last, now);
  x->last = now;
}

/* Decisions. */

static const char *duration_text(arena *a, double ns) {
  static const char *const units[] = {"ns", "µs", "ms", "s"};
  size_t unit = 0;
  if (isinf(ns)) return "impossible";
  for (; ns >= 999.5 && unit < 3; unit++) ns /= 1e3;
  return arena_printf(a, "%.3g %s", ns, units[unit]);
}

static const char *fused_text(arena *a, const schedule_decision *d) {
  return arena_printf(a, "%s (in place %s, as arrays %s)", duration_text(a, d->fused),
                      duration_text(a, d->inlined), duration_text(a, d->placed));
}

static const char *decision_text(arena *a, const schedule_decision *d) {
  const char *readers = d->readers == 1 ? "its reader" : "its readers";
  const char *by = d->is_hosted ? " by a kernel that also computes it" : "";
  if (d->reason && d->is_written) return arena_printf(a, "stored%s: %s", by, d->reason);
  if (d->reason) return arena_printf(a, "computed in %s: %s", readers, d->reason);
  if (d->is_written)
    return arena_printf(a, "stored%s: %s; computed in %s: %s", by, duration_text(a, d->written),
                        readers, fused_text(a, d));
  return arena_printf(a, "computed in %s: %s; stored: %s", readers, fused_text(a, d),
                      duration_text(a, d->written));
}

void explanation_add_decision(explanation *x, const schedule_decision *d) {
  map_set(&x->arena, &x->whys, d->tensor, (void *)decision_text(&x->arena, d));
}

/* Values, steps and loops. */

static void add_size(str *s, const node *size) {
  if (node_is_const(size))
    str_addf(s, "%" PRId64, node_int(size));
  else
    str_add(s, size->op == OP_VAR ? size->text : "…");
}

static const char *value_text(explanation *x, const node *n) {
  str s = str_new(&x->arena);
  str_add(&s, op_name((op)n->op));
  if (n->op == OP_REDUCE || n->op == OP_SCAN) str_addf(&s, " %s", op_name((op)n->ints[0]));
  str_addf(&s, " %s [", dtype_name((dtype)n->dtype));
  for (size_t i = 0; i < n->rank; i++) {
    if (i) str_add(&s, ", ");
    add_size(&s, n->dims[i]);
  }
  str_add(&s, "]");
  return str_text(&s);
}

static void add_read(explanation *x, explained_step *to, size_t step) {
  for (size_t i = 0; i < to->reads.n; i++)
    if (to->reads.at[i] == step) return;
  vec_push(&x->arena, &to->reads, step);
}

/** The steps that wrote a buffer: the last one, or all, if several write it in parts, or in a part
    of the runs each. */
typedef VEC(size_t) writer_list;

static void add_writer(explanation *x, const schedule *s, size_t buffer, writer_list writers[],
                       size_t step) {
  size_t of = schedule_storage(s, buffer);
  if (!s->buffers.at[of].n_places && !s->steps.at[step].guard) writers[of].n = 0;
  vec_push(&x->arena, &writers[of], step);
}

static void add_step(explanation *x, const schedule *s, size_t i, const map numbers[],
                     writer_list writers[], const executable_host *host) {
  const schedule_step *from = &s->steps.at[i];
  explained_step to = {.name = copy_text(x, from->name),
                       .kernel = SIZE_MAX,
                       .n_places = from->n_places,
                       .n_copies = from->n_copies,
                       .is_guarded = from->guard != NULL};
  bool is_custom = from->kind == STEP_CUSTOM;
  size_t writes = is_custom ? from->n_buffers - 1 : 0;
  size_t end = is_custom ? from->n_buffers : from->n_outputs;
  to.what = is_custom ? executable_host_facts_of(host, from->custom->ints[0]).what
                      : "a copy between devices";
  if (from->loop && from->loop->n_steps == 1) to.what = "a loop of the next step";
  if (from->loop && from->loop->n_steps != 1)
    to.what = arena_printf(&x->arena, "a loop of the next %zu steps", from->loop->n_steps);
  if (from->kernel)
    to.kernel = (size_t)(uintptr_t)map_get(&numbers[from->device], from->kernel) - 1;
  for (size_t k = 0; k < from->values.n; k++) {
    const char *why = map_get(&x->whys, from->values.at[k]);
    vec_push(&x->arena, &to.values,
             (tn_explained_value){value_text(x, from->values.at[k]), why ? why : ""});
  }
  for (size_t k = 0; k < from->n_buffers; k++) {
    size_t of = schedule_storage(s, from->buffers[k]);
    bool writes_part = k >= writes && k < end && s->buffers.at[of].n_places;
    for (size_t w = 0; w < writers[of].n && !writes_part; w++) add_read(x, &to, writers[of].at[w]);
  }
  for (size_t k = 0; k < from->n_items; k++) /* sizes that the host reads before the step */
    for (size_t w = 0; w < writers[from->items[k]].n; w++)
      add_read(x, &to, writers[from->items[k]].at[w]);
  for (size_t k = writes; k < end; k++) {
    add_writer(x, s, from->buffers[k], writers, i);
    to.is_output |= s->buffers.at[schedule_storage(s, from->buffers[k])].is_output;
  }
  vec_push(&x->arena, &x->steps, to);
}

static const char *loop_nest_text(explanation *x, const node *binder) {
  const node *const *ranges;
  size_t n = binder_ranges(binder, &ranges);
  str s = str_new(&x->arena);
  str_add(&s, binder->op == OP_FOLD ? "fold" : stage_is_cut(binder) ? "write" : "array");
  for (size_t i = 0; binder->op == OP_FOLD && i < fold_n_states(binder); i++)
    if (fold_op(binder, i) >= 0) str_addf(&s, " %s", op_name((op)fold_op(binder, i)));
  str_add(&s, ":");
  for (size_t i = 0; i < n; i++) {
    str_addf(&s, " r%" PRId64 " < ", ranges[i]->ints[0]);
    add_size(&s, range_extent(ranges[i]));
  }
  return str_text(&s);
}

static void add_kernel(explanation *x, const node *sink) {
  explained_kernel k = {.source = ""};
  node_list all = topo_sort(&x->arena, &sink, 1, NULL, NULL);
  for (size_t i = all.n; i-- > 0;)
    if (all.at[i]->op == OP_STAGE || all.at[i]->op == OP_FOLD)
      vec_push(&x->arena, &k.loops, loop_nest_text(x, all.at[i]));
  vec_push(&x->arena, &x->kernels, k);
}

void explanation_add_steps(explanation *x, const schedule *s, const node_list *kernels,
                           const map numbers[], const device_target *const targets[],
                           const executable_host *host) {
  writer_list *writers = arena_calloc(&x->arena, s->buffers.n + 1, sizeof *writers);
  for (size_t i = 0; i < s->steps.n; i++) {
    add_step(x, s, i, numbers, writers, host);
    vec_last(&x->steps).device = copy_text(x, targets[s->steps.at[i].device]->device->name);
  }
  for (size_t i = 0; i < kernels->n; i++) add_kernel(x, kernels->at[i]);
}

/* Kernels. */

void explanation_set_language(explanation *x, const char *language, const char *prelude) {
  x->language = copy_text(x, language);
  x->prelude = copy_text(x, prelude);
}

void explanation_begin_kernel(explanation *x) {
  x->laws = (explained_lines){0};
  x->predicted = (tn_explained_time){0};
  x->is_tuned = false;
}

void explanation_add_tuned(explanation *x) { x->is_tuned = true; }

void explanation_add_law(explanation *x, const char *line) {
  vec_push(&x->arena, &x->laws, copy_text(x, line));
}

void explanation_add_cost(explanation *x, const kernel_cost *c) {
  x->predicted = (tn_explained_time){c->total, c->core, c->memory[0], c->memory[1], c->memory[2]};
}

void explanation_add_source(explanation *x, size_t kernel, const char *source) {
  x->kernels.at[kernel].schedule = x->laws;
  x->kernels.at[kernel].predicted = x->predicted;
  x->kernels.at[kernel].is_tuned = x->is_tuned;
  if (x->reasons) x->kernels.at[kernel].source = copy_text(x, source);
}
