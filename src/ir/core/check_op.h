/* Internal header of ir_check_spec (check_node.h): the per-op well-formedness rules, one function
   for each op that has more to check than counts, types, lanes and shapes, and the predicates that
   they share. A rule returns NULL or the text of the rule that the specification breaks. */
#ifndef TENON_IR_CORE_CHECK_OP_H
#define TENON_IR_CORE_CHECK_OP_H

#include "ir/core/node.h"

/** The most sources or integers of a node. */
enum { CHECK_MAX_SOURCES = 1 << 24 };

/* Kinds of operands. A value can be the operand of an elementwise op; an address is an index, or an
   integer once a late pass has given indices 32 or 64 bits; a size is an index that may be ≥ 0. */
bool check_is_value(const node *n);
bool check_is_scalar(const node *n);
bool check_is_index(const node *n);
bool check_is_address(const node *n);
bool check_is_size(const node *n);
bool check_is_range(const node *n);

/** True if a predicate holds for each of n sources. */
bool check_all(bool (*is)(const node *n), const node *const *src, size_t n);

/** True if op `o` can combine the values of a reduction of type `t`. */
bool check_reduces(int64_t o, dtype t);

/** NULL if `dims` are sizes of a shape. */
const char *check_sizes(const node *const *dims, size_t rank);
extern const char check_too_many_dims[];

/* Tensor graphs: check_tensor_op.c. */
const char *check_op_reshape(const node_spec *s);
const char *check_op_expand(const node_spec *s);
const char *check_op_permute(const node_spec *s);
const char *check_op_slice(const node_spec *s);
const char *check_op_pad(const node_spec *s);
const char *check_op_gather(const node_spec *s);
const char *check_op_reduce(const node_spec *s);
const char *check_op_set(const node_spec *s);
const char *check_op_scatter(const node_spec *s);
const char *check_op_scan(const node_spec *s);
const char *check_op_item(const node_spec *s);
const char *check_op_pick(const node_spec *s);
const char *check_op_to(const node_spec *s);
const char *check_op_custom(const node_spec *s);
const char *check_op_kernel(const node_spec *s);
const char *check_op_loop(const node_spec *s);
const char *check_op_carry(const node_spec *s);
const char *check_op_result(const node_spec *s);
const char *check_op_const(const node_spec *s);
const char *check_op_var(const node_spec *s);
const char *check_op_iota(const node_spec *s);
const char *check_op_buffer(const node_spec *s);

/* Kernels, lowered kernels and programs: check_kernel_op.c. */
const char *check_op_range(const node_spec *s);
const char *check_op_stage(const node_spec *s);
const char *check_op_fold(const node_spec *s);
const char *check_op_state(const node_spec *s);
const char *check_op_index(const node_spec *s);
const char *check_op_out(const node_spec *s);
const char *check_op_affine(const node_spec *s);
const char *check_op_distinct(const node_spec *s);
const char *check_op_alloc(const node_spec *s);
const char *check_op_barrier(const node_spec *s);
const char *check_op_load(const node_spec *s);
const char *check_op_store(const node_spec *s);
const char *check_op_prefetch(const node_spec *s);
const char *check_op_wait(const node_spec *s);
const char *check_op_after(const node_spec *s);
const char *check_op_end(const node_spec *s);
const char *check_op_special(const node_spec *s);
const char *check_op_device(const node_spec *s);
const char *check_op_program(const node_spec *s);

#endif
