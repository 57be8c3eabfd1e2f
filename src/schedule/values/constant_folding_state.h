/* Internal header of constant folding and weight prepacking: the state and functions that both
   share. They replace nodes of the graph by new constants (BUFFERs, the graph's inputs), which are
   computed once. */
#ifndef TENON_SCHEDULE_VALUES_CONSTANT_FOLDING_STATE_H
#define TENON_SCHEDULE_VALUES_CONSTANT_FOLDING_STATE_H

#include "base/map.h"
#include "schedule/values/constant_folding.h"

typedef struct constant_folding {
  ir *g;
  arena *a;
  const constant_folding_request *request;
  constants out;
  map number;    /* a BUFFER of a constant that was added → its position in out.at, + 1 */
  map stand_in;  /* a node → its replacement at the next constant_folding_apply */
  map kept;      /* constant values that are stored whatever they take */
  map reads;     /* a node → how often its elements are computed */
  double budget; /* bytes by which constants may yet exceed what they are computed from */
  int64_t uids;  /* the uid of the next new BUFFER */
} constant_folding;

/** Adds a constant of this value, and returns the BUFFER that stands for it. */
const node *constant_folding_add_constant(constant_folding *f, const node *value);

/** Replaces nodes of the roots by their stand-ins, of which there are none then. */
void constant_folding_apply(constant_folding *f);

/** True if a node is a BUFFER whose contents never change. */
bool constant_folding_is_given(const constant_folding *f, const node *n);

/** The nodes of a list in topological order that are computed from constants alone. */
map constant_folding_known(constant_folding *f, const node_list *order);

/** True if a node is computed from constants alone. */
bool constant_folding_is_known(constant_folding *f, const node *n);

/** True if a node computes from elements of its operands, and is no movement of them. */
bool constant_folding_reads_elements(const node *n);

#endif
