/* Interprets linear programs in teams: each worker of a group is a program of its own, which runs
   up to its next barrier. Elements of shared memory and of params remember who accessed them last,
   and how many barriers their group and warp had passed. A warp also meets at a tile that it
   computes together. */
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/linear_program.h"

#include <string.h>

/** An access to an element, or accesses of SEVERAL workers, warps or groups. */
typedef struct access {
  int64_t worker; /* its number in the launch + 1; 0: none */
  int64_t warp;   /* the same of its warp */
  int64_t group;
  uint32_t group_barriers, warp_barriers; /* that they had passed */
} access;

enum { SEVERAL = -1 };

typedef struct element {
  access read, write;
  bool is_copied; /* a worker copies it, and has not waited for that yet */
} element;

/** Memory that workers share, of a group or warp while it runs, or of a param. */
typedef struct team_memory {
  const node *n; /* ALLOC, PARAM */
  int64_t warp;  /* of an ALLOC; 0 for others */
  char *data;    /* of an ALLOC, with a flag for each element that was written */
  size_t count, bytes;
  element *elements;
} team_memory;

typedef struct team {
  const interp_teams *launch;
  const interp_env *e;
  const node *linear;
  const mem *m;
  diag *d;
  arena work;
  program *workers;
  bool *has_ended;
  int64_t *order; /* of the workers that have not */
  int64_t group;
  uint32_t group_barriers, *warp_barriers; /* by warp */
  VEC(team_memory *) memories;
  uint64_t random;
} team;

static int64_t warp_of(const team *t, int64_t worker) { return worker / t->launch->warp; }

/* Memory. */

static team_memory *find_memory(const team *t, const node *n, int64_t warp) {
  for (size_t i = 0; i < t->memories.n; i++)
    if (t->memories.at[i]->n == n && t->memories.at[i]->warp == warp) return t->memories.at[i];
  return NULL;
}

static void *new_bytes(const team *t, size_t bytes) {
  char none[MEM_TEXT_BYTES];
  void *at = mem_calloc(t->m, bytes ? bytes : 1, 1);
  if (!at) diag_raise(t->d, TN_ERR_MEMORY, "%s", mem_exhausted_text(bytes, none));
  return at;
}

static team_memory *new_memory(team *t, const node *n, int64_t warp, size_t count, size_t bytes) {
  team_memory *x = arena_calloc(&t->work, 1, sizeof *x);
  *x = (team_memory){.n = n, .warp = warp, .count = count, .bytes = bytes};
  vec_push(&t->work, &t->memories, x);
  if (bytes) x->data = new_bytes(t, bytes);
  x->elements = new_bytes(t, count * sizeof *x->elements);
  return x;
}

static void free_memory(const team *t, team_memory *x) {
  mem_free(t->m, x->data, x->bytes ? x->bytes : 1);
  mem_free(t->m, x->elements, x->count ? x->count * sizeof *x->elements : 1);
}

void team_alloc(program *p, storage *m) {
  team *t = p->team;
  int64_t warp = m->n->ints[1] == SPACE_WARP ? warp_of(t, p->worker) : 0;
  size_t bytes = dtype_bytes(m->dtype);
  team_memory *x = find_memory(t, m->n, warp);
  if (!x) x = new_memory(t, m->n, warp, m->count, m->count * (bytes + 1));
  if (x->count != m->count) linear_ill_formed(p, m->n, "has different sizes for workers of a team");
  m->data = x->data;
  m->written = (uint8_t *)(x->data ? x->data + x->count * bytes : NULL);
  m->seen = x;
}

/** The elements of a param that the program stores to; NULL for others. */
static team_memory *param_memory(program *p, storage *m) {
  team *t = p->team;
  if (m->seen || m->n->op != OP_PARAM) return m->seen;
  bool is_stored = false;
  for (size_t i = 0; i < p->steps.n && !is_stored; i++)
    is_stored = p->steps.at[i].kind == STEP_STORE && p->steps.at[i].storage == m;
  if (!is_stored) return NULL;
  m->seen = find_memory(t, m->n, 0);
  if (!m->seen) m->seen = new_memory(t, m->n, 0, m->count, 0);
  return m->seen;
}

/* Races. */

static access access_of(const program *p) {
  const team *t = p->team;
  int64_t warps = warp_of(t, t->launch->workers - 1) + 1, warp = warp_of(t, p->worker);
  return (access){t->group * t->launch->workers + p->worker + 1, t->group * warps + warp + 1,
                  t->group, t->group_barriers, t->warp_barriers[warp]};
}

/** True if an access by others comes before one by a barrier of both, or if it is the same
    worker's. */
static bool is_before(const access *a, const access *now) {
  if (!a->worker || a->worker == now->worker) return true;
  if (a->group == now->group && a->group_barriers < now->group_barriers) return true;
  return a->warp == now->warp && a->warp_barriers < now->warp_barriers;
}

static _Noreturn void raise_race(const program *p, const step *s, size_t at, const char *what) {
  diag_raise(p->d, TN_ERR_INTERNAL,
             "%s (node %" PRIu64 "): worker %lld of group %lld %s element %zu of %s (node %" PRIu64
             ") without a barrier after another worker's access",
             op_name(s->n->op), s->n->id, (long long)p->worker, (long long)p->team->group, what, at,
             op_name(s->storage->n->op), s->storage->n->id);
}

static _Noreturn void raise_copied(const program *p, const step *s, size_t at) {
  diag_raise(p->d, TN_ERR_INTERNAL,
             "%s (node %" PRIu64
             "): worker %lld of group %lld accesses element %zu of %s (node %" PRIu64
             ") before a wait for its copy",
             op_name(s->n->op), s->n->id, (long long)p->worker, (long long)p->team->group, at,
             op_name(s->storage->n->op), s->storage->n->id);
}

void team_note_read(program *p, const step *s, size_t at) {
  const team_memory *x = param_memory(p, s->storage);
  if (!x) return;
  element *e = &x->elements[at];
  access now = access_of(p);
  if (e->is_copied) raise_copied(p, s, at);
  if (!is_before(&e->write, &now)) raise_race(p, s, at, "reads");
  if (is_before(&e->read, &now)) {
    e->read = now;
    return;
  }
  if (e->read.warp != now.warp) e->read.warp = SEVERAL;
  if (e->read.group != now.group) e->read.group = SEVERAL;
  e->read.worker = SEVERAL;
  e->read.group_barriers = now.group_barriers;
  e->read.warp_barriers = now.warp_barriers;
}

/** True if a store puts the bits that another group stored, where blocks overlap (law OVERLAP): at
    a minimum. */
static bool repeats_overlap(const program *p, const step *s, const access *before,
                            const access *now, size_t at, uint64_t bits) {
  const storage *m = s->storage;
  size_t bytes = dtype_bytes(m->dtype);
  char made[sizeof bits];
  if (m->n->op != OP_PARAM || before->group == now->group) return false;
  scalar_store(m->dtype, made, bits);
  if (memcmp(made, m->data + at * bytes, bytes) != 0) return false;
  node_list address = topo_sort(&p->team->work, &s->n->src[1], 1, NULL, NULL);
  for (size_t i = 0; i < address.n; i++)
    if (address.at[i]->op == OP_MIN) return true;
  return false;
}

void team_note_write(program *p, const step *s, size_t at, uint64_t bits) {
  const team_memory *x = param_memory(p, s->storage);
  if (!x) return;
  element *e = &x->elements[at];
  access now = access_of(p);
  if (e->is_copied) raise_copied(p, s, at);
  bool is_race = !is_before(&e->write, &now) && !repeats_overlap(p, s, &e->write, &now, at, bits);
  if (is_race || !is_before(&e->read, &now)) raise_race(p, s, at, "writes");
  e->write = now;
}

void team_note_copy(program *p, const step *s, size_t at, bool begins) {
  element *e = &s->storage->seen->elements[at];
  e->is_copied = begins;
  e->write = access_of(p);
}

/* Running. */

static uint64_t next_random(team *t, uint64_t below) {
  t->random = t->random * 6364136223846793005u + 1442695040888963407u;
  return (t->random >> 33) % below;
}

/** The barrier or tile at which a worker waits; NULL: it has ended. */
static const step *meeting_of(const team *t, int64_t worker) {
  const program *p = &t->workers[worker];
  return t->has_ended[worker] ? NULL : &p->steps.at[p->next - 1];
}

/** The team that meets at a step. */
static storage_space space_of(const step *s) {
  return s->kind == STEP_BARRIER ? (storage_space)s->n->ints[1] : SPACE_WARP;
}

/** True if two workers wait at one step in the same iterations. */
static bool is_same_point(const team *t, int64_t a, int64_t b) {
  const program *p = &t->workers[a], *q = &t->workers[b];
  const step *x = meeting_of(t, a), *y = meeting_of(t, b);
  if (!x || !y || x->n != y->n) return false;
  for (uint32_t i = x->n->n_src; i < x->n_from; i++)
    if (p->values.at[p->slots.at[x->from[i]].at] != q->values.at[q->slots.at[y->from[i]].at])
      return false;
  return true;
}

/** The first of some workers that waits for the team of a space; −1: none does. */
static int64_t find_waiting(const team *t, int64_t first, int64_t n, storage_space space) {
  for (int64_t w = first; w < first + n; w++) {
    const step *s = meeting_of(t, w);
    if (s && space_of(s) == space) return w;
  }
  return -1;
}

/** Lets some workers go on of which one waits; raises if others are elsewhere. */
static void meet(const team *t, int64_t waiting, int64_t first, int64_t n) {
  for (int64_t w = first; w < first + n; w++)
    if (!is_same_point(t, waiting, w))
      linear_ill_formed(&t->workers[waiting], meeting_of(t, waiting)->n,
                        "is a place at which some of a team do not meet");
}

/** Copies the workers' parts of an operand (0: of the result) of a tile to a matrix, or back. */
static void move_parts(const team *t, int64_t first, tensor_operand o, bool is_result,
                       uint64_t matrix[]) {
  const tensor_tile *tile = tensor_tile_of((op)meeting_of(t, first)->n->op);
  for (int64_t w = 0; w < tile->workers; w++) {
    const program *p = &t->workers[first + w];
    const step *s = meeting_of(t, first + w);
    uint64_t *part = is_result ? &p->values.at[p->slots.at[s->to].at] : linear_operand(p, s, o);
    for (int i = 0; i < tensor_tile_words(tile, o); i++) {
      int row, column;
      tensor_tile_place(o, i, (int)(w / TENSOR_WARP_COLUMNS), (int)(w % TENSOR_WARP_COLUMNS), &row,
                        &column);
      uint64_t *word = &matrix[row * tensor_tile_columns(tile, o) + column];
      if (is_result)
        part[i] = *word;
      else
        *word = part[i];
    }
  }
}

/** Computes the tile at which a warp has met. */
static void multiply(team *t, int64_t first, int64_t n) {
  const step *s = meeting_of(t, first);
  const tensor_tile *tile = tensor_tile_of((op)s->n->op);
  uint64_t *matrix[TENSOR_OPERANDS];
  if (tile->workers != n) linear_ill_formed(&t->workers[first], s->n, "needs a whole warp");
  arena_mark here = arena_save(&t->work);
  for (int o = 0; o < TENSOR_OPERANDS; o++) {
    int words = tensor_tile_words(tile, (tensor_operand)o) * tile->workers;
    matrix[o] = arena_calloc(&t->work, (size_t)words, sizeof **matrix);
    move_parts(t, first, (tensor_operand)o, false, matrix[o]);
  }
  tensor_tile_eval(tile, matrix[TENSOR_SUM], matrix[TENSOR_X], matrix[TENSOR_Y]);
  move_parts(t, first, TENSOR_SUM, true, matrix[TENSOR_SUM]);
  arena_rewind(&t->work, here);
}

/** Ends a round, in which each worker ran to a barrier or its end; false: all have ended. */
static bool meet_all(team *t) {
  int64_t workers = t->launch->workers, warp = t->launch->warp, waiting;
  bool has_met = false;
  for (int64_t w = 0; w < workers; w += warp) {
    int64_t n = warp < workers - w ? warp : workers - w;
    waiting = find_waiting(t, w, n, SPACE_WARP);
    if (waiting < 0) continue;
    meet(t, waiting, w, n);
    if (meeting_of(t, w)->kind == STEP_WARP_TILE)
      multiply(t, w, n);
    else
      t->warp_barriers[warp_of(t, w)]++;
    has_met = true;
  }
  if (has_met) return true;
  waiting = find_waiting(t, 0, workers, SPACE_GROUP);
  if (waiting < 0) return false;
  meet(t, waiting, 0, workers);
  t->group_barriers++;
  return true;
}

/** True if a worker may run: it has not ended, and waits for nobody. */
static bool may_run(const team *t, int64_t worker, bool only_warps) {
  const step *s = t->workers[worker].next ? meeting_of(t, worker) : NULL;
  if (t->has_ended[worker]) return false;
  return !s || !only_warps || space_of(s) == SPACE_WARP;
}

static void run_round(team *t, bool only_warps) {
  int64_t n = 0;
  for (int64_t w = 0; w < t->launch->workers; w++)
    if (may_run(t, w, only_warps)) t->order[n++] = w;
  for (; n > 0; n--) {
    int64_t k = (int64_t)next_random(t, (uint64_t)n), w = t->order[k];
    t->order[k] = t->order[n - 1];
    t->has_ended[w] = linear_run(&t->workers[w]);
  }
}

/** Frees the memory that a group shared. */
static void forget_group(team *t) {
  size_t n = 0;
  for (size_t i = 0; i < t->memories.n; i++) {
    team_memory *x = t->memories.at[i];
    if (x->n->op == OP_ALLOC)
      free_memory(t, x);
    else
      t->memories.at[n++] = x;
  }
  t->memories.n = n;
}

static void run_group(team *t) {
  bool only_warps = false;
  t->group_barriers = 0;
  for (int64_t w = 0; w < t->launch->workers; w++) {
    program *p = &t->workers[w];
    t->warp_barriers[warp_of(t, w)] = 0;
    t->has_ended[w] = false;
    p->next = 0;
    p->copies.n = 0;
    for (size_t i = 0; i < p->group_slots.n; i++)
      p->values.at[p->slots.at[p->group_slots.at[i]].at] = (uint64_t)t->group;
  }
  do {
    run_round(t, only_warps);
    only_warps = find_waiting(t, 0, t->launch->workers, SPACE_WARP) >= 0;
  } while (meet_all(t));
  forget_group(t);
}

static void run_teams(void *arg) {
  team *t = arg;
  int64_t n = t->launch->workers;
  t->workers = arena_calloc(&t->work, (size_t)n, sizeof *t->workers);
  for (int64_t w = 0; w < n; w++) {
    program *p = &t->workers[w];
    *p = (program){
        .e = t->e, .linear = t->linear, .core_count = 1, .d = t->d, .team = t, .worker = w};
    arena_init(&p->work, t->m, t->d);
  }
  for (int64_t w = 0; w < n; w++) linear_decode(&t->workers[w]);
  t->has_ended = arena_calloc(&t->work, (size_t)n, sizeof *t->has_ended);
  t->order = arena_calloc(&t->work, (size_t)n, sizeof *t->order);
  t->warp_barriers = arena_calloc(&t->work, (size_t)n, sizeof *t->warp_barriers);
  for (t->group = 0; t->group < t->launch->groups; t->group++) run_group(t);
}

tn_status interp_linear_in_teams(const interp_env *e, const node *linear, const interp_teams *teams,
                                 const mem *m, diag *d) {
  team t = {.launch = teams, .e = e, .linear = linear, .m = m, .d = d, .random = teams->seed};
  arena_init(&t.work, m, d);
  tn_status status = diag_catch(d, run_teams, &t);
  for (int64_t w = 0; t.workers && w < teams->workers; w++)
    if (t.workers[w].work.mem) linear_free(&t.workers[w]);
  for (size_t i = 0; i < t.memories.n; i++) free_memory(&t, t.memories.at[i]);
  arena_free(&t.work);
  return status;
}
