/* Executables by the bytes of their graphs' keys (ir/text/graph_key.h): entries are compared as a
   whole, and a hash finds candidates. A request whose scalars no entry matches widens the newest
   entry of its key (lifted_scalars.h) and compiles the graph with variables. */
#include "tensor/eval/executable_cache.h"

#include "compile/cache_keys.h"
#include "ir/text/graph_key.h"
#include "runtime/build_executable.h"
#include "tensor/context/fill_build_request.h"
#include "tensor/eval/host_calls.h"
#include "tensor/eval/lifted_scalars.h"

#include <string.h>

/* Limits: executables, and bytes of keys, to which the size of an executable is proportional. Least
   recently used entries go first. include/tenon/context.h documents them too. */
enum { MAX_EXECUTABLES = 64, MAX_BYTES = 64 << 20 };

/** A cached executable. */
typedef struct entry {
  uint64_t hash;
  arena arena; /* of the lists below */
  const unsigned char *key;
  size_t key_bytes;
  lifted_scalars lifted;
  executable *executable;
  size_t *inputs;      /* the executable's buffer of each BUFFER */
  int64_t *host_calls; /* the uid of each CUSTOM */
  size_t *vars;        /* the executable's variable of each lifted scalar; SIZE_MAX: not read */
  size_t bytes;
  uint64_t last_used; /* time of the last use; 0: no entry */
} entry;

struct executable_cache {
  entry at[MAX_EXECUTABLES];
  size_t n, bytes; /* entries, and bytes of their keys */
  size_t latest;   /* index of the entry found last, where the search begins */
  uint64_t now;
};

/* Keys: the structure of a graph, its roots, and which BUFFERs may be overwritten. */

typedef struct lookup {
  tn_context *c;
  const executable_cache_request *request;
  str key;
  uint64_t hash;
  liftable_scalar_list scalars;
  size_t buffers, host_calls;
  lifted_scalars lifted; /* of the executable */
  entry *found;
  map originals;
  const node **roots; /* with variables in place of lifted scalars */
  executable_cache_result *out;
} lookup;

static void make_key(lookup *j) {
  const executable_cache_request *request = j->request;
  const node_list *order = request->order;
  graph_key graph = {.to = &j->key, .scalars = &j->scalars};
  j->key = str_new(&j->c->arena);
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    bool is_buffer = n->op == OP_BUFFER;
    graph_key_add(&graph, n,
                  is_buffer && request->may_overwrite && request->may_overwrite(request->user, n));
    j->buffers += is_buffer;
    j->host_calls += n->op == OP_CUSTOM;
  }
  for (size_t i = 0; i < request->n_roots; i++) graph_key_add_root(&graph, request->roots[i]);
  uint64_t hash[2];
  cache_keys_hash(j->key.at, j->key.n, hash); /* few entries: no harm if they collide */
  j->hash = hash[0];
}

/* Entries. */

static void drop_entry(tn_context *c, entry *e) {
  if (!e->last_used) return;
  c->executables->n--;
  c->executables->bytes -= e->bytes;
  executable_release(e->executable);
  arena_free(&e->arena);
  *e = (entry){0};
}

void executable_cache_free(tn_context *c) {
  if (!c->executables) return;
  for (size_t i = 0; i < MAX_EXECUTABLES; i++) drop_entry(c, &c->executables->at[i]);
  mem_free(&c->mem, c->executables, sizeof *c->executables);
  c->executables = NULL;
}

static bool has_key(const entry *e, const lookup *j) {
  return e->last_used && e->hash == j->hash && e->key_bytes == j->key.n &&
         !memcmp(e->key, j->key.at, j->key.n);
}

/** The entry that matches a graph, or NULL. *like is then the newest entry of the key, which is at
    least as general as the others. */
static entry *find_entry(const lookup *j, const entry **like) {
  executable_cache *x = j->c->executables;
  *like = NULL;
  for (size_t i = 0; x && i < MAX_EXECUTABLES; i++) {
    entry *e = &x->at[(x->latest + i) % MAX_EXECUTABLES];
    if (!has_key(e, j)) continue;
    if (lifted_scalars_match(&e->lifted, &j->scalars)) return e;
    if (!*like || e->lifted.n_vars > (*like)->lifted.n_vars) *like = e;
  }
  return NULL;
}

static entry *least_recent(executable_cache *x) {
  entry *e = NULL;
  for (size_t i = 0; i < MAX_EXECUTABLES; i++)
    if (x->at[i].last_used && (!e || x->at[i].last_used < e->last_used)) e = &x->at[i];
  return e;
}

/** A free entry, which exists. */
static entry *free_entry(executable_cache *x) {
  entry *e = x->at;
  while (e->last_used) e++;
  return e;
}

typedef struct fill_job {
  const lookup *j;
  entry *e;
} fill_job;

static void fill_entry(void *arg) {
  fill_job *f = arg;
  const lookup *j = f->j;
  entry *e = f->e;
  e->key = arena_copy(&e->arena, j->key.at, j->key.n);
  e->lifted = lifted_scalars_copy(&e->arena, &j->lifted);
  e->inputs = arena_copy(&e->arena, j->out->inputs, j->buffers * sizeof *e->inputs);
  e->vars = arena_copy(&e->arena, j->out->vars, j->lifted.n_vars * sizeof *e->vars);
  e->host_calls = arena_alloc(&e->arena, (j->host_calls + 1) * sizeof *e->host_calls);
  const node_list *order = j->request->order;
  for (size_t i = 0, k = 0; i < order->n; i++)
    if (order->at[i]->op == OP_CUSTOM) e->host_calls[k++] = order->at[i]->ints[0];
}

/** Adds an executable in place of least recently used ones. Without memory it is not added. */
static void add_entry(const lookup *j) {
  tn_context *c = j->c;
  size_t bytes = j->key.n + j->scalars.n * (sizeof *j->lifted.values + sizeof *j->lifted.var_of);
  if (bytes > MAX_BYTES) return;
  if (!c->executables) c->executables = mem_calloc(&c->mem, 1, sizeof *c->executables);
  executable_cache *x = c->executables;
  if (!x) return;
  while (x->n == MAX_EXECUTABLES || x->bytes + bytes > MAX_BYTES) drop_entry(c, least_recent(x));
  diag d = {0};
  entry e = {.hash = j->hash, .key_bytes = j->key.n, .bytes = bytes};
  arena_init(&e.arena, &c->mem, &d);
  if (diag_catch(&d, fill_entry, &(fill_job){j, &e}) != TN_OK) {
    arena_free(&e.arena);
    return;
  }
  e.arena.diag = NULL;
  e.executable = executable_retain(j->out->executable);
  e.last_used = ++x->now;
  x->n++;
  x->bytes += bytes;
  *free_entry(x) = e;
}

/* Compiling. */

static bool may_overwrite(void *user, const node *buffer) {
  const lookup *j = user;
  const node *original = map_get(&j->originals, buffer);
  return j->request->may_overwrite &&
         j->request->may_overwrite(j->request->user, original ? original : buffer);
}

static tn_status compile_graph(lookup *j, const node *const roots[]) {
  tn_context *c = j->c;
  executable_request r = context_executable_request(c, "realize", roots, j->request->n_roots);
  r.may_overwrite = may_overwrite;
  r.user = j;
  tn_status s = executable_build(&j->out->executable, &r, &c->mem, &c->diag);
  if (s != TN_OK) return s;
  size_t steps = executable_steps(j->out->executable), scalars = j->lifted.n_vars,
         kernels = executable_kernels(j->out->executable);
  context_log(c, TN_LOG_DEBUG, "a plan of %zu step%s, %zu kernel%s, %zu scalar%s", steps,
              steps == 1 ? "" : "s", kernels, kernels == 1 ? "" : "s", scalars,
              scalars == 1 ? " that varies" : "s that vary");
  return s;
}

typedef struct lifting {
  lookup *j;
  ir *to;
} lifting;

static void lift_graph(void *arg) {
  lifting *l = arg;
  lookup *j = l->j;
  const executable_cache_request *request = j->request;
  arena *a = ir_arena(l->to);
  const liftable_scalar *vars = lifted_scalars_vars(a, &j->lifted, &j->scalars);
  j->roots = arena_alloc(a, (request->n_roots + 1) * sizeof *j->roots);
  lift_scalars(l->to, a, request->order, request->roots, request->n_roots,
               &(lifted_var_map){j->lifted.var_of, vars, j->lifted.n_vars}, &j->originals,
               j->roots);
}

/** Compiles the graph, with variables in place of lifted scalars. */
static tn_status compile_executable(lookup *j) {
  tn_context *c = j->c;
  if (!j->lifted.n_vars) return compile_graph(j, j->request->roots);
  lifting l = {j, ir_new(&c->mem, &c->diag, false)};
  if (!l.to) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  j->originals = (map){0};
  tn_status s = diag_catch(&c->diag, lift_graph, &l);
  if (s == TN_OK) s = compile_graph(j, j->roots);
  j->originals = (map){0};
  ir_free(l.to);
  return s;
}

/* Results. */

static void find_inputs(const lookup *j) {
  const node_list *order = j->request->order;
  for (size_t i = 0, k = 0; i < order->n; i++)
    if (order->at[i]->op == OP_BUFFER)
      j->out->inputs[k++] =
          executable_input(j->out->executable, order->at[i]->ints[0], order->at[i]->ints[1]);
}

static void find_variables(const lookup *j) {
  char name[LIFTED_VAR_NAME_BYTES];
  for (size_t i = 0; i < j->lifted.n_vars; i++) {
    lifted_var_name(name, LIFTED_VAR_OF_GRAPH, i);
    j->out->vars[i] = executable_var(j->out->executable, name);
  }
}

static void alloc_lists(lookup *j) {
  arena *a = &j->c->arena;
  executable_cache_result *out = j->out;
  out->inputs = arena_alloc(a, (j->buffers + 1) * sizeof *out->inputs);
  out->vars = arena_alloc(a, (j->lifted.n_vars + 1) * sizeof *out->vars);
  out->values = arena_alloc(a, (j->lifted.n_vars + 1) * sizeof *out->values);
  out->n_vars = j->lifted.n_vars;
  for (size_t i = 0; i < j->lifted.n_vars; i++)
    out->values[i] = j->scalars.at[j->lifted.first_of_var[i]].value;
}

static void choose_lifted(lookup *j) {
  const entry *like, *e = j->found = find_entry(j, &like);
  arena *a = &j->c->arena;
  if (e)
    j->lifted = e->lifted;
  else
    j->lifted = like ? lifted_scalars_widen(a, &like->lifted, &j->scalars)
                     : lifted_scalars_fixed(a, &j->scalars);
}

static void look_up(void *arg) {
  make_key(arg);
  choose_lifted(arg);
  alloc_lists(arg);
}

/** Makes the entry found the result, and the one used last. */
static void use_entry(const lookup *j) {
  executable_cache *x = j->c->executables;
  entry *e = j->found;
  e->last_used = ++x->now;
  x->latest = (size_t)(e - x->at);
  memcpy(j->out->inputs, e->inputs, j->buffers * sizeof *e->inputs);
  memcpy(j->out->vars, e->vars, e->lifted.n_vars * sizeof *e->vars);
  j->out->executable = executable_retain(e->executable);
}

/** Finds the graph's own host functions, which cached executables do not hold. */
static tn_status find_host_calls(const lookup *j) {
  executable_cache_result *out = j->out;
  const int64_t *uids = j->found ? j->found->host_calls : NULL;
  tn_status s = host_calls_of_graph(j->c, j->request->order, uids, &out->host);
  if (s == TN_OK) return s;
  executable_release(out->executable);
  out->executable = NULL;
  return s;
}

tn_status executable_cache_get(tn_context *c, const executable_cache_request *a,
                               executable_cache_result *out) {
  lookup j = {.c = c, .request = a, .out = out};
  *out = (executable_cache_result){0};
  tn_status s = diag_catch(&c->diag, look_up, &j);
  if (s != TN_OK) return s;
  if (j.found) {
    use_entry(&j);
    return find_host_calls(&j);
  }
  s = compile_executable(&j);
  if (s == TN_ERR_MEMORY && c->executables) { /* cached executables hold memory too */
    executable_cache_free(c);
    s = compile_executable(&j);
  }
  if (s != TN_OK) return s;
  find_inputs(&j);
  find_variables(&j);
  add_entry(&j);
  return find_host_calls(&j);
}
