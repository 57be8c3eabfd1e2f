/* Kernels as operations of tensor graphs.

   KERNEL(inputs …; sizes …) {slot, inputs, text}
     What the array of a slot holds after a kernel ran. The text is the kernel's, of stage K
   (print.h): a SINK whose PARAMs have the slots 0 … n − 1, first the inputs in order. It writes the
   others, and may write inputs, whose elements that it does not write stay as they are. All that it
   reads is what was there before. KERNELs of equal text and inputs are results of one run. */
#ifndef TENON_IR_KERNEL_H
#define TENON_IR_KERNEL_H

#include "ir/topo.h"

/** A param of a kernel. */
typedef struct kernel_param {
  const node *param;
  bool is_read, is_written;
} kernel_param;

typedef struct kernel_form {
  const node *sink, *out; /* the SINK and its only OUT */
  kernel_param *params;   /* by slot */
  size_t n;
} kernel_form;

/** What a verified SINK of stage K in `g`, of canonical index arithmetic, is as an operation; lists
   are in the arena. Raises TN_ERR_ARGUMENT, with the reason, if it cannot be one. */
kernel_form kernel_form_of(ir *g, arena *a, const node *sink);

/** Raises TN_ERR_ARGUMENT, TN_ERR_DTYPE or TN_ERR_SHAPE if a kernel cannot run on inputs, whose
   sizes are of the kernel's ir: they are its first params, and it writes all others. */
void kernel_check_inputs(arena *a, const kernel_form *f, const node *const inputs[],
                         size_t n_inputs);

/** Raises if an array of a type and sizes cannot be the param of a slot; `what` it is. */
void kernel_check_array(arena *a, const kernel_form *f, size_t slot, const char *what, dtype t,
                        size_t rank, const node *const dims[]);

/** The kernel of a text, in `g`. */
kernel_form kernel_of_text(ir *g, arena *a, const char *text, size_t bytes);

/** The kernel of a KERNEL node, in `g`; its inputs are not looked at. */
kernel_form kernel_of_node(ir *g, arena *a, const node *n);

/** The node for a slot, with these inputs and that kernel. The PARAM of the slot is of `g`. */
const node *kernel_node(ir *g, arena *a, const kernel_form *f, int64_t slot,
                        const node *const inputs[], size_t n_inputs, const char *text,
                        size_t n_text);

#endif
