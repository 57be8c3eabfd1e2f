/* Declares the interface of a backend, the plug-in that runs programs on one kind of device.
   Nothing under unstable/ is promised to stay.

   A backend is one constant struct of functions. A member that is marked optional may be NULL; its
   comment says what happens then. Functions are called from several threads at once unless said
   otherwise; one that returns a status explains a failure with tn_fail. Programs come to a backend
   in these steps, each of which it takes part in through a pair of renderer and compiler:

     SINK --> LINEAR --render--> SOURCE --compile--> BINARY --load--> module --program--> program

   A kernel is looked up before the first of them by what decides all that follows: its graph, the
   target with its capabilities, renderer, compiler and the compiler's key. */
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

typedef struct tn_backend tn_backend;

/** Makes a backend known to a context, and to those that share its devices, for the rest of the
    process. TN_ERR_ARGUMENT for a backend that is not complete, or whose name is taken. */
TN_API tn_status tn_backend_add(tn_context *context, const tn_backend *backend);

/** Bytes that a function makes. */
typedef struct tn_output tn_output;

/** Appends bytes. Running out of memory is told to the output's owner, not here. */
TN_API void tn_output_add(tn_output *output, const void *data, size_t bytes);

/** Services of the library that a device may use as long as it is open. */
typedef struct tn_host {
  size_t size;
  tn_allocator allocator; /**< for all host memory; its `destroy` is not the backend's to call */
  tn_workers workers;     /**< for work on the host; the caller's thread takes part */
  int32_t threads;        /**< how many tasks `workers` runs at once */
} tn_host;

/* ---- Renderers and compilers ---- */

/** The hardware that programs run on, for choices that only speed depends on. 0: not known. */
typedef struct tn_hardware {
  uint64_t l1_bytes;   /**< of a core's first cache, the one for data */
  uint64_t l2_bytes;   /**< of its second one, or of its share of that */
  uint64_t l3_bytes;   /**< of a last cache */
  uint32_t l3_cores;   /**< that share one */
  uint32_t line_bytes; /**< of memory that goes into a cache at once */
  uint32_t page_bytes; /**< of memory that has an entry in the table of addresses */
  uint32_t cores;      /**< of the machine, however many are used */
} tn_hardware;

/** Capabilities of a target, as programs may use them. */
typedef struct tn_capabilities {
  size_t size;
  char target[64];          /**< names what code is made for ("x86-64-v3"); in every cache key */
  uint32_t vector_bytes;    /**< the widest vector; 0: scalars only */
  uint32_t registers;       /**< of that width; 0: not known, and none are filled on purpose */
  bool threads;             /**< a kernel may be cut along the SPECIAL core_id */
  bool index32;             /**< 32-bit indices are the cheaper ones */
  uint32_t max_buffers;     /**< that a kernel may have; 0: any number */
  uint64_t max_scratch;     /**< bytes of arrays that a kernel may have of its own; 0: any number */
  bool scratch_buffer;      /**< a launch brings the memory of these, in a buffer more */
  uint64_t dtypes;          /**< set of 1 << tn_dtype */
  const char *const *lacks; /**< names of ops without an instruction, up to NULL; static; NULL:
                               none. They do not come in programs */
  tn_hardware hardware;
} tn_capabilities;

/** A variable of a program, and its bounds, inclusive. */
typedef struct tn_program_var {
  const char *name;
  int64_t min, max;
} tn_program_var;

/** All that is known of a program before it is compiled; derived from its node. */
typedef struct tn_program_spec {
  size_t size;
  const char *name;   /**< for people */
  const char *entry;  /**< of its function in the source: an identifier of its own */
  const char *device; /**< the backend's name */
  const char *source; /**< "" until it is rendered */
  size_t source_bytes;
  tn_node ast;                /**< PROGRAM(SINK, DEVICE, LINEAR) */
  tn_node global[3];          /**< expressions over variables */
  tn_node local[3];           /**< NULL: absent; then the global ids are direct */
  const tn_program_var *vars; /**< VARs by name */
  size_t n_vars;
  const char *const *value_names; /**< names of a launch's values, sorted: VARs and core_id */
  size_t n_values;
  const int64_t *globals, *outs, *ins; /**< slots of PARAMs: all, stored to, loaded from; sorted */
  size_t n_globals, n_outs, n_ins;     /**< a launch has a buffer for each of the globals, */
  uint64_t scratch; /**< and where this is not 0 a last one, of so many bytes for each worker */
  int64_t core_id;  /**< which value is the worker's number; -1: it runs as one worker */
} tn_program_spec;

/** Makes source text of programs. */
typedef struct tn_renderer {
  size_t size;
  const char *name; /**< "c" */
  /** Fills in the capabilities (size is set, the rest zero) of a device. `limit`: use no more than
      this, as in tn_open_desc's `cpu`; NULL: all there is. */
  tn_status (*describe)(void *device, const char *limit, tn_capabilities *caps,
                        tn_failure *failure);
  /** Optional: a node's replacement by ops that the target has, NULL: leave it. Called with the
      nodes of a kernel before it is made linear, sources first, and before the library's own
      decompositions. Default: those alone. */
  tn_node (*decompose)(const tn_capabilities *caps, tn_ir *ir, tn_node node);
  /** Writes the source of a program, not empty. TN_ERR_UNSUPPORTED where its device has no such
      launches: ids of groups, say. */
  tn_status (*render)(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                      tn_output *source, tn_failure *failure);
} tn_renderer;

typedef enum tn_code_kind {
  TN_CODE_BYTES = 0,  /**< compiled ahead of time */
  TN_CODE_SOURCE = 1, /**< text that is compiled when it is loaded */
  TN_CODE_KIND_MAX_ENUM = 0x7fffffff
} tn_code_kind;

/** Makes code of sources. */
typedef struct tn_compiler {
  size_t size;
  const char *name; /**< "cc" */
  tn_code_kind kind;
  size_t most; /**< programs that one call takes; 0: any number */
  /** Optional: finds the compiler of a name, as in tn_open_desc's `compiler` (NULL: not said; one
      that has no choice takes any). Default: `compiler` is NULL below. Called once for a device and
      name, before the first compile. */
  tn_status (*open)(void *device, const tn_host *host, const char *name, void **compiler,
                    tn_failure *failure);
  void (*close)(void *compiler); /**< optional: nothing to close */
  /** Writes a text that identifies the compiler: name, version, and the flags for `caps`; and, if
      its code is `lasting`, whatever else of the backend decides what kernels become. */
  tn_status (*key)(void *compiler, const tn_capabilities *caps, tn_output *key,
                   tn_failure *failure);
  /** Writes the code of `n` programs, whose entries differ, in one piece, not empty. May look at
     nodes, but may call nothing on their tn_ir: several threads may be compiling its programs. */
  tn_status (*compile)(void *compiler, const tn_capabilities *caps,
                       const tn_program_spec *const specs[], size_t n, tn_output *code,
                       tn_failure *failure);
  /** Code means the same in another process: it is kept on disk, and found there by later ones. */
  bool lasting;
  /** Optional: writes a text that changes whenever what `key` writes for the compiler of a name may
      change, without starting or loading anything: where its files are, their sizes and times. If
      all kernels are found on disk, `open` is then not called. Default: it is opened and asked. */
  tn_status (*stamp)(void *device, const char *name, tn_output *stamp, tn_failure *failure);
} tn_compiler;

typedef struct tn_pair {
  const tn_renderer *renderer;
  const tn_compiler *compiler;
} tn_pair;

/** A compiled spec: code for one or more programs. */
typedef struct tn_code {
  tn_code_kind kind;
  const void *data; /**< ends in a NUL that is not counted */
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

/* ---- Signals ---- */

/** A backend's own signals. What each does stands at the function tn_signal_… of its name. */
typedef struct tn_signal_functions {
  size_t size;
  tn_status (*open)(void *device, uint64_t value, void **signal, tn_failure *failure);
  void (*free)(void *signal);
  uint64_t (*get)(void *signal);
  void (*set)(void *signal, uint64_t value);
  void (*fail)(void *signal, uint64_t value, tn_status status, const char *text);
  tn_status (*wait)(void *signal, uint64_t value, int64_t timeout_ns, tn_failure *failure);
} tn_signal_functions;

/** The backend's own signal behind a tn_signal; NULL if it is another backend's. */
TN_API void *tn_signal_native(const tn_signal *signal, const tn_backend *backend);

/* ---- Queues ---- */

typedef enum tn_command_kind {
  TN_COMMAND_WAIT = 1,
  TN_COMMAND_SIGNAL = 2,
  TN_COMMAND_EXEC = 3,
  TN_COMMAND_COPY = 4,
  TN_COMMAND_CALL = 5,
  TN_COMMAND_BARRIER = 6,
  TN_COMMAND_STAMP = 7,
  TN_COMMAND_KIND_MAX_ENUM = 0x7fffffff
} tn_command_kind;

/** A command of a list. */
typedef struct tn_command {
  tn_command_kind kind;
  tn_signal *signal;        /**< WAIT, SIGNAL */
  uint64_t value;           /**< WAIT, SIGNAL: where value_at is NULL */
  const uint64_t *value_at; /**< WAIT, SIGNAL: read when the command runs */
  tn_program *owner;        /**< EXEC: whose `program` it is */
  void *program;            /**< EXEC: the backend's own */
  const tn_launch *launch;  /**< EXEC */
  const tn_span *to, *from; /**< COPY */
  tn_status (*call)(void *user, tn_failure *failure); /**< CALL */
  void *user;                                         /**< CALL */
  int64_t *stamp; /**< STAMP: gets the time when the commands before are done */
} tn_command;

/** A list on its way through a queue. A backend copies the struct, and calls tn_submission_done
    with the copy exactly once. */
typedef struct tn_submission {
  const tn_command *commands;
  size_t n_commands;
  tn_queue *queue;
  tn_commands *list;
  uint64_t number; /**< submissions of a queue are numbered from 1 */
} tn_submission;

/** To be called before a list is run: TN_OK, or a failure, where the list may not run; its signals
    have then failed, and tn_submission_done is all that is left to do. */
TN_API tn_status tn_submission_begin(const tn_submission *submission, tn_failure *failure);

/** Runs one command on the calling thread by the backend's `execute` and the functions of queue.h.
    A wait ends with TN_ERR_CANCELLED when the queue is freed. */
TN_API tn_status tn_submission_run(const tn_submission *submission, size_t command,
                                   tn_failure *failure);

/** Says that a command failed: the signals after it fail, and what is to be known of it is kept.
    The commands after it must not be run. */
TN_API void tn_submission_fail(const tn_submission *submission, size_t command,
                               const tn_failure *failure);

/** Says that the queue does not need the list any more. */
TN_API void tn_submission_done(const tn_submission *submission);

/** A backend's own queues. */
typedef struct tn_queue_functions {
  size_t size;
  /** TN_ERR_UNSUPPORTED if there is none of that kind. */
  tn_status (*open)(void *device, tn_queue_kind kind, void **queue, tn_failure *failure);
  /** Returns when all submissions are done; those that begin from now on, and waits, come to an end
      at once by the functions above. */
  void (*free)(void *queue);
  /** Takes a list to be run after those before it. Called by one thread at a time. */
  tn_status (*submit)(void *queue, const tn_submission *submission, tn_failure *failure);
  /** Optional: for a caller that is going to wait. If nothing is left to run, returns true, and the
      queue runs nothing until `leave` is called: meanwhile the caller runs a list on its own
     thread. Default: the list is submitted. */
  bool (*enter)(void *queue);
  void (*leave)(void *queue);
} tn_queue_functions;

/* ---- Backends ---- */

struct tn_backend {
  size_t size;
  const char *name;     /**< base key of its devices' names: "CUDA" of "CUDA:1" */
  const tn_pair *pairs; /**< the first one is the one that is used unless told otherwise */
  size_t n_pairs;

  /** Optional: how many devices there are to be shown. Default: 1. */
  int32_t (*count)(void);
  /** Optional: says what a device is (*bytes: of its memory, 0: not known), or why it cannot be
     used. Default: it can, and nothing is known of it. */
  tn_status (*probe)(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *failure);
  /** Called once a device. `host` stays as long as the device. */
  tn_status (*open)(int32_t index, const tn_host *host, void **device, tn_failure *failure);
  /** Called when nothing of the device is in use. */
  void (*close)(void *device);

  /** `bytes` > 0 bytes of memory, not cleared, aligned for every type and vector. */
  tn_status (*alloc)(void *device, uint64_t bytes, void **memory, tn_failure *failure);
  void (*free)(void *device, void *memory, uint64_t bytes);
  /** Optional: where the host sees the memory. Default: it does not, and `read` and `write` are
      there; else these two are not used. */
  void *(*host)(void *device, void *memory);
  tn_status (*read)(void *device, void *to, void *memory, uint64_t offset, uint64_t bytes,
                    tn_failure *failure);
  tn_status (*write)(void *device, void *memory, uint64_t offset, const void *from, uint64_t bytes,
                     tn_failure *failure);
  /** Optional: makes host memory the device's, as `alloc` does; `free` is not called for it.
     Default: it cannot. */
  tn_status (*import)(void *device, void *data, uint64_t bytes, void **memory, tn_failure *failure);

  /** Makes code ready to run on a device; it is not needed afterwards. */
  tn_status (*load)(void *device, const tn_code *code, void **module, tn_failure *failure);
  /** Called when none of its programs is in use. */
  void (*unload)(void *module);
  tn_status (*program)(void *module, const tn_program_facts *facts, void **program,
                       tn_failure *failure);
  void (*program_free)(void *program);
  /** Runs a program and returns when it is done. Any number of threads at once, on one program too.
      `global` and `local` (NULL: absent, ids are direct) are the launch's sizes, computed from its
      values by the program's own expressions: positive; with core_id, global[0] is how many workers
      there are, and else 1 along whatever it has no ids for. Numbers of buffers and values have
     been checked. */
  tn_status (*execute)(void *program, const tn_launch *launch, const int64_t global[3],
                       const int64_t *local, tn_failure *failure);

  /** Optional: own queues. Default: a thread of the library's runs the commands by `execute`,
     `read` and `write`; compute and copy queues alike. */
  const tn_queue_functions *queue;
  /** Optional: own signals. Default: the library's. */
  const tn_signal_functions *signal;
};

#ifdef __cplusplus
}
#endif
#endif
