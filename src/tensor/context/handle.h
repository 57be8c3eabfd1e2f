/* Handles: the objects behind tn_tensor *. A handle is a value (a node), a state or a movement of
   one (a state, and a node over the state's view base), or invalid (a failure). Scopes own handles
   through intrusive lists; handles that the caller owns (tn_own) are reference counted. */
#ifndef TENON_TENSOR_CONTEXT_HANDLE_H
#define TENON_TENSOR_CONTEXT_HANDLE_H

#include "tensor/context/context.h"

typedef enum handle_life { HANDLE_LIVE = 0x6c697665, HANDLE_FREED = 0x64656164 } handle_life;

/** A release that waits for the context, which was in use. */
typedef struct deferred_release {
  atomic_size_t n; /* owners to be dropped; not 0: the handle is in the context's list */
  tn_tensor *next; /* in that list */
} deferred_release;

/** Membership in the list of a scope. */
typedef struct handle_membership {
  scope *scope;            /* NULL: none */
  tn_tensor *next, **link; /* linked_list.h */
} handle_membership;

struct tn_tensor {
  handle_life life;
  tn_context *context;
  handle_membership member;   /* of the scope that owns it; without scope, of the owned handles */
  size_t count;               /* owners of an owned handle */
  handle_membership escaping; /* of the scope that realises it when that ends */
  const node *node;           /* NULL: invalid */
  state_record *state;        /* NULL: a value */
  weakness weak;
  failure *failure;   /* why it is invalid; else NULL */
  const node *mapped; /* BUFFER that tn_map showed of a weak scalar or a movement of a state */
  deferred_release deferred;
};

/** Puts a handle into a list (of a scope, or of owned handles); takes it out of its list. */
void handle_list_add(handle_list *l, tn_tensor *t);
void handle_list_remove(tn_tensor *t);

/** Has scope `s` realise the handle, which outlives it, when it ends; and cancels that. */
void handle_escape(scope *s, tn_tensor *t);
void handle_cancel_escape(tn_tensor *t);

/** A new, invalid handle in the innermost scope, to be given a value, a state or a failure. Without
    memory it is the context's handles.no_memory, which is to be left alone. */
tn_tensor *handle_new(tn_context *c);

/** Makes a new handle a value, or invalid. Retains the node or the failure. */
void handle_set_value(tn_tensor *t, value v);
void handle_set_failure(tn_tensor *t, failure *f);

/** Marks a handle as freed, and frees the memory of the handles that were freed longest ago. */
void handle_bury(tn_context *c, tn_tensor *t);

/** Frees the memory of all freed handles. */
void handle_free_dead(tn_context *c);

/** The element type; f32 or i64 of a weak scalar. */
dtype handle_dtype(const tn_tensor *t);

/** Appends the type, as "f32[2,3]", at text[n] of `size` bytes; returns the new length. */
size_t handle_describe(const tn_tensor *t, char *text, size_t n, size_t size);

#endif
