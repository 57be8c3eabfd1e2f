/* Implements the lines about graphs: the parts of the last run are summed by device and by the
   reason for which they are no graph. */
#include "cli/measure/graph_lines.h"

#include "cli/core/text_format.h"

#include <string.h>
#include <tenon/unstable/schedule.h>

/** Parts of a run with one reason. */
typedef struct graph_sum {
  tn_kernel_run of; /* one of them */
  size_t parts, kernels;
} graph_sum;

typedef VEC(graph_sum) graph_sums;

static void add_part(arena *a, graph_sums *sums, const tn_kernel_run *part) {
  size_t i = 0;
  while (i < sums->n && (strcmp(sums->at[i].of.device, part->device) != 0 ||
                         strcmp(sums->at[i].of.why, part->why) != 0))
    i++;
  if (i == sums->n) {
    graph_sum new = {.of = *part};
    new.of.device = arena_printf(a, "%s", part->device); /* lives until the next call */
    new.of.why = arena_printf(a, "%s", part->why);
    vec_push(a, sums, new);
  }
  sums->at[i].parts++;
  sums->at[i].kernels += part->kernels;
}

static const char *line_of(arena *a, const graph_sum *s) {
  const char *kernels = text_count(a, s->kernels, "kernel");
  if (s->of.is_graph)
    return arena_printf(a, "%s of %s in %s", kernels, s->of.device,
                        text_count(a, s->parts, "graph"));
  return arena_printf(a, "%s of %s in no graph: %s", kernels, s->of.device,
                      text_escape(a, s->of.why));
}

graph_lines graph_lines_find(command *c, tn_binding *b) {
  enum { RUNS = 2 }; /* the second makes graphs */
  graph_lines found = {0};
  graph_sums sums = {0};
  tn_kernel_run part = TN_KERNEL_RUN_INIT;
  command_check_binding(c, tn_binding_profile(b, false), b);
  for (int i = 0; i < RUNS; i++) command_check_binding(c, tn_binding_run(b), b);
  for (size_t i = 0; tn_binding_kernel_run(b, i, &part) == TN_OK; i++)
    add_part(&c->arena, &sums, &part);
  for (size_t i = 0; i < sums.n; i++)
    vec_push(&c->arena, &found.lines, line_of(&c->arena, &sums.at[i]));
  return found;
}
