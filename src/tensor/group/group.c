/* Implements groups of processes. A collective first compares a hash of itself with the other
   processes', then runs piece by piece through memory of the group's. While it waits the thread
   polls, then sleeps; past the time limit, or where hashes differ, the group is lost, as nobody
   knows which collective the others are at. Where hashes differ all processes are told, so the
   group still ends as others do; the memory of a piece that failed is left to the engine. An engine
   of devices gets whole arrays, where they lie, and is aborted when it fails, as they are the
   plan's. */
#include "tensor/group/group.h"

#include "base/hash.h"
#include "device/memory/span.h"
#include "tensor/context/descriptor.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

enum { PIECE_BYTES = 4 << 20, POLL_NS = 50000, SLEEP_NS = 50000 };

/* Opening and freeing. */

tn_group *group_retain(tn_group *g) {
  atomic_fetch_add_explicit(&g->count, 1, memory_order_relaxed);
  return g;
}

void group_close_link(tn_group *g, group_link *l, bool is_stuck) {
  if (l->state) l->engine->close(&g->context->mem, l->state, is_stuck);
  *l = (group_link){NULL, NULL};
}

void group_release(tn_group *g) {
  if (!g || atomic_fetch_sub_explicit(&g->count, 1, memory_order_acq_rel) > 1) return;
  const mem *m = &g->context->mem;
  group_close_link(g, &g->device, g->is_stuck);
  group_close_link(g, &g->host, g->is_stuck);
  for (size_t i = 0; i < 2 && !g->is_stuck; i++) mem_free(m, g->pieces[i], g->bytes);
  mutex_free(&g->lock);
  mem_free(m, g, sizeof *g);
}

static void destroy_group(attachment *base) {
  group_release((tn_group *)(void *)((char *)base - offsetof(tn_group, attachment)));
}

static tn_status read_desc(tn_context *c, const tn_group_desc *given, tn_group_desc *desc) {
  diag *d = &c->diag;
  if (given && descriptor_read(d, desc, given, sizeof *desc, "tn_group_desc") != TN_OK)
    return d->status;
  if (desc->engine && strcmp(desc->engine, mpi_engine.name) &&
      strcmp(desc->engine, nccl_engine.name))
    return diag_set(d, TN_ERR_ARGUMENT, "there is no engine \"%.100s\": engines are %s and %s",
                    desc->engine, mpi_engine.name, nccl_engine.name);
  if (!(desc->timeout >= 0) || desc->timeout > 1e9)
    return diag_set(d, TN_ERR_ARGUMENT, "the time limit is %g seconds; it is from 0 to 1e9",
                    desc->timeout);
  return TN_OK;
}

static tn_status open_group(tn_context *c, const tn_group_desc *given, tn_group **out) {
  tn_group_desc desc = TN_GROUP_DESC_INIT;
  if (!out) return diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the group is NULL");
  tn_status s = read_desc(c, given, &desc);
  if (s != TN_OK) return s;
  tn_group *g = mem_calloc(&c->mem, 1, sizeof *g);
  if (!g) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  g->context = c;
  g->host.engine = &mpi_engine;
  g->timeout_ns = (int64_t)((desc.timeout > 0 ? desc.timeout : 60) * 1e9);
  g->attachment.destroy = destroy_group;
  atomic_init(&g->count, 1);
  atomic_init(&g->n_built, 0);
  mutex_init(&g->lock);
  s = mpi_open(&c->mem, &g->host.state, &g->rank, &g->size, &c->diag);
  if (s == TN_OK) {
    g->bytes = (size_t)g->size * PIECE_BYTES;
    for (size_t i = 0; i < 2 && s == TN_OK; i++)
      if (!(g->pieces[i] = mem_alloc(&c->mem, g->bytes)))
        s = diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  if (s == TN_OK) s = group_open_device_link(g, desc.engine, &c->diag);
  if (s == TN_OK) {
    context_attach(c, &g->attachment);
    *out = g;
  } else {
    group_release(g);
  }
  return s;
}

tn_status tn_group_open(tn_context *c, const tn_group_desc *desc, tn_group **out) {
  if (out) *out = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  diag_clear(&c->diag);
  s = open_group(c, desc, out);
  if (s != TN_OK) context_fail_call(c, "group_open");
  context_release(c);
  return s;
}

void tn_group_free(tn_group *g) {
  tn_context *c = g ? g->context : NULL;
  if (!g || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  context_detach(c, &g->attachment);
  group_release(g);
  context_end_concurrent(c);
}

int64_t tn_group_size(const tn_group *g) { return g ? g->size : -1; }
int64_t tn_group_rank(const tn_group *g) { return g ? g->rank : -1; }

/* Collectives. */

/** TN_ERR_TIMEOUT past the time limit, which each piece has, as a large array takes its time. */
tn_status group_wait(tn_group *g, const group_link *l, uint64_t limits, diag *d) {
  bool is_done = false;
  int64_t start = clock_now_ns();
  double limit_ns = (double)g->timeout_ns * (double)limits;
  tn_status s = TN_OK;
  while (s == TN_OK && !is_done) {
    s = l->engine->is_done(l->state, &is_done, d);
    int64_t now = clock_now_ns();
    if (s != TN_OK || is_done) break;
    if (now - start >= limit_ns)
      return diag_set(d, TN_ERR_TIMEOUT,
                      "the other processes did not come to it within %g s: one of them may have "
                      "ended, or run another graph",
                      limit_ns / 1e9);
    if (now - start > POLL_NS) nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
  }
  return s;
}

tn_status group_run_piece(tn_group *g, const group_link *l, const collective_piece *p,
                          uint64_t limits, diag *d) {
  tn_status s = l->engine->start(l->state, p, d);
  if (s == TN_OK) s = group_wait(g, l, limits, d);
  g->is_stuck = s != TN_OK;
  return s;
}

/** TN_ERR_ARGUMENT unless all processes are at the same collective: the greatest hash is the
    least. `*is_direct`: the device's engine reaches the arrays here; then, in all. */
static tn_status compare_processes(tn_group *g, uint64_t hash, bool *is_direct, diag *d) {
  uint64_t *own = (uint64_t *)(void *)g->pieces[0], *most = (uint64_t *)(void *)g->pieces[1];
  own[0] = hash;
  own[1] = ~hash;
  own[2] = !*is_direct;
  const collective_piece p = {.kind = COLLECTIVE_ALL_REDUCE,
                              .reduction = TN_REDUCTION_MAX,
                              .dtype = DT_U64,
                              .count = 3,
                              .from = own,
                              .to = most};
  tn_status s = group_run_piece(g, &g->host, &p, 1, d);
  *is_direct = !most[2];
  if (s != TN_OK || most[0] == (uint64_t)~most[1]) return s;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "other processes run another collective here, or one of other types, sizes or "
                  "options: all must build the same graph and run it equally often");
}

static uint64_t hash_collective(const tn_group *g, const collective *c, const tn_type *in) {
  const uint64_t words[] = {g->n_run,
                            c->number,
                            c->kind,
                            c->reduction,
                            (uint64_t)c->root,
                            in->dtype,
                            (uint64_t)in->shape.rank};
  hasher h = hash_begin_keyed(0, 0); /* the same in all processes */
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) hash_add_word(&h, words[i]);
  for (int32_t i = 0; i < in->shape.rank; i++) hash_add_word(&h, (uint64_t)in->shape.size[i]);
  return hash_end(&h);
}

/** Copies bytes of an array from `offset` on to the host, or from there where `writes`. */
static tn_status copy_part(collective_array x, size_t offset, char *host, size_t bytes, bool writes,
                           diag *d) {
  if (x.data) {
    memcpy(writes ? x.data + offset : host, writes ? host : x.data + offset, bytes);
    return TN_OK;
  }
  const tn_span part = span_slice(x.span, offset, bytes);
  return writes ? span_write(&part, DT_U8, DT_U8, host, bytes, d)
                : span_read(&part, DT_U8, DT_U8, host, bytes, d);
}

/** A piece of each of an array's rows, which is `bytes` long, and lies one after another in the
    group's memory. */
typedef struct row_pieces {
  size_t rows, pitch, offset, bytes;
} row_pieces;

static tn_status copy_rows(collective_array x, const row_pieces *r, char *host, bool writes,
                           diag *d) {
  tn_status s = TN_OK;
  for (size_t i = 0; i < r->rows && s == TN_OK; i++)
    s = copy_part(x, i * r->pitch + r->offset, host + i * r->bytes, r->bytes, writes, d);
  return s;
}

/** Runs a collective through the host's memory. Where copies fail, other processes wait for a piece
    that does not come. */
static tn_status run_pieces(tn_group *g, const collective *c, dtype t, uint64_t count,
                            collective_array from, collective_array to, diag *d) {
  size_t element = dtype_bytes(t), size = (size_t)g->size, most = PIECE_BYTES / element;
  size_t rows_in = c->kind == COLLECTIVE_REDUCE_SCATTER ? size : 1;
  size_t rows_out = c->kind == COLLECTIVE_ALL_GATHER ? size : 1;
  tn_status s = TN_OK;
  for (uint64_t done = 0; s == TN_OK && done < count; done += most) {
    size_t n = count - done < most ? (size_t)(count - done) : most;
    char *in = g->pieces[0], *out = c->kind == COLLECTIVE_BROADCAST ? in : g->pieces[1];
    row_pieces rows = {rows_in, (size_t)count * element, (size_t)done * element, n * element};
    const collective_piece p = {.kind = c->kind,
                                .reduction = c->reduction,
                                .dtype = t,
                                .root = c->root,
                                .count = n,
                                .from = in,
                                .to = out};
    s = copy_rows(from, &rows, in, false, d);
    if (s == TN_OK) s = group_run_piece(g, &g->host, &p, 1, d);
    rows.rows = rows_out;
    if (s == TN_OK) s = copy_rows(to, &rows, out, true, d);
  }
  g->is_stuck = s != TN_OK;
  return s;
}

/** Runs a collective by the device's engine, which is aborted if that fails. */
static tn_status run_direct(tn_group *g, const collective *c, dtype t, uint64_t count,
                            collective_array from, collective_array to, diag *d) {
  const group_link *l = &g->device;
  const collective_piece p = {.kind = c->kind,
                              .reduction = c->reduction,
                              .dtype = t,
                              .root = c->root,
                              .count = (size_t)count,
                              .from = l->engine->address(l->state, from.span),
                              .to = l->engine->address(l->state, to.span)};
  uint64_t limits = 1 + count * dtype_bytes(t) / PIECE_BYTES;
  tn_status s = group_run_piece(g, l, &p, limits, d);
  if (s != TN_OK) group_close_link(g, &g->device, true);
  return s;
}

/** True if an engine of devices reaches an array, which is not empty. */
static bool reaches(const group_link *l, collective_array x) {
  return l->engine && !x.data && x.span && x.span->bytes && l->engine->address(l->state, x.span);
}

tn_status group_run(tn_group *g, const collective *c, const tn_type *in, uint64_t count,
                    collective_array from, collective_array to, const char *text, diag *d) {
  mutex_lock(&g->lock);
  tn_status s = g->lost.status;
  if (s != TN_OK) {
    diag_set(d, s, "%s: the group is lost since a collective failed: %.400s", text, g->lost.text);
  } else {
    uint64_t hash = hash_collective(g, c, in);
    g->n_run++;
    bool is_direct = reaches(&g->device, from) && reaches(&g->device, to);
    s = compare_processes(g, hash, &is_direct, d);
    if (s == TN_OK)
      s = (is_direct ? run_direct : run_pieces)(g, c, (dtype)in->dtype, count, from, to, d);
    if (s != TN_OK) {
      diag_prefix(d, "%s, process %lld of %lld", text, (long long)g->rank, (long long)g->size);
      g->lost = d->failure;
    }
  }
  mutex_unlock(&g->lock);
  return s;
}
