/* Implements the CUDA backend's devices and memory. A device is used through its primary context,
   which other libraries of the process share, and which is the calling thread's within calls alone.
   Staging memory is host memory that the driver has locked in place. */
#include "device/cuda/cuda_backend.h"

#include "device/cuda/cuda_device.h"
#include "ir/core/tensor_rows.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"

#include <stdio.h>

tn_status cuda_fail(cuda_device *v, const char *call, cuda_status status, tn_status usual,
                    tn_failure *f) {
  char text[CUDA_STATUS_BYTES];
  if (status == CUDA_OUT_OF_MEMORY) usual = TN_ERR_MEMORY;
  if (cuda_status_is_loss(status)) {
    atomic_store(&v->is_lost, true);
    usual = TN_ERR_DEVICE;
  }
  return tn_fail(f, usual, "CUDA:%d (%s): %s fails with %s", (int)v->index, v->facts.name, call,
                 cuda_status_text(&v->cu, status, text));
}

tn_status cuda_fail_lost(const cuda_device *v, tn_failure *f) {
  return tn_fail(f, TN_ERR_DEVICE, "CUDA:%d (%s) was lost", (int)v->index, v->facts.name);
}

tn_status cuda_enter(cuda_device *v, tn_failure *f) {
  cuda_status s = v->cu.CtxPushCurrent_v2(v->context);
  return s ? cuda_fail(v, "cuCtxPushCurrent", s, TN_ERR_DEVICE, f) : TN_OK;
}

void cuda_leave(const cuda_device *v) {
  cuda_context own;
  v->cu.CtxPopCurrent_v2(&own);
}

/* Devices. */

static tn_status cuda_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  cuda_api cu;
  cuda_facts k;
  tn_status status = cuda_device_find(index, &cu, &k, f);
  if (status) return status;
  char text[256];
  int n = snprintf(text, sizeof text, "%s, compute capability %d.%d (driver for CUDA %d.%d)",
                   k.name, k.major, k.minor, k.driver / 1000, k.driver % 1000 / 10);
  tn_output_add(about, text, (size_t)n);
  *bytes = k.bytes;
  return TN_OK;
}

/** Lists the ops that CUDA C lacks, or that devices lack before compute capability 8.0: tiles. */
static void list_lacking(const cuda_facts *k, const char *names[OP_LIMIT + 1]) {
  rule_target lacking = {0};
  render_c_unsupported_ops(&c_cuda, &lacking);
  for (op o = 0; o < OP_LIMIT && k->major < 8; o++)
    if (tensor_tile_of(o)) rule_target_add_missing_op(&lacking, o);
  rule_target_list_missing_ops(&lacking, names);
}

static void cuda_close(void *device) {
  cuda_device *v = device;
  tn_failure unread;
  if (v->origin && !cuda_enter(v, &unread)) {
    cuda_shared_event_release(v, v->origin);
    cuda_leave(v);
  }
  if (v->context) v->cu.DevicePrimaryCtxRelease_v2(v->facts.ordinal);
  mutex_free(&v->lock);
  mem m = v->mem;
  mem_free(&m, v, sizeof *v);
}

static tn_status cuda_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  cuda_api cu;
  cuda_facts facts;
  tn_status status = cuda_device_find(index, &cu, &facts, f);
  if (status) return status;
  mem m = {host->allocator.alloc, host->allocator.release, host->allocator.user};
  cuda_device *v = mem_calloc(&m, 1, sizeof *v);
  if (!v) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  v->mem = m;
  v->cu = cu;
  v->index = index;
  v->facts = facts;
  mutex_init(&v->lock);
  list_lacking(&facts, v->lacks);
  cuda_status s = cu.DevicePrimaryCtxRetain(&v->context, facts.ordinal);
  if (s) {
    char text[CUDA_STATUS_BYTES];
    v->context = NULL;
    cuda_close(v);
    return tn_fail(f, TN_ERR_DEVICE, "%s cannot be used: cuDevicePrimaryCtxRetain fails with %s",
                   facts.name, cuda_status_text(&cu, s, text));
  }
  *device = v;
  return TN_OK;
}

/* Memory. */

static tn_status cuda_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                            tn_failure *f) {
  cuda_device *v = device;
  bool is_staging = use == TN_MEMORY_STAGING;
  if (bytes > SIZE_MAX) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  cuda_memory *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  tn_status status = cuda_enter(v, f);
  if (!status) {
    cuda_status s = is_staging ? v->cu.MemHostAlloc(&m->host, (size_t)bytes, CUDA_HOST_PORTABLE)
                               : v->cu.MemAlloc_v2(&m->address, (size_t)bytes);
    const char *call = is_staging ? "cuMemHostAlloc" : "cuMemAlloc";
    if (s) status = cuda_fail(v, call, s, TN_ERR_MEMORY, f);
    cuda_leave(v);
  }
  if (is_staging) m->address = (cuda_address)(uintptr_t)m->host;
  if (status)
    mem_free(&v->mem, m, sizeof *m);
  else
    *memory = m;
  return status;
}

static void cuda_free(void *device, void *memory, uint64_t bytes) {
  cuda_device *v = device;
  cuda_memory *m = memory;
  tn_failure unread;
  (void)bytes;
  if (!cuda_enter(v, &unread)) {
    if (m->host)
      v->cu.MemFreeHost(m->host);
    else
      v->cu.MemFree_v2(m->address);
    cuda_leave(v);
  }
  mem_free(&v->mem, m, sizeof *m);
}

static void *cuda_host(void *device, void *memory) {
  (void)device;
  return ((cuda_memory *)memory)->host;
}

/** The driver copies between any two devices, through the host where it must. */
static tn_peer cuda_peer(void *device, void *other) {
  (void)device, (void)other;
  return TN_PEER_COPY;
}

/* ---- */

static const tn_pair pairs[] = {{&cuda_renderer, &cuda_compiler, cuda_compiler_present}};

const tn_backend cuda_backend = {.size = sizeof cuda_backend,
                                 .name = "CUDA",
                                 .pairs = pairs,
                                 .n_pairs = 1,
                                 .count = cuda_device_count,
                                 .probe = cuda_probe,
                                 .open = cuda_open,
                                 .close = cuda_close,
                                 .alloc = cuda_alloc,
                                 .free = cuda_free,
                                 .host = cuda_host,
                                 .peer = cuda_peer,
                                 .load = cuda_load,
                                 .unload = cuda_unload,
                                 .program = cuda_program_make,
                                 .program_free = cuda_program_free,
                                 .streams = &cuda_streams,
                                 .products = &cuda_product_library,
                                 .graphs = &cuda_graphs};
