/* Implements the interpreter of kernels. Flattens a kernel to a list of steps first: each binder
   (STAGE or FOLD) becomes loops that hold, at the level of the innermost range that they depend on,
   the nodes that are free in its ranges. Nodes that depend on none stand before the loops. So each
   value is computed once for each binding of its free ranges, and running needs no stack. */
#include "support/interp_kernel.h"

#include "base/map.h"
#include "ir/core/binder_layout.h"
#include "ir/core/scalar_eval.h"
#include "ir/core/topo_sort.h"

#include <string.h>

/** Storage: an array that a binder builds, a state of a FOLD, or a param. */
typedef struct cell {
  dtype dtype;
  size_t rank, count;
  int64_t dims[INTERP_MAX_RANK];
  char *data;
  uint8_t *written; /* one flag per element; NULL: all are written */
  size_t owned;     /* bytes of data and flags allocated; 0: the data is the caller's */
} cell;

/** Current value of a node. */
typedef struct slot {
  uint64_t bits;
  bool invalid; /* an index outside of the array */
  bool ready;   /* while flattening: a step computes it */
  bool open;    /* while flattening: its loop is open */
} slot;

typedef enum step_kind {
  STEP_OP,
  STEP_AFFINE,
  STEP_PARAM,  /* check an array against its sizes */
  STEP_READ,   /* an INDEX */
  STEP_OPEN,   /* a loop over a range */
  STEP_CLOSE,  /* end of that loop */
  STEP_BUILD,  /* clear a STAGE's component */
  STEP_WRITE,  /* write one element of it */
  STEP_INIT,   /* a FOLD's state */
  STEP_UPDATE, /* step a FOLD's state: step, or op(state, step) */
  STEP_OUT     /* copy a component to a param */
} step_kind;

typedef struct step {
  step_kind kind;
  const node *n;
  uint32_t to, n_from;
  const uint32_t *from;   /* operands, or coordinates */
  cell *cell, *with;      /* with: the source of an array state's update, or the param */
  const uint32_t *extent; /* BUILD, INIT */
  int64_t op;             /* UPDATE */
  size_t jump;            /* OPEN and CLOSE: each other */
  int64_t limit;
} step;

typedef struct cells {
  cell *at;
  size_t n;
} cells;

/** A node and the number of the binder's loops around it. */
typedef struct item {
  const node *n;
  size_t level;
} item;

typedef VEC(item) items;

/** A binder that is being flattened. */
typedef struct frame {
  const node *b; /* SINK: the kernel itself */
  const node *const *ranges;
  size_t n_ranges, level, next;
  items early;
  items late;     /* of a FOLD: nodes that emitted values need, computed after the states' step */
  bool stepped;   /* the states of a FOLD have stepped */
  size_t *opened; /* the step that opened each level */
} frame;

typedef struct kernel {
  const interp_env *e;
  const node *sink;
  diag *d;
  arena work;
  VEC(slot) slots;
  VEC(step) steps;
  VEC(frame) frames;
  VEC(cell *) all_cells;
  map number;     /* node → slot + 1 */
  map built;      /* STAGE, FOLD, PARAM → cells */
  map carried;    /* a FOLD's innermost range → its cells */
  uint64_t *args; /* operands of the current step */
  bool overflow;
} kernel;

static _Noreturn void ill_formed(const kernel *k, const node *n, const char *what) {
  diag_raise(k->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") %s", op_name(n->op), n->id, what);
}

/* Slots and cells. */

static uint32_t slot_of(kernel *k, const node *n) {
  uint32_t s = (uint32_t)(uintptr_t)map_get(&k->number, n);
  if (s) return s - 1;
  vec_push(&k->work, &k->slots, (slot){0});
  map_set(&k->work, &k->number, n, (void *)(uintptr_t)k->slots.n);
  return (uint32_t)k->slots.n - 1;
}

/** Returns the slot of a node; raises unless a step has computed it. */
static uint32_t use_slot(kernel *k, const node *n) {
  uint32_t s = slot_of(k, n);
  if (!k->slots.at[s].ready) ill_formed(k, n, "is used where it has no value");
  return s;
}

static const uint32_t *use_all(kernel *k, const node *const *n, size_t count) {
  uint32_t *s = arena_alloc(&k->work, count * sizeof *s);
  for (size_t i = 0; i < count; i++) s[i] = use_slot(k, n[i]);
  return s;
}

static void preset(kernel *k, const node *n, uint64_t bits, bool invalid) {
  uint32_t s = slot_of(k, n);
  k->slots.at[s] = (slot){.bits = bits, .invalid = invalid, .ready = true};
}

static cells *new_cells(kernel *k, map *m, const node *key, size_t n) {
  cells *c = arena_alloc(&k->work, sizeof *c);
  *c = (cells){.at = arena_calloc(&k->work, n, sizeof(cell)), .n = n};
  map_set(&k->work, m, key, c);
  for (size_t i = 0; i < n; i++) vec_push(&k->work, &k->all_cells, &c->at[i]);
  return c;
}

static cell *component(kernel *k, const map *m, const node *key, int64_t i, const node *reader) {
  cells *c = map_get(m, key);
  if (!c) ill_formed(k, reader, "reads what is not built");
  if (i < 0 || (size_t)i >= c->n) ill_formed(k, reader, "reads a component that there is not");
  return &c->at[i];
}

static step *add_step(kernel *k, step_kind kind, const node *n) {
  vec_push(&k->work, &k->steps, (step){.kind = kind, .n = n});
  return &vec_last(&k->steps);
}

/* Flattening: one node. */

static void add_op(kernel *k, const node *n) {
  const uint32_t *from = use_all(k, n->src, n->n_src);
  step *s = add_step(k, n->op == OP_AFFINE ? STEP_AFFINE : STEP_OP, n);
  s->from = from;
  s->n_from = n->n_src;
  s->to = slot_of(k, n);
  k->slots.at[s->to].ready = true;
}

static void add_param(kernel *k, const node *n) {
  const interp_array *a = interp_param(k->e, n, k->d);
  cell *c = new_cells(k, &k->built, n, 1)->at;
  *c = (cell){.dtype = a->dtype, .rank = a->rank, .count = 1, .data = a->data};
  memcpy(c->dims, a->dims, sizeof c->dims);
  c->count = interp_element_count(a->rank, a->dims, dtype_bytes(a->dtype), n, k->d);
  if (a->rank != n->rank || a->bytes < c->count * dtype_bytes(a->dtype))
    diag_raise(k->d, TN_ERR_SHAPE, "param %lld was given an array of another shape",
               (long long)n->ints[0]);
  const uint32_t *extent = use_all(k, n->dims, n->rank);
  step *s = add_step(k, STEP_PARAM, n);
  s->extent = extent;
  s->cell = c;
}

static cell *read_cell(kernel *k, const node *n) {
  const node *of = n->src[0];
  if (of->op == OP_STATE) return component(k, &k->carried, of->src[0], of->ints[0], n);
  return component(k, &k->built, of, of->op == OP_PARAM ? 0 : n->ints[0], n);
}

static void add_read(kernel *k, const node *n) {
  cell *c = read_cell(k, n);
  if (c->dtype != n->dtype) ill_formed(k, n, "has not the type of what it reads");
  if (c->rank != n->n_src - 1) ill_formed(k, n, "has not the rank of what it reads");
  const uint32_t *from = use_all(k, n->src + 1, n->n_src - 1);
  step *s = add_step(k, STEP_READ, n);
  s->cell = c;
  s->from = from;
  s->n_from = n->n_src - 1;
  s->to = slot_of(k, n);
  k->slots.at[s->to].ready = true;
}

/* Flattening: binders. */

/** Returns the number of outer ranges that must be bound before a node has a value. */
static size_t level_of(const frame *f, const node *n) {
  size_t level = f->n_ranges;
  while (level && !node_is_free_in(f->ranges[level - 1], n)) level--;
  return level;
}

static bool enters_body(const node *n, void *user) {
  const frame *f = user;
  return level_of(f, n) > 0;
}

/** True for nodes of the binder itself, false for those of inner binders. */
static bool is_own(const frame *f, const node *n) {
  for (uint32_t i = 0; i < n->free->n; i++) {
    bool bound = false;
    for (size_t j = 0; j < f->n_ranges; j++) bound |= f->ranges[j] == n->free->at[i];
    if (!bound && !node_is_free_in(n->free->at[i], f->b)) return false;
  }
  return true;
}

static void add_to(kernel *k, const frame *f, items *list, const node *n) {
  size_t level = level_of(f, n);
  if ((f->b->op == OP_SINK || level) && is_own(f, n)) vec_push(&k->work, list, (item){n, level});
}

/** True if a node contains a state of the fold; its sources were visited before. */
static bool holds_state(const map *holders, const node *n, const node *innermost) {
  if (n->op == OP_STATE) return n->src[0] == innermost;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (map_has(holders, n->src[i])) return true;
  return false;
}

/** Lists the nodes that emitted values need; those that contain a state are computed again after
    the step. */
static void collect_emitted(kernel *k, frame *f, const binder_layout *p) {
  map early = {0}, holders = {0};
  for (size_t i = 0; i < f->early.n; i++) map_set(&k->work, &early, f->early.at[i].n, NULL);
  node_list all = topo_sort(&k->work, f->b->src + p->values, p->arrays, enters_body, f);
  for (size_t i = 0; i < all.n; i++) {
    const node *n = all.at[i];
    if (holds_state(&holders, n, fold_innermost_range(f->b))) {
      map_set(&k->work, &holders, n, NULL);
      add_to(k, f, &f->late, n);
    } else if (!map_has(&early, n)) {
      add_to(k, f, &f->early, n);
    }
  }
}

/** Lists the nodes that a binder's loops compute. */
static void collect_items(kernel *k, frame *f) {
  const node *b = f->b;
  bool whole = b->op == OP_SINK;
  binder_layout p = {.values = b->n_src, .coords = b->n_src};
  if (b->op == OP_FOLD) p = binder_layout_of(OP_FOLD, b->ints);
  const node **roots = arena_alloc(&k->work, (b->n_src + 1) * sizeof *roots);
  size_t n = 0;
  for (size_t i = 0; i < b->n_src; i++)
    if (i < p.values || i >= p.coords) roots[n++] = b->src[i];
  node_list all = topo_sort(&k->work, roots, n, whole ? NULL : enters_body, f);
  for (size_t i = 0; i < all.n; i++) add_to(k, f, &f->early, all.at[i]);
  if (p.arrays) collect_emitted(k, f, &p);
}

static void push_frame(kernel *k, const node *b) {
  frame f = {.b = b};
  if (b->op != OP_SINK) f.n_ranges = binder_ranges(b, &f.ranges);
  f.opened = arena_alloc(&k->work, f.n_ranges * sizeof *f.opened);
  collect_items(k, &f);
  vec_push(&k->work, &k->frames, f);
}

static void declare(kernel *k, cell *c, const node *n, dtype t, size_t rank) {
  if (rank > INTERP_MAX_RANK) ill_formed(k, n, "has too many dimensions");
  c->dtype = t;
  c->rank = rank;
}

/** Starts an array of a binder with its current extents and no written element. */
static void add_build(kernel *k, cell *c, const node *b, dtype t, size_t rank,
                      const node *const extents[]) {
  declare(k, c, b, t, rank);
  const uint32_t *extent = use_all(k, extents, rank);
  step *s = add_step(k, STEP_BUILD, b);
  s->cell = c;
  s->extent = extent;
}

static void start_stage(kernel *k, const node *b) {
  cells *c = new_cells(k, &k->built, b, stage_n_values(b));
  for (size_t i = 0; i < c->n; i++)
    add_build(k, &c->at[i], b, (dtype)stage_value(b, i)->dtype, stage_rank(b, i),
              stage_extents(b, i));
}

static void add_init(kernel *k, cell *c, const node *b, size_t i) {
  const node *init = fold_init(b, i);
  declare(k, c, b, fold_dtype(b, i), fold_rank(b, i));
  const uint32_t *extent = use_all(k, fold_extents(b, i), c->rank), *from = NULL;
  cell *with = NULL;
  if (init->op == OP_STAGE)
    with = component(k, &k->built, init, fold_component(b, i), b);
  else
    from = use_all(k, &init, 1);
  step *s = add_step(k, STEP_INIT, b);
  s->cell = c;
  s->extent = extent;
  s->with = with;
  s->from = from;
  s->op = -1;
}

static void start_fold(kernel *k, const node *b) {
  size_t n = fold_n_states(b);
  cells *c = new_cells(k, &k->built, b, n + fold_n_emits(b));
  for (size_t i = 0; i < n; i++) add_init(k, &c->at[i], b, i);
  for (size_t i = n; i < c->n; i++)
    add_build(k, &c->at[i], b, fold_dtype(b, i), fold_rank(b, i), fold_extents(b, i));
  map_set(&k->work, &k->carried, fold_innermost_range(b), c);
}

static void add_write(kernel *k, const node *b, size_t i, const node *value, size_t rank,
                      const node *const coords[]) {
  uint32_t to = use_slot(k, value);
  const uint32_t *from = use_all(k, coords, rank);
  cell *c = component(k, &k->built, b, (int64_t)i, b);
  step *s = add_step(k, STEP_WRITE, b);
  s->cell = c;
  s->to = to;
  s->from = from;
  s->n_from = (uint32_t)rank;
}

static void write_values(kernel *k, const frame *f) {
  for (size_t i = 0; i < stage_n_values(f->b); i++)
    if (stage_loop_depth(f->b, i) == f->level)
      add_write(k, f->b, i, stage_value(f->b, i), stage_rank(f->b, i), stage_coords(f->b, i));
}

static void write_emits(kernel *k, const node *b) {
  size_t n = fold_n_states(b);
  for (size_t i = 0; i < fold_n_emits(b); i++)
    add_write(k, b, n + i, fold_emit(b, i), fold_rank(b, n + i), fold_coords(b, i));
}

static void update_states(kernel *k, const node *b) {
  for (size_t i = 0; i < fold_n_states(b); i++) {
    const node *next = fold_step(b, i);
    cell *with = NULL;
    uint32_t to = 0;
    if (fold_component(b, i) >= 0)
      with = component(k, &k->built, next, fold_component(b, i), b);
    else
      to = use_slot(k, next);
    cell *c = component(k, &k->built, b, (int64_t)i, b);
    step *s = add_step(k, STEP_UPDATE, b);
    s->cell = c;
    s->with = with;
    s->to = to;
    s->op = fold_op(b, i);
  }
}

static void open_loop(kernel *k, frame *f) {
  const node *r = f->ranges[f->level];
  uint32_t s = slot_of(k, r), extent = use_slot(k, range_extent(r));
  if (k->slots.at[s].open) ill_formed(k, f->b, "binds a range that is bound already");
  k->slots.at[s] = (slot){.ready = true, .open = true};
  f->opened[f->level++] = k->steps.n;
  f->next = 0;
  step *open = add_step(k, STEP_OPEN, r);
  open->to = s;
  open->from = arena_copy(&k->work, &extent, sizeof extent);
}

static void close_loops(kernel *k, frame *f) {
  while (f->level) {
    const node *r = f->ranges[--f->level];
    size_t open = f->opened[f->level];
    step *s = add_step(k, STEP_CLOSE, r);
    s->to = slot_of(k, r);
    s->jump = open;
    k->steps.at[open].jump = k->steps.n - 1;
    k->slots.at[s->to].ready = k->slots.at[s->to].open = false;
  }
}

/** Invalidates the values of a loop that closes. */
static void end_values(kernel *k, const items *list) {
  for (size_t i = 0; i < list->n; i++) {
    uint32_t s = slot_of(k, list->at[i].n);
    k->slots.at[s].ready = false;
  }
}

static void add_item(kernel *k, const node *n) {
  switch (n->op) {
  case OP_CONST: preset(k, n, (uint64_t)node_int(n), false); return;
  case OP_VAR: preset(k, n, interp_var_value(k->e, n, k->d), false); return;
  case OP_INVALID: preset(k, n, 0, true); return;
  case OP_PARAM: add_param(k, n); return;
  case OP_INDEX: add_read(k, n); return;
  case OP_STAGE: start_stage(k, n), push_frame(k, n); return;
  case OP_FOLD: start_fold(k, n), push_frame(k, n); return;
  case OP_RANGE:
  case OP_STATE:
  case OP_OUT: return;
  default: break;
  }
  bool is_scalar = op_is_elementwise(n->op) || n->op == OP_DISTINCT;
  if (!is_scalar || n->lanes != 1 || n->rank || !(op_facts_of(n->op)->stages & LEVEL_KERNEL))
    ill_formed(k, n, "is no op of a kernel");
  add_op(k, n);
}

/** Returns the next node to compute at the open level; NULL after the last. */
static const node *next_item(frame *f) {
  const items *list = f->stepped ? &f->late : &f->early;
  while (f->next < list->n && list->at[f->next].level != f->level) f->next++;
  return f->next < list->n ? list->at[f->next++].n : NULL;
}

static void step_states(kernel *k, frame *f) {
  update_states(k, f->b);
  f->stepped = true;
  f->next = 0;
}

static void close_frame(kernel *k, frame *f) {
  if (f->b->op == OP_FOLD) write_emits(k, f->b);
  close_loops(k, f);
  if (f->b->op != OP_SINK) end_values(k, &f->early);
  end_values(k, &f->late);
  k->frames.n--;
}

/** Flattens the innermost binder until it is complete or an inner one opens. */
static void flatten_frame(kernel *k) {
  frame *f = &vec_last(&k->frames);
  for (;;) {
    const node *n = next_item(f);
    if (n) {
      size_t depth = k->frames.n;
      add_item(k, n);
      if (k->frames.n != depth) return;
      continue;
    }
    if (f->b->op == OP_STAGE) write_values(k, f);
    if (f->level < f->n_ranges)
      open_loop(k, f);
    else if (f->b->op == OP_FOLD && !f->stepped)
      step_states(k, f);
    else
      break;
  }
  close_frame(k, f);
}

static void add_outputs(kernel *k) {
  for (uint32_t i = 0; i < k->sink->n_src; i++) {
    const node *out = k->sink->src[i];
    if (out->op != OP_OUT) ill_formed(k, out, "is no output of a kernel");
    for (uint32_t j = 0; j + 1 < out->n_src; j++) {
      cell *from = component(k, &k->built, out->src[out->n_src - 1], j, out);
      cell *to = component(k, &k->built, out->src[j], 0, out);
      if (from->dtype != to->dtype || from->rank != to->rank)
        ill_formed(k, out, "has a param of another type or rank than its stage");
      step *s = add_step(k, STEP_OUT, out);
      s->cell = from;
      s->with = to;
    }
  }
}

static void flatten(kernel *k) {
  if (k->sink->op != OP_SINK) ill_formed(k, k->sink, "is no kernel's root");
  if (k->sink->free->n) ill_formed(k, k->sink->free->at[0], "is bound by nothing");
  push_frame(k, k->sink);
  while (k->frames.n) flatten_frame(k);
  add_outputs(k);
}

/* Running. */

/** Computes the position of an element; false if a coordinate is outside or invalid. */
static bool element_position(const kernel *k, const cell *c, const uint32_t *coords, size_t *at) {
  *at = 0;
  for (size_t i = 0; i < c->rank; i++) {
    const slot *s = &k->slots.at[coords[i]];
    if (s->invalid || (int64_t)s->bits < 0 || (int64_t)s->bits >= c->dims[i]) return false;
    *at = *at * (size_t)c->dims[i] + (size_t)s->bits;
  }
  return true;
}

static uint64_t read_element(const cell *c, size_t at) {
  static const uint64_t ones = UINT64_MAX;
  size_t bytes = dtype_bytes(c->dtype);
  bool written = !c->written || c->written[at];
  return scalar_load(c->dtype, written ? c->data + at * bytes : (const char *)&ones);
}

static void write_element(cell *c, size_t at, uint64_t bits) {
  scalar_store(c->dtype, c->data + at * dtype_bytes(c->dtype), bits);
  if (c->written) c->written[at] = 1;
}

/** Gives an array its current extents and no written element. */
static void shape_cell(kernel *k, cell *c, const node *n, const uint32_t *extent) {
  size_t bytes = dtype_bytes(c->dtype);
  for (size_t i = 0; i < c->rank && extent; i++) c->dims[i] = (int64_t)k->slots.at[extent[i]].bits;
  c->count = interp_element_count(c->rank, c->dims, bytes + 1, n, k->d);
  size_t wanted = c->count * (bytes + 1);
  if (wanted > c->owned) {
    mem_free(k->work.mem, c->data, c->owned);
    c->owned = 0;
    c->data = mem_alloc(k->work.mem, wanted);
    char none[MEM_TEXT_BYTES];
    if (!c->data) diag_raise(k->d, TN_ERR_MEMORY, "%s", mem_exhausted_text(wanted, none));
    c->owned = wanted;
  }
  c->written = (uint8_t *)(c->data ? c->data + c->count * bytes : NULL);
  if (c->count) memset(c->written, 0, c->count);
}

static uint64_t combined(kernel *k, const step *s, uint64_t old, uint64_t next) {
  if (s->op < 0) return next;
  dtype t = s->cell->dtype;
  return scalar_eval((op)s->op, t, t, (uint64_t[]){old, next}, &k->overflow);
}

/** Replaces the elements of an array that another one has, or combines them by the step's op; the
    others stay as they are. */
static void combine_cells(kernel *k, const step *s) {
  cell *to = s->cell;
  const cell *from = s->with;
  if (to->rank != from->rank || to->count != from->count || to->dtype != from->dtype ||
      memcmp(to->dims, from->dims, to->rank * sizeof *to->dims))
    ill_formed(k, s->n, "has a state whose shape or type changes");
  for (size_t i = 0; i < to->count; i++) {
    if (!from->written[i]) continue;
    if (s->op < 0 || to->written[i])
      write_element(to, i, combined(k, s, read_element(to, i), read_element(from, i)));
  }
}

static void run_update(kernel *k, const step *s) {
  if (s->with)
    combine_cells(k, s);
  else
    write_element(s->cell, 0, combined(k, s, read_element(s->cell, 0), k->slots.at[s->to].bits));
}

static void check_param(kernel *k, const step *s) {
  for (size_t i = 0; i < s->cell->rank; i++)
    if (s->cell->dims[i] != (int64_t)k->slots.at[s->extent[i]].bits)
      diag_raise(k->d, TN_ERR_SHAPE, "param %lld was given an array of another shape",
                 (long long)s->n->ints[0]);
}

static void run_op(kernel *k, const step *s) {
  uint64_t args[3];
  bool invalid = false;
  for (uint32_t i = 0; i < s->n_from && i < 3; i++) {
    args[i] = k->slots.at[s->from[i]].bits;
    invalid |= k->slots.at[s->from[i]].invalid;
  }
  if (invalid && s->n->op == OP_WHERE) invalid = k->slots.at[s->from[args[0] ? 1 : 2]].invalid;
  slot *to = &k->slots.at[s->to];
  to->invalid = invalid;
  if (s->n->op == OP_DISTINCT) {
    to->bits = args[0];
    return;
  }
  dtype t = s->n->src[scalar_typed_operand(s->n->op)]->dtype;
  to->bits = scalar_eval(s->n->op, t, s->n->dtype, args, &k->overflow);
}

static void run_affine(kernel *k, const step *s) {
  slot *to = &k->slots.at[s->to];
  to->invalid = false;
  for (uint32_t i = 0; i < s->n_from; i++) {
    k->args[i] = k->slots.at[s->from[i]].bits;
    to->invalid |= k->slots.at[s->from[i]].invalid;
  }
  to->bits = scalar_eval_affine(s->n->ints, s->n_from, k->args, &k->overflow);
}

static void run_init(kernel *k, const step *s) {
  shape_cell(k, s->cell, s->n, s->extent);
  if (s->with) {
    combine_cells(k, s);
    return;
  }
  for (size_t i = 0; i < s->cell->count; i++)
    write_element(s->cell, i, k->slots.at[s->from[0]].bits);
}

static void run_out(kernel *k, const step *s) {
  const cell *from = s->cell;
  if (memcmp(from->dims, s->with->dims, from->rank * sizeof *from->dims))
    diag_raise(k->d, TN_ERR_SHAPE,
               "out (node %" PRIu64 "): its param has other sizes than its stage", s->n->id);
  for (size_t i = 0; i < from->count; i++)
    if (from->written[i]) write_element(s->with, i, read_element(from, i));
}

/** Enters a loop or skips it; returns the number of the step before the next one. */
static size_t run_open(kernel *k, step *s, size_t pc) {
  s->limit = (int64_t)k->slots.at[s->from[0]].bits;
  k->slots.at[s->to].bits = 0;
  return s->limit > 0 ? pc : s->jump;
}

static size_t run_close(kernel *k, const step *s, size_t pc) {
  slot *r = &k->slots.at[s->to];
  return (int64_t)++r->bits < k->steps.at[s->jump].limit ? s->jump : pc;
}

static void run_steps(kernel *k) {
  uint32_t most = 0;
  for (size_t i = 0; i < k->steps.n; i++)
    if (k->steps.at[i].n_from > most) most = k->steps.at[i].n_from;
  k->args = arena_alloc(&k->work, most * sizeof *k->args);
  for (size_t pc = 0; pc < k->steps.n; pc++) {
    step *s = &k->steps.at[pc];
    size_t at;
    switch (s->kind) {
    case STEP_OP: run_op(k, s); break;
    case STEP_AFFINE: run_affine(k, s); break;
    case STEP_PARAM: check_param(k, s); break;
    case STEP_READ:
      k->slots.at[s->to].bits =
          element_position(k, s->cell, s->from, &at) ? read_element(s->cell, at) : 0;
      break;
    case STEP_OPEN: pc = run_open(k, s, pc); break;
    case STEP_CLOSE: pc = run_close(k, s, pc); break;
    case STEP_BUILD: shape_cell(k, s->cell, s->n, s->extent); break;
    case STEP_WRITE:
      if (element_position(k, s->cell, s->from, &at))
        write_element(s->cell, at, k->slots.at[s->to].bits);
      break;
    case STEP_INIT: run_init(k, s); break;
    case STEP_UPDATE: run_update(k, s); break;
    case STEP_OUT: run_out(k, s); break;
    }
    if (k->overflow)
      diag_raise(k->d, TN_ERR_SHAPE, "%s (node %" PRIu64 "): an index beyond 64 bits",
                 op_name(s->n->op), s->n->id);
  }
}

static void run_kernel(void *arg) {
  flatten(arg);
  run_steps(arg);
}

tn_status interp_kernel(const interp_env *e, const node *sink, const mem *m, diag *d) {
  kernel k = {.e = e, .sink = sink, .d = d};
  arena_init(&k.work, m, d);
  tn_status status = diag_catch(d, run_kernel, &k);
  for (size_t i = 0; i < k.all_cells.n; i++)
    if (k.all_cells.at[i]->owned) mem_free(m, k.all_cells.at[i]->data, k.all_cells.at[i]->owned);
  arena_free(&k.work);
  return status;
}
