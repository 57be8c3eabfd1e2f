/* The public face of devices: objects of NULL are refused, failures given as tn_failure. */
#include "device/buffer.h"
#include "device/failure.h"
#include "device/queue.h"
#include "device/span.h"
#include "device/spec.h"
#include "ir/verify.h"

/** A diag, without clearing all of its text. */
static void begin(diag *d) {
  diag_clear(d);
  d->at = NULL;
}

static tn_status absent(tn_failure *f, const char *what) {
  return tn_fail(f, TN_ERR_ARGUMENT, "there is no %s", what);
}

/** What a function has to say. */
static tn_status end(tn_failure *f, tn_status status, const diag *d) {
  return status ? failure_take(f, d) : TN_OK;
}

const char *tn_device_name(const tn_device *v) { return v ? v->name : ""; }

/* ---- Memory ---- */

tn_status tn_buffer_open(tn_device *v, uint64_t bytes, tn_buffer **buffer, tn_failure *f) {
  diag d;
  begin(&d);
  if (!buffer) return absent(f, "place for the buffer");
  *buffer = NULL;
  return v ? end(f, buffer_open(v, bytes, buffer, &d), &d) : absent(f, "device");
}

tn_status tn_buffer_import(tn_device *v, void *data, uint64_t bytes, void (*destroy)(void *user),
                           void *user, tn_buffer **buffer, tn_failure *f) {
  diag d;
  begin(&d);
  if (buffer) *buffer = NULL;
  if (v && buffer) return end(f, buffer_import(v, data, bytes, destroy, user, buffer, &d), &d);
  if (destroy) destroy(user);
  return absent(f, v ? "place for the buffer" : "device");
}

tn_status tn_buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                         tn_failure *f) {
  diag d;
  begin(&d);
  if (!buffer) return absent(f, "place for the buffer");
  *buffer = NULL;
  return base ? end(f, buffer_view(base, offset, bytes, buffer, &d), &d) : absent(f, "buffer");
}

tn_buffer *tn_buffer_retain(tn_buffer *b) { return b ? buffer_retain(b) : NULL; }
void tn_buffer_release(tn_buffer *b) { buffer_release(b); }

tn_status tn_buffer_span(tn_buffer *b, tn_span *span, tn_failure *f) {
  diag d;
  begin(&d);
  if (!b || !span) return absent(f, b ? "place for the span" : "buffer");
  return end(f, buffer_span(b, span, &d), &d);
}

/** TN_OK if a span can be used and the types are those of data. */
static tn_status check_span(const tn_span *s, int held, int host, const void *data, size_t count,
                            tn_failure *f) {
  if (!s || !s->device || !s->memory) return absent(f, "memory");
  if (!data && count) return absent(f, "data");
  bool types = dtype_is_data((dtype)held) && dtype_is_data((dtype)host);
  return types ? TN_OK
               : tn_fail(f, TN_ERR_DTYPE, "types %d and %d are not both of data", held, host);
}

tn_status tn_span_write(const tn_span *s, tn_dtype held, tn_dtype from, const void *data,
                        size_t count, tn_failure *f) {
  diag d;
  begin(&d);
  tn_status status = check_span(s, held, from, data, count, f);
  if (status) return status;
  return end(f, span_write(s, (dtype)held, (dtype)from, data, count, &d), &d);
}

tn_status tn_span_read(const tn_span *s, tn_dtype held, tn_dtype to, void *data, size_t count,
                       tn_failure *f) {
  diag d;
  begin(&d);
  tn_status status = check_span(s, held, to, data, count, f);
  if (status) return status;
  return end(f, span_read(s, (dtype)held, (dtype)to, data, count, &d), &d);
}

tn_status tn_span_copy(const tn_span *to, const tn_span *from, tn_failure *f) {
  diag d;
  begin(&d);
  if (!to || !from || !to->device || !from->device) return absent(f, "memory");
  return end(f, span_copy(to, from, &d), &d);
}

/* ---- Signals ---- */

tn_status tn_signal_open(tn_device *v, uint64_t value, tn_signal **signal, tn_failure *f) {
  diag d;
  begin(&d);
  if (!signal) return absent(f, "place for the signal");
  *signal = NULL;
  return v ? end(f, signal_open(v, value, signal, &d), &d) : absent(f, "device");
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
  tn_failure unread;
  if (!s) return absent(f, "signal");
  return s->functions->wait(s->handle, value, timeout_ns, f ? f : &unread);
}

/* ---- Programs ---- */

typedef struct compiling {
  tn_ir *ir;
  const tn_node *nodes;
  size_t n;
} compiling;

/** Nodes from outside are taken for what they are. */
static void check_nodes(void *arg) {
  compiling *c = arg;
  diag *d = ir_diag(c->ir);
  for (size_t i = 0; i < c->n; i++) {
    const node *n = c->nodes[i];
    if (n->op == OP_SINK && verify(&n, 1, STAGE_KERNEL, ir_mem(c->ir), d)) diag_rethrow(d);
    if (n->op == OP_PROGRAM) program_node_check(c->ir, n);
  }
}

tn_status tn_program_compile(tn_device *v, tn_ir *ir, const tn_node *nodes, size_t n,
                             tn_program *programs[], tn_failure *f) {
  diag d;
  begin(&d);
  for (size_t i = 0; i < n && programs; i++) programs[i] = NULL;
  if (!v || !ir) return absent(f, v ? "IR" : "device");
  if (n && (!nodes || !programs)) return absent(f, "list of programs");
  for (size_t i = 0; i < n; i++)
    if (!nodes[i]) return absent(f, "node to compile");
  compiling c = {.ir = ir, .nodes = nodes, .n = n};
  tn_status status = diag_catch(ir_diag(ir), check_nodes, &c);
  if (status) return failure_take(f, ir_diag(ir));
  program_options o = {.math = MATH_EXACT};
  status = device_target_get(v, NULL, &o.target, &d);
  if (!status) status = program_compile(&o, ir, nodes, n, programs, &d);
  return end(f, status, &d);
}

void tn_program_free(tn_program *p) { program_release(p); }
const char *tn_program_name(const tn_program *p) { return p ? p->name : ""; }

uint64_t tn_program_scratch(const tn_program *p) { return p ? p->facts.scratch : 0; }

tn_status tn_program_execute(tn_program *p, const tn_launch *launch, tn_failure *f) {
  tn_failure unread;
  if (!p || !launch) return absent(f, p ? "launch" : "program");
  return program_execute(p, launch, f ? f : &unread);
}

/* ---- Queues ---- */

tn_status tn_queue_open(tn_device *v, tn_queue_kind kind, tn_queue **queue, tn_failure *f) {
  diag d;
  begin(&d);
  if (!queue) return absent(f, "place for the queue");
  *queue = NULL;
  return v ? end(f, queue_open(v, kind, queue, &d), &d) : absent(f, "device");
}

void tn_queue_free(tn_queue *q) { queue_close(q); }

/** The list to note a command in, or NULL. */
static tn_commands *building(tn_queue *q) { return q ? queue_building(q) : NULL; }

void tn_queue_wait(tn_queue *q, tn_signal *s, uint64_t value) {
  tn_commands *c = building(q);
  if (c) commands_wait(c, s, value);
}

void tn_queue_wait_at(tn_queue *q, tn_signal *s, const uint64_t *value) {
  tn_commands *c = building(q);
  if (c) commands_wait_at(c, s, value);
}

void tn_queue_signal(tn_queue *q, tn_signal *s, uint64_t value) {
  tn_commands *c = building(q);
  if (c) commands_signal(c, s, value);
}

void tn_queue_signal_at(tn_queue *q, tn_signal *s, const uint64_t *value) {
  tn_commands *c = building(q);
  if (c) commands_signal_at(c, s, value);
}

void tn_queue_exec(tn_queue *q, tn_program *program, const tn_launch *launch) {
  tn_commands *c = building(q);
  if (c) commands_exec(c, program, launch);
}

void tn_queue_copy(tn_queue *q, const tn_span *to, const tn_span *from) {
  tn_commands *c = building(q);
  if (c) commands_copy(c, to, from);
}

void tn_queue_call(tn_queue *q, tn_status (*call)(void *user, tn_failure *f), void *user) {
  tn_commands *c = building(q);
  if (c) commands_call(c, call, user);
}

void tn_queue_memory_barrier(tn_queue *q) {
  tn_commands *c = building(q);
  if (c) commands_barrier(c);
}

void tn_queue_stamp(tn_queue *q, int64_t *at) {
  tn_commands *c = building(q);
  if (c) commands_stamp(c, at);
}

tn_status tn_queue_record(tn_queue *q, tn_commands **commands, tn_failure *f) {
  diag d;
  begin(&d);
  if (!commands) return absent(f, "place for the commands");
  *commands = NULL;
  return q ? end(f, queue_take(q, commands, &d), &d) : absent(f, "queue");
}

tn_status tn_queue_replay(tn_queue *q, tn_commands *c, tn_failure *f) {
  diag d;
  begin(&d);
  if (!q || !c) return absent(f, q ? "list of commands" : "queue");
  return end(f, queue_submit(q, c, &d), &d);
}

tn_status tn_queue_submit(tn_queue *q, tn_failure *f) {
  tn_commands *c;
  tn_status status = tn_queue_record(q, &c, f);
  if (!status) status = tn_queue_replay(q, c, f);
  commands_release(c);
  return status;
}

tn_status tn_queue_run(tn_queue *q, tn_commands *c, tn_failure *f) {
  diag d;
  begin(&d);
  if (!q || !c) return absent(f, q ? "list of commands" : "queue");
  return end(f, queue_run(q, c, &d), &d);
}

void tn_commands_free(tn_commands *c) { commands_release(c); }

tn_status tn_queue_finish(tn_queue *q, int64_t timeout_ns, tn_failure *f) {
  diag d;
  begin(&d);
  return q ? end(f, queue_finish(q, timeout_ns, &d), &d) : absent(f, "queue");
}
