/* Sets of term-rewriting rules, one set for each file NAME.rules, compiled to C by tools/rulec, and
   the lists of sets that the rewriting passes apply. The language of rule files:

   A rule file is a list of forms; ';' starts a comment that ends with the line.

   (rule NAME PATTERN -> RESULT FIELD …)   replaces nodes that match the pattern
       PATTERN   _  a name (twice the same: the same node)  a number (floats by bits: 0 is not −0)
                 (const NAME)  (op PATTERN …)  (as NAME PATTERN); each may be restricted by type:
                 x:f32  add:float  _:i32|i64; the classes are float int sint uint half (16-bit
                 floats) wide (f32, f64) data; the last source may be NAME… : all remaining ones
       RESULT    a name (root: the matched node)  a number (0:u32, 0:@x: of the type of x)
                 (op RESULT …)  (cast:f32 X), (bitcast:@x Y)  (let ((NAME RESULT) …) RESULT)
                 (poly X c0 c1 …): c0 + c1·X + …, by fma  (FUNCTION RESULT …)
       :let ((NAME RESULT) …)     names in the result
       :if (GUARD NAME …) …       all must hold; (not (…)); (lacks OP): the target has no such op
       :math fast|contract|sum|flush   fires only where the mode allows it; other rules are exact
       :example EXPRESSION        the rule must fire on it; inputs: x:f32, x:f32[4,6], i:index[0,9]
       :unproved TYPES WORD …     reason for no proof where a node has one of the types (or all)
   (for NAME (VALUE …) FORM …)    the forms for each value; (for (A B) ((…) …) …) for each tuple
   (define (NAME PARAMETER …) RESULT)   a function of the rule file
   (guard NAME (PARAMETER …))  (build NAME (PARAMETER …))   functions of rule_functions.h
   (constant NAME VALUE)
   (unproved TYPES WORD …)        for all rules of the file

   Every rule is proved by an SMT solver for all types that it may match, except those marked
   unproved and rules with :math (tools/rulec/emit_proofs.c).

   Operands of commutative ops match in both orders, except those of max and min that may be floats.
   Earlier rules take precedence; a rule that an earlier one subsumes is an error. */
#ifndef TENON_RULES_RULE_SETS_H
#define TENON_RULES_RULE_SETS_H

#include "ir/transform/rewrite.h"

const node *rules_algebra(rewriter *rw, const node *n);
const node *rules_fuse_multiply_add(rewriter *rw, const node *n);
const node *rules_decompose(rewriter *rw, const node *n);
const node *rules_index_comparisons(rewriter *rw, const node *n);
const node *rules_movement(rewriter *rw, const node *n);
const node *rules_transcendental(rewriter *rw, const node *n);

/** For tensor graphs: constants, algebra, movement. */
extern const rewrite_rule_set rules_simplify_tensor[3];
/** For kernels at every stage: constants, algebra, index logic. */
extern const rewrite_rule_set rules_simplify_kernel[3];
/** For lowered kernels: decomposes ops that rw->target lacks and simplifies the results; with index
    logic, as the laws and the expansion create new conditions. */
extern const rewrite_rule_set rules_lower[5];

/** Contracts multiply-adds to fma, if mode and target allow; runs before rules_lower. */
extern const rewrite_rule_set rules_contract_fma[2];

enum {
  RULES_SIMPLIFY_TENSOR = 3,
  RULES_SIMPLIFY_KERNEL = 3,
  RULES_LOWER = 5,
  RULES_CONTRACT_FMA = 2
};

#endif
