/* A graph that is about to run, and what else holds or reads its nodes. */
#ifndef TENON_TENSOR_USAGE_H
#define TENON_TENSOR_USAGE_H

#include "base/map.h"
#include "ir/topo.h"
#include "tensor/context.h"

/** All is in the context's arena; what is filled in raises. */
typedef struct usage {
  tn_context *c;
  node_list order; /* the graph, sources first */
  map place;       /* node → its place in `order` + 1 */
  bool *open;      /* of each node: it depends on inputs or variables of plans, or on the steps of a
                      loop that it is outside of */
  uint32_t *held;  /* of each node: references that are known */
  map gone;        /* node outside of the graph → references to it that go with the run */
  bool *needed;    /* of each node: something reads it after the run */
  bool has_custom;
} usage;

void usage_list(usage *u, const node *const roots[], size_t n);
size_t usage_place(const usage *u, const node *n);

/** Fills in `open`; returns whether there is any. */
bool usage_find_open(usage *u);

/** Counts the references that the graph itself holds; then one that its owner knows of. Nodes
    outside of the graph, and NULL, do not count. */
void usage_count(usage *u);
void usage_hold(usage *u, const node *n);

/** Counts a reference that goes with the run, of any node: what nobody else holds takes its own
    references along. */
void usage_let_go(usage *u, const node *n);

/** Whether more references are held than are known. */
bool usage_is_held_outside(const usage *u, const node *n);

/** Fills in `needed`: what a node that is needed reads is needed too, also where its value is kept:
    a plan may compute it anew. */
void usage_find_needed(usage *u);

/** Whether a BUFFER holds a state's contents that nothing reads after the run. In place a failure
    in the middle could not be undone; without host functions there is none. */
bool usage_may_overwrite(const usage *u, const node *buffer);

#endif
