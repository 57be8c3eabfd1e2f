/* The name of fill_build_request.h before; evaluation and plans include it still. */
#ifndef TENON_TENSOR_CONTEXT_EXECUTABLE_REQUEST_H
#define TENON_TENSOR_CONTEXT_EXECUTABLE_REQUEST_H

#include "tensor/context/fill_build_request.h"

#endif
