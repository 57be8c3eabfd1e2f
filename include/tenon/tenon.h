/* Includes the headers of Tenon's stable API, a compiler and runtime for tensor programs: build
   tensors lazily or load a model, compile, run. */
#ifndef TENON_H
#define TENON_H

#include <tenon/array_file.h>
#include <tenon/cache.h>
#include <tenon/context.h>
#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/group.h>
#include <tenon/model.h>
#include <tenon/ops.h>
#include <tenon/plan.h>
#include <tenon/profile.h>
#include <tenon/status.h>
#include <tenon/tensor.h>
#include <tenon/tune.h>

#endif
