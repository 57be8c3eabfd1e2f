/* Devices, as the context knows them. */
#include "device/device.h"

#include "device/failure.h"
#include "tensor/context.h"

#include <tenon/device.h>
#include <tenon/unstable/backend.h>

tn_status tn_device_get(tn_context *c, size_t i, tn_device_info *info) {
  if (!info) return TN_ERR_ARGUMENT;
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  tn_device_info found = {.size = sizeof found};
  diag_clear(&c->diag);
  if (info->size != sizeof found) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "tn_device_info is of another version");
    s = context_fail(c, "device_get", NULL, 0);
  } else if (!c->table) {
    s = context_repeat(c, c->broken);
  } else {
    s = table_info(c->table, i, &found, &c->diag);
    if (s == TN_OK) *info = found;
    if (s != TN_OK && c->diag.status != TN_OK) context_fail(c, "device_get", NULL, 0);
  }
  context_leave(c);
  return s;
}

tn_status tn_device_open(tn_context *c, const char *name, tn_device **device, tn_failure *failure) {
  if (device) *device = NULL;
  if (!c || !device) return tn_fail(failure, TN_ERR_ARGUMENT, "a context or a result is missing");
  if (!c->table) return tn_fail(failure, c->broken->status, "%s", c->broken->text);
  diag d = {0};
  table_device(c->table, name ? name : c->device_name, device, &d);
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
