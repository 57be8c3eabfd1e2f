/* Rules as they were read: patterns, templates, conditions. */
#ifndef RULEC_RULE_H
#define RULEC_RULE_H

#include "sexpr.h"

#include <stdint.h>

/* The tables, as far as the tool needs them. */

enum {
#define OP(name, text, cls, least, most, type, operands, facts, stages, ...) O_##name,
#include "ir/ops.def"
#undef OP
  O_LIMIT
};

typedef enum type_rule { SAME, COMPARE, SELECT, SHIFT, FREE, VOID, INDEX, FIRST } type_rule;

enum { TAKES_BOOL = 1, TAKES_INT = 2, TAKES_FLOAT = 4, TAKES_INDEX = 8 };

typedef struct op_row {
  const char *name, *text;
  int least, most;
  type_rule type;
  bool commutative, elementwise, movement;
  int operands; /* TAKES_… */
} op_row;

typedef struct type_row {
  const char *name, *text;       /* "DT_F32", "f32" */
  const char *cls;               /* "FLOAT" */
  int bytes, exponent, mantissa; /* bits of a float's */
} type_row;

extern const op_row op_table[O_LIMIT];
extern const type_row type_table[];
extern const size_t type_count;

int find_op(const char *text, size_t n);   /* −1: none */
int find_type(const char *text, size_t n); /* −1: none */

/** A set of types: bit i is row i of type_table. */
typedef uint32_t type_set;

typedef struct number {
  bool is_float;
  bool negative; /* an integer is −(2^64 − bits) then */
  uint64_t bits;
  double value;
} number;

typedef enum pattern_kind { P_ANY, P_NUMBER, P_CONST, P_OP, P_TAIL } pattern_kind;

typedef struct pattern {
  place at;
  pattern_kind kind;
  const char *name; /* of the capture, or NULL */
  type_set types;   /* what the node's type may be */
  const char *type_text;
  number number;
  int op;
  int type_class; /* in the rule's class_types */
  struct pattern **child;
  size_t n;
} pattern;

typedef enum template_kind { T_NAME, T_NUMBER, T_OP, T_CALL, T_LET, T_POLY, T_LEAF } template_kind;

/** A let's child 0 … n − 2 are the values of names[0] … ; the last is its body. A poly's child 0 is
    its variable, the rest are coefficients from the constant one on. */
typedef struct template {
  place at;
  template_kind kind;
  const char *name;    /* of a capture, a leaf or what is called */
  const char *type;    /* C expression of the type that was written with it, or NULL */
  const char *type_of; /* the name whose type it is, or NULL */
  type_set types;
  const char *extents; /* a leaf's "[4,6]", or NULL */
  number number;
  int op;
  const sexpr *ints; /* {…} of an example's op, or NULL */
  struct template **child;
  const char **names;
  size_t n;
}
template;

typedef struct condition {
  place at;
  bool negated;
  const char *name; /* "lacks", or a declared guard */
  int op;           /* of lacks */
  const char **args;
  size_t n;
} condition;

typedef enum math { ALWAYS, CONTRACT = 1, SUM = 2, FAST = 4 } math;

/** Why there are no proofs for some types. */
typedef struct excuse {
  place at;
  type_set types;
  const char *words;
  bool used;
} excuse;

enum { MOST_CLASSES = 64, MOST_CAPTURES = 64 };

typedef struct rule {
  place at;
  const char *name;
  pattern *pattern;
  template *result;
  condition *conditions;
  size_t n_conditions;
  math math;
  template *example;
  excuse *unproved;
  size_t n_unproved;
  type_set class_types[MOST_CLASSES]; /* of each class of the pattern's nodes; 0: no class */
  size_t n_classes;
  pattern **variants; /* the pattern with commutative operands swapped in every way; itself first */
  size_t n_variants;
} rule;

/** A function of the rule file: (define (name parameters) body). */
typedef struct definition {
  place at;
  const char *name;
  const char **parameters;
  size_t n;
  template *body;
  bool used;
} definition;

/** A function declared in the rule file and written in C. */
typedef struct declaration {
  place at;
  const char *name;
  size_t n;
  bool is_guard, used;
} declaration;

typedef struct rule_file {
  const char *path, *set; /* "algebra" */
  excuse *unproved;       /* for every rule of the file */
  rule *rules;
  definition *definitions;
  declaration *declarations;
  size_t n_rules, n_definitions, n_declarations, n_unproved;
} rule_file;

/** Reads and checks a file; ends the program where it is wrong. */
rule_file *rules_read(const char *path);

/** Finds what types the nodes of each pattern may have; refuses patterns that no types fit. */
void rules_type(rule_file *f);

/** The types of a class ("FLOAT"). */
type_set types_of_class(const char *cls);

/** Whether an expression's type is known without its surroundings. */
bool is_typed(const template *t);

/** Fills the variants of each rule, and refuses rules that an earlier one covers. */
void rules_vary(rule_file *f);

/** A name as a C identifier. */
const char *identifier(const char *name);

/** A literal as arguments of rule_int or rule_float, and the name of that function's ending. */
const char *number_text(const number *v);
const char *number_kind(const number *v);

/* Output. */
#include <stdio.h>
void emit_rules(FILE *out, rule_file *const files[], size_t n);
void emit_examples(FILE *out, rule_file *const files[], size_t n);
void emit_obligations(FILE *out, rule_file *const files[], size_t n);

#endif
