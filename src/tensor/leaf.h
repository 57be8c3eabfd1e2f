/* Leaves: what BUFFER and CUSTOM nodes stand for. A node names its leaf by number (uid), with the
   number of times it was taken (version). A leaf goes with its nodes. */
#ifndef TENON_TENSOR_LEAF_H
#define TENON_TENSOR_LEAF_H

#include "device/buffer.h"
#include "tensor/context.h"

typedef enum leaf_kind {
  LEAF_FREE,
  LEAF_DATA,  /* contents: in memory, or still to be computed (a state's first) */
  LEAF_BASE,  /* what movements of a state are built over */
  LEAF_INPUT, /* a value that a plan's run brings */
  LEAF_CUSTOM /* a host function */
} leaf_kind;

struct leaf {
  leaf_kind kind;
  int64_t version;
  tn_buffer *memory;          /* DATA */
  cell *cell;                 /* DATA: the state whose newest contents these are */
  cell *was;                  /* DATA: the state whose newest contents these were until a run beside
                                 the context left others; a plan reads those */
  struct store *left;         /* DATA: of a state that is gone and held these, runs of which may be
                                 changing them; NULL: none may */
  failure *failure;           /* DATA: why there are no contents; else NULL */
  char *name;                 /* INPUT */
  struct custom_host *custom; /* CUSTOM */
  size_t nodes;               /* CUSTOM: how many there are */
  size_t next_free;
};

/** The leaf of a BUFFER or CUSTOM node. Valid until another is opened. */
leaf *leaf_of(tn_context *c, const node *n);

/** A BUFFER node over a new leaf, held once for the caller; and one that is also filled in. Under
    no catch: failures are set in the context's diag. */
tn_status leaf_open(tn_context *c, leaf_kind kind, dtype t, size_t rank, const node *const dims[],
                    const node **out);

/** A number for CUSTOM nodes, of which there are none yet; and the number given back, if there are
    none still. */
tn_status leaf_open_custom(tn_context *c, struct custom_host *host, int64_t *uid);
void leaf_close_custom(tn_context *c, int64_t uid);

/** Gives a leaf its memory, which is retained. */
void leaf_set_memory(tn_context *c, const node *n, tn_buffer *memory);

/** The store in whose turns a leaf's memory is read; NULL: at any time. */
struct store *leaf_store(const leaf *l);

/** The BUFFER that holds a node's value; NULL if there is none. */
const node *leaf_realised(tn_context *c, const node *n);

/** Notes that a node's value is in a BUFFER, for as long as the node lives; and forgets it. Raises
    when there is no memory. */
void leaf_realise(tn_context *c, const node *n, const node *buffer);
void leaf_unrealise(tn_context *c, const node *n);

/** What the context's ir is watched by: a CUSTOM's leaf is held by its nodes. */
ir_watcher leaf_watcher(tn_context *c);

/** Frees all that leaves hold; called when no node is used any more. */
void leaf_free_all(tn_context *c);

#endif
