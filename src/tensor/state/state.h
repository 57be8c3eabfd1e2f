/* States: tensors that are assigned in place, and whose contents have versions. An assign appends a
   version; evaluation commits one to the storage, or reverts it after a failure. Each scope marks
   the version before its first assign, so that its assigns can be compiled into a plan or reverted
   on their own. */
#ifndef TENON_TENSOR_STATE_STATE_H
#define TENON_TENSOR_STATE_STATE_H

#include "tensor/state/graph_input.h"
#include "tensor/state/state_record.h"

/** Opens a state that starts as `init`, with one reference. Failures are set in the context's diag.
 */
tn_status state_open(tn_context *c, const node *init, state_record **out);
state_record *state_retain(state_record *k);
void state_release(state_record *k); /* NULL is allowed */

/** The node over the newest version that corresponds to a node over the state's view base. Its
    contents are read later, so the storage becomes copy-on-write. Raises. */
const node *state_current_node(builder *b, state_record *k, const node *over_base);

/** Appends a version in which the view `over_base` shows `value`, of the view's type and shape.
    Raises. */
void state_append_version(builder *b, state_record *k, const node *over_base, const node *value);

/** Makes `committed` the contents of the storage, which a concurrent run may have replaced. Raises;
    also the failure of a state whose first contents could not be computed. */
void state_refresh(builder *b, state_record *k);

/** Makes `buffer`, a BUFFER with memory, the committed version. The state's turn is taken. Cannot
    fail. */
void state_commit(state_record *k, const node *buffer);

/** Fails a state whose first contents could not be computed, by the failure in the context's diag,
    which is reported: readers of the state fail from now on, and its pending assigns are dropped.
 */
void state_fail(state_record *k);

/** The mark of the innermost scope, if that has pending assigns; else NULL. */
state_scope_mark *state_innermost_mark(const state_record *k);

/** Drops all pending assigns; those of the innermost scope, which has some; or those of the scopes
    outside of it, which raises. */
void state_revert(state_record *k);
void state_revert_innermost(state_record *k);
void state_revert_outer(builder *b, state_record *k);

/** Drops the marks of versions that have run, and takes a state without pending assigns out of the
    list of pending states. */
void state_update_pending(state_record *k);

/** Drops the pending assigns of states that no handle and no plan refers to. */
void state_drop_unobserved(tn_context *c);

/** Releases all pending states when the context closes. */
void state_release_pending(tn_context *c);

/** Ends copy-on-write of states whose contents nothing reads any more. */
void state_end_copy_on_write(tn_context *c);

/** The storage in whose turns the memory of a graph input is read; NULL: it is read at any time. */
state_storage *graph_input_storage(const graph_input *l);

#endif
