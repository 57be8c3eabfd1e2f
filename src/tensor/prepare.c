#include "tensor/prepare.h"

#include "schedule/constants.h"

typedef struct preparing {
  tn_context *c;
  const plan_graph *g;
  arena *work;
  prepared *out;
  constants found;
  const node **values;
  executable *executable;
  execution *execution;
} preparing;

static bool is_constant(void *user, const node *buffer) {
  const preparing *p = user;
  return p->g->leaf(p->g->user, buffer).memory != NULL;
}

static void compile(preparing *p) {
  tn_context *c = p->c;
  const char *name = arena_printf(p->work, "%s, constants", p->g->name);
  p->values = arena_alloc(p->work, p->found.at.n * sizeof *p->values);
  for (size_t i = 0; i < p->found.at.n; i++) p->values[i] = p->found.at.at[i].value;
  executable_request r = {.name = name,
                          .roots = p->values,
                          .n_roots = p->found.at.n,
                          .target = c->target,
                          .math = (int)c->math,
                          .dump = &c->dump,
                          .progress = c->progress.step ? &c->progress : NULL,
                          .logger = &c->logger,
                          .disk = c->disk,
                          .reports = &c->reports};
  if (executable_make(&p->executable, &r, &c->mem, p->work->diag) != TN_OK)
    diag_rethrow(p->work->diag);
}

static void run(preparing *p) {
  diag *d = p->work->diag;
  node_list order = topo_sort(p->work, p->values, p->found.at.n, NULL, NULL);
  tn_status s = execution_open(&p->execution, p->executable, NULL, d);
  for (size_t i = 0; i < order.n && s == TN_OK; i++) {
    const node *n = order.at[i];
    size_t at =
        n->op == OP_BUFFER ? executable_input(p->executable, n->ints[0], n->ints[1]) : SIZE_MAX;
    if (at != SIZE_MAX)
      s = execution_set_buffer(p->execution, at, p->g->leaf(p->g->user, n).memory, d);
  }
  if (s == TN_OK) s = execution_run(p->execution, d);
  if (s != TN_OK) diag_rethrow(d);
}

static void keep(preparing *p) {
  for (size_t i = 0; i < p->found.at.n; i++) {
    tn_buffer *made = execution_buffer(p->execution, executable_output(p->executable, i));
    vec_push(p->work, &p->out->held, made);
    buffer_retain(made);
    map_set(p->work, &p->out->memory, p->found.at.at[i].leaf, made);
  }
}

static void make(void *arg) {
  preparing *p = arg;
  compile(p);
  run(p);
  keep(p);
}

void prepare_constants(tn_context *c, const plan_graph *g, const node *const roots[], size_t n,
                       arena *work, prepared *out) {
  preparing p = {.c = c, .g = g, .work = work, .out = out};
  *out = (prepared){0};
  p.found = schedule_constants(g->ir, &(constants_request){.roots = roots,
                                                           .n_roots = n,
                                                           .is_constant = is_constant,
                                                           .user = &p,
                                                           .math = (int)c->math});
  out->roots = p.found.roots;
  if (!p.found.at.n) return;
  tn_status s = diag_catch(work->diag, make, &p);
  execution_close(p.execution);
  executable_release(p.executable);
  if (s != TN_OK) diag_rethrow(work->diag);
}

void prepare_release(prepared *p) {
  for (size_t i = 0; i < p->held.n; i++) buffer_release(p->held.at[i]);
}
