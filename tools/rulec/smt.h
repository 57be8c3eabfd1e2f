/* SMT-LIB: scalars of every type and what the ops do with them. Integers are bit-vectors, floats
   are IEEE 754's. An index is an integer; a signed bit-vector of 64 bits where it is converted. */
#ifndef RULEC_SMT_H
#define RULEC_SMT_H

#include "rule.h"

#include <setjmp.h>

typedef struct term {
  const char *text;
  int type; /* row of type_table */
} term;

enum { MOST_BITS = 64 };

typedef struct script {
  char *text; /* declarations and assertions so far */
  int fresh;
  bool converts; /* indices are converted */
  struct {
    const char *of;
    term bits;
  } bits[MOST_BITS]; /* of floats */
  size_t n_bits;
  const char *why; /* it cannot be said */
  jmp_buf give_up;
} script;

_Noreturn void smt_give_up(script *s, const char *why);

bool smt_is(int type, const char *cls);

/** A new value of a type, anything; a name for a value; a fact. */
term smt_any(script *s, int type);
term smt_named(script *s, term t);
void smt_assert(script *s, const char *text);

term smt_number(script *s, const number *v, int type);

/** An op that is elementwise and no conversion; `made` is the type of its result. */
term smt_op(script *s, int op, const term args[], int made);

/** The value converted as scalar_cast does; the value with the same bits. */
term smt_cast(script *s, term from, int to);
term smt_bitcast(script *s, term from, int to);

/** The same ops of a machine: shifts by counts that are out of range, divisions that C does not
    define, and casts of floats that are not between an integer type's bounds give anything. */
term smt_machine_op(script *s, int op, const term args[], int made);
term smt_machine_cast(script *s, term from, int to);

/** Whether two values are the same number, whatever integer types they have. */
const char *smt_same_number(script *s, term a, term b);

/** A float's bits. */
term smt_bits(script *s, term of);

#endif
