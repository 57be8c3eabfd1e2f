/* Finds CUDA's devices, numbered as the driver numbers them, and asks for their facts. */
#include "device/cuda/cuda_device.h"

#include <string.h>

/** Starts the driver and counts the devices. */
static cuda_status count_devices(const cuda_api *cu, int *n, const char **call) {
  *call = "cuInit";
  cuda_status s = cu->Init(0);
  if (s) return s;
  *call = "cuDeviceGetCount";
  return cu->DeviceGetCount(n);
}

int32_t cuda_device_count(void) {
  diag unread;
  cuda_api cu;
  const char *call;
  int n = 0;
  if (cuda_api_open(&cu, &unread) || count_devices(&cu, &n, &call)) return 1;
  return n > 0 ? n : 1;
}

static cuda_status ask_facts(const cuda_api *cu, int32_t index, cuda_facts *k, int *is_unified) {
  cuda_status s = cu->DeviceGet(&k->ordinal, index);
  if (!s) s = cu->DeviceGetName(k->name, sizeof k->name, k->ordinal);
  if (!s) s = cu->DriverGetVersion(&k->driver);
  if (!s) s = cu->DeviceTotalMem_v2(&k->bytes, k->ordinal);
  const struct {
    int *value, what;
  } numbers[] = {{&k->major, CUDA_COMPUTE_CAPABILITY_MAJOR},
                 {&k->minor, CUDA_COMPUTE_CAPABILITY_MINOR},
                 {&k->group_bytes, CUDA_MAX_SHARED_MEMORY_PER_BLOCK},
                 {&k->workers, CUDA_MAX_THREADS_PER_BLOCK},
                 {&k->units, CUDA_MULTIPROCESSOR_COUNT},
                 {&k->cache_bytes, CUDA_L2_CACHE_SIZE},
                 {is_unified, CUDA_UNIFIED_ADDRESSING}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !s; i++)
    s = cu->DeviceGetAttribute(numbers[i].value, numbers[i].what, k->ordinal);
  k->name[sizeof k->name - 1] = 0;
  return s;
}

tn_status cuda_device_find(int32_t index, cuda_api *cu, cuda_facts *k, tn_failure *f) {
  enum { NO_DEVICE = 100 };
  char text[CUDA_STATUS_BYTES];
  const char *call;
  int n = 0, is_unified = 0;
  diag d = {0};
  *k = (cuda_facts){0};
  if (cuda_api_open(cu, &d)) return tn_fail(f, d.status, "%s", d.text);
  cuda_status s = count_devices(cu, &n, &call);
  if (s == NO_DEVICE || (!s && n <= 0))
    return tn_fail(f, TN_ERR_DEVICE, "the CUDA driver finds no device");
  if (s)
    return tn_fail(f, TN_ERR_DEVICE, "the CUDA driver does not start: %s fails with %s", call,
                   cuda_status_text(cu, s, text));
  if (index >= n)
    return tn_fail(f, TN_ERR_DEVICE,
                   n == 1 ? "there is CUDA:0 alone" : "there are CUDA:0 to CUDA:%d", n - 1);
  s = ask_facts(cu, index, k, &is_unified);
  if (s)
    return tn_fail(f, TN_ERR_DEVICE, "the CUDA driver tells nothing of device %d: %s", (int)index,
                   cuda_status_text(cu, s, text));
  return is_unified
             ? TN_OK
             : tn_fail(f, TN_ERR_DEVICE, "%s cannot be used: it has addresses of its own", k->name);
}
