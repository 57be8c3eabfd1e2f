/* Executables on disk: scheduled by one process, found by the next ones, under keys of the graph,
   of all else that the schedule depends on, and of build_id: what else made it is never read as
   this version's. Buffers and host functions are numbered by the graph, kernels have their own
   keys, and what follows from the rest is not kept. */
#ifndef TENON_RUNTIME_KEPT_H
#define TENON_RUNTIME_KEPT_H

#include "device/key.h"
#include "ir/topo.h"
#include "runtime/executable.h"

/** What an executable is kept for. */
typedef struct kept_graph {
  kernel_key key;
  node_list buffers, customs; /* its BUFFERs and CUSTOMs, whose numbers in files these are */
} kept_graph;

/** That of a request. Like all below it raises through the arena. */
kept_graph kept_graph_of(arena *a, const executable_request *r);

/** Appends what is kept of an executable. */
void kept_add(str *to, const executable *p, const executable_request *r, const kept_graph *g);

/** Reads what was appended into an executable that has no more than its arena yet. False for what
    cannot be an executable of that request: numbers that are out of range, buffers of other types
    or that do not live as long as they are used, kernels that are launched otherwise. The names of
    the records and what they point to are in `work` or in `data`. */
bool kept_read(executable *p, const executable_request *r, const kept_graph *g, const void *data,
               size_t bytes, arena *work, program_record **records, size_t *n_records);

/** Finds an executable on disk, with all its kernels. */
bool kept_find(executable *p, const executable_request *r, const kept_graph *g);

/** Keeps one there, if it can. */
void kept_write(const executable *p, const executable_request *r, const kept_graph *g);

/** Raises TN_ERR_INTERNAL for an executable that kept_find would not take from its file. */
void kept_check(const executable *p, const executable_request *r, arena *a);

#endif
