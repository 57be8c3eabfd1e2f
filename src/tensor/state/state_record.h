/* The record of a state. Its versions are a chain of SET nodes over `committed`, the version that
   its storage holds; `newest` is the end of the chain. Plans share the storage alone. */
#ifndef TENON_TENSOR_STATE_STATE_RECORD_H
#define TENON_TENSOR_STATE_STATE_RECORD_H

#include "tensor/context/context.h"
#include "tensor/state/state_storage.h"

/** Where the pending assigns of a scope begin. */
typedef struct state_scope_mark {
  scope *scope;
  const node *before; /* the version before the scope's first assign */
} state_scope_mark;

/** The versions of a state. */
typedef struct state_versions {
  const node *view_base; /* movements are built over it: read through state_current_node */
  const node *committed; /* a BUFFER, whose graph input names the state */
  const node *newest;
  const node *init; /* contents of `committed` while it has no memory; else NULL */
} state_versions;

/** Marks of the scopes with pending assigns, outer ones first. */
typedef struct state_scope_marks {
  state_scope_mark *at;
  size_t n, cap;
} state_scope_marks;

/** Membership in the context's list of states that are copy-on-write. */
typedef struct state_copy_on_write {
  bool is_listed;
  state_record *next, **link; /* linked_list.h */
} state_copy_on_write;

struct state_record {
  size_t count; /* references of handles, and of the list of pending states */
  tn_context *context;
  state_storage *storage;
  state_versions versions;
  state_scope_marks marks;
  size_t n_former_inputs; /* graph inputs that were its contents */
  bool has_host_call; /* a pending assign of a host function, which runs even if nothing reads it */
  bool is_pending;    /* in the list of pending states */
  state_record *next_pending, **link_pending;
  state_copy_on_write copy_on_write;
};

#endif
