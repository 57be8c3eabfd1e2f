/* Declares the context, the outermost scope of handles, which owns every object made from it; the
   configuration that it is opened with (allocator, logger, threads, caches); and scopes.

   docs/library.md states the rules that all functions share: invalid tensors and errors, threads
   and callbacks, lifetimes, caches, scalars that become variables, and fork. In short: work returns
   a tn_status and explains a failure in tn_message; one thread at a time uses a context; memory
   passed in is borrowed for the call; returned strings live as long as their object. */
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

/** The version of these headers; tn_version() returns that of the loaded library. */
#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0
#define TN_VERSION       (TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH)

/** The loaded library's version, encoded as TN_VERSION: 10203 is 1.2.3. */
TN_API int32_t tn_version(void);

/** The build of the loaded library: its version, and a digest of its sources ("0.1.0 5f0c…"), which
    kernels and plans on disk are looked up by. A file of tn_cache_export is read by libraries of
    this build alone. The string is static. Any thread. */
TN_API const char *tn_build_id(void);

/** Owner of all objects made from it; used by one thread at a time. */
typedef struct tn_context tn_context;

/** A cache of kernels that the caller owns (tn_kernel_cache_open of <tenon/cache.h>). */
typedef struct tn_kernel_cache tn_kernel_cache;

/* Callbacks (docs/library.md, "Threads"): each may come from any thread, one call at a time unless
   its comment says otherwise, and may call nothing on its context but tn_message,
   tn_binding_message, tn_binding_type, tn_binding_type_at, tn_binding_find, tn_release and the
   functions that describe ports (tn_plan_port, tn_binding_port, tn_model_port). Bodies of tn_scan
   and tn_cond, which build expressions, and `run` of tn_custom_desc may do more. `destroy`, if not
   NULL, gets `user` exactly once: when the owner is freed, or when the call that took it fails. A
   struct whose first function is NULL is absent. */

/** The allocator of all host memory, tensors included; not of code, thread stacks, mapped files and
    the contents of pipes. */
typedef struct tn_allocator {
  /** Returns `bytes` bytes at a multiple of `align`, a power of two, or NULL when memory is
      exhausted. Called by several threads at once. */
  void *(*alloc)(void *user, size_t bytes, size_t align);
  /** Frees a block that `alloc` returned for `bytes`. Called by several threads at once. */
  void (*release)(void *user, void *at, size_t bytes);
  void *user;
  void (*destroy)(void *user);
} tn_allocator;

/** The caller's own thread pool, used instead of the library's. While it compiles kernels, runs of
    bindings execute in the threads that called them instead of waiting. */
typedef struct tn_workers {
  /** Calls task(arg, i) once for each i in 0..n-1, on any threads in any order, and returns when
      all have returned. Tasks do not wait for one another. */
  void (*run)(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n);
  void *user;
  void (*destroy)(void *user);
} tn_workers;

typedef enum tn_log_level {
  TN_LOG_WARNING = 1, /**< degraded operation: the disk cache cannot be used, say */
  TN_LOG_INFO = 2,    /**< decisions: the device, the compiler */
  TN_LOG_DEBUG = 3,   /**< work done: each kernel compiled, each plan made */
  TN_LOG_LEVEL_MAX_ENUM = 0x7fffffff
} tn_log_level;

/** The receiver of log lines; without one they are dropped. */
typedef struct tn_logger {
  /** `text` is one line without its newline, valid during the call; control characters in names are
      replaced by spaces. */
  void (*log)(void *user, tn_log_level level, const char *text);
  void *user;
  void (*destroy)(void *user);
} tn_logger;

/** The observer of compilation and of loops, which may cancel them. */
typedef struct tn_progress {
  /** `done` of `total` units of `what` are finished. "schedules": those of kernels, compared before
      the kernels of a plan or of its weights are compiled; nobody knows how many there will be, so
      `total` is 0. "kernels": called with 0 to total - 1 done, for each kernel as soon as its code
     is generated (where workers are lent, after each group of kernels that they share), and once
     with `total` when all are compiled; with 0 of 0 if there are none. Kernels that prepare a
     model's weights come first, and `total` grows once those of its runs are known. The C compilers
     run in parallel after the last kernel's code was generated and cannot be cancelled. Kernels
     found in a cache count too. A plan found on disk calls once, with `total` done; a graph whose
     plan the context holds does not call. "steps": those that a run has taken of a loop, on the
     thread of the run. Of a loop of a plan (tn_scan), called between its steps, at most once in
     10 ms, by a run or a realisation; `total` is the number of steps, 0 where `until` may end it
     before. Of a loop of a model that the host runs (docs/onnx.md), before each; `total` is its
     trip count, 0 where it has none. Returning false cancels the work, which then returns
     TN_ERR_CANCELLED and has changed no state. */
  bool (*step)(void *user, const char *what, uint64_t done, uint64_t total);
  void *user;
  void (*destroy)(void *user);
} tn_progress;

/** A span of time on a timeline: a step of a run, or a copy of an input or an output. Strings are
    valid during the call. */
typedef struct tn_trace_span {
  size_t size;        /**< sizeof(tn_trace_span) of the library: later versions append fields */
  const char *name;   /**< of the step, as in tn_step; "copy of input x" */
  const char *device; /**< "CPU:0" */
  const char *queue;  /**< "compute"; "host": the thread that runs the binding */
  int64_t step;       /**< number of the step, as for tn_binding_step; -1: a copy */
  int64_t begin, end; /**< nanoseconds of the system's monotonic clock. A device with a clock of its
                         own is taken to end steps when the host sees the last of them end */
  const char *library; /**< the library that the step is a call of ("openblas"); NULL: none */
} tn_trace_span;

/** The receiver of what runs do when: those of bindings, and of tensors that are realised. With
    one, runs record times as profiled ones do, and wait for each part that a device does by
    itself. */
typedef struct tn_tracer {
  /** Gets each span after it ended, on the thread that waited for it: steps in a loop once a trip,
      the loop itself after its trips. Parts of runs that failed have no spans. */
  void (*span)(void *user, const tn_trace_span *span);
  void *user;
  void (*destroy)(void *user);
} tn_tracer;

/** Freedoms of the compiler with floating-point results: a set of bits. All but TN_MATH_FAST
    preserve NaN, infinities and signed zeros. */
typedef enum tn_math {
  TN_MATH_EXACT = 0,    /**< each operation rounded once, reductions in index order */
  TN_MATH_CONTRACT = 1, /**< a * b + c may be rounded once instead of twice */
  TN_MATH_SUM = 2,      /**< a reduction may go in another order, fixed by shape and target, and its
                             result may be divided instead of its terms (as in softmax times V), so
                             that sums beyond the type's largest number may overflow to infinity or
                             NaN even where they carry no weight; of 0 and -0 either may be the
                             maximum or the minimum */
  TN_MATH_FLUSH = 8, /**< a result of tn_exp that is less than twice the least normal number of its
                          type (2.4e-38 of f32) may be 0, so that nothing computes with subnormal
                          numbers that a softmax makes, which slows some processors a hundredfold */
  TN_MATH_DEFAULT = 11, /**< contract, sum and flush */
  TN_MATH_FAST = 15, /**< also reassociate, and assume no NaN and no signed zeros; convolutions of
                         constant 3×3 weights may use Winograd's algorithm, which rounds more */
  TN_MATH_MAX_ENUM = 0x7fffffff
} tn_math;

/** X(mode, text): every mode that TENON_MATH and the command's --math name. */
#define TN_MATH_LIST(X)           \
  X(TN_MATH_EXACT, "exact")       \
  X(TN_MATH_CONTRACT, "contract") \
  X(TN_MATH_SUM, "sum")           \
  X(TN_MATH_FLUSH, "flush")       \
  X(TN_MATH_DEFAULT, "default")   \
  X(TN_MATH_FAST, "fast")

/** The most threads that a context uses. */
#define TN_THREADS_MAX 1024

/** Options of tn_open. Strings are copied. If `environment` is true, a field that equals its value
    in TN_OPEN_DESC_INIT is read from its environment variable, if set: TENON_DEVICE, TENON_CACHE
    (cache_dir), TENON_TUNED, TENON_BACKEND (backends), TENON_PAIR, TENON_CPU, TENON_DUMP,
   TENON_THREADS, TENON_CC or else CC (compiler), TENON_MEMORY (memory_limit: "4G"),
   TENON_COMPILE_SECONDS, TENON_VENDOR, and TENON_MATH, a text of TN_MATH_LIST. PATH,
   XDG_CACHE_HOME and HOME are read in any case. A program with more rights than the user who starts
   it (set-user-id, secure_getenv(3)) reads no variable. Contexts without allocator, workers and
   threads share their devices; the last of them to set `cached_bytes` sets it for all. */
typedef struct tn_open_desc {
  size_t size;           /**< sizeof(tn_open_desc) */
  const char *device;    /**< device of new tensors ("CPU"); NULL: the CPU */
  const char *cache_dir; /**< folder of the disk cache, created when first needed, or "off"; NULL:
                            $XDG_CACHE_HOME/tenon, else $HOME/.cache/tenon */
  const char *pair;      /**< renderer and compiler (see device.h); NULL: the device's first that is
                            present */
  const char *cpu;       /**< highest instruction set to use: "x86-64", "x86-64-v2", "x86-64-v3" or
                            "x86-64-v4", and features beyond it: "x86-64-v3+avxvnni",
                            "x86-64-v4+avx512vnni+avx512bf16"; NULL: the processor's */
  const char *dump;      /**< "DIR:after:PASS": write the graph into DIR after PASS; NULL: no */
  int32_t threads;       /**< most workers of a kernel, up to TN_THREADS_MAX; 0: one for each
                            physical core */
  tn_math math;
  uint64_t cached_bytes;  /**< most bytes of freed memory kept for reuse */
  bool environment;       /**< read the variables named above */
  tn_allocator allocator; /**< absent: the C library's */
  tn_workers workers;     /**< absent: the library's own threads */
  tn_logger logger;       /**< absent: log lines are dropped */
  tn_progress progress;   /**< absent: no progress, no cancelling */
  /** C compiler of kernels: name or path, and arguments after spaces ("ccache gcc"); arguments that
      relax floating-point arithmetic, such as -ffast-math, have no effect; NULL: the first of cc,
      gcc and clang found */
  const char *compiler;
  /** file of tuned schedules (tn_tune), which kernels are compiled with and tn_tune appends to, or
      "off"; a relative path is one of the working directory at this call. NULL: the file "tuned" in
      the folder of the disk cache, and none without one */
  const char *tuned;
  /** shared objects of backends (tn_backend_load), separated by colons, to load before the device
     is opened; NULL: none */
  const char *backends;
  tn_tracer tracer; /**< absent: runs are not traced */
  /** the context's kernels are in this cache and in its folder, and `cache_dir` has no effect; the
      contexts of a cache share devices and threads, and have the library's allocator and workers.
      NULL: those that contexts share */
  tn_kernel_cache *kernel_cache;
  /** most bytes of memory that the context allocates, tensors and the graphs of compilations
      included, the memory of devices that have their own too; beyond them calls fail with
      TN_ERR_MEMORY. It then has devices of its own. 0: no limit */
  uint64_t memory_limit;
  /** most seconds that loading a model, or compiling a plan or a variant of it, may take: past
      them it fails with TN_ERR_TIMEOUT, which names the kernel or node at hand. One call of a C
      compiler is not interrupted before 180 s, its own limit. 0: no limit */
  double compile_seconds;
  /** whether a kernel that is a product of matrices, and nothing else, may be a call of a library
      made by others, where tn_tune measured that to be faster: "on", "off", or NULL: on for CUDA
      (cuBLAS), off for the CPU (OpenBLAS). A library that is asked for and cannot be opened is a
      warning, and is not used */
  const char *vendor;
} tn_open_desc;

/** The default of compile_seconds. */
#define TN_COMPILE_SECONDS 1800

/* clang-format off */
#define TN_OPEN_DESC_INIT                                                                          \
  { sizeof(tn_open_desc), NULL, NULL, NULL, NULL, NULL, 0, TN_MATH_DEFAULT,                        \
    (uint64_t)1 << 30, true, {NULL, NULL, NULL, NULL}, {NULL, NULL, NULL}, {NULL, NULL, NULL},     \
    {NULL, NULL, NULL}, NULL, NULL, NULL, {NULL, NULL, NULL}, NULL, 0, TN_COMPILE_SECONDS, NULL }
/* clang-format on */

/** Opens a context; `desc` NULL is TN_OPEN_DESC_INIT. Returns NULL only if memory is exhausted. Any
    other error (an absent device, an unknown option) gives a context all of whose calls fail with
    that error. The context owns the callbacks' payloads; if NULL is returned they are destroyed. */
TN_API tn_context *tn_open(const tn_open_desc *desc);

/** Frees every object made from the context: scopes, tensors (owned ones too), plans, models and
    bindings. Pending assignments do not happen. NULL is allowed and returns TN_OK. TN_ERR_BUSY, and
    frees nothing, while another thread is in a call on the context or on a binding, or binds a plan
    or a model, while a started run (tn_binding_start) goes on, or from the body of a tn_scan or
    tn_cond. */
TN_API tn_status tn_close(tn_context *context);

/** The message of the last failure: the op, the shapes and the label, in one or more lines without
    a final newline; "" before any. Threads that use the context in turn share the message of the
    calls on it. The failure of a thread that binds or compiles a plan or a model is the
    message of that thread alone, until one of its own calls on the context fails. Failures of a
    binding's functions have the message of tn_binding_message.
    The text is valid until the calling thread's next failure on the context, or that of a thread
    which uses the context after it. Never NULL: for a NULL context it says that there is none. Any
    thread. */
TN_API const char *tn_message(const tn_context *context);

/** Opens a scope inside the innermost one. Tensors and sizes made from now on belong to it. */
TN_API void tn_scope_begin(tn_context *context);

/** Ends the innermost scope. Runs, as one plan, the pending assignments (those of outer scopes too,
    which a plan compiled later then does not contain) and the tensors that outlive the scope (kept
    or owned), drops their graphs, and frees the scope's other tensors. Returns the scope's first
    failure, its message in tn_message. A failed assignment leaves the old value and everything else
    happens; if memory was exhausted, it happens when something is next run. The scope is ended in
    any case. TN_ERR_ARGUMENT if no scope is open. */
TN_API tn_status tn_scope_end(tn_context *context);

/** Sets the source location that messages name for nodes built from now on, until the next call.
    `where` is copied; NULL: none.

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
