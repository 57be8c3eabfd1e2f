/* Host functions behind custom operations (tn_custom): their lifetime, the signatures of their
   arrays, and a call of one as a step of an executable. */
#ifndef TENON_TENSOR_CONTEXT_HOST_FUNCTION_H
#define TENON_TENSOR_CONTEXT_HOST_FUNCTION_H

#include "runtime/executable.h"
#include "tensor/context/context.h"

/** Arrays at most; and the alignment, in bytes, of outputs of several types in one buffer. */
enum { CUSTOM_MAX_INPUTS = 64, CUSTOM_MAX_OUTPUTS = 128, CUSTOM_ALIGN = 8 };

/** The type of an array of a call. */
typedef struct array_signature {
  dtype dtype;
  size_t rank;
  int64_t size[TN_MAX_RANK]; /* elements along an axis, or the index of a varying size */
  bool varies[TN_MAX_RANK];  /* size[i] is the index of a varying size */
} array_signature;

/** The arrays of a host function's calls. */
typedef struct host_signature {
  size_t n_in, n_out;                /* inputs; outputs with those of written inputs */
  size_t n_public_out;               /* outputs that the caller sees */
  size_t n_varying;                  /* sizes that are inputs of their own, after the others */
  uint64_t writes;                   /* bit i: input i is written */
  size_t written[CUSTOM_MAX_INPUTS]; /* the output that a written input becomes */
  array_signature *arrays;           /* inputs, then outputs, those of written inputs last */
} host_signature;

/** A host function, counted by its graph input and by plans. */
typedef struct host_function {
  atomic_size_t count;
  tn_context *context;
  char *name;                                  /* in messages */
  tn_status (*run)(void *user, tn_call *call); /* the caller's function */
  void (*destroy)(void *user);                 /* of `user`; NULL: none */
  void *user;                                  /* payload of `run` */
  mutex lock;                                  /* held during a call: one at a time */
  const char *what;                            /* of executable_host_facts; not owned */
  bool takes_spans; /* its inputs, and its only output, as host_function_in_span tells */
  host_signature signature;
} host_function;

/** The function of a descriptor with `n_out` outputs, of which the caller sees `n_public_out`. The
    caller fills in the signatures of its arrays. It owns the payload from here on. Failures are set
    in the context's diag. */
tn_status host_function_open(tn_context *c, const tn_custom_desc *desc, size_t n_in,
                             size_t n_public_out, size_t n_out, host_function **out);

host_function *host_function_retain(host_function *h);
void host_function_release(host_function *h); /* NULL is allowed */

/** The memory of an input or of the only output of a function that takes spans, where the array's
    data is NULL: the host does not see it. */
const tn_span *host_function_in_span(const tn_call *call, size_t i);
const tn_span *host_function_out_span(const tn_call *call);

/** Calls the function as a step of an executable, one call at a time. */
tn_status host_function_call(host_function *h, const executable_call *c, tn_failure *failure);

#endif
