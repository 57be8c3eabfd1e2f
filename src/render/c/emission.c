/* Decides, before a LINEAR program (a list of instructions) is rendered, which values are inlined
   at their use, which stores are dead and how wide masks are. A forward sweep numbers values; a
   backward sweep sees all users of a value before the value and decides whether it is inlined. */
#include "render/c/emission.h"

#include "codegen/tile_plan.h"
#include "ir/core/shape_inference.h"
#include "target/machine.h"

static _Noreturn void ill_formed(const c_emission *p, const node *n, const char *what) {
  diag_raise(p->arena->diag, TN_ERR_INTERNAL, "%s (node %" PRIu64 ") %s", op_name((op)n->op), n->id,
             what);
}

c_value *c_emission_value(const c_emission *p, const node *n) { return map_get(&p->values, n); }

/* Storage. */

static c_storage *storage_of(c_emission *p, const node *root) {
  c_storage *s = map_get(&p->storages, root);
  if (s) return s;
  s = arena_calloc(p->arena, 1, sizeof *s);
  s->root = root;
  if (root->op == OP_PARAM) vec_push(p->arena, &p->slots, s);
  map_set(p->arena, &p->storages, root, s);
  return s;
}

static c_cell *cell_of(c_emission *p, c_storage *s, const node *address) {
  bool many = c_is_register(s->root);
  if (many && !(address && node_is_const(address)))
    ill_formed(p, s->root, "is in registers, but an address is no constant");
  int64_t at = many ? node_int(address) : 0;
  for (size_t i = 0; i < s->cells.n; i++)
    if (s->cells.at[i].address == at) return &s->cells.at[i];
  vec_push(p->arena, &s->cells, (c_cell){.address = at, .next_store = UINT32_MAX});
  return &vec_last(&s->cells);
}

c_access c_emission_access(c_emission *p, const node *n) {
  const node *root = node_storage_root(n->src[0]), *address = n->src[1];
  if (root->op != OP_PARAM && root->op != OP_ALLOC) ill_formed(p, n, "does not access storage");
  c_access access = {.storage = storage_of(p, root)};
  for (; address->op == OP_WHERE && address->src[2]->op == OP_INVALID; address = address->src[1])
    vec_push(p->arena, &access.masks, address->src[0]);
  access.cell = cell_of(p, access.storage, address);
  access.address = address->op == OP_INVALID ? NULL : address;
  return access;
}

/* Operands of instructions. */

/** True for a masked address, which is written as part of the LOADs and STOREs that use it. */
static bool is_masked_address(const node *n) {
  return n->op == OP_WHERE && n->src[2]->op == OP_INVALID;
}

static node_list memory_operands(c_emission *p, const node *n) {
  c_access access = c_emission_access(p, n);
  node_list list = access.masks;
  if (access.address && !c_is_register(access.storage->root))
    vec_push(p->arena, &list, access.address);
  bool is_copy = n->op == OP_STORE && c_is_copy(n);
  if (n->op == OP_STORE && !is_copy) vec_push(p->arena, &list, n->src[2]);
  node_list from = {0};
  if (is_copy) from = memory_operands(p, n->src[2]);
  for (size_t i = 0; i < from.n; i++) vec_push(p->arena, &list, from.at[i]);
  return list;
}

/** The values that the statement or expression of `n` uses. */
static node_list operands(c_emission *p, const node *n) {
  node_list list = {0};
  switch (n->op) {
  case OP_LOAD:
  case OP_STORE:
  case OP_PREFETCH: return memory_operands(p, n);
  case OP_RANGE: vec_push(p->arena, &list, n->src[0]); return list;
  case OP_ALLOC:
  case OP_END:
  case OP_BARRIER:
  case OP_WAIT:
  case OP_SPECIAL: return list;
  default: break;
  }
  for (uint32_t i = 0; i < n->n_src; i++) vec_push(p->arena, &list, n->src[i]);
  return list;
}

static bool is_value(const node *n) {
  return op_is_elementwise((op)n->op) || n->op == OP_LOAD || n->op == OP_RANGE ||
         n->op == OP_SPECIAL;
}

/* Masks. */

/** Lane width of a mask by its own operands, in bytes; 0: any. */
static unsigned own_mask(const c_emission *p, const node *n) {
  const node *x = n->n_src ? n->src[0] : NULL;
  if (!c_is_mask(n) || n->op == OP_SPLAT || n->op == OP_VECTORIZE) return 0;
  if (n->op == OP_LOAD) return 1;
  if (x && x->dtype != DT_BOOL) return (unsigned)dtype_bytes((dtype)x->dtype);
  unsigned widest = 0;
  for (uint32_t i = 0; i < n->n_src; i++) {
    const c_value *v = c_emission_value(p, n->src[i]);
    if (v && v->mask > widest) widest = v->mask;
  }
  return widest;
}

unsigned c_emission_wanted_mask(const c_emission *p, const node *n, size_t i) {
  const c_value *v = c_emission_value(p, n);
  switch (n->op) {
  case OP_STORE:
  case OP_BITCAST: return 1;
  case OP_EXTRACT: return 0;
  case OP_CAST: return dtype_is_float((dtype)n->dtype) ? 4 : (unsigned)dtype_bytes((dtype)n->dtype);
  case OP_WHERE:
    if (i == 0 && n->dtype != DT_BOOL) return (unsigned)dtype_bytes((dtype)n->dtype);
    return v->mask;
  default: return v ? v->mask : 0;
  }
}

/* Forward sweep: positions, masks, overflow, reads. */

static void number_values(c_emission *p) {
  VEC(uint32_t) open = {0};
  for (uint32_t i = 0; i < p->linear->n_src; i++) {
    const node *n = p->linear->src[i];
    if (n->op == OP_END) {
      if (!open.n || p->linear->src[vec_last(&open) - 1] != n->src[0])
        ill_formed(p, n, "closes a loop that is not the innermost");
      open.n--;
    }
    if (is_value(n)) {
      c_value *v = arena_calloc(p->arena, 1, sizeof *v);
      map_set(p->arena, &p->values, n, v);
      v->at = i;
      v->block = open.n ? vec_last(&open) : 0;
      v->mask = (uint16_t)own_mask(p, n);
      v->exact = n->lanes == 1 && infer_never_wraps(n);
    }
    if (n->op == OP_RANGE) vec_push(p->arena, &open, i + 1);
    if (n->op == OP_LOAD) c_emission_access(p, n).cell->read = true;
    if (n->op == OP_STORE) c_emission_access(p, n).storage->written = true;
    p->has_copies |= n->op == OP_STORE && c_is_copy(n);
  }
  if (open.n) ill_formed(p, p->linear, "leaves a loop open");
}

/* Backward sweep: uses and inlining. A LOAD is inlined only if nothing is stored there between its
   position and its use; arrays in scratch memory may share bytes, so a store to any of them counts.
 */

bool c_emission_is_statement(c_emission *p, const node *n) {
  const c_value *v = c_emission_value(p, n);
  if (n->op == OP_RANGE || n->op == OP_END || n->op == OP_ALLOC || n->op == OP_PREFETCH ||
      n->op == OP_BARRIER)
    return true;
  if (n->op == OP_WAIT) return p->has_copies;
  if (n->op == OP_STORE) {
    c_access access = c_emission_access(p, n);
    return access.address && (access.storage->root->op == OP_PARAM || access.cell->read);
  }
  return v && v->uses && !v->inlined && n->op != OP_SPECIAL && !is_masked_address(n);
}

static bool is_scratch_array(const node *root) {
  return root->op == OP_ALLOC && !c_is_register(root);
}

/** True if memory that a LOAD reads may be stored to before the statement that uses the value. */
static bool is_overwritten(c_emission *p, const node *load, const c_value *v) {
  c_access access = c_emission_access(p, load);
  if (is_scratch_array(access.storage->root)) return p->next_scratch_store < v->written_at;
  return access.cell->next_store < v->written_at;
}

/** True if the only use of a value may hold its expression, inside of `nesting` others. */
static bool may_inline(c_emission *p, const node *n, const c_value *v, unsigned nesting) {
  unsigned deepest = n->lanes > 1 || dtype_is_float((dtype)n->dtype) ? MACHINE_INLINED_DATA_DEPTH
                                                                     : MACHINE_INLINED_INDEX_DEPTH;
  if (v->uses != 1 || v->block != v->user_block || nesting > deepest) return false;
  if (v->user->op == OP_RANGE || v->user->op == OP_EXTRACT || node_is_tile(n)) return false;
  return n->op != OP_LOAD || !is_overwritten(p, n, v);
}

/** Decides whether a value is inlined, once all users are known. */
static void decide_inlining(c_emission *p, const node *n, c_value *v) {
  const c_value *user = c_emission_value(p, v->user);
  unsigned nesting = user && user->inlined ? user->nesting + 1u : 1;
  if (c_is_mask(n) && !v->mask) v->mask = 1;
  v->inlined = n->op != OP_SPECIAL && may_inline(p, n, v, nesting);
  if (v->inlined)
    v->nesting = (uint8_t)nesting;
  else
    v->written_at = v->at;
}

static void note_use(c_emission *p, const node *n, size_t i, const node *operand, uint32_t block,
                     uint32_t written_at) {
  c_value *v = c_emission_value(p, operand);
  if (!v) return;
  if (v->uses++ == 0) {
    v->user = n;
    v->user_block = block;
    if (operand->op != OP_RANGE) v->written_at = written_at;
  }
  if (!c_is_mask(operand) || own_mask(p, operand)) return;
  unsigned wanted = c_emission_wanted_mask(p, n, i);
  if (wanted > v->mask) v->mask = (uint16_t)wanted;
}

/** False for dead instructions; decides the inlining of others that are values. */
static bool is_live(c_emission *p, const node *n, c_value *v) {
  if (!v || n->op == OP_RANGE) return c_emission_is_statement(p, n);
  if (is_masked_address(n) || !v->uses) return false;
  decide_inlining(p, n, v);
  return true;
}

static void find_uses(c_emission *p) {
  uint32_t block = 0;
  for (uint32_t i = p->linear->n_src; i-- > 0;) {
    const node *n = p->linear->src[i];
    c_value *v = c_emission_value(p, n);
    if (n->op == OP_END) block = c_emission_value(p, n->src[0])->at + 1;
    if (n->op == OP_RANGE) block = v->block;
    if (n->op == OP_BARRIER) p->next_scratch_store = i; /* others store after it */
    if (!is_live(p, n, v)) continue;
    node_list list = operands(p, n);
    for (size_t k = 0; k < list.n; k++) note_use(p, n, k, list.at[k], block, v ? v->written_at : i);
    if (n->op != OP_STORE) continue;
    c_access access = c_emission_access(p, n);
    access.cell->next_store = i;
    if (is_scratch_array(access.storage->root)) p->next_scratch_store = i;
  }
}

void c_emission_make(c_emission *p, const node *linear, arena *a) {
  *p = (c_emission){.arena = a, .linear = linear, .next_scratch_store = UINT32_MAX};
  number_values(p);
  find_uses(p);
}
