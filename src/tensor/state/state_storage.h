/* Storages of states, which plans and the context share.

   Runs that touch a storage take turns by its timeline, whoever starts them. A concurrent run
   writes the memory in place unless the storage is copy-on-write, that is, nodes of the context
   read the contents later: then the run continues in a copy. */
#ifndef TENON_TENSOR_STATE_STATE_STORAGE_H
#define TENON_TENSOR_STATE_STATE_STORAGE_H

#include "device/memory/buffer.h"
#include "tensor/context/context.h"

typedef struct state_storage {
  atomic_size_t count; /* references */
  tn_context *context;
  uint64_t bytes;          /* of the contents */
  tn_signal *timeline;     /* number of turns that are over */
  atomic_bool has_pending; /* the context has assigns that did not run yet */
  /* Under the context's lock: */
  uint64_t n_turns;      /* taken so far */
  tn_buffer *memory;     /* contents; NULL: none yet. Changed by the holder of the turn */
  bool is_copy_on_write; /* nodes of the context read the contents later */
} state_storage;

/** Opens a storage without contents, with one reference. Failures are set in the context's diag. */
tn_status state_storage_open(tn_context *c, uint64_t bytes, state_storage **out);
state_storage *state_storage_retain(state_storage *s);
void state_storage_release(state_storage *s); /* NULL is allowed */

/** True if the contents are in this memory, or there are none yet. */
bool state_storage_is_in(state_storage *s, const tn_buffer *memory);

/** The memory of the contents, retained, if it is not `known`; else NULL. */
tn_buffer *state_storage_changed_memory(state_storage *s, const tn_buffer *known);

void state_storage_set_copy_on_write(state_storage *s, bool is_copy_on_write);

/** Sets new contents, by the holder of the turn, and takes the reference to `memory`. Ends
    copy-on-write. Returns the old memory, which passes to the caller; NULL if there was none or
    nodes of the context still read it. */
tn_buffer *state_storage_replace(state_storage *s, tn_buffer *memory);

/** A turn of a storage. A run takes the turns of all its storages together, each storage once,
    waits for them, and ends them whether it failed or not. */
typedef struct storage_turn {
  state_storage *storage;
  uint64_t number;       /* the turn comes when the timeline reaches it */
  bool is_copy_on_write; /* the storage was, when all turns had come */
} storage_turn;
void storage_turns_take(tn_context *c, storage_turn turns[], size_t n);
tn_status storage_turns_wait(storage_turn turns[], size_t n, diag *d);
void storage_turns_end(const storage_turn turns[], size_t n);

/** Waits until the turns taken so far are over. */
tn_status state_storage_wait(tn_context *c, state_storage *s, diag *d);

#endif
