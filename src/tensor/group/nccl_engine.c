/* Implements the engine NCCL, opened at run time: collectives on the memory of a CUDA device, in a
   stream of the group's own. A plan's step waits for what computes its inputs before it runs, and
   the group for the collective, so that no other stream needs to be awaited. The communicator does
   not block (ncclConfig_t, 2.14): a process that does not come costs a time limit, also where it
   does not join. */
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_api.h"
#include "tensor/group/group_engine.h"

#include <string.h>

typedef struct nccl_group {
  const tn_device *owner;
  cuda_device *device;
  nccl_api api;
  nccl_communicator communicator; /* NULL: not joined */
  void *stream;
  void *mark;      /* behind the collective under way; NULL: there is none */
  bool lacks_mark; /* a collective was started that the stream may not have yet */
} nccl_group;

_Static_assert((int)NCCL_ENGINE_ID_BYTES == (int)NCCL_ID_BYTES, "an id for all processes");

static tn_status check(const nccl_group *g, nccl_result r, const char *doing, diag *d) {
  if (r == NCCL_SUCCESS || r == NCCL_IN_PROGRESS) return TN_OK;
  const char *text = g->api.GetErrorString(r), *last = g->api.GetLastError(g->communicator);
  if (!last) last = "";
  return diag_set(d, TN_ERR_IO, "NCCL cannot %s on %s: %s (%.100s)%s%.200s", doing, g->owner->name,
                  nccl_result_name(r), text ? text : "", *last ? ": " : "", last);
}

/** Makes the device the calling thread's, until cuda_leave. */
static tn_status enter(const nccl_group *g, diag *d) {
  diag_clear(d);
  return diag_complete(d, cuda_enter(g->device, &d->failure));
}

static void forget_mark(nccl_group *g) {
  if (g->mark) cuda_streams.mark_free(g->mark);
  g->mark = NULL;
}

/** Aborts where processes may not come any more, as ncclCommDestroy waits for them. */
static void nccl_close(const mem *m, void *state, bool is_stuck) {
  nccl_group *g = state;
  tn_failure unread;
  if (g->communicator && !cuda_enter(g->device, &unread)) {
    if (is_stuck)
      g->api.CommAbort(g->communicator);
    else
      g->api.CommDestroy(g->communicator);
    cuda_leave(g->device);
  }
  forget_mark(g);
  if (g->stream) cuda_streams.free(g->stream);
  mem_free(m, g, sizeof *g);
}

tn_status nccl_open_device(const mem *m, tn_device *device, void **state, diag *d) {
  cuda_device *v = tn_device_native(device, &cuda_backend);
  if (!v) return diag_set(d, TN_ERR_DEVICE, "NCCL is for devices of CUDA, not %s", device->name);
  nccl_group *g = mem_calloc(m, 1, sizeof *g);
  if (!g) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  g->owner = device;
  g->device = v;
  tn_status s = nccl_open(&g->api, d);
  if (s == TN_OK) {
    diag_clear(d);
    s = diag_complete(d, cuda_streams.open(v, TN_QUEUE_COMPUTE, &g->stream, &d->failure));
  }
  if (s == TN_OK)
    *state = g;
  else
    nccl_close(m, g, false);
  return s;
}

tn_status nccl_make_id(void *state, char id[NCCL_ENGINE_ID_BYTES], diag *d) {
  const nccl_group *g = state;
  nccl_id made;
  tn_status s = enter(g, d);
  if (s != TN_OK) return s;
  s = check(g, g->api.GetUniqueId(&made), "make an id", d);
  cuda_leave(g->device);
  if (s == TN_OK) memcpy(id, made.bytes, sizeof made.bytes);
  return s;
}

tn_status nccl_join(void *state, const char id[NCCL_ENGINE_ID_BYTES], int64_t rank, int64_t size,
                    diag *d) {
  nccl_group *g = state;
  nccl_id own;
  nccl_config config = {sizeof config, NCCL_CONFIG_MAGIC, NCCL_CONFIG_VERSION, 0};
  memcpy(own.bytes, id, sizeof own.bytes);
  tn_status s = enter(g, d);
  if (s != TN_OK) return s;
  nccl_result r = g->api.CommInitRankConfig(&g->communicator, (int)size, own, (int)rank, &config);
  s = check(g, r, "join the processes", d);
  cuda_leave(g->device);
  return s;
}

/* Collectives. */

static void *nccl_address(void *state, const tn_span *span) {
  const nccl_group *g = state;
  if (span->device != g->owner) return NULL;
  return (void *)(uintptr_t)(((const cuda_memory *)span->memory)->address + span->offset);
}

/** A constant of ours, and NCCL's number of it. */
typedef struct numbered {
  int own, number;
} numbered;

/** NCCL's number; −1: it has none. */
static int number_of(const numbered all[], size_t n, int own) {
  for (size_t i = 0; i < n; i++)
    if (all[i].own == own) return all[i].number;
  return -1;
}

static int type_number(dtype t) {
  static const numbered types[] = {
#define NCCL_TYPE(dtype, number) {(int)(dtype), number},
#include "device/cuda/nccl_functions.def"
  };
  return number_of(types, sizeof types / sizeof *types, (int)t);
}

static int reduction_number(tn_reduction r) {
  static const numbered reductions[] = {
#define NCCL_REDUCTION(reduction, number) {(int)(reduction), number},
#include "device/cuda/nccl_functions.def"
  };
  return number_of(reductions, sizeof reductions / sizeof *reductions, (int)r);
}

static nccl_result hand_over(const nccl_group *g, const collective_piece *p) {
  const nccl_api *api = &g->api;
  nccl_communicator in = g->communicator;
  cuda_stream stream = ((const cuda_queue *)g->stream)->stream;
  int type = type_number(p->dtype), bytes = type_number(DT_U8);
  int op = reduction_number(p->reduction);
  size_t n = p->count, size = n * dtype_bytes(p->dtype);
  switch (p->kind) {
  case COLLECTIVE_ALL_REDUCE: return api->AllReduce(p->from, p->to, n, type, op, in, stream);
  case COLLECTIVE_ALL_GATHER: return api->AllGather(p->from, p->to, size, bytes, in, stream);
  case COLLECTIVE_REDUCE_SCATTER:
    return api->ReduceScatter(p->from, p->to, n, type, op, in, stream);
  default: return api->Broadcast(p->from, p->to, size, bytes, (int)p->root, in, stream);
  }
}

static tn_status nccl_start(void *state, const collective_piece *p, diag *d) {
  nccl_group *g = state;
  tn_status s = enter(g, d);
  if (s != TN_OK) return s;
  s = check(g, hand_over(g, p), "start a collective", d);
  cuda_leave(g->device);
  g->lacks_mark = s == TN_OK;
  return s;
}

/** Tells whether the stream has done the collective that it got. */
static tn_status look_at_mark(nccl_group *g, bool *done, diag *d) {
  diag_clear(d);
  if (g->lacks_mark) {
    tn_status s = diag_complete(d, cuda_streams.mark(g->stream, false, &g->mark, &d->failure));
    if (s != TN_OK) return s;
    g->lacks_mark = false;
  }
  tn_status s = g->mark ? cuda_streams.sync(g->mark, 0, &d->failure) : TN_OK;
  if (s == TN_ERR_TIMEOUT) {
    diag_clear(d);
    return TN_OK;
  }
  if (s == TN_OK) forget_mark(g);
  *done = s == TN_OK;
  return diag_complete(d, s);
}

static tn_status nccl_is_done(void *state, bool *done, diag *d) {
  nccl_group *g = state;
  nccl_result now = NCCL_SUCCESS;
  *done = false;
  tn_status s = enter(g, d);
  if (s != TN_OK) return s;
  nccl_result r = g->api.CommGetAsyncError(g->communicator, &now);
  cuda_leave(g->device);
  s = check(g, r, "tell how a collective goes", d);
  if (s == TN_OK)
    s = check(g, now, g->lacks_mark || g->mark ? "go on with a collective" : "join the processes",
              d);
  return s != TN_OK || now == NCCL_IN_PROGRESS ? s : look_at_mark(g, done, d);
}

const group_engine nccl_engine = {"NCCL", nccl_close, nccl_start, nccl_is_done, nccl_address};
