/* The table of the rules' examples, which `rulec --tests` writes. */
#ifndef TENON_TESTS_RULES_EXAMPLES_H
#define TENON_TESTS_RULES_EXAMPLES_H

#include "ir/ir.h"

typedef struct rule_example {
  const char *set, *rule; /* "algebra", "neg-neg" */
  int line;               /* in the rule file */
  int math;               /* what the mode must allow; 0: nothing */
  const node *(*build)(ir *g);
} rule_example;

extern const rule_example rule_examples[];
extern const size_t rule_example_count;

#endif
