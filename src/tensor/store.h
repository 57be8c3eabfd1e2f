/* Stores: the storages of states, as plans and the context share them.

   Runs that touch a store take turns by its timeline, whoever starts them. A run beside the context
   writes the memory in place unless the store is lent, that is, nodes of the context read these
   contents later: then it goes on in a copy. */
#ifndef TENON_TENSOR_STORE_H
#define TENON_TENSOR_STORE_H

#include "device/buffer.h"
#include "tensor/context.h"

typedef struct store {
  atomic_size_t count;
  tn_context *context;
  uint64_t bytes;
  tn_signal *timeline; /* the number of turns that are over */
  atomic_bool pending; /* the context has assigns to it that did not happen yet */
  /* Under the context's lock: */
  uint64_t turns;    /* taken so far */
  tn_buffer *memory; /* the contents; NULL until there are any. Changed by who has the turn */
  bool lent;
} store;

/** A store without contents, held once. Failures are set in the context's diag. */
tn_status store_open(tn_context *c, uint64_t bytes, store **out);
store *store_retain(store *s);
void store_release(store *s); /* NULL is allowed */

/** Whether the contents are in this memory; also where there are none yet. */
bool store_is_in(store *s, const tn_buffer *memory);

/** The memory of the contents, held, if that is not `known`; else NULL. */
tn_buffer *store_changed(store *s, const tn_buffer *known);

void store_lend(store *s, bool lent);

/** New contents, by who has the turn. `memory` is the store's from here on. Returns the old memory,
    which is then the caller's to use; NULL where there was none or nodes of the context still read
    it: that loan has ended. */
tn_buffer *store_replace(store *s, tn_buffer *memory);

/** Turns. Each store is there once. They are taken together, waited for, and ended, failure or not.
 */
typedef struct turn {
  store *store;
  uint64_t number; /* comes when the timeline is there */
  bool is_lent;    /* the store, when all turns had come */
} turn;
void turns_take(tn_context *c, turn turns[], size_t n);
tn_status turns_wait(turn turns[], size_t n, diag *d);
void turns_end(const turn turns[], size_t n);

/** Waits for the turns that are taken so far. */
tn_status store_wait(tn_context *c, store *s, diag *d);

#endif
