/* Implements the public functions of devices: buffers, signals, programs and queues
   (unstable/queue.h). Each refuses NULL objects and turns the diag of the internal function into a
   tn_failure. */
#include "device/memory/buffer.h"
#include "device/memory/caching_allocator.h"
#include "device/memory/span.h"
#include "device/queue/queue.h"

tn_status tn_fail(tn_failure *f, tn_status status, const char *format, ...) {
  if (!f) return status;
  va_list list;
  va_start(list, format);
  failure_set_va(f, status, format, list);
  va_end(list);
  return status;
}

/** Clears a diag, but not all of its text. */
static void clear_diag(diag *d) {
  diag_clear(d);
  d->at = NULL;
}

static tn_status fail_absent(tn_failure *f, const char *argument) {
  return tn_fail(f, TN_ERR_ARGUMENT, "the %s is NULL", argument);
}

/** Passes a failure on to the caller. */
static tn_status report_status(tn_failure *f, tn_status status, const diag *d) {
  if (status && f) *f = d->failure;
  return status;
}

const char *tn_device_name(const tn_device *v) { return v ? v->name : ""; }

void *tn_device_native(const tn_device *v, const tn_backend *backend) {
  return v && v->backend == backend ? v->state : NULL;
}

/* ---- Memory ---- */

uint64_t tn_device_trim(tn_device *v, uint64_t bytes) {
  if (!v) return 0;
  caching_allocator_trim(v->allocator, bytes);
  return caching_allocator_cached_bytes(v->allocator);
}

tn_status tn_buffer_open(tn_device *v, uint64_t bytes, tn_buffer **buffer, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!buffer) return fail_absent(f, "output pointer for the buffer");
  *buffer = NULL;
  return v ? report_status(f, buffer_open(v, bytes, buffer, &d), &d) : fail_absent(f, "device");
}

tn_status tn_buffer_open_zeroed(tn_device *v, uint64_t bytes, tn_buffer **buffer, tn_failure *f) {
  tn_status status = tn_buffer_open(v, bytes, buffer, f);
  if (!status) buffer_zero_first(*buffer);
  return status;
}

tn_status tn_buffer_import(tn_device *v, void *data, uint64_t bytes, void (*destroy)(void *user),
                           void *user, tn_buffer **buffer, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (buffer) *buffer = NULL;
  if (v && buffer)
    return report_status(f, buffer_import(v, data, bytes, destroy, user, buffer, &d), &d);
  if (destroy) destroy(user);
  return fail_absent(f, v ? "output pointer for the buffer" : "device");
}

tn_status tn_buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                         tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!buffer) return fail_absent(f, "output pointer for the buffer");
  *buffer = NULL;
  return base ? report_status(f, buffer_view(base, offset, bytes, buffer, &d), &d)
              : fail_absent(f, "buffer");
}

tn_buffer *tn_buffer_retain(tn_buffer *b) { return b ? buffer_retain(b) : NULL; }
void tn_buffer_release(tn_buffer *b) { buffer_release(b); }

tn_status tn_buffer_span(tn_buffer *b, tn_span *span, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!b || !span) return fail_absent(f, b ? "output pointer for the span" : "buffer");
  buffer_expose(b);
  return report_status(f, buffer_span(b, span, &d), &d);
}

/** TN_OK if there are a span and data, of types that data can have. */
static tn_status check_span(const tn_span *s, int held, int host, const void *data, size_t count,
                            tn_failure *f) {
  if (!s || !s->device || !s->memory) return fail_absent(f, "memory");
  if (!data && count) return fail_absent(f, "data");
  bool are_data = dtype_is_data((dtype)held) && dtype_is_data((dtype)host);
  return are_data
             ? TN_OK
             : tn_fail(f, TN_ERR_DTYPE, "element types %d and %d are not both valid", held, host);
}

tn_status tn_span_write(const tn_span *s, tn_dtype held, tn_dtype from, const void *data,
                        size_t count, tn_failure *f) {
  diag d;
  clear_diag(&d);
  tn_status status = check_span(s, held, from, data, count, f);
  if (status) return status;
  return report_status(f, span_write(s, (dtype)held, (dtype)from, data, count, &d), &d);
}

tn_status tn_span_read(const tn_span *s, tn_dtype held, tn_dtype to, void *data, size_t count,
                       tn_failure *f) {
  diag d;
  clear_diag(&d);
  tn_status status = check_span(s, held, to, data, count, f);
  if (status) return status;
  return report_status(f, span_read(s, (dtype)held, (dtype)to, data, count, &d), &d);
}

tn_status tn_span_copy(const tn_span *to, const tn_span *from, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!to || !from || !to->device || !from->device) return fail_absent(f, "memory");
  return report_status(f, span_copy(to, from, &d), &d);
}

/* ---- Signals ---- */

tn_status tn_signal_open(tn_device *v, uint64_t value, tn_signal **signal, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!signal) return fail_absent(f, "output pointer for the signal");
  *signal = NULL;
  return v ? report_status(f, signal_open(v, value, signal, &d), &d) : fail_absent(f, "device");
}

tn_signal *tn_signal_retain(tn_signal *s) { return s ? signal_retain(s) : NULL; }
void tn_signal_free(tn_signal *s) { signal_release(s); }
uint64_t tn_signal_get(tn_signal *s) { return s ? signal_get(s) : 0; }

void tn_signal_set(tn_signal *s, uint64_t value) {
  if (s) signal_set(s, value);
}

void tn_signal_fail(tn_signal *s, uint64_t value, tn_status status, const char *text) {
  if (s) signal_fail(s, value, status ? status : TN_ERR_INTERNAL, text ? text : "");
}

tn_status tn_signal_wait(tn_signal *s, uint64_t value, int64_t timeout_ns, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!s) return fail_absent(f, "signal");
  return report_status(f, signal_wait(s, value, timeout_ns, &d), &d);
}

/* ---- Programs ---- */

void tn_program_free(tn_program *p) { program_release(p); }
const char *tn_program_name(const tn_program *p) { return p ? p->name : ""; }

uint64_t tn_program_scratch(const tn_program *p) { return p ? p->facts.scratch : 0; }

tn_status tn_program_execute(tn_program *p, const tn_launch *launch, tn_failure *f) {
  tn_failure unread;
  if (!p || !launch) return fail_absent(f, p ? "launch" : "program");
  return program_execute(p, launch, f ? f : &unread);
}

/* ---- Queues ---- */

tn_status tn_queue_open(tn_device *v, tn_queue_kind kind, tn_queue **queue, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!queue) return fail_absent(f, "output pointer for the queue");
  *queue = NULL;
  if (!v) return fail_absent(f, "device");
  if (kind != TN_QUEUE_COMPUTE && kind != TN_QUEUE_COPY)
    return tn_fail(f, TN_ERR_ARGUMENT, "there is no kind %d of queues", (int)kind);
  return report_status(f, queue_open(v, kind, queue, &d), &d);
}

void tn_queue_free(tn_queue *q) { queue_close(q); }

/** The list to record a command in; NULL without a queue or memory. */
static tn_commands *recording(tn_queue *q) { return q ? queue_current_list(q) : NULL; }

void tn_queue_wait(tn_queue *q, tn_signal *s, uint64_t value) {
  tn_commands *c = recording(q);
  if (c) command_list_wait(c, s, value);
}

void tn_queue_wait_at(tn_queue *q, tn_signal *s, const uint64_t *value) {
  tn_commands *c = recording(q);
  if (c) command_list_wait_at(c, s, value);
}

void tn_queue_signal(tn_queue *q, tn_signal *s, uint64_t value) {
  tn_commands *c = recording(q);
  if (c) command_list_signal(c, s, value);
}

void tn_queue_signal_at(tn_queue *q, tn_signal *s, const uint64_t *value) {
  tn_commands *c = recording(q);
  if (c) command_list_signal_at(c, s, value);
}

void tn_queue_exec(tn_queue *q, tn_program *program, const tn_launch *launch) {
  tn_commands *c = recording(q);
  if (c) command_list_exec(c, program, launch);
}

void tn_queue_copy(tn_queue *q, const tn_span *to, const tn_span *from) {
  tn_commands *c = recording(q);
  if (c) command_list_copy(c, to, from);
}

void tn_queue_fill(tn_queue *q, const tn_span *to, uint8_t byte) {
  tn_commands *c = recording(q);
  if (c) command_list_fill(c, to, byte);
}

void tn_queue_call(tn_queue *q, tn_status (*call)(void *user, tn_failure *f), void *user) {
  tn_commands *c = recording(q);
  if (c) command_list_call(c, call, user);
}

void tn_queue_memory_barrier(tn_queue *q) {
  tn_commands *c = recording(q);
  if (c) command_list_barrier(c);
}

void tn_queue_stamp(tn_queue *q, int64_t *at) {
  tn_commands *c = recording(q);
  if (c) command_list_timestamp(c, at, NULL);
}

tn_status tn_queue_record(tn_queue *q, tn_commands **commands, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!commands) return fail_absent(f, "output pointer for the commands");
  *commands = NULL;
  return q ? report_status(f, queue_take_list(q, commands, &d), &d) : fail_absent(f, "queue");
}

tn_status tn_queue_replay(tn_queue *q, tn_commands *c, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!q || !c) return fail_absent(f, q ? "command list" : "queue");
  return report_status(f, queue_submit(q, c, &d), &d);
}

tn_status tn_queue_submit(tn_queue *q, tn_failure *f) {
  tn_commands *c;
  tn_status status = tn_queue_record(q, &c, f);
  if (!status) status = tn_queue_replay(q, c, f);
  command_list_release(c);
  return status;
}

tn_status tn_queue_run(tn_queue *q, tn_commands *c, tn_failure *f) {
  diag d;
  clear_diag(&d);
  if (!q || !c) return fail_absent(f, q ? "command list" : "queue");
  return report_status(f, queue_run_inline(q, c, &d), &d);
}

void tn_commands_free(tn_commands *c) { command_list_release(c); }

tn_status tn_queue_finish(tn_queue *q, int64_t timeout_ns, tn_failure *f) {
  diag d;
  clear_diag(&d);
  return q ? report_status(f, queue_finish(q, timeout_ns, &d), &d) : fail_absent(f, "queue");
}
