/* What is decided about a LINEAR program before it is written: which values are written where they
   are used and which get a name, what is stored and never read, how wide masks are, and where
   integer arithmetic can't overflow. */
#ifndef TENON_RENDER_C_PLAN_H
#define TENON_RENDER_C_PLAN_H

#include "base/map.h"
#include "ir/topo.h"

/** The value of an instruction. */
typedef struct c_value {
  const char *name;   /* set when it is written; NULL before */
  uint32_t at, block; /* its place in the list; that of the innermost RANGE around it, + 1 */
  uint32_t uses;
  const node *user;    /* one of them, the last */
  uint32_t user_block; /* likewise */
  uint32_t written_at; /* the place of the instruction that it is written with */
  uint16_t mask;       /* vectors of bool: bytes of a lane; else 0 */
  uint8_t nesting;     /* inlined: in how many other expressions */
  bool inlined;
  bool exact; /* integer arithmetic: does not overflow */
} c_value;

/** One element of register storage, or all of another storage. */
typedef struct c_cell {
  int64_t address;
  bool read;
  uint32_t next_store; /* while the list is read backwards: the last store met */
  const char *name;
} c_cell;

typedef struct c_storage {
  const node *root; /* PARAM or ALLOC; of PARAMs of one slot, any */
  const char *name;
  bool written, used; /* by the program; in its text */
  VEC(c_cell) cells;
  size_t loops; /* registers: those that they are declared inside of */
} c_storage;

/** What a LOAD or STORE touches. */
typedef struct c_access {
  c_storage *storage;
  c_cell *cell;
  node_list gates;     /* all must hold */
  const node *address; /* NULL: nowhere */
} c_access;

typedef struct c_plan {
  arena *arena;
  const node *linear;
  map values;              /* instruction → c_value */
  map storages;            /* PARAM, ALLOC → c_storage */
  VEC(c_storage *) slots;  /* those of PARAMs */
  uint32_t next_own_store; /* as in c_cell, of all arrays of the program's own */
} c_plan;

/** Raises TN_ERR_INTERNAL through the arena's diag if the program is ill-formed. */
void c_plan_make(c_plan *p, const node *linear, arena *a);

/** An instruction's value; NULL for leaves and for instructions that have none. */
c_value *c_plan_value(const c_plan *p, const node *n);
c_access c_plan_access(c_plan *p, const node *n);

/** Whether an instruction is to be written at its place (it may have to be named, or it has an
    effect that matters). */
bool c_plan_is_written(c_plan *p, const node *n);

/** Bytes of a lane of the mask that operand i of `n` is wanted as; 0: any, or it is no mask. */
unsigned c_plan_wanted_mask(const c_plan *p, const node *n, size_t i);

static inline bool c_is_register(const node *root) {
  return root->op == OP_ALLOC && root->ints[1] == 0;
}
static inline bool c_is_mask(const node *n) { return n->dtype == DT_BOOL && n->lanes > 1; }

#endif
