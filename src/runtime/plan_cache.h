/* The disk cache of plans: an executable that one process scheduled is loaded by the next one. Its
   key hashes the graph, everything else that the schedule depends on, and build_id, so that another
   version's plans are never read. */
#ifndef TENON_RUNTIME_PLAN_CACHE_H
#define TENON_RUNTIME_PLAN_CACHE_H

#include "runtime/plan_record.h"

/** Key and numbering of a request's graph. Raises through the arena, as do all functions below. */
plan_cache_graph plan_cache_graph_of(arena *a, const executable_request *r);

/** Loads an executable with all its kernels from disk; false if the plan or a kernel is missing. */
bool plan_cache_find(executable *p, const executable_request *r, const plan_cache_graph *g);

/** Stores an executable; a failure to write is ignored. */
void plan_cache_store(const executable *p, const executable_request *r, const plan_cache_graph *g);

/** Raises TN_ERR_INTERNAL if plan_cache_find would reject the executable's own record. */
void plan_cache_check_round_trip(const executable *p, const executable_request *r, arena *a);

#endif
