/* Internal header of queues: the state that queue.c (submitting, failures, the thread), run_list.c
   (lists that the library runs itself) and hand_over.c (lists that a stream runs) share.

   Of the locks, `submitting` orders callers, `handing` is held while commands are handed to the
   stream, and `lock` guards the counts and the failure; they are taken in this order. Signals call
   wake_queue under their own locks, so no function of signals is called under `lock`. */
#ifndef TENON_DEVICE_QUEUE_QUEUE_STATE_H
#define TENON_DEVICE_QUEUE_QUEUE_STATE_H

#include "device/queue/queue.h"
#include "device/queue/submission.h"

enum { QUEUE_RING = 64 };

/** A failure of a queue's commands that no signal carries: it skips the submissions after it until
    it is reported, once. */
typedef struct queue_failure {
  bool is_pending; /* not reported */
  bool is_lost;    /* the device is lost: stays pending */
  uint64_t number; /* of the submission that failed: those after it are skipped */
  tn_failure why;
} queue_failure;

/** The wait at which a queue stands, for messages. */
typedef struct queue_wait {
  const tn_signal *signal; /* NULL: none */
  uint64_t value, number;  /* the latter of the submission */
  size_t command;
} queue_wait;

struct tn_queue {
  device_queue base; /* first: the two have one address */
  tn_device *device;
  tn_queue_kind kind;
  void *stream;           /* the backend's; NULL: works run on the queue's thread or a caller's */
  tn_commands *recording; /* NULL: no command yet */
  bool lacks_memory;      /* the list to record could not be allocated */
  atomic_bool is_cancelled;
  mutex submitting;
  mutex handing;
  /* Under `handing`: */
  uint64_t n_handed;      /* submissions that were handed over whole */
  stream_mark *last_mark; /* of the stream, if nothing was handed over after it */
  bool is_last_timed;
  /* Under `lock`: */
  mutex lock;
  condition changed;  /* for the queue's thread, and for a wait of a caller that runs a list */
  condition progress; /* for callers */
  atomic_uint_fast64_t n_submitted;
  uint64_t n_done;
  submission *ring[QUEUE_RING];
  submission *unused;
  thread thread;
  thread caller;   /* that runs a list, where n_inline is not 0 */
  bool has_points; /* somebody knows points of the timeline, which rises from now on */
  bool is_started; /* the thread */
  bool is_running; /* a list, on the thread or on a caller's */
  bool is_woken;   /* by a signal */
  bool is_held;    /* the stream has all commands before a wait that is not promised */
  bool is_blocked; /* the stream has all commands before one that the thread runs */
  bool stop;
  size_t n_sleeping; /* threads that wait for `changed` */
  size_t n_inline;   /* lists that callers run on their own threads */
  queue_wait wait;
  queue_failure failure;
};

/** A list that is being run or handed over. */
typedef struct queue_position {
  uint64_t number; /* of the submission */
  size_t command;
} queue_position;

/** The failure of an earlier submission for which one is skipped as a whole; TN_OK: none. */
tn_status queue_check_earlier(tn_queue *q, uint64_t number, tn_failure *failure);

/** As queue_check_earlier, for one that has not begun: it is cancelled where the queue is freed. */
tn_status queue_check_begin(tn_queue *q, uint64_t number, tn_failure *failure);

/** Keeps the failure of a submission that no signal carries, or that is the loss of the device. */
void queue_keep_failure(tn_queue *q, uint64_t number, const tn_failure *failure, bool is_lost);

/** As signal_look for the value of a WAIT; a failure reaches the value where the wait is for its
    end. */
value_state queue_look(const command *wait, const tn_backend *backend, stream_mark **mark,
                       tn_failure *failure);

/** Waits until the value of a WAIT is reached, or promised to `backend`, or failed, or the queue is
    freed, which is a failure too. One wait of a queue at a time. */
value_state queue_await_signal(tn_queue *q, const command *wait, queue_position at,
                               const tn_backend *backend, stream_mark **mark, tn_failure *failure);

/** The status of a launch, with the copy queue's refusal. */
tn_status queue_prepare_launch(const tn_queue *q, const command *c, tn_work *work,
                               tn_failure *failure);

/** Runs a copy or a call on the calling thread. */
tn_status queue_run_on_host(const command *c, tn_failure *failure);

/** Runs a list whose device has no streams on the calling thread; skips it if its turn finds a
    failure. */
void queue_run_list(tn_queue *q, const command commands[], size_t n, uint64_t number);

/** Hands what can be handed over to the stream, unless the queue is held or blocked. */
void queue_hand_over(tn_queue *q);

/** Goes on after a wait, or after a command that the thread ran; on the queue's thread. */
void queue_resume(tn_queue *q);

/** Waits for an end and completes its command. On the queue's thread, without locks. False for the
    end of the list, which the caller completes. */
bool queue_complete(tn_queue *q, submission *s, const queue_end *e);

#endif
