/* Implements the lists of compilation targets and compilers of a device. A target is found by its
   description, or described by its renderer and added; targets of one renderer/compiler pair and
   compiler name share the compiler. */
#include "device/core/device_target.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void free_target(device_target *t) {
  mem_strfree(t->device->mem, t->limit);
  mem_strfree(t->device->mem, t->identity);
  mem_strfree(t->device->mem, t->previous_identity);
  mem_strfree(t->device->mem, (char *)t->stated_identity);
  mem_free(t->device->mem, t, sizeof *t);
}

static void free_compiler(tn_device *v, device_compiler *k) {
  const tn_compiler *c = v->backend->pairs[k->pair].compiler;
  if (k->is_open && c->close) c->close(k->handle);
  mem_strfree(v->mem, k->name);
  mutex_free(&k->lock);
  mem_free(v->mem, k, sizeof *k);
}

void device_targets_free(tn_device *v) {
  for (device_target *t = v->targets, *next; t; t = next) {
    next = t->next;
    free_target(t);
  }
  for (device_compiler *k = v->compilers, *next; k; k = next) {
    next = k->next;
    free_compiler(v, k);
  }
}

/* Finding. */

static bool is_same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

/** Copies a text that may be NULL; false without memory. */
static bool copy_text(const mem *m, const char *text, char **copy) {
  *copy = text ? mem_strdup(m, text) : NULL;
  return *copy || !text;
}

tn_status device_target_check_pair(const tn_device *v, size_t pair, const char *compiler, diag *d) {
  const tn_pair *p = &v->backend->pairs[pair];
  diag_clear(d);
  return p->present ? diag_complete(d, p->present(v->state, compiler, &d->failure)) : TN_OK;
}

/** Finds the first pair that is present; if none is, the first, whose compiler then tells why. */
static tn_status find_present_pair(const tn_device *v, const char *compiler, size_t *pair,
                                   diag *d) {
  size_t n = v->backend->n_pairs;
  *pair = 0;
  if (!n) return diag_set(d, TN_ERR_UNSUPPORTED, "device %s has no compiler", v->name);
  while (*pair < n && device_target_check_pair(v, *pair, compiler, d)) ++*pair;
  if (*pair == n) *pair = 0;
  diag_clear(d);
  return TN_OK;
}

/** Finds the pair of a name, "RENDERER/COMPILER". */
static tn_status find_pair(const tn_device *v, const char *name, size_t *pair, diag *d) {
  char known[256] = "";
  for (size_t i = 0; i < v->backend->n_pairs; i++) {
    const tn_pair *p = &v->backend->pairs[i];
    char text[128];
    snprintf(text, sizeof text, "%s/%s", p->renderer->name, p->compiler->name);
    *pair = i;
    if (!strcmp(name, text)) return TN_OK;
    size_t n = strlen(known);
    snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", text);
  }
  return diag_set(d, TN_ERR_ARGUMENT,
                  "device %s has no renderer/compiler pair \"%s\"; available: %s", v->name, name,
                  *known ? known : "none");
}

/** Refuses capabilities that contradict themselves, or that code generation cannot hold. */
static tn_status check_capabilities(const device_target *t, diag *d) {
  const tn_capabilities *c = &t->caps;
  const struct {
    bool is_met;
    const char *field;
    uint64_t value;
    const char *rule;
  } rules[] = {
      {c->dtypes != 0, "dtypes", 0, "it must have the bit of at least one type"},
      {!(c->vector_bytes & (c->vector_bytes - 1)), "vector_bytes", c->vector_bytes,
       "it must be a power of 2, or 0"},
      {c->vector_bytes <= UINT16_MAX, "vector_bytes", c->vector_bytes, "it may be at most 65535"},
      {c->registers <= UINT16_MAX, "registers", c->registers, "it may be at most 65535"},
      {c->max_buffers <= UINT16_MAX, "max_buffers", c->max_buffers, "it may be at most 65535"},
      {c->max_lanes <= UINT16_MAX, "max_lanes", c->max_lanes, "it may be at most 65535"},
      {c->copy_bytes <= UINT16_MAX, "copy_bytes", c->copy_bytes, "it may be at most 65535"},
      {!c->team_workers || c->group_bytes, "group_bytes", 0,
       "it must be positive where team_workers is"},
  };
  if (!c->target[0])
    return diag_set(d, TN_ERR_DEVICE, "renderer %s gives its target no name", t->renderer->name);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!rules[i].is_met)
      return diag_set(d, TN_ERR_DEVICE, "renderer %s states %s as %" PRIu64 "; %s",
                      t->renderer->name, rules[i].field, rules[i].value, rules[i].rule);
  return TN_OK;
}

/** Copies the capabilities to the form of code generation. */
static tn_status set_target(device_target *t, diag *d) {
  const tn_capabilities *c = &t->caps;
  t->target = (target){.vector_bytes = (uint16_t)c->vector_bytes,
                       .registers = (uint16_t)c->registers,
                       .threads = c->threads,
                       .index32 = c->index32,
                       .arguments = (uint16_t)c->max_buffers,
                       .scratch = c->max_scratch,
                       .team_workers = c->team_workers,
                       .warp = c->warp,
                       .group_bytes = c->group_bytes,
                       .hardware = c->hardware,
                       .lanes = (uint16_t)c->max_lanes,
                       .copy_bytes = (uint16_t)c->copy_bytes};
  t->target.rules.f16 = c->dtypes >> TN_F16 & 1;
  t->target.rules.bf16 = c->dtypes >> TN_BF16 & 1;
  t->target.rules.f16_casts = c->f16_casts;
  for (const char *const *name = c->lacks; name && *name; name++) {
    op o = op_from_name(*name, strlen(*name));
    if (o == OP_LIMIT)
      return diag_set(d, TN_ERR_DEVICE, "renderer %s lists unknown op \"%s\" as missing",
                      t->renderer->name, *name);
    rule_target_add_missing_op(&t->target.rules, o);
  }
  return TN_OK;
}

static tn_status describe_target(device_target *t, const char *limit, diag *d) {
  diag_clear(d);
  t->caps = (tn_capabilities){.size = sizeof t->caps};
  if (diag_complete(d, t->renderer->describe(t->device->state, limit, &t->caps, &d->failure)))
    return d->status;
  t->caps.target[sizeof t->caps.target - 1] = 0;
  tn_status status = check_capabilities(t, d);
  return status ? status : set_target(t, d);
}

/** The compiler of a pair and name, added to the list if it is not there. Under the lock. NULL
    without memory. */
static device_compiler *get_compiler(tn_device *v, size_t pair, const char *name) {
  device_compiler *k = v->compilers;
  while (k && (k->pair != pair || !is_same_text(k->name, name))) k = k->next;
  if (k || !(k = mem_calloc(v->mem, 1, sizeof *k))) return k;
  k->pair = pair;
  mutex_init(&k->lock);
  if (!copy_text(v->mem, name, &k->name)) {
    free_compiler(v, k);
    return NULL;
  }
  k->next = v->compilers;
  return v->compilers = k;
}

/** Names the environment variable that an option with a mistake came from, if it did. */
static tn_status name_variable(diag *d, const char *variable) {
  return variable && d->status == TN_ERR_ARGUMENT ? diag_prefix(d, "%s", variable) : d->status;
}

/** Takes the identity of a description; false without memory. */
static bool state_facts(device_target *t, const device_target_desc *desc) {
  const mem *m = t->device->mem;
  char *stated;
  bool copied = copy_text(m, desc->identity, &stated);
  t->stated_identity = stated;
  t->is_identity_from_disk = desc->identity != NULL;
  t->is_imported = desc->is_imported;
  return copy_text(m, desc->identity, &t->identity) && copied;
}

static bool is_same_hardware(const tn_hardware *a, const tn_hardware *b) {
  if (!a || !b) return a == b;
  return a->l1_bytes == b->l1_bytes && a->l2_bytes == b->l2_bytes && a->l3_bytes == b->l3_bytes &&
         a->l3_cores == b->l3_cores && a->line_bytes == b->line_bytes &&
         a->page_bytes == b->page_bytes && a->cores == b->cores;
}

static tn_status new_target(tn_device *v, size_t pair, const device_target_desc *desc,
                            device_target **out, diag *d) {
  *out = NULL;
  device_target *t = mem_calloc(v->mem, 1, sizeof *t);
  if (!t) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  t->device = v;
  t->pair = pair;
  t->renderer = v->backend->pairs[pair].renderer;
  t->compiler = v->backend->pairs[pair].compiler;
  t->opened = get_compiler(v, pair, desc->compiler);
  t->alternative = desc->alternative;
  bool complete = copy_text(v->mem, desc->limit, &t->limit) && t->opened && state_facts(t, desc);
  tn_status status =
      complete ? describe_target(t, desc->limit, d) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (!status && desc->hardware) {
    t->target.hardware = t->caps.hardware = *desc->hardware;
    t->hardware = &t->target.hardware;
  }
  if (status) name_variable(d, desc->limit_from);
  if (status)
    free_target(t);
  else
    *out = t;
  return status;
}

static bool has_desc(const device_target *t, size_t pair, const device_target_desc *desc) {
  return t->pair == pair && is_same_text(t->limit, desc->limit) &&
         is_same_text(t->opened->name, desc->compiler) &&
         is_same_hardware(t->hardware, desc->hardware) &&
         is_same_text(t->stated_identity, desc->identity) && t->is_imported == desc->is_imported &&
         t->alternative == desc->alternative;
}

tn_status device_target_find(tn_device *v, const device_target_desc *desc,
                             const device_target **out, diag *d) {
  static const device_target_desc all_open = {0};
  if (!desc) desc = &all_open;
  *out = NULL;
  size_t pair;
  tn_status status = desc->pair ? find_pair(v, desc->pair, &pair, d)
                                : find_present_pair(v, desc->compiler, &pair, d);
  if (status) return name_variable(d, desc->pair_from);
  mutex_lock(&v->lock);
  device_target *t = v->targets;
  while (t && !has_desc(t, pair, desc)) t = t->next;
  if (!t) {
    status = new_target(v, pair, desc, &t, d);
    if (t) {
      t->next = v->targets;
      v->targets = t;
    }
  }
  mutex_unlock(&v->lock);
  *out = t;
  return status;
}

tn_status device_target_open_compiler(const device_target *t, void **compiler, diag *d) {
  tn_device *v = t->device;
  device_compiler *k = t->opened;
  tn_status status = TN_OK;
  diag_clear(d);
  mutex_lock(&k->lock);
  if (!k->is_open && t->compiler->open)
    status = t->compiler->open(v->state, &v->host, k->name, &k->handle, &d->failure);
  if (!status) k->is_open = true;
  *compiler = k->handle;
  mutex_unlock(&k->lock);
  return diag_complete(d, status);
}
