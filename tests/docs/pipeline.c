/* Prints the IR after every pass of the compilation of relu(x @ w), for docs/pipeline.md: a line
   "=== PASS" and the text after it; of several kernels the first. The target is always the same, so
   that the page is. */
#include "base/str.h"
#include "codegen/codegen.h"
#include "compile/program_spec.h"
#include "ir/text/print.h"
#include "render/c/dialect.h"
#include "render/c/render_c.h"
#include "schedule/schedule.h"
#include "tensor/context/handle.h"

#include <stdio.h>
#include <tenon/tenon.h>

static tn_tensor *layer(tn_context *tn) {
  /* [example] */
  tn_tensor *x = tn_input(tn, "x", tn_shape(4, 8), TN_F32);
  tn_tensor *w = tn_input(tn, "w", tn_shape(8, 16), TN_F32);
  tn_tensor *y = tn_relu(tn_matmul(x, w));
  /* [end] */
  return y;
}

typedef struct printing {
  ir *g;
  const node *root; /* in the context's graph */
} printing;

static void print_pass(void *user, const char *pass, const node *const roots[], size_t n) {
  const printing *p = user;
  str text = str_new(ir_arena(p->g));
  print_graph(&text, roots, n);
  printf("=== %s\n%s", pass, str_text(&text));
}

static void print_codegen(void *user, const char *pass, const node *root) {
  print_pass(user, pass, &root, 1);
}

static void print_law(void *user, const char *line) {
  (void)user;
  printf("%s\n", line);
}

/** x86-64-v3: vectors of 32 bytes, and what GNU C can say. */
static codegen_options options(printing *p) {
  codegen_options o = {.target = {.vector_bytes = 32, .threads = true}, .math = MATH_DEFAULT};
  render_c_unsupported_ops(&c_gnu, &o.target.rules);
  o.observer = (codegen_observer){.after = print_codegen, .user = p};
  return o;
}

static void print_all(void *arg) {
  printing *p = arg;
  print_pass(p, "tensor", &p->root, 1);
  schedule_request r = {.roots = &p->root,
                        .n_roots = 1,
                        .observer.after = print_pass,
                        .observer.user = p,
                        .math = MATH_DEFAULT};
  const schedule *s = schedule_make(p->g, &r);
  codegen_options o = options(p), lines = o;
  lines.observer = (codegen_observer){.law = print_law};
  const node *program = codegen_run(p->g, s->steps.at[0].kernel, "CPU", &o);
  puts("=== laws");
  codegen_choose(p->g, codegen_simplify(p->g, s->steps.at[0].kernel, &o), &lines);
  tn_program_spec spec;
  program_spec_derive(p->g, program, &spec);
  spec.entry = "layer";
  str text = str_new(ir_arena(p->g));
  render_c(program->src[2], &spec, &c_gnu, &text);
  printf("=== c\n%s", str_text(&text));
}

static int fail(const char *why) {
  fprintf(stderr, "pipeline: %s\n", why);
  return 1;
}

int main(void) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.environment = false;
  desc.cache_dir = "off";
  tn_context *tn = tn_open(&desc);
  const tn_tensor *y = layer(tn);
  if (!y || !y->node) return fail(tn_message(tn));
  diag d = {0};
  printing p = {ir_new(&mem_system, &d, false), y->node};
  if (!p.g) return fail("out of memory");
  tn_status status = diag_catch(&d, print_all, &p);
  ir_free(p.g);
  tn_close(tn);
  return status == TN_OK ? 0 : fail(d.text);
}
