/* Loops of a model that the host runs: the body is a plan of its own, which a step of the host runs
   once for each trip. */
#ifndef TENON_FORMATS_MODEL_HOST_LOOP_H
#define TENON_FORMATS_MODEL_HOST_LOOP_H

#include "formats/model/model_graph.h"

/** Imports the body of a loop, as a part of the file of an import at hand. What `l` points to, and
    lists of the result, lie in `a`, the arena of the steps, which outlives the loop. Raises in `d`.
 */
importer_loop_body host_loop_open(const model_graph_request *of, const importer_loop *l, arena *a,
                                  diag *d);

#endif
