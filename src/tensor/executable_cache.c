#include "tensor/executable_cache.h"

#include "base/intern.h"
#include "ir/graph_key.h"
#include "tensor/custom_host.h"

#include <string.h>

/* The bounds: so many executables, and so many bytes of their graphs, to which what is made of a
   graph is in proportion. Those used least recently go first. context.h says so too. */
enum { MOST_EXECUTABLES = 64, MOST_BYTES = 64 << 20 };

/** An executable by the bytes of its graph. Compared whole; the hash only finds it. */
typedef struct entry {
  uint64_t hash;
  unsigned char *key;
  size_t bytes;
  executable *made;
  size_t *inputs; /* the buffer of each BUFFER */
  size_t n_inputs;
  uint64_t used; /* when; 0: no entry */
} entry;

struct executable_cache {
  entry at[MOST_EXECUTABLES];
  size_t n, bytes; /* kept, and their keys */
  uint64_t now;
};

/* The key: the graph, with whether each BUFFER may be overwritten, and its roots. */

typedef struct key_job {
  tn_context *c;
  const executable_ask *ask;
  str key;
  size_t buffers;
  bool custom;
  size_t *inputs;
} key_job;

static void make_key(void *arg) {
  key_job *j = arg;
  const executable_ask *ask = j->ask;
  const node_list *order = ask->order;
  graph_key graph = {.to = &j->key};
  j->key = str_new(&j->c->arena);
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool is_buffer = n->op == OP_BUFFER;
    graph_key_add(&graph, n, is_buffer && ask->may_overwrite && ask->may_overwrite(ask->user, n));
    j->buffers += is_buffer;
    j->custom |= n->op == OP_CUSTOM;
  }
  for (size_t i = 0; i < ask->n_roots; i++) graph_key_refer(&graph, ask->roots[i]);
  j->inputs = arena_alloc(&j->c->arena, (j->buffers + 1) * sizeof *j->inputs);
}

/* Entries. */

static void forget(tn_context *c, entry *e) {
  if (!e->used) return;
  c->executables->n--;
  c->executables->bytes -= e->bytes;
  executable_release(e->made);
  mem_free(&c->mem, e->key, e->bytes);
  mem_free(&c->mem, e->inputs, e->n_inputs * sizeof *e->inputs);
  *e = (entry){0};
}

void executable_cache_free(tn_context *c) {
  if (!c->executables) return;
  for (size_t i = 0; i < MOST_EXECUTABLES; i++) forget(c, &c->executables->at[i]);
  mem_free(&c->mem, c->executables, sizeof *c->executables);
  c->executables = NULL;
}

static entry *find(tn_context *c, const key_job *j, uint64_t hash) {
  for (size_t i = 0; c->executables && i < MOST_EXECUTABLES; i++) {
    entry *e = &c->executables->at[i];
    if (e->used && e->hash == hash && e->bytes == j->key.n && !memcmp(e->key, j->key.at, e->bytes))
      return e;
  }
  return NULL;
}

static entry *oldest(executable_cache *x) {
  entry *e = NULL;
  for (size_t i = 0; i < MOST_EXECUTABLES; i++)
    if (x->at[i].used && (!e || x->at[i].used < e->used)) e = &x->at[i];
  return e;
}

/** There is one. */
static entry *free_entry(executable_cache *x) {
  entry *e = x->at;
  while (e->used) e++;
  return e;
}

/** Keeps one in place of those used least recently. Without memory it is not kept. */
static void keep(tn_context *c, const key_job *j, uint64_t hash, executable *p) {
  if (j->key.n > MOST_BYTES) return;
  if (!c->executables) c->executables = mem_calloc(&c->mem, 1, sizeof *c->executables);
  executable_cache *x = c->executables;
  if (!x) return;
  while (x->n == MOST_EXECUTABLES || x->bytes + j->key.n > MOST_BYTES) forget(c, oldest(x));
  entry e = {.hash = hash, .bytes = j->key.n, .n_inputs = j->buffers};
  e.key = mem_alloc(&c->mem, e.bytes);
  e.inputs = mem_alloc(&c->mem, e.n_inputs * sizeof *e.inputs);
  if (!e.key || !e.inputs) {
    mem_free(&c->mem, e.key, e.bytes);
    mem_free(&c->mem, e.inputs, e.n_inputs * sizeof *e.inputs);
    return;
  }
  memcpy(e.key, j->key.at, e.bytes);
  memcpy(e.inputs, j->inputs, e.n_inputs * sizeof *e.inputs);
  e.made = executable_retain(p);
  e.used = ++x->now;
  x->n++;
  x->bytes += e.bytes;
  *free_entry(x) = e;
}

static tn_status compile(tn_context *c, const executable_ask *a, executable **out) {
  executable_request r = {.name = "realize",
                          .roots = a->roots,
                          .n_roots = a->n_roots,
                          .target = c->target,
                          .math = (int)c->math,
                          .may_overwrite = a->may_overwrite,
                          .user = a->user,
                          .dump = &c->dump,
                          .progress = c->progress.step ? &c->progress : NULL,
                          .logger = &c->logger,
                          .disk = c->disk,
                          .reports = &c->reports};
  tn_status s = custom_host_of(c, a->order, &r.host);
  /* The host functions are the executable's from here on. */
  if (s == TN_OK) s = executable_make(out, &r, &c->mem, &c->diag);
  if (s == TN_OK)
    context_log(c, TN_LOG_DEBUG, "a plan of %zu steps, %zu kernels", executable_steps(*out),
                executable_kernels(*out));
  return s;
}

static void find_inputs(const key_job *j, const executable *p) {
  const node_list *order = j->ask->order;
  for (size_t i = 0, k = 0; i < order->n; i++)
    if (order->at[i]->op == OP_BUFFER)
      j->inputs[k++] = executable_input(p, order->at[i]->ints[0], order->at[i]->ints[1]);
}

tn_status executable_cache_get(tn_context *c, const executable_ask *a, executable **out,
                               size_t **inputs) {
  key_job j = {.c = c, .ask = a};
  *out = NULL;
  tn_status s = diag_catch(&c->diag, make_key, &j);
  if (s != TN_OK) return s;
  *inputs = j.inputs;
  uint64_t hash = intern_hash(j.key.at, j.key.n, j.key.n);
  entry *e = find(c, &j, hash);
  if (e) {
    e->used = ++c->executables->now;
    memcpy(j.inputs, e->inputs, j.buffers * sizeof *j.inputs);
    *out = executable_retain(e->made);
    return TN_OK;
  }
  s = compile(c, a, out);
  if (s == TN_ERR_MEMORY && c->executables) { /* what is kept here holds kernels, too */
    executable_cache_free(c);
    s = compile(c, a, out);
  }
  if (s != TN_OK) return s;
  find_inputs(&j, *out);
  if (!j.custom) keep(c, &j, hash, *out); /* it holds its host functions */
  return s;
}
