/* The functions of the host behind custom operations, as steps of an executable. */
#ifndef TENON_TENSOR_CUSTOM_HOST_H
#define TENON_TENSOR_CUSTOM_HOST_H

#include "ir/topo.h"
#include "runtime/executable.h"
#include "tensor/context.h"

/** The most arrays of a function, and what places of arrays in a row of bytes are multiples of. */
enum { CUSTOM_MOST_INPUTS = 64, CUSTOM_MOST_OUTPUTS = 128, CUSTOM_ALIGN = 8 };

/** An array that a call gets: its type, with sizes that vary by their places among those. */
typedef struct shape_form {
  dtype dtype;
  size_t rank;
  int64_t size[TN_MAX_RANK];
  bool varies[TN_MAX_RANK]; /* size[i] is a place */
} shape_form;

/** A caller's function, counted: by its leaf and by plans. */
typedef struct custom_host {
  atomic_size_t count;
  tn_context *context;
  char *name;
  tn_status (*run)(void *user, tn_call *call);
  void (*destroy)(void *user);
  void *user;
  mutex lock; /* one call at a time */
  size_t n_in, n_out, n_varying;
  size_t n_told; /* outputs that the caller knows */
  uint64_t writes;
  size_t written[CUSTOM_MOST_INPUTS]; /* the output that a written input becomes */
  shape_form *forms;                  /* inputs, then outputs, those of written inputs last */
} custom_host;

/** The function of a descriptor with `n_told` outputs that the caller knows, of `n_out`; arrays are
    to be filled in. It owns the payload from here on. Failures are set in the context's diag. */
tn_status custom_host_open(tn_context *c, const tn_custom_desc *desc, size_t n_in, size_t n_told,
                           size_t n_out, custom_host **out);

custom_host *custom_hold(custom_host *h);
void custom_drop(custom_host *h); /* NULL is allowed */

/** The host functions behind the CUSTOM nodes of a graph, as an executable asks for them: by the
    nodes' numbers, or where it was made of another graph by those that they had there, `uids` in
    `order`'s order; NULL: their own. Absent if there are none. Failures are set in the context's
    diag. */
tn_status custom_host_of(tn_context *c, const node_list *order, const int64_t uids[],
                         executable_host *out);

#endif
