#include "device/cache.h"

#include "device/failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Code, loaded on a device. */
typedef struct module {
  tn_device *device;
  void *handle;
  struct module *next;
} module;

/** What one call of a compiler made: the code of one or more kernels, whose last takes it along. */
typedef struct code {
  size_t kernels, held; /* that it has in the cache, and how many of these are in use */
  atomic_size_t owners; /* kernels that it has and that are not freed */
  tn_code_kind kind;
  size_t bytes, charge; /* charge: with its modules, each as large as the code it was loaded from */
  module *modules;
  char data[];
} code;

struct kernel {
  kernel_cache *cache;
  uint64_t hash[2];
  void *key;
  size_t key_bytes;
  unsigned number; /* of those of the same hash */
  char entry[48];
  bool published;
  size_t held; /* by those who ask and compile; and once by each program with uses */
  code *code;
  void *text; /* of the facts */
  size_t text_bytes;
  const char *name;
  tn_program_facts facts;
  launch_code sizes;
  launch_terms terms;
  tn_program *programs;  /* one a device */
  kernel *next;          /* in its bucket; later, of those to be freed */
  kernel *newer, *older; /* if it is idle */
};

/* A kernel is idle when it is published and not held. Idle ones are in a list, in the order in
   which they were given back, and only these are bounded and dropped. */
struct kernel_cache {
  const mem *mem;
  visits visits; /* threads in functions of callers, who may be in the midst of compiling */
  mutex loading; /* of programs and modules of kernels that are held; taken before `lock` */
  mutex lock;    /* of the rest */
  condition changed;
  size_t most, most_bytes;
  kernel **bucket;
  size_t n_buckets;
  kernel *newest, *oldest;
  cache_counts counts;
};

kernel_cache *cache_open(const mem *m, size_t most, size_t bytes) {
  kernel_cache *c = mem_calloc(m, 1, sizeof *c);
  if (!c) return NULL;
  *c = (kernel_cache){.mem = m, .most = most, .most_bytes = bytes, .n_buckets = 256};
  c->bucket = mem_calloc(m, c->n_buckets, sizeof *c->bucket);
  if (!c->bucket) {
    mem_free(m, c, sizeof *c);
    return NULL;
  }
  visits_init(&c->visits);
  mutex_init(&c->loading);
  mutex_init(&c->lock);
  condition_init(&c->changed);
  return c;
}

visits *cache_visits(kernel_cache *c) { return &c->visits; }

/* Freeing what nobody finds any more. Needs no lock. */

static void free_program(kernel_cache *c, tn_program *p) {
  p->device->backend->program_free(p->handle);
  mem_free(c->mem, p, sizeof *p);
}

static void free_module(kernel_cache *c, module *m) {
  m->device->backend->unload(m->handle);
  mem_free(c->mem, m, sizeof *m);
}

static void free_code(kernel_cache *c, code *k) {
  for (module *m = k->modules, *next; m; m = next) {
    next = m->next;
    free_module(c, m);
  }
  mem_free(c->mem, k, sizeof *k + k->bytes + 1);
}

static void free_kernel(kernel_cache *c, kernel *k) {
  for (tn_program *p = k->programs, *next; p; p = next) {
    next = p->next;
    free_program(c, p);
  }
  if (k->code && atomic_fetch_sub(&k->code->owners, 1) == 1) free_code(c, k->code);
  mem_free(c->mem, k->text, k->text_bytes);
  mem_free(c->mem, k->key, k->key_bytes);
  mem_free(c->mem, k, sizeof *k);
}

static void free_kernels(kernel_cache *c, kernel *k) {
  for (kernel *next; k; k = next) {
    next = k->next;
    free_kernel(c, k);
  }
}

void cache_close(kernel_cache *c) {
  if (!c) return;
  for (size_t i = 0; i < c->n_buckets; i++) free_kernels(c, c->bucket[i]);
  condition_free(&c->changed);
  mutex_free(&c->lock);
  mutex_free(&c->loading);
  visits_free(&c->visits);
  mem_free(c->mem, c->bucket, c->n_buckets * sizeof *c->bucket);
  mem_free(c->mem, c, sizeof *c);
}

/* Use and disuse; under the lock. What is to be freed once it is given up goes to a list. */

static kernel **bucket_of(const kernel_cache *c, const uint64_t hash[2]) {
  return &c->bucket[hash[0] % c->n_buckets];
}

static void set_charge(kernel_cache *c, code *k, size_t charge) {
  c->counts.bytes += charge - k->charge;
  if (!k->held) c->counts.idle_bytes += charge - k->charge;
  k->charge = charge;
}

static void make_idle(kernel_cache *c, kernel *k) {
  k->older = c->newest;
  k->newer = NULL;
  *(c->newest ? &c->newest->newer : &c->oldest) = k;
  c->newest = k;
  c->counts.idle++;
  c->counts.idle_bytes += k->key_bytes;
  if (!--k->code->held) c->counts.idle_bytes += k->code->charge;
}

static void end_idleness(kernel_cache *c, kernel *k) {
  *(k->older ? &k->older->newer : &c->oldest) = k->newer;
  *(k->newer ? &k->newer->older : &c->newest) = k->older;
  c->counts.idle--;
  c->counts.idle_bytes -= k->key_bytes;
  if (!k->code->held++) c->counts.idle_bytes -= k->code->charge;
}

static void hold(kernel_cache *c, kernel *k) {
  if (!k->held++ && k->published) end_idleness(c, k);
}

/** Takes a kernel that is in use, or not published, out of the cache. */
static void give_up(kernel_cache *c, kernel *k, kernel **given_up) {
  kernel **at = bucket_of(c, k->hash);
  while (*at != k) at = &(*at)->next;
  *at = k->next;
  c->counts.kernels--;
  c->counts.bytes -= k->key_bytes;
  if (k->code) {
    if (!--k->code->kernels) set_charge(c, k->code, 0);
    if (!--k->code->held) c->counts.idle_bytes += k->code->charge;
  }
  k->next = *given_up;
  *given_up = k;
}

static void evict(kernel_cache *c, size_t most, size_t bytes, kernel **given_up) {
  while (c->oldest && (c->counts.idle > most || c->counts.idle_bytes > bytes)) {
    kernel *k = c->oldest;
    end_idleness(c, k);
    give_up(c, k, given_up);
  }
}

static void let_go(kernel_cache *c, kernel *k, kernel **given_up) {
  if (--k->held) return;
  if (k->published) {
    make_idle(c, k);
    evict(c, c->most, c->most_bytes, given_up);
  } else {
    give_up(c, k, given_up);
    condition_wake_all(&c->changed);
  }
}

void cache_drop(kernel_cache *c, kernel *k) {
  kernel *given_up = NULL;
  mutex_lock(&c->lock);
  let_go(c, k, &given_up);
  mutex_unlock(&c->lock);
  free_kernels(c, given_up);
}

void cache_release(tn_program *p) {
  kernel_cache *c = p->kernel->cache;
  kernel *given_up = NULL;
  mutex_lock(&c->lock);
  if (atomic_fetch_sub(&p->uses, 1) == 1) let_go(c, p->kernel, &given_up);
  mutex_unlock(&c->lock);
  free_kernels(c, given_up);
}

void cache_limit(kernel_cache *c, size_t most, size_t bytes) {
  kernel *given_up = NULL;
  mutex_lock(&c->lock);
  c->most = most;
  c->most_bytes = bytes;
  evict(c, most, bytes, &given_up);
  mutex_unlock(&c->lock);
  free_kernels(c, given_up);
}

/** Drops all that is idle; false if nothing was. */
static bool drop_idle(kernel_cache *c) {
  kernel *given_up = NULL;
  mutex_lock(&c->lock);
  evict(c, 0, 0, &given_up);
  mutex_unlock(&c->lock);
  bool any = given_up != NULL;
  free_kernels(c, given_up);
  return any;
}

/* Finding. */

static bool same_hash(const kernel *k, const kernel_key *key) {
  return k->hash[0] == key->hash[0] && k->hash[1] == key->hash[1];
}

static kernel *find(const kernel_cache *c, const kernel_key *key) {
  kernel *k = *bucket_of(c, key->hash);
  while (k && (!same_hash(k, key) || k->key_bytes != key->bytes ||
               memcmp(k->key, key->data, key->bytes)))
    k = k->next;
  return k;
}

/** The first number that no kernel of a hash has. */
static unsigned free_number(const kernel_cache *c, const kernel_key *key) {
  unsigned number = 0;
  for (const kernel *k = *bucket_of(c, key->hash); k;) {
    bool taken = same_hash(k, key) && k->number == number;
    number += taken;
    k = taken ? *bucket_of(c, key->hash) : k->next;
  }
  return number;
}

static void name_entry(kernel *k) {
  int n =
      snprintf(k->entry, sizeof k->entry, "tn_%016" PRIx64 "%016" PRIx64, k->hash[0], k->hash[1]);
  if (k->number) snprintf(k->entry + n, sizeof k->entry - (size_t)n, "_%u", k->number);
}

/** More buckets, if there is memory for them. */
static void spread(kernel_cache *c) {
  size_t n = c->n_buckets * 4;
  kernel **bucket = mem_calloc(c->mem, n, sizeof *bucket);
  if (!bucket) return;
  for (size_t i = 0; i < c->n_buckets; i++)
    for (kernel *k = c->bucket[i], *next; k; k = next) {
      next = k->next;
      k->next = bucket[k->hash[0] % n];
      bucket[k->hash[0] % n] = k;
    }
  mem_free(c->mem, c->bucket, c->n_buckets * sizeof *c->bucket);
  c->bucket = bucket;
  c->n_buckets = n;
}

static kernel *add(kernel_cache *c, const kernel_key *key) {
  kernel *k = mem_calloc(c->mem, 1, sizeof *k);
  void *copy = mem_alloc(c->mem, key->bytes);
  if (!k || !copy) {
    mem_free(c->mem, k, sizeof *k);
    mem_free(c->mem, copy, key->bytes);
    return NULL;
  }
  if (c->counts.kernels >= c->n_buckets) spread(c);
  k->cache = c;
  memcpy(k->hash, key->hash, sizeof k->hash);
  k->key = memcpy(copy, key->data, key->bytes);
  k->key_bytes = key->bytes;
  k->number = free_number(c, key);
  name_entry(k);
  kernel **at = bucket_of(c, k->hash);
  k->next = *at;
  *at = k;
  c->counts.kernels++;
  c->counts.bytes += key->bytes;
  return k;
}

static bool is_claimed(const kernel *k) { return k && !k->published; }

/** Under the lock. */
static tn_status answer_for(kernel_cache *c, kernel **k, const kernel_key *key,
                            cache_answer *answer, diag *d) {
  if (*k) {
    *answer = (*k)->published ? CACHE_FOUND : CACHE_BUSY;
    if (!(*k)->published) return TN_OK;
    c->counts.found++;
  } else {
    *answer = CACHE_CLAIMED;
    if (!(*k = add(c, key))) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  hold(c, *k);
  return TN_OK;
}

tn_status cache_ask(kernel_cache *c, const kernel_key *key, bool wait, cache_answer *answer,
                    kernel **out, diag *d) {
  mutex_lock(&c->lock);
  kernel *k = find(c, key);
  while (wait && is_claimed(k) && !visits_mine(&c->visits)) {
    condition_wait(&c->changed, &c->lock);
    k = find(c, key);
  }
  if (wait && is_claimed(k)) k = NULL;
  tn_status status = answer_for(c, &k, key, answer, d);
  *out = status || *answer == CACHE_BUSY ? NULL : k;
  mutex_unlock(&c->lock);
  return status;
}

const char *cache_entry(const kernel *k) { return k->entry; }

const void *cache_key(const kernel *k, size_t *bytes) {
  *bytes = k->key_bytes;
  return k->key;
}

/* Publishing. */

/** Copies a string and moves on. */
static const char *put(char **at, const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = memcpy(*at, text, bytes);
  *at += bytes;
  return copy;
}

static void *copy(void *to, const void *from, size_t bytes) {
  return bytes ? memcpy(to, from, bytes) : to;
}

/** Copies what is known of a kernel into one block. */
static bool copy_facts(kernel_cache *c, const made_kernel *made) {
  const tn_program_spec *s = made->spec;
  kernel *k = made->kernel;
  size_t slots = s->n_globals * sizeof *s->globals, names = s->n_values * sizeof(char *);
  size_t sizes = launch_bytes(&made->sizes), dims = launch_bytes(&made->terms.dims);
  size_t bounds = 2 * s->n_values * sizeof(int64_t), arrays = s->n_globals * sizeof(launch_array);
  size_t numbers = slots + names + sizes + dims + bounds + arrays, bytes = numbers;
  bytes += strlen(s->entry) + 1 + strlen(s->name) + 1;
  for (size_t i = 0; i < s->n_values; i++) bytes += strlen(s->value_names[i]) + 1;
  char *block = mem_alloc(c->mem, bytes);
  if (!block) return false;
  char *at = block + numbers;
  int64_t *globals = (int64_t *)block;
  const char **value_names = (const char **)(block + slots);
  if (slots) memcpy(globals, s->globals, slots);
  for (size_t i = 0; i < s->n_values; i++) value_names[i] = put(&at, s->value_names[i]);
  const char *entry = put(&at, s->entry);
  k->name = put(&at, s->name);
  char *next = block + slots + names;
  k->sizes = launch_copy(&made->sizes, next, value_names);
  k->terms.dims = launch_copy(&made->terms.dims, next += sizes, value_names);
  k->terms.bounds = copy(next += dims, made->terms.bounds, bounds);
  k->terms.arrays = copy(next += bounds, made->terms.arrays, arrays);
  k->facts = (tn_program_facts){.entry = entry,
                                .n_globals = s->n_globals,
                                .n_values = s->n_values,
                                .scratch = s->scratch,
                                .core_id = s->core_id,
                                .value_names = value_names,
                                .globals = globals};
  k->text = block;
  k->text_bytes = bytes;
  return true;
}

static code *new_code(kernel_cache *c, const tn_code *from) {
  code *k = mem_alloc(c->mem, sizeof *k + from->bytes + 1);
  if (!k) return NULL;
  *k = (code){.kind = from->kind, .bytes = from->bytes};
  memcpy(k->data, from->data, from->bytes);
  k->data[from->bytes] = 0;
  return k;
}

tn_status cache_publish(kernel_cache *c, const made_kernel made[], size_t n, const tn_code *from,
                        bool found, diag *d) {
  code *k = new_code(c, from);
  bool complete = k != NULL;
  for (size_t i = 0; i < n && complete; i++)
    if (!made[i].kernel->text) complete = copy_facts(c, &made[i]);
  if (!complete) {
    if (k) mem_free(c->mem, k, sizeof *k + from->bytes + 1);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  mutex_lock(&c->lock);
  k->kernels = k->held = n;
  atomic_init(&k->owners, n);
  set_charge(c, k, k->bytes);
  *(found ? &c->counts.found : &c->counts.compiled) += n;
  for (size_t i = 0; i < n; i++) {
    made[i].kernel->code = k;
    made[i].kernel->published = true;
  }
  condition_wake_all(&c->changed);
  mutex_unlock(&c->lock);
  return TN_OK;
}

/* Loading; under `loading`. */

/** What is idle may be what memory, or what a process may have of mappings, was spent on. */
static tn_status load(kernel_cache *c, const code *k, tn_device *device, void **handle,
                      tn_failure *f) {
  const tn_code given = {k->kind, k->data, k->bytes};
  failure_clear(f);
  tn_status status = device->backend->load(device->state, &given, handle, f);
  if (status != TN_ERR_MEMORY || !drop_idle(c)) return status;
  failure_clear(f);
  return device->backend->load(device->state, &given, handle, f);
}

static tn_status load_module(kernel_cache *c, code *k, tn_device *device, module **out, diag *d) {
  for (*out = k->modules; *out; *out = (*out)->next)
    if ((*out)->device == device) return TN_OK;
  module *m = mem_calloc(c->mem, 1, sizeof *m);
  if (!m) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_failure f;
  tn_status status = load(c, k, device, &m->handle, &f);
  if (status) {
    mem_free(c->mem, m, sizeof *m);
    return failure_tell(d, status, &f);
  }
  m->device = device;
  m->next = k->modules;
  *out = k->modules = m;
  mutex_lock(&c->lock);
  set_charge(c, k, k->charge + k->bytes);
  mutex_unlock(&c->lock);
  return TN_OK;
}

static tn_status load_program(kernel_cache *c, kernel *k, tn_device *device, tn_program **out,
                              diag *d) {
  module *m;
  tn_status status = load_module(c, k->code, device, &m, d);
  if (status) return status;
  tn_program *p = mem_calloc(c->mem, 1, sizeof *p);
  if (!p) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_failure f;
  failure_clear(&f);
  status = device->backend->program(m->handle, &k->facts, &p->handle, &f);
  if (status) {
    mem_free(c->mem, p, sizeof *p);
    return failure_tell(d, status, &f);
  }
  p->device = device;
  p->kernel = k;
  p->name = k->name;
  p->facts = k->facts;
  p->sizes = k->sizes;
  p->terms = k->terms;
  atomic_init(&p->uses, 0);
  p->next = k->programs;
  *out = k->programs = p;
  return TN_OK;
}

tn_status cache_program(kernel_cache *c, kernel *k, tn_device *device, tn_program **program,
                        diag *d) {
  mutex_lock(&c->loading);
  tn_status status = TN_OK;
  tn_program *p = k->programs;
  while (p && p->device != device) p = p->next;
  if (!p) status = load_program(c, k, device, &p, d);
  mutex_unlock(&c->loading);
  *program = p;
  if (status) return status;
  mutex_lock(&c->lock);
  if (!atomic_fetch_add(&p->uses, 1)) hold(c, k);
  mutex_unlock(&c->lock);
  return TN_OK;
}

static void forget_program(kernel_cache *c, kernel *k, const tn_device *device) {
  tn_program **at = &k->programs;
  while (*at && (*at)->device != device) at = &(*at)->next;
  tn_program *p = *at;
  if (!p) return;
  *at = p->next;
  free_program(c, p);
}

static void forget_module(kernel_cache *c, code *k, const tn_device *device) {
  module **at = &k->modules;
  while (*at && (*at)->device != device) at = &(*at)->next;
  module *m = *at;
  if (!m) return;
  *at = m->next;
  set_charge(c, k, k->charge - k->bytes);
  free_module(c, m);
}

void cache_forget(kernel_cache *c, const tn_device *device) {
  mutex_lock(&c->loading);
  mutex_lock(&c->lock);
  for (size_t i = 0; i < c->n_buckets; i++)
    for (kernel *k = c->bucket[i]; k; k = k->next) forget_program(c, k, device);
  for (size_t i = 0; i < c->n_buckets; i++)
    for (kernel *k = c->bucket[i]; k; k = k->next)
      if (k->code) forget_module(c, k->code, device);
  mutex_unlock(&c->lock);
  mutex_unlock(&c->loading);
}

cache_counts cache_count(kernel_cache *c) {
  mutex_lock(&c->lock);
  cache_counts counts = c->counts;
  mutex_unlock(&c->lock);
  return counts;
}
