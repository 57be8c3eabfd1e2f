/* The renderer of the pair cuda/nvrtc: CUDA C for one generation of devices, as "sm_90a", whose
   kernels are made for it alone. */
#include "device/core/render_source.h"
#include "device/cuda/cuda_device.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "target/machine.h"

#include <stdio.h>

static tn_status cuda_describe(void *device, const char *limit, tn_capabilities *caps,
                               tn_failure *f) {
  (void)limit, (void)f;
  const cuda_device *v = device;
  const cuda_facts *k = &v->facts;
  snprintf(caps->target, sizeof caps->target, "sm_%d%d%s", k->major, k->minor,
           k->major >= 9 ? "a" : "");
  caps->team_workers =
      (uint32_t)(k->workers < MACHINE_TEAM_WORKERS ? k->workers : MACHINE_TEAM_WORKERS);
  caps->registers = MACHINE_TEAM_REGISTERS;
  caps->warp = CUDA_WARP;
  caps->group_bytes = (uint64_t)k->group_bytes;
  caps->max_scratch = MACHINE_TEAM_PRIVATE_BYTES / caps->team_workers;
  caps->copy_bytes = k->major >= 8 ? 4 | 8 | 16 : 0;
  caps->index32 = true;
  caps->max_buffers = (CUDA_ARGUMENT_BYTES - CUDA_VALUE_BYTES) / sizeof(cuda_address);
  caps->dtypes = render_dtypes();
  caps->lacks = v->lacks;
  caps->hardware = (tn_hardware){
      .l3_bytes = (uint64_t)k->cache_bytes, .line_bytes = 128, .cores = (uint32_t)k->units};
  return TN_OK;
}

static void write_program(const tn_capabilities *caps, const tn_program_spec *spec, str *out) {
  (void)caps;
  render_c(spec->ast->src[2], spec, &c_cuda, out);
}

static tn_status cuda_render(const tn_capabilities *caps, tn_ir *ir, const tn_program_spec *spec,
                             tn_output *source, tn_failure *f) {
  return render_source(write_program, caps, ir, spec, source, f);
}

const tn_renderer cuda_renderer = {
    .size = sizeof cuda_renderer, .name = "cuda", .describe = cuda_describe, .render = cuda_render};
