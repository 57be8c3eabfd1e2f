/* Custom operations of the library's own, whose functions take arrays where they lie: on a device
   whose memory the host does not see, no copy is made for them. */
#ifndef TENON_TENSOR_API_CUSTOM_OP_H
#define TENON_TENSOR_API_CUSTOM_OP_H

#include <tenon/tensor.h>

/** As tn_custom with a `run` of one input and one output, which asks for spans
    (context/host_function.h) where an array's data is NULL. `what`, a literal, is the kind of its
    step in explanations. */
tn_tensor *custom_op_of_spans(tn_context *c, const tn_custom_desc *desc, const char *what,
                              tn_tensor *x, const tn_type *type);

#endif
