/* Reads weights from a plan's file while constants are computed of them: each into memory that an
   earlier weight had, from before the first step that reads it until after the last one. */
#ifndef TENON_TENSOR_PLAN_WEIGHT_READS_H
#define TENON_TENSOR_PLAN_WEIGHT_READS_H

#include "runtime/execution.h"
#include "tensor/plan/plan.h"

typedef struct weight_reads {
  const plan_file *file;
  tn_device *device;
  const void **weight; /* by buffer of the execution: the weight in it; NULL: none */
  bool *is_unread;     /* likewise: it is read when it is used */
  tn_buffer **memory;  /* likewise: where it is at present */
  tn_buffer **idle;    /* memory of weights that are not used any more */
  size_t n_idle;
} weight_reads;

/** Makes the lists for the buffers of an execution, in an arena. */
void weight_reads_init(weight_reads *r, const plan_file *file, tn_device *device, size_t n_buffers,
                       arena *a);

/** Has a run of the execution read the unread weights, and the file drop the pages of others. */
void weight_reads_attach(weight_reads *r, execution *e);

/** Frees the memory. */
void weight_reads_release(weight_reads *r, size_t n_buffers);

#endif
