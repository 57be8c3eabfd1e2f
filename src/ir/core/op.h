/* Ops of the IR: the enum and the properties of each op, both made from ops.def (type rule, operand
   types, commutativity, cost, …), and algebraic elements (identity, absorbing). */
#ifndef TENON_IR_CORE_OP_H
#define TENON_IR_CORE_OP_H

#include "ir/core/dtype.h"

typedef enum op {
#define OP(name, text, cls, least, most, type, operands, facts, stages, ...) OP_##name,
#include "ir/core/ops.def"
#undef OP
  OP_LIMIT
} op;

/** Where an ALLOC lies: a worker's registers and scratch memory, memory of a warp, of a group. */
typedef enum storage_space { SPACE_REGISTER, SPACE_SCRATCH, SPACE_WARP, SPACE_GROUP } storage_space;

/** Marks of a STORE. STORE_AHEAD: the value is a LOAD's of a PARAM, which a worker of a team copies
    while it goes on; the element is there from a WAIT on. */
enum { STORE_NONTEMPORAL = 1, STORE_AHEAD = 2 };

/** True for memory that workers of a team share. */
static inline bool space_is_shared(int64_t space) { return space >= SPACE_WARP; }

typedef enum op_class {
  CLASS_ELEMENTWISE,
  CLASS_MOVEMENT,
  CLASS_REDUCE,
  CLASS_SOURCE,
  CLASS_BINDER,
  CLASS_MEMORY,
  CLASS_CONTROL,
  CLASS_EFFECT,
  CLASS_PROGRAM
} op_class;

typedef enum op_type {
  TYPE_SAME,
  TYPE_COMPARE,
  TYPE_SELECT,
  TYPE_SHIFT,
  TYPE_FREE,
  TYPE_VOID,
  TYPE_INDEX,
  TYPE_FIRST
} op_type;

enum { OP_UNLIMITED_SOURCES = 0xffff };

/** Bits of the facts column. TRANSCENDENTAL: a real function, rounded within bounds that depend on
    the implementation. DISCONTINUOUS: jumps on floats. MOVES_LANES: its lanes mix, so it is no
    function of scalars. */
enum op_fact {
  FACT_COMMUTATIVE = 1,
  FACT_ASSOCIATIVE = 2,
  FACT_IDEMPOTENT = 4,
  FACT_TRANSCENDENTAL = 8,
  FACT_DISCONTINUOUS = 16,
  FACT_MOVES_LANES = 32
};

/** Identity and absorbing elements, independent of the type; ONES: all bits set. */
typedef enum op_element {
  ELEMENT_NONE,
  ELEMENT_ZERO,
  ELEMENT_ONE,
  ELEMENT_ONES,
  ELEMENT_LEAST,
  ELEMENT_GREATEST
} op_element;

enum op_operand {
  TAKES_BOOL = 1,
  TAKES_INT = 2,
  TAKES_FLOAT = 4,
  TAKES_INDEX = 8,
  TAKES_STORAGE = 16,
  TAKES_ANY = 31
};

/** Stages of a graph, as a bit set. */
enum stage { LEVEL_TENSOR = 1, LEVEL_KERNEL = 2, LEVEL_LOWERED = 4, LEVEL_LINEAR = 8 };

enum { OP_MAX_FIELDS = 5 };

typedef struct op_facts {
  const char *name;
  const char *fields[OP_MAX_FIELDS]; /* of the argument; see ops.def */
  uint16_t least, most;
  uint8_t cls, type, operands, facts, stages;
  uint8_t identity, absorbing; /* op_element */
  uint16_t cost;
} op_facts;

/** The table row of an op below OP_LIMIT. */
const op_facts *op_facts_of(op o);

/** The op of a name ("add"); OP_LIMIT if there is none. */
op op_from_name(const char *name, size_t length);

static inline const char *op_name(op o) { return op_facts_of(o)->name; }
static inline bool op_is_elementwise(op o) { return op_facts_of(o)->cls == CLASS_ELEMENTWISE; }
static inline bool op_is_movement(op o) { return op_facts_of(o)->cls == CLASS_MOVEMENT; }
/** True for the ops that give an array new contents: their first operand is the old ones. */
static inline bool op_overwrites(op o) { return o == OP_SET || o == OP_SCATTER; }
static inline bool op_is_commutative(op o) { return op_facts_of(o)->facts & FACT_COMMUTATIVE; }
/** Arithmetic of an op, in float additions. */
static inline unsigned op_cost(op o) { return op_facts_of(o)->cost; }

/** Instructions of an op, in float additions; at least 1. */
static inline unsigned op_instruction_cost(op o) { return op_cost(o) > 1 ? op_cost(o) : 1; }
static inline bool op_is_transcendental(op o) {
  return op_facts_of(o)->facts & FACT_TRANSCENDENTAL;
}
/** True for the ops that scalar_eval computes: all elementwise ones but AFFINE and those that move
    lanes. */
static inline bool op_has_scalar_eval(op o) {
  const op_facts *f = op_facts_of(o);
  return f->cls == CLASS_ELEMENTWISE && f->type != TYPE_INDEX && !(f->facts & FACT_MOVES_LANES);
}

/** Integers and text of an op's argument. */
typedef struct argument_layout {
  size_t named;    /* integers with a name, which come first */
  size_t optional; /* the last of these, which may be missing */
  bool list;       /* a list of integers of any length follows */
  bool text;       /* the argument has a text */
} argument_layout;
argument_layout argument_layout_of(op o);

/** Meaning of one integer of an argument, for printing and parsing. */
typedef enum argument_style { ARGUMENT_NUMBER, ARGUMENT_OP, ARGUMENT_KIND } argument_style;
typedef struct argument_field {
  const char *name; /* "" in the list */
  argument_style style;
} argument_field;
/** Name and style of the i-th integer, given the integers before it. */
argument_field argument_field_of(op o, const int64_t ints[], size_t i);

/** True if an elementwise op takes operands of a type. */
bool op_takes(op o, dtype t);

/** Writes the start value of a reduction by an associative op: 0 for add, 1 for mul, the least
    value (floats: −∞) for max, and so on. False if the op is not associative or has none. */
bool op_identity(op o, dtype t, uint64_t *bits);

/** True if a reduction by an op rounds at each step. */
bool op_rounds_reduction(op o, dtype t);

/** Writes the e with op(x, e) = x for every x, for floats bit by bit except NaN: −0 for add of
    floats. False if there is none. */
bool op_right_identity(op o, dtype t, uint64_t *bits);

/** Writes the z with op(x, z) = z for every x of an integer or boolean type. False if there is
    none. */
bool op_absorbing(op o, dtype t, uint64_t *bits);

#endif
