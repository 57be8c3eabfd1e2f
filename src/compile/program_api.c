/* Implements the public function tn_program_compile: checks the nodes it is given, as they come
   from outside, and compiles them for the device's default target. */
#include "compile/compile_kernels.h"
#include "compile/program_node.h"
#include "ir/verify/verify_graph.h"

#include <tenon/unstable/backend.h>

typedef struct node_check {
  tn_ir *ir;
  const tn_node *nodes;
  size_t n;
} node_check;

static void check_nodes(void *arg) {
  node_check *c = arg;
  diag *d = ir_diag(c->ir);
  for (size_t i = 0; i < c->n; i++) {
    const node *n = c->nodes[i];
    if (n->op == OP_SINK && verify_graph(&n, 1, LEVEL_KERNEL, ir_mem(c->ir), d)) diag_rethrow(d);
    if (n->op == OP_PROGRAM) program_node_check(c->ir, n);
  }
}

static tn_status fail_absent(tn_failure *f, const char *argument) {
  return tn_fail(f, TN_ERR_ARGUMENT, "the %s is NULL", argument);
}

tn_status tn_program_compile(tn_device *v, tn_ir *ir, const tn_node *nodes, size_t n,
                             tn_program *programs[], tn_failure *f) {
  for (size_t i = 0; i < n && programs; i++) programs[i] = NULL;
  if (!v || !ir) return fail_absent(f, v ? "IR" : "device");
  if (n && (!nodes || !programs)) return fail_absent(f, "list of nodes or programs");
  for (size_t i = 0; i < n; i++)
    if (!nodes[i]) return fail_absent(f, "node to compile");
  node_check c = {.ir = ir, .nodes = nodes, .n = n};
  diag *d = ir_diag(ir);
  tn_failure last = d->failure; /* compiling clears it */
  compile_options o = {.math = MATH_EXACT};
  tn_status status = diag_catch(d, check_nodes, &c);
  if (!status) status = device_target_find(v, NULL, &o.target, d);
  if (!status) status = compile_kernels(&o, ir, nodes, n, programs, d);
  if (!status) d->failure = last;
  if (status && f) *f = d->failure;
  return status;
}
