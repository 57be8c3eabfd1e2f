/* Plans: expressions compiled once and run many times, with new inputs, from any number of threads.
   A plan or model is immutable and shared; a binding holds one caller's inputs, outputs, scratch
   memory and message. */
#ifndef TENON_PLAN_H
#define TENON_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A compiled expression: immutable, and used by any number of threads. */
typedef struct tn_plan tn_plan;
/** One caller's inputs, outputs and memory for runs of a plan or a model. */
typedef struct tn_binding tn_binding;

/** Makes a placeholder for a value that each run provides; sizes may be variables. It can be
    compiled into a plan, but not read. The name is copied and unique among the inputs of a plan. */
TN_API tn_tensor *tn_input(tn_context *context, const char *name, tn_shape shape, tn_dtype dtype);

/** The variants that are compiled of a plan or a model whose inputs leave sizes open. A variant is
    exact, for one set of sizes, or leaves some of them open, and is slower; 8 exact variants and 4
    others are kept, the last used. Results of one variant are the same bits for any number of
    threads; between variants floats may be rounded differently ("Variants" in docs/library.md).
    Where no size is open there is one variant, compiled at once. */
typedef enum tn_variants {
  /** The first run compiles an exact variant. The first run with other sizes compiles one with the
      sizes open that differed, and waits for it. Sizes whose runs took as long on such a variant as
      compiling an exact one does get one in the background, for the runs to come. */
  TN_VARIANTS_AUTO = 0,
  TN_VARIANTS_STEADY = 1, /**< likewise, but nothing in the background: sizes keep their variant */
  TN_VARIANTS_EXACT = 2,  /**< an exact variant for all sizes */
  TN_VARIANTS_ONE = 3,    /**< one for all sizes, compiled with the plan */
  TN_VARIANTS_MAX_ENUM = 0x7fffffff
} tn_variants;

/** Options of a plan, and names of its outputs. Strings are copied. */
typedef struct tn_plan_desc {
  size_t size;                /**< sizeof(tn_plan_desc) */
  const char *name;           /**< name in messages and profiles; NULL: "plan" */
  const char *const *outputs; /**< one distinct name per output; NULL: "0", "1", … */
  tn_variants variants;       /**< of what is compiled */
  bool tunable;               /**< keep the graph, so that tn_tune can tune bindings of the plan */
  /** tensors of which the outputs are computed, whose places in memory tn_binding_slot of
      <tenon/unstable/schedule.h> tells; the plan is compiled alike with and without them */
  tn_tensor *const *watched;
  size_t n_watched;
} tn_plan_desc;

#define TN_PLAN_DESC_INIT \
  { sizeof(tn_plan_desc), NULL, NULL, TN_VARIANTS_AUTO, false, NULL, 0 }

/** Makes a plan of `n` outputs and the pending assignments of the innermost scope, which then
   happen in each run of the plan, and only there; "Plans" in docs/library.md states what is fixed
   at compile time, what each run reads anew, and what becomes of the assignments of outer scopes.
   The tensors' handles stay valid. `desc` NULL: INIT. The plan belongs to the context until it is
    freed. On failure *plan is NULL and the scope's assignments stay pending: TN_ERR_ARGUMENT where
    there is neither an output nor an assignment, two inputs or two outputs have the same name, or a
    size cannot be determined from the shapes of the inputs that are read; or the failure of an
    outer scope's assignment, once. Where sizes are open, runs compile (tn_variants). */
TN_API tn_status tn_plan_compile(tn_context *context, tn_tensor *const out[], size_t n,
                                 const tn_plan_desc *desc, tn_plan **plan);

/** Frees a plan; its bindings stay valid. NULL is allowed. */
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
  tn_type type; /**< sizes that vary are -1; an unknown rank is -1 */
  /** each size as text: "224", "batch", "2*batch+1", "x:0" for one without a name, "?" for one that
      a run computes, "…" for a longer expression, as of a size that a branch decides; NULL past the
      rank */
  const char *sizes[TN_MAX_RANK];
  int64_t min[TN_MAX_RANK],
      max[TN_MAX_RANK]; /**< bounds of each size, inclusive; equal for a number. Of inputs, those
                           that were given and those that operators need, as of a window's size; of
                           a model that fits some sizes alone (tn_model_exact_sizes) the former */
  int32_t variable[TN_MAX_RANK]; /**< -1 for a number, else the number of its variable: sizes with
                                    the same one are equal in every run, across all ports */
  bool is_deciding; /**< elements of this input of a model decide on shapes or branches: the model
                       is compiled for the first value and for the second, then once for all others,
                       or for each of them if a node that reads the input needs constants */
  bool is_string;   /**< of a model: elements, of i64, are numbers of strings (tn_model_string) */
  /** of inputs: for each size a number within its bounds, at least 1 if they allow it; of a model
      that fits some sizes alone (tn_model_exact_sizes), numbers for which it was found to fit, if
      loading found any */
  int64_t example[TN_MAX_RANK];
} tn_port;

#define TN_PORT_INIT                                                                            \
  {                                                                                             \
    sizeof(tn_port), NULL, {TN_UNDEFINED, {0, {0}}}, {NULL}, {0}, {0}, {0}, false, false, { 0 } \
  }

/** Describes the `i`-th input or output of a plan: outputs in the order of tn_plan_compile, inputs
    in a fixed order of the plan's own; an input that nothing reads is none. Strings live as long as
    the plan and its bindings. Any thread. TN_ERR_ARGUMENT past the last, and where `port` is NULL
   or does not begin with TN_PORT_INIT; *port and the message are then unchanged, so that a loop can
   end there. */
TN_API tn_status tn_plan_port(const tn_plan *plan, tn_port_kind kind, size_t i, tn_port *port);

/** Makes a binding of a plan, whose first run allocates its memory. Any thread. On failure *binding
    is NULL and the message is the context's. */
TN_API tn_status tn_plan_bind(tn_plan *plan, tn_binding **binding);

/* A binding is used by one thread at a time. Its first failure is kept and returned by the next
   tn_binding_run, so that the calls before it need no checks. Inputs and outputs have the names of
   tn_input and tn_plan_desc, or those in the model; TN_ERR_ARGUMENT for an unknown name. `dtype` is
   the element type in host memory; where it is not the port's own, runs convert as tn_cast does. */

/** Sets an input's value: an array of this shape and of exactly `bytes` bytes. Variable sizes take
    their values from it; TN_ERR_SHAPE where one does not fit. The memory is borrowed and read by
    every run, until it is replaced or the binding is freed; its contents may change between runs.
    The memory may be unaligned: a run copies an array whose address is not a multiple of its
    element's size. On failure the input has no value. */
TN_API tn_status tn_binding_input(tn_binding *binding, const char *name, tn_shape shape,
                                  tn_dtype dtype, const void *data, size_t bytes);

/** Sets the memory to which every run writes an output; it is borrowed until it is replaced, reset
    by NULL, or the binding is freed. It may have any address, and may be an input's memory, as runs
    read all inputs before they write outputs. A run whose output needs more than `bytes` bytes is
    TN_ERR_SHAPE and writes nothing; where the run computes that output's size, it has written the
    other outputs. Once an input whose elements decide on shapes (tn_port.is_deciding) has had three
    values, runs may compute sizes of outputs that were known before earlier runs. */
TN_API tn_status tn_binding_output(tn_binding *binding, const char *name, tn_dtype dtype,
                                   void *data, size_t bytes);

/** Makes an output of each run an input of the next, without a copy where possible: a key-value
    cache, a hidden state. The first run takes its input from tn_binding_input, which is not read
    again; calling that again restarts. TN_ERR_DTYPE for unequal types, TN_ERR_SHAPE for shapes that
    do not fit; the second run is TN_ERR_DEVICE for an output on another device than the context's
    own. */
TN_API tn_status tn_binding_carry(tn_binding *binding, const char *output, const char *input);

/** Has later runs leave out steps that would compute what the run before did, or not any more. The
    contents of an input then count as unchanged until it is set again (tn_binding_input), even to
    the same memory, unless an output is written into its memory. Host functions, loops, steps that
    read states, and all runs of a plan over several devices, or with sizes that a run computes, are
    never left out. Results are the same bits; tn_step.times is 0 for a step that was left out.
    Intermediate results do not share memory then, which takes more of it. */
TN_API tn_status tn_binding_reuse(tn_binding *binding, bool on);

/** Describes the `i`-th input or output of a binding's plan or model, numbered as by tn_plan_port
    or tn_model_port; otherwise as tn_plan_port. */
TN_API tn_status tn_binding_port(const tn_binding *binding, tn_port_kind kind, size_t i,
                                 tn_port *port);

/** Returns the number of the input or output with a name; -1 if there is none. Any thread. */
TN_API int64_t tn_binding_find(const tn_binding *binding, tn_port_kind kind, const char *name);

/* The same functions with numbers instead of names, for programs that set new memory before each
   run. TN_ERR_ARGUMENT past the last. */

/** Sets an input as tn_binding_input does. */
TN_API tn_status tn_binding_input_at(tn_binding *binding, size_t input, tn_shape shape,
                                     tn_dtype dtype, const void *data, size_t bytes);

/** Sets an output's memory as tn_binding_output does. */
TN_API tn_status tn_binding_output_at(tn_binding *binding, size_t output, tn_dtype dtype,
                                      void *data, size_t bytes);

/** Carries an output over as tn_binding_carry does. */
TN_API tn_status tn_binding_carry_at(tn_binding *binding, size_t output, size_t input);

/** Returns an output's type as tn_binding_type does. */
TN_API tn_type tn_binding_type_at(const tn_binding *binding, size_t output);

/** Copies an output as tn_binding_read does. */
TN_API tn_status tn_binding_read_at(tn_binding *binding, size_t output, tn_dtype dtype, void *data,
                                    size_t bytes);

/** Runs the plan and returns when outputs and assignments are done. A failure kept since the last
    run is returned instead, once. TN_ERR_ARGUMENT names the inputs that have no value. Bindings run
    concurrently, except that runs which use the same state take turns. Pending assignments to the
    plan's states are computed first, for which the run waits for the context ("Plans" in
    docs/library.md). TN_ERR_BUSY in a callback of the context; in a custom operation's `run` only
    if the plan has states or host functions. */
TN_API tn_status tn_binding_run(tn_binding *binding);

/** Compiles the variant for the inputs that the binding has now, as a run would, so that a run does
    not have to. TN_ERR_ARGUMENT names the inputs that have no value. */
TN_API tn_status tn_binding_prepare(tn_binding *binding);

/** Returns the number of the variant that the last run took, in the order in which those of the
   plan were compiled, from 0; of a model with a plan for each set of sizes or elements the numbers
   of each plan begin at a multiple of 65536. -1 before a run and after one that failed. */
TN_API int64_t tn_binding_variant(const tn_binding *binding);

/** Returns the type of an output in the last run, with all sizes known; TN_UNDEFINED before a run,
    after one that failed, and for an unknown name. */
TN_API tn_type tn_binding_type(const tn_binding *binding, const char *output);

/** Copies an output of the last run to `data`, converted to `dtype` as by tn_cast. TN_ERR_ARGUMENT
    where `bytes` is not its exact size, the last run failed, or there was none. On failure `data`
    is unchanged. */
TN_API tn_status tn_binding_read(tn_binding *binding, const char *output, tn_dtype dtype,
                                 void *data, size_t bytes);

/** Returns the message of the last failure, "" before any; valid until the next failure. Never
    NULL: for a NULL binding it says that there is none. */
TN_API const char *tn_binding_message(const tn_binding *binding);

/** Frees a binding; waits for a started run (tn_binding_start of <tenon/unstable/queue.h>). NULL is
    allowed. */
TN_API void tn_binding_free(tn_binding *binding);

#ifdef __cplusplus
}
#endif
#endif
