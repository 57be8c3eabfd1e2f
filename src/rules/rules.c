#include "rules/rules.h"

#include "rules/fold.h"

const rule_set rules_simplify_tensor[RULES_SIMPLIFY_TENSOR] = {rules_fold, rules_algebra,
                                                               rules_movement};
const rule_set rules_simplify_kernel[RULES_SIMPLIFY_KERNEL] = {rules_fold, rules_algebra,
                                                               rules_index};
const rule_set rules_lower[RULES_LOWER] = {rules_fold, rules_algebra, rules_decompose,
                                           rules_transcendental};
const rule_set rules_fuse[RULES_FUSE] = {rules_fold, rules_contract};
