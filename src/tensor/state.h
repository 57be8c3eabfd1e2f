/* States: storages whose contents have versions.

   The context knows a state as a cell: `settled` is the version that is in the storage, `now` the
   newest one, a chain of SETs over it. What plans share of it is a store. */
#ifndef TENON_TENSOR_STATE_H
#define TENON_TENSOR_STATE_H

#include "tensor/handle.h"
#include "tensor/store.h"

/** The first assign that is pending of a scope came after `before`. */
typedef struct cell_mark {
  scope *scope;
  const node *before;
} cell_mark;

struct cell {
  size_t count; /* handles, and the list of pending ones */
  tn_context *context;
  store *store;
  const node *base;    /* what movements are built over: read through cell_now */
  const node *settled; /* a BUFFER, whose leaf names the cell */
  const node *now;
  const node *init; /* contents of `settled` while it has no memory; else NULL */
  cell_mark *marks; /* of scopes with assigns that are pending, outer ones first */
  size_t n_marks, cap_marks;
  size_t n_former; /* leaves that were its contents */
  bool is_pending, is_lent;
  bool is_called; /* by a pending assign, a host function's, which runs though nobody sees it */
  cell *next_pending, **link_pending;
  cell *next_lent, **link_lent;
};

/** A cell that starts as `init`, held once. Failures are set in the context's diag. */
tn_status cell_open(tn_context *c, const node *init, cell **out);
cell *cell_hold(cell *k);
void cell_drop(cell *k); /* NULL is allowed */

/** What a node over the cell's base is now, as something that is read later. Raises. */
const node *cell_now(builder *b, cell *k, const node *over_base);

/** Replaces, from now on, what `over_base` shows of a cell by `value`, which fits. Raises. */
void cell_assign(builder *b, cell *k, const node *over_base, const node *value);

/** Raises TN_ERR_ARGUMENT if a tensor cannot be assigned to. */
void state_check_assignable(builder *b, const tn_tensor *dst);

/** tn_assign, of a node that may have another type and a shape that broadcasts. Raises. */
void state_assign(builder *b, const tn_tensor *dst, const node *value);

/** Sees to it that `settled` is what the store holds: a run beside the context may have changed it.
    Raises; also the failure of a state whose first contents could not be computed. */
void cell_refresh(builder *b, cell *k);

/** Notes the new contents of a cell, in `buffer` (a BUFFER with memory, as `settled` from now on).
    The cell's turn is taken. Cannot fail. */
void cell_settle(cell *k, const node *buffer);

/** The first contents could not be computed, for the reason in the context's diag. It is told; what
    reads the state fails from now on, and what was assigned to it is forgotten. */
void cell_fail(cell *k);

/** The mark of the innermost scope, if that has assigns pending; else NULL. */
cell_mark *cell_innermost(const cell *k);

/** Forgets the assigns that are pending; those of the innermost scope, which has any; or those of
    the scopes outside of it: this one raises. */
void cell_revert(cell *k);
void cell_revert_innermost(cell *k);
void cell_revert_outer(builder *b, cell *k);

/** What was run is not pending any more: takes a cell without any out of the list of those with. */
void cell_check_pending(cell *k);

/** Forgets the pending assigns of cells that no handle and no plan knows any more. */
void cell_drop_unseen(tn_context *c);

/** Lets go of all pending cells when the context closes. */
void cell_forget_pending(tn_context *c);

/** Ends the loan of cells whose contents nothing reads any more. */
void cell_end_loans(tn_context *c);

#endif
