/* Graphs of works: launches of a command list that are handed to a stream as one piece. A graph is
   made when its list runs for the second time, as most lists of values that are realised once never
   do; later runs tell the backend the launches that changed. What keeps it from being made, changed
   or run is kept as the reason for which its works are handed over one by one. */
#ifndef TENON_DEVICE_QUEUE_WORK_GRAPH_H
#define TENON_DEVICE_QUEUE_WORK_GRAPH_H

#include "device/core/device.h"

typedef struct work_graph work_graph;

/** A graph of `n` launches, not made yet, for a device of a backend with graphs; NULL without
    memory. */
work_graph *work_graph_open(tn_device *device, size_t n);
void work_graph_free(work_graph *g); /* NULL is allowed */

size_t work_graph_size(const work_graph *g);

/** Why the last run was handed over one by one, as long as the graph; NULL: it was a graph. Any
    thread. */
const char *work_graph_why(work_graph *g);

/** As work_graph_why, if the graph was refused and the call is the first to ask; else NULL. The
    device's `refused_graphs` tells whether it is worth asking. Any thread. */
const char *work_graph_take_refusal(work_graph *g);

/* For the queue that runs the list: */

/** Begins a run: the place for its works; NULL: they are to be handed over one by one. */
tn_work *work_graph_begin(work_graph *g);

/** Makes the graph of these works, or tells the backend those that changed; false: they are to be
    handed over one by one. */
bool work_graph_update(work_graph *g);

/** Hands a run over to a stream; not `is_run`: it was refused, nothing of it began, and the works
    are to be handed over one by one. Fails if the device is lost. */
tn_status work_graph_run(work_graph *g, void *stream, bool *is_run, tn_failure *f);

#endif
