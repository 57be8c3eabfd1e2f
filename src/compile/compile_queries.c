/* Questions about kernels whose answers need a compilation's keys, library or code generation, but
   no compiled program: the code under given decisions, names in stores of tuned schedules,
   libraries. */
#include "compile/compilation.h"

typedef struct generation {
  compilation c; /* begins it: what compilation_run passes on */
  ir *passes;
  const node *sink;
  const char *decisions;
  const node *program;
} generation;

static void generate_with_decisions(void *arg) {
  generation *n = arg;
  decision_list decisions;
  if (!decisions_parse(ir_arena(n->passes), n->decisions, &decisions))
    diag_raise(n->c.diag, TN_ERR_ARGUMENT, "\"%.100s\" are no decisions", n->decisions);
  n->program = compilation_generate(&n->c, n->passes, n->c.ir, n->sink, &decisions, NULL);
}

tn_status compile_generate(const compile_options *o, ir *g, const node *sink, const char *decisions,
                           const node **program, diag *d) {
  generation n = {.c = {.options = o, .ir = g},
                  .passes = ir_new(ir_mem(g), ir_diag(g), false),
                  .sink = sink,
                  .decisions = decisions};
  tn_status status = n.passes ? compilation_run_on_kernels(&n.c, generate_with_decisions, d)
                              : diag_set(d, TN_ERR_MEMORY, "out of memory");
  ir_free(n.passes);
  *program = status ? NULL : n.program;
  return status;
}

typedef struct key_list {
  compilation c; /* begins it: what compilation_run passes on */
  arena *to;
  const char **keys;
} key_list;

static void list_tuned_keys(void *arg) {
  key_list *l = arg;
  compilation_begin_kernels(&l->c);
  for (size_t i = 0; i < l->c.work.n; i++)
    l->keys[i] = arena_printf(l->to, "%s", request_tuned_key(&l->c, &l->c.work.requests[i]));
}

tn_status compile_tuned_keys(const compile_options *o, ir *g, const node *const kernels[], size_t n,
                             arena *a, const char *keys[], diag *d) {
  key_list l = {
      .c = {.options = o, .ir = g, .work = {.kernels = kernels, .n = n}}, .to = a, .keys = keys};
  return compilation_run_on_kernels(&l.c, list_tuned_keys, d);
}

typedef struct library_search {
  compilation c; /* begins it: what compilation_run passes on */
  const node *sink;
  const char **names; /* of the work's kernels; or of the sink alone */
} library_search;

static void find_library(void *arg) {
  library_search *l = arg;
  if (!compilation_find_product(&l->c, l->sink)) return;
  const tn_product_library *found = compilation_open_library(&l->c);
  if (found) *l->names = found->name;
}

const char *compile_library_for(const compile_options *o, ir *g, const node *sink) {
  const char *name = NULL;
  library_search l = {.c = {.options = o, .ir = g}, .sink = sink, .names = &name};
  if (compilation_run_on_kernels(&l.c, find_library, ir_diag(g)) == TN_ERR_MEMORY)
    diag_rethrow(ir_diag(g));
  return name;
}

static void list_libraries(void *arg) {
  library_search *l = arg;
  compilation_begin_kernels(&l->c);
  for (size_t i = 0; i < l->c.work.n; i++)
    l->names[i] =
        l->c.work.requests[i].product ? l->c.target->device->backend->products->name : NULL;
}

tn_status compile_list_libraries(const compile_options *o, ir *g, const node *const kernels[],
                                 size_t n, const char *names[], diag *d) {
  library_search l = {.c = {.options = o, .ir = g, .work = {.kernels = kernels, .n = n}},
                      .names = names};
  return compilation_run_on_kernels(&l.c, list_libraries, d);
}
