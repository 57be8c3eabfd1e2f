/* User kernels as ops of tensor graphs: derives and checks a kernel's signature, and makes the
   KERNEL nodes that run it.

   KERNEL(inputs …; sizes …) {slot, inputs, text}
     The array of a slot after the kernel ran. The text is a kernel of stage K (print.h): a SINK
     whose PARAMs have the slots 0 … n − 1, the inputs first and in order. The kernel writes all
     other params and may write inputs, whose unwritten elements stay. It reads old values only.
     KERNELs of equal text and inputs are results of one run. */
#ifndef TENON_IR_VERIFY_KERNEL_SIGNATURE_H
#define TENON_IR_VERIFY_KERNEL_SIGNATURE_H

#include "ir/core/topo_sort.h"

/** A param of a kernel and its uses. */
typedef struct kernel_param {
  const node *param;
  bool is_read, is_written;
} kernel_param;

typedef struct kernel_signature {
  const node *sink, *out; /* the SINK and its only OUT */
  kernel_param *params;   /* by slot */
  size_t n;
} kernel_signature;

/** The signature of a verified SINK of stage K in `g` with canonical index arithmetic; lists live
    in `a`. Raises TN_ERR_ARGUMENT, with the reason, if the SINK cannot be an operation. */
kernel_signature kernel_signature_of(ir *g, arena *a, const node *sink);

/** Raises TN_ERR_ARGUMENT, TN_ERR_DTYPE or TN_ERR_SHAPE unless the kernel's first params fit
    `inputs`, whose sizes are of the kernel's ir, and the kernel writes all others without reading
    them. */
void kernel_signature_check_inputs(arena *a, const kernel_signature *f, const node *const inputs[],
                                   size_t n_inputs);

/** Raises TN_ERR_SHAPE or TN_ERR_DTYPE unless an array of a type and sizes fits the param of a
    slot; `what` names the array in the message. */
void kernel_signature_check_array(arena *a, const kernel_signature *f, size_t slot,
                                  const char *what, dtype t, size_t rank, const node *const dims[]);

/** Parses a kernel into `g` and gives its signature. Raises as the parser and kernel_signature_of
    do. */
kernel_signature kernel_signature_parse(ir *g, arena *a, const char *text, size_t bytes);

/** Parses the kernel of a KERNEL node into `g`; does not check the inputs. */
kernel_signature kernel_signature_of_node(ir *g, arena *a, const node *n);

/** Makes the KERNEL node of a slot; the signature is of `g`. */
const node *kernel_make_node(ir *g, arena *a, const kernel_signature *f, int64_t slot,
                             const node *const inputs[], size_t n_inputs, const char *text,
                             size_t n_text);

#endif
