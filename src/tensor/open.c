/* Opening a context. */
#include "tensor/open.h"

#include "device/pool.h"
#include "tensor/desc.h"
#include "tensor/handle.h"
#include "tensor/leaf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong with a descriptor is found out in this order, and the first of it kept. */
static void refuse(tn_context *c, const diag *d) {
  if (c->broken) return;
  diag_set(&c->diag, d->status, "%s", d->text);
  context_fail(c, "open", NULL, 0);
  c->broken = context_failure(c);
}

/* The environment. */

static const char *variable(const tn_open_desc *o, const char *given, const char *name) {
  const char *v = !given && o->environment ? getenv(name) : NULL;
  return v && *v ? v : given;
}

static void read_threads(tn_open_desc *o, diag *d) {
  const char *v = o->environment && !o->threads ? getenv("TENON_THREADS") : NULL;
  if (!v || !*v) return;
  char *end;
  errno = 0;
  long n = strtol(v, &end, 10);
  if (*end || errno || n < 0 || n > POOL_MOST)
    diag_set(d, TN_ERR_ARGUMENT, "TENON_THREADS is \"%.100s\", not a number from 0 to %d", v,
             POOL_MOST);
  else
    o->threads = (int32_t)n;
}

static void read_math(tn_open_desc *o, diag *d) {
  static const struct {
    const char *name;
    tn_math math;
  } modes[] = {{"exact", TN_MATH_EXACT},
               {"contract", TN_MATH_CONTRACT},
               {"sum", TN_MATH_SUM},
               {"default", TN_MATH_DEFAULT},
               {"fast", TN_MATH_FAST}};
  const char *v = o->environment && o->math == TN_MATH_DEFAULT ? getenv("TENON_MATH") : NULL;
  if (!v || !*v) return;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(v, modes[i].name)) {
      o->math = modes[i].math;
      return;
    }
  diag_set(d, TN_ERR_ARGUMENT,
           "TENON_MATH is \"%.100s\", not one of exact, contract, sum, default and fast", v);
}

static void read_environment(tn_open_desc *o, diag *d) {
  o->device = variable(o, o->device, "TENON_DEVICE");
  o->cache_dir = variable(o, o->cache_dir, "TENON_CACHE");
  o->pair = variable(o, o->pair, "TENON_PAIR");
  o->cpu = variable(o, o->cpu, "TENON_CPU");
  o->dump = variable(o, o->dump, "TENON_DUMP");
  o->compiler = variable(o, o->compiler, "TENON_CC");
  o->compiler = variable(o, o->compiler, "CC");
  read_threads(o, d);
  read_math(o, d);
}

/* The parts of a context. */

static bool copy_text(tn_context *c, char **to, const char *from) {
  *to = from ? mem_strdup(&c->mem, from) : NULL;
  return !from || *to;
}

static void disk_remarks(void *user, const char *text) {
  context_log(user, TN_LOG_WARNING, "%s", text);
}

static bool make_parts(tn_context *c, const tn_open_desc *o) {
  c->ir = ir_new(&c->mem, &c->diag, true);
  c->nobody = mem_calloc(&c->mem, 1, sizeof *c->nobody);
  c->busy = mem_calloc(&c->mem, 1, sizeof *c->busy);
  if (!c->ir || !c->nobody || !c->busy) return false;
  *c->nobody = (tn_tensor){.life = HANDLE_LIVE, .context = c, .failure = &c->no_memory};
  *c->busy = (tn_tensor){.life = HANDLE_LIVE, .context = c, .failure = &c->was_busy};
  ir_watcher leaves = leaf_watcher(c);
  ir_watch(c->ir, &leaves);
  return copy_text(c, &c->device_name, o->device ? o->device : "CPU") &&
         copy_text(c, &c->pair, o->pair) && copy_text(c, &c->cpu, o->cpu) &&
         copy_text(c, &c->dump_text, o->dump) &&
         disk_open(&c->disk, o->cache_dir, disk_remarks, c, &c->mem);
}

static void check_numbers(const tn_open_desc *o, diag *d) {
  if (o->threads < 0 || o->threads > POOL_MOST)
    diag_set(d, TN_ERR_ARGUMENT, "the number of threads is %d, not 0 to %d", (int)o->threads,
             POOL_MOST);
  if ((uint32_t)o->math > TN_MATH_FAST)
    diag_set(d, TN_ERR_ARGUMENT, "there is no math mode %d", (int)o->math);
}

/** A table of its own is what a context's own memory and threads live in. */
static tn_status open_table(tn_context *c, const tn_open_desc *o, diag *d) {
  c->own_table = o->allocator.alloc || o->workers.run || o->threads;
  if (!c->own_table) return table_global(&c->table, d);
  return table_open(&c->table,
                    &(table_desc){.mem = &c->mem, .threads = c->threads, .workers = c->workers}, d);
}

static tn_status open_device(tn_context *c, const tn_open_desc *o, diag *d) {
  tn_status s = dump_parse(&c->dump, c->dump_text, d);
  if (s == TN_OK) s = open_table(c, o, d);
  if (s == TN_OK) s = table_device(c->table, c->device_name, &c->device, d);
  const target_desc target = {.pair = c->pair, .limit = c->cpu, .compiler = o->compiler};
  if (s == TN_OK) s = device_target_get(c->device, &target, &c->target, d);
  const tn_open_desc init = TN_OPEN_DESC_INIT;
  if (s == TN_OK && (c->own_table || o->cached_bytes != init.cached_bytes))
    blocks_set_budget(&c->device->blocks, o->cached_bytes);
  return s;
}

static tn_context *new_context(const tn_open_desc *o) {
  mem m = mem_system;
  if (o->allocator.alloc) m = (mem){o->allocator.alloc, o->allocator.release, o->allocator.user};
  tn_context *c = mem_calloc(&m, 1, sizeof *c);
  if (!c) return NULL;
  c->mem = m;
  visits_init(&c->visits);
  callbacks_take(c, o); /* payloads belong to it from here on */
  c->no_memory = (failure){.count = 1, .status = TN_ERR_MEMORY, .text = "out of memory"};
  c->was_busy = (failure){.count = 1,
                          .status = TN_ERR_BUSY,
                          .text = "the context was in another call when this was built: it is used "
                                  "by one thread at a time, and not from its callbacks"};
  c->scope = c->floor.innermost = &c->root;
  c->pending_end = &c->pending;
  c->threads = o->threads;
  c->math = o->math;
  atomic_init(&c->beside, 0);
  gate_init(&c->gate);
  mutex_init(&c->lock);
  mutex_init(&c->reports);
  arena_init(&c->arena, &c->mem, &c->diag);
  return c;
}

static void destroy_payloads(const tn_open_desc *o) {
  if (o->progress.destroy) o->progress.destroy(o->progress.user);
  if (o->logger.destroy) o->logger.destroy(o->logger.user);
  if (o->workers.destroy) o->workers.destroy(o->workers.user);
  if (o->allocator.destroy) o->allocator.destroy(o->allocator.user);
}

/** A struct whose first function is NULL is absent. */
static void drop_absent(tn_open_desc *o) {
  if (!o->allocator.alloc) o->allocator = (tn_allocator){0};
  if (!o->workers.run) o->workers = (tn_workers){0};
  if (!o->logger.log) o->logger = (tn_logger){0};
  if (!o->progress.step) o->progress = (tn_progress){0};
}

static tn_context *open_context(const tn_open_desc *o, diag *d) {
  tn_context *c = new_context(o);
  if (!c) {
    destroy_payloads(o);
    return NULL;
  }
  tn_status s = make_parts(c, o) ? d->status : TN_ERR_MEMORY;
  if (s == TN_OK) s = open_device(c, o, d);
  if (s == TN_ERR_MEMORY) {
    context_destroy(c);
    return NULL;
  }
  if (s != TN_OK)
    refuse(c, d);
  else
    context_log(c, TN_LOG_INFO, "device %s, %s/%s for %s", c->device->name,
                c->target->renderer->name, c->target->compiler->name, c->target->caps.target);
  return c;
}

tn_context *tn_open(const tn_open_desc *desc) {
  diag d = {0};
  tn_open_desc o = TN_OPEN_DESC_INIT;
  desc_read(&d, &o, desc, sizeof o, "tn_open_desc");
  drop_absent(&o);
  if (o.allocator.alloc && !o.allocator.release) {
    diag_set(&d, TN_ERR_ARGUMENT, "an allocator needs both alloc and release");
    destroy_payloads(&(tn_open_desc){.allocator = o.allocator});
    o.allocator = (tn_allocator){0};
  }
  read_environment(&o, &d);
  check_numbers(&o, &d);
  return open_context(&o, &d);
}
