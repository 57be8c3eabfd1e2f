/* Implements groups of processes. A collective first compares a hash of itself with the other
   processes', then runs piece by piece through memory of the group's. While it waits the thread
   polls, then sleeps; past the time limit, or where hashes differ, the group is lost, as nobody
   knows which collective the others are at. Where hashes differ all processes are told, so the
   group still ends as others do; the memory of a piece that failed is left to the engine. */
#include "tensor/group/group.h"

#include "base/hash.h"
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

void group_release(tn_group *g) {
  if (!g || atomic_fetch_sub_explicit(&g->count, 1, memory_order_acq_rel) > 1) return;
  const mem *m = &g->context->mem;
  if (g->state) g->engine->close(m, g->state, g->is_stuck);
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
  if (desc->engine && strcmp(desc->engine, mpi_engine.name))
    return diag_set(d, TN_ERR_ARGUMENT, "there is no engine \"%.100s\": \"MPI\" is one",
                    desc->engine);
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
  g->engine = &mpi_engine;
  g->timeout_ns = (int64_t)((desc.timeout > 0 ? desc.timeout : 60) * 1e9);
  g->attachment.destroy = destroy_group;
  atomic_init(&g->count, 1);
  mutex_init(&g->lock);
  s = g->engine->open(&c->mem, &g->state, &g->rank, &g->size, &c->diag);
  if (s == TN_OK) {
    g->bytes = (size_t)g->size * PIECE_BYTES;
    for (size_t i = 0; i < 2 && s == TN_OK; i++)
      if (!(g->pieces[i] = mem_alloc(&c->mem, g->bytes)))
        s = diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
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

/** Waits for the piece that was started; TN_ERR_TIMEOUT past the time limit, which each piece has,
    as a large array takes its time. */
static tn_status wait_for_piece(tn_group *g, diag *d) {
  bool is_done = false;
  int64_t start = clock_now_ns();
  tn_status s = TN_OK;
  while (s == TN_OK && !is_done) {
    s = g->engine->is_done(g->state, &is_done, d);
    int64_t now = clock_now_ns();
    if (s != TN_OK || is_done) break;
    if (now - start >= g->timeout_ns)
      return diag_set(d, TN_ERR_TIMEOUT,
                      "the other processes did not come to it within %g s: one of them may have "
                      "ended, or run another graph",
                      (double)g->timeout_ns / 1e9);
    if (now - start > POLL_NS) nanosleep(&(struct timespec){0, SLEEP_NS}, NULL);
  }
  return s;
}

static tn_status run_piece(tn_group *g, const collective_piece *p, diag *d) {
  tn_status s = g->engine->start(g->state, p, d);
  if (s == TN_OK) s = wait_for_piece(g, d);
  g->is_stuck = s != TN_OK;
  return s;
}

/** TN_ERR_ARGUMENT unless all processes are at the same collective: the greatest hash is the
    least. */
static tn_status compare_processes(tn_group *g, uint64_t hash, diag *d) {
  uint64_t *own = (uint64_t *)(void *)g->pieces[0], *most = (uint64_t *)(void *)g->pieces[1];
  own[0] = hash;
  own[1] = ~hash;
  const collective_piece p = {.kind = COLLECTIVE_ALL_REDUCE,
                              .reduction = TN_REDUCTION_MAX,
                              .dtype = DT_U64,
                              .count = 2,
                              .from = own,
                              .to = most};
  tn_status s = run_piece(g, &p, d);
  if (s != TN_OK || most[0] == (uint64_t)~most[1]) return s;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "other processes run another collective here, or one of other types, sizes or "
                  "options: all must build the same graph and run it equally often");
}

static uint64_t hash_collective(const tn_group *g, const collective *c, const tn_type *in) {
  const uint64_t words[] = {g->n_run,          c->kind,   c->reduction,
                            (uint64_t)c->root, in->dtype, (uint64_t)in->shape.rank};
  hasher h = hash_begin_keyed(0, 0); /* the same in all processes */
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) hash_add_word(&h, words[i]);
  for (int32_t i = 0; i < in->shape.rank; i++) hash_add_word(&h, (uint64_t)in->shape.size[i]);
  return hash_end(&h);
}

/** Copies n elements of each of `rows` rows, which lie `from_pitch` and `to_pitch` bytes apart. */
static void copy_rows(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t rows,
                      size_t bytes) {
  for (size_t i = 0; i < rows; i++) memcpy(to + i * to_pitch, from + i * from_pitch, bytes);
}

static tn_status run_pieces(tn_group *g, const collective *c, dtype t, uint64_t count,
                            const char *from, char *to, diag *d) {
  size_t element = dtype_bytes(t), size = (size_t)g->size, most = PIECE_BYTES / element;
  size_t rows_in = c->kind == COLLECTIVE_REDUCE_SCATTER ? size : 1;
  size_t rows_out = c->kind == COLLECTIVE_ALL_GATHER ? size : 1;
  tn_status s = TN_OK;
  for (uint64_t done = 0; s == TN_OK && done < count; done += most) {
    size_t n = count - done < most ? (size_t)(count - done) : most;
    char *in = g->pieces[0], *out = g->pieces[1];
    copy_rows(in, n * element, from + done * element, (size_t)count * element, rows_in,
              n * element);
    if (c->kind == COLLECTIVE_BROADCAST) out = in;
    const collective_piece p = {.kind = c->kind,
                                .reduction = c->reduction,
                                .dtype = t,
                                .root = c->root,
                                .count = n,
                                .from = in,
                                .to = out};
    s = run_piece(g, &p, d);
    if (s == TN_OK)
      copy_rows(to + done * element, (size_t)count * element, out, n * element, rows_out,
                n * element);
  }
  return s;
}

tn_status group_run(tn_group *g, const collective *c, const tn_type *in, uint64_t count,
                    const void *from, void *to, const char *text, diag *d) {
  mutex_lock(&g->lock);
  tn_status s = g->lost.status;
  if (s != TN_OK) {
    diag_set(d, s, "%s: the group is lost since a collective failed: %.400s", text, g->lost.text);
  } else {
    uint64_t hash = hash_collective(g, c, in);
    g->n_run++;
    s = compare_processes(g, hash, d);
    if (s == TN_OK) s = run_pieces(g, c, (dtype)in->dtype, count, from, to, d);
    if (s != TN_OK) {
      diag_prefix(d, "%s, process %lld of %lld", text, (long long)g->rank, (long long)g->size);
      g->lost = d->failure;
    }
  }
  mutex_unlock(&g->lock);
  return s;
}
