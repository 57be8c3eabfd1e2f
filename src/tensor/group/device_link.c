/* Opens the engine of the devices of a group, NCCL, over the engine of the host, Open MPI: all
   processes say whether they can, the first one's id goes to all, and after they have joined all
   say so again. Each exchange runs in every process, whatever it wants and has, so that none waits
   for another; one that cannot lets all go by the host's memory. */
#include "device/cuda/cuda_backend.h"
#include "tensor/group/group.h"

#include <string.h>

/** Replaces *is_so by whether it is so in all processes; waits for `limits` time limits. */
static tn_status agree(tn_group *g, bool *is_so, uint64_t limits, diag *d) {
  uint8_t *own = (uint8_t *)g->pieces[0], *least = (uint8_t *)g->pieces[1];
  *own = *is_so;
  const collective_piece p = {.kind = COLLECTIVE_ALL_REDUCE,
                              .reduction = TN_REDUCTION_MIN,
                              .dtype = DT_U8,
                              .count = 1,
                              .from = own,
                              .to = least};
  tn_status s = group_run_piece(g, &g->host, &p, limits, d);
  *is_so = s == TN_OK && *least;
  return s;
}

/** Opens the engine here, and in the first process makes the id. */
static tn_status open_here(tn_group *g, char id[NCCL_ENGINE_ID_BYTES], diag *why) {
  tn_context *c = g->context;
  tn_status s = nccl_open_device(&c->mem, c->device, &g->device.state, why);
  if (s != TN_OK) return s;
  g->device.engine = &nccl_engine;
  return g->rank ? TN_OK : nccl_make_id(g->device.state, id, why);
}

/** Gives the first process's id to all; *why tells why this one did not join. */
static tn_status join_all(tn_group *g, const char id[NCCL_ENGINE_ID_BYTES], diag *why, diag *d) {
  char *shared = g->pieces[0];
  const collective_piece p = {.kind = COLLECTIVE_BROADCAST,
                              .dtype = DT_U8,
                              .count = NCCL_ENGINE_ID_BYTES,
                              .from = shared,
                              .to = shared};
  memcpy(shared, id, NCCL_ENGINE_ID_BYTES);
  tn_status s = group_run_piece(g, &g->host, &p, 1, d);
  if (s != TN_OK) return s;
  tn_status joined = nccl_join(g->device.state, shared, g->rank, g->size, why);
  if (joined == TN_OK) group_wait(g, &g->device, 1, why);
  return TN_OK;
}

/** Tells the logger by what collectives go. */
static void tell(const tn_group *g, bool may, const diag *why) {
  tn_context *c = g->context;
  long long n = (long long)g->size;
  if (g->device.engine)
    context_log(c, TN_LOG_INFO, "collectives of %lld processes go by %s on %s", n,
                g->device.engine->name, c->device->name);
  else if (may && tn_device_native(c->device, &cuda_backend))
    context_log(c, TN_LOG_WARNING,
                "collectives of %lld processes go by %s, through host memory: %s", n,
                g->host.engine->name, why->text);
  else
    context_log(c, TN_LOG_INFO, "collectives of %lld processes go by %s", n, g->host.engine->name);
}

tn_status group_open_device_link(tn_group *g, const char *wanted, diag *d) {
  char id[NCCL_ENGINE_ID_BYTES] = {0};
  diag why = {0};
  bool may = !wanted || !strcmp(wanted, nccl_engine.name);
  bool is_open = may && open_here(g, id, &why) == TN_OK;
  tn_status s = agree(g, &is_open, 1, d);
  if (s == TN_OK && is_open) {
    s = join_all(g, id, &why, d);
    is_open = s == TN_OK && why.status == TN_OK;
    if (s == TN_OK) s = agree(g, &is_open, 2, d); /* others may join for one limit */
  }
  if (!is_open) group_close_link(g, &g->device, true);
  if (s != TN_OK) return s;
  if (!is_open && why.status == TN_OK)
    diag_set(&why, TN_ERR_DEVICE, "another process cannot use it, or names another engine");
  tell(g, may, &why);
  if (is_open || !wanted || !may) return TN_OK;
  return diag_set(d, why.status, "the engine %s cannot be used: %.400s", wanted, why.text);
}
