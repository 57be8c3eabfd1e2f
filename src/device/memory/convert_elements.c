/* Converts arrays between data types in chunks, through one of two wide forms that hold every value
   exactly: double for floats, 64 bits for bools and integers. One pass loads a chunk, one stores
   it. */
#include "device/memory/convert_elements.h"

#include <string.h>

enum { PART = 256 }; /* elements at a time */

typedef struct wide {
  double f[PART];
  uint64_t i[PART];
} wide;

/* One loop for each type, which compilers vectorise. */
#define LOAD(type, field, value)                             \
  for (size_t k = 0; k < n; k++) {                           \
    type v;                                                  \
    memcpy(&v, (const char *)from + k * sizeof v, sizeof v); \
    w->field[k] = (value);                                   \
  }

#define STORE(type, value)                           \
  for (size_t k = 0; k < n; k++) {                   \
    type v = (type)(value);                          \
    memcpy((char *)to + k * sizeof v, &v, sizeof v); \
  }

/** Truncates a float to an integer in [least, most]; `beyond` is most + 1; NaN becomes 0. */
static int64_t saturate(double v, double least, double beyond) {
  if (v >= beyond) v = beyond - 1;
  if (v <= least) v = least;
  return v == v ? (int64_t)v : 0;
}

/* clang-format off */
static void load_wide(dtype t, const void *from, wide *w, size_t n) {
  switch (t) {
  case DT_F64:  LOAD(double, f, v) break;
  case DT_F32:  LOAD(float, f, v) break;
  case DT_F16:  LOAD(uint16_t, f, half_to_float(v)) break;
  case DT_BF16: LOAD(uint16_t, f, bfloat_to_float(v)) break;
  case DT_BOOL: LOAD(uint8_t, i, v != 0) break;
  case DT_U8:   LOAD(uint8_t, i, v) break;
  case DT_U16:  LOAD(uint16_t, i, v) break;
  case DT_U32:  LOAD(uint32_t, i, v) break;
  case DT_I8:   LOAD(int8_t, i, (uint64_t)v) break;
  case DT_I16:  LOAD(int16_t, i, (uint64_t)v) break;
  case DT_I32:  LOAD(int32_t, i, (uint64_t)v) break;
  case DT_I64:
  case DT_U64:  LOAD(uint64_t, i, v) break;
  default:
    if (dtype_has_floats(t)) LOAD(uint8_t, f, storage_to_double(t, v))
    else LOAD(uint8_t, i, storage_to_int(t, v))
  }
}

static void store_signed(dtype t, void *to, const wide *w, size_t n) {
  if (dtype_is_storage(t)) STORE(uint8_t, scalar_cast(t, DT_I64, w->i[k])) else
  switch (t) {
  case DT_F64: STORE(double, (int64_t)w->i[k]) break;
  case DT_F32: STORE(float, (int64_t)w->i[k]) break;
  default:     STORE(uint16_t, scalar_cast(t, DT_I64, w->i[k])) break;
  }
}

static void store_unsigned(dtype t, void *to, const wide *w, size_t n) {
  if (dtype_is_storage(t)) STORE(uint8_t, scalar_cast(t, DT_U64, w->i[k])) else
  switch (t) {
  case DT_F64:  STORE(double, w->i[k]) break;
  case DT_F32:  STORE(float, w->i[k]) break;
  case DT_BOOL: STORE(uint8_t, w->i[k] != 0) break;
  case DT_U8:
  case DT_I8:   STORE(uint8_t, w->i[k]) break;
  case DT_U16:
  case DT_I16:  STORE(uint16_t, w->i[k]) break;
  case DT_U32:
  case DT_I32:  STORE(uint32_t, w->i[k]) break;
  case DT_U64:
  case DT_I64:  STORE(uint64_t, w->i[k]) break;
  default:      STORE(uint16_t, scalar_cast(t, DT_U64, w->i[k])) break;
  }
}

static void store_floats(dtype t, void *to, const wide *w, size_t n) {
  if (dtype_is_storage(t)) STORE(uint8_t, scalar_from_double(t, w->f[k])) else
  switch (t) {
  case DT_F64:  STORE(double, w->f[k]) break;
  case DT_F32:  STORE(float, w->f[k]) break;
  case DT_BOOL: STORE(uint8_t, w->f[k] != 0) break;
  case DT_U8:   STORE(uint8_t, saturate(w->f[k], 0, 0x1p8)) break;
  case DT_U16:  STORE(uint16_t, saturate(w->f[k], 0, 0x1p16)) break;
  case DT_U32:  STORE(uint32_t, saturate(w->f[k], 0, 0x1p32)) break;
  case DT_I8:   STORE(int8_t, saturate(w->f[k], -0x1p7, 0x1p7)) break;
  case DT_I16:  STORE(int16_t, saturate(w->f[k], -0x1p15, 0x1p15)) break;
  case DT_I32:  STORE(int32_t, saturate(w->f[k], -0x1p31, 0x1p31)) break;
  case DT_I64:
  case DT_U64:  STORE(uint64_t, scalar_from_double(t, w->f[k])) break;
  default:      STORE(uint16_t, scalar_from_double(t, w->f[k])) break;
  }
}
/* clang-format on */

/** Integers are stored by their 64 bits in integers, and by their value in floats. */
static void store_wide(dtype to_type, void *to, dtype from_type, const wide *w, size_t n) {
  if (dtype_has_floats(from_type))
    store_floats(to_type, to, w, n);
  else if (dtype_has_floats(to_type) && dtype_has_signs(from_type))
    store_signed(to_type, to, w, n);
  else
    store_unsigned(to_type, to, w, n);
}

static void copy_bools(uint8_t *to, const uint8_t *from, size_t count) {
  for (size_t k = 0; k < count; k++) to[k] = from[k] != 0;
}

void convert(dtype to_type, void *to, dtype from_type, const void *from, size_t count) {
  if (to_type == from_type) {
    if (to_type == DT_BOOL)
      copy_bools(to, from, count);
    else if (count)
      memmove(to, from, count * dtype_bytes(to_type));
    return;
  }
  wide w;
  for (size_t done = 0; done < count; done += PART) {
    size_t n = count - done < PART ? count - done : PART;
    void *at = (char *)to + done * dtype_bytes(to_type);
    load_wide(from_type, (const char *)from + done * dtype_bytes(from_type), &w, n);
    store_wide(to_type, at, from_type, &w, n);
  }
}
