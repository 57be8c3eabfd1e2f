/* Public functions that describe a context's target, the host's processor and its compilers:
   tn_context_get, tn_processor_get and tn_compiler_get. Facts of the host are found on first use
   and kept with the context, as callers hold their strings. */
#include "base/arena.h"
#include "device/core/device.h"
#include "device/cpu/describe_processor.h"
#include "device/cpu/list_compilers.h"
#include "device/threads/thread_pool.h"
#include "target/hardware.h"
#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"

#include <tenon/device.h>

#include <string.h>

_Static_assert(TN_THREADS_MAX == (int)THREAD_POOL_MAX, "context.h states the limit of the pool");

typedef struct host_facts {
  attachment attachment; /* to its context */
  tn_context *context;
  processor processor;
  bool has_compilers;
  listed_compilers compilers; /* in the arena */
  arena arena;
} host_facts;

static void destroy_facts(attachment *of) {
  host_facts *f = (host_facts *)of;
  arena_free(&f->arena);
  mem_free(&f->context->mem, f, sizeof *f);
}

/** The facts of a context, those of the processor found; NULL without memory. */
static host_facts *facts_of(tn_context *c) {
  if (c->devices.host_facts) return c->devices.host_facts;
  host_facts *f = mem_calloc(&c->mem, 1, sizeof *f);
  if (!f) return NULL;
  *f = (host_facts){.attachment.destroy = destroy_facts,
                    .context = c,
                    .processor = processor_describe(c->options.cpu)};
  arena_init(&f->arena, &c->mem, &c->diag);
  context_attach(c, &f->attachment);
  return c->devices.host_facts = f;
}

static void list_compilers(void *arg) {
  host_facts *f = arg;
  const device_target *t = f->context->target;
  f->compilers = cc_list(f->context->options.compiler_name, t && !strcmp(t->compiler->name, "llvm"),
                         &f->arena);
  f->has_compilers = true;
}

/** Reports a failure in the context's diag. */
static tn_status report(tn_context *c, const char *op, tn_status s) {
  return s == TN_OK ? s : context_fail_call(c, op);
}

tn_status tn_context_get(tn_context *c, tn_context_info *info) {
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  const tn_context_info found = {.size = sizeof found,
                                 .device = c->device->name,
                                 .target = c->target->caps.target,
                                 .vector_bytes = c->target->caps.vector_bytes,
                                 .threads = c->device->host.threads,
                                 .computes = registry_device_computes(c->device)};
  s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_context_info");
  s = report(c, "context_get", s);
  context_release(c);
  return s;
}

tn_status tn_processor_get(tn_context *c, tn_processor_info *info) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  diag_clear(&c->diag);
  const host_facts *f = facts_of(c);
  if (f) {
    const processor *p = &f->processor;
    const tn_processor_info found = {.size = sizeof found,
                                     .name = p->name,
                                     .features = p->features,
                                     .level = p->level,
                                     .limit = c->options.cpu,
                                     .vector_bytes = p->vector_bytes,
                                     .cores = p->cores,
                                     .threads = p->logical_cores,
                                     .usable_cores = p->usable_cores,
                                     .l1_bytes = p->hardware.l1_bytes,
                                     .l2_bytes = p->hardware.l2_bytes,
                                     .l3_bytes = p->hardware.l3_bytes,
                                     .l3_cores = p->hardware.l3_cores,
                                     .line_bytes = p->hardware.line_bytes,
                                     .last_cache_bytes =
                                         (uint64_t)hardware_llc_bytes(&p->hardware)};
    s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_processor_info");
  } else {
    s = diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  }
  s = report(c, "processor_get", s);
  context_release(c);
  return s;
}

/** Describes compiler `i`; sets *is_past where there is none. */
static tn_status describe_compiler(tn_context *c, size_t i, tn_compiler_info *info, bool *is_past) {
  host_facts *f = facts_of(c);
  if (!f) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = f->has_compilers ? TN_OK : diag_catch(&c->diag, list_compilers, f);
  *is_past = s == TN_OK && i >= f->compilers.n;
  if (s != TN_OK || *is_past) return s;
  const listed_compiler *k = &f->compilers.at[i];
  const tn_compiler_info found = {sizeof found, k->path, k->version, k->is_used};
  return descriptor_write(&c->diag, info, &found, sizeof found, "tn_compiler_info");
}

tn_status tn_compiler_get(tn_context *c, size_t i, tn_compiler_info *info) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  bool is_past = false;
  diag_clear(&c->diag);
  s = report(c, "compiler_get", describe_compiler(c, i, info, &is_past));
  context_release(c);
  return s == TN_OK && is_past ? TN_ERR_ARGUMENT : s;
}
