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
  bool is_read, found;
} finding;

/** What only the code says. */
static void take_facts(executable *p) {
  for (size_t i = 0; i < p->n_steps; i++)
    if (p->steps[i].kind == STEP_KERNEL)
      p->steps[i].scratch = p->programs[p->steps[i].program]->facts.scratch;
}

static void find(void *arg) {
  finding *f = arg;
  executable *p = f->p;
  program_record *records;
  size_t n;
  const program_options o = {.target = f->r->target, .math = f->r->math, .disk = f->r->disk};
  f->is_read =
      kept_read(p, f->r, f->g, f->file.content, f->file.content_bytes, f->work, &records, &n);
  if (!f->is_read) return;
  p->programs = arena_calloc(&p->arena, n + 1, sizeof *p->programs);
  if (program_find(&o, records, n, p->programs, &f->found, f->work->diag) != TN_OK)
    diag_rethrow(f->work->diag);
  if (!f->found) return;
  p->n_programs = n;
  take_facts(p);
}

bool kept_find(executable *p, const executable_request *r, const kept_graph *g) {
  arena work;
  diag *d = p->arena.diag;
  arena_mark here = arena_here(&p->arena);
  finding f = {.p = p, .r = r, .g = g, .work = &work};
  if (!disk_read(r->disk, &g->key, &f.file)) return false;
  arena_init(&work, p->mem, d);
  tn_status s = diag_catch(d, find, &f);
  disk_free(r->disk, &f.file);
  arena_free(&work);
  if (s == TN_OK && !f.is_read) disk_refuse(r->disk, &g->key, "it holds no plan of its graph");
  if (s != TN_OK || !f.found) arena_reset(&p->arena, here);
  if (s != TN_OK) diag_rethrow(d);
  return f.found;
}

void kept_write(const executable *p, const executable_request *r, const kept_graph *g, arena *a) {
  const kernel_key *keys[] = {&g->key};
  str s = str_new(a);
  kept_add(&s, p, r, g);
  disk_write(r->disk, keys, 1, s.at, s.n, a);
}
