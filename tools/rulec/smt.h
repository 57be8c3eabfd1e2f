/* Translates scalar ops to SMT-LIB terms that define their semantics: integers are bit-vectors,
   floats IEEE 754 floats, indices unbounded integers, or signed 64-bit vectors in scripts that
   convert them. */
#ifndef RULEC_SMT_H
#define RULEC_SMT_H

#include "rule_ast.h"

#include <setjmp.h>

typedef struct term {
  const char *text;
  int type; /* row of type_table */
} term;

enum { SMT_MOST_FLOATS = 64 };

typedef struct script {
  char *text; /* declarations and assertions so far */
  int fresh;
  bool converts; /* indices are 64-bit vectors */
  struct {
    const char *of; /* a float term */
    term bits;      /* its bit pattern */
  } bits[SMT_MOST_FLOATS];
  size_t n_bits;
  const char *why; /* reason of smt_unsupported */
  jmp_buf give_up; /* target of smt_unsupported */
} script;

/** Gives up the script: the rule cannot be expressed. */
_Noreturn void smt_unsupported(script *s, const char *why);

bool smt_has_class(int type, const char *cls);

/** Declares an unconstrained value; names a term; adds an assertion. */
term smt_fresh(script *s, int type);
term smt_define(script *s, term t);
void smt_assert(script *s, const char *text);

term smt_number(script *s, const number *v, int type);

/** An elementwise op other than a conversion; `made` is the type of its result. */
term smt_op(script *s, int op, const term args[], int made);

/** Conversion as by scalar_cast; reinterpretation of the bits. */
term smt_cast(script *s, term from, int to);
term smt_bitcast(script *s, term from, int to);

/** Ops as C defines them: out-of-range shift counts, undefined divisions, and casts of floats
    outside the integer type's bounds give an unconstrained value. */
term smt_machine_op(script *s, int op, const term args[], int made);
term smt_machine_cast(script *s, term from, int to);

/** A formula: two values, of any integer types, are the same number. */
const char *smt_same_number(script *s, term a, term b);

/** The bit pattern of a float. */
term smt_bits(script *s, term of);

#endif
