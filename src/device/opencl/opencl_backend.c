/* Implements the OPENCL backend's devices and memory. A device has a context of its own: what
   passes between two goes through the host, and a stream waits for another device's mark by an
   event of its own, which the driver's callback sets. Memory is a buffer; staging memory is one
   that the driver allocates for transfers, and that stays mapped. */
#include "device/opencl/opencl_backend.h"

#include "device/opencl/opencl_device.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tn_status opencl_fail(const opencl_device *v, const char *call, cl_status status, tn_status usual,
                      tn_failure *f) {
  enum { NO_MEMORY = -4, NO_HOST_MEMORY = -6 };
  char text[OPENCL_STATUS_BYTES];
  if (status == NO_MEMORY || status == NO_HOST_MEMORY) usual = TN_ERR_MEMORY;
  return tn_fail(f, usual, "OPENCL:%d (%s): %s fails with %s", (int)v->index, v->facts.name, call,
                 opencl_status_name(status, text));
}

/* Devices. */

static tn_status opencl_probe(int32_t index, tn_output *about, uint64_t *bytes, tn_failure *f) {
  opencl_api cl;
  opencl_facts k;
  tn_status status = opencl_device_find(index, &cl, &k, f);
  if (status) return status;
  char text[512];
  int n = snprintf(text, sizeof text, "%s, OpenCL %d.%d (%s %s)%s", k.name, k.version / 10,
                   k.version % 10, k.platform_name, k.driver,
                   k.has_subnormals ? "" : ", without subnormal numbers");
  tn_output_add(about, text, (size_t)n);
  *bytes = k.bytes;
  return TN_OK;
}

/** Lists the ops that OpenCL C lacks. */
static void list_lacking(const char *names[OP_LIMIT + 1]) {
  rule_target lacking = {0};
  render_c_unsupported_ops(&c_opencl, &lacking);
  rule_target_list_missing_ops(&lacking, names);
}

/* Losses. Drivers also notify of matters that are no failures, and say in no regular form which it
   is: a notification only has the device tried. */

void opencl_note(const char *text, const void *data, size_t bytes, void *device) {
  (void)text, (void)data, (void)bytes;
  atomic_fetch_add(&((opencl_device *)device)->noted, 1);
}

static void end_trial(opencl_device *v) {
  if (v->trial) v->cl.ReleaseEvent(v->trial);
  v->trial = NULL;
}

/** Gives the device an empty command, in place of the one that it has. */
static cl_status begin_trial(opencl_device *v) {
  end_trial(v);
  cl_status s = v->cl.EnqueueMarkerWithWaitList(v->mappings, 0, NULL, &v->trial);
  if (s) v->trial = NULL;
  return s ? s : v->cl.Flush(v->mappings);
}

/** True if the device is available and does what it is given, or has not done it yet: nobody waits.
 */
static bool passes_trial(opencl_device *v, bool is_new) {
  uint32_t available = 0;
  cl_status state = 0;
  cl_status s =
      v->cl.GetDeviceInfo(v->facts.id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
  if (s || !available) return false;
  if (is_new && begin_trial(v)) return false;
  s = v->cl.GetEventInfo(v->trial, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
  if (s || state <= CL_COMPLETE) end_trial(v);
  return !s && state >= CL_COMPLETE;
}

bool opencl_is_lost(opencl_device *v) {
  if (atomic_load(&v->tried) != atomic_load(&v->noted) || atomic_load(&v->is_tried)) {
    mutex_lock(&v->lock);
    unsigned noted = atomic_load(&v->noted);
    bool is_new = atomic_load(&v->tried) != noted;
    if ((is_new || v->trial) && !passes_trial(v, is_new)) atomic_store(&v->is_lost, true);
    atomic_store(&v->is_tried, v->trial != NULL);
    atomic_store(&v->tried, noted);
    mutex_unlock(&v->lock);
  }
  return atomic_load(&v->is_lost);
}

static void opencl_close(void *device) {
  opencl_device *v = device;
  end_trial(v);
  if (v->mappings) v->cl.ReleaseCommandQueue(v->mappings);
  if (v->context) v->cl.ReleaseContext(v->context);
  mutex_free(&v->lock);
  mem m = v->mem;
  mem_free(&m, v, sizeof *v);
}

static tn_status open_context(opencl_device *v, tn_failure *f) {
  cl_status s = 0;
  v->context = v->cl.CreateContext(NULL, 1, &v->facts.id, opencl_note, v, &s);
  if (!v->context) return opencl_fail(v, "clCreateContext", s, TN_ERR_DEVICE, f);
  v->mappings = v->cl.CreateCommandQueue(v->context, v->facts.id, 0, &s);
  return v->mappings ? TN_OK : opencl_fail(v, "clCreateCommandQueue", s, TN_ERR_DEVICE, f);
}

static tn_status opencl_open(int32_t index, const tn_host *host, void **device, tn_failure *f) {
  opencl_api cl;
  opencl_facts facts;
  tn_status status = opencl_device_find(index, &cl, &facts, f);
  if (status) return status;
  mem m = {host->allocator.alloc, host->allocator.release, host->allocator.user};
  opencl_device *v = mem_calloc(&m, 1, sizeof *v);
  if (!v) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  v->mem = m;
  v->cl = cl;
  v->index = index;
  v->facts = facts;
  mutex_init(&v->lock);
  list_lacking(v->lacks);
  status = open_context(v, f);
  if (status)
    opencl_close(v);
  else
    *device = v;
  return status;
}

/* Memory. */

/** Maps a buffer for as long as it lives. */
static tn_status map_memory(opencl_device *v, opencl_memory *m, uint64_t bytes, tn_failure *f) {
  cl_status s = 0;
  mutex_lock(&v->lock);
  m->host = v->cl.EnqueueMapBuffer(v->mappings, m->buffer, true, CL_MAP_READ_WRITE, 0,
                                   (size_t)bytes, 0, NULL, NULL, &s);
  mutex_unlock(&v->lock);
  return m->host ? TN_OK : opencl_fail(v, "clEnqueueMapBuffer", s, TN_ERR_DEVICE, f);
}

static void opencl_free(void *device, void *memory, uint64_t bytes) {
  opencl_device *v = device;
  opencl_memory *m = memory;
  (void)bytes;
  if (m->host) {
    mutex_lock(&v->lock);
    v->cl.EnqueueUnmapMemObject(v->mappings, m->buffer, m->host, 0, NULL, NULL);
    v->cl.Finish(v->mappings);
    mutex_unlock(&v->lock);
  }
  if (m->buffer) v->cl.ReleaseMemObject(m->buffer);
  mem_free(&v->mem, m, sizeof *m);
}

static tn_status opencl_alloc(void *device, uint64_t bytes, tn_memory_use use, void **memory,
                              tn_failure *f) {
  opencl_device *v = device;
  bool is_staging = use == TN_MEMORY_STAGING;
  cl_status s = 0;
  tn_status status = TN_OK;
  char wanted[MEM_TEXT_BYTES], most[MEM_TEXT_BYTES];
  if (bytes > v->facts.buffer_bytes || bytes > SIZE_MAX)
    return tn_fail(f, TN_ERR_MEMORY, "out of memory (%s; one buffer of OPENCL:%d has %s at most)",
                   mem_format_bytes(bytes, wanted), (int)v->index,
                   mem_format_bytes(v->facts.buffer_bytes, most));
  opencl_memory *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  uint64_t flags = CL_MEM_READ_WRITE | (is_staging ? CL_MEM_ALLOC_HOST_PTR : 0);
  m->buffer = v->cl.CreateBuffer(v->context, flags, (size_t)bytes, NULL, &s);
  if (!m->buffer)
    status = opencl_fail(v, "clCreateBuffer", s, TN_ERR_MEMORY, f);
  else if (is_staging)
    status = map_memory(v, m, bytes, f);
  if (status)
    opencl_free(v, m, bytes);
  else
    *memory = m;
  return status;
}

/** Uses the host's memory where it lies. Drivers may keep a copy of such memory between maps, but
    those for the processor have no other memory to keep it in. */
static tn_status opencl_import(void *device, void *data, uint64_t bytes, void **memory,
                               tn_failure *f) {
  opencl_device *v = device;
  cl_status s = 0;
  bool is_shared = opencl_is_processor(&v->facts) && v->facts.is_unified;
  if (!is_shared || !bytes || bytes > v->facts.buffer_bytes || bytes > SIZE_MAX)
    return tn_fail(f, TN_ERR_UNSUPPORTED, "OPENCL:%d does not use these %llu bytes in place",
                   (int)v->index, (unsigned long long)bytes);
  opencl_memory *m = mem_calloc(&v->mem, 1, sizeof *m);
  if (!m) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  m->host = data;
  m->buffer = v->cl.CreateBuffer(v->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, (size_t)bytes,
                                 data, &s);
  if (m->buffer) {
    *memory = m;
    return TN_OK;
  }
  mem_free(&v->mem, m, sizeof *m);
  return opencl_fail(v, "clCreateBuffer", s, TN_ERR_UNSUPPORTED, f);
}

static void opencl_import_end(void *device, void *memory) {
  opencl_device *v = device;
  opencl_memory *m = memory;
  v->cl.ReleaseMemObject(m->buffer);
  mem_free(&v->mem, m, sizeof *m);
}

static void *opencl_host(void *device, void *memory) {
  (void)device;
  return ((opencl_memory *)memory)->host;
}

/* ---- */

static const tn_pair pairs[] = {{&opencl_renderer, &opencl_compiler, NULL},
                                {&opencl_teams_renderer, &opencl_compiler, NULL}};

const tn_backend opencl_backend = {.size = sizeof opencl_backend,
                                   .name = "OPENCL",
                                   .pairs = pairs,
                                   .n_pairs = sizeof pairs / sizeof *pairs,
                                   .count = opencl_device_count,
                                   .probe = opencl_probe,
                                   .open = opencl_open,
                                   .close = opencl_close,
                                   .alloc = opencl_alloc,
                                   .free = opencl_free,
                                   .host = opencl_host,
                                   .import = opencl_import,
                                   .import_end = opencl_import_end,
                                   .load = opencl_load,
                                   .unload = opencl_unload,
                                   .program = opencl_program_make,
                                   .program_free = opencl_program_free,
                                   .streams = &opencl_streams};
