/* The record of a context, and how public functions enter it.

   A public function acquires the context (context_acquire_valid), works under its diag, reports its
   failure (context_fail) and releases the context. Plans, models and bindings work concurrently
   with such calls, on any thread (context_begin_concurrent): they use fields that no longer change,
   and under `lock` the context's messages, its lists of objects and the memory of states. Both ways
   of entry refuse a thread that would wait for itself. */
#ifndef TENON_TENSOR_CONTEXT_CONTEXT_H
#define TENON_TENSOR_CONTEXT_CONTEXT_H

#include "base/hash_table.h"
#include "base/memory_limit.h"
#include "base/reentrancy.h"
#include "base/thread.h"
#include "compile/disk_cache.h"
#include "compile/tuned_store.h"
#include "device/core/device.h"
#include "device/queue/queue_pool.h"
#include "device/registry/device_registry.h"
#include "ir/core/node_device.h"
#include "ir/text/dump_after_pass.h"
#include "tensor/context/builder.h"
#include "tensor/context/callbacks.h"
#include "tensor/context/context_lock.h"

#include <stdatomic.h>
#include <tenon/plan.h>

typedef struct scope scope;
typedef struct state_record state_record;
typedef struct graph_input graph_input;
typedef struct executable_cache executable_cache;
typedef struct background_jobs background_jobs;

/** The cause of an invalid tensor, shared by all tensors that were built from it. */
typedef struct failure {
  size_t count; /* references */
  tn_status status;
  uint64_t serial;  /* older failures have smaller ones */
  const char *text; /* message */
  size_t quoted;    /* where the earlier message begins that ends `text`; 0: there is none */
  uint64_t label;   /* number of the label that ends `text`; 0: none does */
  size_t bytes;     /* of the record and its text; 0: part of the context */
} failure;

/** A message as callers see it. */
typedef struct message {
  size_t quoted; /* as in `failure` */
  char text[DIAG_TEXT_BYTES];
} message;

/** The message of a thread that failed in concurrent work. Only that thread changes it. */
typedef struct thread_message {
  struct thread_message *next;
  pthread_t thread;
  uint64_t number; /* thread_number: a new thread may have the pthread_t of one that ended */
  bool is_newest;  /* no call on the context has failed since */
  message message;
} thread_message;

/** Graph inputs by number (state/graph_input.h). */
typedef struct graph_input_table {
  graph_input *at;
  size_t n, cap;
  size_t free; /* index of the first free one, plus 1; 0: none */
} graph_input_table;

/** Symbolic sizes (symbolic_dims.h). */
typedef struct dim_table {
  struct dim_entry **at; /* by index */
  size_t n, cap;
  struct dim_entry *free; /* list of free entries */
  hash_table known;       /* entries by their node, name or failure */
  uint64_t n_made;        /* entries made so far */
} dim_table;

/** An object of another layer that is destroyed with the context at the latest. */
typedef struct attachment attachment;
struct attachment {
  attachment *next, **link;
  void (*destroy)(attachment *a); /* called detached, when the context closes */
};

typedef struct handle_list {
  tn_tensor *first;
} handle_list;

struct scope {
  scope *outer;                  /* NULL: the context itself */
  handle_list tensors;           /* tensors that the scope owns */
  handle_list escaping;          /* tensors that outlive the scope and are realised when it ends */
  failure *first_failure;        /* returned by tn_scope_end */
  failure *first_assign_failure; /* of assigns that failed, until it is returned */
  struct dim_entry *sizes;       /* symbolic sizes that the scope owns */
};

/** The scopes that were open when the body of a loop began, which the body may not end. */
typedef struct scope_floor {
  scope *innermost;
  size_t n_unallocated; /* scopes without memory, inside of the innermost */
} scope_floor;

/** Threads inside of a context. */
typedef struct context_entry {
  context_lock lock;           /* held by one call or run at a time */
  reentrancy_list visits;      /* of all threads */
  reentrancy_entry holder;     /* of the thread that holds `lock` */
  bool is_run;                 /* a binding's run holds `lock`: failures are that thread's alone */
  bool is_closing;             /* memory of freed handles is kept until the end */
  atomic_size_t n_concurrent;  /* calls on plans, models and bindings that are under way */
  atomic_size_t n_loop_bodies; /* loop bodies that are being built, each inside of the one before */
  atomic_size_t n_branches;    /* likewise, branches of tn_cond */
} context_entry;

/** Failures and messages. */
typedef struct context_failures {
  failure no_memory; /* reported where there is no memory for a failure */
  failure busy;      /* of handles.busy */
  failure *of_open;  /* the reason why the context is broken since it was opened; NULL: it is not */
  failure *last;     /* the one that was reported last */
  uint64_t n_made;   /* failures made so far */
  size_t n_assign;   /* scopes that keep the failure of an assign */
  char *label;       /* of tn_label; NULL: none */
  uint64_t label_number; /* of `label`: another text has another one */
  uint64_t n_labels;     /* numbers given so far */
  uint64_t raised_label; /* `label` of the failure that the call raised again; 0: none */
  /* Under the context's `lock`: */
  message message;                 /* of the last call on the context that failed */
  thread_message *of_threads;      /* list of the messages of threads */
  thread_message first_of_threads; /* the first one, which needs no memory */
  bool is_first_used;              /* `first_of_threads` is in the list */
} context_failures;

/** Strings and numbers of the descriptor that the context was opened with; NULL: not set. */
typedef struct context_options {
  char *device_name;
  char *pair;             /* renderer and compiler */
  char *cpu;              /* processor level that code is limited to */
  char *dump_text;        /* dump_after_pass.h */
  char *compiler_name;    /* path or name of the C compiler */
  int32_t threads;        /* 0: all cores */
  double compile_seconds; /* 0: no limit */
  library_use libraries;  /* of devices, which kernels may be calls of */
} context_options;

/** Knowledge about devices and the host. */
typedef struct context_devices {
  bool owns_registry;            /* the registry is not a shared one */
  tn_kernel_cache *cache;        /* of the caller, whose registry it is; NULL: none */
  device_description *described; /* devices that tn_device_get returned */
  struct host_facts *host_facts; /* processor and compilers; NULL: not needed yet */
  /* Of devices 1 …, which tn_to named; a plan may be compiled meanwhile. */
  const device_target *targets[IR_MAX_DEVICES - 1];
  atomic_size_t n_targets;
} context_devices;

/** Dumps, log lines and traces. */
typedef struct context_reports {
  mutex lock; /* held while dumps are written, lines logged, progress and spans reported */
  dump dump;
  tn_logger logger; /* calls the caller's */
  tn_tracer tracer; /* likewise */
} context_reports;

/** Open scopes. */
typedef struct scope_stack {
  scope root;           /* the context itself */
  scope *innermost;     /* the scope of new tensors */
  scope_floor floor;    /* scopes that may not be ended now */
  size_t n_unallocated; /* scopes without memory, inside of the innermost */
} scope_stack;

/** Handles that no scope owns. */
typedef struct context_handles {
  handle_list owned;
  struct tn_tensor *no_memory; /* invalid: returned where there is no memory for a handle */
  struct tn_tensor *busy;      /* invalid: returned while another call holds the context */
  /* Freed handles, oldest first, whose memory is kept so that their use is reported. */
  tn_tensor *freed_first, *freed_last;
  size_t n_freed;
  _Atomic(tn_tensor *) deferred; /* handles that were released while the context was in use */
  void (*release_deferred)(tn_context *c); /* carries these out, as each call begins and ends */
} context_handles;

/** Lists of states. */
typedef struct state_lists {
  state_record *pending;       /* states whose contents are not those of the newest version */
  state_record **pending_end;  /* end of that list */
  state_record *copy_on_write; /* states whose contents are read later */
} state_lists;

/** The stream of random numbers. */
typedef struct random_stream {
  uint64_t seed, n_calls; /* since the seed was set */
} random_stream;

struct tn_context {
  mem mem;
  memory_limit limit; /* of `mem`, where there is one */
  diag diag;          /* of the call at hand, and the ir's */
  arena arena;        /* of the call at hand */
  ir *ir;
  context_entry entry;
  context_failures failures;

  registry *registry; /* of devices */
  context_devices devices;
  tn_device *device;
  const device_target *target;
  queue_pool queues;  /* for the context's own plans */
  disk_cache *disk;   /* NULL: no disk cache */
  tuned_store *tuned; /* NULL: no tuned schedules */
  context_options options;
  tn_math math;

  context_reports reports;
  struct explanation *_Atomic explanation; /* to be filled by the next plan that is compiled */
  atomic_uint_least64_t explaining_thread; /* thread_number of the thread that compiles it */
  callbacks callbacks;                     /* the caller's */
  tn_workers workers;                      /* calls the caller's, as `mem` calls the allocator */
  tn_progress progress;                    /* calls the caller's */

  scope_stack scopes;
  context_handles handles;
  graph_input_table graph_inputs;
  hash_table computed_values; /* nodes whose value is in a BUFFER */
  dim_table dims;
  state_lists states;
  executable_cache *executables;       /* compiled by realising */
  background_jobs *_Atomic background; /* NULL until the first */
  random_stream random;

  mutex lock; /* of messages, of the lists below, and of the memory and turns of states. No callback
                 is called under it */
  attachment *attachments;
  tn_plan *plans;
  tn_binding *bindings;
};

/** Acquires the context for a call. TN_ERR_ARGUMENT for NULL; TN_ERR_BUSY, without any effect,
    while another call holds it or inside of a callback. */
tn_status context_acquire(tn_context *c);

/** As context_acquire; returns the failure of a broken context, reported, with the context released
    again. */
tn_status context_acquire_valid(tn_context *c);

/** Acquires the context if it is free and no run waits for it. Never waits; calls of other threads
    wait meanwhile. */
bool context_try_acquire(tn_context *c);

/** Acquires the context for a run of a binding, and waits for calls. TN_ERR_BUSY inside of a
    callback. */
tn_status context_acquire_for_run(tn_context *c);

/** Acquires the context again for a call that released it in between, and waits for others.
    TN_ERR_BUSY inside of a callback. */
tn_status context_reacquire(tn_context *c);

/** Frees nodes that nothing holds and the arena of the call, and releases the context. */
void context_release(tn_context *c);

/** Begins and ends a call on a plan, a model or a binding, during which the context cannot be
    closed. TN_ERR_BUSY, without any effect, if the thread is inside of the context in a kind above
    `most`. Any thread. */
tn_status context_begin_concurrent(tn_context *c, reentrancy_kind most);
void context_end_concurrent(tn_context *c);

/** Reports the failure in the context's diag, with `op` (NULL: none), operands and the label: the
    failure becomes the message, and the scope's first. Returns the status. */
tn_status context_fail(tn_context *c, const char *op, tn_tensor *const in[], size_t n);

/** As context_fail, for a call that neither builds nor reads a node, so no label is about it. */
tn_status context_fail_call(tn_context *c, const char *op);

/** Reports that operand `i` is NULL, and quotes the message before it, which may be the cause. */
tn_status context_fail_null_operand(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                                    size_t i);

/** Raises a failure again, in a call that adds to its message: what is reported then has its label
    once. */
_Noreturn void context_raise_again(tn_context *c, diag *d, const failure *f);

/** Reports the failure of an operand again. */
tn_status context_report_again(tn_context *c, failure *f);

/** The failure that was reported last, retained for the caller. */
failure *context_last_failure(tn_context *c);

/** Makes a failure of concurrent work the calling thread's message; returns its status. Any thread.
    Without memory for the first failure of a thread, its message stays as it is. */
tn_status context_set_thread_message(tn_context *c, const diag *d);

/** Frees the messages of threads when the context closes. */
void context_free_messages(tn_context *c);

/** Keeps the failure of an assign for the call that next runs or compiles the assigns of the
    innermost scope, which returns it. */
void context_keep_assign_failure(tn_context *c, failure *f);

/** Forgets the failure that a scope keeps. */
void context_drop_assign_failure(tn_context *c, scope *s);

/** Moves the oldest kept failure of an assign into `f`, and forgets all; TN_OK if there is none. */
tn_status context_take_assign_failures(tn_context *c, tn_failure *f);

/** Releases the failure of an operand that a call returns, and returns its status; scopes no longer
    keep it. */
tn_status context_return_failure(tn_context *c, failure *f);

failure *failure_retain(failure *f);
void failure_release(tn_context *c, failure *f); /* NULL is allowed */

/** The device that a tensor is on; the context's own for what is anybody's. */
tn_device *context_device_of(const tn_context *c, const node *n);

/** Writes a line to the logger. */
void context_log(tn_context *c, tn_log_level level, const char *format, ...) BASE_PRINTF(3, 4);

/** Hands a copy that the host did from `begin` until now to the tracer, if there is one: "copy of
    WHAT NAME". */
void context_trace_copy(tn_context *c, int64_t begin, const char *what, const char *name);

/** Attaches an object to the context, and detaches it. Any thread. */
void context_attach(tn_context *c, attachment *a);
void context_detach(tn_context *c, attachment *a);

/** A builder for the call at hand. */
builder context_builder(tn_context *c);

/** Counts a random call, and returns the number of calls before it since the seed was set; *seed is
    the seed. b->context is not NULL. */
uint64_t context_next_random(builder *b, uint64_t *seed);

#endif
