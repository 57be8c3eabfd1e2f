/* Program specs, derived from graphs; and PROGRAM nodes, made stage by stage. */
#ifndef TENON_DEVICE_SPEC_H
#define TENON_DEVICE_SPEC_H

#include "device/launch.h"
#include "ir/ir.h"

#include <tenon/unstable/backend.h>

/** All that a PROGRAM, LINEAR or SINK node says of its launch, in the ir's memory:

    - PARAMs give globals, those stored to (STORE, OUT) outs, those read (LOAD, INDEX) ins: slots,
      each once, ascending.
    - VARs give vars, by name; they and SPECIALs that are worker numbers give value_names, by name.
    - Arrays of a LINEAR's own give scratch.
    - SPECIAL(n){"core_id"}: global[0] is n. "g0" … "g2" give global, "l0" … "l2" local, "i0" … "i2"
      global where there is no local. All else is 1.

    name and device come from a PROGRAM's SINK and DEVICE; source and entry stay "". Raises
    TN_ERR_INTERNAL, through the ir's diag, where the graph says two things at once: one VAR with
    two bounds, one SPECIAL with two sizes, direct ids beside others. */
void spec_derive(ir *g, const node *root, tn_program_spec *s);

/** What launches of a derived spec keep to, in an arena. */
launch_terms spec_terms(ir *g, arena *a, const tn_program_spec *s);

/* PROGRAM(SINK, DEVICE, LINEAR, SOURCE, BINARY). */

/** Raises TN_ERR_INTERNAL if a PROGRAM's stages are not in order, each well-formed, and of one
    kernel. */
void program_node_check(ir *g, const node *program);

/** The PROGRAM with the next stage. Raises TN_ERR_INTERNAL if that is another stage, or empty; with
    TENON_VERIFY also as program_node_check does. */
const node *program_node_source(ir *g, const node *program, const char *source, size_t bytes);
const node *program_node_binary(ir *g, const node *program, const void *code, size_t bytes);

#endif
