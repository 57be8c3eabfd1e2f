/* Stands in for CUDA's driver, libcuda.so.1, on machines without one: devices are memory of the
   host, streams are threads that delay works at random, and modules are shared objects of emulated
   kernels (emulation.h). Checks what the driver checks: that a context is current, that handles and
   addresses belong to it, and that launches are possible. */
#include "device/cuda/cuda_api.h"
#include "stand_in.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Every function of the table has the type that the table says. */
#define CUDA(name, parameters) cuda_status cu##name parameters;
#include "device/cuda/cuda_functions.def"
#undef CUDA

enum { INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200 };
enum { INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209, INVALID_HANDLE = 400, NOT_FOUND = 500 };
enum { LAUNCH_OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719 };
enum { MOST_DEVICES = 8, MOST_WORKERS = 1024, MOST_PARAMETERS = 512, STACK_DEPTH = 16 };
#define DEVICE_BYTES (UINT64_C(4) << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct cuda_context_object {
  int ordinal, users;
  cuda_status lost; /* what all calls return from then on; 0: nothing */
  size_t used;
};
static struct cuda_context_object contexts[MOST_DEVICES];
static bool is_started;

static _Thread_local cuda_context stack[STACK_DEPTH];
static _Thread_local int depth;

static cuda_context current(void) { return depth ? stack[depth - 1] : NULL; }

static int number_of_devices(void) {
  const char *text = getenv("STAND_IN_DEVICES");
  int n = text ? atoi(text) : 2;
  return n < MOST_DEVICES ? n : MOST_DEVICES;
}

static void capability(int *major, int *minor) {
  const char *text = getenv("STAND_IN_CAPABILITY");
  *major = 9, *minor = 0;
  if (text) sscanf(text, "%d.%d", major, minor);
}

/* Faults. */

static struct {
  char call[64];
  cuda_status status;
  int after; /* calls that succeed before */
} fault;

static void set_fault(const char *text) {
  int at = 1;
  fault.call[0] = 0;
  if (text && sscanf(text, "%63[^:]:%d:%d", fault.call, &fault.status, &at) < 2) fault.call[0] = 0;
  fault.after = at - 1;
}

/** The status with which a call fails by request; under the lock. */
static cuda_status fault_of(const char *call) {
  static bool is_read;
  if (!is_read && !fault.call[0]) set_fault(getenv("STAND_IN_FAIL"));
  is_read = true;
  if (strcmp(fault.call, call) != 0 || fault.after-- > 0) return 0;
  fault.after = 0;
  return fault.status;
}

static int kernel_ms; /* of a pause before each kernel; under the lock */

void stand_in_slow_kernels(int ms) {
  pthread_mutex_lock(&lock);
  kernel_ms = ms;
  pthread_mutex_unlock(&lock);
}

void stand_in_fail(const char *text) {
  pthread_mutex_lock(&lock);
  fault_of("");
  set_fault(text);
  for (int i = 0; i < MOST_DEVICES && !text; i++) contexts[i].lost = 0;
  pthread_mutex_unlock(&lock);
}

/** Begins a call on the current context: takes the lock, and returns a failure, with the lock
    released, if there is one. */
static cuda_status begin(const char *call) {
  pthread_mutex_lock(&lock);
  cuda_status s = fault_of(call);
  cuda_context c = current();
  if (!s && (!c || !c->users)) s = INVALID_CONTEXT;
  if (!s) s = c->lost;
  if (s) pthread_mutex_unlock(&lock);
  return s;
}

static cuda_status end(cuda_status s) {
  pthread_mutex_unlock(&lock);
  return s;
}

/** Likewise for calls without a context. */
static cuda_status plain(const char *call) {
  pthread_mutex_lock(&lock);
  return end(fault_of(call));
}

/** NVRTC asks the driver for tables of its own, which are not here. */
cuda_status cuGetExportTable(const void **table, const void *id);
cuda_status cuGetExportTable(const void **table, const void *id) {
  (void)id;
  *table = NULL;
  return NOT_FOUND;
}

/* Devices and contexts. */

cuda_status cuInit(unsigned flags) {
  cuda_status s = plain("cuInit");
  if (s || flags) return s ? s : INVALID_VALUE;
  is_started = true;
  return number_of_devices() > 0 ? 0 : NO_DEVICE;
}

cuda_status cuDriverGetVersion(int *version) {
  *version = 13000;
  return plain("cuDriverGetVersion");
}

static const struct {
  cuda_status status;
  const char *name, *text;
} statuses[] = {{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
                {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
                {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
                {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
                {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
                {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
                 "no kernel image is available for execution on the device"},
                {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
                {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
                {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
                {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                 "too many resources requested for launch"},
                {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}};

static cuda_status find_text(cuda_status status, const char **name, const char **text) {
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    if (statuses[i].status != status) continue;
    *name = statuses[i].name, *text = statuses[i].text;
    return 0;
  }
  return INVALID_VALUE;
}

cuda_status cuGetErrorName(cuda_status status, const char **name) {
  const char *text;
  return find_text(status, name, &text);
}

cuda_status cuGetErrorString(cuda_status status, const char **text) {
  const char *name;
  return find_text(status, &name, text);
}

cuda_status cuDeviceGetCount(int *n) {
  *n = number_of_devices();
  return is_started ? plain("cuDeviceGetCount") : 3;
}

static bool is_device(int ordinal) { return ordinal >= 0 && ordinal < number_of_devices(); }

cuda_status cuDeviceGet(cuda_ordinal *ordinal, int index) {
  *ordinal = index;
  return is_device(index) ? plain("cuDeviceGet") : INVALID_DEVICE;
}

cuda_status cuDeviceGetName(char *name, int bytes, cuda_ordinal ordinal) {
  snprintf(name, (size_t)bytes, "stand-in %d", ordinal);
  return is_device(ordinal) ? plain("cuDeviceGetName") : INVALID_DEVICE;
}

cuda_status cuDeviceTotalMem_v2(size_t *bytes, cuda_ordinal ordinal) {
  *bytes = DEVICE_BYTES;
  return is_device(ordinal) ? plain("cuDeviceTotalMem") : INVALID_DEVICE;
}

cuda_status cuDeviceGetAttribute(int *value, int what, cuda_ordinal ordinal) {
  int major, minor;
  capability(&major, &minor);
  if (!is_device(ordinal)) return INVALID_DEVICE;
  switch (what) {
  case CUDA_MAX_THREADS_PER_BLOCK: *value = MOST_WORKERS; break;
  case CUDA_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
  case CUDA_MULTIPROCESSOR_COUNT: *value = 132; break;
  case CUDA_L2_CACHE_SIZE: *value = 50 << 20; break;
  case CUDA_UNIFIED_ADDRESSING: *value = 1; break;
  case CUDA_COMPUTE_CAPABILITY_MAJOR: *value = major; break;
  case CUDA_COMPUTE_CAPABILITY_MINOR: *value = minor; break;
  default: return INVALID_VALUE;
  }
  return plain("cuDeviceGetAttribute");
}

cuda_status cuDevicePrimaryCtxRetain(cuda_context *context, cuda_ordinal ordinal) {
  cuda_status s = is_device(ordinal) ? plain("cuDevicePrimaryCtxRetain") : INVALID_DEVICE;
  if (s) return s;
  pthread_mutex_lock(&lock);
  *context = &contexts[ordinal];
  contexts[ordinal].ordinal = ordinal;
  contexts[ordinal].users++;
  return end(0);
}

cuda_status cuDevicePrimaryCtxRelease_v2(cuda_ordinal ordinal) {
  pthread_mutex_lock(&lock);
  if (!is_device(ordinal) || !contexts[ordinal].users) return end(INVALID_CONTEXT);
  contexts[ordinal].users--;
  return end(0);
}

cuda_status cuCtxPushCurrent_v2(cuda_context context) {
  cuda_status s = plain("cuCtxPushCurrent");
  if (s || depth == STACK_DEPTH) return s ? s : INVALID_VALUE;
  stack[depth++] = context;
  return 0;
}

cuda_status cuCtxPopCurrent_v2(cuda_context *context) {
  if (!depth) return INVALID_CONTEXT;
  *context = stack[--depth];
  return 0;
}

/* Memory. */

typedef struct block {
  struct block *next;
  cuda_context context; /* NULL: of the host */
  char *at;
  size_t bytes;
} block;
static block *blocks;

static cuda_status add_block(size_t bytes, cuda_context context, char **at) {
  block *b = calloc(1, sizeof *b);
  *at = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
  if (!b || !*at) {
    free(b), free(*at);
    return bytes ? CUDA_OUT_OF_MEMORY : INVALID_VALUE;
  }
  memset(*at, 0xff, bytes);
  *b = (block){blocks, context, *at, bytes};
  blocks = b;
  return 0;
}

/** Frees the block of an address, overwritten with what nobody expects. */
static cuda_status drop_block(const void *at, bool is_host) {
  for (block **p = &blocks; *p; p = &(*p)->next) {
    block *b = *p;
    if (b->at != at || is_host != !b->context) continue;
    *p = b->next;
    memset(b->at, 0xdd, b->bytes);
    if (b->context) b->context->used -= b->bytes;
    free(b->at);
    free(b);
    return 0;
  }
  return INVALID_VALUE;
}

cuda_status cuMemAlloc_v2(cuda_address *address, size_t bytes) {
  char *at = NULL;
  cuda_status s = begin("cuMemAlloc");
  if (s) return s;
  cuda_context c = current();
  if (bytes > DEVICE_BYTES - c->used) return end(CUDA_OUT_OF_MEMORY);
  s = add_block(bytes, c, &at);
  if (!s) c->used += bytes;
  *address = (cuda_address)(uintptr_t)at;
  return end(s);
}

cuda_status cuMemFree_v2(cuda_address address) {
  cuda_status s = begin("cuMemFree");
  return s ? s : end(drop_block((void *)(uintptr_t)address, false));
}

cuda_status cuMemHostAlloc(void **host, size_t bytes, unsigned flags) {
  char *at = NULL;
  cuda_status s = begin("cuMemHostAlloc");
  if (s) return s;
  s = flags == CUDA_HOST_PORTABLE ? add_block(bytes, NULL, &at) : INVALID_VALUE;
  *host = at;
  return end(s);
}

cuda_status cuMemFreeHost(void *host) {
  cuda_status s = begin("cuMemFreeHost");
  return s ? s : end(drop_block(host, true));
}

/** True if a range is the memory of a context, or locked memory of the host; under the lock. */
static bool is_memory(cuda_context c, cuda_address address, size_t bytes) {
  const char *at = (const char *)(uintptr_t)address;
  for (const block *b = blocks; b; b = b->next)
    if ((!b->context || b->context == c) && at >= b->at && bytes <= b->bytes &&
        (size_t)(at - b->at) <= b->bytes - bytes)
      return true;
  return false;
}

/* Modules. */

typedef unsigned sizes_function(unsigned *sizes);
typedef int emulated_function(void **arguments, const unsigned *grid, const unsigned *group,
                              unsigned seed);

struct cuda_function_object {
  cuda_function next;
  emulated_function *run;
  unsigned n, sizes[MOST_PARAMETERS];
};
struct cuda_module_object {
  cuda_context context;
  void *handle;
  cuda_function functions;
};

/** Opens a shared object by a file of its own: by one name, the loader would open one object. */
static void *open_image(const void *data, size_t bytes) {
  const char *folder = getenv("TMPDIR");
  char path[512];
  snprintf(path, sizeof path, "%s/stand-in-XXXXXX", folder ? folder : "/tmp");
  int fd = mkstemp(path);
  if (fd < 0) return NULL;
  bool is_written = write(fd, data, bytes) == (ssize_t)bytes;
  close(fd);
  void *handle = is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  return handle;
}

/** Writes to the log that the caller asks for. */
static void add_log(unsigned n, const int *options, void **values, const char *text) {
  char *log = NULL;
  size_t room = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == CUDA_JIT_ERROR_LOG) log = values[i];
    if (options[i] == CUDA_JIT_ERROR_LOG_BYTES) room = (size_t)(uintptr_t)values[i];
  }
  if (log && room) snprintf(log, room, "%s", text);
}

cuda_status cuModuleLoadDataEx(cuda_module *module, const void *data, unsigned n, int *options,
                               void **values) {
  cuda_status s = begin("cuModuleLoadDataEx");
  if (s) return s;
  cuda_context c = current();
  end(0);
  image_head head;
  int major, minor;
  char target[IMAGE_TARGET_BYTES];
  memcpy(head.magic, data, sizeof head.magic);
  if (memcmp(head.magic, IMAGE_MAGIC, sizeof head.magic) != 0) {
    add_log(n, options, values, "no image of the stand-in");
    return INVALID_IMAGE;
  }
  memcpy(&head, data, sizeof head);
  capability(&major, &minor);
  snprintf(target, sizeof target, "sm_%d%d%s", major, minor, major >= 9 ? "a" : "");
  if (strcmp(target, head.target) != 0) {
    add_log(n, options, values, head.target);
    return NO_BINARY_FOR_GPU;
  }
  cuda_module m = calloc(1, sizeof *m);
  if (!m) return CUDA_OUT_OF_MEMORY;
  m->context = c;
  m->handle = open_image((const char *)data + sizeof head, (size_t)head.bytes);
  if (m->handle) {
    *module = m;
    return 0;
  }
  add_log(n, options, values, dlerror());
  free(m);
  return INVALID_IMAGE;
}

cuda_status cuModuleUnload(cuda_module m) {
  cuda_status s = begin("cuModuleUnload");
  if (s) return s;
  end(0);
  for (cuda_function f = m->functions, next; f; f = next) {
    next = f->next;
    free(f);
  }
  dlclose(m->handle);
  free(m);
  return 0;
}

cuda_status cuModuleGetFunction(cuda_function *function, cuda_module m, const char *name) {
  union {
    void *symbol;
    emulated_function *run;
    sizes_function *sizes;
  } run, sizes;
  char text[512];
  cuda_status s = begin("cuModuleGetFunction");
  if (s) return s;
  if (m->context != current()) return end(INVALID_HANDLE);
  snprintf(text, sizeof text, "emulated_%s", name);
  run.symbol = dlsym(m->handle, text);
  snprintf(text, sizeof text, "emulated_sizes_%s", name);
  sizes.symbol = dlsym(m->handle, text);
  if (!run.symbol || !sizes.symbol) return end(NOT_FOUND);
  cuda_function f = calloc(1, sizeof *f);
  if (!f) return end(CUDA_OUT_OF_MEMORY);
  f->run = run.run;
  f->n = sizes.sizes(f->sizes);
  f->next = m->functions;
  m->functions = f;
  *function = f;
  return end(0);
}

/* Streams. */

/** A place in a stream, which is reached when all before it is done. */
typedef struct place {
  int users;
  bool is_reached;
  int64_t ns;
} place;

typedef enum step_kind { RUN, CALL, COPY, FILL, WAIT, REACH } step_kind;

typedef struct step {
  struct step *next;
  step_kind kind;
  void *to;
  const void *from;
  size_t bytes;
  unsigned char fill;
  place *place;
  cuda_function function;
  void (*call)(const void *arguments); /* CALL, with a copy of them at `arguments` */
  unsigned grid[3], group[3];
  void *arguments[]; /* followed by what they point to */
} step;

struct cuda_stream_object {
  cuda_context context;
  pthread_t thread;
  step *first, *last;
  bool is_busy, ends;
};

struct cuda_event_object {
  cuda_context context;
  bool is_timed;
  place *place; /* NULL: never recorded */
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void release_place(place *p) {
  if (p && !--p->users) free(p);
}

/** Does a step, or does nothing of it on a lost device; without the lock. */
static cuda_status do_step(const step *w, unsigned seed) {
  if (seed % 16 == 0) usleep(seed / 16 % 64);
  switch (w->kind) {
  case RUN:
    return w->function->run((void **)w->arguments, w->grid, w->group, seed) ? LAUNCH_FAILED : 0;
  case CALL: w->call(w->arguments); return 0;
  case COPY: memmove(w->to, w->from, w->bytes); return 0;
  case FILL: memset(w->to, w->fill, w->bytes); return 0;
  default: return 0;
  }
}

static void finish_step(step *w) {
  if (w->kind == WAIT)
    while (!w->place->is_reached) pthread_cond_wait(&changed, &lock);
  if (w->kind == REACH) w->place->is_reached = true, w->place->ns = now_ns();
  release_place(w->place);
  free(w);
}

static void *run_stream(void *arg) {
  cuda_stream q = arg;
  unsigned seed = (unsigned)(uintptr_t)q >> 4;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!q->first && !q->ends) pthread_cond_wait(&changed, &lock);
    step *w = q->first;
    if (!w) break;
    q->first = w->next;
    if (!q->first) q->last = NULL;
    q->is_busy = true;
    bool is_lost = q->context->lost != 0;
    int ms = w->kind == RUN ? kernel_ms : 0;
    cuda_status s = w->kind == RUN && !is_lost ? fault_of("kernel") : 0;
    pthread_mutex_unlock(&lock);
    seed = seed * 1664525u + 1013904223u;
    usleep((unsigned)ms * 1000);
    if (!is_lost && !s) s = do_step(w, seed >> 8);
    pthread_mutex_lock(&lock);
    if (s && !q->context->lost) q->context->lost = s;
    finish_step(w);
    q->is_busy = false;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

cuda_status cuStreamCreate(cuda_stream *stream, unsigned flags) {
  cuda_status s = begin("cuStreamCreate");
  if (s) return s;
  cuda_stream q = calloc(1, sizeof *q);
  if (!q || flags != CUDA_STREAM_NON_BLOCKING) {
    free(q);
    return end(q ? INVALID_VALUE : CUDA_OUT_OF_MEMORY);
  }
  q->context = current();
  if (pthread_create(&q->thread, NULL, run_stream, q)) {
    free(q);
    return end(CUDA_OUT_OF_MEMORY);
  }
  *stream = q;
  return end(0);
}

cuda_status cuStreamSynchronize(cuda_stream q) {
  cuda_status s = begin("cuStreamSynchronize");
  if (s) return s;
  while (q->first || q->is_busy) pthread_cond_wait(&changed, &lock);
  return end(q->context->lost);
}

cuda_status cuStreamDestroy_v2(cuda_stream q) {
  pthread_mutex_lock(&lock);
  q->ends = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(q->thread, NULL);
  free(q);
  return 0;
}

static step *new_step(step_kind kind, size_t more) {
  step *w = calloc(1, sizeof *w + more);
  if (w) w->kind = kind;
  return w;
}

/** Hands a step to a stream; under the lock. */
static cuda_status add_step(cuda_stream q, step *w) {
  if (!w) return CUDA_OUT_OF_MEMORY;
  if (q->last)
    q->last->next = w;
  else
    q->first = w;
  q->last = w;
  pthread_cond_broadcast(&changed);
  return 0;
}

/** A launch, with copies of its arguments; NULL without memory. */
static step *new_launch(cuda_function f, const unsigned *grid, const unsigned *group,
                        void **arguments) {
  size_t bytes = 0;
  for (unsigned i = 0; i < f->n; i++) bytes += (f->sizes[i] + 7u) / 8 * 8;
  step *w = new_step(RUN, f->n * sizeof(void *) + bytes);
  char *at = w ? (char *)&w->arguments[f->n] : NULL;
  for (unsigned i = 0; i < f->n && w; i++) {
    memcpy(at, arguments[i], f->sizes[i]);
    w->arguments[i] = at;
    at += (f->sizes[i] + 7u) / 8 * 8;
  }
  if (!w) return NULL;
  w->function = f;
  memcpy(w->grid, grid, sizeof w->grid);
  memcpy(w->group, group, sizeof w->group);
  return w;
}

static bool is_possible(cuda_function f, const unsigned *grid, const unsigned *group) {
  bool is_empty = !grid[0] || !grid[1] || !grid[2] || !group[0] || !group[1] || !group[2];
  return f && !is_empty && grid[0] <= INT32_MAX && grid[1] <= UINT16_MAX && grid[2] <= UINT16_MAX &&
         (uint64_t)group[0] * group[1] * group[2] <= MOST_WORKERS;
}

cuda_status cuLaunchKernel(cuda_function f, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned x, unsigned y, unsigned z, unsigned shared, cuda_stream q,
                           void **arguments, void **extra) {
  cuda_status s = begin("cuLaunchKernel");
  if (s) return s;
  const unsigned grid[] = {grid_x, grid_y, grid_z}, group[] = {x, y, z};
  if (!is_possible(f, grid, group) || shared || extra) return end(INVALID_VALUE);
  if (q->context != current()) return end(INVALID_HANDLE);
  return end(add_step(q, new_launch(f, grid, group, arguments)));
}

cuda_status stand_in_call(cuda_stream q, void (*call)(const void *), const void *arguments,
                          size_t bytes) {
  cuda_status s = begin("stand_in_call");
  if (s) return s;
  if (q->context != current()) return end(INVALID_HANDLE);
  step *w = new_step(CALL, bytes);
  if (w) memcpy(w->arguments, arguments, bytes), w->call = call;
  return end(add_step(q, w));
}

/** Adds a copy between places, of which those of a context are checked. */
static cuda_status add_copy(const char *call, cuda_address to, cuda_context to_context,
                            cuda_address from, cuda_context from_context, size_t bytes,
                            cuda_stream q) {
  cuda_status s = begin(call);
  if (s) return s;
  if (q->context != current()) return end(INVALID_HANDLE);
  if ((to_context && !is_memory(to_context, to, bytes)) ||
      (from_context && !is_memory(from_context, from, bytes)))
    return end(INVALID_VALUE);
  step *w = new_step(COPY, 0);
  if (w) w->to = (void *)(uintptr_t)to, w->from = (const void *)(uintptr_t)from, w->bytes = bytes;
  return end(add_step(q, w));
}

cuda_status cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t bytes, cuda_stream q) {
  return add_copy("cuMemcpyHtoDAsync", to, current(), (cuda_address)(uintptr_t)from, NULL, bytes,
                  q);
}

cuda_status cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes, cuda_stream q) {
  return add_copy("cuMemcpyDtoHAsync", (cuda_address)(uintptr_t)to, NULL, from, current(), bytes,
                  q);
}

cuda_status cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t bytes, cuda_stream q) {
  return add_copy("cuMemcpyDtoDAsync", to, current(), from, current(), bytes, q);
}

cuda_status cuMemcpyPeerAsync(cuda_address to, cuda_context to_context, cuda_address from,
                              cuda_context from_context, size_t bytes, cuda_stream q) {
  return add_copy("cuMemcpyPeerAsync", to, to_context, from, from_context, bytes, q);
}

cuda_status cuMemsetD8Async(cuda_address to, unsigned char value, size_t bytes, cuda_stream q) {
  cuda_status s = begin("cuMemsetD8Async");
  if (s) return s;
  if (q->context != current()) return end(INVALID_HANDLE);
  if (!is_memory(q->context, to, bytes)) return end(INVALID_VALUE);
  step *w = new_step(FILL, 0);
  if (w) w->to = (void *)(uintptr_t)to, w->bytes = bytes, w->fill = value;
  return end(add_step(q, w));
}

/* Events. */

cuda_status cuEventCreate(cuda_event *event, unsigned flags) {
  cuda_status s = begin("cuEventCreate");
  if (s) return s;
  cuda_event e = calloc(1, sizeof *e);
  if (!e) return end(CUDA_OUT_OF_MEMORY);
  e->context = current();
  e->is_timed = !(flags & CUDA_EVENT_DISABLE_TIMING);
  *event = e;
  return end(0);
}

cuda_status cuEventRecord(cuda_event e, cuda_stream q) {
  cuda_status s = begin("cuEventRecord");
  if (s) return s;
  if (q->context != current() || e->context != q->context) return end(INVALID_HANDLE);
  place *p = calloc(1, sizeof *p);
  step *w = new_step(REACH, 0);
  if (!p || !w) {
    free(p), free(w);
    return end(CUDA_OUT_OF_MEMORY);
  }
  p->users = 2; /* the event's and the step's */
  w->place = p;
  release_place(e->place);
  e->place = p;
  return end(add_step(q, w));
}

/** Waits for an event that was recorded; one that was not is no wait. */
cuda_status cuStreamWaitEvent(cuda_stream q, cuda_event e, unsigned flags) {
  cuda_status s = begin("cuStreamWaitEvent");
  if (s) return s;
  if (flags) return end(INVALID_VALUE);
  if (q->context != current()) return end(INVALID_HANDLE);
  if (!e->place) return end(0);
  step *w = new_step(WAIT, 0);
  if (w) w->place = e->place, e->place->users++;
  return end(add_step(q, w));
}

/** Tells of a loss; works that are under way are not waited for, nor told of. */
cuda_status cuStreamQuery(cuda_stream q) {
  cuda_status s = begin("cuStreamQuery");
  return s ? s : end(q->context == current() ? 0 : INVALID_HANDLE);
}

cuda_status cuEventQuery(cuda_event e) {
  cuda_status s = begin("cuEventQuery");
  if (s) return s;
  return end(!e->place || e->place->is_reached ? e->context->lost : CUDA_NOT_READY);
}

cuda_status cuEventSynchronize(cuda_event e) {
  cuda_status s = begin("cuEventSynchronize");
  if (s) return s;
  while (e->place && !e->place->is_reached) pthread_cond_wait(&changed, &lock);
  return end(e->context->lost);
}

cuda_status cuEventElapsedTime(float *ms, cuda_event from, cuda_event to) {
  cuda_status s = begin("cuEventElapsedTime");
  if (s) return s;
  if (!from->is_timed || !to->is_timed || !from->place || !to->place) return end(INVALID_HANDLE);
  if (!from->place->is_reached || !to->place->is_reached) return end(CUDA_NOT_READY);
  *ms = (float)((double)(to->place->ns - from->place->ns) / 1e6);
  return end(0);
}

cuda_status cuEventDestroy_v2(cuda_event e) {
  cuda_status s = begin("cuEventDestroy");
  if (s) return s;
  release_place(e->place);
  free(e);
  return end(0);
}

/* Graphs: each run takes the nodes in a random order that their edges allow. */

struct cuda_node_object {
  cuda_node next; /* older nodes */
  cuda_graph graph;
  size_t number;
  step *launch;
  size_t n_before;
  cuda_node before[];
};

struct cuda_graph_object {
  cuda_context context;
  cuda_node nodes; /* the latest first */
  size_t n;
};

struct cuda_graph_exec_object {
  cuda_graph graph; /* kept by the caller as long as nodes are changed */
  cuda_context context;
  size_t n;
  unsigned seed;
  struct {
    step *launch;
    cuda_node node;
    bool is_added; /* in the run at hand */
  } nodes[];
};

cuda_status cuGraphCreate(cuda_graph *graph, unsigned flags) {
  cuda_status s = begin("cuGraphCreate");
  if (s) return s;
  cuda_graph g = calloc(1, sizeof *g);
  if (!g || flags) {
    free(g);
    return end(flags ? INVALID_VALUE : CUDA_OUT_OF_MEMORY);
  }
  g->context = current();
  *graph = g;
  return end(0);
}

cuda_status cuGraphAddKernelNode(cuda_node *node, cuda_graph g, const cuda_node *before, size_t n,
                                 const cuda_node_launch *l) {
  cuda_status s = begin("cuGraphAddKernelNode");
  if (s) return s;
  if (!is_possible(l->function, l->grid, l->group) || l->shared_bytes || l->extra)
    return end(INVALID_VALUE);
  for (size_t i = 0; i < n; i++)
    if (before[i]->graph != g) return end(INVALID_VALUE);
  cuda_node made = calloc(1, sizeof *made + n * sizeof(cuda_node));
  step *launch = made ? new_launch(l->function, l->grid, l->group, l->arguments) : NULL;
  if (!launch) {
    free(made);
    return end(CUDA_OUT_OF_MEMORY);
  }
  *made = (struct cuda_node_object){g->nodes, g, g->n++, launch, n};
  for (size_t i = 0; i < n; i++) made->before[i] = before[i];
  *node = g->nodes = made;
  return end(0);
}

cuda_status cuGraphDestroy(cuda_graph g) {
  cuda_status s = begin("cuGraphDestroy");
  if (s) return s;
  for (cuda_node k = g->nodes, next; k; k = next) {
    next = k->next;
    free(k->launch);
    free(k);
  }
  free(g);
  return end(0);
}

static step *copy_launch(const step *l) {
  return new_launch(l->function, l->grid, l->group, (void **)l->arguments);
}

static void free_exec(cuda_graph_exec e) {
  for (size_t i = 0; i < e->n; i++) free(e->nodes[i].launch);
  free(e);
}

cuda_status cuGraphInstantiate_v2(cuda_graph_exec *exec, cuda_graph g, cuda_node *at_fault,
                                  char *log, size_t bytes) {
  (void)at_fault, (void)log, (void)bytes;
  cuda_status s = begin("cuGraphInstantiate");
  if (s) return s;
  cuda_graph_exec e = calloc(1, sizeof *e + g->n * sizeof *e->nodes);
  if (!e) return end(CUDA_OUT_OF_MEMORY);
  e->graph = g;
  e->context = g->context;
  e->n = g->n;
  e->seed = (unsigned)(uintptr_t)e >> 4;
  for (cuda_node k = g->nodes; k; k = k->next) {
    e->nodes[k->number].node = k;
    e->nodes[k->number].launch = copy_launch(k->launch);
  }
  for (size_t i = 0; i < e->n; i++)
    if (!e->nodes[i].launch) {
      free_exec(e);
      return end(CUDA_OUT_OF_MEMORY);
    }
  *exec = e;
  return end(0);
}

cuda_status cuGraphExecKernelNodeSetParams(cuda_graph_exec e, cuda_node k,
                                           const cuda_node_launch *l) {
  cuda_status s = begin("cuGraphExecKernelNodeSetParams");
  if (s) return s;
  if (k->graph != e->graph || !is_possible(l->function, l->grid, l->group) || l->shared_bytes ||
      l->extra)
    return end(INVALID_VALUE);
  step *launch = new_launch(l->function, l->grid, l->group, l->arguments);
  if (!launch) return end(CUDA_OUT_OF_MEMORY);
  free(e->nodes[k->number].launch);
  e->nodes[k->number].launch = launch;
  return end(0);
}

static bool is_next(cuda_graph_exec e, size_t i) {
  const struct cuda_node_object *k = e->nodes[i].node;
  bool is_next = !e->nodes[i].is_added;
  for (size_t b = 0; b < k->n_before; b++) is_next &= e->nodes[k->before[b]->number].is_added;
  return is_next;
}

cuda_status cuGraphLaunch(cuda_graph_exec e, cuda_stream q) {
  cuda_status s = begin("cuGraphLaunch");
  if (s) return s;
  if (q->context != current() || e->context != q->context) return end(INVALID_HANDLE);
  for (size_t i = 0; i < e->n; i++) e->nodes[i].is_added = false;
  for (size_t n = 0; n < e->n && !s; n++) {
    size_t chosen = 0, n_next = 0;
    for (size_t i = 0; i < e->n; i++) {
      if (!is_next(e, i)) continue;
      e->seed = e->seed * 1664525u + 1013904223u;
      if (!((e->seed >> 8) % ++n_next)) chosen = i;
    }
    e->nodes[chosen].is_added = true;
    s = add_step(q, copy_launch(e->nodes[chosen].launch));
  }
  return end(s);
}

cuda_status cuGraphExecDestroy(cuda_graph_exec e) {
  cuda_status s = begin("cuGraphExecDestroy");
  if (s) return s;
  free_exec(e);
  return end(0);
}
