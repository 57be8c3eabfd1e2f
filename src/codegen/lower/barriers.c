/* Inserts barriers into linear programs for teams of workers. A read after a write, or a write
   after a read, of one shared array needs a barrier of the team that shares it; two writes need
   none, as no element is written twice. A barrier stands directly before the later access, but
   outside of the loops that hold that and not the earlier one. Accesses at the end of a loop come
   before those at its beginning: each loop is passed until nothing changes. Where workers run
   different numbers of iterations, or some do and some do not, there is no barrier inside.

   Of an array in slots a turn reads one and fills another: its accesses clash with those of earlier
   turns alone, which end at WAITs. What is stored ahead is there after a WAIT, so that a barrier
   before it parts no store from later loads. */
#include "codegen/codegen.h"
#include "ir/core/uniform.h"

/** A shared array with its accesses since the last barrier of its team. */
typedef struct access {
  const node *alloc;
  bool is_read, is_written;
  bool is_read_now, is_written_now; /* in slots: since the last WAIT; the latter may be pending */
} access;

typedef VEC(access) accesses;

typedef struct program {
  ir *g;
  arena *a;
  const node *const *list;
  size_t *end;      /* of the loop that each RANGE opens, by position */
  map barriers;     /* instruction → SPACE_* of the barriers before it, as bits */
  size_t changes;   /* of these */
  uniformity facts; /* of the launch's numbers */
} program;

static const node *shared_array(const node *n) {
  if (n->op != OP_LOAD && n->op != OP_STORE) return NULL;
  const node *root = node_storage_root(n->src[0]);
  return root->op == OP_ALLOC && space_is_shared(root->ints[1]) ? root : NULL;
}

static access *find_access(const accesses *all, const node *alloc) {
  for (size_t i = 0; i < all->n; i++)
    if (all->at[i].alloc == alloc) return &all->at[i];
  return NULL;
}

static void add_access(program *p, accesses *all, access x) {
  access *known = find_access(all, x.alloc);
  if (!known) {
    vec_push(p->a, all, x);
    return;
  }
  known->is_read |= x.is_read;
  known->is_written |= x.is_written;
  known->is_read_now |= x.is_read_now;
  known->is_written_now |= x.is_written_now;
}

static access access_make(const node *n, const node *alloc) {
  bool reads = n->op == OP_LOAD, has_slots = alloc->n_int > 2;
  return (access){.alloc = alloc,
                  .is_read = reads && !has_slots,
                  .is_written = !reads && !has_slots,
                  .is_read_now = reads && has_slots,
                  .is_written_now = !reads && has_slots};
}

/** Makes the accesses of a turn those of an earlier one. */
static void end_turn(accesses *pending) {
  for (size_t i = 0; i < pending->n; i++) {
    access *x = &pending->at[i];
    x->is_read |= x->is_read_now;
    x->is_written |= x->is_written_now;
    x->is_read_now = false;
  }
}

static void add_all(program *p, accesses *to, const accesses *from) {
  for (size_t i = 0; i < from->n; i++) add_access(p, to, from->at[i]);
}

static bool clash(const access *a, const access *b) {
  bool reads = b->is_read || b->is_read_now, writes = b->is_written || b->is_written_now;
  return (a->is_written && reads) || (a->is_read && writes);
}

/** The spaces of arrays that later accesses need a barrier for, as bits. */
static unsigned needed(const accesses *earlier, const accesses *later) {
  unsigned spaces = 0;
  for (size_t i = 0; i < later->n; i++) {
    const access *before = find_access(earlier, later->at[i].alloc);
    if (before && clash(before, &later->at[i])) spaces |= 1u << before->alloc->ints[1];
  }
  return spaces;
}

/** Forgets the accesses that a barrier parts from later ones. */
static void pass_barrier(accesses *pending, unsigned spaces) {
  size_t n = 0;
  bool is_group = spaces >> SPACE_GROUP & 1;
  for (size_t i = 0; i < pending->n; i++) {
    access x = pending->at[i];
    if (is_group || spaces >> x.alloc->ints[1] & 1)
      x = (access){.alloc = x.alloc, .is_written_now = x.is_written_now};
    if (x.is_read || x.is_written || x.is_read_now || x.is_written_now) pending->at[n++] = x;
  }
  pending->n = n;
}

static unsigned barriers_before(const program *p, const node *n) {
  return (unsigned)(uintptr_t)map_get(&p->barriers, n);
}

static void put_barrier(program *p, const node *n, unsigned spaces) {
  unsigned before = barriers_before(p, n);
  p->changes += (before | spaces) != before;
  map_set(p->a, &p->barriers, n, (void *)(uintptr_t)(before | spaces));
}

/** The accesses of a list of instructions up to the first barrier that is surely passed; true if
    there is one. */
static bool first_accesses(program *p, size_t from, size_t to, accesses *first) {
  for (size_t i = from; i < to; i++) {
    const node *n = p->list[i];
    if (barriers_before(p, n) >> SPACE_GROUP & 1) return true;
    if (n->op == OP_RANGE) {
      bool stops = first_accesses(p, i + 1, p->end[i], first);
      if (stops && n->src[0]->lo >= 1) return true;
      i = p->end[i];
      continue;
    }
    const node *alloc = shared_array(n);
    if (alloc) add_access(p, first, access_make(n, alloc));
  }
  return false;
}

/** True if the iterations of a loop are turns: a WAIT is in it, and in no loop inside. */
static bool has_turns(const program *p, size_t at) {
  for (size_t i = at + 1; i < p->end[at]; i++) {
    if (p->list[i]->op == OP_WAIT) return true;
    if (p->list[i]->op == OP_RANGE) i = p->end[i];
  }
  return false;
}

/** Adds what was stored ahead before a loop of turns, and is there after its first WAIT. */
static void add_pending_stores(program *p, accesses *to, const accesses *pending) {
  for (size_t i = 0; i < pending->n; i++)
    if (pending->at[i].is_written_now)
      add_access(p, to, (access){.alloc = pending->at[i].alloc, .is_written_now = true});
}

static void insert(program *p, size_t from, size_t to, accesses *pending);

/** Parts what comes before an instruction or loop from its own accesses. */
static void part(program *p, const node *n, const accesses *own, accesses *pending) {
  unsigned spaces = needed(pending, own);
  if (spaces) put_barrier(p, n, spaces);
  pass_barrier(pending, barriers_before(p, n));
}

static void insert_around_loop(program *p, size_t at, accesses *pending) {
  const node *range = p->list[at];
  accesses first = {0}, carried = {0};
  bool is_uniform = uniform_size(&p->facts, range->src[0]), has_waits = has_turns(p, at);
  if (has_waits) end_turn(pending);
  if (is_uniform) {
    size_t least = has_waits ? 2 : 1; /* turns clash with earlier ones alone */
    for (size_t before = SIZE_MAX, n = 0; before != p->changes || n < least; n++) {
      before = p->changes;
      accesses start = {0};
      add_all(p, &start, &carried);
      carried = start;
      insert(p, at + 1, p->end[at], &carried);
    }
    if (has_waits) {
      add_pending_stores(p, &carried, pending);
      insert(p, at + 1, p->end[at], &carried);
    }
  }
  bool stops = first_accesses(p, at + 1, p->end[at], &first);
  if (!is_uniform && needed(&first, &first))
    diag_raise(ir_diag(p->g), TN_ERR_INTERNAL,
               "a loop (node %" PRIu64 ") of which workers run different parts writes and reads a "
               "shared array",
               range->id);
  part(p, range, &first, pending);
  if (stops && range->src[0]->lo >= 1) pass_barrier(pending, 1u << SPACE_GROUP);
  add_all(p, pending, is_uniform ? &carried : &first);
  if (has_waits) end_turn(pending);
}

/** Inserts barriers into the instructions from one position to another. */
static void insert(program *p, size_t from, size_t to, accesses *pending) {
  for (size_t i = from; i < to; i++) {
    const node *n = p->list[i], *alloc = shared_array(n);
    if (n->op == OP_RANGE) {
      insert_around_loop(p, i, pending);
      i = p->end[i];
    } else if (n->op == OP_WAIT) {
      end_turn(pending);
    } else if (alloc) {
      accesses own = {0};
      add_access(p, &own, access_make(n, alloc));
      part(p, n, &own, pending);
      add_all(p, pending, &own);
    }
  }
}

static size_t *find_loop_ends(arena *a, const node *linear) {
  size_t *end = arena_calloc(a, linear->n_src, sizeof *end);
  VEC(size_t) open = {0};
  for (size_t i = 0; i < linear->n_src; i++) {
    if (linear->src[i]->op == OP_RANGE) vec_push(a, &open, i);
    if (linear->src[i]->op == OP_END) end[vec_pop(&open)] = i;
  }
  return end;
}

static const node *barrier_make(ir *g, storage_space space) {
  int64_t ints[] = {ir_fresh_id(g), space};
  return ir_node(g, OP_BARRIER, DT_VOID, NULL, 0, ints, 2);
}

const node *codegen_barriers(ir *g, const node *linear) {
  bool is_shared = false;
  for (size_t i = 0; i < linear->n_src && !is_shared; i++)
    is_shared = shared_array(linear->src[i]) != NULL;
  if (!is_shared) return linear;
  arena *a = ir_arena(g);
  program p = {.g = g, .a = a, .list = linear->src, .end = find_loop_ends(a, linear)};
  p.facts.a = a;
  accesses pending = {0};
  node_list out = {0};
  insert(&p, 0, linear->n_src, &pending);
  for (size_t i = 0; i < linear->n_src; i++) {
    unsigned spaces = barriers_before(&p, p.list[i]);
    if (spaces)
      vec_push(a, &out, barrier_make(g, spaces >> SPACE_GROUP ? SPACE_GROUP : SPACE_WARP));
    vec_push(a, &out, p.list[i]);
  }
  return ir_node(g, OP_LINEAR, DT_VOID, out.at, out.n, NULL, 0);
}
