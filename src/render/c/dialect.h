/* Describes a language of the C family to the C renderer as data: one c_dialect a language, of text
   templates.

   Placeholders of a template:

     $a $b $c   operands
     $k         the second operand as a shift count, reduced below the type's width
     $t $o      the types of the result and of the typed operand
     $u         the unsigned type of the operand's width; a scalar's has at least 32 bits, so that C
                does not promote it
     $m         the type of a mask: signed integers as wide as the operand
     $x         the vector type $t in memory (unaligned)
     $f         the suffix of function names for the operand's type
     $l         the first operand once for each lane, separated by commas; or a number of lanes
     $n         a number */
#ifndef TENON_RENDER_C_DIALECT_H
#define TENON_RENDER_C_DIALECT_H

#include "ir/core/op.h"

#include <stddef.h>

/** Classes of operand types; 16-bit floats are bit patterns, that is unsigned integers. */
typedef enum c_class { C_BOOL, C_INT, C_UINT, C_FLOAT, C_CLASSES } c_class;

typedef enum c_op_kind {
  C_EXPRESSION, /* an expression, in parentheses within another one */
  C_UNARY,      /* an expression that needs no parentheses, such as a cast */
  C_CALL,       /* a call: neither it nor its operands need parentheses */
  C_WRAPS,      /* an expression on integers, computed in $u where it may overflow */
  C_NARROWS,    /* an expression that C may promote, converted back to $t */
  C_FUNCTION,   /* the body of a helper function, as operands are used more than once */
  C_LANES       /* scalars: C_CALL; vectors: a helper function with a loop over lanes */
} c_op_kind;

typedef struct c_op {
  const char *text; /* NULL: not supported */
  c_op_kind kind;
} c_op;

/** A faster body of a helper function, under a condition of the preprocessor. */
typedef struct c_intrinsic {
  op op;
  dtype dtype;
  uint16_t lanes;
  const char *condition, *text; /* an expression */
} c_intrinsic;

/** A faster conversion of vectors, under a condition of the preprocessor. */
typedef struct c_conversion_intrinsic {
  dtype from, to;
  uint16_t lanes;
  const char *condition, *text; /* an expression */
} c_conversion_intrinsic;

typedef struct c_type {
  const char *scalar, *vector; /* type names; a vector's is followed by its lanes */
  const char *suffix;          /* of literals */
  const char *function;        /* see $f */
} c_type;

/* In the templates below pairs are for scalars [0] and vectors [1]. */

/** Memory accesses. */
typedef struct c_memory_text {
  const char *load[2];   /* from $a at address $b, $l lanes */
  const char *store[2];  /* of $c to $a at address $b, $l lanes */
  const char *zero[2];   /* value of a load without an address */
  const char *masked[2]; /* masked load: $b if $a holds, else $c */
  const char *prefetch;  /* prefetches the line of $a[$b], which may be outside; NULL: none */
} c_memory_text;

/** Non-temporal stores of vectors. */
typedef struct c_nontemporal_text {
  const char *store;   /* a vector of $n bytes $c to $a at $b; NULL: none */
  size_t bytes[2];     /* of the narrowest and the widest such vector */
  const char *prelude; /* declarations before the first such store; guarded */
  const char *fence;   /* statement after all such stores of a kernel */
} c_nontemporal_text;

/** Tiles of products (tensor_rows.def), in registers with numbers; all NULL: none. */
typedef struct c_tile_text {
  const char *prelude;     /* declarations before kernels with tiles; guarded */
  const char *begin, *end; /* statements at the beginning and the end of such a kernel */
  const char *zero;        /* statement: register $a becomes 0 */
  const char *load;        /* from $b + $c, rows $n bytes apart, to register $a */
  const char *store;       /* register $a to $b + $c, rows $n bytes apart */
} c_tile_text;

/** Conversions between value types. */
typedef struct c_conversion_text {
  const char *cast[2];    /* between numbers */
  const char *to_bool[2]; /* from a number; vectors: to a mask as wide */
  c_op bitcast[2];
  const char *to_mask; /* from a scalar truth value to a lane of a mask */
  const char *f16[2];  /* from a scalar f16, a pattern, to f32, and back; NULL: none */
  const c_conversion_intrinsic *intrinsics;
  size_t n_intrinsics;
  const char *of_mask; /* from a mask to numbers 0 and 1 as wide */
} c_conversion_text;

/** A launch index and its expression. */
typedef struct c_launch_index {
  const char *name, *text;
} c_launch_index;

/** Kernels for teams; all NULL: none. */
typedef struct c_team_text {
  const c_launch_index *indices; /* up to one without a name; NULL: they are runtime values */
  const char *shared;            /* declares the array $a of $n elements $o that a group shares */
  const char *shared_param;      /* such an array as a parameter of the function */
  const char *barrier;           /* statement: a group's workers meet, and see its arrays alike */
  const char *copy;         /* statement: $n bytes from $b to $a of the group, zeros but where $c
                               holds, which go on until a wait */
  const char *wait;         /* statement: ends a group of copies, and waits for all but the $n
                               latest; −1: for none */
  const char *copy_prelude; /* declarations before kernels with copies; guarded */
  /* The $n-th [0] buffer, of $o, with $a "const " where nothing is stored to it, [1] value $a as a
     parameter of the entry. */
  const char *entry_param[2];
} c_team_text;

/** The function of a kernel, and its entry, which calls the function with the used arguments. */
typedef struct c_function_text {
  const char *scratch;             /* declares the array $a of $l elements $o, at byte $n of scratch
                                      memory where the dialect has a parameter for that */
  const char *function;            /* begins the function of kernel $a */
  const char *param[2];            /* declares a parameter $a of type $o, [1] if it is written to */
  const char *value;               /* declares the runtime value $a */
  const char *entry;               /* begins the entry of kernel $a, of groups of $c workers, $n in
                                      all, with the parameters $l and the arrays $b, and its call */
  const char *argument[2];         /* the $n-th [0] buffer, of $o, [1] value $a, in that call */
  const char *many_accumulators;   /* qualifier of both, for a loop with many accumulators */
  const char *scratch_param;       /* NULL: the function's own arrays are its variables */
  const char *scratch_argument[2]; /* buffer $a; [1] the $n bytes of the worker of value $b */
  const char *unrolled;            /* before a loop whose $n iterations become copies; NULL: none */
  const char *barrier;             /* compiler barrier as a statement; NULL: none */
} c_function_text;

typedef struct c_dialect {
  c_type types[DT_LIMIT];
  c_op scalar[C_CLASSES][OP_LIMIT], vector[C_CLASSES][OP_LIMIT];
  const c_intrinsic *intrinsics;
  size_t n_intrinsics;
  op partial[4]; /* ops supported for some values only (see rule_target); ends in OP_LIMIT */

  const char *prelude;      /* of a file of kernels */
  const char *dots_prelude; /* before kernels with ops of tensor_rows.def; guarded */
  const char *minus_zero;   /* of type $t */
  const char *vector_type;  /* declares $t, $n bytes of $o, and $x; NULL: they are there */
  uint16_t most_lanes;      /* of vectors; 0: no limit */
  const char *memory_type;  /* suffix of a vector type's name in $x */
  const char *helper;       /* qualifiers of a helper function */
  const char *lane;         /* the i-th lane of $a */
  const char *lanes;        /* a helper's body: the result's i-th of $n lanes is $a */
  c_op splat;
  const char *vectorize; /* lanes in $l */
  const char *shuffle;   /* lanes of $a, and behind them of $b, by the numbers in $l, of which
                            $o is a vector; NULL: none */
  const char *extract;   /* lane $n of $a; $l: in hexadecimal */
  const char *shift[2];  /* a count $a, reduced below the width $n + 1 */

  c_memory_text memory;
  c_nontemporal_text nontemporal;
  c_conversion_text conversion;
  c_function_text function;
  c_team_text team;
  c_tile_text tile;
} c_dialect;

/** GNU C for CPUs: gcc from 10, clang from 12, compiled with -std=gnu11 -ffp-contract=off
    -fno-math-errno. */
extern const c_dialect c_gnu;

/** OpenCL C from version 1.2. */
extern const c_dialect c_opencl;

/** CUDA C, compiled as C++17 with --fmad=false and the defaults for subnormal numbers, division and
    root. */
extern const c_dialect c_cuda;

#endif
