/* Data types of tensors and scalars, from the table dtypes.def, and the conversions of scalars
   between them, which define the semantics of casts for constant folding, interpreters and
   kernels. */
#ifndef TENON_IR_CORE_DTYPE_H
#define TENON_IR_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(name, number, text, cls, bytes, exponent, mantissa) name = number,
#include "ir/core/dtypes.def"
#undef DTYPE
  DT_LIMIT
} dtype;

typedef enum dtype_class {
  DC_NONE,
  DC_BOOL,
  DC_INT,
  DC_UINT,
  DC_FLOAT,
  DC_INDEX,
  DC_STORAGE
} dtype_class;

/** Values of a storage type that are no finite numbers (dtypes.def). */
typedef enum dtype_specials {
  SPECIALS_FINITE,
  SPECIALS_NAN_LAST,
  SPECIALS_NAN_SIGN,
  SPECIALS_IEEE,
  SPECIALS_SCALE
} dtype_specials;

typedef struct dtype_facts {
  const char *name; /* NULL: no such type */
  dtype_class cls;
  uint8_t bytes, exponent_bits, mantissa_bits;
  dtype_class values;   /* of a storage type: the class of its values; else cls */
  uint8_t storage_bits; /* of a storage type, as the next ones */
  uint8_t bias;
  dtype_specials specials;
} dtype_facts;

/** The table row of a type; its `name` is NULL if the number is no type. */
const dtype_facts *dtype_facts_of(int type);

/** The type of a name ("f32"); DT_VOID with *found = false if there is none. */
dtype dtype_from_name(const char *name, size_t length, bool *found);

static inline size_t dtype_bytes(dtype t) { return dtype_facts_of(t)->bytes; }
static inline int dtype_bits(dtype t) { return t == DT_BOOL ? 1 : 8 * dtype_facts_of(t)->bytes; }
static inline const char *dtype_name(dtype t) { return dtype_facts_of(t)->name; }
static inline bool dtype_is_float(dtype t) { return dtype_facts_of(t)->cls == DC_FLOAT; }
static inline bool dtype_is_int(dtype t) {
  return dtype_facts_of(t)->cls == DC_INT || dtype_facts_of(t)->cls == DC_UINT;
}
static inline bool dtype_is_signed(dtype t) { return dtype_facts_of(t)->cls == DC_INT; }
/** True for types that are held and converted, but not computed with. */
static inline bool dtype_is_storage(dtype t) { return dtype_facts_of(t)->cls == DC_STORAGE; }
/** Kinds of values, storage types included. */
static inline bool dtype_has_floats(dtype t) { return dtype_facts_of(t)->values == DC_FLOAT; }
static inline bool dtype_has_ints(dtype t) {
  return dtype_facts_of(t)->values == DC_INT || dtype_facts_of(t)->values == DC_UINT;
}
static inline bool dtype_has_signs(dtype t) { return dtype_facts_of(t)->values == DC_INT; }
/** Bits that a value takes: those of the type, and of a storage type its low ones. */
static inline int dtype_value_bits(dtype t) {
  return dtype_is_storage(t) ? dtype_facts_of(t)->storage_bits : dtype_bits(t);
}
/** True for the types of user data, that is all but void and index. */
static inline bool dtype_is_data(dtype t) { return t < DT_VOID && dtype_facts_of(t)->name; }
/** Bounds of an integer type; the greatest u64 is given as INT64_MAX. */
int64_t dtype_min(dtype t);
int64_t dtype_max(dtype t);

/* A scalar is carried as 64 bits: integers sign- or zero-extended, bool 0 or 1, floats and storage
   types as their bit pattern in the low bytes. */

/** Reads and writes one element in memory, in the machine's byte order. */
uint64_t scalar_load(dtype t, const void *at);
void scalar_store(dtype t, void *at, uint64_t bits);

/** Converts a scalar of any type to double, exactly for floats, and a double to the nearest value
    of a type: floats with ties to even, integers truncated and saturated. */
double scalar_to_double(dtype t, uint64_t bits);
uint64_t scalar_from_double(dtype t, double value);

/** Converts a value between any two types: float to integer truncates and saturates, NaN gives 0;
    integer to integer wraps; to bool is "not zero"; to a smaller float rounds to nearest, ties to
    even, once. To a storage type: as storage_rounding_usual. */
uint64_t scalar_cast(dtype to, dtype from, uint64_t bits);

/** Conversion of floats to storage types of floats. f8e8m0 rounds in a direction, and to nearest
    with ties up; the others round to nearest, with ties to even. Without `saturates` a magnitude
    beyond the greatest finite one gives an infinity, or else a NaN where the type has one, and so
    does a positive one below f8e8m0's least. */
typedef enum storage_direction { STORAGE_UP, STORAGE_DOWN, STORAGE_NEAREST } storage_direction;
typedef struct storage_rounding {
  bool saturates;
  storage_direction direction;
} storage_rounding;
static const storage_rounding storage_rounding_usual = {true, STORAGE_UP};

/** Converts a storage type's pattern to its value, exactly, and a double to a pattern: to a float
    rounded once, to an integer truncated and saturated. */
double storage_to_double(dtype t, uint64_t bits);
uint64_t storage_from_double(dtype t, double value, storage_rounding how);
/** An integer of a storage type, sign- or zero-extended to 64 bits, and the pattern of one, which
    wraps. */
uint64_t storage_to_int(dtype t, uint64_t bits);
uint64_t storage_from_int(dtype t, uint64_t value);

/** IEEE binary16 and bfloat16 to and from f32 by integer arithmetic (IEEE 754-2019, 5.4.2). */
float half_to_float(uint16_t h);
uint16_t half_from_float(float f);
float bfloat_to_float(uint16_t h);
uint16_t bfloat_from_float(float f);

#endif
