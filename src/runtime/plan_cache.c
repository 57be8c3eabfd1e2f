/* Implements the disk cache of plans: keys a request by its graph and target, and loads an
   executable with all its kernels, or stores one. A file that does not fit the request is rejected
   and the plan is compiled anew. */
#include "runtime/plan_cache.h"

#include "ir/core/node_device.h"
#include "ir/text/graph_key.h"

/* Keys. */

/* Lists all fields by position: a new field is a warning (-Wmissing-field-initializers), and
   belongs in the key too if the schedule depends on it. Fields of the device are in the target's
   key. */
_Static_assert(
    sizeof((schedule_request){
        0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, {0}}, {0, 0, 0}, {0, 0}, {0, 0, 0}, 0, 0}) ==
        sizeof(schedule_request),
    "");

static node_list sort_request_nodes(arena *a, const executable_request *r) {
  node_list all = {0};
  for (size_t i = 0; i < r->n_roots; i++) vec_push(a, &all, r->roots[i]);
  for (size_t i = 0; i < r->n_labels; i++) vec_push(a, &all, r->labels[i].node);
  return topo_sort(a, all.at, all.n, NULL, NULL);
}

static void add_node_key(plan_cache_graph *g, graph_key *key, const node *n,
                         const executable_request *r) {
  bool is_buffer = n->op == OP_BUFFER;
  graph_key_add(key, n, is_buffer && r->may_overwrite && r->may_overwrite(r->user, n));
  if (is_buffer) vec_push(key->to->arena, &g->buffers, n);
  if (n->op == OP_CUSTOM) vec_push(key->to->arena, &g->customs, n);
}

plan_cache_graph plan_cache_graph_of(arena *a, const executable_request *r) {
  plan_cache_graph g = {0};
  str s = plan_key_begin(a, r->target);
  graph_key key = {.to = &s};
  node_list order = sort_request_nodes(a, r);
  serialise_number(&s, (uint64_t)r->math);
  serialise_number(&s, r->tuned.libraries); /* kernels take other values */
  for (size_t i = 0; i < order.n; i++) add_node_key(&g, &key, order.at[i], r);
  serialise_number(&s, r->n_roots);
  for (size_t i = 0; i < r->n_roots; i++) graph_key_add_root(&key, r->roots[i]);
  for (size_t i = 0; i < r->n_labels; i++) {
    graph_key_add_root(&key, r->labels[i].node);
    serialise_text(&s, r->labels[i].text);
  }
  size_t n_devices = node_count_devices(order.at, order.n);
  for (size_t i = 1; i < n_devices; i++) {
    const str target = target_key_make(a, executable_request_target(r, i));
    serialise_block(&s, target.at, target.n);
  }
  g.key = plan_key_end(&s);
  return g;
}

/* Loading. */

typedef struct plan_load {
  executable *p;
  const executable_request *r;
  const plan_cache_graph *g;
  arena *work;
  disk_cache_file file;
  bool has_programs; /* all kernels are in the caches */
  const char *fault; /* of the file; NULL: none */
} plan_load;

/** Copies the scratch bytes of kernels, which only the code records hold. */
static void copy_scratch_sizes(executable *p) {
  for (size_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == STEP_KERNEL)
      p->steps[i].scratch = p->programs[p->steps[i].program]->facts.scratch;
}

/** Flags the buffers that loops compute new states into. */
static bool *find_next_states(const executable *p, arena *a) {
  bool *is_next = arena_calloc(a, p->n_buffers + 1, sizeof *is_next);
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_states; k++) is_next[p->steps[i].states[k].next] = true;
  return is_next;
}

static bool is_writable(const executable *p, const bool is_next[], size_t buffer) {
  switch (p->buffers[buffer].role) {
  case BUFFER_ROLE_INPUT: return p->buffers[buffer].is_written;
  case BUFFER_ROLE_STATE: return is_next[buffer];
  default: return true;
  }
}

static bool bounds_contain(const tn_program_var *v, const int64_t bounds[2]) {
  return bounds[0] <= v->min && v->max <= bounds[1];
}

/** True if launches respect what kernels were compiled for: kernels store only to writable buffers,
    and variables stay within the bounds of launch values. execution_check_launch checks the sizes
   of buffers once they are known. */
static bool launches_fit_kernels(const executable *p, arena *a) {
  const bool *is_next = find_next_states(p, a);
  bool fits = true;
  for (size_t i = 0; i < p->n_steps && fits; i++) {
    const executable_step *s = &p->steps[i];
    if (s->kind == STEP_COPY) fits &= is_writable(p, is_next, s->buffers[0]);
    if (s->kind != STEP_KERNEL) continue;
    const tn_program *program = p->programs[s->program];
    const launch_limits *t = &program->limits;
    for (size_t k = 0; k < s->n_buffers; k++)
      fits &= !t->arrays[k].is_stored || is_writable(p, is_next, s->buffers[k]);
    for (size_t k = 0; k < program->facts.n_values; k++)
      fits &= s->values[k] == SIZE_MAX || bounds_contain(&p->vars[s->values[k]], &t->bounds[2 * k]);
  }
  return fits;
}

/** Finds the programs of a device among those of the caches, which may be of an alternative of the
    executable's own target; false if one is not there. */
static bool find_for_device(plan_load *f, program_record records[], size_t n, size_t device) {
  executable *p = f->p;
  const compile_options o = {.target = executable_request_target(f->r, device),
                             .math = f->r->math,
                             .disk = f->r->disk,
                             .tuned = f->r->tuned};
  program_record *own = arena_calloc(f->work, n + 1, sizeof *own);
  tn_program **found = arena_calloc(f->work, n + 1, sizeof *found);
  size_t n_own = 0, at = 0;
  bool has_all = false;
  for (size_t i = 0; i < n; i++)
    if (p->program_devices[i] == device) own[n_own++] = records[i];
  if (compile_find_programs(&o, own, n_own, found, &has_all, f->work->diag) != TN_OK)
    diag_rethrow(f->work->diag);
  for (size_t i = 0; i < n && has_all; i++)
    if (p->program_devices[i] == device) p->programs[i] = found[at++];
  return has_all;
}

static void load_body(void *arg) {
  plan_load *f = arg;
  executable *p = f->p;
  program_record *records;
  const void *content = f->file.content;
  size_t n;
  if (!plan_record_read(p, f->r, f->g, content, f->file.content_bytes, f->work, &records, &n)) {
    f->fault = "no plan of the graph";
    return;
  }
  p->programs = arena_calloc(&p->arena, n + 1, sizeof *p->programs);
  p->n_programs = n;
  f->has_programs = true;
  for (size_t i = 0; i < p->n_targets && f->has_programs; i++)
    f->has_programs = find_for_device(f, records, n, i);
  if (!f->has_programs) return;
  if (!launches_fit_kernels(p, f->work)) f->fault = "launches do not match the kernels";
  if (!f->fault && !executable_link_items(p, f->work))
    f->fault = "sizes that are computed too late";
  copy_scratch_sizes(p);
  if (!f->fault) executable_link_queues(p);
}

/** Undoes a failed load: releases programs and restores the executable and its arena. */
static void undo_load(executable *p, const executable *before, arena_mark here) {
  for (size_t i = 0; i < p->n_programs; i++) program_release(p->programs[i]);
  arena_rewind(&p->arena, here);
  arena rewound = p->arena;
  *p = *before;
  p->arena = rewound;
}

bool plan_cache_find(executable *p, const executable_request *r, const plan_cache_graph *g) {
  arena work;
  diag *d = p->arena.diag;
  arena_mark here = arena_save(&p->arena);
  const executable before = *p;
  plan_load f = {.p = p, .r = r, .g = g, .work = &work};
  if (!disk_cache_read(r->disk, &g->key, &f.file)) return false;
  arena_init(&work, p->mem, d);
  tn_status s = diag_catch(d, load_body, &f);
  disk_cache_free_file(r->disk, &f.file);
  arena_free(&work);
  bool is_whole = s == TN_OK && f.has_programs && !f.fault;
  if (s == TN_OK && f.fault) disk_cache_reject(r->disk, &g->key, f.fault);
  if (!is_whole) undo_load(p, &before, here);
  if (s != TN_OK) diag_rethrow(d);
  return is_whole;
}

/* Storing. */

typedef struct plan_store {
  const executable *p;
  const executable_request *r;
  const plan_cache_graph *g;
} plan_store;

static void write_plan(void *user, str *to) {
  const plan_store *k = user;
  plan_record_write(to, k->p, k->r, k->g);
}

void plan_cache_store(const executable *p, const executable_request *r, const plan_cache_graph *g) {
  const cache_key *keys[] = {&g->key};
  disk_cache_write(r->disk, keys, 1, write_plan, &(plan_store){p, r, g});
}

/* Round-trip check. */

typedef struct round_trip {
  executable copy; /* read back */
  const executable *p;
  const executable_request *r;
  arena *work;
  bool is_accepted;
} round_trip;

static void check_body(void *arg) {
  round_trip *c = arg;
  const plan_cache_graph g = plan_cache_graph_of(c->work, c->r);
  str s = str_new(c->work);
  program_record *records;
  size_t n;
  plan_record_write(&s, c->p, c->r, &g);
  c->copy.name = c->p->name;
  executable_set_targets(&c->copy, c->r, c->p->n_targets);
  c->is_accepted = launches_fit_kernels(c->p, c->work) &&
                   plan_record_read(&c->copy, c->r, &g, s.at, s.n, c->work, &records, &n);
}

void plan_cache_check_round_trip(const executable *p, const executable_request *r, arena *a) {
  round_trip c = {.p = p, .r = r, .work = a};
  arena_init(&c.copy.arena, p->mem, a->diag);
  tn_status s = diag_catch(a->diag, check_body, &c);
  arena_free(&c.copy.arena);
  if (s != TN_OK) diag_rethrow(a->diag);
  if (!c.is_accepted)
    diag_raise(a->diag, TN_ERR_INTERNAL, "%s: the written plan is not readable", p->name);
}
