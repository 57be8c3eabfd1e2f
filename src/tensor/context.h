/* The inside of a context, and how public functions enter it.

   A public function takes the context (context_enter), works under its diag, reports what went
   wrong (context_fail) and leaves it. Plans, models and bindings are used beside it, from any
   thread (context_begin_beside): of the context they touch what does not change any more, and under
   `lock` its message, its lists and what states share. Both refuse a thread that would wait for
   itself. */
#ifndef TENON_TENSOR_CONTEXT_H
#define TENON_TENSOR_CONTEXT_H

#include "base/intern.h"
#include "base/thread.h"
#include "base/visit.h"
#include "device/queue.h"
#include "ir/dump.h"
#include "tensor/callbacks.h"
#include "tensor/gate.h"
#include "tensor/tensor.h"

#include <stdatomic.h>
#include <tenon/plan.h>

typedef struct scope scope;
typedef struct cell cell;
typedef struct leaf leaf;
typedef struct executable_cache executable_cache;

/** Why a tensor is invalid: shared by all that were built from it. */
typedef struct failure {
  size_t count;
  tn_status status;
  uint64_t serial; /* the smaller, the older */
  const char *text;
  size_t bytes; /* allocated with it; 0: it is part of the context */
} failure;

/** Tensors' data and other things that nodes name by number (leaf.h). */
typedef struct leaf_table {
  leaf *at;
  size_t n, cap;
  size_t free; /* the first free one + 1 */
} leaf_table;

/** Sizes that are no numbers (dims.h). */
typedef struct dim_table {
  struct dim_entry **at; /* by place */
  size_t n, cap;
  struct dim_entry *free;
  intern_table known;
  uint64_t made; /* so far */
} dim_table;

/** Something of another folder that goes with the context at the latest. */
typedef struct attachment attachment;
struct attachment {
  attachment *next, **link;
  void (*destroy)(attachment *a); /* called detached, when the context closes */
};

/** What the scopes of a context share. */
typedef struct handle_list {
  tn_tensor *first;
} handle_list;

struct scope {
  scope *outer; /* NULL: the context itself */
  handle_list tensors;
  handle_list leaving; /* tensors that live on and are realised when it ends */
  failure *first;      /* of its failures */
  failure *refused;    /* the first of its assigns that could not be made, until it is returned */
  struct dim_entry *sizes;
};

/** Scopes that the body of a loop found open, which it may not end. */
typedef struct scope_floor {
  scope *innermost;
  size_t lost; /* inside of it */
} scope_floor;

struct tn_context {
  mem mem;
  diag diag;   /* of the call at hand, and the ir's */
  arena arena; /* of the call at hand */
  gate gate;
  visits visits;
  visit inside; /* of the thread in the gate */
  ir *ir;
  failure no_memory; /* given out where there is no memory for another */
  failure was_busy;  /* of `busy` */
  failure *broken;   /* what is wrong with the context itself; NULL: nothing */
  failure *told;     /* the last one */
  uint64_t failures; /* so far */

  table *table;
  bool own_table;
  device_facts *told_of; /* what tn_device_get gave */
  tn_device *device;
  const device_target *target;
  tn_queue *queue; /* NULL until something is run */
  disk *disk;      /* NULL: kernels are not kept there */
  char *device_name, *pair, *cpu, *dump_text;
  int32_t threads;
  tn_math math;
  mutex reports; /* held while dumps are written, remarks logged and progress told */
  dump dump;
  struct explanation *explanation; /* of the plan that is compiled next; NULL: nobody asks */
  callbacks given;
  tn_workers workers; /* as the library calls those that are given; of the allocator it is `mem` */
  tn_logger logger;
  tn_progress progress;

  scope root, *scope; /* the outermost and the innermost */
  size_t n_refused;   /* scopes that keep the failure of an assign */
  size_t lost_scopes; /* begun without memory, inside of the innermost */
  scope_floor floor;
  handle_list owned;
  /* Invalid tensors that nobody owns: one stands for want of memory, one for all that was to be
     built while another call had the context. */
  struct tn_tensor *nobody, *busy;
  tn_tensor *dead_first, *dead_last;
  size_t dead; /* freed handles that are kept, so that their use is told */
  char *label;

  leaf_table leaves;
  intern_table realised; /* nodes whose value is in a BUFFER */
  dim_table dims;
  cell *pending, **pending_end;  /* states that are not as their newest version says */
  cell *lent;                    /* states whose contents something reads later */
  executable_cache *executables; /* what was compiled by realising */
  uint64_t seed, random_calls;
  atomic_size_t bodies; /* of loops that are being built, each inside of the one before */

  mutex lock;   /* of what follows, and of the states' memory and turns */
  diag message; /* the last failure */
  attachment *attachments;
  tn_plan *plans;
  tn_binding *bindings;
  atomic_size_t beside; /* calls on plans, models and bindings that are under way */
};

/** Takes the context. TN_ERR_ARGUMENT for NULL and TN_ERR_BUSY while another call has it or inside
    a callback: then nothing was touched. */
tn_status context_take(tn_context *c);

/** The same; and the failure of a context that is broken, told, with the context left again. */
tn_status context_enter(tn_context *c);

/** Takes it for a run of a binding, which waits for calls. TN_ERR_BUSY inside a callback. */
tn_status context_take_for_run(tn_context *c);

/** Around a call on a plan, a model or a binding, which is beside the context: until it has ended
   the context is not closed. TN_ERR_BUSY, and nothing has begun, where the thread is in more of the
   context than `most`. Any thread. */
tn_status context_begin_beside(tn_context *c, visit_kind most);
void context_end_beside(tn_context *c);

/** Frees what the call left behind, and lets others in. */
void context_leave(tn_context *c);

/** Tells the failure that is in the context's diag: `op` (NULL: none), operands and the label go
    with it. It becomes the message, and the scope's first. Returns the status. */
tn_status context_fail(tn_context *c, const char *op, tn_tensor *const in[], size_t n);

/** Tells that operand `i` is NULL. What made it so may have left its cause in the message, which
    therefore goes with it. */
tn_status context_fail_null(tn_context *c, const char *op, tn_tensor *const in[], size_t n,
                            size_t i);

/** Tells a failure that was told before, of an operand. */
tn_status context_repeat(tn_context *c, failure *f);

/** Keeps the failure of an assign of the innermost scope that could not be made, for what next runs
    or compiles the scope's assigns. */
void context_keep_refused(tn_context *c, failure *f);

/** Forgets what a scope keeps so. */
void context_drop_refused(tn_context *c, scope *s);

/** Puts the oldest failure so kept into `d`, and forgets all; TN_OK where there is none. */
tn_status context_take_refused(tn_context *c, diag *d);

/** A failure of an operand that work returns, and that is not kept any more: drops it, and returns
    its status. */
tn_status context_return(tn_context *c, failure *f);

/** The failure last told by context_fail or context_repeat, held once for the caller. */
failure *context_failure(tn_context *c);

/** A failure beside the context: only its message is set. Any thread. */
tn_status context_message(tn_context *c, const diag *d);

failure *failure_hold(failure *f);
void failure_drop(tn_context *c, failure *f); /* NULL is allowed */

/** The queue on which the context's own plans run. */
tn_status context_queue(tn_context *c, tn_queue **queue, diag *d);

/** A remark for the logger. */
void context_log(tn_context *c, tn_log_level level, const char *format, ...) BASE_PRINTF(3, 4);

/** Notes an attachment, and forgets it. Any thread. */
void context_attach(tn_context *c, attachment *a);
void context_detach(tn_context *c, attachment *a);

/** A builder for the call at hand. */
builder context_builder(tn_context *c);

#endif
