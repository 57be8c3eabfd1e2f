/* Devices of a context: listing, opening and adding backends. Descriptions stay until the context
   closes, as callers hold their strings. */
#include "device/registry/device_registry.h"

#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"

#include <string.h>
#include <tenon/device.h>
#include <tenon/unstable/backend.h>

static tn_status write_info(tn_context *c, tn_device_info *info, const device_description *k) {
  const tn_device_info found = {sizeof found, k->name, k->about, k->absent, k->pairs, k->bytes};
  tn_status s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_device_info");
  return s == TN_OK ? s : context_fail(c, "device_get", NULL, 0);
}

static bool describes_device(const device_description *k, const device_id *p) {
  return k->id.backend == p->backend && k->id.index == p->index;
}

static bool has_same_state(const device_description *a, const device_description *b) {
  return a->absent && b->absent && !strcmp(a->absent, b->absent) && !strcmp(a->about, b->about) &&
         !strcmp(a->pairs, b->pairs);
}

/** The description of a device: the known one unless it says that the device is absent, which is
    probed again. */
static tn_status describe_device(tn_context *c, const device_id *p,
                                 const device_description **out) {
  device_description *k = c->known_devices, *now;
  while (k && !describes_device(k, p)) k = k->next;
  *out = k;
  if (k && !k->absent) return TN_OK;
  const char *compiler = c->target ? c->target->opened->name : NULL;
  tn_status s = registry_probe(c->registry, p, compiler, &now, &c->diag);
  if (s != TN_OK) return s;
  if (k && has_same_state(k, now)) {
    registry_free_description(c->registry, now);
    return TN_OK;
  }
  now->next = c->known_devices;
  *out = c->known_devices = now;
  return TN_OK;
}

tn_status tn_device_get(tn_context *c, size_t i, tn_device_info *info) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  device_id place;
  const device_description *k;
  diag_clear(&c->diag);
  if (!c->registry) {
    s = context_report_again(c, c->broken);
  } else if (!registry_device_at(c->registry, i, &place)) {
    s = TN_ERR_ARGUMENT;
  } else if ((s = describe_device(c, &place, &k)) == TN_OK) {
    s = write_info(c, info, k);
  } else {
    context_fail(c, "device_get", NULL, 0);
  }
  context_release(c);
  return s;
}

tn_status tn_device_open(tn_context *c, const char *name, tn_device **device, tn_failure *failure) {
  if (device) *device = NULL;
  if (!c || !device) return tn_fail(failure, TN_ERR_ARGUMENT, "a context or a result is missing");
  if (!c->registry) return tn_fail(failure, c->broken->status, "%s", c->broken->text);
  if (context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK)
    return tn_fail(failure, TN_ERR_BUSY, "a device is not opened in a callback of its context");
  diag d = {0};
  tn_status s = registry_open_device(c->registry, name ? name : c->options.device_name, device, &d);
  context_end_concurrent(c);
  if (s != TN_OK && failure) *failure = d.failure;
  return s;
}

tn_status tn_backend_add(tn_context *c, const tn_backend *backend) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  if (!c->registry)
    s = context_report_again(c, c->broken);
  else if ((s = registry_add_backend(c->registry, backend, &c->diag)) != TN_OK)
    context_fail(c, "backend_add", NULL, 0);
  context_release(c);
  return s;
}
