/* Devices, as the context knows them. */
#include "device/device.h"

#include "device/failure.h"
#include "tensor/context.h"
#include "tensor/desc.h"

#include <string.h>
#include <tenon/device.h>
#include <tenon/unstable/backend.h>

static tn_status give_info(tn_context *c, tn_device_info *info, const device_facts *k) {
  const tn_device_info found = {sizeof found, k->name, k->about, k->absent, k->pairs, k->bytes};
  tn_status s = desc_give(&c->diag, info, &found, sizeof found, "tn_device_info");
  return s == TN_OK ? s : context_fail(c, "device_get", NULL, 0);
}

static bool is_of(const device_facts *k, const device_place *p) {
  return k->place.backend == p->backend && k->place.index == p->index;
}

static bool is_same(const device_facts *a, const device_facts *b) {
  return a->absent && b->absent && !strcmp(a->absent, b->absent) && !strcmp(a->about, b->about) &&
         !strcmp(a->pairs, b->pairs);
}

/** What is known of a device: one that is absent is asked after again. All that was told is kept,
   as its strings are. */
static tn_status find_out(tn_context *c, const device_place *p, const device_facts **out) {
  device_facts *k = c->told_of, *now;
  while (k && !is_of(k, p)) k = k->next;
  *out = k;
  if (k && !k->absent) return TN_OK;
  const char *compiler = c->target ? c->target->opened->name : NULL;
  tn_status s = table_ask(c->table, p, compiler, &now, &c->diag);
  if (s != TN_OK) return s;
  if (k && is_same(k, now)) {
    table_forget(c->table, now);
    return TN_OK;
  }
  now->next = c->told_of;
  *out = c->told_of = now;
  return TN_OK;
}

tn_status tn_device_get(tn_context *c, size_t i, tn_device_info *info) {
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  device_place place;
  const device_facts *k;
  diag_clear(&c->diag);
  if (!c->table) {
    s = context_repeat(c, c->broken);
  } else if (!table_place(c->table, i, &place)) {
    s = TN_ERR_ARGUMENT;
  } else if ((s = find_out(c, &place, &k)) == TN_OK) {
    s = give_info(c, info, k);
  } else {
    context_fail(c, "device_get", NULL, 0);
  }
  context_leave(c);
  return s;
}

tn_status tn_device_open(tn_context *c, const char *name, tn_device **device, tn_failure *failure) {
  if (device) *device = NULL;
  if (!c || !device) return tn_fail(failure, TN_ERR_ARGUMENT, "a context or a result is missing");
  if (!c->table) return tn_fail(failure, c->broken->status, "%s", c->broken->text);
  if (context_begin_beside(c, VISIT_NONE) != TN_OK)
    return tn_fail(failure, TN_ERR_BUSY, "a device is not opened in a callback of its context");
  diag d = {0};
  table_device(c->table, name ? name : c->device_name, device, &d);
  context_end_beside(c);
  return failure_take(failure, &d);
}

tn_status tn_backend_add(tn_context *c, const tn_backend *backend) {
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  if (!c->table)
    s = context_repeat(c, c->broken);
  else if ((s = table_add(c->table, backend, &c->diag)) != TN_OK)
    context_fail(c, "backend_add", NULL, 0);
  context_leave(c);
  return s;
}
