/* Implements work that the host waits for. A transfer holds the staging memory of one device, the
   destination's if there are two, so that two transfers never wait for each other. */
#include "device/stream/immediate_stream.h"

#include "base/memory_limit.h"
#include "device/stream/stream_mark.h"

#include <inttypes.h>

enum { LEAST_PIECE = 1 << 12, MOST_PIECE = 4 << 20 };

void immediate_stream_init(tn_device *v) {
  mutex_init(&v->immediate.lock);
  mutex_init(&v->immediate.staging_lock);
}

static void free_staging(tn_device *v, staging_pieces *s) {
  for (int i = 0; i < 2; i++)
    if (s->memory[i]) v->backend->free(v->state, s->memory[i], s->bytes);
  memory_limit_uncount(v->mem, s->counted);
  *s = (staging_pieces){0};
}

void immediate_stream_free(tn_device *v) {
  if (v->immediate.stream) v->backend->streams->free(v->immediate.stream);
  free_staging(v, &v->immediate.staging);
  mutex_free(&v->immediate.staging_lock);
  mutex_free(&v->immediate.lock);
}

/* Single works. */

/** Hands a work over, and marks its end; without streams it is done on return. On a failure nothing
    of it is left to run: the stream, which may have begun it, is closed, and this waits. */
static tn_status start_work(tn_device *v, const tn_work *w, stream_mark **mark, tn_failure *f) {
  immediate_stream *m = &v->immediate;
  const tn_stream_functions *s = v->backend->streams;
  tn_status status = TN_OK;
  *mark = NULL;
  if (!s) return v->backend->execute(v->state, w, f);
  mutex_lock(&m->lock);
  if (!m->stream) status = s->open(v->state, TN_QUEUE_COMPUTE, &m->stream, f);
  if (!status) status = s->enqueue(m->stream, w, 1, f);
  if (!status) status = stream_mark_make(mark, v, m->stream, false, f);
  if (status && m->stream) {
    s->free(m->stream);
    m->stream = NULL;
  }
  mutex_unlock(&m->lock);
  return status;
}

/** Waits for a mark and releases it; NULL is allowed. */
static tn_status end_work(stream_mark **mark, tn_failure *f) {
  tn_status status = *mark ? stream_mark_sync(*mark, f) : TN_OK;
  stream_mark_release(*mark);
  *mark = NULL;
  return status;
}

tn_status immediate_run(tn_device *v, const tn_work *w, tn_failure *f) {
  stream_mark *mark;
  f->text[0] = 0;
  tn_status status = start_work(v, w, &mark, f);
  if (!status) status = end_work(&mark, f);
  return failure_complete(f, status);
}

/* Pieces. */

/** Allocates two pieces, which count against a limit on the host's memory; none on failure. */
static tn_status make_staging(tn_device *v, uint64_t bytes, staging_pieces *s, tn_failure *f) {
  const tn_backend *b = v->backend;
  char text[MEMORY_LIMIT_TEXT_BYTES];
  tn_status status = TN_OK;
  if (!memory_limit_count(v->mem, 2 * bytes))
    return tn_fail(f, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(v->mem, 2 * bytes, text));
  *s = (staging_pieces){.bytes = bytes, .counted = 2 * bytes};
  for (int i = 0; i < 2 && !status; i++) {
    status = b->alloc(v->state, bytes, TN_MEMORY_STAGING, &s->memory[i], f);
    if (!status && !(s->at[i] = b->host(v->state, s->memory[i])))
      status = tn_fail(f, TN_ERR_INTERNAL, "the host does not see staging memory");
  }
  if (status) free_staging(v, s);
  return status;
}

/** Makes two pieces for transfers of `bytes` bytes, unless there are such; smaller ones, where that
    is too much memory. Those that are there stay until larger ones are made. */
static tn_status reserve_staging(tn_device *v, uint64_t bytes, diag *d) {
  staging_pieces *there = &v->immediate.staging, made;
  uint64_t wanted = LEAST_PIECE, least = LEAST_PIECE;
  while (wanted < bytes && wanted < MOST_PIECE) wanted *= 2;
  if (there->bytes >= wanted) return TN_OK;
  if (there->bytes) least = 2 * there->bytes;
  diag_clear(d);
  tn_status status = TN_ERR_MEMORY;
  for (uint64_t piece = wanted; piece >= least && status == TN_ERR_MEMORY; piece /= 2)
    status = make_staging(v, piece, &made, &d->failure);
  if (status == TN_ERR_MEMORY && there->bytes) return TN_OK;
  if (!status) {
    free_staging(v, there);
    *there = made;
    return TN_OK;
  }
  diag_complete(d, status);
  return diag_prefix(d, "device %s: staging memory of %" PRIu64 " bytes", v->name, wanted);
}

static tn_span slice(const tn_span *span, uint64_t offset, uint64_t bytes) {
  return (tn_span){span->device, span->memory, span->offset + offset, bytes};
}

/** A transfer of data in pieces. */
typedef struct transfer {
  const tn_span *to, *from; /* NULL: the host's side */
  immediate_piece *piece;
  void *user;
  tn_device *staging; /* whose memory is used, and locked */
  uint64_t bytes;
  stream_mark *read[2], *write[2]; /* of each piece; NULL: done */
} transfer;

/** Begins to read piece `i`, once its memory is free. */
static tn_status begin_read(transfer *t, uint64_t i, tn_failure *f) {
  const staging_pieces *p = &t->staging->immediate.staging;
  uint64_t offset = i * p->bytes, left = t->bytes - offset;
  tn_status status = end_work(&t->write[i % 2], f);
  if (status) return status;
  const tn_work w = {.kind = TN_WORK_READ,
                     .from = slice(t->from, offset, left < p->bytes ? left : p->bytes),
                     .host = p->at[i % 2]};
  return start_work(t->from->device, &w, &t->read[i % 2], f);
}

/** Begins to write piece `i`, which holds its data. */
static tn_status begin_write(transfer *t, uint64_t i, tn_failure *f) {
  const staging_pieces *p = &t->staging->immediate.staging;
  uint64_t offset = i * p->bytes, left = t->bytes - offset;
  const tn_work w = {.kind = TN_WORK_WRITE,
                     .to = slice(t->to, offset, left < p->bytes ? left : p->bytes),
                     .host = p->at[i % 2]};
  return start_work(t->to->device, &w, &t->write[i % 2], f);
}

/** Moves piece `i`: while the host or the destination has it, the source reads the next one. */
static tn_status move_piece(transfer *t, uint64_t i, uint64_t pieces, tn_failure *f) {
  const staging_pieces *p = &t->staging->immediate.staging;
  uint64_t offset = i * p->bytes, left = t->bytes - offset;
  tn_status status = TN_OK;
  if (t->from && !i) status = begin_read(t, 0, f);
  if (t->from && !status) status = end_work(&t->read[i % 2], f);
  if (t->to && !t->from && !status) status = end_work(&t->write[i % 2], f);
  if (t->from && !status && i + 1 < pieces) status = begin_read(t, i + 1, f);
  if (t->piece && !status)
    t->piece(t->user, p->at[i % 2], offset, left < p->bytes ? left : p->bytes);
  return t->to && !status ? begin_write(t, i, f) : status;
}

static tn_status run_transfer(transfer *t, diag *d) {
  immediate_stream *m = &t->staging->immediate;
  const staging_pieces *p = &m->staging;
  mutex_lock(&m->staging_lock);
  tn_status status = reserve_staging(t->staging, t->bytes, d);
  if (!status) {
    uint64_t pieces = (t->bytes + p->bytes - 1) / p->bytes;
    diag_clear(d);
    for (uint64_t i = 0; i < pieces && !status; i++) status = move_piece(t, i, pieces, &d->failure);
    for (int i = 0; i < 2; i++) { /* the memory is used until then, after a failure too */
      tn_failure unread, *f = status ? &unread : &d->failure;
      tn_status read = end_work(&t->read[i], f), write = read ? read : end_work(&t->write[i], f);
      if (read) end_work(&t->write[i], &unread);
      if (!status) status = write;
    }
    diag_complete(d, status);
  }
  mutex_unlock(&m->staging_lock);
  return status;
}

tn_status immediate_read(const tn_span *from, immediate_piece *take, void *user, diag *d) {
  transfer t = {
      .from = from, .piece = take, .user = user, .staging = from->device, .bytes = from->bytes};
  return run_transfer(&t, d);
}

tn_status immediate_write(const tn_span *to, immediate_piece *fill, void *user, diag *d) {
  transfer t = {.to = to, .piece = fill, .user = user, .staging = to->device, .bytes = to->bytes};
  return run_transfer(&t, d);
}

tn_status immediate_copy(const tn_span *to, const tn_span *from, diag *d) {
  transfer t = {.to = to, .from = from, .staging = to->device, .bytes = to->bytes};
  return run_transfer(&t, d);
}
