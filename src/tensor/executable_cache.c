#include "tensor/executable_cache.h"

#include "base/intern.h"
#include "ir/graph_key.h"
#include "tensor/custom_host.h"
#include "tensor/form.h"

#include <string.h>

/* The bounds: so many executables, and so many bytes of their graphs, to which what is made of a
   graph is in proportion. Those used least recently go first. context.h says so too. */
enum { MOST_EXECUTABLES = 64, MOST_BYTES = 64 << 20 };

/** An executable by the bytes of its graph's form. Compared whole; the hash only finds it. */
typedef struct entry {
  uint64_t hash;
  arena arena; /* of all that follows but the executable */
  const unsigned char *key;
  size_t key_bytes;
  form form;
  executable *made;
  size_t *inputs;   /* the buffer of each BUFFER */
  int64_t *customs; /* the number of each CUSTOM */
  size_t *vars;     /* the variable of each of the form's; SIZE_MAX: nothing reads it */
  size_t bytes;
  uint64_t used; /* when; 0: no entry */
} entry;

struct executable_cache {
  entry at[MOST_EXECUTABLES];
  size_t n, bytes; /* kept, and their keys */
  size_t latest;   /* the one found last, where looking begins */
  uint64_t now;
};

/* The key: the form of the graph, with whether each BUFFER may be overwritten, and its roots. */

typedef struct job {
  tn_context *c;
  const executable_ask *ask;
  str key;
  uint64_t hash;
  scalar_list scalars;
  size_t buffers, customs;
  form form; /* that the executable is made for */
  entry *found;
  map originals;
  const node **roots; /* with variables */
  executable_answer *out;
} job;

static void make_key(job *j) {
  const executable_ask *ask = j->ask;
  const node_list *order = ask->order;
  graph_key graph = {.to = &j->key, .scalars = &j->scalars};
  j->key = str_new(&j->c->arena);
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool is_buffer = n->op == OP_BUFFER;
    graph_key_add(&graph, n, is_buffer && ask->may_overwrite && ask->may_overwrite(ask->user, n));
    j->buffers += is_buffer;
    j->customs += n->op == OP_CUSTOM;
  }
  for (size_t i = 0; i < ask->n_roots; i++) graph_key_refer(&graph, ask->roots[i]);
  j->hash = intern_hash(j->key.at, j->key.n, j->key.n);
}

/* Entries. */

static void forget(tn_context *c, entry *e) {
  if (!e->used) return;
  c->executables->n--;
  c->executables->bytes -= e->bytes;
  executable_release(e->made);
  arena_free(&e->arena);
  *e = (entry){0};
}

void executable_cache_free(tn_context *c) {
  if (!c->executables) return;
  for (size_t i = 0; i < MOST_EXECUTABLES; i++) forget(c, &c->executables->at[i]);
  mem_free(&c->mem, c->executables, sizeof *c->executables);
  c->executables = NULL;
}

static bool is_of_form(const entry *e, const job *j) {
  return e->used && e->hash == j->hash && e->key_bytes == j->key.n &&
         !memcmp(e->key, j->key.at, j->key.n);
}

/** The entry for a graph, or NULL, and then the newest of its form, *like, which holds for all that
    those before it do. */
static entry *find(const job *j, const entry **like) {
  executable_cache *x = j->c->executables;
  *like = NULL;
  for (size_t i = 0; x && i < MOST_EXECUTABLES; i++) {
    entry *e = &x->at[(x->latest + i) % MOST_EXECUTABLES];
    if (!is_of_form(e, j)) continue;
    if (form_holds(&e->form, &j->scalars)) return e;
    if (!*like || e->form.n_vars > (*like)->form.n_vars) *like = e;
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

typedef struct filling {
  const job *j;
  entry *e;
} filling;

static void fill(void *arg) {
  filling *f = arg;
  const job *j = f->j;
  entry *e = f->e;
  e->key = arena_copy(&e->arena, j->key.at, j->key.n);
  e->form = form_copy(&e->arena, &j->form);
  e->inputs = arena_copy(&e->arena, j->out->inputs, j->buffers * sizeof *e->inputs);
  e->vars = arena_copy(&e->arena, j->out->vars, j->form.n_vars * sizeof *e->vars);
  e->customs = arena_alloc(&e->arena, (j->customs + 1) * sizeof *e->customs);
  const node_list *order = j->ask->order;
  for (size_t i = 0, k = 0; i < order->n; i++)
    if (order->at[i]->op == OP_CUSTOM) e->customs[k++] = order->at[i]->ints[0];
}

/** Keeps one in place of those used least recently. Without memory it is not kept. */
static void keep(const job *j) {
  tn_context *c = j->c;
  size_t bytes = j->key.n + j->scalars.n * (sizeof *j->form.values + sizeof *j->form.which);
  if (bytes > MOST_BYTES) return;
  if (!c->executables) c->executables = mem_calloc(&c->mem, 1, sizeof *c->executables);
  executable_cache *x = c->executables;
  if (!x) return;
  while (x->n == MOST_EXECUTABLES || x->bytes + bytes > MOST_BYTES) forget(c, oldest(x));
  diag d = {0};
  entry e = {.hash = j->hash, .key_bytes = j->key.n, .bytes = bytes};
  arena_init(&e.arena, &c->mem, &d);
  if (diag_catch(&d, fill, &(filling){j, &e}) != TN_OK) {
    arena_free(&e.arena);
    return;
  }
  e.arena.diag = NULL;
  e.made = executable_retain(j->out->made);
  e.used = ++x->now;
  x->n++;
  x->bytes += bytes;
  *free_entry(x) = e;
}

/* Compiling. */

static bool may_overwrite(void *user, const node *buffer) {
  const job *j = user;
  const node *original = map_get(&j->originals, buffer);
  return j->ask->may_overwrite && j->ask->may_overwrite(j->ask->user, original ? original : buffer);
}

static tn_status compile(job *j, const node *const roots[]) {
  tn_context *c = j->c;
  executable_request r = {.name = "realize",
                          .roots = roots,
                          .n_roots = j->ask->n_roots,
                          .target = c->target,
                          .math = (int)c->math,
                          .may_overwrite = may_overwrite,
                          .user = j,
                          .dump = &c->dump,
                          .progress = c->progress.step ? &c->progress : NULL,
                          .logger = &c->logger,
                          .disk = c->disk,
                          .reports = &c->reports};
  tn_status s = executable_make(&j->out->made, &r, &c->mem, &c->diag);
  if (s == TN_OK)
    context_log(c, TN_LOG_DEBUG, "a plan of %zu steps, %zu kernels, %zu scalars that vary",
                executable_steps(j->out->made), executable_kernels(j->out->made), j->form.n_vars);
  return s;
}

typedef struct lifting {
  job *j;
  ir *to;
} lifting;

static void lift(void *arg) {
  lifting *l = arg;
  job *j = l->j;
  const executable_ask *ask = j->ask;
  arena *a = ir_arena(l->to);
  const scalar *vars = form_vars(a, &j->form, &j->scalars);
  j->roots = arena_alloc(a, (ask->n_roots + 1) * sizeof *j->roots);
  scalars_lift(l->to, a, ask->order, ask->roots, ask->n_roots,
               &(scalar_vars){j->form.which, vars, j->form.n_vars}, &j->originals, j->roots);
}

/** As compile, with variables. */
static tn_status compile_lifted(job *j) {
  tn_context *c = j->c;
  lifting l = {j, ir_new(&c->mem, &c->diag, false)};
  if (!l.to) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  j->originals = (map){0};
  tn_status s = diag_catch(&c->diag, lift, &l);
  if (s == TN_OK) s = compile(j, j->roots);
  j->originals = (map){0};
  ir_free(l.to);
  return s;
}

static tn_status compile_either(job *j) {
  return j->form.n_vars ? compile_lifted(j) : compile(j, j->ask->roots);
}

/* Answers. */

static void find_inputs(const job *j) {
  const node_list *order = j->ask->order;
  for (size_t i = 0, k = 0; i < order->n; i++)
    if (order->at[i]->op == OP_BUFFER)
      j->out->inputs[k++] =
          executable_input(j->out->made, order->at[i]->ints[0], order->at[i]->ints[1]);
}

static void find_vars(const job *j) {
  char name[SCALAR_NAME];
  for (size_t i = 0; i < j->form.n_vars; i++) {
    scalar_name(name, SCALAR_OF_GRAPH, i);
    j->out->vars[i] = executable_var(j->out->made, name);
  }
}

static void make_lists(job *j) {
  arena *a = &j->c->arena;
  executable_answer *out = j->out;
  out->inputs = arena_alloc(a, (j->buffers + 1) * sizeof *out->inputs);
  out->vars = arena_alloc(a, (j->form.n_vars + 1) * sizeof *out->vars);
  out->values = arena_alloc(a, (j->form.n_vars + 1) * sizeof *out->values);
  out->n_vars = j->form.n_vars;
  for (size_t i = 0; i < j->form.n_vars; i++)
    out->values[i] = j->scalars.at[j->form.first[i]].value;
}

static void choose_form(job *j) {
  const entry *like, *e = j->found = find(j, &like);
  arena *a = &j->c->arena;
  if (e)
    j->form = e->form;
  else
    j->form = like ? form_widened(a, &like->form, &j->scalars) : form_of(a, &j->scalars);
}

static void begin(void *arg) {
  make_key(arg);
  choose_form(arg);
  make_lists(arg);
}

static tn_status make(job *j) {
  tn_context *c = j->c;
  tn_status s = compile_either(j);
  if (s == TN_ERR_MEMORY && c->executables) { /* what is kept here holds kernels, too */
    executable_cache_free(c);
    s = compile_either(j);
  }
  if (s != TN_OK) return s;
  find_inputs(j);
  find_vars(j);
  return s;
}

static void touch(executable_cache *x, entry *e) {
  e->used = ++x->now;
  x->latest = (size_t)(e - x->at);
}

static void take(const job *j) {
  const entry *e = j->found;
  memcpy(j->out->inputs, e->inputs, j->buffers * sizeof *e->inputs);
  memcpy(j->out->vars, e->vars, e->form.n_vars * sizeof *e->vars);
  j->out->made = executable_retain(e->made);
}

/** Host functions are each graph's own. */
static tn_status find_host(const job *j) {
  executable_answer *out = j->out;
  const int64_t *uids = j->found ? j->found->customs : NULL;
  tn_status s = custom_host_of(j->c, j->ask->order, uids, &out->host);
  if (s == TN_OK) return s;
  executable_release(out->made);
  out->made = NULL;
  return s;
}

tn_status executable_cache_get(tn_context *c, const executable_ask *a, executable_answer *out) {
  job j = {.c = c, .ask = a, .out = out};
  *out = (executable_answer){0};
  tn_status s = diag_catch(&c->diag, begin, &j);
  if (s != TN_OK) return s;
  if (j.found) {
    touch(c->executables, j.found);
    take(&j);
  } else {
    s = make(&j);
    if (s == TN_OK) keep(&j);
  }
  return s == TN_OK ? find_host(&j) : s;
}
