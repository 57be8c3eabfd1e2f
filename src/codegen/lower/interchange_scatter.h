/* Interchanges loops around stores at loaded places, as parallel loops ask for. */
#ifndef TENON_CODEGEN_LOWER_INTERCHANGE_SCATTER_H
#define TENON_CODEGEN_LOWER_INTERCHANGE_SCATTER_H

#include "ir/core/ir.h"

/** Moves a loop (an END) of independent iterations inside of the loops in it, where these store
    contiguous elements along it at places that they load; else returns it as it is. */
const node *interchange_scatter(ir *g, const node *end);

#endif
