/* Internal header of the rule compiler: the syntax tree of rule files (patterns, templates for
   results and examples, conditions, rules, and the declarations around them), the tables of ops and
   types, and the entry points of the stages. */
#ifndef RULEC_RULE_AST_H
#define RULEC_RULE_AST_H

#include "sexpr.h"

#include <stdint.h>

/* Tables (op_tables.c), reduced to the columns that the tool needs. */

enum {
#define OP(name, text, cls, least, most, type, operands, facts, stages, ...) O_##name,
#include "ir/core/ops.def"
#undef OP
  O_LIMIT
};

/** Rule by which the type of an op follows from its operands (ops.def). */
typedef enum type_rule { SAME, COMPARE, SELECT, SHIFT, FREE, VOID, INDEX, FIRST } type_rule;

enum { TAKES_BOOL = 1, TAKES_INT = 2, TAKES_FLOAT = 4, TAKES_INDEX = 8 };

typedef struct op_row {
  const char *name, *text;
  int least, most; /* sources */
  type_rule type;
  bool commutative, elementwise, movement;
  int operands; /* TAKES_… */
} op_row;

typedef struct type_row {
  const char *name, *text; /* "DT_F32", "f32" */
  const char *cls;         /* "FLOAT" */
  int bytes;
  int exponent, mantissa; /* bits, of a float */
} type_row;

extern const op_row op_table[O_LIMIT];
extern const type_row type_table[];
extern const size_t type_table_rows;

/** Rows by name; −1: there is none. */
int find_op(const char *text, size_t n);
int find_type(const char *text, size_t n);

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
  type_set types;   /* written with it; 0: any */
  const char *type_text;
  number number;
  int op;
  int type_class; /* index in the rule's class_types (infer_types.c) */
  struct pattern **child;
  size_t n;
} pattern;

typedef enum template_kind { T_NAME, T_NUMBER, T_OP, T_CALL, T_LET, T_POLY, T_LEAF } template_kind;

/** Children of a let: the values of names[0] … names[n − 2], then the body. Children of a poly: the
    variable, then the coefficients, the constant one first. */
typedef struct template {
  place at;
  template_kind kind;
  const char *name;    /* of a capture, an input or a function */
  const char *type;    /* C expression of the written type, or NULL */
  const char *type_of; /* the name after @, or NULL */
  type_set types;
  const char *extents; /* of an input: "[4,6]", or NULL */
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

typedef enum math { ALWAYS, CONTRACT = 1, SUM = 2, FAST = 4, FLUSH = 8 } math;

/** A reason for no proof where a node has one of the types. */
typedef struct proof_exemption {
  place at;
  type_set types;
  const char *words;
  bool used;
} proof_exemption;

enum { RULE_MOST_CLASSES = 64, RULE_MOST_CAPTURES = 64 };

typedef struct rule {
  place at;
  const char *name;
  pattern *pattern;
  template *result;
  condition *conditions;
  size_t n_conditions;
  math math;
  template *example;
  proof_exemption *unproved;
  size_t n_unproved;
  type_set class_types[RULE_MOST_CLASSES]; /* of classes of nodes with one type; 0: unused */
  size_t n_classes;
  pattern **variants; /* the pattern, then all others with commutative operands swapped */
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
  const char *path;
  const char *set;           /* file name without ending: "algebra" */
  proof_exemption *unproved; /* for every rule of the file */
  rule *rules;
  definition *definitions;
  declaration *declarations;
  size_t n_rules, n_definitions, n_declarations, n_unproved;
} rule_file;

/** parse_rules.c: reads and checks a file. */
rule_file *rules_parse(const char *path);

/** infer_types.c: infers the types of each pattern's nodes; patterns that no types fit are errors.
 */
void rules_infer_types(rule_file *f);

/** The types of a class ("FLOAT"). */
type_set types_of_class(const char *cls);

/** emit_c.c: true if the type of an expression follows from the expression alone. */
bool template_is_typed(const template *t);

/** expand_commutative.c: fills the variants of each rule; rules that an earlier one subsumes are
    errors. */
void rules_expand_variants(rule_file *f);

/** A name with other characters than letters and digits replaced by _: a C identifier. */
const char *identifier(const char *name);

/** A literal as a C argument of rule_int or rule_float, and the ending of that function's name. */
const char *number_text(const number *v);
const char *number_function_suffix(const number *v);

/* Output: emit_c.c, emit_examples.c, emit_proofs.c. */
#include <stdio.h>
void emit_rules(FILE *out, rule_file *const files[], size_t n);
void emit_examples(FILE *out, rule_file *const files[], size_t n);
void emit_proof_obligations(FILE *out, rule_file *const files[], size_t n);

#endif
