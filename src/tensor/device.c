/* Devices, as the context knows them. */
#include "device/device.h"

#include "device/failure.h"
#include "tensor/context.h"
#include "tensor/desc.h"

#include <tenon/device.h>
#include <tenon/unstable/backend.h>

static tn_status give_info(tn_context *c, tn_device_info *info, const tn_device_info *found) {
  if (desc_give(info, found, sizeof *found, "tn_device_info")) return TN_OK;
  diag_set(&c->diag, TN_ERR_ARGUMENT, "tn_device_info.size is %zu, not %zu: begin with its INIT",
           info->size, sizeof *found);
  return context_fail(c, "device_get", NULL, 0);
}

tn_status tn_device_get(tn_context *c, size_t i, tn_device_info *info) {
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  tn_device_info found = {.size = sizeof found};
  const char *compiler = c->target ? c->target->opened->name : NULL;
  diag_clear(&c->diag);
  if (!c->table) {
    s = context_repeat(c, c->broken);
  } else if (!info) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the information is NULL");
    s = context_fail(c, "device_get", NULL, 0);
  } else if ((s = table_info(c->table, i, compiler, &found, &c->diag)) == TN_OK) {
    s = give_info(c, info, &found);
  } else if (c->diag.status != TN_OK) {
    context_fail(c, "device_get", NULL, 0);
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
