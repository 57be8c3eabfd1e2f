/* The context: the outermost scope, which owns all that is made from it.

   Errors. Work returns a tn_status; on failure its results are NULL or untouched, as each function
   says. A function that builds a tensor returns an invalid one that carries its cause, and work on
   that reports the cause; of several invalid operands', the oldest. So a chain of calls needs one
   check, at its last. An argument that is NULL where it may not be is refused with TN_ERR_ARGUMENT
   and a message, a builder's with an invalid tensor; the message of a NULL operand quotes the
   failure told before it, which may be why it is NULL. Where all objects of a call are NULL there
   is no context to tell: a builder returns NULL, and every message is left alone. Only where a
   function says so does NULL mean "absent". A scope keeps its first failure for tn_scope_end.

   What fails. An assign or a state's first contents can fail when they are computed, later than
   they were made: what does not depend on them happens all the same. A state without first contents
   is from then on as invalid as a tensor can be. An assign that failed leaves the old value, and
   what computed it returns the failure, once; what would have computed one that could not even be
   made does so too. A function of the host's that failed may be called again.

   Threads. A context with its tensors is used by one thread at a time, any thread in turn; a second
   one gets TN_ERR_BUSY, from a builder as a tensor or a size that reports it, and leaves the
   message to the first. Plans and models are used by any number of threads, a binding by one; where
   these need the context for a while, calls on it wait.

   What is kept. No number of steps makes a program larger where each is a scope (tn_scope_begin) or
   the run of a plan: what is made outside of a scope is kept until tn_close, be it no more than an
   expression that was read once. A context keeps what it compiled for the last 64 graphs that it
   realised, 64 MiB of graphs at most. Devices keep the kernels that anything holds, such as a plan,
   and the last 1024 that nothing does any more, 64 MiB at most, after tn_close too where devices
   are shared. What was dropped is compiled again when it is needed. Where memory runs out these
   are dropped before work fails. Freed memory: see `cached_bytes`.

   Numbers that vary. What is realised is compiled as it is written, with its numbers: those of
   tn_num, tn_int and tn_full, where slices and assigns begin and how much padding is before an
   axis, keys of random numbers. Where a graph comes that differs from one before in such numbers
   alone, it is compiled once more, with those that differ as variables, and what was made then
   serves all their values: a loop whose steps differ in the same numbers compiles the first two. A
   number that differs for the first time later, or from one that it was equal to until then, costs
   one more. Sizes are no such numbers, nor are those of plans and models. Results are the same but
   for roundings, where the compiler had made use of a number, as of a power's exponent.

   Kernels that were compiled, and what graphs became of them, are kept on disk too, in the folder
   of `cache_dir`, 1 GiB at most: of more, what was not used for the longest time goes. Later
   processes find them there, and then start no compiler and schedule nothing. Several may use a
   folder at once. It holds code that is run, and so is used only if it is the user's own, no link,
   and written by nobody else; what was changed in it is removed and made anew. What is wrong is
   told to the logger as a warning, and work goes on without: of a folder that cannot be used, or a
   disk that is full or cannot be written, once; of a file, where it is to be read.

   After fork a child has none of the library's threads, and a lock that one of them held is held
   for ever. So it may neither use nor free what the parent made, its contexts least of all, and
   tn_open in a child can wait for ever too, unless the parent's had gone idle: fork first, or exec.

   What is freed, be it with its scope or context, may not be used any more: what happens then is
   undefined. Debug builds of the library tell of most such tensors.

   Memory passed in is borrowed for the call unless a function says otherwise. Strings returned live
   as long as the object they came from. */
#ifndef TENON_CONTEXT_H
#define TENON_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of these headers: tn_version() is that of the library that runs. */
#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0
#define TN_VERSION       (TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH)

/** The library's version, numbered as TN_VERSION: 10203 is 1.2.3. */
TN_API int32_t tn_version(void);

typedef struct tn_context tn_context;

/* Callbacks. Each comes from any thread, one call at a time unless said otherwise. On its context,
   and on tensors, plans, models and bindings of it, it may call nothing but tn_message,
   tn_binding_message, tn_binding_type and tn_model_port: all else is TN_ERR_BUSY, and leaves the
   message alone, or where it returns no status does nothing, so that what was to be freed goes with
   the context. Calls of other threads go on meanwhile, or wait, as they do at any time. All of this
   holds for every function that the library is given, such as one that takes wrapped memory back,
   except the body of a tn_scan and, in part, what a tn_custom runs. `destroy`, if not NULL, gets
   `user` exactly once, at the end or when the call that took it fails. A struct whose first
   function is NULL is absent. */

/** Where host memory comes from, tensors' included; code, thread stacks and files do not, also what
    is read of a pipe. */
typedef struct tn_allocator {
  /** `bytes` bytes at a multiple of `align`, a power of two; NULL when there are none. Called by
      several threads at once. */
  void *(*alloc)(void *user, size_t bytes, size_t align);
  /** Gives back what `alloc` gave for `bytes`. Called by several threads at once. */
  void (*release)(void *user, void *at, size_t bytes);
  void *user;
  void (*destroy)(void *user);
} tn_allocator;

/** The caller's own threads, used instead of the library's. While they compile kernels, runs of
    bindings do not wait for them: they go on in the threads that asked for them. */
typedef struct tn_workers {
  /** Calls task(arg, i) once for each i in 0..n-1, on any threads in any order, and returns when
      all have returned. Tasks do not wait for one another. */
  void (*run)(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n);
  void *user;
  void (*destroy)(void *user);
} tn_workers;

typedef enum tn_log_level {
  TN_LOG_WARNING = 1, /**< it works, but not as well as it should: kernels cannot be kept, say */
  TN_LOG_INFO = 2,    /**< what was decided: the device, the compiler */
  TN_LOG_DEBUG = 3,   /**< what was done: each kernel compiled, each plan made */
  TN_LOG_LEVEL_MAX_ENUM = 0x7fffffff
} tn_log_level;

/** Where the library's remarks go; without one nowhere. */
typedef struct tn_logger {
  /** `text` is one line without its newline, valid during the call; for what is no text in a name
      (a newline, say) there is a space. */
  void (*log)(void *user, tn_log_level level, const char *text);
  void *user;
  void (*destroy)(void *user);
} tn_logger;

/** Told of compiling. */
typedef struct tn_progress {
  /** `done` of `total` units of `what` are finished: "kernels", of what is realised or of a plan.
      It is called before each kernel is written, with 0 to total - 1 done, and once when all are
      compiled, with `total`; where there are none, once with 0 of 0. Kernels that prepare a model's
      weights come first, and `total` grows when those of its runs are known. The compilers run
      side by side, after the last kernel of either was written: they cannot be cancelled. Kernels
      that were compiled before are counted too. Where a plan is found on disk nothing is written:
      it is called once, with `total` of its kernels done; and not at all where the context has what
      it made of a graph that is realised again. Returning false cancels the work, which then
      returns TN_ERR_CANCELLED. */
  bool (*step)(void *user, const char *what, uint64_t done, uint64_t total);
  void *user;
  void (*destroy)(void *user);
} tn_progress;

/** Liberties that a compiler may take with floating-point results: a set of bits. None of the first
    four changes what NaN, infinities and signed zeros mean. */
typedef enum tn_math {
  TN_MATH_EXACT = 0,    /**< each operation rounded once, reductions in index order */
  TN_MATH_CONTRACT = 1, /**< a * b + c may be rounded once instead of twice */
  TN_MATH_SUM = 2,      /**< a reduction may go in another order, fixed by shape and target, and its
                             result be divided instead of its terms, as in a softmax's product: then
                             values whose sum is beyond the type's largest number may overflow on the
                             way to infinity or NaN, also where they weigh nothing in the end; of 0
                             and -0, either may be the largest or the least */
  TN_MATH_DEFAULT = 3,  /**< both of these */
  TN_MATH_FAST = 7,     /**< also reassociate, and take NaN and signed zeros as absent */
  TN_MATH_MAX_ENUM = 0x7fffffff
} tn_math;

/** How a context is opened. Strings are copied. With `environment`, a field that is as in INIT is
    taken from its variable, where that is set: TENON_DEVICE, TENON_CACHE (cache_dir), TENON_PAIR,
    TENON_CPU, TENON_DUMP, TENON_THREADS, TENON_CC or else CC (compiler), and TENON_MATH, one of
    "exact", "contract", "sum", "default" and "fast". PATH, XDG_CACHE_HOME and HOME are heeded in
   any case; TMPDIR is not used, as kernels are compiled without files. Contexts with neither
   allocator, workers nor threads share their devices, and the last one to set `cached_bytes` sets
   it for all.
    */
typedef struct tn_open_desc {
  size_t size;           /**< sizeof(tn_open_desc) */
  const char *device;    /**< where tensors are made ("CPU"); NULL: the CPU */
  const char *cache_dir; /**< where kernels and plans are kept: a folder, made when it is needed,
                            or "off"; NULL: $XDG_CACHE_HOME/tenon, else $HOME/.cache/tenon */
  const char *pair;      /**< renderer and compiler (see device.h); NULL: the device's first */
  const char *cpu;       /**< use no more than "x86-64", "x86-64-v2", "x86-64-v3" or "x86-64-v4"
                            has; NULL: all there is */
  const char *dump;      /**< "DIR:after:PASS": write the graph into DIR after PASS; NULL: no */
  int32_t threads;       /**< tasks that work is cut into, at most 1024; 0: one a physical core */
  tn_math math;
  uint64_t cached_bytes;  /**< of freed memory kept for reuse, at most: see above */
  bool environment;       /**< heed the variables named above */
  tn_allocator allocator; /**< absent: the C library's */
  tn_workers workers;     /**< absent: the library's own threads */
  tn_logger logger;       /**< absent: remarks are dropped */
  tn_progress progress;   /**< absent: nothing is told and nothing cancelled */
  const char *compiler;   /**< C compiler for kernels: a name or path, and arguments after spaces
                             ("ccache gcc"), of which those that loosen arithmetic, as -ffast-math,
                             do nothing; NULL: the first of cc, gcc and clang that there is */
} tn_open_desc;

/* clang-format off */
#define TN_OPEN_DESC_INIT                                                                          \
  { sizeof(tn_open_desc), NULL, NULL, NULL, NULL, NULL, 0, TN_MATH_DEFAULT,                        \
    (uint64_t)1 << 30, true, {NULL, NULL, NULL, NULL}, {NULL, NULL, NULL}, {NULL, NULL, NULL},     \
    {NULL, NULL, NULL}, NULL }
/* clang-format on */

/** Opens a context; `desc` NULL is TN_OPEN_DESC_INIT. NULL only where memory has run out. What else
    is wrong (a device that is absent, a field that is unknown) gives a context whose every call
    says so. The payloads of callbacks belong to the context, or are destroyed at once if none is
    returned. */
TN_API tn_context *tn_open(const tn_open_desc *desc);

/** Frees all that was made from the context: scopes, tensors however owned, plans, models and
    bindings. Assigns still pending do not happen. NULL is allowed and is TN_OK. TN_ERR_BUSY, and
    nothing is freed, while another thread is in a call on the context, or binds a plan or a model
    of it, or is in a call on a binding, or while a run that was started (tn_binding_start) goes on,
    or from the body of a tn_scan. */
TN_API tn_status tn_close(tn_context *context);

/** The last failure's message: the op, the shapes and the label, in one or more lines without a
    final newline; "" before any. Valid until the next failure, also one of another thread that
    compiles or binds a plan or a model of the context. Never NULL: for a NULL context it says that
    there is none. */
TN_API const char *tn_message(const tn_context *context);

/** Opens a scope inside the innermost one. Tensors and sizes made from here on belong to it. */
TN_API void tn_scope_begin(tn_context *context);

/** Ends the innermost scope. Runs, as one plan, the assigns still pending (those of outer scopes,
    too, which a plan compiled later then does not take) and whatever outlives the scope (was kept
    or owned), drops their graphs, and frees the scope's other tensors. Returns the first failure of
    anything in the scope, its message in tn_message; a failed assign leaves the old value, and all
    else happens: where memory does not suffice, when something is next run. The scope is ended in
    any case. TN_ERR_ARGUMENT where no scope is open. */
TN_API tn_status tn_scope_end(tn_context *context);

/** Names the place that what is built from here on comes from, for messages: `where` is copied.
    NULL: none. Holds until the next call.

        tn_label(tn, TN_HERE); */
TN_API void tn_label(tn_context *context, const char *where);

/** File and line, as "net.c:12". */
#define TN_HERE             __FILE__ ":" TN_HERE_TEXT(__LINE__)
#define TN_HERE_TEXT(line)  TN_HERE_QUOTE(line)
#define TN_HERE_QUOTE(line) #line

#ifdef __cplusplus
}
#endif
#endif
