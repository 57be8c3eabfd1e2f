/* Lists the rule sets of each rewriting pass, in the order in which they are tried on a node:
   constant folding first, since the patterns of the other sets assume folded constants. */
#include "rules/rule_sets.h"

#include "rules/simplifying_builder.h"

const rewrite_rule_set rules_simplify_tensor[RULES_SIMPLIFY_TENSOR] = {
    rules_fold_constants, rules_algebra, rules_movement};
const rewrite_rule_set rules_simplify_kernel[RULES_SIMPLIFY_KERNEL] = {
    rules_fold_constants, rules_algebra, rules_index_comparisons};
const rewrite_rule_set rules_lower[RULES_LOWER] = {rules_fold_constants, rules_algebra,
                                                   rules_index_comparisons, rules_decompose,
                                                   rules_transcendental};
const rewrite_rule_set rules_contract_fma[RULES_CONTRACT_FMA] = {rules_fold_constants,
                                                                 rules_fuse_multiply_add};
