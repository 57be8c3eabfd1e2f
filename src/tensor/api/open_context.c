/* Opening and closing of contexts: tn_open and tn_close. Options come from the descriptor, and from
   the environment where the descriptor leaves them unset. A descriptor with a mistake opens a
   broken context, whose every call reports the mistake; only lack of memory opens none. */
#include "base/environment.h"
#include "compile/kernel_cache.h"
#include "compile/target_rows.h"
#include "device/core/device_target.h"
#include "device/memory/caching_allocator.h"
#include "device/registry/load_backend.h"
#include "device/threads/thread_pool.h"
#include "tensor/api/scope.h"
#include "tensor/context/caller_cache.h"
#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"
#include "tensor/context/handle.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/executable_cache.h"
#include "tensor/plan/plan.h"
#include "tensor/state/graph_input.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Environment ---- */

static const char *string_option(const tn_open_desc *o, const char *given, const char *name) {
  const char *v = !given && o->environment ? environment_get(name) : NULL;
  return v ? v : given;
}

static void read_threads(tn_open_desc *o, diag *d) {
  const char *v = o->environment && !o->threads ? environment_get("TENON_THREADS") : NULL;
  if (!v) return;
  char *end;
  errno = 0;
  long n = strtol(v, &end, 10);
  if (*end || errno || n < 0 || n > THREAD_POOL_MAX)
    diag_set(d, TN_ERR_ARGUMENT, "TENON_THREADS is \"%.100s\", not a number from 0 to %d", v,
             THREAD_POOL_MAX);
  else
    o->threads = (int32_t)n;
}

/** Reads a number, of bytes if `of_bytes`: then K, M, G or T may follow it. */
static void read_number(double *to, const char *name, bool of_bytes, diag *d) {
  static const char units[] = "KMGT";
  const char *v = environment_get(name);
  char *end;
  if (!v) return;
  double n = strtod(v, &end);
  bool is_number = end > v && n >= 0 && n <= 1e18;
  const char *unit =
      of_bytes && is_number && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
  for (ptrdiff_t k = unit ? unit - units : -1; k >= 0; k--) n *= 1024;
  if (unit) end++;
  if (is_number && !*end && n <= 1e18)
    *to = n;
  else
    diag_set(d, TN_ERR_ARGUMENT, "%s is \"%.100s\", not a number of %s", name, v,
             of_bytes ? "bytes, as 500000000, 500M or 4G" : "seconds, as 60");
}

static void read_limits(tn_open_desc *o, diag *d) {
  double bytes = 0;
  if (o->environment && !o->memory_limit) {
    read_number(&bytes, "TENON_MEMORY", true, d);
    o->memory_limit = (uint64_t)bytes;
  }
  if (o->environment && o->compile_seconds == TN_COMPILE_SECONDS)
    read_number(&o->compile_seconds, "TENON_COMPILE_SECONDS", false, d);
}

static void read_math(tn_open_desc *o, diag *d) {
  const char *v =
      o->environment && o->math == TN_MATH_DEFAULT ? environment_get("TENON_MATH") : NULL;
  if (!v) return;
#define TAKE(mode, text)  \
  if (!strcmp(v, text)) { \
    o->math = mode;       \
    return;               \
  }
  TN_MATH_LIST(TAKE)
#undef TAKE
#define LISTED(mode, text) ", " text
  const char *all = TN_MATH_LIST(LISTED);
#undef LISTED
  diag_set(d, TN_ERR_ARGUMENT, "TENON_MATH is \"%.100s\", not one of %s", v, all + 2);
}

/** The environment variables that options came from, where messages name them; NULL: none. */
typedef struct option_origins {
  const char *pair, *cpu;
} option_origins;

static option_origins read_environment(tn_open_desc *o, diag *d) {
  const tn_open_desc given = *o;
  o->device = string_option(o, o->device, "TENON_DEVICE");
  o->cache_dir = string_option(o, o->cache_dir, "TENON_CACHE");
  o->tuned = string_option(o, o->tuned, "TENON_TUNED");
  o->backends = string_option(o, o->backends, "TENON_BACKEND");
  o->pair = string_option(o, o->pair, "TENON_PAIR");
  o->cpu = string_option(o, o->cpu, "TENON_CPU");
  o->dump = string_option(o, o->dump, "TENON_DUMP");
  o->compiler = string_option(o, o->compiler, "TENON_CC");
  o->compiler = string_option(o, o->compiler, "CC");
  o->vendor = string_option(o, o->vendor, "TENON_VENDOR");
  read_threads(o, d);
  read_limits(o, d);
  read_math(o, d);
  return (option_origins){.pair = o->pair != given.pair ? "TENON_PAIR" : NULL,
                          .cpu = o->cpu != given.cpu ? "TENON_CPU" : NULL};
}

/* ---- Parts of a context ---- */

static bool copy_text(tn_context *c, char **to, const char *from) {
  *to = from ? mem_strdup(&c->mem, from) : NULL;
  return !from || *to;
}

static void log_disk_warning(void *user, const char *text) {
  context_log(user, TN_LOG_WARNING, "%s", text);
}

static void log_tuned(void *user, tn_log_level level, const char *text) {
  context_log(user, level, "%s", text);
}

static bool init_parts(tn_context *c, const tn_open_desc *o) {
  c->ir = ir_new(&c->mem, &c->diag, true);
  c->handles.no_memory = mem_calloc(&c->mem, 1, sizeof *c->handles.no_memory);
  c->handles.busy = mem_calloc(&c->mem, 1, sizeof *c->handles.busy);
  if (!c->ir || !c->handles.no_memory || !c->handles.busy) return false;
  *c->handles.no_memory =
      (tn_tensor){.life = HANDLE_LIVE, .context = c, .failure = &c->failures.no_memory};
  *c->handles.busy = (tn_tensor){.life = HANDLE_LIVE, .context = c, .failure = &c->failures.busy};
  ir_observer observer = graph_input_observer(c);
  ir_observe(c->ir, &observer);
  return copy_text(c, &c->options.device_name, o->device ? o->device : "CPU") &&
         copy_text(c, &c->options.pair, o->pair) && copy_text(c, &c->options.cpu, o->cpu) &&
         copy_text(c, &c->options.dump_text, o->dump) &&
         copy_text(c, &c->options.compiler_name, o->compiler) &&
         disk_cache_open(&c->disk, o->cache_dir, log_disk_warning, c, &c->mem) &&
         tuned_store_open(&c->tuned, o->tuned, c->disk, log_tuned, c, &c->mem);
}

/** Enters the registry of a cache of the caller's. */
static tn_status enter_cache(tn_context *c, const tn_open_desc *o, diag *d) {
  if (o->allocator.alloc || o->workers.run || o->memory_limit)
    return diag_set(d, TN_ERR_ARGUMENT,
                    "a context with a kernel cache of the caller's has the library's allocator and "
                    "workers, and no limit on memory");
  tn_status s = caller_cache_enter(o->kernel_cache, o->threads, &c->registry, d);
  if (s == TN_OK) c->devices.cache = o->kernel_cache;
  return s;
}

/** Opens the device registry: the shared one, that of a cache of the caller's, or one of the
    context's own if the context has its own memory or threads. */
static tn_status open_registry(tn_context *c, const tn_open_desc *o, diag *d) {
  if (o->kernel_cache) return enter_cache(c, o, d);
  bool is_own = c->devices.owns_registry =
      o->allocator.alloc || o->workers.run || o->threads || o->memory_limit;
  const registry_desc own = {.mem = &c->mem, .threads = c->options.threads, .workers = c->workers};
  tn_status s = is_own ? registry_open(&c->registry, &own, d) : registry_global(&c->registry, d);
  return s == TN_OK && !kernel_cache_of(c->registry) ? TN_ERR_MEMORY : s;
}

/** Loads the backends of a list of paths. */
static tn_status load_backends(tn_context *c, const char *paths, diag *d) {
  tn_status s = TN_OK;
  for (const char *at = paths; at && *at && s == TN_OK;) {
    size_t n = strcspn(at, ":");
    char path[4096];
    if (n >= sizeof path) return diag_set(d, TN_ERR_ARGUMENT, "the path of a backend is too long");
    memcpy(path, at, n);
    path[n] = 0;
    if (n) s = load_backend(c->registry, path, d);
    at += n + (at[n] == ':');
  }
  return s;
}

/** Decides which devices' libraries kernels may be calls of. One of the context's device that is
    asked for is opened now, so that its absence is said. */
static tn_status choose_libraries(tn_context *c, const char *option, diag *d) {
  const tn_product_library *l = c->device->backend->products;
  tn_failure why = {0};
  bool is_on = option && !strcmp(option, "on");
  if (option && !is_on && strcmp(option, "off") != 0)
    return diag_set(d, TN_ERR_ARGUMENT, "vendor (TENON_VENDOR) is \"%.100s\", not on or off",
                    option);
  c->options.libraries = is_on ? LIBRARIES_ON : option ? LIBRARIES_OFF : LIBRARIES_USUAL;
  if (is_on && !l)
    context_log(c, TN_LOG_WARNING, "%s has no library of products", c->device->name);
  else if (is_on && failure_complete(&why, l->open(c->device->state, &why)) != TN_OK)
    context_log(c, TN_LOG_WARNING, "products are not computed by a library: %s", why.text);
  return TN_OK;
}

static tn_status open_device(tn_context *c, const tn_open_desc *o, const option_origins *from,
                             diag *d) {
  tn_status s = dump_parse_option(&c->reports.dump, c->options.dump_text, d);
  if (s == TN_OK) s = open_registry(c, o, d);
  if (s == TN_OK) s = load_backends(c, o->backends, d);
  if (s == TN_OK) s = registry_open_device(c->registry, c->options.device_name, &c->device, d);
  const device_target_desc target = {.pair = c->options.pair,
                                     .limit = c->options.cpu,
                                     .compiler = o->compiler,
                                     .pair_from = from->pair,
                                     .limit_from = from->cpu};
  if (s == TN_OK) s = target_rows_choose(c->device, &target, c->disk, &c->target, d);
  if (s == TN_OK) s = choose_libraries(c, o->vendor, d);
  const tn_open_desc init = TN_OPEN_DESC_INIT;
  if (s == TN_OK && (c->devices.owns_registry || o->cached_bytes != init.cached_bytes))
    caching_allocator_set_budget(c->device->allocator, o->cached_bytes);
  return s;
}

static tn_context *new_context(const tn_open_desc *o) {
  mem m = mem_system;
  if (o->allocator.alloc) m = (mem){o->allocator.alloc, o->allocator.release, o->allocator.user};
  tn_context *c = mem_calloc(&m, 1, sizeof *c);
  if (!c) return NULL;
  c->mem = m;
  reentrancy_init(&c->entry.visits);
  callbacks_install(c, o); /* it owns the payloads from here on */
  if (o->memory_limit) c->mem = memory_limit_begin(&c->limit, c->mem, o->memory_limit, sizeof *c);
  c->failures.no_memory = (failure){.count = 1, .status = TN_ERR_MEMORY, .text = "out of memory"};
  c->failures.busy =
      (failure){.count = 1,
                .status = TN_ERR_BUSY,
                .text = "the context was in another call when this was built: it is used "
                        "by one thread at a time, and not from its callbacks"};
  c->scopes.innermost = c->scopes.floor.innermost = &c->scopes.root;
  c->states.pending_end = &c->states.pending;
  c->options.threads = o->threads;
  c->options.compile_seconds = o->compile_seconds;
  c->math = o->math;
  atomic_init(&c->entry.n_concurrent, 0);
  atomic_init(&c->handles.deferred, NULL);
  c->handles.release_deferred = scope_release_deferred;
  context_lock_init(&c->entry.lock);
  mutex_init(&c->lock);
  mutex_init(&c->reports.lock);
  arena_init(&c->arena, &c->mem, &c->diag);
  return c;
}

/** Destroys the payloads of a descriptor, for which no context was opened. */
static void destroy_payloads(const tn_open_desc *o) {
  if (o->progress.destroy) o->progress.destroy(o->progress.user);
  if (o->logger.destroy) o->logger.destroy(o->logger.user);
  if (o->tracer.destroy) o->tracer.destroy(o->tracer.user);
  if (o->workers.destroy) o->workers.destroy(o->workers.user);
  if (o->allocator.destroy) o->allocator.destroy(o->allocator.user);
}

/* ---- Closing ---- */

static void free_options(tn_context *c) {
  char *const all[] = {c->options.device_name, c->options.pair,          c->options.cpu,
                       c->options.dump_text,   c->options.compiler_name, c->failures.label};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) mem_strfree(&c->mem, all[i]);
}

/** Frees the queues, the descriptions of devices and the registry. */
static void close_devices(tn_context *c) {
  queue_pool_close(&c->queues);
  while (c->devices.described) {
    device_description *k = c->devices.described;
    c->devices.described = k->next;
    registry_free_description(c->registry, k);
  }
  registry *own = c->devices.owns_registry ? c->registry : NULL;
  c->registry = NULL;
  registry_close(own);
  caller_cache_leave(c->devices.cache);
}

/** Frees what the context built: attached objects, plans, tensors and the graph. */
static void free_objects(tn_context *c) {
  while (c->attachments) {
    attachment *a = c->attachments;
    context_detach(c, a);
    a->destroy(a);
  }
  plan_free_all(c);
  if (!c->ir) return;
  executable_cache_free(c);
  scope_free_all(c);
  ir_release_unheld(c->ir);
  ir_observe(c->ir, NULL);
  graph_input_free_all(c);
  dims_free(c);
  ir_free(c->ir);
}

static void context_destroy(tn_context *c) {
  reentrancy_entry closing;
  reentrancy_enter(&closing, &c->entry.visits, REENTRANCY_CALLBACK);
  c->entry.is_closing = true;
  free_objects(c);
  arena_free(&c->arena);
  close_devices(c);
  tuned_store_close(c->tuned);
  disk_cache_close(c->disk);
  free_options(c);
  failure_release(c, c->failures.of_open);
  failure_release(c, c->failures.last);
  mutex_free(&c->reports.lock);
  context_lock_free(&c->entry.lock);
  const callbacks given = c->callbacks;
  callbacks_destroy_payload(c, given.progress.destroy, given.progress.user);
  callbacks_destroy_payload(c, given.logger.destroy, given.logger.user);
  callbacks_destroy_payload(c, given.tracer.destroy, given.tracer.user);
  callbacks_destroy_payload(c, given.workers.destroy, given.workers.user);
  handle_free_dead(c);
  mem m = c->mem;
  mem_free(&m, c->handles.no_memory, sizeof *c->handles.no_memory);
  mem_free(&m, c->handles.busy, sizeof *c->handles.busy);
  context_free_messages(c);
  reentrancy_leave(&closing);
  mutex_free(&c->lock);
  reentrancy_free(&c->entry.visits);
  mem_free(&m, c, sizeof *c);
  if (given.allocator.destroy) given.allocator.destroy(given.allocator.user);
}

/* ---- Opening ---- */

static tn_context *open_context(const tn_open_desc *o, const option_origins *from, diag *d) {
  tn_context *c = new_context(o);
  if (!c) {
    destroy_payloads(o);
    return NULL;
  }
  tn_status s = init_parts(c, o) ? d->status : TN_ERR_MEMORY;
  if (s == TN_OK) s = open_device(c, o, from, d);
  if (s == TN_ERR_MEMORY) {
    context_destroy(c);
    return NULL;
  }
  if (s != TN_OK) {
    diag_set(&c->diag, d->status, "%s", d->text);
    context_fail_call(c, "open");
    c->failures.of_open = context_last_failure(c);
  } else {
    context_log(c, TN_LOG_INFO, "device %s, %s/%s for %s%s", c->device->name,
                c->target->renderer->name, c->target->compiler->name, c->target->caps.target,
                c->target->stated_identity ? ", as the cache has them" : "");
  }
  return c;
}

tn_context *tn_open(const tn_open_desc *desc) {
  diag d = {0};
  tn_open_desc o = TN_OPEN_DESC_INIT;
  descriptor_read(&d, &o, desc, sizeof o, "tn_open_desc");
  if (!o.allocator.alloc) o.allocator = (tn_allocator){0}; /* absent, like those below */
  if (!o.workers.run) o.workers = (tn_workers){0};
  if (!o.logger.log) o.logger = (tn_logger){0};
  if (!o.progress.step) o.progress = (tn_progress){0};
  if (!o.tracer.span) o.tracer = (tn_tracer){0};
  if (o.allocator.alloc && !o.allocator.release) {
    diag_set(&d, TN_ERR_ARGUMENT, "an allocator needs both alloc and release");
    destroy_payloads(&(tn_open_desc){.allocator = o.allocator});
    o.allocator = (tn_allocator){0};
  }
  const option_origins from = read_environment(&o, &d);
  if (o.kernel_cache) o.cache_dir = caller_cache_folder(o.kernel_cache);
  if (o.threads < 0 || o.threads > THREAD_POOL_MAX)
    diag_set(&d, TN_ERR_ARGUMENT, "the number of threads is %d, not 0 to %d", (int)o.threads,
             THREAD_POOL_MAX);
  if (!(o.compile_seconds >= 0 && o.compile_seconds <= 1e9))
    diag_set(&d, TN_ERR_ARGUMENT, "the time to compile is %g seconds; it is from 0 to 1e9",
             o.compile_seconds);
  if ((uint32_t)o.math > TN_MATH_FAST)
    diag_set(&d, TN_ERR_ARGUMENT, "the math mode is %d, which is not one of tn_math", (int)o.math);
  return open_context(&o, &from, &d);
}

tn_status tn_close(tn_context *c) {
  if (!c) return TN_OK;
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  if (atomic_load(&c->entry.n_concurrent) || atomic_load(&c->entry.n_loop_bodies) ||
      atomic_load(&c->entry.n_branches) || plan_any_runs(c)) {
    context_release(c);
    return TN_ERR_BUSY;
  }
  reentrancy_leave(&c->entry.holder);
  context_destroy(c);
  return TN_OK;
}
