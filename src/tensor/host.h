/* Values from the host's memory and to it. */
#ifndef TENON_TENSOR_HOST_H
#define TENON_TENSOR_HOST_H

#include "tensor/context.h"

/** A value that is a copy of `count` elements in host memory, converted from `from` to `t`; `count`
    is that of the sizes, which are numbers. Raises. For builders with a context. */
value host_value(builder *b, dtype t, size_t rank, const node *const sizes[], dtype from,
                 const void *data, size_t count);

#endif
