/* Implements the reading of weights while constants are computed. Steps run in the order of the
   largest constants first, so that the first weights' memory fits later ones. */
#include "tensor/plan/weight_reads.h"

#include "device/memory/span.h"

enum { PART_BYTES = 1 << 18, MOST_PARTS = 16 };

void weight_reads_init(weight_reads *r, const plan_file *file, tn_device *device, size_t n_buffers,
                       arena *a) {
  *r = (weight_reads){.file = file, .device = device};
  r->weight = arena_calloc(a, n_buffers + 1, sizeof *r->weight);
  r->is_unread = arena_calloc(a, n_buffers + 1, sizeof *r->is_unread);
  r->memory = arena_calloc(a, n_buffers + 1, sizeof *r->memory);
  r->idle = arena_calloc(a, n_buffers + 1, sizeof *r->idle);
}

/** Takes the smallest idle memory of so many bytes; NULL: there is none. */
static tn_buffer *take_idle(weight_reads *r, uint64_t bytes) {
  size_t best = r->n_idle;
  for (size_t i = 0; i < r->n_idle; i++)
    if (buffer_bytes(r->idle[i]) >= bytes &&
        (best == r->n_idle || buffer_bytes(r->idle[i]) < buffer_bytes(r->idle[best])))
      best = i;
  if (best == r->n_idle) return NULL;
  tn_buffer *taken = r->idle[best];
  r->idle[best] = r->idle[--r->n_idle];
  return taken;
}

/** Parts of a weight that workers read at once. */
typedef struct parallel_read {
  weight_reads *reads;
  const void *weight;
  char *to;
  size_t bytes, n;
  tn_failure failures[MOST_PARTS];
} parallel_read;

static void read_part(void *arg, size_t i) {
  parallel_read *k = arg;
  const plan_file *f = k->reads->file;
  size_t from = k->bytes / k->n * i, end = i + 1 < k->n ? k->bytes / k->n * (i + 1) : k->bytes;
  diag d = {0};
  f->read(f->user, k->weight, from, end - from, k->to + from, &d);
  k->failures[i] = d.failure;
}

/** Reads a weight with as many workers as there are, if it is large. */
static tn_status read_weight(weight_reads *r, size_t buffer, const tn_span *to,
                             tn_failure *failure) {
  const tn_workers *w = &r->device->host.workers;
  parallel_read k = {r, r->weight[buffer], span_host_pointer(to), (size_t)to->bytes, 1, {{0}}};
  size_t most = (size_t)r->device->host.threads;
  k.n = k.bytes / PART_BYTES < most ? k.bytes / PART_BYTES : most;
  k.n = k.n < 1 ? 1 : k.n > MOST_PARTS ? MOST_PARTS : k.n;
  if (k.n > 1)
    w->run(w->user, read_part, &k, k.n);
  else
    read_part(&k, 0);
  for (size_t i = 0; i < k.n; i++)
    if (k.failures[i].status != TN_OK) {
      *failure = k.failures[i];
      return failure->status;
    }
  return TN_OK;
}

static tn_status begin_weight(void *user, size_t buffer, tn_span *to, tn_failure *failure) {
  weight_reads *r = user;
  uint64_t bytes = to->bytes;
  diag d = {0};
  tn_status s = TN_OK;
  r->memory[buffer] = take_idle(r, bytes);
  if (!r->memory[buffer]) s = buffer_open(r->device, bytes, &r->memory[buffer], &d);
  if (s == TN_OK) s = buffer_span(r->memory[buffer], to, &d);
  to->bytes = bytes;
  if (s == TN_OK) return read_weight(r, buffer, to, failure);
  *failure = d.failure;
  return s;
}

static void end_weight(void *user, size_t buffer) {
  weight_reads *r = user;
  if (r->memory[buffer]) {
    r->idle[r->n_idle++] = r->memory[buffer];
    r->memory[buffer] = NULL;
  } else if (r->weight[buffer]) {
    r->file->drop_pages(r->file->user, r->weight[buffer]);
  }
}

void weight_reads_attach(weight_reads *r, execution *e) {
  const input_readers readers = {begin_weight, end_weight, r};
  if (r->file->drop_pages) execution_set_readers(e, &readers);
}

void weight_reads_release(weight_reads *r, size_t n_buffers) {
  for (size_t i = 0; r->memory && i < n_buffers; i++)
    if (r->memory[i]) buffer_release(r->memory[i]);
  for (size_t i = 0; i < r->n_idle; i++) buffer_release(r->idle[i]);
  *r = (weight_reads){0};
}
