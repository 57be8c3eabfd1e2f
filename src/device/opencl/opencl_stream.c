/* Implements streams as in-order command queues, and marks as marker events. Each hand-over ends
   with a flush, so that what was handed over is completed without further calls. A mark of another
   device, whose events belong to another context, is awaited by an event of the stream's context
   that the driver's callback sets. */
#include "device/opencl/opencl_device.h"

#include <stdio.h>

typedef struct opencl_stream {
  opencl_device *device;
  cl_queue queue;
} opencl_stream;

typedef struct opencl_mark {
  opencl_device *device;
  cl_event event;
} opencl_mark;

static tn_status stream_open(void *device, tn_queue_kind kind, void **stream, tn_failure *f) {
  (void)kind;
  opencl_device *v = device;
  cl_status s = 0;
  opencl_stream *q = mem_calloc(&v->mem, 1, sizeof *q);
  if (!q) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  q->device = v;
  q->queue = v->cl.CreateCommandQueue(v->context, v->facts.id, CL_QUEUE_PROFILING_ENABLE, &s);
  if (!q->queue) {
    mem_free(&v->mem, q, sizeof *q);
    return opencl_fail(v, "clCreateCommandQueue", s, TN_ERR_DEVICE, f);
  }
  *stream = q;
  return TN_OK;
}

static void stream_free(void *stream) {
  opencl_stream *q = stream;
  q->device->cl.Finish(q->queue);
  q->device->cl.ReleaseCommandQueue(q->queue);
  mem_free(&q->device->mem, q, sizeof *q);
}

/* Works. */

static cl_status set_arguments(const opencl_program *p, const tn_launch *l) {
  cl_status s = 0;
  uint32_t at = 0;
  for (size_t i = 0; i < l->n_buffers && !s; i++) {
    const tn_span *b = &l->buffers[i];
    const opencl_memory *m = b->memory;
    s = p->device->cl.SetKernelArg(p->kernel, at++, sizeof m->buffer, &m->buffer);
    if (!s) s = p->device->cl.SetKernelArg(p->kernel, at++, sizeof b->offset, &b->offset);
  }
  for (size_t i = 0; i < l->n_values && !s; i++)
    s = p->device->cl.SetKernelArg(p->kernel, at++, sizeof l->values[i], &l->values[i]);
  return s;
}

static tn_status launch(opencl_stream *q, const tn_work *w, tn_failure *f) {
  opencl_program *p = w->program;
  size_t local[3] = {1, 1, 1}, global[3];
  for (int i = 0; i < 3; i++) {
    if (w->local[0]) local[i] = (size_t)w->local[i];
    global[i] = (size_t)w->global[i] * local[i];
  }
  const char *call = "clSetKernelArg";
  mutex_lock(&p->lock);
  cl_status s = set_arguments(p, w->launch);
  if (!s) {
    call = "clEnqueueNDRangeKernel";
    s = q->device->cl.EnqueueNDRangeKernel(q->queue, p->kernel, 3, NULL, global, local, 0, NULL,
                                           NULL);
  }
  mutex_unlock(&p->lock);
  if (!s) return TN_OK;
  char text[160];
  snprintf(text, sizeof text, "%s of kernel %.100s", call, p->facts->entry);
  return opencl_fail(q->device, text, s, TN_ERR_UNSUPPORTED, f);
}

static cl_memory buffer_of(const tn_span *s) { return ((const opencl_memory *)s->memory)->buffer; }

static tn_status transfer(opencl_stream *q, const tn_work *w, tn_failure *f) {
  const tn_span *to = &w->to, *from = &w->from;
  const char *call;
  cl_status s;
  switch (w->kind) {
  case TN_WORK_COPY:
    call = "clEnqueueCopyBuffer";
    s = q->device->cl.EnqueueCopyBuffer(q->queue, buffer_of(from), buffer_of(to),
                                        (size_t)from->offset, (size_t)to->offset, (size_t)to->bytes,
                                        0, NULL, NULL);
    break;
  case TN_WORK_READ:
    call = "clEnqueueReadBuffer";
    s = q->device->cl.EnqueueReadBuffer(q->queue, buffer_of(from), false, (size_t)from->offset,
                                        (size_t)from->bytes, w->host, 0, NULL, NULL);
    break;
  case TN_WORK_WRITE:
    call = "clEnqueueWriteBuffer";
    s = q->device->cl.EnqueueWriteBuffer(q->queue, buffer_of(to), false, (size_t)to->offset,
                                         (size_t)to->bytes, w->host, 0, NULL, NULL);
    break;
  default:
    call = "clEnqueueFillBuffer";
    s = q->device->cl.EnqueueFillBuffer(q->queue, buffer_of(to), &w->fill, 1, (size_t)to->offset,
                                        (size_t)to->bytes, 0, NULL, NULL);
  }
  return s ? opencl_fail(q->device, call, s, TN_ERR_DEVICE, f) : TN_OK;
}

static tn_status flush(opencl_stream *q, tn_failure *f) {
  cl_status s = q->device->cl.Flush(q->queue);
  return s ? opencl_fail(q->device, "clFlush", s, TN_ERR_DEVICE, f) : TN_OK;
}

static tn_status fail_lost(const opencl_device *v, tn_failure *f) {
  return tn_fail(f, TN_ERR_DEVICE, "OPENCL:%d (%s) was lost", (int)v->index, v->facts.name);
}

static tn_status stream_enqueue(void *stream, const tn_work works[], size_t n, tn_failure *f) {
  opencl_stream *q = stream;
  tn_status status = TN_OK;
  if (opencl_is_lost(q->device)) return fail_lost(q->device, f);
  for (size_t i = 0; i < n && !status; i++)
    status = works[i].kind == TN_WORK_EXEC ? launch(q, &works[i], f) : transfer(q, &works[i], f);
  if (!status) return flush(q, f);
  q->device->cl.Flush(q->queue);
  return status;
}

/* Marks. */

static void mark_free(void *mark) {
  opencl_mark *m = mark;
  if (m->event) m->device->cl.ReleaseEvent(m->event);
  mem_free(&m->device->mem, m, sizeof *m);
}

static tn_status mark_make(void *stream, bool timed, void **mark, tn_failure *f) {
  (void)timed; /* all queues measure */
  opencl_stream *q = stream;
  opencl_mark *m = mem_calloc(&q->device->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->device = q->device;
  cl_status s = q->device->cl.EnqueueMarkerWithWaitList(q->queue, 0, NULL, &m->event);
  tn_status status =
      s ? opencl_fail(m->device, "clEnqueueMarkerWithWaitList", s, TN_ERR_DEVICE, f) : flush(q, f);
  if (status)
    mark_free(m);
  else
    *mark = m;
  return status;
}

/** Returns the state of a mark's event: CL_COMPLETE once the work before it is done, a greater
   number until then, a smaller one if it failed. */
static cl_status state_of(const opencl_mark *m) {
  cl_status state = 0;
  cl_status s = m->device->cl.GetEventInfo(m->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                           sizeof state, &state, NULL);
  return s ? s : state;
}

/** An event that stands for one of another device. */
typedef struct stand_in {
  mem mem;
  opencl_api cl;
  cl_event event;
} stand_in;

/** Called by the driver when the other device's event is done. */
static void set_stand_in(cl_event event, cl_status status, void *user) {
  (void)event;
  stand_in *x = user, copy = *x;
  mem_free(&copy.mem, x, sizeof *x);
  copy.cl.SetUserEventStatus(copy.event, status < 0 ? status : CL_COMPLETE);
  copy.cl.ReleaseEvent(copy.event);
}

/** Has a stand-in set when a mark is done; it keeps a reference of its own. */
static cl_status follow(const opencl_stream *q, const opencl_mark *m, cl_event event) {
  enum { NO_HOST_MEMORY = -6 };
  const mem *own = &q->device->mem;
  stand_in *x = mem_calloc(own, 1, sizeof *x);
  if (!x) return NO_HOST_MEMORY;
  *x = (stand_in){*own, q->device->cl, event};
  q->device->cl.RetainEvent(event);
  cl_status s = q->device->cl.SetEventCallback(m->event, CL_COMPLETE, set_stand_in, x);
  if (!s) return 0;
  q->device->cl.ReleaseEvent(event);
  mem_free(own, x, sizeof *x);
  return s;
}

static tn_status await_other(opencl_stream *q, const opencl_mark *m, tn_failure *f) {
  cl_status s = state_of(m);
  if (s == CL_COMPLETE) return TN_OK;
  if (s < 0) return opencl_fail(m->device, "clGetEventInfo", s, TN_ERR_DEVICE, f);
  cl_event event = q->device->cl.CreateUserEvent(q->device->context, &s);
  if (!event) return opencl_fail(q->device, "clCreateUserEvent", s, TN_ERR_DEVICE, f);
  s = q->device->cl.EnqueueBarrierWithWaitList(q->queue, 1, &event, NULL);
  const char *call = "clEnqueueBarrierWithWaitList";
  if (!s && (s = follow(q, m, event))) {
    call = "clSetEventCallback";
    q->device->cl.SetUserEventStatus(event, s);
  }
  q->device->cl.ReleaseEvent(event);
  return s ? opencl_fail(q->device, call, s, TN_ERR_DEVICE, f) : flush(q, f);
}

static tn_status stream_await(void *stream, void *mark, tn_failure *f) {
  opencl_stream *q = stream;
  const opencl_mark *m = mark;
  if (m->device != q->device) return await_other(q, m, f);
  cl_status s = q->device->cl.EnqueueBarrierWithWaitList(q->queue, 1, &m->event, NULL);
  if (s) return opencl_fail(q->device, "clEnqueueBarrierWithWaitList", s, TN_ERR_DEVICE, f);
  return flush(q, f);
}

/** Asks again and again, as waiting with a limit is not in OpenCL. */
static cl_status wait_until(const opencl_mark *m, int64_t deadline) {
  int64_t pause_ns = 0;
  cl_status state;
  do state = state_of(m);
  while (state > 0 && thread_poll(&pause_ns, deadline));
  return state;
}

static tn_status mark_sync(void *mark, int64_t timeout_ns, tn_failure *f) {
  const opencl_mark *m = mark;
  opencl_device *v = m->device;
  cl_status s;
  if (timeout_ns < 0) {
    s = v->cl.WaitForEvents(1, &m->event);
    if (!s) s = wait_until(m, INT64_MAX); /* drivers without threads may return too early */
  } else {
    s = wait_until(m, clock_now_ns() + timeout_ns);
  }
  if (s > 0) return tn_fail(f, TN_ERR_TIMEOUT, "a mark of OPENCL:%d is not done", (int)v->index);
  if (s < 0) return opencl_fail(v, "clWaitForEvents", s, TN_ERR_DEVICE, f);
  return opencl_is_lost(v) ? fail_lost(v, f) : TN_OK;
}

static int64_t mark_time(void *mark) {
  uint64_t time = 0;
  ((opencl_mark *)mark)
      ->device->cl.GetEventProfilingInfo(((opencl_mark *)mark)->event, CL_PROFILING_COMMAND_END,
                                         sizeof time, &time, NULL);
  return (int64_t)time;
}

const tn_stream_functions opencl_streams = {.size = sizeof opencl_streams,
                                            .open = stream_open,
                                            .free = stream_free,
                                            .enqueue = stream_enqueue,
                                            .mark = mark_make,
                                            .await = stream_await,
                                            .sync = mark_sync,
                                            .time = mark_time,
                                            .mark_free = mark_free};
