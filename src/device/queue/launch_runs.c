/* Finds runs of launches in command lists, and puts the commands for their graphs before them. */
#include "device/queue/launch_runs.h"

/** True for the launch of a library's function, which no graph takes. */
static bool is_of_library(const command *k) {
  return k->kind == COMMAND_EXEC && k->program->library;
}

bool command_list_find_launches(const tn_commands *c, size_t from, launch_run *run) {
  *run = (launch_run){.first = from};
  while (run->first < c->n && c->at[run->first].kind != COMMAND_EXEC) run->first++;
  for (size_t i = run->first; i < c->n; i++) {
    if (c->at[i].kind != COMMAND_EXEC && c->at[i].kind != COMMAND_BARRIER) break;
    if (c->at[i].kind != COMMAND_EXEC) continue;
    if (run->n && is_of_library(&c->at[i])) break;
    run->end = i + 1;
    run->n++;
    if (is_of_library(&c->at[i])) break;
  }
  if (!run->n) return false;
  if (run->first) run->graph = c->at[run->first - 1].graph;
  if (!c->device->backend->graphs) {
    run->why = "its backend has no graphs";
  } else if (is_of_library(&c->at[run->first])) {
    run->why = "it is a call of a library";
  } else if (!run->graph) {
    run->why = "the kernel stands alone between other commands of its queue";
  } else {
    run->why = work_graph_why(run->graph);
  }
  return true;
}

/** Moves the commands to an array with room for graphs, and puts them before their launches. */
static bool insert_graphs(tn_commands *c, size_t n_graphs) {
  const mem *m = c->device->mem;
  size_t n = 0, from = 0, cap = c->n + n_graphs;
  command *at = mem_alloc(m, cap * sizeof *at);
  bool is_complete = at != NULL;
  launch_run run;
  while (at && command_list_find_launches(c, from, &run)) {
    for (; from < run.first; from++) at[n++] = c->at[from];
    work_graph *g = run.n > 1 ? work_graph_open(c->device, run.n) : NULL;
    is_complete &= g || run.n == 1;
    if (g) at[n++] = (command){.kind = COMMAND_GRAPH, .graph = g};
    for (; from < run.end; from++) at[n++] = c->at[from];
  }
  if (!at) return false;
  for (; from < c->n; from++) at[n++] = c->at[from];
  mem_free(m, c->at, c->cap * sizeof *c->at);
  c->at = at;
  c->n = n;
  c->cap = cap;
  return is_complete;
}

void command_list_add_graphs(tn_commands *c) {
  size_t n_graphs = 0;
  launch_run run;
  if (!c->device->backend->graphs || c->failure.status) return;
  for (size_t at = 0; command_list_find_launches(c, at, &run); at = run.end) n_graphs += run.n > 1;
  if (n_graphs && !insert_graphs(c, n_graphs)) tn_fail(&c->failure, TN_ERR_MEMORY, "out of memory");
}
