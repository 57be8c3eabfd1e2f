#include "runtime/kept.h"

#include "ir/graph_key.h"
#include "runtime/inside.h"

/* Keys. */

/* All fields, by position: one more is a warning (-Wmissing-field-initializers), and belongs in the
   key too if it decides anything. The device's are the target's. */
_Static_assert(sizeof((schedule_request){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, 0}) ==
                   sizeof(schedule_request),
               "");

static node_list all_nodes(arena *a, const executable_request *r) {
  node_list all = {0};
  for (size_t i = 0; i < r->n_roots; i++) vec_push(a, &all, r->roots[i]);
  for (size_t i = 0; i < r->n_sizes; i++) vec_push(a, &all, r->sizes[i]);
  for (size_t i = 0; i < r->n_labels; i++) vec_push(a, &all, r->labels[i].node);
  return topo_sort(a, all.at, all.n, NULL, NULL);
}

static void add_node(kept_graph *g, graph_key *key, const node *n, const executable_request *r) {
  bool is_buffer = n->op == OP_BUFFER;
  graph_key_add(key, n, is_buffer && r->may_overwrite && r->may_overwrite(r->user, n));
  if (is_buffer) vec_push(key->to->arena, &g->buffers, n);
  if (n->op == OP_CUSTOM) vec_push(key->to->arena, &g->customs, n);
}

kept_graph kept_graph_of(arena *a, const executable_request *r) {
  kept_graph g = {0};
  str s = key_begin_plan(a, r->target);
  graph_key key = {.to = &s};
  node_list order = all_nodes(a, r);
  wire_add(&s, (uint64_t)r->math);
  for (size_t i = 0; i < order.n; i++) add_node(&g, &key, order.at[i], r);
  wire_add(&s, r->n_roots);
  for (size_t i = 0; i < r->n_roots; i++) graph_key_refer(&key, r->roots[i]);
  wire_add(&s, r->n_sizes);
  for (size_t i = 0; i < r->n_sizes; i++) graph_key_refer(&key, r->sizes[i]);
  for (size_t i = 0; i < r->n_labels; i++) {
    graph_key_refer(&key, r->labels[i].node);
    wire_add_text(&s, r->labels[i].text);
  }
  g.key = key_end_plan(&s);
  return g;
}

/* Finding. */

typedef struct finding {
  executable *p;
  const executable_request *r;
  const kept_graph *g;
  arena *work;
  disk_file file;
  bool found;
  const char *wrong; /* NULL: nothing */
} finding;

/** What only the code says. */
static void take_facts(executable *p) {
  for (size_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == STEP_KERNEL)
      p->steps[i].scratch = p->programs[p->steps[i].program]->facts.scratch;
}

/** The buffers that states are computed into. */
static bool *next_buffers(const executable *p, arena *a) {
  bool *is_next = arena_calloc(a, p->n_buffers + 1, sizeof *is_next);
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_states; k++) is_next[p->steps[i].states[k].next] = true;
  return is_next;
}

static bool may_store(const executable *p, const bool is_next[], size_t buffer) {
  switch (p->buffers[buffer].role) {
  case ROLE_INPUT: return p->buffers[buffer].is_written;
  case ROLE_STATE: return is_next[buffer];
  default: return true;
  }
}

static bool is_within(const tn_program_var *v, const int64_t bounds[2]) {
  return bounds[0] <= v->min && v->max <= bounds[1];
}

/** Whether kernels are launched as their code takes it: nothing is stored to that may not be, and
    values stay within the bounds that it was made for. That buffers are large enough is known when
    there are sizes. */
static bool are_launched_well(const executable *p, arena *a) {
  const bool *is_next = next_buffers(p, a);
  bool all = true;
  for (size_t i = 0; i < p->n_steps && all; i++) {
    const executable_step *s = &p->steps[i];
    if (s->kind != STEP_KERNEL) continue;
    const tn_program *program = p->programs[s->program];
    const launch_terms *t = &program->terms;
    for (size_t k = 0; k < s->n_buffers; k++)
      all &= !t->arrays[k].is_stored || may_store(p, is_next, s->buffers[k]);
    for (size_t k = 0; k < program->facts.n_values; k++)
      all &= s->values[k] == SIZE_MAX || is_within(&p->vars[s->values[k]], &t->bounds[2 * k]);
  }
  return all;
}

static void find(void *arg) {
  finding *f = arg;
  executable *p = f->p;
  program_record *records;
  const program_options o = {.target = f->r->target, .math = f->r->math, .disk = f->r->disk};
  const void *content = f->file.content;
  size_t n;
  if (!kept_read(p, f->r, f->g, content, f->file.content_bytes, f->work, &records, &n)) {
    f->wrong = "it holds no plan of its graph";
    return;
  }
  p->programs = arena_calloc(&p->arena, n + 1, sizeof *p->programs);
  if (program_find(&o, records, n, p->programs, &f->found, f->work->diag) != TN_OK)
    diag_rethrow(f->work->diag);
  if (!f->found) return;
  p->n_programs = n;
  if (!are_launched_well(p, f->work)) f->wrong = "it launches kernels otherwise than they are made";
  take_facts(p);
}

/** Gives back what was read into an executable. */
static void forget(executable *p, const executable *before, arena_mark here) {
  for (size_t i = 0; i < p->n_programs; i++) program_release(p->programs[i]);
  arena_reset(&p->arena, here);
  arena kept = p->arena;
  *p = *before;
  p->arena = kept;
}

bool kept_find(executable *p, const executable_request *r, const kept_graph *g) {
  arena work;
  diag *d = p->arena.diag;
  arena_mark here = arena_here(&p->arena);
  const executable before = *p;
  finding f = {.p = p, .r = r, .g = g, .work = &work};
  if (!disk_read(r->disk, &g->key, &f.file)) return false;
  arena_init(&work, p->mem, d);
  tn_status s = diag_catch(d, find, &f);
  disk_free(r->disk, &f.file);
  arena_free(&work);
  bool is_whole = s == TN_OK && f.found && !f.wrong;
  if (s == TN_OK && f.wrong) disk_refuse(r->disk, &g->key, f.wrong);
  if (!is_whole) forget(p, &before, here);
  if (s != TN_OK) diag_rethrow(d);
  return is_whole;
}

/* Keeping. */

typedef struct keeping {
  const executable *p;
  const executable_request *r;
  const kept_graph *g;
} keeping;

static void add_plan(void *user, str *to) {
  const keeping *k = user;
  kept_add(to, k->p, k->r, k->g);
}

void kept_write(const executable *p, const executable_request *r, const kept_graph *g) {
  const kernel_key *keys[] = {&g->key};
  disk_write(r->disk, keys, 1, add_plan, &(keeping){p, r, g});
}

/* Checking. */

typedef struct checking {
  executable again;
  const executable *p;
  const executable_request *r;
  arena *work;
  bool holds;
} checking;

static void check(void *arg) {
  checking *c = arg;
  const kept_graph g = kept_graph_of(c->work, c->r);
  str s = str_new(c->work);
  program_record *records;
  size_t n;
  kept_add(&s, c->p, c->r, &g);
  c->holds = are_launched_well(c->p, c->work) &&
             kept_read(&c->again, c->r, &g, s.at, s.n, c->work, &records, &n);
}

void kept_check(const executable *p, const executable_request *r, arena *a) {
  checking c = {.p = p, .r = r, .work = a};
  arena_init(&c.again.arena, p->mem, a->diag);
  tn_status s = diag_catch(a->diag, check, &c);
  arena_free(&c.again.arena);
  if (s != TN_OK) diag_rethrow(a->diag);
  if (!c.holds) diag_raise(a->diag, TN_ERR_INTERNAL, "%s: its plan would be refused", p->name);
}
