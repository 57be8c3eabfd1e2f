/* Calls of a renderer that writes into a str and raises, for the tables of backends, which get a
   tn_output and return a status; and the types that such renderers know. */
#ifndef TENON_DEVICE_CORE_RENDER_SOURCE_H
#define TENON_DEVICE_CORE_RENDER_SOURCE_H

#include "base/str.h"

#include <tenon/unstable/backend.h>

/** The types that the renderers of the C family and of LLVM compute with, as `dtypes` of
    tn_capabilities: all but f16 and bf16. */
uint64_t render_dtypes(void);

/** Appends a program's text; raises through out->arena->diag. */
typedef void render_source_fn(const tn_capabilities *caps, const tn_program_spec *spec, str *out);

/** Renders a program into `source`, in an arena of its own. */
tn_status render_source(render_source_fn *render, const tn_capabilities *caps, tn_ir *ir,
                        const tn_program_spec *spec, tn_output *source, tn_failure *f);

/** Writes what stands before programs, in an arena of its own; `write` may raise. */
tn_status render_prelude(void (*write)(str *out), tn_output *text, tn_failure *f);

#endif
