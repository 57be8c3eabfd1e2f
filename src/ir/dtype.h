/* Data types: the facts of dtypes.def, and the conversions of scalars between types. */
#ifndef TENON_IR_DTYPE_H
#define TENON_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dtype {
#define DTYPE(name, number, text, cls, bytes, exponent, mantissa, c) name = number,
#include "ir/dtypes.def"
#undef DTYPE
  DT_LIMIT
} dtype;

typedef enum dtype_class { DC_NONE, DC_BOOL, DC_INT, DC_UINT, DC_FLOAT, DC_INDEX } dtype_class;

typedef struct dtype_facts {
  const char *name; /* NULL: no such type */
  const char *c_type;
  dtype_class cls;
  uint8_t bytes, exponent_bits, mantissa_bits;
} dtype_facts;

/** The facts of a type; `name` is NULL where the number is no type. */
const dtype_facts *dtype_get(int type);

/** The type of a name ("f32"); DT_VOID with *found = false if there is none. */
dtype dtype_find(const char *name, size_t length, bool *found);

static inline size_t dtype_bytes(dtype t) { return dtype_get(t)->bytes; }
static inline int dtype_bits(dtype t) { return t == DT_BOOL ? 1 : 8 * dtype_get(t)->bytes; }
static inline const char *dtype_name(dtype t) { return dtype_get(t)->name; }
static inline bool dtype_is_float(dtype t) { return dtype_get(t)->cls == DC_FLOAT; }
static inline bool dtype_is_int(dtype t) {
  return dtype_get(t)->cls == DC_INT || dtype_get(t)->cls == DC_UINT;
}
static inline bool dtype_is_signed(dtype t) { return dtype_get(t)->cls == DC_INT; }
/** Whether user data can have this type. */
static inline bool dtype_is_data(dtype t) { return t < DT_VOID && dtype_get(t)->name; }
/** The least and the greatest value of an integer type; u64's greatest is cut to INT64_MAX. */
int64_t dtype_min(dtype t);
int64_t dtype_max(dtype t);

/* A scalar is carried as 64 bits: integers sign- or zero-extended, bool 0 or 1, floats as their bit
   pattern in the low bytes. */

/** Reads and writes one element in memory, in the machine's byte order. */
uint64_t scalar_load(dtype t, const void *at);
void scalar_store(dtype t, void *at, uint64_t bits);

/** The value of a float scalar, exactly; and the float nearest to a value, ties to even. */
double scalar_to_double(dtype t, uint64_t bits);
uint64_t scalar_from_double(dtype t, double value);

/** Conversion of any value to any type: float to integer truncates and saturates, NaN gives 0;
    integer to integer wraps; to bool is "not zero"; to a smaller float rounds to nearest, ties to
    even, once. */
uint64_t scalar_cast(dtype to, dtype from, uint64_t bits);

/** IEEE binary16 and bfloat16 to and from f32 by integer arithmetic (IEEE 754-2019, 5.4.2). */
float half_to_float(uint16_t h);
uint16_t half_from_float(float f);
float bfloat_to_float(uint16_t h);
uint16_t bfloat_from_float(float f);

#endif
