/* Ops: the facts of ops.def. */
#ifndef TENON_IR_OP_H
#define TENON_IR_OP_H

#include "ir/dtype.h"

typedef enum op {
#define OP(name, text, cls, least, most, type, operands, facts, stages, fields) OP_##name,
#include "ir/ops.def"
#undef OP
  OP_LIMIT
} op;

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

enum { OP_MANY = 0xffff };

enum op_fact { FACT_COMMUTATIVE = 1, FACT_ASSOCIATIVE = 2, FACT_IDEMPOTENT = 4 };

enum op_operand { TAKES_BOOL = 1, TAKES_INT = 2, TAKES_FLOAT = 4, TAKES_INDEX = 8, TAKES_ANY = 15 };

/** The stages of a graph, as a set. */
enum stage { STAGE_TENSOR = 1, STAGE_KERNEL = 2, STAGE_LOWERED = 4, STAGE_LINEAR = 8 };

typedef struct op_facts {
  const char *name;
  const char *fields; /* names of the argument's integers, as ops.def says */
  uint16_t least, most;
  uint8_t cls, type, operands, facts, stages;
} op_facts;

/** The facts of an op; `o` is below OP_LIMIT. */
const op_facts *op_get(op o);

/** The op of a name ("add"); OP_LIMIT if there is none. */
op op_find(const char *name, size_t length);

static inline const char *op_name(op o) { return op_get(o)->name; }
static inline bool op_is_elementwise(op o) { return op_get(o)->cls == CLASS_ELEMENTWISE; }
static inline bool op_is_movement(op o) { return op_get(o)->cls == CLASS_MOVEMENT; }
static inline bool op_is_commutative(op o) { return op_get(o)->facts & FACT_COMMUTATIVE; }

/** Whether an elementwise op takes operands of a type. */
bool op_takes(op o, dtype t);

/** The e with op(x, e) = x for every x (floats: for a reduction's start: add 0, mul 1, max −∞,
    min +∞; integers alike). False if the op has none. */
bool op_identity(op o, dtype t, uint64_t *bits);

/** The z with op(x, z) = z for every x of an integer or boolean type. False if there is none. */
bool op_absorbing(op o, dtype t, uint64_t *bits);

#endif
