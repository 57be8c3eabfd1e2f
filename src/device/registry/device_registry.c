/* Implements the device registry: lists of backends and open devices under one lock, the thread
   pool, and the state of a service. Devices are opened by name, once each; they, the service and
   the threads are closed in this order with the registry. */
#include "device/registry/device_registry.h"

#include "base/printable.h"
#include "base/thread.h"
#include "device/core/device_target.h"
#include "device/core/output.h"
#include "device/cpu/cpu_backend.h"
#include "device/cuda/cuda_backend.h"
#include "device/memory/caching_allocator.h"
#include "device/null/null_backend.h"
#include "device/opencl/opencl_backend.h"
#include "device/registry/open_device.h"
#include "device/threads/thread_pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct registered_backend {
  const tn_backend *backend;
  struct registered_backend *next;
} registered_backend;

typedef struct open_device {
  tn_device *device;
  struct open_device *next;
} open_device;

struct registry {
  mem mem;
  tn_host host;
  thread_pool *pool;
  reentrancy_list visits;
  mutex lock; /* of the fields below */
  registered_backend *backends;
  open_device *devices;
  const registry_service *service; /* NULL: none was used so far */
  _Atomic(void *) service_state;   /* changes once, from NULL */
};

static const tn_backend *const built_in[] = {&cpu_backend, &null_backend, &opencl_backend,
                                             &cuda_backend};

/** The registry of the process. */
static _Atomic(registry *) process_registry;

const mem *registry_mem(const registry *r) { return &r->mem; }
thread_pool *registry_thread_pool(registry *r) { return r->pool; }
reentrancy_list *registry_reentrancy(registry *r) { return &r->visits; }

/* Opening and closing. */

static tn_status fill_registry(registry *r, const registry_desc *desc, diag *d) {
  int32_t threads = desc->threads > 0 ? desc->threads : thread_pool_physical_cores();
  r->pool = thread_pool_open(&r->mem, threads, desc->workers.run ? &desc->workers : NULL);
  if (!r->pool) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  r->host = (tn_host){.size = sizeof r->host,
                      .allocator = {r->mem.alloc, r->mem.release, r->mem.user, NULL},
                      .workers = {thread_pool_run, r->pool, NULL},
                      .threads = thread_pool_size(r->pool)};
  tn_status status = TN_OK;
  for (size_t i = 0; i < sizeof built_in / sizeof *built_in && !status; i++)
    status = registry_add_backend(r, built_in[i], d);
  return status;
}

tn_status registry_open(registry **out, const registry_desc *desc, diag *d) {
  *out = NULL;
  mem m = desc->mem ? *desc->mem : mem_system;
  registry *r = mem_calloc(&m, 1, sizeof *r);
  if (!r) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  r->mem = m;
  reentrancy_init(&r->visits);
  mutex_init(&r->lock);
  atomic_init(&r->service_state, NULL);
  tn_status status = fill_registry(r, desc, d);
  if (status)
    registry_close(r);
  else
    *out = r;
  return status;
}

tn_status registry_global(registry **out, diag *d) {
  *out = atomic_load(&process_registry);
  if (*out) return TN_OK;
  registry *opened, *there = NULL;
  tn_status status = registry_open(&opened, &(registry_desc){0}, d);
  if (status) return status;
  if (atomic_compare_exchange_strong(&process_registry, &there, opened)) {
    *out = opened;
  } else {
    registry_close(opened);
    *out = there;
  }
  return TN_OK;
}

void registry_close(registry *r) {
  if (!r) return;
  void *state = atomic_load(&r->service_state);
  for (open_device *v = r->devices, *next; v; v = next) {
    next = v->next;
    if (state) r->service->forget_device(state, v->device);
    device_close(v->device);
    mem_free(&r->mem, v, sizeof *v);
  }
  for (registered_backend *b = r->backends, *next; b; b = next) {
    next = b->next;
    mem_free(&r->mem, b, sizeof *b);
  }
  if (state) r->service->close(state);
  thread_pool_close(r->pool);
  mutex_free(&r->lock);
  reentrancy_free(&r->visits);
  mem m = r->mem;
  mem_free(&m, r, sizeof *r);
}

void *registry_service_state(registry *r, const registry_service *s) {
  void *state = atomic_load(&r->service_state);
  if (state) return state;
  mutex_lock(&r->lock);
  state = atomic_load(&r->service_state);
  if (!state && (state = s->open(r))) {
    r->service = s;
    atomic_store(&r->service_state, state);
  }
  mutex_unlock(&r->lock);
  return state;
}

/* Backends. */

static bool is_complete_pair(const tn_pair *p) {
  const tn_renderer *r = p->renderer;
  const tn_compiler *c = p->compiler;
  return r && r->size == sizeof *r && r->name && r->describe && r->render && c &&
         c->size == sizeof *c && c->name && c->key && c->compile;
}

static bool is_complete_stream(const tn_stream_functions *s) {
  return s->size == sizeof *s && s->open && s->free && s->enqueue && s->mark && s->await &&
         s->sync && s->time && s->mark_free;
}

static bool is_complete_graph(const tn_graph_functions *g) {
  return g->size == sizeof *g && g->make && g->set && g->run && g->free;
}

static bool is_complete_library(const tn_product_library *l) {
  return l->size == sizeof *l && l->name && l->open;
}

/** The fault of a backend's size and name; NULL if there is none. */
static const char *find_name_fault(const tn_backend *b) {
  if (!b->size) return "field size is 0, and must be sizeof(tn_backend)";
  if (b->size != sizeof *b) return "field size is that of another version";
  bool is_name = b->name && b->name[0] && strlen(b->name) <= 32 && !strchr(b->name, ':');
  return is_name ? NULL : "the name must have 1 to 32 bytes and no colon";
}

/** The first fault of a backend's table of functions; NULL if it is complete. */
static const char *find_fault(const tn_backend *b) {
  if (!b->open || !b->close) return "open or close is missing";
  if (!b->alloc || !b->free || !b->host) return "alloc, free or host is missing";
  if (!b->load || !b->unload || !b->program || !b->program_free)
    return "a program function is missing";
  for (size_t i = 0; i < b->n_pairs; i++)
    if (!is_complete_pair(&b->pairs[i])) return "a renderer or compiler is incomplete";
  if (!b->streams && !b->execute) return "execute or streams is missing";
  if (b->streams && !is_complete_stream(b->streams)) return "the stream functions are incomplete";
  if (b->products && !is_complete_library(b->products))
    return "the library of products is incomplete";
  if (b->graphs && !b->streams) return "there are graphs without streams";
  return !b->graphs || is_complete_graph(b->graphs) ? NULL : "the graph functions are incomplete";
}

static const tn_backend *find_backend(const registry *r, const char *name, size_t length) {
  for (const registered_backend *k = r->backends; k; k = k->next)
    if (strlen(k->backend->name) == length && !memcmp(k->backend->name, name, length))
      return k->backend;
  return NULL;
}

/** Compares names without regard to the case of ASCII letters, whatever the locale is. */
static bool is_same_in_any_case(const char *a, const char *b, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];
    if (x >= 'a' && x <= 'z') x = (unsigned char)(x - 'a' + 'A');
    if (y >= 'a' && y <= 'z') y = (unsigned char)(y - 'a' + 'A');
    if (x != y) return false;
  }
  return true;
}

/** The backend of a name, or else the only one whose name differs from it in case alone. */
static const tn_backend *find_backend_in_any_case(const registry *r, const char *name,
                                                  size_t length) {
  const tn_backend *found = find_backend(r, name, length);
  if (found) return found;
  size_t n = 0;
  for (const registered_backend *k = r->backends; k; k = k->next) {
    if (strlen(k->backend->name) != length || !is_same_in_any_case(k->backend->name, name, length))
      continue;
    found = k->backend;
    n++;
  }
  return n == 1 ? found : NULL;
}

static tn_status refuse_backend(const tn_backend *b, const char *why, diag *d) {
  const char *name = b->name && b->name[0] ? b->name : "?";
  return diag_set(d, TN_ERR_ARGUMENT, "backend %s: %s", name, why);
}

/** Adds a backend with a name, or refuses it; under the lock. */
static tn_status add_backend(registry *r, const tn_backend *b, diag *d) {
  const tn_backend *there = find_backend(r, b->name, strlen(b->name));
  if (there == b) return TN_OK;
  if (there) return diag_set(d, TN_ERR_ARGUMENT, "backend %s is already registered", b->name);
  const char *why = find_fault(b);
  if (why) return refuse_backend(b, why, d);
  registered_backend *k = mem_calloc(&r->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->backend = b;
  registered_backend **at = &r->backends;
  while (*at) at = &(*at)->next;
  *at = k;
  return TN_OK;
}

tn_status registry_add_backend(registry *r, const tn_backend *b, diag *d) {
  if (!b) return diag_set(d, TN_ERR_ARGUMENT, "the backend is NULL");
  const char *why = find_name_fault(b);
  if (why) return refuse_backend(b, why, d);
  mutex_lock(&r->lock);
  tn_status status = add_backend(r, b, d);
  mutex_unlock(&r->lock);
  return status;
}

/* Devices. */

/** The device, opened if it was not. Under the lock. */
static tn_status get_device(registry *r, const tn_backend *b, int32_t index, tn_device **device,
                            diag *d) {
  for (open_device *v = r->devices; v; v = v->next)
    if (v->device->backend == b && v->device->index == index) {
      *device = v->device;
      return TN_OK;
    }
  open_device *v = mem_calloc(&r->mem, 1, sizeof *v);
  if (!v) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = device_open(&v->device, r, &r->mem, b, index, &r->host, d);
  if (status) {
    mem_free(&r->mem, v, sizeof *v);
    return status;
  }
  v->next = r->devices;
  r->devices = v;
  *device = v->device;
  return TN_OK;
}

/** The number after the colon; 0 without a colon; −1 if it is malformed. */
static int32_t parse_index(const char *text) {
  if (!*text) return 0;
  size_t digits = strspn(++text, "0123456789");
  if (!digits || digits > 4 || text[digits]) return -1;
  return (int32_t)strtol(text, NULL, 10);
}

/** Formats the beginning of a name for messages. */
static const char *show_name(const char *name, char shown[TEXT_PRINTABLE_BYTES]) {
  enum { MOST = 64 };
  char cut[MOST + sizeof "…"];
  size_t n = strnlen(name, MOST + 1);
  if (n > MOST) n = MOST;
  while (n && (name[n] & 0xC0) == 0x80) n--; /* within a character of UTF-8 */
  snprintf(cut, sizeof cut, "%.*s%s", (int)n, name, name[n] ? "…" : "");
  return text_printable(cut, shown);
}

static tn_status refuse_name(const registry *r, const char *name, diag *d) {
  char known[512] = "", shown[TEXT_PRINTABLE_BYTES];
  for (const registered_backend *k = r->backends; k; k = k->next) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", k->backend->name);
  }
  return diag_set(d, TN_ERR_DEVICE,
                  "unknown device \"%s\"; expected one of %s, optionally with a number, as in %s:1",
                  show_name(name, shown), known, r->backends->backend->name);
}

static tn_status refuse_index(const char *name, const char *index, diag *d) {
  char shown[TEXT_PRINTABLE_BYTES], shown_index[TEXT_PRINTABLE_BYTES];
  return diag_set(d, TN_ERR_DEVICE, "device \"%s\": \"%s\" is no number from 0 to 9999",
                  show_name(name, shown), show_name(index, shown_index));
}

tn_status registry_open_device(registry *r, const char *name, tn_device **device, diag *d) {
  *device = NULL;
  size_t length = strcspn(name, ":");
  int32_t index = parse_index(name + length);
  mutex_lock(&r->lock);
  const tn_backend *b = find_backend_in_any_case(r, name, length);
  tn_status status = !b          ? refuse_name(r, name, d)
                     : index < 0 ? refuse_index(name, name + length + 1, d)
                                 : get_device(r, b, index, device, d);
  mutex_unlock(&r->lock);
  return status;
}

bool registry_device_computes(const tn_device *device) { return device->backend != &null_backend; }

/* Descriptions of devices. */

bool registry_device_at(registry *r, size_t i, device_id *id) {
  bool found = false;
  mutex_lock(&r->lock);
  for (const registered_backend *b = r->backends; b && !found; b = b->next) {
    int32_t count = b->backend->count ? b->backend->count() : 1;
    size_t n = count > 0 ? (size_t)count : 0;
    found = i < n;
    if (found) *id = (device_id){b->backend, (int32_t)i};
    i -= n;
  }
  mutex_unlock(&r->lock);
  return found;
}

void registry_free_description(registry *r, device_description *k) {
  if (!k) return;
  mem_strfree(&r->mem, k->about);
  mem_strfree(&r->mem, k->absent);
  mem_strfree(&r->mem, k->pairs);
  mem_strfree(&r->mem, k->absent_pairs);
  mem_strfree(&r->mem, k->library);
  mem_free(&r->mem, k, sizeof *k);
}

/** TN_OK if a pair works: it is present, and its compiler can be opened. */
static tn_status open_pair(tn_device *v, size_t pair, const char *name, const char *compiler,
                           diag *d) {
  const device_target *target;
  void *opened;
  const device_target_desc desc = {.pair = name, .compiler = compiler};
  tn_status status = device_target_check_pair(v, pair, compiler, d);
  if (!status) status = device_target_find(v, &desc, &target, d);
  return status ? status : device_target_open_compiler(target, &opened, d);
}

/** Texts about the pairs of a device. */
typedef struct pair_lists {
  tn_output usable, absent; /* names with spaces between; lines of names and reasons */
} pair_lists;

static void list_pair(pair_lists *l, tn_device *v, size_t pair, const char *compiler, diag *d) {
  const tn_pair *p = &v->backend->pairs[pair];
  char text[DIAG_TEXT_BYTES + 160];
  int n = snprintf(text, sizeof text, "%.60s/%.60s", p->renderer->name, p->compiler->name);
  if (!open_pair(v, pair, text, compiler, d)) {
    if (l->usable.n) tn_output_add(&l->usable, " ", 1);
    tn_output_add(&l->usable, text, (size_t)n);
    return;
  }
  n += snprintf(text + n, sizeof text - (size_t)n, ": %s", d->text);
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = ' '; /* a reason is one line */
  if (l->absent.n) tn_output_add(&l->absent, "\n", 1);
  tn_output_add(&l->absent, text, (size_t)n);
}

/** Describes the library of products of a device; NULL without memory. */
static char *describe_library(const mem *m, const tn_device *v) {
  const tn_product_library *l = v->backend->products;
  tn_failure why = {0};
  char text[sizeof why.text + 64];
  if (!l) return mem_strdup(m, "");
  bool is_open = failure_complete(&why, l->open(v->state, &why)) == TN_OK;
  snprintf(text, sizeof text, is_open ? "%.60s" : "%.60s: %s", l->name, why.text);
  return mem_strdup(m, text);
}

/** Lists the pairs that work and those that do not; fails as the first one does if none works. */
static tn_status list_pairs(registry *r, device_description *k, const char *compiler, diag *d) {
  tn_device *v;
  pair_lists l = {output_new(&r->mem), output_new(&r->mem)};
  mutex_lock(&r->lock);
  tn_status status = get_device(r, k->id.backend, k->id.index, &v, d);
  mutex_unlock(&r->lock);
  tn_failure first = {.status = TN_ERR_UNSUPPORTED};
  k->is_addressed = !status && !v->backend->import && caching_allocator_is_addressed(v->allocator);
  for (size_t i = 0; i < k->id.backend->n_pairs && !status; i++) {
    list_pair(&l, v, i, compiler, d);
    if (!i) first = d->failure;
  }
  if (!status) {
    k->pairs = mem_strdup(&r->mem, output_text(&l.usable));
    k->absent_pairs = mem_strdup(&r->mem, output_text(&l.absent));
    k->library = describe_library(&r->mem, v);
    if (l.usable.failed || l.absent.failed || !k->pairs || !k->absent_pairs || !k->library)
      status = diag_set(d, TN_ERR_MEMORY, "out of memory");
    if (!status && !l.usable.n) {
      d->failure = first;
      status = first.status;
    }
  }
  output_free(&l.usable);
  output_free(&l.absent);
  return status;
}

/** Fills in a description; a failure is why the device is absent. */
static tn_status probe_device(registry *r, device_description *k, const char *compiler, diag *d) {
  tn_output about = output_new(&r->mem);
  diag_clear(d);
  const tn_backend *b = k->id.backend;
  tn_status status = b->probe ? b->probe(k->id.index, &about, &k->bytes, &d->failure) : TN_OK;
  k->about = mem_strdup(&r->mem, output_text(&about));
  output_free(&about);
  if (!k->about) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (status) return diag_complete(d, status);
  return list_pairs(r, k, compiler, d);
}

tn_status registry_probe(registry *r, const device_id *id, const char *compiler,
                         device_description **out, diag *d) {
  device_description *k = mem_calloc(&r->mem, 1, sizeof *k);
  *out = k;
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->id = *id;
  snprintf(k->name, sizeof k->name, "%s:%d", id->backend->name, (int)id->index);
  diag why = {0};
  tn_status status = probe_device(r, k, compiler, &why);
  if (status) k->absent = mem_strdup(&r->mem, why.text[0] ? why.text : tn_status_text(status));
  if (!k->pairs) k->pairs = mem_strdup(&r->mem, "");
  if (!k->absent_pairs) k->absent_pairs = mem_strdup(&r->mem, "");
  if (!k->library) k->library = mem_strdup(&r->mem, "");
  bool is_complete = k->pairs && k->absent_pairs && k->library && (!status || k->absent);
  if (status != TN_ERR_MEMORY && is_complete) return TN_OK;
  registry_free_description(r, k);
  *out = NULL;
  return diag_set(d, TN_ERR_MEMORY, "out of memory");
}
