/* Declares the interface of a backend, the plug-in that runs programs on one kind of device.
   Nothing under unstable/ is promised to stay.

   A backend is one constant struct of functions. Members marked optional may be NULL; their
   comments state the default. Functions may be called from several threads at once unless stated
   otherwise; those that return a status explain failures with tn_fail. A pair of renderer and
   compiler takes part in these steps:

       SINK --> LINEAR --render--> SOURCE --compile--> BINARY --load--> module --program--> program

   A kernel is first looked up by everything that decides its code: its graph, the target with its
   capabilities, the renderer, the compiler and the compiler's key. */
#ifndef TENON_UNSTABLE_BACKEND_H
#define TENON_UNSTABLE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/export.h>
#include <tenon/status.h>
#include <tenon/unstable/ir.h>
#include <tenon/unstable/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kind of device; defined at the end of this file. */
typedef struct tn_backend tn_backend;

/** Registers a backend for a context, and for those that share its devices, until the process ends.
    TN_ERR_ARGUMENT for an incomplete backend or a name that is taken. */
TN_API tn_status tn_backend_add(tn_context *context, const tn_backend *backend);

/** Loads a shared object, which stays loaded until the process ends, and registers its backend like
    tn_backend_add. TN_ERR_DEVICE, with the loader's message, if it cannot be loaded. A path without
    a slash is in the current folder. tn_open_desc's `backends` does the same before a device is
    opened. */
TN_API tn_status tn_backend_load(tn_context *context, const char *path);

/** The function that a shared object with a backend exports, by this name, with C linkage. */
typedef const tn_backend *tn_backend_entry(void);
#define TN_BACKEND_ENTRY "tn_backend_get"

/** A growing byte string, filled by functions of a backend. */
typedef struct tn_output tn_output;

/** Appends bytes. The output's owner checks for exhausted memory, not the caller. */
TN_API void tn_output_add(tn_output *output, const void *data, size_t bytes);

/** Services of the library for a device, valid while it is open. */
typedef struct tn_host {
  size_t size;
  tn_allocator allocator; /**< for all host memory; its `destroy` must not be called */
  tn_workers workers;     /**< for work on the host; the calling thread takes part */
  int32_t threads;        /**< number of tasks that `workers` runs at once */
} tn_host;

/* ---- Renderers and compilers ---- */

/** Hardware that programs run on, for choices that affect speed alone. 0: unknown. */
typedef struct tn_hardware {
  uint64_t l1_bytes;   /**< L1 data cache of one core */
  uint64_t l2_bytes;   /**< L2 cache of one core, or its share */
  uint64_t l3_bytes;   /**< one last-level cache */
  uint32_t l3_cores;   /**< cores that share one last-level cache */
  uint32_t line_bytes; /**< cache line */
  uint32_t page_bytes; /**< memory page */
  uint32_t cores;      /**< cores of the machine, used or not */
} tn_hardware;

/** Capabilities of a target. */
typedef struct tn_capabilities {
  size_t size;
  char target[64];       /**< name of the target ("x86-64-v3"); part of every cache key */
  uint32_t vector_bytes; /**< width of the widest vector, a power of 2; 0: scalars only */
  uint32_t registers;    /**< vector registers of that width; where kernels run in teams, registers
                            of 32 bits that a worker has. 0: unknown, so that kernels keep no
                            arrays in registers and are not tiled */
  bool threads;          /**< kernels may be parallelised along the SPECIAL core_id */
  bool index32;          /**< 32-bit indices are cheaper than 64-bit ones */
  uint32_t max_buffers;  /**< largest number of buffers of a kernel; 0: no limit */
  uint64_t max_scratch;  /**< largest size of a kernel's own arrays, in bytes; 0: no limit */
  bool scratch_buffer; /**< memory for a kernel's own arrays comes with the launch, as an additional
                          buffer */
  uint64_t dtypes; /**< set of 1 << tn_dtype, not empty: a kernel with a value of another type is
                      TN_ERR_UNSUPPORTED. Without f16 or bf16 arrays of these have bit patterns, and
                      arithmetic is in f32 */
  const char *const *lacks; /**< names of ops without an instruction, NULL-terminated, static; NULL:
                               none. Values are computed by other ops; index arithmetic may have
                               min, max, floordiv and mod of i32 and i64 still, and shl, shr and
                               cast stay where counts are below the width and floats in the range
                               of the integer. A target without instructions for small types lists
                               dot_u8i8, dot_i16 and dot_bf16: products of these become such ops
                               otherwise */
  tn_hardware hardware;
  uint32_t team_workers; /**< most workers of a group, which share memory and meet at barriers; 0:
                            kernels run without teams */
  uint32_t warp;         /**< workers of a warp, which may meet by themselves; 0: there are none */
  uint64_t group_bytes;  /**< memory that the workers of a group share, positive with teams */
  uint32_t max_lanes;    /**< most elements of a vector; 0: as many as vector_bytes hold */
  uint32_t copy_bytes; /**< sizes, powers of 2, that a worker copies from a buffer to shared memory
                          while it goes on, or-ed; 0: none. STOREs of such sizes may have the
                          integer 2, by which they are marked for it; WAITs of programs without such
                          STOREs do nothing */
  bool f16_casts;      /**< casts between f16 and f32, scalars and vectors, are instructions; where
                          dtypes lacks f16 they stay in programs, which have its bit patterns */
} tn_capabilities;

/** A variable of a program, with inclusive bounds. */
typedef struct tn_program_var {
  const char *name;
  int64_t min, max;
} tn_program_var;

/** Description of a program before it is compiled, derived from its node. */
typedef struct tn_program_spec {
  size_t size;
  const char *name;   /**< for messages */
  const char *entry;  /**< name of its function in the source: a unique identifier */
  const char *device; /**< the backend's name */
  const char *source; /**< "" before rendering */
  size_t source_bytes;
  tn_node ast;                /**< PROGRAM(SINK, DEVICE, LINEAR) */
  tn_node global[3];          /**< numbers of work groups: expressions over variables */
  tn_node local[3];           /**< sizes of a work group; NULL: absent, global ids are direct */
  const tn_program_var *vars; /**< VARs, sorted by name */
  size_t n_vars;
  const char *const *value_names; /**< names of a launch's values, sorted: VARs and core_id */
  size_t n_values;
  /** sorted slots of PARAMs: all, those stored to, those loaded from */
  const int64_t *globals, *outs, *ins;
  /** n_globals is the number of a launch's buffers, without scratch */
  size_t n_globals, n_outs, n_ins;
  uint64_t scratch; /**< bytes of a last buffer per worker; 0: no such buffer */
  int64_t core_id;  /**< position of the worker's number among the values; -1: single worker */
} tn_program_spec;

/** Generator of programs' source text. */
typedef struct tn_renderer {
  size_t size;
  const char *name; /**< "c" */
  /** Fills in the capabilities of a device (`size` is set, the rest zero). `limit`: the highest
      instruction set to use, as in tn_open_desc's `cpu`; NULL: no limit. */
  tn_status (*describe)(void *device, const char *limit, tn_capabilities *caps,
                        tn_failure *failure);
  /** Optional: returns a replacement of a node by ops that the target has, or NULL to leave it.
      Called for a kernel's nodes before linearisation, sources first, before the library's own
      decompositions. Default: only those. */
  tn_node (*decompose)(const tn_capabilities *caps, tn_ir *ir, tn_node node);
  /** Writes the source of a program, not empty. TN_ERR_UNSUPPORTED where the device lacks a launch
      feature, such as group ids. */
  tn_status (*render)(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                      tn_output *source, tn_failure *failure);
  /** Optional: writes the text that the compiler reads before the sources of programs, for
      explanations (tn_explained_kernel). Default: none. */
  tn_status (*prelude)(const tn_capabilities *caps, tn_output *text, tn_failure *failure);
} tn_renderer;

/** Kinds of compiled code. */
typedef enum tn_code_kind {
  TN_CODE_BYTES = 0,  /**< compiled ahead of time */
  TN_CODE_SOURCE = 1, /**< text that is compiled when it is loaded */
  TN_CODE_PRODUCT =
      2, /**< a tn_product, at any alignment: the program is a call of the backend's library */
  TN_CODE_KIND_MAX_ENUM = 0x7fffffff
} tn_code_kind;

/** Compiler of sources to code. */
typedef struct tn_compiler {
  size_t size;
  const char *name; /**< "cc" */
  tn_code_kind kind;
  size_t most; /**< largest number of programs per call; 0: no limit */
  /** Optional: finds the compiler of a name, as in tn_open_desc's `compiler` (NULL: unspecified; a
      backend with a single compiler accepts any name). Called once per device and name, before the
      first compilation. Default: `compiler` is NULL in the functions below. */
  tn_status (*open)(void *device, const tn_host *host, const char *name, void **compiler,
                    tn_failure *failure);
  void (*close)(void *compiler); /**< optional; default: nothing to close */
  /** Writes a text without NULs that identifies the compiler: name, version and the flags for
      `caps`; for `lasting` code also everything else in the backend that affects it. */
  tn_status (*key)(void *compiler, const tn_capabilities *caps, tn_output *key,
                   tn_failure *failure);
  /** Writes the code of `n` programs with distinct entries, as one piece, not empty. May read
      nodes, but not call functions on their tn_ir, whose programs other threads may be
      compiling. */
  tn_status (*compile)(void *compiler, const tn_capabilities *caps,
                       const tn_program_spec *const specs[], size_t n, tn_output *code,
                       tn_failure *failure);
  /** True: the code is valid in other processes, and is kept on disk for them. */
  bool lasting;
  /** Optional: writes a text that changes whenever the key of the compiler of a name may change
      (paths, sizes and times of its files), without starting or loading anything. With it, `open`
      is not called if all kernels are found on disk. Default: the compiler is opened for its
      key. */
  tn_status (*stamp)(void *device, const char *name, tn_output *stamp, tn_failure *failure);
} tn_compiler;

/** A renderer and the compiler of its sources. */
typedef struct tn_pair {
  const tn_renderer *renderer;
  const tn_compiler *compiler;
  /** Optional: tells whether the pair can be used on this machine, without loading or starting
      anything, or fails with the reason why not. `compiler`: as in the compiler's `open`; a pair is
      absent where that names a compiler of another one. Default: present. */
  tn_status (*present)(void *device, const char *compiler, tn_failure *failure);
} tn_pair;

/** Compiled code of one or more programs. */
typedef struct tn_code {
  tn_code_kind kind;
  const void *data; /**< followed by a NUL that is not counted */
  size_t bytes;
} tn_code;

/** Facts of a program to load; valid as long as the program. */
typedef struct tn_program_facts {
  const char *entry;
  size_t n_globals, n_values;
  uint64_t scratch;               /**< as in tn_program_spec */
  int64_t core_id;                /**< likewise */
  const char *const *value_names; /**< n_values of them */
  const int64_t *globals;         /**< n_globals slots */
} tn_program_facts;

/* ---- Libraries of products ---- */

/** The most sizes of a product's batch. */
#define TN_PRODUCT_BATCHES 4

/** A matrix of a product, in a buffer of the launch. Counts are of elements; from one matrix of the
    batch to the next the matrix moves by `batch`, 0 where all share it. */
typedef struct tn_product_matrix {
  int64_t buffer;      /**< position among the launch's buffers */
  int64_t start;       /**< its first element */
  int64_t row, column; /**< from a row to the next, from a column to the next: one of them is 1, and
                          the other at least the length of what is contiguous */
  int64_t batch[TN_PRODUCT_BATCHES];
} tn_product_matrix;

/** A product of matrices: out (m × n) = left (m × k) · right (k × n), once for each element of the
    batch. `out` has the column step 1, and a buffer that is not one of the others'. Sizes and steps
    from a row or column to the next fit in 31 bits. */
typedef struct tn_product {
  int64_t dtype; /**< a tn_dtype of all three: TN_F32 or TN_F64 */
  int64_t m, n, k;
  int64_t batch[TN_PRODUCT_BATCHES]; /**< sizes of the batch; 1: unused */
  tn_product_matrix out, left, right;
} tn_product;

/** A library, made by others, that computes products of matrices on a device. Kernels that are such
    a product, and nothing else, may become calls of it where that was measured to be faster
    (tn_tune). The backend then gets code of kind TN_CODE_PRODUCT. */
typedef struct tn_product_library {
  size_t size;
  const char *name; /**< "openblas": in records of measurements, of letters and digits */
  bool is_usual;    /**< used unless the caller forbids it; else only on request */
  /** Opens the library, once in a process, or fails with the reason why it cannot be used. */
  tn_status (*open)(void *device, tn_failure *failure);
} tn_product_library;

/* ---- Work ---- */

/** Uses of memory. */
typedef enum tn_memory_use {
  TN_MEMORY_DEVICE = 0,  /**< programs run on it */
  TN_MEMORY_STAGING = 1, /**< the host's; the device copies from and to it at full speed */
  TN_MEMORY_USE_MAX_ENUM = 0x7fffffff
} tn_memory_use;

/** Access of a device to another one's memory. */
typedef enum tn_peer {
  TN_PEER_NONE = 0,
  TN_PEER_COPY = 1, /**< COPY works may name spans of both devices */
  TN_PEER_MAX_ENUM = 0x7fffffff
} tn_peer;

/** Returns the backend's own device behind a tn_device; NULL if it belongs to another backend. */
TN_API void *tn_device_native(const tn_device *device, const tn_backend *backend);

/** Kinds of work. */
typedef enum tn_work_kind {
  TN_WORK_EXEC = 1,  /**< run a program */
  TN_WORK_COPY = 2,  /**< copy between memories of the device, or of a peer */
  TN_WORK_FILL = 3,  /**< set all bytes to one value */
  TN_WORK_READ = 4,  /**< copy to host memory: staging memory, or any other, which may be slower */
  TN_WORK_WRITE = 5, /**< copy from host memory, likewise */
  TN_WORK_KIND_MAX_ENUM = 0x7fffffff
} tn_work_kind;

/** One thing that a device does; comments name the kinds that use a field. The numbers of buffers
    and values, and the devices of all spans, have been checked. */
typedef struct tn_work {
  tn_work_kind kind;
  void *program; /**< EXEC: the backend's program */
  /** EXEC: numbers of work groups, computed by the program's own expressions: positive; 1 along
      unused dimensions. With core_id, global[0] is the number of workers. */
  int64_t global[3];
  int64_t local[3];        /**< EXEC: sizes of a group; local[0] is 0: absent, ids are direct */
  const tn_launch *launch; /**< EXEC */
  tn_span to;              /**< COPY, FILL, WRITE */
  tn_span from;            /**< COPY, READ */
  void *host;              /**< READ: receives from.bytes bytes; WRITE: holds to.bytes bytes */
  uint8_t fill;            /**< FILL */
} tn_work;

/** Ordered streams of work, and one-shot marks in them. All that was handed to a stream completes
    without further calls. Functions on one stream are called by one thread at a time. */
typedef struct tn_stream_functions {
  size_t size;
  /** Opens a stream. TN_ERR_UNSUPPORTED if there is none of this kind; COPY streams get no EXEC. */
  tn_status (*open)(void *device, tn_queue_kind kind, void **stream, tn_failure *failure);
  /** Waits for what the stream still does, and frees it. */
  void (*free)(void *stream);
  /** Hands over works, which run in order, each after the end of those before. Copies what the
     works point to, except host memory and the memory of spans. May wait for room, never for
     completion. On a failure any number of the works may still run. */
  tn_status (*enqueue)(void *stream, const tn_work works[], size_t n, tn_failure *failure);
  /** Makes a mark, which is done when all works before it are. `timed`: `time` will be called. */
  tn_status (*mark)(void *stream, bool timed, void **mark, tn_failure *failure);
  /** Works handed over from now on begin after `mark`, which may be of a stream of any device of
      the backend. Never waits itself. */
  tn_status (*await)(void *stream, void *mark, tn_failure *failure);
  /** Waits until a mark is done, at most `timeout_ns` nanoseconds (negative: no limit), then
      TN_ERR_TIMEOUT. TN_ERR_DEVICE if its device was lost. Any thread, several at once. */
  tn_status (*sync)(void *mark, int64_t timeout_ns, tn_failure *failure);
  /** Returns when a timed mark was done, in nanoseconds of the device's clock. */
  int64_t (*time)(void *mark);
  /** Frees a mark, which need not be done, and may be awaited by streams. Any thread. */
  void (*mark_free)(void *mark);
} tn_stream_functions;

/** Two works of a graph, by number, `before` < `after`: the latter begins after the end of the
    former. */
typedef struct tn_work_edge {
  size_t before, after;
} tn_work_edge;

/** Graphs of works: what runs again and again as one piece, which costs a device less than to take
    over each work. Works are EXEC. Functions on one graph are called by one thread at a time. */
typedef struct tn_graph_functions {
  size_t size;
  /** Makes a graph, and copies what the works point to. Works that no edges order may run at once.
      On a failure the library hands over the works one by one. */
  tn_status (*make)(void *device, const tn_work works[], size_t n, const tn_work_edge edges[],
                    size_t n_edges, void **graph, tn_failure *failure);
  /** Replaces the `i`-th work for later runs, not for those that a stream was given. The program
      and the numbers of buffers and values are as before. On a failure the graph is freed. */
  tn_status (*set)(void *graph, size_t i, const tn_work *work, tn_failure *failure);
  /** Hands a run over to a stream of the device, as `enqueue` does works: it begins after the end
      of what was handed over before. A failure other than TN_ERR_DEVICE says that no work of it was
      handed over: the graph is freed, and its works are handed over one by one from then on. */
  tn_status (*run)(void *stream, void *graph, tn_failure *failure);
  /** Frees a graph. Runs that a stream was given go on. */
  void (*free)(void *graph);
} tn_graph_functions;

/* ---- Backends ---- */

struct tn_backend {
  size_t size;
  const char *name;     /**< name of its devices before the colon: "OPENCL" of "OPENCL:1" */
  const tn_pair *pairs; /**< the default is the first one that is present */
  size_t n_pairs;

  /** Optional: returns the number of devices to list. Default: 1. */
  int32_t (*count)(void);
  /** Optional: describes a device (*bytes: size of its memory, 0: unknown), or fails with the
      reason why it cannot be used. Default: usable, without a description. */
  tn_status (*probe)(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *failure);
  /** Opens a device; called once for each. `host` is valid as long as the device. */
  tn_status (*open)(int32_t index, const tn_host *host, void **device, tn_failure *failure);
  /** Closes a device; called when nothing on it is in use. */
  void (*close)(void *device);

  /** Allocates `bytes` > 0 uninitialised bytes, aligned for every type and vector. STAGING is asked
      for only where `host` does not give the address of the device's other memory; the library then
      counts both against `memory_limit` of tn_open_desc, whether they are of tn_host's allocator,
      which counts itself, or not. */
  tn_status (*alloc)(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                     tn_failure *failure);
  void (*free)(void *device, void *memory, uint64_t bytes);
  /** Returns the address at which the host can access memory, or NULL if it cannot; that of staging
      memory always. */
  void *(*host)(void *device, void *memory);
  /** Optional: tells whether a device can copy from and to the memory of another device of the
      backend. Default: TN_PEER_NONE, and data goes through the host. */
  tn_peer (*peer)(void *device, void *other);
  /** Optional: makes host memory, not NULL, the device's, like `alloc`; `free` is not called for
     it. A device that has memory of its own fails with TN_ERR_UNSUPPORTED, and data is copied.
     Default: unsupported. */
  tn_status (*import)(void *device, void *data, uint64_t bytes, void **memory, tn_failure *failure);
  /** Optional: ends what `import` began, when nothing uses the memory. Default: nothing is done. */
  void (*import_end)(void *device, void *memory);

  /** Makes code ready to run on a device; the code may be freed afterwards. */
  tn_status (*load)(void *device, const tn_code *code, void **module, tn_failure *failure);
  /** Unloads a module; called when none of its programs is in use. */
  void (*unload)(void *module);
  /** Returns a program of a module. */
  tn_status (*program)(void *module, const tn_program_facts *facts, void **program,
                       tn_failure *failure);
  void (*program_free)(void *program);
  /** Runs one work and returns when it is done; for a backend without streams. Called by any number
      of threads at once, on the same program too; where `host` gives the address of memory, with
      EXEC only. */
  tn_status (*execute)(void *device, const tn_work *work, tn_failure *failure);

  /** Optional: streams. Default: one of the library's threads for each queue, or the caller's, runs
      works by `execute`; compute and copy queues alike. */
  const tn_stream_functions *streams;

  /** Optional: the library of products. Default: none. */
  const tn_product_library *products;

  /** Optional, with streams: graphs of works. Default: works are handed over one by one. */
  const tn_graph_functions *graphs;
};

#ifdef __cplusplus
}
#endif
#endif
