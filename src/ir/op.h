/* Ops: the facts of ops.def. */
#ifndef TENON_IR_OP_H
#define TENON_IR_OP_H

#include "ir/dtype.h"

typedef enum op {
#define OP(name, text, cls, least, most, type, operands, facts, stages, ...) OP_##name,
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

/** FUNCTION: of the reals, rounded as whoever computes it can. JUMPS: discontinuous on floats.
    LANES: moves lanes, so its value is not one of scalars alone. */
enum op_fact {
  FACT_COMMUTATIVE = 1,
  FACT_ASSOCIATIVE = 2,
  FACT_IDEMPOTENT = 4,
  FACT_FUNCTION = 8,
  FACT_JUMPS = 16,
  FACT_LANES = 32
};

/** Elements that an op may have, in terms of any type; ONES: all bits. */
typedef enum op_element {
  ELEMENT_NONE,
  ELEMENT_ZERO,
  ELEMENT_ONE,
  ELEMENT_ONES,
  ELEMENT_LEAST,
  ELEMENT_GREATEST
} op_element;

enum op_operand { TAKES_BOOL = 1, TAKES_INT = 2, TAKES_FLOAT = 4, TAKES_INDEX = 8, TAKES_ANY = 15 };

/** The stages of a graph, as a set. */
enum stage { STAGE_TENSOR = 1, STAGE_KERNEL = 2, STAGE_LOWERED = 4, STAGE_LINEAR = 8 };

enum { OP_FIELDS = 5 };

typedef struct op_facts {
  const char *name;
  const char *fields[OP_FIELDS]; /* of the argument, as ops.def says */
  uint16_t least, most;
  uint8_t cls, type, operands, facts, stages;
  uint8_t identity, absorbing; /* op_element */
  uint16_t cost;
} op_facts;

/** The facts of an op; `o` is below OP_LIMIT. */
const op_facts *op_get(op o);

/** The op of a name ("add"); OP_LIMIT if there is none. */
op op_find(const char *name, size_t length);

static inline const char *op_name(op o) { return op_get(o)->name; }
static inline bool op_is_elementwise(op o) { return op_get(o)->cls == CLASS_ELEMENTWISE; }
static inline bool op_is_movement(op o) { return op_get(o)->cls == CLASS_MOVEMENT; }
static inline bool op_is_commutative(op o) { return op_get(o)->facts & FACT_COMMUTATIVE; }
/** About how many additions the arithmetic of an op takes. */
static inline unsigned op_cost(op o) { return op_get(o)->cost; }

/** The same of a node that code is made for: no less than one. */
static inline unsigned op_work(op o) { return op_cost(o) > 1 ? op_cost(o) : 1; }
static inline bool op_is_function(op o) { return op_get(o)->facts & FACT_FUNCTION; }
/** Whether scalar_eval gives its value: elementwise, but for AFFINE and what moves lanes. */
static inline bool op_is_scalar(op o) {
  const op_facts *f = op_get(o);
  return f->cls == CLASS_ELEMENTWISE && f->type != TYPE_INDEX && !(f->facts & FACT_LANES);
}

/** The integers an op's argument has. */
typedef struct argument_form {
  size_t named;    /* this many, */
  bool list, text; /* then a list; and whether a text belongs to it */
} argument_form;
argument_form argument_form_of(op o);

/** What one of them is. */
typedef enum argument_style { ARGUMENT_NUMBER, ARGUMENT_OP, ARGUMENT_KIND } argument_style;
typedef struct argument_field {
  const char *name; /* "" in the list */
  argument_style style;
} argument_field;
/** The integers before the i-th are in `ints`. */
argument_field argument_field_of(op o, const int64_t ints[], size_t i);

/** Whether an elementwise op takes operands of a type. */
bool op_takes(op o, dtype t);

/** What a reduction by an associative op starts with: add 0, mul 1, max the least value (floats:
    −∞), and so on. False if the op is none. */
bool op_identity(op o, dtype t, uint64_t *bits);

/** Whether a reduction by an op is rounded at each step. */
bool op_is_rounded(op o, dtype t);

/** The e with op(x, e) = x for every x, floats bit by bit (but for NaN): that of add is −0 then.
    False if there is none. */
bool op_right_identity(op o, dtype t, uint64_t *bits);

/** The z with op(x, z) = z for every x of an integer or boolean type. False if there is none. */
bool op_absorbing(op o, dtype t, uint64_t *bits);

#endif
