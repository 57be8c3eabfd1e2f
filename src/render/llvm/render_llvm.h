/* Renders one LINEAR program (a list of instructions) as text of LLVM's intermediate representation
   (LLVM 19 or later), in SSA form but for registers, which are stack slots that mem2reg promotes.
 */
#ifndef TENON_RENDER_LLVM_RENDER_LLVM_H
#define TENON_RENDER_LLVM_RENDER_LLVM_H

#include "base/str.h"
#include "ir/core/node.h"
#include "ir/transform/rewrite.h"

#include <tenon/unstable/backend.h>

/** Appends what a module needs once, before the first kernel. */
void render_llvm_prelude(str *out);

/** Appends one kernel, so that several can stand in one module: two functions, of which

      void ENTRY(ptr bufs, ptr vals)

    has the interface of GNU C's kernels (render_c), and calls the other one with the buffers and
    values in place. The text depends on the program and on `rows`: a bit for each TENSOR_ROW that
   is an intrinsic of x86 in vectors of at most `vector_bytes`. Raises through out->arena->diag:
   TN_ERR_UNSUPPORTED for an op that should have been decomposed, TN_ERR_INTERNAL for an ill-formed
   program. */
void render_llvm(const node *linear, const tn_program_spec *spec, uint32_t rows,
                 size_t vector_bytes, str *out);

/** Adds ops that have no instruction, or for some values only, to those that `t` lacks. */
void render_llvm_unsupported_ops(rule_target *t);

#endif
