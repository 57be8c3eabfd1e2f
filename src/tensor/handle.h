/* Handles: what tn_tensor * points to. A handle is a value (a node), or a state or a movement of
   one (a cell, and a node over the cell's base), or invalid (a failure). */
#ifndef TENON_TENSOR_HANDLE_H
#define TENON_TENSOR_HANDLE_H

#include "tensor/context.h"

typedef enum handle_life { HANDLE_LIVE = 0x6c697665, HANDLE_FREED = 0x64656164 } handle_life;

struct tn_tensor {
  handle_life life;
  tn_context *context;
  scope *scope; /* NULL: owned */
  size_t count; /* owners, if owned */
  tn_tensor *next, **link;
  scope *leaving; /* the scope that realises it when it ends */
  tn_tensor *next_leaving, **link_leaving;
  const node *node;
  cell *cell;
  weakness weak;
  failure *failure;
  const node *shown; /* what tn_map showed of a weak scalar or a movement of a state */
};

/** A new, invalid handle in the innermost scope; fills in one of the fields below. Without memory
    it is the context's `nobody`, which is to be left alone. */
tn_tensor *handle_new(tn_context *c);

/** What it is. Retains what it is given. */
void handle_set_value(tn_tensor *t, value v);
void handle_set_cell(tn_tensor *t, cell *of, const node *over_base);
void handle_set_failure(tn_tensor *t, failure *f);

/** Frees a handle, whoever it belongs to. */
void handle_free(tn_tensor *t);

/** TN_OK for a tensor of this context that can be worked with. Else the failure is told, with the
    name of the operation. */
tn_status handle_check(tn_context *c, tn_tensor *t, const char *op);

/** Frees the memory of handles that were freed before. */
void handle_forget(tn_context *c);

/** The node to be read now: of a state its newest version. Raises. */
const node *handle_node(builder *b, const tn_tensor *t);

/** As handle_node, of a weak scalar in its own type: f32 or i64. */
const node *handle_typed(builder *b, const tn_tensor *t);

dtype handle_dtype(const tn_tensor *t);

/** Appends "f32[2,3]" at text[n] of `size` bytes; returns the new length. */
size_t handle_describe(const tn_tensor *t, char *text, size_t n, size_t size);

#endif
