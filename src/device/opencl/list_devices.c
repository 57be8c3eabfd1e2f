/* Lists the devices of all OpenCL drivers, numbered in the order of the loader, and asks for their
   facts. Devices without a compiler, or older than OpenCL 1.2, are listed and refused. */
#include "device/opencl/opencl_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

/** Lists the devices of a platform at the end of a list. A platform without any, or one that
    fails, adds none. */
static size_t add_devices(const opencl_api *cl, cl_platform platform, cl_device devices[],
                          size_t n) {
  uint32_t found = 0, room = (uint32_t)(MOST_DEVICES - n);
  uint64_t types = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
  if (!room || cl->GetDeviceIDs(platform, types, room, devices + n, &found)) return n;
  return n + (found < room ? found : room);
}

/** A device by its number; otherwise how many there are, and in `status` what the loader said. */
static size_t list_devices(const opencl_api *cl, int32_t index, opencl_facts *k,
                           cl_status *status) {
  cl_platform platforms[MOST_PLATFORMS];
  cl_device devices[MOST_DEVICES];
  uint32_t n_platforms = 0;
  size_t n = 0;
  *status = cl->GetPlatformIDs(MOST_PLATFORMS, platforms, &n_platforms);
  if (*status) return 0;
  for (uint32_t i = 0; i < n_platforms && i < MOST_PLATFORMS; i++) {
    size_t first = n;
    n = add_devices(cl, platforms[i], devices, n);
    if (index < 0 || (size_t)index < first || (size_t)index >= n) continue;
    k->platform = platforms[i];
    k->id = devices[index];
  }
  return n;
}

int32_t opencl_device_count(void) {
  diag unread;
  cl_status status;
  opencl_api cl;
  opencl_facts none;
  size_t n = opencl_api_open(&cl, &unread) ? 0 : list_devices(&cl, -1, &none, &status);
  return n ? (int32_t)n : 1;
}

/* Facts. */

/** Reads a number of `bytes` bytes; 0 if the driver does not know. */
static void ask(const opencl_api *cl, const opencl_facts *k, uint32_t what, void *value,
                size_t bytes) {
  if (cl->GetDeviceInfo(k->id, what, bytes, value, NULL)) memset(value, 0, bytes);
}

#define ASK(what, field) ask(cl, k, what, &k->field, sizeof k->field)

/** Ends a text of the driver's, which may have been cut, and drops spaces around it. */
static void tidy(char *text, size_t bytes, cl_status status) {
  text[bytes - 1] = 0;
  if (status) text[0] = 0;
  size_t first = strspn(text, " "), n = strlen(text);
  while (n > first && text[n - 1] == ' ') n--;
  memmove(text, text + first, n - first);
  text[n - first] = 0;
}

/** Reads a text of any length, and keeps what fits. */
static void ask_text(const opencl_api *cl, const opencl_facts *k, uint32_t what, char *to,
                     size_t room) {
  char text[1024];
  memset(text, 0, sizeof text);
  bool is_platform = what == CL_PLATFORM_NAME;
  cl_status s = is_platform ? cl->GetPlatformInfo(k->platform, what, sizeof text, text, NULL)
                            : cl->GetDeviceInfo(k->id, what, sizeof text, text, NULL);
  tidy(text, sizeof text, s);
  snprintf(to, room, "%s", text);
}

static void ask_facts(const opencl_api *cl, opencl_facts *k) {
  char version[64]; /* "OpenCL 3.0 …" */
  size_t sizes[8] = {0};
  uint64_t rounding = 0, doubles = 0;
  uint32_t unified = 0;
  int major = 0, minor = 0;
  ask_text(cl, k, CL_DEVICE_NAME, k->name, sizeof k->name);
  ask_text(cl, k, CL_PLATFORM_NAME, k->platform_name, sizeof k->platform_name);
  ask_text(cl, k, CL_DRIVER_VERSION, k->driver, sizeof k->driver);
  ask_text(cl, k, CL_DEVICE_VERSION, version, sizeof version);
  if (sscanf(version, "OpenCL %d.%d", &major, &minor) == 2) k->version = 10 * major + minor;
  ASK(CL_DEVICE_TYPE, type);
  ASK(CL_DEVICE_GLOBAL_MEM_SIZE, bytes);
  ASK(CL_DEVICE_MAX_MEM_ALLOC_SIZE, buffer_bytes);
  ASK(CL_DEVICE_LOCAL_MEM_SIZE, group_bytes);
  ASK(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cache_bytes);
  ASK(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, line_bytes);
  ASK(CL_DEVICE_MAX_COMPUTE_UNITS, units);
  ASK(CL_DEVICE_MAX_WORK_GROUP_SIZE, workers);
  ASK(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, vector_floats);
  ASK(CL_DEVICE_MAX_PARAMETER_SIZE, parameter_bytes);
  ask(cl, k, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes);
  if (sizes[0] && sizes[0] < k->workers) k->workers = sizes[0];
  ask(cl, k, CL_DEVICE_SINGLE_FP_CONFIG, &rounding, sizeof rounding);
  ask(cl, k, CL_DEVICE_DOUBLE_FP_CONFIG, &doubles, sizeof doubles);
  ask(cl, k, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified, sizeof unified);
  k->has_subnormals = rounding & CL_FP_DENORM;
  k->is_rounded = rounding & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  k->has_double = doubles != 0;
  k->is_unified = unified != 0;
}

/** The reason why a device cannot be used; NULL if it can. */
static const char *find_fault(const opencl_api *cl, const opencl_facts *k) {
  uint32_t available = 0, compiles = 0, little = 0;
  ask(cl, k, CL_DEVICE_AVAILABLE, &available, sizeof available);
  ask(cl, k, CL_DEVICE_COMPILER_AVAILABLE, &compiles, sizeof compiles);
  ask(cl, k, CL_DEVICE_ENDIAN_LITTLE, &little, sizeof little);
  if (!available) return "the driver says that it is not available";
  if (k->version < 12) return "its driver is older than OpenCL 1.2";
  if (!compiles) return "its driver has no compiler";
  if (!little) return "it stores numbers with the most significant byte first";
  return k->workers && k->units ? NULL : "its driver does not tell the sizes of groups";
}

tn_status opencl_device_find(int32_t index, opencl_api *cl, opencl_facts *k, tn_failure *f) {
  char text[OPENCL_STATUS_BYTES];
  cl_status status = 0;
  diag d = {0};
  *k = (opencl_facts){0};
  if (opencl_api_open(cl, &d)) return tn_fail(f, d.status, "%s", d.text);
  size_t n = list_devices(cl, index, k, &status);
  if (!n)
    return tn_fail(f, TN_ERR_DEVICE,
                   "the OpenCL loader finds no device (%s): install the driver of one, such as "
                   "PoCL for processors (on Debian: apt install pocl-opencl-icd)",
                   status ? opencl_status_name(status, text) : "its drivers offer none");
  if (!k->id)
    return tn_fail(f, TN_ERR_DEVICE,
                   n == 1 ? "there is OPENCL:0 alone" : "there are OPENCL:0 to OPENCL:%zu", n - 1);
  ask_facts(cl, k);
  const char *fault = find_fault(cl, k);
  return fault ? tn_fail(f, TN_ERR_DEVICE, "%s cannot be used: %s", k->name, fault) : TN_OK;
}
