/* Submissions: copies of command lists on their way through a queue, with what became of them. A
   submission copies its list's launches, spans and values, so the caller may change them at once;
   queues keep submissions that are done for later ones. */
#ifndef TENON_DEVICE_QUEUE_SUBMISSION_H
#define TENON_DEVICE_QUEUE_SUBMISSION_H

#include "device/queue/command_list.h"

/** A command that the queue's thread completes when a mark is done. */
typedef struct queue_end {
  size_t command;    /* its index; the number of commands: the end of the list */
  stream_mark *mark; /* NULL: nothing to wait for */
  size_t n_awaits;   /* waits of the list before it that were left to the device */
} queue_end;

typedef struct submission {
  struct submission *next; /* unused ones of a queue */
  tn_commands *list;       /* retained */
  uint64_t number;         /* in its queue, from 1 */
  command *commands;       /* copies, without value_at */
  size_t n;
  void *block; /* the memory of the commands, of all they point to, and of the arrays below */
  size_t block_bytes;
  bool is_skipped; /* under the queue's lock: for a failure of an earlier one that was reported, */
  tn_failure skipped_by;
  /* For queues with a stream: */
  size_t next_command; /* to be handed over */
  size_t *awaits;      /* indices of waits that were left to the device */
  size_t n_awaits, n_checked;
  queue_end *ends;             /* in order */
  size_t n_ends;               /* so far */
  size_t n_published, n_ended; /* of these, under the queue's lock: the thread may complete, did */
  size_t failed_from;          /* commands from this one on are skipped; SIZE_MAX: none */
  tn_failure why;              /* if there are any */
} submission;

/** Copies a list into a submission, which grows if need be. Retains the list. */
tn_status submission_fill(submission *s, tn_commands *list, diag *d);

void submission_free(submission *s, const mem *m);

#endif
