/* Derives the launch interface of a kernel from its graph: buffers, variables, grid sizes, scratch
   memory. Renderers, compilers and backends see a kernel through its tn_program_spec. */
#ifndef TENON_COMPILE_PROGRAM_SPEC_H
#define TENON_COMPILE_PROGRAM_SPEC_H

#include "device/program/launch_expr.h"
#include "ir/core/ir.h"

#include <tenon/unstable/backend.h>

/** Derives the spec of a PROGRAM, LINEAR or SINK node, in the ir's memory:

    - globals, outs, ins: the slots of PARAMs; of those stored to (STORE, OUT); of those read (LOAD,
      INDEX). Each slot once, ascending.
    - vars: the VARs, by name. value_names: these and the SPECIALs that are worker numbers, by name.
    - scratch: the bytes of a LINEAR's own arrays.
    - global, local: SPECIAL(n){"core_id"} makes global[0] n. "g0" … "g2" are sizes of global, "l0"
   … "l2" of local, "i0" … "i2" of global without local. All others are 1.

    name and device come from a PROGRAM's SINK and DEVICE; source and entry stay "". Raises
    TN_ERR_INTERNAL, through the ir's diag, where the graph contradicts itself: one VAR with two
    bounds, one SPECIAL with two sizes, direct ids beside others. */
void program_spec_derive(ir *g, const node *root, tn_program_spec *s);

/** The limits of launches of a derived spec, in an arena. */
launch_limits program_spec_limits(ir *g, arena *a, const tn_program_spec *s);

#endif
