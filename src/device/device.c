#include "device/device.h"

#include "device/cache.h"
#include "device/failure.h"

#include <stdio.h>
#include <string.h>

/* Opening. */

static tn_status open_state(tn_device *v, diag *d) {
  tn_failure f;
  failure_clear(&f);
  tn_status status = v->backend->open(v->index, &v->host, &v->state, &f);
  if (status) {
    failure_tell(d, status, &f);
    diag_prefix(d, "device %s", v->name);
  }
  return status;
}

static void free_device(tn_device *v) {
  size_t pairs = v->backend->n_pairs;
  mem_free(v->mem, v->compilers, pairs * sizeof *v->compilers);
  mem_free(v->mem, v->compiler_open, pairs * sizeof *v->compiler_open);
  mem_free(v->mem, v, sizeof *v);
}

tn_status device_open(tn_device **device, table *t, const tn_backend *b, int32_t index,
                      const tn_host *host, diag *d) {
  *device = NULL;
  const mem *m = table_mem(t);
  tn_device *v = mem_calloc(m, 1, sizeof *v);
  if (!v) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  v->table = t, v->mem = m, v->backend = b, v->host = *host, v->index = index;
  snprintf(v->name, sizeof v->name, "%s:%d", b->name, (int)index);
  v->compilers = mem_calloc(m, b->n_pairs, sizeof *v->compilers);
  v->compiler_open = mem_calloc(m, b->n_pairs, sizeof *v->compiler_open);
  bool complete = v->compilers && v->compiler_open;
  tn_status status = complete ? open_state(v, d) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (status) {
    free_device(v);
    return status;
  }
  blocks_init(&v->blocks, m, b, v->state);
  mutex_init(&v->lock);
  *device = v;
  return TN_OK;
}

static void free_target(device_target *t) {
  mem_strfree(t->device->mem, t->limit);
  mem_free(t->device->mem, t, sizeof *t);
}

void device_close(tn_device *v) {
  cache_forget(table_kernels(v->table), v);
  for (device_target *t = v->targets, *next; t; t = next) {
    next = t->next;
    free_target(t);
  }
  for (size_t i = 0; i < v->backend->n_pairs; i++) {
    const tn_compiler *c = v->backend->pairs[i].compiler;
    if (v->compiler_open[i] && c->close) c->close(v->compilers[i]);
  }
  blocks_free(&v->blocks);
  v->backend->close(v->state);
  mutex_free(&v->lock);
  free_device(v);
}

/* Targets. */

/** The pair of a name, "RENDERER/COMPILER". */
static tn_status find_pair(const tn_device *v, const char *name, size_t *pair, diag *d) {
  char known[256] = "";
  for (size_t i = 0; i < v->backend->n_pairs; i++) {
    const tn_pair *p = &v->backend->pairs[i];
    char text[128];
    snprintf(text, sizeof text, "%s/%s", p->renderer->name, p->compiler->name);
    *pair = i;
    if (!name || !strcmp(name, text)) return TN_OK;
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", text);
  }
  if (!name) return diag_set(d, TN_ERR_UNSUPPORTED, "device %s compiles nothing", v->name);
  return diag_set(d, TN_ERR_ARGUMENT,
                  "device %s has no renderer and compiler of the name \"%s\"; it has %s", v->name,
                  name, *known ? known : "none");
}

/** The capabilities as code generation wants them. */
static tn_status set_target(device_target *t, diag *d) {
  const tn_capabilities *c = &t->caps;
  t->target = (target){.vector_bytes = (uint16_t)c->vector_bytes,
                       .threads = c->threads,
                       .index32 = c->index32,
                       .arguments = (uint16_t)c->max_buffers};
  t->target.rules.f16 = c->dtypes >> TN_F16 & 1;
  t->target.rules.bf16 = c->dtypes >> TN_BF16 & 1;
  for (const char *const *name = c->lacks; name && *name; name++) {
    op o = op_find(*name, strlen(*name));
    if (o == OP_LIMIT)
      return diag_set(d, TN_ERR_DEVICE, "renderer %s lacks op \"%s\", which there is not",
                      t->renderer->name, *name);
    target_lack(&t->target.rules, o);
  }
  if (c->vector_bytes > UINT16_MAX || c->max_buffers > UINT16_MAX || !c->target[0])
    return diag_set(d, TN_ERR_DEVICE, "renderer %s states impossible capabilities",
                    t->renderer->name);
  return TN_OK;
}

static tn_status describe(device_target *t, const char *limit, diag *d) {
  tn_failure f;
  failure_clear(&f);
  t->caps = (tn_capabilities){.size = sizeof t->caps};
  tn_status status = t->renderer->describe(t->device->state, limit, &t->caps, &f);
  if (status) return failure_tell(d, status, &f);
  t->caps.target[sizeof t->caps.target - 1] = 0;
  return set_target(t, d);
}

static tn_status new_target(tn_device *v, size_t pair, const char *limit, device_target **out,
                            diag *d) {
  *out = NULL;
  device_target *t = mem_calloc(v->mem, 1, sizeof *t);
  if (!t) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  t->device = v;
  t->pair = pair;
  t->renderer = v->backend->pairs[pair].renderer;
  t->compiler = v->backend->pairs[pair].compiler;
  t->limit = mem_strdup(v->mem, limit ? limit : "");
  tn_status status = t->limit ? describe(t, limit, d) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (status)
    free_target(t);
  else
    *out = t;
  return status;
}

tn_status device_target_get(tn_device *v, const char *pair, const char *limit,
                            const device_target **out, diag *d) {
  *out = NULL;
  size_t number;
  tn_status status = find_pair(v, pair, &number, d);
  if (status) return status;
  mutex_lock(&v->lock);
  device_target *t = v->targets;
  while (t && (t->pair != number || strcmp(t->limit, limit ? limit : ""))) t = t->next;
  if (!t) {
    status = new_target(v, number, limit, &t, d);
    if (t) {
      t->next = v->targets;
      v->targets = t;
    }
  }
  mutex_unlock(&v->lock);
  *out = t;
  return status;
}

tn_status device_compiler(const device_target *t, void **compiler, diag *d) {
  tn_device *v = t->device;
  tn_failure f;
  failure_clear(&f);
  tn_status status = TN_OK;
  mutex_lock(&v->lock);
  if (!v->compiler_open[t->pair] && t->compiler->open)
    status = t->compiler->open(v->state, &v->host, &v->compilers[t->pair], &f);
  if (!status) v->compiler_open[t->pair] = true;
  *compiler = v->compilers[t->pair];
  mutex_unlock(&v->lock);
  return failure_tell(d, status, &f);
}

void *device_host_pointer(const tn_span *s) {
  const tn_backend *b = s->device->backend;
  char *at = b->host ? b->host(s->device->state, s->memory) : NULL;
  return at ? at + s->offset : NULL;
}
