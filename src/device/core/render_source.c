/* Implements the calls of renderers that raise: each has an arena and catches what is raised; and
   the set of their types. */
#include "device/core/render_source.h"

#include "base/arena.h"
#include "device/core/output.h"
#include "ir/core/ir.h"

uint64_t render_dtypes(void) {
  uint64_t all = 0;
#define TYPE(name, number, text, bytes, host) all |= UINT64_C(1) << number;
  TN_DTYPE_LIST(TYPE)
#undef TYPE
  return all & ~(UINT64_C(1) << TN_F16 | UINT64_C(1) << TN_BF16);
}

/** Rendering of a kernel, which may raise. */
typedef struct rendering {
  render_source_fn *render;
  const tn_capabilities *caps;
  const tn_program_spec *spec;
  arena arena;
  str text;
} rendering;

static void render_kernel(void *arg) {
  rendering *w = arg;
  w->text = str_new(&w->arena);
  w->render(w->caps, w->spec, &w->text);
}

tn_status render_source(render_source_fn *render, const tn_capabilities *caps, tn_ir *ir,
                        const tn_program_spec *spec, tn_output *source, tn_failure *f) {
  diag *d = ir_diag(ir);
  rendering w = {.render = render, .caps = caps, .spec = spec};
  arena_init(&w.arena, ir_mem(ir), d);
  tn_status status = diag_catch(d, render_kernel, &w);
  if (!status) tn_output_add(source, str_text(&w.text), w.text.n);
  arena_free(&w.arena);
  if (status) *f = d->failure;
  return status;
}

typedef struct prelude_job {
  void (*write)(str *out);
  arena arena;
  str text;
} prelude_job;

static void write_prelude(void *arg) {
  prelude_job *j = arg;
  j->text = str_new(&j->arena);
  j->write(&j->text);
}

tn_status render_prelude(void (*write)(str *out), tn_output *text, tn_failure *f) {
  diag d = {0};
  prelude_job j = {.write = write};
  arena_init(&j.arena, text->mem, &d);
  tn_status status = diag_catch(&d, write_prelude, &j);
  if (!status) tn_output_add(text, str_text(&j.text), j.text.n);
  arena_free(&j.arena);
  if (status) *f = d.failure;
  return status;
}
