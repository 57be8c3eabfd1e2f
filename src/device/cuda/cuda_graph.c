/* Implements graphs of kernels as the driver's: a node for each, and one instance, whose nodes are
   given other launches before a run where these have changed. A kernel launched by a graph costs
   less time of the processor's than one launched by itself, and starts sooner after the one before
   it. The graph is kept beside its instance, as its nodes name those of the instance. */
#include "device/cuda/cuda_device.h"

typedef struct graph {
  cuda_device *device;
  cuda_graph graph;         /* NULL: none */
  cuda_graph_exec instance; /* likewise */
  cuda_node *nodes;
  size_t n;
} graph;

static tn_status fill_node(cuda_node_launch *to, cuda_launch *l, const cuda_device *v,
                           const tn_work *w, tn_failure *f) {
  if (!((const cuda_program *)w->program)->function)
    return tn_fail(f, TN_ERR_UNSUPPORTED, "a product that cuBLAS computes is no kernel of a graph");
  tn_status status = cuda_launch_fill(l, v, w, f);
  if (status) return status;
  *to = (cuda_node_launch){.function = l->function, .arguments = l->arguments};
  for (int i = 0; i < 3; i++) to->grid[i] = l->grid[i], to->group[i] = l->group[i];
  return TN_OK;
}

/** Adds the i-th node, after those that edges lead from; `before` has room for all nodes. */
static tn_status add_node(graph *g, size_t i, const tn_work *w, const tn_work_edge edges[],
                          size_t n_edges, cuda_node *before, tn_failure *f) {
  cuda_node_launch node;
  cuda_launch l;
  tn_status status = fill_node(&node, &l, g->device, w, f);
  if (status) return status;
  size_t n = 0;
  for (size_t k = 0; k < n_edges; k++)
    if (edges[k].after == i) before[n++] = g->nodes[edges[k].before];
  cuda_status s =
      g->device->cu.GraphAddKernelNode(&g->nodes[i], g->graph, n ? before : NULL, n, &node);
  return s ? cuda_fail(g->device, "cuGraphAddKernelNode", s, TN_ERR_UNSUPPORTED, f) : TN_OK;
}

static tn_status instantiate(graph *g, tn_failure *f) {
  cuda_status s = g->device->cu.GraphInstantiate_v2(&g->instance, g->graph, NULL, NULL, 0);
  if (!s) return TN_OK;
  g->instance = NULL;
  return cuda_fail(g->device, "cuGraphInstantiate", s, TN_ERR_UNSUPPORTED, f);
}

/** Fills an empty graph in the device's context. */
static tn_status fill_graph(graph *g, const tn_work works[], const tn_work_edge edges[],
                            size_t n_edges, tn_failure *f) {
  cuda_device *v = g->device;
  cuda_status s = v->cu.GraphCreate(&g->graph, 0);
  if (s) {
    g->graph = NULL;
    return cuda_fail(v, "cuGraphCreate", s, TN_ERR_UNSUPPORTED, f);
  }
  cuda_node *before = mem_calloc(&v->mem, n_edges + 1, sizeof(cuda_node));
  tn_status status = before ? TN_OK : tn_fail(f, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < g->n && !status; i++)
    status = add_node(g, i, &works[i], edges, n_edges, before, f);
  mem_free(&v->mem, before, (n_edges + 1) * sizeof(cuda_node));
  return status ? status : instantiate(g, f);
}

static void graph_free(void *at) {
  graph *g = at;
  cuda_device *v = g->device;
  tn_failure unread;
  if (g->graph && !cuda_enter(v, &unread)) {
    if (g->instance) v->cu.GraphExecDestroy(g->instance);
    v->cu.GraphDestroy(g->graph);
    cuda_leave(v);
  }
  mem_free(&v->mem, g->nodes, g->n * sizeof(cuda_node));
  mem_free(&v->mem, g, sizeof *g);
}

static tn_status graph_make(void *device, const tn_work works[], size_t n,
                            const tn_work_edge edges[], size_t n_edges, void **at, tn_failure *f) {
  cuda_device *v = device;
  graph *g = mem_calloc(&v->mem, 1, sizeof *g);
  if (!g) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  g->device = v;
  g->n = n;
  g->nodes = mem_calloc(&v->mem, n, sizeof(cuda_node));
  tn_status status = g->nodes ? TN_OK : tn_fail(f, TN_ERR_MEMORY, "out of memory");
  if (!status) status = cuda_enter(v, f);
  if (!status) {
    status = fill_graph(g, works, edges, n_edges, f);
    cuda_leave(v);
  }
  if (status)
    graph_free(g);
  else
    *at = g;
  return status;
}

static tn_status graph_set(void *at, size_t i, const tn_work *work, tn_failure *f) {
  graph *g = at;
  cuda_device *v = g->device;
  cuda_node_launch node;
  cuda_launch l;
  tn_status status = fill_node(&node, &l, v, work, f);
  if (!status) status = cuda_enter(v, f);
  if (status) return status;
  cuda_status s = v->cu.GraphExecKernelNodeSetParams(g->instance, g->nodes[i], &node);
  if (s) status = cuda_fail(v, "cuGraphExecKernelNodeSetParams", s, TN_ERR_UNSUPPORTED, f);
  cuda_leave(v);
  return status;
}

static tn_status graph_run(void *stream, void *at, tn_failure *f) {
  const cuda_queue *q = stream;
  const graph *g = at;
  cuda_device *v = q->device;
  if (atomic_load(&v->is_lost)) return cuda_fail_lost(v, f);
  tn_status status = cuda_enter(v, f);
  if (status) return status;
  cuda_status s = v->cu.GraphLaunch(g->instance, q->stream);
  if (s) status = cuda_fail(v, "cuGraphLaunch", s, TN_ERR_UNSUPPORTED, f);
  cuda_leave(v);
  return status;
}

const tn_graph_functions cuda_graphs = {.size = sizeof cuda_graphs,
                                        .make = graph_make,
                                        .set = graph_set,
                                        .run = graph_run,
                                        .free = graph_free};
