/* Implements the builders of PROGRAM nodes (kernels in compilation): appends the stages one by one,
   and checks their order, the LINEAR (instruction list) by the verifier, and that it uses only
   buffers of its kernel. */
#include "compile/program_node.h"

#include "compile/program_spec.h"
#include "ir/core/build.h"
#include "ir/verify/verify_graph.h"

#include <string.h>

static _Noreturn void raise_broken(ir *g, const char *fault) {
  diag_raise(ir_diag(g), TN_ERR_INTERNAL, "a program's %s", fault);
}

/** Raises unless a LINEAR is well-formed and uses only buffers that its kernel has. */
static void check_linear(ir *g, const node *sink, const node *linear) {
  if (verify_graph(&linear, 1, LEVEL_LINEAR, ir_mem(g), ir_diag(g))) diag_rethrow(ir_diag(g));
  tn_program_spec kernel, code;
  program_spec_derive(g, sink, &kernel);
  program_spec_derive(g, linear, &code);
  for (size_t i = 0, k = 0; i < code.n_globals; i++) {
    while (k < kernel.n_globals && kernel.globals[k] < code.globals[i]) k++;
    if (k == kernel.n_globals || kernel.globals[k] != code.globals[i])
      raise_broken(g, "linear form uses a buffer that is not in its kernel");
  }
}

void program_node_check(ir *g, const node *program) {
  static const op stages[] = {OP_SINK, OP_DEVICE, OP_LINEAR, OP_SOURCE, OP_BINARY};
  if (program->op != OP_PROGRAM || program->n_src < 2 || program->n_src > 5)
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "expected a program, got %s", op_name((op)program->op));
  for (uint32_t i = 0; i < program->n_src; i++)
    if (program->src[i]->op != stages[i]) raise_broken(g, "stages are not in order");
  if (!program->src[1]->n_text) raise_broken(g, "device has no name");
  if (program->n_src > 2) check_linear(g, program->src[0], program->src[2]);
  if (program->n_src > 3 && !program->src[3]->n_text) raise_broken(g, "source is empty");
  if (program->n_src > 4 && !program->src[4]->n_text) raise_broken(g, "binary is empty");
}

/** The PROGRAM with a source appended, its `count`-th: a stage that holds text. */
static const node *append_text_stage(ir *g, const node *program, uint32_t count, op o,
                                     const void *text, size_t bytes) {
  if (program->n_src != count) raise_broken(g, "stages are not made in order");
  if (!bytes) raise_broken(g, o == OP_SOURCE ? "source is empty" : "binary is empty");
  if (bytes > UINT32_MAX) raise_broken(g, "text has more than 4 GiB");
  const node *src[5];
  memcpy(src, program->src, count * sizeof *src);
  src[count] = ir_make(g, &(node_spec){.op = o, .dtype = DT_VOID, .text = text, .n_text = bytes});
  return ir_node(g, OP_PROGRAM, DT_VOID, src, count + 1, NULL, 0);
}

const node *program_node_source(ir *g, const node *program, const char *source, size_t bytes) {
  return append_text_stage(g, program, 3, OP_SOURCE, source, bytes);
}

const node *program_node_binary(ir *g, const node *program, const void *code, size_t bytes) {
  return append_text_stage(g, program, 4, OP_BINARY, code, bytes);
}
