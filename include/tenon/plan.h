/* Plans: expressions compiled once and run many times, with new inputs, from any number of threads.
   What is shared (a plan, a model) is immutable; a binding holds one caller's inputs, outputs,
   scratch memory and message. */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_plan tn_plan;
typedef struct tn_binding tn_binding;

/** A place for a value that each run brings: its type is known now, and sizes may be variables. It
    can be compiled into a plan, not read. The name is copied; within one plan, each input has
    another. */
TN_API tn_tensor *tn_input(tn_context *context, const char *name, tn_shape shape, tn_dtype dtype);

/** Names of a plan and its outputs. Strings are copied. */
typedef struct tn_plan_desc {
  size_t size;                /**< sizeof(tn_plan_desc) */
  const char *name;           /**< in messages and profiles; NULL: "plan" */
  const char *const *outputs; /**< one name an output, each another; NULL: "0", "1", … */
} tn_plan_desc;

#define TN_PLAN_DESC_INIT \
  { sizeof(tn_plan_desc), NULL, NULL }

/** Compiles `n` outputs, along with the assigns still pending of the innermost scope: these then
    happen in the plan's runs only, after all of a run's readers of the old value. What is built of
    states a run computes of what they hold when it begins; but what held a value already when
    something was built of it (after tn_read or tn_realize, say; a version of a state that has been
    assigned to since) is that value in all runs. Those pending of
    outer scopes happen now, but for those that depend on inputs or sizes of plans; the failure of
    one is returned, once. A function called meanwhile that begins and ends a scope of its own runs,
    as it ends it, what can be run of the assigns pending outside: these are not in the plan. The
    tensors' own handles stay as they are. desc NULL: INIT. The plan belongs to the context until it
    is freed. On failure *plan is NULL, and the scope's assigns stay pending. TN_ERR_ARGUMENT where
    there is neither an output nor an assign, where two inputs, or two outputs, have one name, or
    where a size is not told by the shape of an input that is read. */
TN_API tn_status tn_plan_compile(tn_context *context, tn_tensor *const out[], size_t n,
                                 const tn_plan_desc *desc, tn_plan **plan);

/** Frees a plan; its bindings go on working. NULL is allowed. */
TN_API void tn_plan_free(tn_plan *plan);

typedef enum tn_port_kind {
  TN_PORT_INPUT = 0,
  TN_PORT_OUTPUT = 1,
  TN_PORT_KIND_MAX_ENUM = 0x7fffffff
} tn_port_kind;

/** An input or output of a plan or a model. */
typedef struct tn_port {
  size_t size; /**< sizeof(tn_port), set by the caller */
  const char *name;
  tn_type type;                   /**< a size that varies is -1; an unknown rank is -1 */
  const char *sizes[TN_MAX_RANK]; /**< each size in words: "224", "batch", "2*batch+1", "x:0"
                                     for one without a name; "…" is what is not said so shortly;
                                     NULL past the rank */
  int64_t min[TN_MAX_RANK], max[TN_MAX_RANK]; /**< bounds of each size; equal for a number */
  int32_t variable[TN_MAX_RANK]; /**< number of a size that varies: sizes of the same number are
                                    equal in every run, of all ports; -1: a number */
} tn_port;

#define TN_PORT_INIT                                                         \
  {                                                                          \
    sizeof(tn_port), NULL, {TN_UNDEFINED, {0, {0}}}, {NULL}, {0}, {0}, { 0 } \
  }

/** Describes the `i`-th input or output of a plan, from any thread: outputs in the order of
    tn_plan_compile, inputs in an order that stays with the plan. Strings live as long as the plan
    and its bindings. Past the last, and where `port` is NULL or does not begin with TN_PORT_INIT:
    TN_ERR_ARGUMENT, which leaves *port and the message alone, so that a loop ends there. */
TN_API tn_status tn_plan_port(const tn_plan *plan, tn_port_kind kind, size_t i, tn_port *port);

/** A new binding of a plan, from any thread; its first run allocates its memory. On failure
 *binding is NULL and the message is the context's. */
TN_API tn_status tn_plan_bind(tn_plan *plan, tn_binding **binding);

/* A binding of a plan or a model is used by one thread at a time. It keeps its first failure for
   tn_binding_run, so that the calls before need no check. Inputs and outputs are named as in
   tn_input and tn_plan_desc, or as in the model; TN_ERR_ARGUMENT where there is none of a name.
   `dtype` is the type of the host's elements; where it is not the port's own, runs convert as
   tn_cast does. */

/** Gives an input its value, of this shape: `bytes` is the exact size. A size that varies is read
    off here; one that does not fit is TN_ERR_SHAPE. The memory is borrowed, and read by every run,
    until another takes its place or the binding is freed; it may change between runs. It may lie at
    any address; runs copy what is not aligned to its elements. On failure the input has no value
    any more. */
TN_API tn_status tn_binding_input(tn_binding *binding, const char *name, tn_shape shape,
                                  tn_dtype dtype, const void *data, size_t bytes);

/** Has every run write an output to this memory, from its start; it is borrowed until another takes
    its place, or NULL does, or the binding is freed. It may lie at any address, and may be an
    input's, which a run has read to the end before it writes an output. A run whose output needs
    more than `bytes` is TN_ERR_SHAPE, before it writes anything. */
TN_API tn_status tn_binding_output(tn_binding *binding, const char *name, tn_dtype dtype,
                                   void *data, size_t bytes);

/** Makes what a run puts out the next run's input, without a copy where that can be: a cache of
    keys and values, a hidden state. The first run's comes from tn_binding_input, whose memory is
    not read again; giving it anew starts over. Types are equal, and shapes fit, else TN_ERR_DTYPE
    and TN_ERR_SHAPE. */
TN_API tn_status tn_binding_carry(tn_binding *binding, const char *output, const char *input);

/** Describes the `i`-th input or output of the plan or model that a binding was made of, with the
    numbers that tn_plan_port or tn_model_port gives them; otherwise as tn_plan_port. */
TN_API tn_status tn_binding_port(const tn_binding *binding, tn_port_kind kind, size_t i,
                                 tn_port *port);

/** The number of the input or output of a name, from any thread; -1 where there is none. */
TN_API int64_t tn_binding_find(const tn_binding *binding, tn_port_kind kind, const char *name);

/* The functions of inputs and outputs by number instead of name, for programs that give new memory
   in each run: they compare no names. TN_ERR_ARGUMENT past the last. */

/** As tn_binding_input. */
TN_API tn_status tn_binding_input_at(tn_binding *binding, size_t input, tn_shape shape,
                                     tn_dtype dtype, const void *data, size_t bytes);

/** As tn_binding_output. */
TN_API tn_status tn_binding_output_at(tn_binding *binding, size_t output, tn_dtype dtype,
                                      void *data, size_t bytes);

/** As tn_binding_carry. */
TN_API tn_status tn_binding_carry_at(tn_binding *binding, size_t output, size_t input);

/** As tn_binding_type. */
TN_API tn_type tn_binding_type_at(const tn_binding *binding, size_t output);

/** As tn_binding_read. */
TN_API tn_status tn_binding_read_at(tn_binding *binding, size_t output, tn_dtype dtype, void *data,
                                    size_t bytes);

/** Runs, and returns when outputs and assigns are done. A failure kept since the last run is
    returned instead, once. TN_ERR_ARGUMENT names the inputs that have no value. Runs of different
    bindings go on at once, except that those which touch one state take turns.

    Where assigns to the plan's states are pending in the context, all that are pending in it happen
    first, whichever thread made them and whichever one runs; where one of them fails, that is
    returned, once, and the run does not happen. For this a run waits for the call that is in the
   context, and calls on the context wait for it. So assigns that are to be part of a plan are made
   and compiled while no other thread runs what touches their states. TN_ERR_BUSY from inside a
   callback of the context; in the function of a custom operation only where the plan has states or
   such functions, as it could wait for itself. */
TN_API tn_status tn_binding_run(tn_binding *binding);

/** The type an output had in the last run, all sizes numbers; TN_UNDEFINED before one, after one
    that failed, and where there is no such output. */
TN_API tn_type tn_binding_type(const tn_binding *binding, const char *output);

/** Copies out what the last run gave an output, converted to `dtype` as by tn_cast. `bytes` is the
    exact size, else TN_ERR_ARGUMENT; where the last run failed, or none was, TN_ERR_ARGUMENT. On
    failure `data` is untouched. */
TN_API tn_status tn_binding_read(tn_binding *binding, const char *output, tn_dtype dtype,
                                 void *data, size_t bytes);

/** The last failure's message; "" before any. Valid until the next one. Never NULL: for a NULL
    binding it says that there is none. */
TN_API const char *tn_binding_message(const tn_binding *binding);

/** Frees a binding that does not run, or waits for one that was started (tn_binding_start of
    <tenon/unstable/queue.h>). NULL is allowed. */
TN_API void tn_binding_free(tn_binding *binding);

#ifdef __cplusplus
}
#endif
#endif
