/* Functions of the host behind custom operations (tn_custom): their lifetime, the signature of
   their arrays, and a call of one as a step of an executable. */
#ifndef TENON_TENSOR_CONTEXT_HOST_FUNCTION_H
#define TENON_TENSOR_CONTEXT_HOST_FUNCTION_H

#include "runtime/executable.h"
#include "tensor/context/context.h"

/** Limits of the numbers of arrays; and the alignment, in bytes, of arrays in a row of bytes. */
enum { CUSTOM_MAX_INPUTS = 64, CUSTOM_MAX_OUTPUTS = 128, CUSTOM_ALIGN = 8 };

/** The type of an array of a call. */
typedef struct array_signature {
  dtype dtype;
  size_t rank;
  int64_t size[TN_MAX_RANK];
  bool varies[TN_MAX_RANK]; /* size[i] is the index of a varying size */
} array_signature;

/** A caller's function, counted by its graph input and by plans. */
typedef struct host_function {
  atomic_size_t count;
  tn_context *context;
  char *name;
  tn_status (*run)(void *user, tn_call *call);
  void (*destroy)(void *user);
  void *user;
  mutex lock; /* one call at a time */
  size_t n_in, n_out, n_varying;
  size_t n_public_out;               /* outputs that the caller knows */
  uint64_t writes;                   /* bit i: input i is written */
  size_t written[CUSTOM_MAX_INPUTS]; /* the output that a written input becomes */
  array_signature *signatures;       /* inputs, then outputs, those of written inputs last */
} host_function;

/** The function of a descriptor with `n_out` outputs, of which the caller knows `n_public_out`. Its
    signatures are to be filled in. It owns the payload from here on. Failures are set in the
    context's diag. */
tn_status host_function_open(tn_context *c, const tn_custom_desc *desc, size_t n_in,
                             size_t n_public_out, size_t n_out, host_function **out);

host_function *host_function_retain(host_function *h);
void host_function_release(host_function *h); /* NULL is allowed */

/** Calls the function as a step of an executable, one call at a time. */
tn_status host_function_call(host_function *h, const executable_call *c, tn_failure *failure);

#endif
