/* Data types: the scalar types of a tensor's elements, with their names, sizes and promotion. */
#ifndef TENON_DTYPE_H
#define TENON_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(name, number, text, bytes, host): every element type, with its C type in host memory. A
    TN_BOOL is one byte, 0 or 1; any other byte read from the caller counts as 1. TN_F16 (IEEE
    binary16) and TN_BF16 (the upper half of an f32) are held as their bits. The numbers are those
    of ONNX's TensorProto.DataType; they are part of the ABI and never reused.

    The types from TN_F8E4M3FN on are storage types, for small weights and their scales: floats of 8
    bits, of which "fn" have no infinities and "uz" no -0 either, f8e8m0 (2^(pattern - 127) alone,
   or NaN), a float of 4 bits, and integers of 4 and 2. An element has a byte, also where ONNX packs
    several into one: in its low bits, the others 0 (they are not read). Tensors of them are moved,
    stored and converted; what computes does so in f32, or for integers in 8 bits, and rounds the
    result to the type. They do not meet other types: see tn_promote. */
#define TN_DTYPE_LIST(X)                         \
  X(TN_F32, 1, "f32", 4, float)                  \
  X(TN_U8, 2, "u8", 1, uint8_t)                  \
  X(TN_I8, 3, "i8", 1, int8_t)                   \
  X(TN_U16, 4, "u16", 2, uint16_t)               \
  X(TN_I16, 5, "i16", 2, int16_t)                \
  X(TN_I32, 6, "i32", 4, int32_t)                \
  X(TN_I64, 7, "i64", 8, int64_t)                \
  X(TN_BOOL, 9, "bool", 1, bool)                 \
  X(TN_F16, 10, "f16", 2, uint16_t)              \
  X(TN_F64, 11, "f64", 8, double)                \
  X(TN_U32, 12, "u32", 4, uint32_t)              \
  X(TN_U64, 13, "u64", 8, uint64_t)              \
  X(TN_BF16, 16, "bf16", 2, uint16_t)            \
  X(TN_F8E4M3FN, 17, "f8e4m3fn", 1, uint8_t)     \
  X(TN_F8E4M3FNUZ, 18, "f8e4m3fnuz", 1, uint8_t) \
  X(TN_F8E5M2, 19, "f8e5m2", 1, uint8_t)         \
  X(TN_F8E5M2FNUZ, 20, "f8e5m2fnuz", 1, uint8_t) \
  X(TN_U4, 21, "u4", 1, uint8_t)                 \
  X(TN_I4, 22, "i4", 1, uint8_t)                 \
  X(TN_F4E2M1, 23, "f4e2m1", 1, uint8_t)         \
  X(TN_F8E8M0, 24, "f8e8m0", 1, uint8_t)         \
  X(TN_U2, 25, "u2", 1, uint8_t)                 \
  X(TN_I2, 26, "i2", 1, uint8_t)

typedef enum tn_dtype {
  TN_UNDEFINED = 0, /**< no type: that of an invalid tensor */
#define TN_DTYPE_ENUM(name, number, text, bytes, host) name = number,
  TN_DTYPE_LIST(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
      TN_STRING = 8, /**< reserved: no tensor of strings can be made */
  TN_DTYPE_MAX_ENUM = 0x7fffffff
} tn_dtype;

/** Returns the short name of a type ("bf16", "string", "undefined"); "unknown" for any other
    number. The string is static. */
TN_API const char *tn_dtype_name(tn_dtype dtype);

/** Returns the bytes of one element in host memory; 0 for types that are not in TN_DTYPE_LIST. */
TN_API size_t tn_dtype_size(tn_dtype dtype);

/** Kinds of element types. */
typedef enum tn_dtype_kind {
  TN_KIND_NONE = 0, /**< types that are not in TN_DTYPE_LIST */
  TN_KIND_BOOL = 1,
  TN_KIND_UNSIGNED = 2,
  TN_KIND_SIGNED = 3,
  TN_KIND_FLOAT = 4,
  TN_DTYPE_KIND_MAX_ENUM = 0x7fffffff
} tn_dtype_kind;

/** Returns the kind of a type. */
TN_API tn_dtype_kind tn_dtype_kind_of(tn_dtype dtype);

/** Reads an element in host memory, at any address: exactly, except that integers beyond 2^53 are
    rounded to nearest. 0 for a type that is not in TN_DTYPE_LIST. */
TN_API double tn_element_get(tn_dtype dtype, const void *element);

/** Writes an element in host memory, at any address, from a value that is converted once, as by
    tn_cast. Does nothing for a type that is not in TN_DTYPE_LIST. */
TN_API void tn_element_set(tn_dtype dtype, void *element, double value);

/** The type in which operands of types `a` and `b` meet. Kinds are ordered bool < integer < float,
    and the higher kind decides, as in PyTorch:

    - bool with `t`, and integer with float `t`: `t` (i64 with f16 is f16);
    - two floats: the wider one; f16 with bf16 is f32;
    - two integers of one signedness: the wider one;
    - signed with unsigned: the narrowest signed type that holds both (i8 with u8 is i16, i64 with
      u32 is i64); where none does, for u64 with any signed type, f64, as numpy.promote_types.

    The same as a table; equal types meet in themselves, and it is symmetric:

                u8   u16  u32  u64  i8   i16  i32  i64  f16  bf16 f32  f64
        bool    u8   u16  u32  u64  i8   i16  i32  i64  f16  bf16 f32  f64
        u8           u16  u32  u64  i16  i16  i32  i64  f16  bf16 f32  f64
        u16               u32  u64  i32  i32  i32  i64  f16  bf16 f32  f64
        u32                    u64  i64  i64  i64  i64  f16  bf16 f32  f64
        u64                         f64  f64  f64  f64  f16  bf16 f32  f64
        i8                               i16  i32  i64  f16  bf16 f32  f64
        i16                                   i32  i64  f16  bf16 f32  f64
        i32                                        i64  f16  bf16 f32  f64
        i64                                             f16  bf16 f32  f64
        f16                                                  f32  f32  f64
        bf16                                                      f32  f64
        f32                                                            f64

    More than two types meet in the least upper bound of those of the highest kind among them, in
    whatever order they come. Weak scalars (tn_num, tn_int) are above this table: see ops.h.
    A storage type meets itself only, and weak scalars. TN_UNDEFINED where two types do not meet, or
    either is not in TN_DTYPE_LIST. */
TN_API tn_dtype tn_promote(tn_dtype a, tn_dtype b);

#ifdef __cplusplus
}
#endif
#endif
