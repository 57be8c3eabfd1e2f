/* Host steps that turn numbers to strings and strings to numbers: ONNX's Cast. */
#ifndef TENON_FORMATS_HOST_STRING_NUMBERS_H
#define TENON_FORMATS_HOST_STRING_NUMBERS_H

#include "formats/host/host_steps.h"
#include "ir/core/dtype.h"

/** The numbers of an array, and the type whose range strings are checked against. */
typedef struct number_options {
  dtype held;   /* of the array: f32, f64, i64 or u64 */
  dtype wanted; /* an integer type has its range; of floats the array's type is enough */
} number_options;

/** Each number as a string: integers in decimal; floats by the fewest digits that give the number
    back, with an exponent below 0.0001 and from 10⁸ (f32) or 10¹⁷ (f64) on: "1.5", "1e+20"; "NaN",
    "INF" and "-INF". */
tn_status strings_of_numbers(const void *number_options, string_table *t, const host_arrays *a,
                             tn_failure *f);

/** Each string as a number, with white space around it ignored: decimal, with a fraction and an
    exponent or without; "NaN", "INF", "+INF" and "-INF" in any case for floats. Floats beyond the
    type's range are infinite: "1e400". Integers drop a fraction; those with an exponent are read as
    f64. TN_ERR_ARGUMENT for other strings, and for integers out of range. */
tn_status numbers_of_strings(const void *number_options, string_table *t, const host_arrays *a,
                             tn_failure *f);

#endif
