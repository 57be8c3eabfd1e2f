#include "device/table.h"

#include "base/thread.h"
#include "device/cache.h"
#include "device/cpu/cpu.h"
#include "device/failure.h"
#include "device/null/null.h"
#include "device/output.h"
#include "device/pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct known_backend {
  const tn_backend *backend;
  struct known_backend *next;
} known_backend;

typedef struct open_device {
  tn_device *device;
  struct open_device *next;
} open_device;

struct table {
  mem mem;
  tn_host host;
  pool *pool;
  kernel_cache *kernels;
  mutex lock; /* of what follows */
  known_backend *backends;
  open_device *devices;
};

static const tn_backend *const built_in[] = {&cpu_backend, &null_backend};

/** The table of the process. */
static _Atomic(table *) device_table;

const mem *table_mem(const table *t) { return &t->mem; }
kernel_cache *table_kernels(table *t) { return t->kernels; }
pool *table_pool(table *t) { return t->pool; }

/* Opening. */

static void lend_threads(void *user, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  pool_run(user, task, arg, n);
}

static void set_host(table *t) {
  t->host = (tn_host){.size = sizeof t->host,
                      .allocator = {t->mem.alloc, t->mem.release, t->mem.user, NULL},
                      .workers = {lend_threads, t->pool, NULL},
                      .threads = pool_threads(t->pool)};
}

static tn_status fill(table *t, const table_desc *desc, diag *d) {
  int32_t threads = desc->threads > 0 ? desc->threads : pool_cores();
  size_t most = desc->most_kernels ? desc->most_kernels : TABLE_KERNELS;
  size_t bytes = desc->kernel_bytes ? desc->kernel_bytes : TABLE_KERNEL_BYTES;
  t->pool = pool_open(&t->mem, threads, desc->workers.run ? &desc->workers : NULL);
  t->kernels = cache_open(&t->mem, most, bytes);
  if (!t->pool || !t->kernels) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  set_host(t);
  tn_status status = TN_OK;
  for (size_t i = 0; i < sizeof built_in / sizeof *built_in && !status; i++)
    status = table_add(t, built_in[i], d);
  return status;
}

tn_status table_open(table **out, const table_desc *desc, diag *d) {
  *out = NULL;
  mem m = desc->mem ? *desc->mem : mem_system;
  table *t = mem_calloc(&m, 1, sizeof *t);
  if (!t) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  t->mem = m;
  mutex_init(&t->lock);
  tn_status status = fill(t, desc, d);
  if (status)
    table_close(t);
  else
    *out = t;
  return status;
}

tn_status table_global(table **out, diag *d) {
  *out = atomic_load(&device_table);
  if (*out) return TN_OK;
  table *made, *there = NULL;
  tn_status status = table_open(&made, &(table_desc){0}, d);
  if (status) return status;
  if (atomic_compare_exchange_strong(&device_table, &there, made)) {
    *out = made;
  } else {
    table_close(made);
    *out = there;
  }
  return TN_OK;
}

void table_close(table *t) {
  if (!t) return;
  for (open_device *v = t->devices, *next; v; v = next) {
    next = v->next;
    device_close(v->device);
    mem_free(&t->mem, v, sizeof *v);
  }
  for (known_backend *b = t->backends, *next; b; b = next) {
    next = b->next;
    mem_free(&t->mem, b, sizeof *b);
  }
  cache_close(t->kernels);
  pool_close(t->pool);
  mutex_free(&t->lock);
  mem m = t->mem;
  mem_free(&m, t, sizeof *t);
}

/* Backends. */

static bool complete_pair(const tn_pair *p) {
  const tn_renderer *r = p->renderer;
  const tn_compiler *c = p->compiler;
  return r && r->size && r->name && r->describe && r->render && c && c->size && c->name && c->key &&
         c->compile;
}

static bool complete_queue(const tn_queue_functions *q) {
  return !q || (q->size && q->open && q->free && q->submit && !q->enter == !q->leave);
}

static bool complete_signal(const tn_signal_functions *s) {
  return !s || (s->size && s->open && s->free && s->get && s->set && s->fail && s->wait);
}

/** What is missing in a backend, or NULL. */
static const char *missing(const tn_backend *b) {
  if (b->size != sizeof *b) return "its size is another version's";
  if (!b->name || !b->name[0] || strlen(b->name) > 32 || strchr(b->name, ':'))
    return "it has no name of 1 to 32 bytes without a colon";
  if (!b->open || !b->close) return "open or close is missing";
  if (!b->alloc || !b->free) return "alloc or free is missing";
  if (!b->host && (!b->read || !b->write)) return "host, or read and write, are missing";
  if (!b->load || !b->unload || !b->program || !b->program_free || !b->execute)
    return "a function for programs is missing";
  for (size_t i = 0; i < b->n_pairs; i++)
    if (!complete_pair(&b->pairs[i])) return "a renderer or compiler is not complete";
  if (!complete_queue(b->queue)) return "its queue functions are not complete";
  return complete_signal(b->signal) ? NULL : "its signal functions are not complete";
}

static const tn_backend *find_backend(const table *t, const char *name, size_t length) {
  for (const known_backend *k = t->backends; k; k = k->next)
    if (strlen(k->backend->name) == length && !memcmp(k->backend->name, name, length))
      return k->backend;
  return NULL;
}

/** Under the lock. */
static tn_status add_backend(table *t, const tn_backend *b, diag *d) {
  const tn_backend *there = find_backend(t, b->name, strlen(b->name));
  if (there == b) return TN_OK;
  if (there) return diag_set(d, TN_ERR_ARGUMENT, "there is a backend %s already", b->name);
  known_backend *k = mem_calloc(&t->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->backend = b;
  known_backend **at = &t->backends;
  while (*at) at = &(*at)->next;
  *at = k;
  return TN_OK;
}

tn_status table_add(table *t, const tn_backend *b, diag *d) {
  if (!b) return diag_set(d, TN_ERR_ARGUMENT, "no backend is given");
  const char *why = missing(b);
  if (why)
    return diag_set(d, TN_ERR_ARGUMENT, "backend %s: %s", b->name && b->name[0] ? b->name : "?",
                    why);
  mutex_lock(&t->lock);
  tn_status status = add_backend(t, b, d);
  mutex_unlock(&t->lock);
  return status;
}

/* Devices. */

/** Under the lock. */
static tn_status get_device(table *t, const tn_backend *b, int32_t index, tn_device **device,
                            diag *d) {
  for (open_device *v = t->devices; v; v = v->next)
    if (v->device->backend == b && v->device->index == index) {
      *device = v->device;
      return TN_OK;
    }
  open_device *v = mem_calloc(&t->mem, 1, sizeof *v);
  if (!v) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = device_open(&v->device, t, b, index, &t->host, d);
  if (status) {
    mem_free(&t->mem, v, sizeof *v);
    return status;
  }
  v->next = t->devices;
  t->devices = v;
  *device = v->device;
  return TN_OK;
}

/** The number after the colon; 0 without one; −1 if it is none. */
static int32_t parse_index(const char *text) {
  if (!*text) return 0;
  size_t digits = strspn(++text, "0123456789");
  if (!digits || digits > 4 || text[digits]) return -1;
  return (int32_t)strtol(text, NULL, 10);
}

static tn_status unknown_device(const table *t, const char *name, diag *d) {
  char known[512] = "";
  for (const known_backend *k = t->backends; k; k = k->next) {
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", k->backend->name);
  }
  return diag_set(d, TN_ERR_DEVICE,
                  "there is no device \"%s\"; devices are named %s, or as in %s:1", name, known,
                  t->backends->backend->name);
}

tn_status table_device(table *t, const char *name, tn_device **device, diag *d) {
  *device = NULL;
  size_t length = strcspn(name, ":");
  int32_t index = parse_index(name + length);
  mutex_lock(&t->lock);
  const tn_backend *b = find_backend(t, name, length);
  tn_status status =
      b && index >= 0 ? get_device(t, b, index, device, d) : unknown_device(t, name, d);
  mutex_unlock(&t->lock);
  return status;
}

/* What devices there are. */

bool table_place(table *t, size_t i, device_place *place) {
  bool found = false;
  mutex_lock(&t->lock);
  for (const known_backend *b = t->backends; b && !found; b = b->next) {
    int32_t count = b->backend->count ? b->backend->count() : 1;
    size_t n = count > 0 ? (size_t)count : 0;
    found = i < n;
    if (found) *place = (device_place){b->backend, (int32_t)i};
    i -= n;
  }
  mutex_unlock(&t->lock);
  return found;
}

void table_forget(table *t, device_facts *k) {
  if (!k) return;
  mem_strfree(&t->mem, k->about);
  mem_strfree(&t->mem, k->absent);
  mem_strfree(&t->mem, k->pairs);
  mem_free(&t->mem, k, sizeof *k);
}

/** Whether a pair works: the compiler is there. */
static tn_status try_pair(tn_device *v, const char *name, const char *compiler, diag *d) {
  const device_target *target;
  void *opened;
  const target_desc desc = {.pair = name, .compiler = compiler};
  tn_status status = device_target_get(v, &desc, &target, d);
  return status ? status : device_compiler_get(target, &opened, d);
}

/** The names of the pairs that work, with spaces between; the last one's failure is in `d`. */
static tn_status list_pairs(table *t, device_facts *k, const char *compiler, diag *d) {
  tn_device *v;
  tn_output names = output_new(&t->mem);
  mutex_lock(&t->lock);
  tn_status status = get_device(t, k->place.backend, k->place.index, &v, d);
  mutex_unlock(&t->lock);
  for (size_t i = 0; i < k->place.backend->n_pairs && !status; i++) {
    const tn_pair *p = &k->place.backend->pairs[i];
    char name[128];
    int n = snprintf(name, sizeof name, "%s/%s", p->renderer->name, p->compiler->name);
    if (try_pair(v, name, compiler, d)) continue;
    if (names.n) tn_output_add(&names, " ", 1);
    tn_output_add(&names, name, (size_t)n);
  }
  if (!status) {
    k->pairs = mem_strdup(&t->mem, output_text(&names));
    if (names.failed || !k->pairs) status = diag_set(d, TN_ERR_MEMORY, "out of memory");
    if (!status && !names.n) status = d->status ? d->status : TN_ERR_UNSUPPORTED;
  }
  output_free(&names);
  return status;
}

/** Asks a backend about a device; what goes wrong is what makes it absent. */
static tn_status probe(table *t, device_facts *k, const char *compiler, diag *d) {
  tn_output about = output_new(&t->mem);
  tn_failure f;
  failure_clear(&f);
  const tn_backend *b = k->place.backend;
  tn_status status = b->probe ? b->probe(k->place.index, &about, &k->bytes, &f) : TN_OK;
  k->about = mem_strdup(&t->mem, output_text(&about));
  output_free(&about);
  if (!k->about) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (status) return failure_tell(d, status, &f);
  return list_pairs(t, k, compiler, d);
}

tn_status table_ask(table *t, const device_place *place, const char *compiler, device_facts **out,
                    diag *d) {
  device_facts *k = mem_calloc(&t->mem, 1, sizeof *k);
  *out = k;
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->place = *place;
  snprintf(k->name, sizeof k->name, "%s:%d", place->backend->name, (int)place->index);
  diag why = {0};
  tn_status status = probe(t, k, compiler, &why);
  if (status) k->absent = mem_strdup(&t->mem, why.text[0] ? why.text : tn_status_text(status));
  if (!k->pairs) k->pairs = mem_strdup(&t->mem, "");
  if (status != TN_ERR_MEMORY && k->pairs && (!status || k->absent)) return TN_OK;
  table_forget(t, k);
  *out = NULL;
  return diag_set(d, TN_ERR_MEMORY, "out of memory");
}
