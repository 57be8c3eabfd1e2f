/* Public functions on devices: tn_device_get lists them, tn_device_open opens one, tn_backend_add
   adds a backend. Descriptions stay until the context closes, as callers hold their strings. */
#include "device/registry/device_registry.h"
#include "device/registry/load_backend.h"

#include "tensor/api/to_device.h"
#include "tensor/context/context.h"
#include "tensor/context/descriptor.h"

#include <string.h>
#include <tenon/device.h>
#include <tenon/unstable/backend.h>

/** The description of a device. One that says that the device is absent is made anew, as a device
    may be plugged in. */
static tn_status describe_device(tn_context *c, const device_id *id,
                                 const device_description **out) {
  device_description *k = c->devices.described, *now;
  while (k && (k->id.backend != id->backend || k->id.index != id->index)) k = k->next;
  *out = k;
  if (k && !k->absent) return TN_OK;
  const char *compiler = c->target ? c->target->opened->name : NULL;
  tn_status s = registry_probe(c->registry, id, compiler, &now, &c->diag);
  if (s != TN_OK) return s;
  bool is_same = k && now->absent && !strcmp(k->absent, now->absent) &&
                 !strcmp(k->about, now->about) && !strcmp(k->pairs, now->pairs) &&
                 !strcmp(k->absent_pairs, now->absent_pairs) && !strcmp(k->library, now->library);
  if (is_same) {
    registry_free_description(c->registry, now);
    return TN_OK;
  }
  now->next = c->devices.described;
  *out = c->devices.described = now;
  return TN_OK;
}

/** True if a device without a compiler has kernels in the cache, which run. */
static bool runs_cached_kernels(tn_context *c, const device_description *k) {
  tn_device *device;
  const device_target *target;
  if (!k->absent || !*k->absent_pairs || !c->device)
    return false; /* it has one, or does not open */
  bool is_open = registry_open_device(c->registry, k->name, &device, &c->diag) == TN_OK &&
                 context_choose_target(c, device, &target) == TN_OK;
  diag_clear(&c->diag);
  return is_open && target->stated_identity;
}

static const char *queues_of(const tn_backend *b) {
  return b->streams ? "the device" : "threads of this process";
}

static const char *copies_of(const device_description *k) {
  const tn_backend *b = k->id.backend;
  if (b->import && b->streams)
    return "through staging memory; host memory is used in place where the device is the processor";
  if (b->import) return "host memory is used in place";
  if (k->is_addressed) return "directly, to memory that the host addresses";
  return b->peer ? "through staging memory, and directly between its devices"
                 : "through staging memory";
}

tn_status tn_device_get(tn_context *c, size_t i, tn_device_info *info) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  device_id id;
  const device_description *k;
  diag_clear(&c->diag);
  if (!c->registry) {
    s = context_report_again(c, c->failures.of_open);
  } else if (!registry_device_at(c->registry, i, &id)) {
    s = TN_ERR_ARGUMENT;
  } else {
    s = describe_device(c, &id, &k);
    if (s == TN_OK) {
      const tn_device_info found = {.size = sizeof found,
                                    .name = k->name,
                                    .about = k->about,
                                    .absent = runs_cached_kernels(c, k) ? NULL : k->absent,
                                    .pairs = k->pairs,
                                    .bytes = k->bytes,
                                    .absent_pairs = k->absent_pairs,
                                    .queues = queues_of(k->id.backend),
                                    .copies = copies_of(k),
                                    .library = k->library};
      s = descriptor_write(&c->diag, info, &found, sizeof found, "tn_device_info");
    }
    if (s != TN_OK) context_fail_call(c, "device_get");
  }
  context_release(c);
  return s;
}

tn_status tn_device_open(tn_context *c, const char *name, tn_device **device, tn_failure *failure) {
  if (device) *device = NULL;
  if (!c || !device)
    return tn_fail(failure, TN_ERR_ARGUMENT, "the context or the place for the device is NULL");
  if (!c->registry)
    return tn_fail(failure, c->failures.of_open->status, "%s", c->failures.of_open->text);
  if (context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK)
    return tn_fail(failure, TN_ERR_BUSY, "a device cannot be opened in a callback of its context");
  diag d = {0};
  tn_status s = registry_open_device(c->registry, name ? name : c->options.device_name, device, &d);
  context_end_concurrent(c);
  if (s != TN_OK && failure) *failure = d.failure;
  return s;
}

/** Registers a backend, or loads it from a path if it is NULL. */
static tn_status add_backend(tn_context *c, const tn_backend *backend, const char *path) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  if (!c->registry) {
    s = context_report_again(c, c->failures.of_open);
  } else {
    s = path ? load_backend(c->registry, path, &c->diag)
             : registry_add_backend(c->registry, backend, &c->diag);
    if (s != TN_OK) context_fail_call(c, path ? "backend_load" : "backend_add");
  }
  context_release(c);
  return s;
}

tn_status tn_backend_add(tn_context *c, const tn_backend *backend) {
  return add_backend(c, backend, NULL);
}

tn_status tn_backend_load(tn_context *c, const char *path) {
  return add_backend(c, NULL, path ? path : "");
}
