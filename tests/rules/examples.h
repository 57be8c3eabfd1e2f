/* Table of the rewrite rules' examples, one graph per rule, whose definition `rulec --tests`
   writes. */
#ifndef TENON_TESTS_RULES_EXAMPLES_H
#define TENON_TESTS_RULES_EXAMPLES_H

#include "ir/core/ir.h"

typedef struct rule_example {
  const char *set, *rule; /* "algebra", "neg-neg" */
  int line;               /* in the rule file */
  int math;               /* mode that the rule requires; 0: none */
  const node *(*build)(ir *g);
} rule_example;

extern const rule_example rule_examples[];
extern const size_t rule_example_count;

#endif
