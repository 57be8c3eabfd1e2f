/* What differs between the languages of the C family, as data.

   Texts have blanks to fill in:

     $a $b $c   operands
     $k         the second operand as a count of bits to shift by, made less than the type's
     $t $o      the types of the result and of the typed operand
     $u         the operand's type made unsigned; a scalar's has at least 32 bits, so that C does
                not promote it
     $m         signed integers as wide as the operand: what vectors compare to
     $x         the form in memory of the vector type $t
     $f         what names of functions of the operand's type end in
     $l         the first operand once for each lane, separated by commas
     $n         a number */
#ifndef TENON_RENDER_C_DIALECT_H
#define TENON_RENDER_C_DIALECT_H

#include "ir/op.h"
#include "render/c.h"

/** What an operand is, to the tables. 16-bit floats are only patterns: unsigned integers. */
typedef enum c_class { C_BOOL, C_INT, C_UINT, C_FLOAT, C_CLASSES } c_class;

typedef enum c_how {
  C_EXPRESSION, /* stands where the value is used */
  C_UNARY,      /* the same, but needs no parentheses in another expression, as a cast */
  C_CALL,       /* likewise, nor do its operands, as a call's */
  C_WRAPS,      /* an expression on integers: where it may overflow, it is done in $u */
  C_NARROWS,    /* an expression that C may have promoted: converted to $t */
  C_FUNCTION,   /* the body of a helper function, for operands that are used more than once */
  C_LANES       /* scalars: C_CALL; vectors: a helper function does it lane by lane */
} c_how;

typedef struct c_op {
  const char *text; /* NULL: the dialect cannot say it */
  c_how how;
} c_op;

/** A better body of a helper function, where a condition of the preprocessor holds. */
typedef struct c_native {
  op op;
  dtype dtype;
  uint16_t lanes;
  const char *condition, *text; /* an expression */
} c_native;

typedef struct c_type {
  const char *scalar, *vector; /* a vector's name is this and its lanes */
  const char *suffix;          /* of literals */
  const char *function;        /* see $f */
} c_type;

struct c_dialect {
  c_type types[DT_LIMIT];
  c_op scalar[C_CLASSES][OP_LIMIT], vector[C_CLASSES][OP_LIMIT];
  const c_native *native;
  size_t natives;
  op partial[4]; /* ops that it has for some values only (see rule_target); ends in OP_LIMIT */

  const char *prelude;
  const char *minus_zero;  /* of type $t */
  const char *vector_type; /* declares $t, a vector of $n bytes of $o, and $x */
  const char *memory;      /* follows a vector type's name in $x */
  const char *helper;      /* begins a helper function */
  const char *lane;        /* the i-th lane of $a */
  const char *lanes;       /* a helper's body: the result's i-th of $n lanes is $a */

  /* [0] of scalars, [1] of vectors. */
  const char *load[2];  /* from $a at address $b */
  const char *ahead;    /* the load $l, and $a asked for at $n elements after address $b; or NULL */
  const char *store[2]; /* of $c to $a at address $b */
  const char *stream;   /* the same of a vector of $n bytes past the caches; NULL: as `store` */
  size_t stream_bytes[2]; /* the least and the most bytes of such a vector */
  const char *streams;    /* what has to stand before the first; guarded */
  const char *streamed;   /* what follows all of these, before others may read what they wrote */
  const char *zero[2];    /* what a load gives at no address */
  const char *gated[2];   /* the load $b if $a holds, else $c */
  const char *cast[2];    /* between numbers */
  const char *to_bool[2]; /* from a number; vectors: to a mask as wide */
  c_op bitcast[2];
  const char *to_mask; /* from a scalar truth value to a lane of a mask */
  const char *of_mask; /* from a mask to numbers 0 and 1 as wide */
  c_op splat;
  const char *vectorize; /* lanes in $l */
  const char *extract;   /* lane $n of $a */

  const char *scratch;     /* declares the array $a of $o, at byte $n of the scratch memory */
  const char *function;    /* begins the function of kernel $a */
  const char *param[2];    /* declares the parameter $a of type $o: [1] if it is written to */
  const char *value;       /* declares the runtime value $a */
  const char *entry;       /* begins the entry of kernel $a, and the call of its function there */
  const char *many_sums;   /* begins both of a kernel with a loop of many sums */
  const char *argument[2]; /* the $n-th [0] buffer, [1] runtime value, in that call */
  const char *barrier;     /* a statement before which all stores are done; NULL: there is none */
  const char *scratch_param;
  const char *scratch_argument[2]; /* buffer $a; [1] that of the worker of runtime value $b, each of
                                      which has $n bytes */
};

#endif
