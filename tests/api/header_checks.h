/* Checks the public headers without the library: ABI values of enums, sizes and layouts of structs,
   literals and initialisers. The same text is compiled as C and as C++. */
#ifndef TENON_TESTS_HEADER_CHECKS_H
#define TENON_TESTS_HEADER_CHECKS_H

#include <assert.h>
#include <stdio.h>
#include <tenon/tenon.h>

/* Numbers are part of the ABI: lines are only ever added. */
static_assert(TN_OK == 0 && TN_ERR_ARGUMENT == 1 && TN_ERR_SHAPE == 2 && TN_ERR_DTYPE == 3, "");
static_assert(TN_ERR_MEMORY == 4 && TN_ERR_IO == 5 && TN_ERR_FORMAT == 6, "");
static_assert(TN_ERR_UNSUPPORTED == 7 && TN_ERR_DEVICE == 8 && TN_ERR_COMPILE == 9, "");
static_assert(TN_ERR_TIMEOUT == 10 && TN_ERR_CANCELLED == 11 && TN_ERR_BUSY == 12, "");
static_assert(TN_ERR_INTERNAL == 13, "");
static_assert(TN_UNDEFINED == 0 && TN_F32 == 1 && TN_U8 == 2 && TN_I8 == 3 && TN_U16 == 4, "");
static_assert(TN_I16 == 5 && TN_I32 == 6 && TN_I64 == 7 && TN_STRING == 8 && TN_BOOL == 9, "");
static_assert(TN_F16 == 10 && TN_F64 == 11 && TN_U32 == 12 && TN_U64 == 13 && TN_BF16 == 16, "");
static_assert(TN_LOG_WARNING == 1 && TN_LOG_INFO == 2 && TN_LOG_DEBUG == 3, "");
static_assert(TN_MATH_EXACT == 0 && TN_MATH_CONTRACT == 1 && TN_MATH_SUM == 2, "");
static_assert(TN_MATH_FLUSH == 8 && TN_MATH_DEFAULT == 11 && TN_MATH_FAST == 15, "");
static_assert(TN_PAD_CONSTANT == 0 && TN_PAD_REFLECT == 1 && TN_PAD_EDGE == 2, "");
static_assert(TN_PORT_INPUT == 0 && TN_PORT_OUTPUT == 1, "");
static_assert(TN_KIND_NONE == 0 && TN_KIND_BOOL == 1 && TN_KIND_UNSIGNED == 2, "");
static_assert(TN_KIND_SIGNED == 3 && TN_KIND_FLOAT == 4, "");
static_assert(TN_FILE_NPY == 1 && TN_FILE_ONNX == 2, "");

static_assert(sizeof(tn_status) == 4 && sizeof(tn_dtype) == 4 && sizeof(tn_log_level) == 4, "");
static_assert(sizeof(tn_math) == 4 && sizeof(tn_pad_mode) == 4 && sizeof(tn_port_kind) == 4, "");

#define CHECK_HOST_TYPE(name, number, text, bytes, host) static_assert(sizeof(host) == bytes, text);
TN_DTYPE_LIST(CHECK_HOST_TYPE)
#undef CHECK_HOST_TYPE

/* Layouts of frozen structs, and of the present fields of structs that may grow. */
#if UINTPTR_MAX == UINT64_MAX
static_assert(sizeof(tn_shape) == 104 && offsetof(tn_shape, size) == 8, "");
static_assert(sizeof(tn_axes) == 52 && offsetof(tn_axes, axis) == 4, "");
static_assert(sizeof(tn_type) == 112 && offsetof(tn_type, shape) == 8, "");
static_assert(sizeof(tn_array) == 120 && offsetof(tn_array, type) == 8, "");
static_assert(sizeof(tn_allocator) == 32 && sizeof(tn_workers) == 24, "");
static_assert(sizeof(tn_logger) == 24 && sizeof(tn_progress) == 24, "");
static_assert(sizeof(tn_open_desc) >= 176 && offsetof(tn_open_desc, progress) == 152, "");
static_assert(sizeof(tn_custom_desc) >= 56 && offsetof(tn_custom_desc, destroy) == 48, "");
static_assert(sizeof(tn_conv_desc) >= 136 && offsetof(tn_conv_desc, groups) == 128, "");
static_assert(sizeof(tn_pool_desc) >= 136 && offsetof(tn_pool_desc, ceil_mode) == 128, "");
static_assert(sizeof(tn_scan_desc) >= 40 && offsetof(tn_scan_desc, reverse) == 32, "");
static_assert(sizeof(tn_plan_desc) >= 24 && offsetof(tn_plan_desc, outputs) == 16, "");
static_assert(sizeof(tn_model_desc) >= 16 && offsetof(tn_model_desc, folder) == 8, "");
static_assert(sizeof(tn_port) >= 224 && offsetof(tn_port, sizes) == 128, "");
static_assert(sizeof(tn_device_info) >= 48 && offsetof(tn_device_info, bytes) == 40, "");
static_assert(sizeof(tn_context_info) >= 40 && offsetof(tn_context_info, computes) == 32, "");
static_assert(offsetof(tn_processor_info, last_cache_bytes) == 88, "");
static_assert(sizeof(tn_compiler_info) >= 32 && offsetof(tn_compiler_info, used) == 24, "");
static_assert(sizeof(tn_cache_info) >= 40 && offsetof(tn_cache_info, bytes) == 32, "");
static_assert(offsetof(tn_kernel_cache_info, found) == 16, "");
static_assert(offsetof(tn_contractions, is_float) == 16, "");
#endif

static int failures;

static void check(int holds, const char *what, int line) {
  if (holds) return;
  failures++;
  fprintf(stderr, "header_checks.h:%d: %s\n", line, what);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

static void check_shapes(void) {
  size_t batch = 3;
  int evaluated = 0;
  tn_shape s = tn_shape(batch, 224, (int64_t)1 << 40);
  CHECK(s.rank == 3 && s.size[0] == 3 && s.size[1] == 224 && s.size[2] == (int64_t)1 << 40);
  CHECK(tn_shape(-1).rank == 1 && tn_shape(-1).size[0] == -1);
  CHECK(tn_shape(evaluated++, 2).rank == 2 && evaluated == 1);
  s = tn_shape(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  CHECK(s.rank == TN_MAX_RANK && s.size[0] == 1 && s.size[TN_MAX_RANK - 1] == 12);
  CHECK(TN_SCALAR.rank == 0);
}

static void check_axes(void) {
  int last = -1;
  tn_axes a = tn_axes(0, last);
  CHECK(a.count == 2 && a.axis[0] == 0 && a.axis[1] == -1);
  CHECK(TN_NO_AXES.count == 0);
  CHECK(tn_axes(2).count == 1 && tn_axes(2).axis[0] == 2);
  CHECK(TN_ALL.count == -1);
}

static void check_open_desc(void) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  CHECK(d.size == sizeof d && !d.device && !d.cache_dir && !d.pair && !d.cpu && !d.dump);
  CHECK(d.threads == 0 && d.math == TN_MATH_DEFAULT && d.cached_bytes == 1 << 30 && d.environment);
  CHECK(d.memory_limit == 0 && d.compile_seconds == TN_COMPILE_SECONDS);
  CHECK(!d.allocator.alloc && !d.allocator.release && !d.allocator.user && !d.allocator.destroy);
  CHECK(!d.workers.run && !d.logger.log && !d.progress.step && !d.progress.destroy);
}

static void check_window_descs(void) {
  tn_conv_desc c = TN_CONV_DESC_INIT;
  tn_pool_desc p = TN_POOL_DESC_INIT;
  CHECK(c.size == sizeof c && c.groups == 1);
  CHECK(p.size == sizeof p && !p.ceil_mode && p.count_include_pad);
  for (int i = 0; i < 3; i++) {
    CHECK(c.stride[i] == 1 && c.dilation[i] == 1);
    CHECK(c.pad_low[i] == 0 && c.pad_high[i] == 0 && c.output_pad[i] == 0);
    CHECK(p.kernel[i] == 1 && p.stride[i] == 0 && p.dilation[i] == 1);
    CHECK(p.pad_low[i] == 0 && p.pad_high[i] == 0);
  }
}

static void check_other_descs(void) {
  tn_custom_desc custom = TN_CUSTOM_DESC_INIT;
  tn_plan_desc plan = TN_PLAN_DESC_INIT;
  tn_model_desc model = TN_MODEL_DESC_INIT;
  tn_scan_desc scan = TN_SCAN_DESC_INIT;
  tn_cond_desc cond = TN_COND_DESC_INIT;
  tn_port port = TN_PORT_INIT;
  tn_device_info device = TN_DEVICE_INFO_INIT;
  CHECK(custom.size == sizeof custom && !custom.name && !custom.run && !custom.kernel);
  CHECK(custom.writes == 0 && !custom.user && !custom.destroy);
  CHECK(plan.size == sizeof plan && !plan.name && !plan.outputs);
  CHECK(scan.size == sizeof scan && !scan.body && !scan.user && scan.steps == -1 && !scan.reverse);
  CHECK(scan.until == -1);
  CHECK(cond.size == sizeof cond && !cond.then_body && !cond.else_body && !cond.user);
  CHECK(model.size == sizeof model && !model.folder);
  CHECK(port.size == sizeof port && !port.name && port.type.dtype == TN_UNDEFINED);
  CHECK(port.type.shape.rank == 0 && !port.sizes[0] && !port.sizes[TN_MAX_RANK - 1]);
  CHECK(device.size == sizeof device && !device.name && !device.about && !device.absent);
  CHECK(!device.pairs && device.bytes == 0);
}

static void check_macros(void) {
  const char *here = TN_HERE;
  size_t n = sizeof __FILE__ - 1;
  CHECK(here[n] == ':' && here[n + 1] >= '1' && here[n + 1] <= '9');
  CHECK(TN_VERSION == TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH);
  CHECK(TN_END == INT64_MAX);
}

static int check_headers(void) {
  check_shapes();
  check_axes();
  check_open_desc();
  check_window_descs();
  check_other_descs();
  check_macros();
  return failures != 0;
}

#endif
