/* Implements graphs of works. Works are ordered as their list orders them, each after the one
   before: memory of a plan is placed for this order. The works that the backend has are kept, and
   compared with those of each run. */
#include "device/queue/work_graph.h"

#include "base/thread.h"
#include "device/memory/caching_allocator.h"

#include <string.h>

/** A work as the graph has it, with copies of its launch. Buffers are told apart by the backend's
    handles, and a handle that was freed may stand for other memory. */
typedef struct kept_work {
  tn_work work;
  tn_launch launch;
  tn_span *buffers;
  int64_t *values;
} kept_work;

struct work_graph {
  tn_device *device;
  size_t n;
  mutex lock; /* of what follows: a list's owner asks for the reason while the list runs */
  bool has_run;
  void *handle;        /* the backend's; NULL: none */
  tn_failure failure;  /* why it was refused: it could not be made, changed or run */
  bool is_told;        /* the failure, to work_graph_take_refusal's caller */
  tn_work *works;      /* of the run at hand */
  kept_work *kept;     /* that the handle has */
  uint64_t freed;      /* blocks that the device's allocator had freed when they were kept */
  tn_work_edge *edges; /* a chain */
};

static const tn_graph_functions *functions(const work_graph *g) {
  return g->device->backend->graphs;
}

/* Opening and freeing. */

static void free_kept(work_graph *g, kept_work *k) {
  const mem *m = g->device->mem;
  mem_free(m, k->buffers, k->launch.n_buffers * sizeof *k->buffers);
  mem_free(m, k->values, k->launch.n_values * sizeof *k->values);
}

void work_graph_free(work_graph *g) {
  if (!g) return;
  const mem *m = g->device->mem;
  if (g->handle) functions(g)->free(g->handle);
  for (size_t i = 0; g->kept && i < g->n; i++) free_kept(g, &g->kept[i]);
  mem_free(m, g->kept, g->n * sizeof *g->kept);
  mem_free(m, g->works, g->n * sizeof *g->works);
  mem_free(m, g->edges, g->n * sizeof *g->edges);
  mutex_free(&g->lock);
  mem_free(m, g, sizeof *g);
}

work_graph *work_graph_open(tn_device *device, size_t n) {
  work_graph *g = mem_calloc(device->mem, 1, sizeof *g);
  if (!g) return NULL;
  g->device = device;
  g->n = n;
  mutex_init(&g->lock);
  return g;
}

size_t work_graph_size(const work_graph *g) { return g->n; }

const char *work_graph_why(work_graph *g) {
  mutex_lock(&g->lock);
  const char *why = g->failure.status ? g->failure.text : g->handle ? NULL : "it ran once at most";
  mutex_unlock(&g->lock);
  return why;
}

/* Works. */

static bool are_same_bytes(const void *a, const void *b, size_t n) {
  return !n || !memcmp(a, b, n);
}

/** True if two works of one program are launched alike. */
static bool is_same(const tn_work *a, const tn_work *b) {
  const tn_launch *x = a->launch, *y = b->launch;
  return are_same_bytes(a->global, b->global, sizeof a->global) &&
         are_same_bytes(a->local, b->local, sizeof a->local) &&
         are_same_bytes(x->buffers, y->buffers, x->n_buffers * sizeof *x->buffers) &&
         are_same_bytes(x->values, y->values, x->n_values * sizeof *x->values);
}

static void keep_work(kept_work *k, const tn_work *w) {
  k->work = *w;
  k->work.launch = &k->launch;
  if (w->launch->n_buffers)
    memcpy(k->buffers, w->launch->buffers, w->launch->n_buffers * sizeof *k->buffers);
  if (w->launch->n_values)
    memcpy(k->values, w->launch->values, w->launch->n_values * sizeof *k->values);
}

static bool open_kept(work_graph *g, kept_work *k, const tn_launch *l) {
  const mem *m = g->device->mem;
  k->buffers = mem_calloc(m, l->n_buffers, sizeof *k->buffers);
  k->values = mem_calloc(m, l->n_values, sizeof *k->values);
  k->launch = (tn_launch){k->buffers, l->n_buffers, k->values, l->n_values};
  return (k->buffers || !l->n_buffers) && (k->values || !l->n_values);
}

/** Allocates the lists of works, once. */
static bool open_works(work_graph *g) {
  const mem *m = g->device->mem;
  if (!g->works) g->works = mem_calloc(m, g->n, sizeof *g->works);
  if (!g->kept) g->kept = mem_calloc(m, g->n, sizeof *g->kept);
  if (!g->edges) g->edges = mem_calloc(m, g->n, sizeof *g->edges);
  return g->works && g->kept && g->edges;
}

static tn_status make(work_graph *g, tn_failure *f) {
  g->freed = caching_allocator_freed(g->device->allocator);
  for (size_t i = 0; i < g->n; i++) {
    if (!open_kept(g, &g->kept[i], g->works[i].launch))
      return tn_fail(f, TN_ERR_MEMORY, "out of memory");
    keep_work(&g->kept[i], &g->works[i]);
    g->edges[i] = (tn_work_edge){i, i + 1};
  }
  return functions(g)->make(g->device->state, g->works, g->n, g->edges, g->n - 1, &g->handle, f);
}

static tn_status update(work_graph *g, tn_failure *f) {
  tn_status status = TN_OK;
  uint64_t freed = caching_allocator_freed(g->device->allocator);
  for (size_t i = 0; i < g->n && !status; i++) {
    if (freed == g->freed && is_same(&g->works[i], &g->kept[i].work)) continue;
    status = functions(g)->set(g->handle, i, &g->works[i], f);
    if (!status) keep_work(&g->kept[i], &g->works[i]);
  }
  g->freed = freed;
  return status;
}

/** Keeps the reason for which there is no graph; under the lock. */
static void refuse(work_graph *g, tn_status status, const tn_failure *f) {
  if (g->handle) functions(g)->free(g->handle);
  g->handle = NULL;
  tn_fail(&g->failure, status, "%s", f->text[0] ? f->text : tn_status_text(status));
  atomic_fetch_add(&g->device->refused_graphs, 1);
}

const char *work_graph_take_refusal(work_graph *g) {
  mutex_lock(&g->lock);
  const char *why = g->failure.status && !g->is_told ? g->failure.text : NULL;
  g->is_told |= why != NULL;
  mutex_unlock(&g->lock);
  return why;
}

tn_work *work_graph_begin(work_graph *g) {
  mutex_lock(&g->lock);
  bool is_wanted = g->has_run && !g->failure.status;
  g->has_run = true;
  if (is_wanted && !open_works(g)) {
    is_wanted = false;
    refuse(g, TN_ERR_MEMORY, &(tn_failure){.text = "out of memory"});
  }
  mutex_unlock(&g->lock);
  return is_wanted ? g->works : NULL;
}

bool work_graph_update(work_graph *g) {
  tn_failure f;
  f.text[0] = 0;
  mutex_lock(&g->lock);
  tn_status status = g->handle ? update(g, &f) : make(g, &f);
  if (status) refuse(g, status, &f);
  mutex_unlock(&g->lock);
  return !status;
}

tn_status work_graph_run(work_graph *g, void *stream, bool *is_run, tn_failure *f) {
  tn_status status = functions(g)->run(stream, g->handle, f);
  *is_run = !status;
  if (!status || status == TN_ERR_DEVICE) return status;
  mutex_lock(&g->lock);
  refuse(g, status, f);
  mutex_unlock(&g->lock);
  return TN_OK;
}
