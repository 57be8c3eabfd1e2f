/* Decides how a LINEAR program (a list of instructions) is rendered as C: which values are inlined
   at their use and which get a name, which stores are dead, how wide masks are, and where integer
   arithmetic cannot overflow. */
#ifndef TENON_RENDER_C_EMISSION_H
#define TENON_RENDER_C_EMISSION_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

/** The value of an instruction. */
typedef struct c_value {
  const char *name; /* set when the value is written; NULL before */
  uint32_t at;      /* position in the list */
  uint32_t block;   /* position of the innermost RANGE around it, + 1; 0: none */
  uint32_t uses;
  const node *user;    /* the last user */
  uint32_t user_block; /* block of the last user */
  uint32_t written_at; /* position of the statement that contains the value */
  uint16_t mask;       /* bytes of a lane, of vectors of bool; else 0 */
  uint8_t nesting;     /* of an inlined value: expressions around it */
  bool inlined;
  bool exact; /* integer arithmetic that does not overflow */
} c_value;

/** One element of register storage, or all of a storage in memory. */
typedef struct c_cell {
  int64_t address;
  bool read;
  uint32_t next_store; /* position of the next store, while the list is traversed backwards */
  const char *name;
} c_cell;

typedef struct c_storage {
  const node *root; /* PARAM or ALLOC; of several PARAMs of one slot, any */
  const char *name;
  bool written; /* the program stores to it */
  bool used;    /* the text names it */
  VEC(c_cell) cells;
  size_t loops; /* open loops at the declaration of registers */
} c_storage;

/** The storage, masks and address of a LOAD or STORE. */
typedef struct c_access {
  c_storage *storage;
  c_cell *cell;
  node_list masks;     /* all must hold */
  const node *address; /* NULL: none, so the access does nothing */
} c_access;

typedef struct c_emission {
  arena *arena;
  const node *linear;
  map values;                  /* instruction → c_value */
  map storages;                /* PARAM, ALLOC → c_storage */
  VEC(c_storage *) slots;      /* the storages of PARAMs */
  bool has_copies;             /* some store is one, which a WAIT ends */
  uint32_t next_scratch_store; /* as c_cell.next_store, for all arrays in scratch memory */
} c_emission;

/** Decides all of a program. Raises TN_ERR_INTERNAL through the arena's diag if it is ill-formed.
 */
void c_emission_make(c_emission *p, const node *linear, arena *a);

/** An instruction's value; NULL for leaves and for instructions that have none. */
c_value *c_emission_value(const c_emission *p, const node *n);
c_access c_emission_access(c_emission *p, const node *n);

/** True if an instruction is a statement: a value that needs a name, or an effect that is not dead.
 */
bool c_emission_is_statement(c_emission *p, const node *n);

/** Lane width in bytes that instruction `n` wants of its i-th operand, a mask; 0: any width. */
unsigned c_emission_wanted_mask(const c_emission *p, const node *n, size_t i);

static inline bool c_is_register(const node *root) {
  return root->op == OP_ALLOC && root->ints[1] == 0;
}
/** True for a store that copies from memory to memory, without the value of its LOAD. */
static inline bool c_is_copy(const node *store) {
  return store->n_int && store->ints[0] == STORE_AHEAD;
}
static inline bool c_is_mask(const node *n) { return n->dtype == DT_BOOL && n->lanes > 1; }

#endif
