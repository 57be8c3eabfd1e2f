/* Implements the memory cache of compiled kernels: a hash table by the XXH3 hash of the key, a
   doubly linked list of idle kernels for least-recently-used eviction, and reference counts under
   one lock. A second lock, taken first, serialises loading. Code, modules and programs are freed
   outside of the locks. */
#include "compile/kernel_cache.h"

#include "base/hash_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Code, loaded on a device. */
typedef struct module {
  tn_device *device;
  void *handle; /* the backend's */
  struct module *next;
} module;

/** The code of the kernels that one call of a compiler made; freed with the last of them. */
typedef struct code {
  size_t kernels, in_use; /* that are in the cache; and not idle */
  atomic_size_t owners;   /* kernels that are not freed */
  tn_code_kind kind;
  bool is_found;        /* on disk */
  size_t bytes, charge; /* charge: with its modules, each as large as the code it was loaded from */
  module *modules;
  char data[];
} code;

/** A kernel's program on one device. */
typedef struct loaded_program {
  tn_program program; /* first: the two have one address */
  kernel *kernel;
  struct loaded_program *next; /* the same kernel on another device */
} loaded_program;

/** A kernel's place in the hash table and in the list of idle kernels. */
typedef struct cache_entry {
  uint64_t hash[2];
  void *key;
  size_t key_bytes;
  unsigned number; /* among kernels of the same hash */
  char symbol[48]; /* the name of its function, of hash and number */
  bool is_published, is_of_background;
  bool is_hidden;        /* lookups do not find it; it is dropped with its last reference */
  size_t references;     /* lookups and compilations; and one for each program with references */
  kernel *next;          /* after removal, in the list of kernels to be freed */
  kernel *newer, *older; /* in the list of idle kernels */
} cache_entry;

/** The facts of a published kernel, whose arrays and texts are in one block. */
typedef struct kernel_facts {
  void *block; /* NULL: not published */
  size_t block_bytes;
  const char *name;
  tn_program_facts program;
  launch_exprs sizes;
  launch_limits limits;
} kernel_facts;

struct kernel {
  kernel_cache *cache;
  cache_entry entry;
  kernel_facts facts;
  code *code;               /* NULL: not published */
  loaded_program *programs; /* one for each device it is loaded on */
};

/* A kernel is idle when it is published and has no references. Idle kernels are in a list, in the
   order in which they became idle; only these are counted against the limits and evicted. */
struct kernel_cache {
  const mem *mem;
  reentrancy_list
      *visits;   /* threads in functions of callers, who may be in the midst of compiling */
  mutex loading; /* of programs and modules of kernels with references; taken before `lock` */
  mutex lock;    /* of the fields below */
  condition changed;
  size_t most, most_bytes; /* limits on idle kernels */
  hash_table kernels;
  kernel *newest, *oldest; /* idle */
  kernel_cache_stats counts;
};

kernel_cache *kernel_cache_open(const mem *m, reentrancy_list *visits) {
  kernel_cache *c = mem_calloc(m, 1, sizeof *c);
  if (!c) return NULL;
  *c = (kernel_cache){.mem = m,
                      .visits = visits,
                      .most = KERNEL_CACHE_MOST_IDLE,
                      .most_bytes = KERNEL_CACHE_MOST_IDLE_BYTES};
  mutex_init(&c->loading);
  mutex_init(&c->lock);
  condition_init(&c->changed);
  return c;
}

/* Freeing of kernels that are removed from the table. Needs no lock. */

static void free_program(kernel_cache *c, loaded_program *p) {
  p->program.device->backend->program_free(p->program.handle);
  mem_free(c->mem, p, sizeof *p);
}

static void free_module(kernel_cache *c, module *m) {
  m->device->backend->unload(m->handle);
  mem_free(c->mem, m, sizeof *m);
}

static void free_code(kernel_cache *c, code *code) {
  for (module *m = code->modules, *next; m; m = next) {
    next = m->next;
    free_module(c, m);
  }
  mem_free(c->mem, code, sizeof *code + code->bytes + 1);
}

static void free_kernel(kernel_cache *c, kernel *k) {
  for (loaded_program *p = k->programs, *next; p; p = next) {
    next = p->next;
    free_program(c, p);
  }
  if (k->code && atomic_fetch_sub(&k->code->owners, 1) == 1) free_code(c, k->code);
  mem_free(c->mem, k->facts.block, k->facts.block_bytes);
  mem_free(c->mem, k->entry.key, k->entry.key_bytes);
  mem_free(c->mem, k, sizeof *k);
}

static void free_kernels(kernel_cache *c, kernel *list) {
  for (kernel *k = list, *next; k; k = next) {
    next = k->entry.next;
    free_kernel(c, k);
  }
}

void kernel_cache_close(kernel_cache *c) {
  if (!c) return;
  kernel *k;
  for (size_t at = 0; (k = hash_table_next(&c->kernels, &at));) free_kernel(c, k);
  condition_free(&c->changed);
  mutex_free(&c->lock);
  mutex_free(&c->loading);
  hash_table_free(&c->kernels, c->mem);
  mem_free(c->mem, c, sizeof *c);
}

/* References and eviction; under the lock. Kernels to be freed once it is released go to the list
   `removed`. */

static void set_charge(kernel_cache *c, code *code, size_t charge) {
  c->counts.bytes += charge - code->charge;
  if (!code->in_use) c->counts.idle_bytes += charge - code->charge;
  code->charge = charge;
}

static void link_idle(kernel_cache *c, kernel *k) {
  k->entry.older = c->newest;
  k->entry.newer = NULL;
  *(c->newest ? &c->newest->entry.newer : &c->oldest) = k;
  c->newest = k;
  c->counts.idle++;
  c->counts.idle_bytes += k->entry.key_bytes;
  if (!--k->code->in_use) c->counts.idle_bytes += k->code->charge;
}

static void unlink_idle(kernel_cache *c, kernel *k) {
  *(k->entry.older ? &k->entry.older->entry.newer : &c->oldest) = k->entry.newer;
  *(k->entry.newer ? &k->entry.newer->entry.older : &c->newest) = k->entry.older;
  c->counts.idle--;
  c->counts.idle_bytes -= k->entry.key_bytes;
  if (!k->code->in_use++) c->counts.idle_bytes -= k->code->charge;
}

static void retain_kernel(kernel_cache *c, kernel *k) {
  if (!k->entry.references++ && k->entry.is_published) unlink_idle(c, k);
}

/** Removes a kernel that is not idle from the table. */
static void remove_kernel(kernel_cache *c, kernel *k, kernel **removed) {
  hash_table_remove(&c->kernels, hash_word(k->entry.hash[0]), k);
  c->counts.kernels--;
  c->counts.bytes -= k->entry.key_bytes;
  if (k->code) {
    if (!--k->code->kernels) set_charge(c, k->code, 0);
    if (!--k->code->in_use) c->counts.idle_bytes += k->code->charge;
  }
  k->entry.next = *removed;
  *removed = k;
}

static void evict(kernel_cache *c, size_t most, size_t bytes, kernel **removed) {
  while (c->oldest && (c->counts.idle > most || c->counts.idle_bytes > bytes)) {
    kernel *k = c->oldest;
    unlink_idle(c, k);
    remove_kernel(c, k, removed);
  }
}

static void release_kernel(kernel_cache *c, kernel *k, kernel **removed) {
  if (--k->entry.references) return;
  if (k->entry.is_published && !k->entry.is_hidden) {
    link_idle(c, k);
    evict(c, c->most, c->most_bytes, removed);
  } else {
    remove_kernel(c, k, removed);
    condition_broadcast(&c->changed);
  }
}

void kernel_cache_release(kernel_cache *c, kernel *k) {
  kernel *removed = NULL;
  mutex_lock(&c->lock);
  release_kernel(c, k, &removed);
  mutex_unlock(&c->lock);
  free_kernels(c, removed);
}

/** A program's `release`. */
static void release_program(tn_program *p) {
  kernel *k = ((loaded_program *)p)->kernel, *removed = NULL;
  kernel_cache *c = k->cache;
  mutex_lock(&c->lock);
  if (atomic_fetch_sub(&p->uses, 1) == 1) release_kernel(c, k, &removed);
  mutex_unlock(&c->lock);
  free_kernels(c, removed);
}

void kernel_cache_set_limits(kernel_cache *c, size_t most, size_t bytes) {
  kernel *removed = NULL;
  mutex_lock(&c->lock);
  c->most = most;
  c->most_bytes = bytes;
  evict(c, most, bytes, &removed);
  mutex_unlock(&c->lock);
  free_kernels(c, removed);
}

void kernel_cache_trim(kernel_cache *c, size_t most, size_t bytes) {
  kernel *removed = NULL;
  mutex_lock(&c->lock);
  evict(c, most, bytes, &removed);
  mutex_unlock(&c->lock);
  free_kernels(c, removed);
}

/** Evicts all idle kernels; false if there were none. */
static bool evict_idle(kernel_cache *c) {
  kernel *removed = NULL;
  mutex_lock(&c->lock);
  evict(c, 0, 0, &removed);
  mutex_unlock(&c->lock);
  bool any = removed != NULL;
  free_kernels(c, removed);
  return any;
}

/* Lookup; under the lock. */

static bool has_key(const void *entry, const void *wanted) {
  const kernel *k = entry;
  const cache_key *key = wanted;
  return !k->entry.is_hidden && k->entry.hash[1] == key->hash[1] &&
         k->entry.key_bytes == key->bytes && !memcmp(k->entry.key, key->data, key->bytes);
}

static bool is_published(const void *entry, const void *wanted) {
  return ((const kernel *)entry)->entry.is_published && has_key(entry, wanted);
}

static bool is_of_foreground(const void *entry, const void *wanted) {
  return !((const kernel *)entry)->entry.is_of_background && has_key(entry, wanted);
}

/** Finds a kernel: a published one before one that is being compiled, which is the background's
    only if nobody else compiles it. */
static kernel *find_kernel(const kernel_cache *c, const cache_key *key) {
  uint64_t hash = hash_word(key->hash[0]);
  kernel *k = hash_table_get(&c->kernels, hash, key, is_published);
  if (!k) k = hash_table_get(&c->kernels, hash, key, is_of_foreground);
  return k ? k : hash_table_get(&c->kernels, hash, key, has_key);
}

static bool has_number(const void *entry, const void *wanted) {
  const kernel *k = entry, *other = wanted;
  return k->entry.hash[1] == other->entry.hash[1] && k->entry.number == other->entry.number;
}

/** Gives a kernel the first number that no kernel of its hash has. */
static void set_number(const kernel_cache *c, kernel *k) {
  while (hash_table_get(&c->kernels, hash_word(k->entry.hash[0]), k, has_number)) k->entry.number++;
}

static void set_symbol(cache_entry *e) {
  int n =
      snprintf(e->symbol, sizeof e->symbol, "tn_%016" PRIx64 "%016" PRIx64, e->hash[0], e->hash[1]);
  if (e->number) snprintf(e->symbol + n, sizeof e->symbol - (size_t)n, "_%u", e->number);
}

/** Adds a kernel that is not published; NULL without memory. */
static kernel *add_kernel(kernel_cache *c, const cache_key *key) {
  kernel *k = mem_calloc(c->mem, 1, sizeof *k);
  void *copy = mem_alloc(c->mem, key->bytes);
  if (!k || !copy || !hash_table_try_reserve(&c->kernels, c->mem)) {
    mem_free(c->mem, k, sizeof *k);
    mem_free(c->mem, copy, key->bytes);
    return NULL;
  }
  k->cache = c;
  memcpy(k->entry.hash, key->hash, sizeof k->entry.hash);
  k->entry.key = memcpy(copy, key->data, key->bytes);
  k->entry.key_bytes = key->bytes;
  set_number(c, k);
  set_symbol(&k->entry);
  uint64_t hash = hash_word(k->entry.hash[0]);
  hash_table_insert(&c->kernels, hash_table_free_slot(&c->kernels, hash), hash, k);
  c->counts.kernels++;
  c->counts.bytes += key->bytes;
  return k;
}

static bool is_claimed(const kernel *k) { return k && !k->entry.is_published; }

/** Retains the kernel that was found, or adds one where *k is NULL. */
static tn_status retain_or_claim(kernel_cache *c, kernel **k, const cache_key *key,
                                 kernel_cache_result *result, diag *d) {
  if (*k) {
    *result = is_claimed(*k) ? KERNEL_CACHE_PENDING : KERNEL_CACHE_HIT;
    if (is_claimed(*k)) return TN_OK;
    c->counts.found++;
  } else {
    *result = KERNEL_CACHE_CLAIMED;
    if (!(*k = add_kernel(c, key))) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  retain_kernel(c, *k);
  return TN_OK;
}

/** True if a lookup may not leave a kernel to those who compile it. */
static bool takes_over(const kernel_cache *c, const kernel *k, unsigned flags) {
  if (!is_claimed(k)) return false;
  if (k->entry.is_of_background && !(flags & KERNEL_CACHE_BACKGROUND)) return true;
  return flags & KERNEL_CACHE_WAIT && reentrancy_of_thread(c->visits);
}

tn_status kernel_cache_lookup(kernel_cache *c, const cache_key *key, unsigned flags,
                              kernel_cache_result *result, kernel **out, diag *d) {
  mutex_lock(&c->lock);
  kernel *k = flags & KERNEL_CACHE_TRIAL ? NULL : find_kernel(c, key);
  while (flags & KERNEL_CACHE_WAIT && is_claimed(k) && !takes_over(c, k, flags)) {
    condition_wait(&c->changed, &c->lock);
    k = find_kernel(c, key);
  }
  if (takes_over(c, k, flags)) k = NULL;
  tn_status status = retain_or_claim(c, &k, key, result, d);
  if (status == TN_OK && *result == KERNEL_CACHE_CLAIMED) {
    k->entry.is_of_background = flags & KERNEL_CACHE_BACKGROUND;
    k->entry.is_hidden = flags & KERNEL_CACHE_TRIAL;
  }
  *out = status || *result == KERNEL_CACHE_PENDING ? NULL : k;
  mutex_unlock(&c->lock);
  return status;
}

const char *kernel_entry_name(const kernel *k) { return k->entry.symbol; }

const void *kernel_key_bytes(const kernel *k, size_t *bytes) {
  *bytes = k->entry.key_bytes;
  return k->entry.key;
}

const kernel *kernel_of_program(const tn_program *p) { return ((const loaded_program *)p)->kernel; }

/* Publishing. */

/** Copies a string to *at, and moves that past it. */
static const char *append_text(char **at, const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = memcpy(*at, text, bytes);
  *at += bytes;
  return copy;
}

static void *copy_bytes(void *to, const void *from, size_t bytes) {
  return bytes ? memcpy(to, from, bytes) : to;
}

/** Copies the facts of a kernel into one block: numbers, then texts. False without memory. */
static bool copy_facts(kernel_cache *c, kernel_facts *to, const compiled_kernel *from) {
  const tn_program_spec *s = from->spec;
  size_t slots = s->n_globals * sizeof *s->globals, names = s->n_values * sizeof(char *);
  size_t sizes = launch_exprs_bytes(&from->sizes), dims = launch_exprs_bytes(&from->limits.dims);
  size_t bounds = 2 * s->n_values * sizeof(int64_t), arrays = s->n_globals * sizeof(launch_operand);
  size_t numbers = slots + names + sizes + dims + bounds + arrays, bytes = numbers;
  bytes += strlen(s->entry) + 1 + strlen(s->name) + 1;
  for (size_t i = 0; i < s->n_values; i++) bytes += strlen(s->value_names[i]) + 1;
  char *block = mem_alloc(c->mem, bytes);
  if (!block) return false;
  char *text = block + numbers, *number = block + slots + names;
  int64_t *globals = (int64_t *)block;
  const char **value_names = (const char **)(block + slots);
  if (slots) memcpy(globals, s->globals, slots);
  for (size_t i = 0; i < s->n_values; i++) value_names[i] = append_text(&text, s->value_names[i]);
  const char *entry = append_text(&text, s->entry);
  to->name = append_text(&text, s->name);
  to->sizes = launch_exprs_copy(&from->sizes, number, value_names);
  to->limits.dims = launch_exprs_copy(&from->limits.dims, number += sizes, value_names);
  to->limits.bounds = copy_bytes(number += dims, from->limits.bounds, bounds);
  to->limits.arrays = copy_bytes(number += bounds, from->limits.arrays, arrays);
  to->program = (tn_program_facts){.entry = entry,
                                   .n_globals = s->n_globals,
                                   .n_values = s->n_values,
                                   .scratch = s->scratch,
                                   .core_id = s->core_id,
                                   .value_names = value_names,
                                   .globals = globals};
  to->block = block;
  to->block_bytes = bytes;
  return true;
}

/** A copy of code with the module of `found`, if there is one; NULL without memory, and the module
    is the caller's still. */
static code *copy_code(kernel_cache *c, const tn_code *from, const found_code *found) {
  bool is_loaded = found && found->module;
  code *copy = mem_alloc(c->mem, sizeof *copy + from->bytes + 1);
  module *m = is_loaded ? mem_calloc(c->mem, 1, sizeof *m) : NULL;
  if (!copy || (is_loaded && !m)) {
    if (copy) mem_free(c->mem, copy, sizeof *copy + from->bytes + 1);
    mem_free(c->mem, m, sizeof *m);
    return NULL;
  }
  if (m) *m = (module){.device = found->device, .handle = found->module};
  *copy = (code){.kind = from->kind, .is_found = found != NULL, .bytes = from->bytes, .modules = m};
  memcpy(copy->data, from->data, from->bytes);
  copy->data[from->bytes] = 0;
  return copy;
}

tn_status kernel_cache_publish(kernel_cache *c, const compiled_kernel compiled[], size_t n,
                               const tn_code *from, const found_code *found, diag *d) {
  for (size_t i = 0; i < n; i++)
    if (!compiled[i].kernel->facts.block &&
        !copy_facts(c, &compiled[i].kernel->facts, &compiled[i]))
      return diag_set(d, TN_ERR_MEMORY, "out of memory");
  code *code = copy_code(c, from, found);
  if (!code) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  mutex_lock(&c->lock);
  code->kernels = code->in_use = n;
  atomic_init(&code->owners, n);
  set_charge(c, code, code->modules ? 2 * code->bytes : code->bytes);
  *(found ? &c->counts.found : &c->counts.compiled) += n;
  for (size_t i = 0; i < n; i++) {
    compiled[i].kernel->code = code;
    compiled[i].kernel->entry.is_published = true;
  }
  condition_broadcast(&c->changed);
  mutex_unlock(&c->lock);
  return TN_OK;
}

bool kernel_cache_forget(kernel_cache *c, kernel *k) {
  mutex_lock(&c->lock);
  bool is_found = k->code && k->code->is_found;
  k->entry.is_hidden = k->entry.is_hidden || is_found;
  mutex_unlock(&c->lock);
  return is_found;
}

/* Loading; under `loading`. */

/** Loads code on a device. Idle kernels may be what memory, or the mappings that a process may
    have, were spent on. */
static tn_status load_code(kernel_cache *c, const code *code, tn_device *device, void **handle,
                           diag *d) {
  const tn_code given = {code->kind, code->data, code->bytes};
  diag_clear(d);
  tn_status status = device->backend->load(device->state, &given, handle, &d->failure);
  if (status == TN_ERR_MEMORY && evict_idle(c)) {
    diag_clear(d);
    status = device->backend->load(device->state, &given, handle, &d->failure);
  }
  return diag_complete(d, status);
}

static tn_status load_module(kernel_cache *c, code *code, tn_device *device, module **out,
                             diag *d) {
  for (*out = code->modules; *out; *out = (*out)->next)
    if ((*out)->device == device) return TN_OK;
  module *m = mem_calloc(c->mem, 1, sizeof *m);
  if (!m) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = load_code(c, code, device, &m->handle, d);
  if (status) {
    mem_free(c->mem, m, sizeof *m);
    return status;
  }
  m->device = device;
  m->next = code->modules;
  *out = code->modules = m;
  mutex_lock(&c->lock);
  set_charge(c, code, code->charge + code->bytes);
  mutex_unlock(&c->lock);
  return TN_OK;
}

static tn_status load_program(kernel_cache *c, kernel *k, tn_device *device, loaded_program **out,
                              diag *d) {
  module *m;
  tn_status status = load_module(c, k->code, device, &m, d);
  if (status) return status;
  loaded_program *p = mem_calloc(c->mem, 1, sizeof *p);
  if (!p) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  bool is_call = k->code->kind == TN_CODE_PRODUCT;
  p->program = (tn_program){.device = device,
                            .name = k->facts.name,
                            .library = is_call ? device->backend->products->name : NULL,
                            .facts = k->facts.program,
                            .sizes = k->facts.sizes,
                            .limits = k->facts.limits,
                            .release = release_program};
  atomic_init(&p->program.uses, 0);
  diag_clear(d);
  status = diag_complete(
      d, device->backend->program(m->handle, &k->facts.program, &p->program.handle, &d->failure));
  if (status) {
    mem_free(c->mem, p, sizeof *p);
    return status;
  }
  p->kernel = k;
  p->next = k->programs;
  *out = k->programs = p;
  return TN_OK;
}

tn_status kernel_cache_load_program(kernel_cache *c, kernel *k, tn_device *device,
                                    tn_program **program, diag *d) {
  mutex_lock(&c->loading);
  tn_status status = TN_OK;
  loaded_program *p = k->programs;
  while (p && p->program.device != device) p = p->next;
  if (!p) status = load_program(c, k, device, &p, d);
  mutex_unlock(&c->loading);
  *program = p ? &p->program : NULL;
  if (status) return status;
  mutex_lock(&c->lock);
  if (!atomic_fetch_add(&p->program.uses, 1)) retain_kernel(c, k);
  mutex_unlock(&c->lock);
  return TN_OK;
}

/* The cache of a registry. */

static void unload_program(kernel_cache *c, kernel *k, const tn_device *device) {
  loaded_program **at = &k->programs;
  while (*at && (*at)->program.device != device) at = &(*at)->next;
  loaded_program *p = *at;
  if (!p) return;
  *at = p->next;
  free_program(c, p);
}

static void unload_module(kernel_cache *c, code *code, const tn_device *device) {
  module **at = &code->modules;
  while (*at && (*at)->device != device) at = &(*at)->next;
  module *m = *at;
  if (!m) return;
  *at = m->next;
  set_charge(c, code, code->charge - code->bytes);
  free_module(c, m);
}

/** Unloads all programs of a device, none of which is in use; then their modules. */
static void unload_device(void *cache, const tn_device *device) {
  kernel_cache *c = cache;
  mutex_lock(&c->loading);
  mutex_lock(&c->lock);
  kernel *k;
  for (size_t at = 0; (k = hash_table_next(&c->kernels, &at));) unload_program(c, k, device);
  for (size_t at = 0; (k = hash_table_next(&c->kernels, &at));)
    if (k->code) unload_module(c, k->code, device);
  mutex_unlock(&c->lock);
  mutex_unlock(&c->loading);
}

static void *open_service(registry *r) {
  return kernel_cache_open(registry_mem(r), registry_reentrancy(r));
}

static void close_service(void *cache) { kernel_cache_close(cache); }

kernel_cache *kernel_cache_of(registry *r) {
  static const registry_service service = {open_service, unload_device, close_service};
  return registry_service_state(r, &service);
}

kernel_cache_stats kernel_cache_get_stats(kernel_cache *c) {
  mutex_lock(&c->lock);
  kernel_cache_stats counts = c->counts;
  mutex_unlock(&c->lock);
  return counts;
}
