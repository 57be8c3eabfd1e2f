#include "rules/rules.h"

#include "rules/simple.h"

const rule_set rules_simplify_tensor[RULES_SIMPLIFY_TENSOR] = {rules_simple, rules_algebra,
                                                               rules_movement};
const rule_set rules_simplify_kernel[RULES_SIMPLIFY_KERNEL] = {rules_simple, rules_algebra,
                                                               rules_index};
const rule_set rules_lower[RULES_LOWER] = {rules_simple, rules_algebra, rules_index,
                                           rules_decompose, rules_transcendental};
const rule_set rules_fuse[RULES_FUSE] = {rules_simple, rules_contract};
