/* The record of a state. A state's versions are a chain of SET nodes over `committed`, the version
   that its storage holds; `newest` is the end of the chain. Plans share the storage alone. */
#ifndef TENON_TENSOR_STATE_STATE_RECORD_H
#define TENON_TENSOR_STATE_STATE_RECORD_H

#include "tensor/context/context.h"
#include "tensor/state/state_storage.h"

/** The version before the first pending assign of a scope. */
typedef struct state_scope_mark {
  scope *scope;
  const node *before;
} state_scope_mark;

/** The versions of a state. */
typedef struct state_versions {
  const node *view_base; /* movements are built over it: read through state_current_node */
  const node *committed; /* a BUFFER, whose graph input names the state */
  const node *newest;
  const node *init; /* contents of `committed` while it has no memory; else NULL */
} state_versions;

/** Scopes with pending assigns, outer ones first. */
typedef struct state_scope_marks {
  state_scope_mark *at;
  size_t n, cap;
} state_scope_marks;

struct state_record {
  size_t count; /* handles, and the list of pending states */
  tn_context *context;
  state_storage *storage;
  state_versions versions;
  state_scope_marks marks;
  size_t n_former_inputs; /* graph inputs that were its contents */
  bool is_pending, is_copy_on_write;
  bool has_host_call; /* a pending assign of a host function, which runs even if nobody sees it */
  state_record *next_pending, **link_pending;
  state_record *next_copy_on_write, **link_copy_on_write;
};

#endif
