/* Implements the interpreter of linear programs, which checks every memory access. Decodes the list
   of instructions into steps first: each value gets a slot in one table of lanes, each storage an
   entry with its size, so that running is one loop over the steps. In teams each worker has its own
   steps and tables (interp_teams.c). */
#include "ir/core/scalar_eval.h"
#include "ir/core/tensor_rows.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/linear_program.h"

#include <string.h>

_Noreturn void linear_ill_formed(const program *p, const node *n, const char *what) {
  diag_raise(p->d, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") %s", op_name(n->op), n->id, what);
}

/* Decoding. */

static uint32_t innermost_loop(const program *p) {
  return p->decoding.loops.n ? vec_last(&p->decoding.loops).serial : 0;
}

static bool is_open(const program *p, uint32_t serial) {
  for (size_t i = 0; i < p->decoding.loops.n; i++)
    if (p->decoding.loops.at[i].serial == serial) return true;
  return serial == 0;
}

/** Gives a node a slot, whose value is defined in the loop `serial` and in those inside. */
static uint32_t define_slot(program *p, const node *n, uint32_t serial) {
  uint32_t s = (uint32_t)(uintptr_t)map_get(&p->decoding.number, n);
  if (!s) {
    vec_push(&p->work, &p->slots, (slot){.at = p->values.n, .lanes = n->lanes});
    for (unsigned i = 0; i < n->lanes; i++) vec_push(&p->work, &p->values, 0);
    s = (uint32_t)p->slots.n;
    map_set(&p->work, &p->decoding.number, n, (void *)(uintptr_t)s);
  } else if (is_open(p, p->slots.at[s - 1].defined - 1)) {
    linear_ill_formed(p, n, "is listed twice");
  }
  p->slots.at[s - 1].defined = serial + 1;
  return s - 1;
}

static bool is_leaf(const node *n) {
  return n->op == OP_CONST || n->op == OP_VAR || n->op == OP_INVALID;
}

static uint32_t define_leaf(program *p, const node *n) {
  uint32_t s = define_slot(p, n, 0);
  uint64_t bits = 0;
  if (n->op == OP_CONST) bits = (uint64_t)node_int(n);
  if (n->op == OP_VAR && !strcmp(n->text, "core_count"))
    bits = scalar_cast(n->dtype, DT_I64, (uint64_t)p->core_count);
  else if (n->op == OP_VAR)
    bits = interp_var_value(p->e, n, p->d);
  for (unsigned i = 0; i < n->lanes; i++) p->values.at[p->slots.at[s].at + i] = bits;
  p->slots.at[s].invalid = n->op == OP_INVALID;
  return s;
}

/** The slot of a source; raises unless it is defined here. */
static uint32_t use_slot(program *p, const node *n, const node *user) {
  uint32_t s = (uint32_t)(uintptr_t)map_get(&p->decoding.number, n);
  if (!s && is_leaf(n)) return define_leaf(p, n);
  if (!s || !is_open(p, p->slots.at[s - 1].defined - 1))
    diag_raise(p->d, TN_ERR_INTERNAL,
               "%s (node %" PRIu64 ") uses %s (node %" PRIu64 ") where it has no value",
               op_name(user->op), user->id, op_name(n->op), n->id);
  return s - 1;
}

static storage *new_storage(program *p, const node *n) {
  storage *m = arena_calloc(&p->work, 1, sizeof *m);
  *m = (storage){.n = n, .dtype = n->dtype, .lanes = 1};
  map_set(&p->work, &p->decoding.stored, n, m);
  vec_push(&p->work, &p->storages, m);
  return m;
}

/** The storage of a LOAD or STORE; raises unless it is listed before `user`. */
static storage *storage_of(program *p, const node *of, const node *user) {
  while (of->op == OP_AFTER) of = of->src[0];
  storage *m = map_get(&p->decoding.stored, of);
  if (m && is_open(p, m->serial)) return m;
  if (of->op != OP_PARAM)
    linear_ill_formed(p, user, "works on a storage that is not listed before it");
  const interp_array *a = interp_param(p->e, of, p->d);
  m = new_storage(p, of);
  m->data = a->data;
  m->count = a->bytes / dtype_bytes(of->dtype);
  return m;
}

static step *add_step(program *p, step_kind kind, const node *n, const node *const *src,
                      uint32_t n_src) {
  uint32_t *from = arena_alloc(&p->work, n_src * sizeof *from);
  for (uint32_t i = 0; i < n_src; i++) from[i] = use_slot(p, src[i], n);
  vec_push(&p->work, &p->steps, (step){.kind = kind, .n = n, .from = from, .n_from = n_src});
  return &vec_last(&p->steps);
}

static void add_loop(program *p, const node *n) {
  step *s = add_step(p, STEP_OPEN, n, n->src, 1);
  vec_push(&p->work, &p->decoding.loops, (loop){n, ++p->decoding.next_serial, p->steps.n - 1});
  s->to = define_slot(p, n, p->decoding.next_serial);
}

static void add_end(program *p, const node *n) {
  if (!p->decoding.loops.n || vec_last(&p->decoding.loops).range != n->src[0])
    linear_ill_formed(p, n, "closes a loop that is not the innermost open one");
  loop l = vec_pop(&p->decoding.loops);
  step *s = add_step(p, STEP_CLOSE, n, NULL, 0);
  s->to = p->steps.at[l.open].to;
  s->jump = l.open;
  p->steps.at[l.open].jump = p->steps.n - 1;
}

static void add_alloc(program *p, const node *n) {
  step *s = add_step(p, STEP_ALLOC, n, n->src, 1);
  s->storage = map_get(&p->decoding.stored, n);
  if (!s->storage) s->storage = new_storage(p, n);
  s->storage->lanes = n->lanes;
  s->storage->serial = innermost_loop(p);
  s->storage->is_shared = p->team && space_is_shared(n->ints[1]);
  if (n->lanes != 1 && n->ints[1] != 0) linear_ill_formed(p, n, "has vectors in scratch memory");
}

static void check_access(const program *p, const node *n, const storage *m, const node *value) {
  bool registers = m->n->op == OP_ALLOC && m->n->ints[1] == 0;
  if (m->dtype != value->dtype || (registers && m->lanes != value->lanes))
    linear_ill_formed(p, n, "has not the type or lanes of its storage");
}

static void add_load(program *p, const node *n) {
  storage *m = storage_of(p, n->src[0], n);
  step *s = add_step(p, STEP_LOAD, n, n->src + 1, n->n_src - 1u);
  s->storage = m;
  s->to = define_slot(p, n, innermost_loop(p));
  check_access(p, n, m, n);
}

static void add_store(program *p, const node *n) {
  storage *m = storage_of(p, n->src[0], n);
  step *s = add_step(p, STEP_STORE, n, n->src + 1, 2);
  s->storage = m;
  check_access(p, n, m, n->src[2]);
}

/** The value of a SPECIAL: core_id, or a value given by name. */
static int64_t launch_index(const program *p, const node *n) {
  if (!strcmp(n->text, "core_id")) return p->core_id;
  if (p->team && !strcmp(n->text, "g0")) return 0;
  if (p->team && !strcmp(n->text, "l0")) return p->worker;
  for (size_t i = 0; i < p->e->n_vars; i++)
    if (!strcmp(p->e->vars[i].name, n->text)) return p->e->vars[i].value;
  linear_ill_formed(p, n, "is a launch index that was given no value");
}

static void add_special(program *p, const node *n) {
  uint32_t s = define_slot(p, n, innermost_loop(p));
  if (p->team && !strcmp(n->text, "g0")) vec_push(&p->work, &p->group_slots, s);
  p->values.at[p->slots.at[s].at] = scalar_cast(n->dtype, DT_I64, (uint64_t)launch_index(p, n));
}

/** An instruction at which a team meets, in one iteration of the loops around it. */
static step *add_meeting(program *p, step_kind kind, const node *n) {
  node_list from = {0};
  for (uint32_t i = 0; i < n->n_src; i++) vec_push(&p->work, &from, n->src[i]);
  for (size_t i = 0; i < p->decoding.loops.n; i++)
    vec_push(&p->work, &from, p->decoding.loops.at[i].range);
  return add_step(p, kind, n, from.at, (uint32_t)from.n);
}

static step_kind kind_of(op o) {
  switch (o) {
  case OP_AFFINE: return STEP_AFFINE;
  case OP_VECTORIZE: return STEP_VECTORIZE;
  case OP_EXTRACT: return STEP_EXTRACT;
  case OP_SPLAT: return STEP_SPLAT;
  default: break;
  }
  const tensor_tile *tile = tensor_tile_of(o);
  return !tile ? STEP_OP : tile->workers == 1 ? STEP_TILE : STEP_WARP_TILE;
}

static void check_lanes(const program *p, const node *n, step_kind kind) {
  bool fits = true;
  for (uint32_t i = 0; i < n->n_src; i++)
    fits &= n->src[i]->lanes == (kind == STEP_OP ? n->lanes : 1) || kind == STEP_EXTRACT ||
            kind == STEP_TILE || kind == STEP_WARP_TILE;
  if (kind == STEP_EXTRACT)
    fits = n->lanes == 1 && n->ints[0] >= 0 && n->ints[0] < n->src[0]->lanes;
  if (kind == STEP_VECTORIZE) fits &= n->lanes == n->n_src;
  if (!fits) linear_ill_formed(p, n, "has operands whose lanes do not fit");
}

static void add_instruction(program *p, const node *n) {
  switch (n->op) {
  case OP_RANGE: add_loop(p, n); return;
  case OP_END: add_end(p, n); return;
  case OP_ALLOC: add_alloc(p, n); return;
  case OP_LOAD: add_load(p, n); return;
  case OP_STORE: add_store(p, n); return;
  case OP_SPECIAL: add_special(p, n); return;
  case OP_BARRIER: add_meeting(p, STEP_BARRIER, n); return;
  case OP_WAIT: add_step(p, STEP_WAIT, n, NULL, 0); return;
  case OP_PARAM:
  case OP_PREFETCH:
  case OP_AFTER: return;
  default: break;
  }
  if (is_leaf(n)) return;
  if (!op_is_elementwise(n->op)) linear_ill_formed(p, n, "is no instruction");
  check_lanes(p, n, kind_of(n->op));
  step_kind kind = kind_of(n->op);
  step *s =
      kind == STEP_WARP_TILE ? add_meeting(p, kind, n) : add_step(p, kind, n, n->src, n->n_src);
  s->to = define_slot(p, n, innermost_loop(p));
}

void linear_decode(program *p) {
  const node *l = p->linear;
  if (l->op == OP_PROGRAM && l->n_src > 2) l = l->src[2];
  if (l->op != OP_LINEAR) linear_ill_formed(p, l, "is no linear program");
  for (uint32_t i = 0; i < l->n_src; i++) add_instruction(p, l->src[i]);
  if (p->decoding.loops.n)
    linear_ill_formed(p, vec_last(&p->decoding.loops).range, "is never closed");
  uint32_t most = 0;
  for (size_t i = 0; i < p->steps.n; i++)
    if (p->steps.at[i].n_from > most) most = p->steps.at[i].n_from;
  p->args = arena_alloc(&p->work, most * sizeof *p->args);
}

/* Running. */

static slot *operand(const program *p, const step *s, uint32_t i) {
  return &p->slots.at[s->from[i]];
}

static uint64_t *lanes_of(const program *p, const slot *s) { return &p->values.at[s->at]; }

uint64_t *linear_operand(const program *p, const step *s, uint32_t i) {
  return lanes_of(p, operand(p, s, i));
}

/** Makes a value depend on what its operand depends on. */
static void take_unwritten(slot *to, const slot *from) {
  if (!from->unwritten) return;
  to->unwritten = from->unwritten;
  to->unwritten_at = from->unwritten_at;
}

/** Raises if an operand that decides something, or is stored, depends on an element that was not
    written. */
static const slot *written_operand(const program *p, const step *s, uint32_t i) {
  const slot *of = operand(p, s, i);
  if (!of->unwritten) return of;
  const step *load = of->unwritten;
  diag_raise(p->d, TN_ERR_INTERNAL,
             "load (node %" PRIu64 ") reads element %zu of alloc (node %" PRIu64
             "), which was not written, for %s (node %" PRIu64 ")",
             load->n->id, of->unwritten_at / load->storage->lanes, load->storage->n->id,
             op_name(s->n->op), s->n->id);
}

static void run_alloc(program *p, const step *s) {
  storage *m = s->storage;
  int64_t size = (int64_t)*lanes_of(p, written_operand(p, s, 0));
  int64_t dims[] = {size, m->lanes};
  size_t bytes = dtype_bytes(m->dtype);
  m->count = interp_element_count(2, dims, bytes + 1, s->n, p->d);
  if (m->is_shared) {
    team_alloc(p, m);
    return;
  }
  size_t wanted = m->count * (bytes + 1);
  if (wanted > m->owned) {
    mem_free(p->work.mem, m->data, m->owned);
    m->owned = 0;
    m->data = mem_alloc(p->work.mem, wanted);
    char none[MEM_TEXT_BYTES];
    if (!m->data) diag_raise(p->d, TN_ERR_MEMORY, "%s", mem_exhausted_text(wanted, none));
    m->owned = wanted;
  }
  m->written = (uint8_t *)(m->data ? m->data + m->count * bytes : NULL);
  if (m->count) memset(m->written, 0, m->count);
}

static _Noreturn void raise_outside(const program *p, const step *s, int64_t address,
                                    unsigned lanes) {
  const storage *m = s->storage;
  diag_raise(p->d, TN_ERR_INTERNAL,
             "%s (node %" PRIu64 "): %u lanes at address %lld of %s (node %" PRIu64
             "), which has %zu elements",
             op_name(s->n->op), s->n->id, lanes, (long long)address, op_name(m->n->op), m->n->id,
             m->count / m->lanes);
}

/** The first scalar of an access; raises unless the access is inside of its storage. */
static size_t checked_address(const program *p, const step *s, int64_t address, unsigned lanes) {
  const storage *m = s->storage;
  size_t elements = m->count / m->lanes, length = m->lanes == 1 ? lanes : 1;
  if (length > elements || (uint64_t)address > elements - length)
    raise_outside(p, s, address, lanes);
  return (size_t)address * m->lanes;
}

/** Loads elements side by side. */
static void load_row(program *p, const step *s, size_t at, unsigned lanes, uint64_t v[]) {
  const storage *m = s->storage;
  slot *to = &p->slots.at[s->to];
  for (unsigned i = 0; i < lanes; i++) {
    if (p->team) team_note_read(p, s, at + i);
    if (m->n->op == OP_ALLOC && !m->written[at + i]) {
      to->unwritten = s;
      to->unwritten_at = at + i;
      v[i] = 0;
    } else {
      v[i] = scalar_load(m->dtype, m->data + (at + i) * dtype_bytes(m->dtype));
    }
  }
}

static void run_load(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  uint64_t *v = lanes_of(p, to);
  const slot *address = written_operand(p, s, 0);
  to->invalid = false;
  to->unwritten = NULL;
  if (address->invalid) {
    memset(v, 0, to->lanes * sizeof *v);
    return;
  }
  unsigned columns = s->n_from > 1 ? (unsigned)s->n->ints[0] : to->lanes;
  int64_t apart = s->n_from > 1 ? (int64_t)*lanes_of(p, written_operand(p, s, 1)) : 0;
  for (unsigned row = 0; row < to->lanes / columns; row++) {
    int64_t first = (int64_t)((uint64_t)*lanes_of(p, address) + (uint64_t)apart * row);
    load_row(p, s, checked_address(p, s, first, columns), columns, v + row * columns);
  }
}

static void put(const storage *m, size_t at, uint64_t bits) {
  scalar_store(m->dtype, m->data + at * dtype_bytes(m->dtype), bits);
  if (m->written) m->written[at] = 1;
}

/** Begins to copy an element, which is there from a WAIT on. */
static void put_ahead(program *p, const step *s, size_t at, uint64_t bits) {
  team_note_copy(p, s, at, true);
  vec_push(&p->work, &p->copies, ((copied_element){s, at, bits, p->waits}));
}

/** Ends the copies before all but the latest groups, of which one ends here. */
static void run_wait(program *p, const step *s) {
  size_t n = 0;
  int64_t pending = s->n->ints[0];
  p->waits++;
  for (size_t i = 0; i < p->copies.n; i++) {
    copied_element c = p->copies.at[i];
    bool is_done = pending >= 0 && c.group + (uint64_t)pending < p->waits;
    if (is_done) team_note_copy(p, c.store, c.at, false);
    if (is_done) put(c.store->storage, c.at, c.bits);
    if (!is_done) p->copies.at[n++] = c;
  }
  p->copies.n = n;
}

static void run_store(program *p, const step *s) {
  const storage *m = s->storage;
  const slot *address = written_operand(p, s, 0);
  if (address->invalid) return;
  const slot *value = written_operand(p, s, 1);
  if (value->invalid) linear_ill_formed(p, s->n, "stores an invalid address");
  size_t at = checked_address(p, s, (int64_t)*lanes_of(p, address), value->lanes);
  for (unsigned i = 0; i < value->lanes; i++) {
    uint64_t bits = lanes_of(p, value)[i];
    if (p->team) team_note_write(p, s, at + i, bits);
    if (p->team && s->n->n_int && s->n->ints[0] == STORE_AHEAD)
      put_ahead(p, s, at + i, bits);
    else
      put(m, at + i, bits);
  }
}

/** Raises for a division by 0 and for MIN / −1, which C leaves undefined, in any lane. */
static void check_division(const program *p, const step *s, const uint64_t args[]) {
  dtype t = s->n->dtype;
  bool overflows = dtype_is_signed(t) && (int64_t)args[1] == -1 && (int64_t)args[0] == dtype_min(t);
  if (!args[1] || overflows) linear_ill_formed(p, s->n, "divides by 0, or the least number by −1");
}

/** Makes what a WHERE selects invalid, or dependent on an element that was not written, where the
    side that it takes is. */
static void take_side(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  const slot *condition = operand(p, s, 0);
  bool takes[2] = {false, false};
  for (unsigned i = 0; i < to->lanes; i++) takes[!lanes_of(p, condition)[i]] = true;
  to->invalid = operand(p, s, *lanes_of(p, condition) ? 1 : 2)->invalid;
  to->unwritten = NULL;
  take_unwritten(to, condition);
  for (uint32_t k = 0; k < 2; k++)
    if (takes[k]) take_unwritten(to, operand(p, s, k + 1));
}

static void run_op(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  dtype t = s->n->src[scalar_typed_operand(s->n->op)]->dtype;
  bool overflow = false, divides = s->n->op == OP_CDIV || s->n->op == OP_CMOD;
  to->invalid = false;
  to->unwritten = NULL;
  for (uint32_t k = 0; k < s->n_from; k++) {
    to->invalid |= operand(p, s, k)->invalid;
    take_unwritten(to, operand(p, s, k));
  }
  for (unsigned i = 0; i < to->lanes; i++) {
    uint64_t args[3];
    for (uint32_t k = 0; k < s->n_from && k < 3; k++) args[k] = lanes_of(p, operand(p, s, k))[i];
    if (divides && !to->invalid) check_division(p, s, args);
    lanes_of(p, to)[i] = scalar_eval(s->n->op, t, s->n->dtype, args, &overflow);
  }
  if (s->n->op == OP_WHERE && (to->invalid || to->unwritten)) take_side(p, s);
  if (overflow && !to->unwritten) linear_ill_formed(p, s->n, "is an index beyond 64 bits");
}

static void run_tile(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  to->unwritten = NULL;
  for (uint32_t k = 0; k < s->n_from; k++) take_unwritten(to, operand(p, s, k));
  memcpy(lanes_of(p, to), lanes_of(p, operand(p, s, 0)), to->lanes * sizeof(uint64_t));
  tensor_tile_eval(tensor_tile_of(s->n->op), lanes_of(p, to), lanes_of(p, operand(p, s, 1)),
                   lanes_of(p, operand(p, s, 2)));
}

/** Prepares a worker's part of a tile that its warp computes once all have come by. */
static void await_warp(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  if (!p->team) linear_ill_formed(p, s->n, "needs a warp");
  to->unwritten = NULL;
  for (uint32_t k = 0; k < TENSOR_OPERANDS; k++) take_unwritten(to, operand(p, s, k));
  memcpy(lanes_of(p, to), linear_operand(p, s, 0), to->lanes * sizeof(uint64_t));
}

static void run_affine(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  bool overflow = false;
  to->invalid = false;
  to->unwritten = NULL;
  for (uint32_t i = 0; i < s->n_from; i++) {
    p->args[i] = *lanes_of(p, operand(p, s, i));
    to->invalid |= operand(p, s, i)->invalid;
    take_unwritten(to, operand(p, s, i));
  }
  *lanes_of(p, to) = scalar_eval_affine(s->n->ints, s->n_from, p->args, &overflow);
  if (overflow && !to->unwritten) linear_ill_formed(p, s->n, "is an index beyond 64 bits");
}

static void run_lanes(program *p, const step *s) {
  slot *to = &p->slots.at[s->to];
  to->unwritten = NULL;
  for (unsigned i = 0; i < to->lanes; i++) {
    const slot *from = operand(p, s, s->kind == STEP_VECTORIZE ? i : 0);
    take_unwritten(to, from);
    lanes_of(p, to)[i] = lanes_of(p, from)[s->kind == STEP_EXTRACT ? s->n->ints[0] : 0];
  }
}

bool linear_run(program *p) {
  for (size_t pc = p->next; pc < p->steps.n; pc++) {
    step *s = &p->steps.at[pc];
    switch (s->kind) {
    case STEP_OPEN:
      s->limit = (int64_t)*lanes_of(p, written_operand(p, s, 0));
      *lanes_of(p, &p->slots.at[s->to]) = 0;
      if (s->limit <= 0) pc = s->jump;
      break;
    case STEP_CLOSE:
      if ((int64_t)++ * lanes_of(p, &p->slots.at[s->to]) < p->steps.at[s->jump].limit) pc = s->jump;
      break;
    case STEP_ALLOC: run_alloc(p, s); break;
    case STEP_LOAD: run_load(p, s); break;
    case STEP_STORE: run_store(p, s); break;
    case STEP_WAIT: run_wait(p, s); break;
    case STEP_AFFINE: run_affine(p, s); break;
    case STEP_VECTORIZE:
    case STEP_EXTRACT:
    case STEP_SPLAT: run_lanes(p, s); break;
    case STEP_OP: run_op(p, s); break;
    case STEP_TILE: run_tile(p, s); break;
    case STEP_WARP_TILE:
      await_warp(p, s);
      p->next = pc + 1;
      return false;
    case STEP_BARRIER:
      if (!p->team) break;
      p->next = pc + 1;
      return false;
    }
  }
  return true;
}

/** True if the launch has a worker of this number: the extent of core_id is the number of
    workers. */
static bool has_worker(program *p) {
  const node *id = NULL;
  for (uint32_t i = 0; i < p->linear->n_src && !id; i++) {
    const node *n = p->linear->src[i];
    if (n->op == OP_SPECIAL && !strcmp(n->text, "core_id")) id = n;
  }
  if (!id) return true;
  node_list order = topo_sort(&p->work, id->src, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    for (size_t k = 0; k < p->steps.n; k++) {
      const step *s = &p->steps.at[k];
      if (s->n != order.at[i]) continue;
      if (s->kind == STEP_AFFINE) run_affine(p, s);
      if (s->kind == STEP_OP) run_op(p, s);
    }
  uint32_t count = use_slot(p, id->src[0], id); /* may define the slot, which moves the table */
  return p->core_id < (int64_t)*lanes_of(p, &p->slots.at[count]);
}

static void run_program(void *arg) {
  linear_decode(arg);
  if (has_worker(arg)) linear_run(arg);
}

void linear_free(program *p) {
  for (size_t i = 0; i < p->storages.n; i++)
    if (p->storages.at[i]->owned)
      mem_free(p->work.mem, p->storages.at[i]->data, p->storages.at[i]->owned);
  arena_free(&p->work);
}

tn_status interp_linear(const interp_env *e, const node *linear, int64_t core_id,
                        int64_t core_count, const mem *m, diag *d) {
  program p = {.e = e, .linear = linear, .core_id = core_id, .core_count = core_count, .d = d};
  arena_init(&p.work, m, d);
  tn_status status = diag_catch(d, run_program, &p);
  linear_free(&p);
  return status;
}
