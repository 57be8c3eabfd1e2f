/* The sets of rules, one a file NAME.rules, compiled by tools/rulec; and the pipelines of them.

   A rule file is a list of forms; ';' starts a comment that ends with the line.

   (rule NAME PATTERN -> RESULT FIELD …)   replaces what the pattern matches
       PATTERN   _  a name (twice the same: the same node)  a number (floats by bits: 0 is not −0)
                 (const NAME)  (op PATTERN …)  (as NAME PATTERN); each may be restricted by type:
                 x:f32  add:float  _:i32|i64; the classes are float int sint uint half (16-bit
                 floats) wide (f32, f64) data; the last source may be NAME… : all that are left
       RESULT    a name (root: the matched node)  a number (0:u32, 0:@x: of the type of x)
                 (op RESULT …)  (cast:f32 X), (bitcast:@x Y)  (let ((NAME RESULT) …) RESULT)
                 (poly X c0 c1 …): c0 + c1·X + …, by fma  (FUNCTION RESULT …)
       :let ((NAME RESULT) …)     names in the result
       :if (GUARD NAME …) …       all must hold; (not (…)); (lacks OP): the target has no such op
       :math fast|contract|sum    only where the mode allows it; without it a rule is exact
       :example EXPRESSION        on which it must fire; inputs are x:f32, x:f32[4,6], i:index[0,9]
       :unproved TYPES WORD …     why it is not proved where a node is of one of the types (or all)
   (for NAME (VALUE …) FORM …)    the forms for each value; (for (A B) ((…) …) …) for each tuple
   (define (NAME PARAMETER …) RESULT)   a function of the rule file
   (guard NAME (PARAMETER …))  (build NAME (PARAMETER …))   functions of guards.c
   (constant NAME VALUE)
   (unproved TYPES WORD …)        for all rules of the file

   Every rule is proved for all types that it may match, but for what is said to be unproved and for
   rules with :math; obligations.c of tools/rulec says how.

   Operands of commutative ops match both ways, but for max and min that may be of floats. Earlier
   rules go first; a rule that can never fire because an earlier one matches all that it matches is
   an error. */
#ifndef TENON_RULES_RULES_H
#define TENON_RULES_RULES_H

#include "ir/rewrite.h"

const node *rules_algebra(rewriter *rw, const node *n);
const node *rules_contract(rewriter *rw, const node *n);
const node *rules_decompose(rewriter *rw, const node *n);
const node *rules_index(rewriter *rw, const node *n);
const node *rules_movement(rewriter *rw, const node *n);
const node *rules_transcendental(rewriter *rw, const node *n);

/** Tensor graphs: constants, algebra, movement. */
extern const rule_set rules_simplify_tensor[3];
/** Kernels, at every stage: constants, algebra, index logic. */
extern const rule_set rules_simplify_kernel[3];
/** Lowered kernels: what rw->target lacks becomes what it has, and is simplified; index logic too,
    as the laws and the expansion make conditions anew. */
extern const rule_set rules_lower[5];

/** Multiply-adds become fma, in modes and for targets that have it; before rules_lower. */
extern const rule_set rules_fuse[2];

enum { RULES_SIMPLIFY_TENSOR = 3, RULES_SIMPLIFY_KERNEL = 3, RULES_LOWER = 5, RULES_FUSE = 2 };

#endif
