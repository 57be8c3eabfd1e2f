/* Implements streams as the driver's non-blocking ones, and marks as events, which streams of any
   device await. The driver measures times between two events, as a float: they are counted from an
   origin, the event of a mark that was asked for its time. */
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_device.h"

#include <stdio.h>

typedef struct cuda_mark {
  cuda_device *device;
  cuda_shared_event *event;
} cuda_mark;

static tn_status stream_open(void *device, tn_queue_kind kind, void **stream, tn_failure *f) {
  (void)kind;
  cuda_device *v = device;
  cuda_queue *q = mem_calloc(&v->mem, 1, sizeof *q);
  if (!q) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  q->device = v;
  tn_status status = cuda_enter(v, f);
  if (!status) {
    cuda_status s = v->cu.StreamCreate(&q->stream, CUDA_STREAM_NON_BLOCKING);
    if (s) status = cuda_fail(v, "cuStreamCreate", s, TN_ERR_DEVICE, f);
    cuda_leave(v);
  }
  if (status)
    mem_free(&v->mem, q, sizeof *q);
  else
    *stream = q;
  return status;
}

static void stream_free(void *stream) {
  cuda_queue *q = stream;
  cuda_device *v = q->device;
  tn_failure unread;
  if (!cuda_enter(v, &unread)) {
    v->cu.StreamSynchronize(q->stream);
    if (q->blas) v->blas.Destroy(q->blas);
    v->cu.StreamDestroy_v2(q->stream);
    cuda_leave(v);
  }
  mem_free(&v->mem, q, sizeof *q);
}

/* Works. */

static cuda_address address_of(const tn_span *s) {
  return ((const cuda_memory *)s->memory)->address + s->offset;
}

/** The most groups along each axis of a grid (CUDA C++ Programming Guide, compute capabilities). */
static const int64_t most_groups[] = {INT32_MAX, 65535, 65535};

tn_status cuda_launch_fill(cuda_launch *to, const cuda_device *v, const tn_work *w, tn_failure *f) {
  const cuda_program *p = w->program;
  const tn_launch *l = w->launch;
  size_t n = 0;
  bool fits = l->n_buffers + l->n_values <= CUDA_MOST_ARGUMENTS;
  to->function = p->function;
  for (int i = 0; i < 3; i++) {
    fits &= w->global[i] <= most_groups[i] && w->local[i] <= UINT32_MAX;
    to->grid[i] = (unsigned)w->global[i];
    to->group[i] = w->local[0] ? (unsigned)w->local[i] : 1;
  }
  if (!fits)
    return tn_fail(f, TN_ERR_UNSUPPORTED,
                   "CUDA:%d (%s): the launch of kernel %s has too many arguments or groups",
                   (int)v->index, v->facts.name, p->facts->entry);
  for (size_t i = 0; i < l->n_buffers; i++, n++) {
    to->addresses[n] = address_of(&l->buffers[i]);
    to->arguments[n] = &to->addresses[n];
  }
  for (size_t i = 0; i < l->n_values; i++, n++) to->arguments[n] = (void *)&l->values[i];
  return TN_OK;
}

static tn_status launch(cuda_queue *q, const tn_work *w, tn_failure *f) {
  cuda_device *v = q->device;
  const cuda_program *p = w->program;
  if (!p->function) return cuda_product_run(v, q->stream, &q->blas, &p->product, w->launch, f);
  cuda_launch l;
  tn_status status = cuda_launch_fill(&l, v, w, f);
  if (status) return status;
  cuda_status s = v->cu.LaunchKernel(l.function, l.grid[0], l.grid[1], l.grid[2], l.group[0],
                                     l.group[1], l.group[2], 0, q->stream, l.arguments, NULL);
  if (!s) return TN_OK;
  char text[160];
  snprintf(text, sizeof text, "cuLaunchKernel of kernel %.100s", p->facts->entry);
  return cuda_fail(v, text, s, TN_ERR_UNSUPPORTED, f);
}

static cuda_status copy(const cuda_queue *q, const tn_span *to, const tn_span *from,
                        const char **call) {
  const cuda_api *cu = &q->device->cu;
  size_t bytes = (size_t)to->bytes;
  const cuda_device *other = tn_device_native(from->device, &cuda_backend),
                    *own = tn_device_native(to->device, &cuda_backend);
  *call = "cuMemcpyDtoDAsync";
  if (own == other)
    return cu->MemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, q->stream);
  *call = "cuMemcpyPeerAsync";
  return cu->MemcpyPeerAsync(address_of(to), own->context, address_of(from), other->context, bytes,
                             q->stream);
}

static tn_status transfer(cuda_queue *q, const tn_work *w, tn_failure *f) {
  const cuda_api *cu = &q->device->cu;
  const tn_span *to = &w->to, *from = &w->from;
  const char *call;
  cuda_status s;
  switch (w->kind) {
  case TN_WORK_COPY: s = copy(q, to, from, &call); break;
  case TN_WORK_READ:
    call = "cuMemcpyDtoHAsync";
    s = cu->MemcpyDtoHAsync_v2(w->host, address_of(from), (size_t)from->bytes, q->stream);
    break;
  case TN_WORK_WRITE:
    call = "cuMemcpyHtoDAsync";
    s = cu->MemcpyHtoDAsync_v2(address_of(to), w->host, (size_t)to->bytes, q->stream);
    break;
  default:
    call = "cuMemsetD8Async";
    s = cu->MemsetD8Async(address_of(to), w->fill, (size_t)to->bytes, q->stream);
  }
  return s ? cuda_fail(q->device, call, s, TN_ERR_DEVICE, f) : TN_OK;
}

static tn_status stream_enqueue(void *stream, const tn_work works[], size_t n, tn_failure *f) {
  cuda_queue *q = stream;
  cuda_device *v = q->device;
  if (atomic_load(&v->is_lost)) return cuda_fail_lost(v, f);
  tn_status status = cuda_enter(v, f);
  if (status) return status;
  for (size_t i = 0; i < n && !status; i++)
    status = works[i].kind == TN_WORK_EXEC ? launch(q, &works[i], f) : transfer(q, &works[i], f);
  cuda_leave(v);
  return status;
}

/* Marks. */

void cuda_shared_event_release(cuda_device *v, cuda_shared_event *e) {
  if (atomic_fetch_sub(&e->owners, 1) > 1) return;
  if (e->event) v->cu.EventDestroy_v2(e->event);
  mem_free(&v->mem, e, sizeof *e);
}

static void free_entered(cuda_mark *m) {
  if (m->event) cuda_shared_event_release(m->device, m->event);
  mem_free(&m->device->mem, m, sizeof *m);
}

static void mark_free(void *mark) {
  cuda_mark *m = mark;
  cuda_device *v = m->device;
  tn_failure unread;
  bool entered = !cuda_enter(v, &unread);
  free_entered(m);
  if (entered) cuda_leave(v);
}

/** Makes a mark's event behind all works of a stream. */
static tn_status record(cuda_queue *q, cuda_mark *m, bool timed, tn_failure *f) {
  cuda_device *v = q->device;
  const char *call = "cuEventCreate";
  m->event = mem_calloc(&v->mem, 1, sizeof *m->event);
  if (!m->event) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  atomic_init(&m->event->owners, 1);
  cuda_status s = v->cu.EventCreate(&m->event->event, timed ? 0 : CUDA_EVENT_DISABLE_TIMING);
  if (!s) {
    call = "cuEventRecord";
    s = v->cu.EventRecord(m->event->event, q->stream);
  }
  return s ? cuda_fail(v, call, s, TN_ERR_DEVICE, f) : TN_OK;
}

static tn_status mark_make(void *stream, bool timed, void **mark, tn_failure *f) {
  cuda_queue *q = stream;
  cuda_device *v = q->device;
  cuda_mark *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->device = v;
  tn_status status = cuda_enter(v, f);
  if (status) {
    mem_free(&v->mem, m, sizeof *m);
    return status;
  }
  status = record(q, m, timed, f);
  if (status)
    free_entered(m);
  else
    *mark = m;
  cuda_leave(v);
  return status;
}

static tn_status stream_await(void *stream, void *mark, tn_failure *f) {
  cuda_queue *q = stream;
  cuda_device *v = q->device;
  const cuda_mark *m = mark;
  tn_status status = cuda_enter(v, f);
  if (status) return status;
  cuda_status s = v->cu.StreamWaitEvent(q->stream, m->event->event, 0);
  if (s) status = cuda_fail(v, "cuStreamWaitEvent", s, TN_ERR_DEVICE, f);
  cuda_leave(v);
  return status;
}

/** Asks again and again, as waiting with a limit is not in CUDA. */
static cuda_status wait_until(const cuda_mark *m, int64_t deadline) {
  int64_t pause_ns = 0;
  cuda_status s;
  do s = m->device->cu.EventQuery(m->event->event);
  while (s == CUDA_NOT_READY && thread_poll(&pause_ns, deadline));
  return s;
}

static tn_status mark_sync(void *mark, int64_t timeout_ns, tn_failure *f) {
  const cuda_mark *m = mark;
  cuda_device *v = m->device;
  tn_status status = cuda_enter(v, f);
  if (status) return status;
  cuda_status s = timeout_ns < 0 ? v->cu.EventSynchronize(m->event->event)
                                 : wait_until(m, clock_now_ns() + timeout_ns);
  if (s == CUDA_NOT_READY)
    status = tn_fail(f, TN_ERR_TIMEOUT, "a mark of CUDA:%d is not done", (int)v->index);
  else if (s)
    status = cuda_fail(v, "cuEventSynchronize", s, TN_ERR_DEVICE, f);
  cuda_leave(v);
  return status;
}

/** The time of a mark; the host's where the driver cannot tell. A mark that was done more than a
    second after the origin becomes the new one, so that a float of milliseconds between the two
    tells microseconds while marks are asked often. */
static int64_t mark_time(void *mark) {
  cuda_mark *m = mark;
  cuda_device *v = m->device;
  tn_failure unread;
  float passed = 0;
  if (cuda_enter(v, &unread)) return 0;
  mutex_lock(&v->lock);
  cuda_shared_event *former = v->origin;
  bool is_told = former && !v->cu.EventElapsedTime(&passed, former->event, m->event->event);
  int64_t ns = is_told ? v->origin_ns + (int64_t)((double)passed * 1e6) : clock_now_ns();
  if (!is_told || passed > 1000) {
    atomic_fetch_add(&m->event->owners, 1);
    v->origin = m->event;
    v->origin_ns = ns;
    if (former) cuda_shared_event_release(v, former);
  }
  mutex_unlock(&v->lock);
  cuda_leave(v);
  return ns;
}

const tn_stream_functions cuda_streams = {.size = sizeof cuda_streams,
                                          .open = stream_open,
                                          .free = stream_free,
                                          .enqueue = stream_enqueue,
                                          .mark = mark_make,
                                          .await = stream_await,
                                          .sync = mark_sync,
                                          .time = mark_time,
                                          .mark_free = mark_free};
