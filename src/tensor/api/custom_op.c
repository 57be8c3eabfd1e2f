/* Custom operations (tn_custom): host functions and the caller's own kernels as nodes of the graph.

   A kernel is a KERNEL node for each of its results (ir/verify/kernel_signature.h). A function is
   one CUSTOM node. Its sources are the caller's inputs, followed by the sizes that vary as rank-0
   i64 tensors. Its result is the only output, or else all outputs one after another in one row: of
   their type if they share one, else of bytes that expressions reassemble. States that it writes
   are outputs too, which are then assigned. */
#include "tensor/api/custom_op.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/verify/kernel_signature.h"
#include "laws/kernel_handle.h"
#include "tensor/api/assign.h"
#include "tensor/context/call.h"
#include "tensor/context/descriptor.h"
#include "tensor/context/host_function.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/handle_node.h"
#include "tensor/state/state_record.h"

#include <string.h>

/* ---- Signatures ---- */

typedef struct custom_job {
  tn_context *c;
  const tn_custom_desc *desc;
  const char *what; /* of a function that takes spans; NULL: it takes none */
  tn_tensor *const *in;
  size_t n_in, n_out; /* the caller's inputs and outputs */
  size_t n_all;       /* outputs, with those of written inputs */
  const tn_type *types;
  tn_tensor **out;
  host_function *host;                  /* NULL for a kernel */
  size_t written[CUSTOM_MAX_INPUTS];    /* the output that a written input becomes */
  int64_t uid;                          /* of its graph input; −1: not opened yet */
  const node *outs[CUSTOM_MAX_OUTPUTS]; /* the nodes of the outputs */
} custom_job;

typedef VEC(const node *) nodes;

/** The signature of an array. Varying sizes are added to a list. */
static array_signature signature_of(builder *b, dtype t, size_t rank, const node *const dims[],
                                    nodes *varying) {
  array_signature f = {.dtype = t, .rank = rank};
  if (rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "an array has rank %zu; ranks are 0 to %d", rank,
               TN_MAX_RANK);
  for (size_t i = 0; i < rank; i++) {
    f.varies[i] = !node_is_const(dims[i]);
    if (!f.varies[i]) {
      f.size[i] = node_int(dims[i]);
      continue;
    }
    size_t k = 0;
    while (k < varying->n && varying->at[k] != dims[i]) k++;
    if (k == varying->n) vec_push(b->arena, varying, dims[i]);
    if (varying->n > CUSTOM_MAX_INPUTS)
      diag_raise(b->diag, TN_ERR_UNSUPPORTED, "the arrays have more than %d sizes that vary",
                 CUSTOM_MAX_INPUTS);
    f.size[i] = (int64_t)k;
  }
  return f;
}

static const node *element_count(builder *b, size_t rank, const node *const dims[]) {
  const node *n = ix_const(b->ir, 1);
  for (size_t i = 0; i < rank; i++) n = ix_mul(b->ir, n, dims[i]);
  return n;
}

static const node *row_slice(builder *b, const node *row, const node *start, const node *size,
                             int64_t step) {
  return ir_slice(b->ir, row, &start, &size, &step);
}

static const dtype unsigned_of[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64};

/** `count` elements of a type from a row of bytes, in little-endian order. */
static const node *from_bytes(builder *b, const node *row, const node *offset, const node *count,
                              dtype t) {
  size_t bytes = dtype_bytes(t);
  dtype u = unsigned_of[bytes];
  const node *all = NULL;
  for (size_t k = 0; k < bytes; k++) {
    const node *part =
        row_slice(b, row, ix_add_const(b->ir, offset, (int64_t)k), count, (int64_t)bytes);
    part = ir_cast(b->ir, part, u);
    const node *shift = ir_fill(b->ir, ir_const_int(b->ir, u, (int64_t)(8 * k)), 1, &count);
    if (k) part = ir_op2(b->ir, OP_SHL, part, shift);
    all = all ? ir_op2(b->ir, OP_OR, all, part) : part;
  }
  return t == DT_BOOL ? ir_cast(b->ir, all, t) : ir_bitcast(b->ir, all, t);
}

/** The type of an output: the caller's come first, then those of written inputs. */
typedef struct output {
  dtype dtype;
  size_t rank;
  const node **dims;
} output;

static void list_outputs(custom_job *j, builder *b, const node *const in[], output outputs[]) {
  size_t n = 0;
  for (; n < j->n_out; n++) {
    outputs[n].dtype = dims_check_dtype(b, j->types[n].dtype);
    outputs[n].dims = arena_alloc(b->arena, (TN_MAX_RANK + 1) * sizeof(node *));
    dims_to_nodes(b, j->types[n].shape, outputs[n].dims);
    outputs[n].rank = (size_t)j->types[n].shape.rank;
  }
  for (size_t i = 0; i < j->n_in; i++) {
    if (!(j->desc->writes >> i & 1)) continue;
    j->written[i] = n;
    outputs[n++] = (output){(dtype)in[i]->dtype, in[i]->rank, (const node **)in[i]->dims};
  }
}

static const node *custom_node(custom_job *j, builder *b, const node *const in[],
                               const nodes *varying, dtype t, size_t rank,
                               const node *const dims[]) {
  size_t n = j->n_in + varying->n;
  const node **src = arena_alloc(b->arena, (n + rank + 1) * sizeof *src);
  for (size_t i = 0; i < j->n_in; i++) src[i] = in[i];
  for (size_t i = 0; i < varying->n; i++) src[j->n_in + i] = ir_cast(b->ir, varying->at[i], DT_I64);
  for (size_t i = 0; i < rank; i++) src[n + i] = dims[i];
  if (graph_input_open_custom(j->c, j->host, &j->uid) != TN_OK) diag_rethrow(b->diag);
  int64_t ints[4] = {j->uid, 0, (int64_t)n, 0};
  const node_spec spec = {OP_CUSTOM, t, 1, src, n + rank, ints, 4, NULL, 0};
  return ir_make(b->ir, &spec);
}

/** Makes the CUSTOM node and slices the row of all outputs into single ones. place_outputs in
    context/host_function.c makes the same layout. */
static void make_nodes(custom_job *j, builder *b, const node *const in[], const output outputs[],
                       const nodes *varying) {
  if (j->n_all == 1) {
    j->outs[0] = custom_node(j, b, in, varying, outputs[0].dtype, outputs[0].rank, outputs[0].dims);
    return;
  }
  bool is_mixed = false;
  for (size_t i = 1; i < j->n_all; i++) is_mixed |= outputs[i].dtype != outputs[0].dtype;
  const node *offsets[CUSTOM_MAX_OUTPUTS], *counts[CUSTOM_MAX_OUTPUTS], *at = ix_const(b->ir, 0);
  for (size_t i = 0; i < j->n_all; i++) {
    offsets[i] = at;
    const node *n = counts[i] = element_count(b, outputs[i].rank, outputs[i].dims);
    if (is_mixed) {
      n = ix_scale(b->ir, n, (int64_t)dtype_bytes(outputs[i].dtype));
      n = ix_scale(b->ir,
                   ix_floordiv(b->ir, ix_add_const(b->ir, n, CUSTOM_ALIGN - 1),
                               ix_const(b->ir, CUSTOM_ALIGN)),
                   CUSTOM_ALIGN);
    }
    at = ix_add(b->ir, at, n);
  }
  const node *row = custom_node(j, b, in, varying, is_mixed ? DT_U8 : outputs[0].dtype, 1, &at);
  for (size_t i = 0; i < j->n_all; i++) {
    const output *o = &outputs[i];
    const node *slice = is_mixed ? from_bytes(b, row, offsets[i], counts[i], o->dtype)
                                 : row_slice(b, row, offsets[i], counts[i], 1);
    j->outs[i] = ir_reshape(b->ir, slice, o->rank, o->dims);
  }
}

static void make_host_nodes(custom_job *j, builder *b, const node *const in[],
                            const output outputs[]) {
  host_signature *s = &j->host->signature;
  nodes varying = {0};
  memcpy(s->written, j->written, sizeof s->written);
  for (size_t i = 0; i < j->n_in; i++)
    s->arrays[i] = signature_of(b, (dtype)in[i]->dtype, in[i]->rank, in[i]->dims, &varying);
  for (size_t i = 0; i < j->n_all; i++)
    s->arrays[j->n_in + i] =
        signature_of(b, outputs[i].dtype, outputs[i].rank, outputs[i].dims, &varying);
  s->n_varying = varying.n;
  make_nodes(j, b, in, outputs, &varying);
}

/* ---- Kernels: a node for each result ---- */

/** Raises unless a kernel has the params and writes those inputs that the descriptor says. */
static void check_kernel_writes(custom_job *j, builder *b, const kernel_signature *f) {
  if (f->n != j->n_in + j->n_out)
    diag_raise(b->diag, TN_ERR_ARGUMENT,
               "the kernel has %zu params; there are %zu inputs and %zu outputs", f->n, j->n_in,
               j->n_out);
  for (size_t i = 0; i < j->n_in; i++)
    if ((j->desc->writes >> i & 1) != f->params[i].is_written)
      diag_raise(b->diag, TN_ERR_ARGUMENT, "the kernel %s slot %zu, and `writes` %s input %zu",
                 f->params[i].is_written ? "writes" : "does not write", i,
                 f->params[i].is_written ? "does not name" : "names", i);
}

static void make_kernel_nodes(custom_job *j, builder *b, const node *const in[],
                              const output outputs[]) {
  size_t bytes;
  const char *text = kernel_handle_text(j->desc->kernel, &bytes);
  kernel_signature f = kernel_signature_parse(b->ir, b->arena, text, bytes);
  check_kernel_writes(j, b, &f);
  kernel_signature_check_inputs(b->arena, &f, in, j->n_in);
  for (size_t i = 0; i < j->n_out; i++)
    kernel_signature_check_array(b->arena, &f, j->n_in + i, arena_printf(b->arena, "output %zu", i),
                                 outputs[i].dtype, outputs[i].rank, outputs[i].dims);
  for (size_t i = 0; i < f.n; i++)
    if (f.params[i].is_written)
      j->outs[i < j->n_in ? j->written[i] : i - j->n_in] =
          kernel_make_node(b->ir, b->arena, &f, (int64_t)i, in, j->n_in, text, bytes);
}

static void make_custom(void *arg) {
  custom_job *j = arg;
  builder b = context_builder(j->c);
  const node *in[CUSTOM_MAX_INPUTS] = {NULL};
  output outputs[CUSTOM_MAX_OUTPUTS];
  for (size_t i = 0; i < j->n_in; i++) {
    if (j->desc->writes >> i & 1) state_check_assignable(&b, j->in[i]);
    in[i] = handle_typed_node(&b, j->in[i]);
  }
  list_outputs(j, &b, in, outputs);
  if (j->host)
    make_host_nodes(j, &b, in, outputs);
  else
    make_kernel_nodes(j, &b, in, outputs);
  for (size_t i = 0; i < j->n_all; i++) dims_check_count(&b, j->outs[i]);
  for (size_t i = 0; i < j->n_in; i++)
    if (j->desc->writes >> i & 1) {
      state_assign(&b, j->in[i], j->outs[j->written[i]]);
      j->in[i]->state->has_host_call |= j->host != NULL;
    }
}

/* ---- The call ---- */

static tn_status check_desc(custom_job *j, const tn_custom_desc *from, tn_custom_desc *to) {
  diag *d = &j->c->diag;
  if (descriptor_read(d, to, from, sizeof *to, "tn_custom_desc") != TN_OK) return d->status;
  if ((!j->types || !j->out) && j->n_out)
    return diag_set(d, TN_ERR_ARGUMENT, "the list of %zu %s is NULL", j->n_out,
                    j->types ? "results" : "types");
  if (!to->run == !to->kernel)
    return diag_set(d, TN_ERR_ARGUMENT, "exactly one of `run` and `kernel` must be set");
  if (j->n_in > CUSTOM_MAX_INPUTS || j->n_out > CUSTOM_MAX_INPUTS)
    return diag_set(d, TN_ERR_ARGUMENT,
                    "there are %zu inputs and %zu outputs; %d each are supported", j->n_in,
                    j->n_out, CUSTOM_MAX_INPUTS);
  if (j->n_in < CUSTOM_MAX_INPUTS && to->writes >> j->n_in)
    return diag_set(d, TN_ERR_ARGUMENT, "`writes` names an input beyond the %zu that there are",
                    j->n_in);
  if (!j->n_out && !to->writes)
    return diag_set(d, TN_ERR_ARGUMENT, "the operation has no output and writes no input");
  return TN_OK;
}

static failure *build_custom(custom_job *j, const tn_custom_desc *given_desc,
                             tn_custom_desc *desc) {
  tn_context *c = j->c;
  failure *f = call_check(c, "custom", j->in, j->n_in, 0);
  if (f) return f;
  tn_status s = check_desc(j, given_desc, desc);
  if (s == TN_OK && desc->run && c->entry.n_loop_bodies)
    s = diag_set(&c->diag, TN_ERR_UNSUPPORTED, "a host function cannot run in the body of a loop");
  j->n_all = j->n_out;
  for (size_t i = 0; s == TN_OK && i < j->n_in; i++) j->n_all += desc->writes >> i & 1;
  if (s == TN_OK && desc->run)
    s = host_function_open(c, desc, j->n_in, j->n_out, j->n_all, &j->host);
  if (j->host && j->what) {
    j->host->what = j->what;
    j->host->takes_spans = true;
  }
  if (s != TN_OK) {
    context_fail(c, "custom", j->in, j->n_in <= CUSTOM_MAX_INPUTS ? j->n_in : 0);
    return context_last_failure(c);
  }
  f = call_run(c, "custom", j->in, j->n_in, make_custom, j);
  if (f && j->uid >= 0) graph_input_close_custom(c, j->uid);
  return f;
}

/** The fields of a descriptor that can be read. */
static tn_custom_desc readable_desc(const tn_custom_desc *given_desc) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  diag ignored = {0};
  descriptor_read(&ignored, &d, given_desc, sizeof d, "tn_custom_desc");
  return d;
}

static void destroy_payload(tn_context *c, const tn_custom_desc *given_desc) {
  tn_custom_desc d = readable_desc(given_desc);
  callbacks_destroy_payload(c, d.destroy, d.user);
}

static void make(tn_context *c, const tn_custom_desc *given_desc, const char *what,
                 tn_tensor *const in[], size_t n_in, const tn_type types[], tn_tensor *out[],
                 size_t n_out) {
  for (size_t i = 0; out && i < n_out; i++) out[i] = call_busy_tensor(c);
  if (context_acquire(c) != TN_OK) {
    destroy_payload(c, given_desc);
    return;
  }
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  custom_job j = {.c = c, .desc = &desc, .in = in, .n_in = n_in, .n_out = n_out, .types = types};
  j.out = out;
  j.what = what;
  j.uid = -1;
  failure *f = build_custom(&j, given_desc, &desc);
  for (size_t i = 0; out && i < n_out; i++) {
    out[i] = f ? call_failed_tensor(c, failure_retain(f)) : handle_new(c);
    if (!f && out[i] != c->handles.no_memory) handle_set_value(out[i], (value){j.outs[i], WEAK_NO});
  }
  if (f && readable_desc(given_desc).writes) context_keep_assign_failure(c, f);
  failure_release(c, f);
  if (j.host)
    host_function_release(j.host);
  else
    destroy_payload(c, given_desc);
  context_release(c);
}

void tn_custom(tn_context *c, const tn_custom_desc *desc, tn_tensor *const in[], size_t n_in,
               const tn_type types[], tn_tensor *out[], size_t n_out) {
  make(c, desc, NULL, in, n_in, types, out, n_out);
}

tn_tensor *custom_op_of_spans(tn_context *c, const tn_custom_desc *desc, const char *what,
                              tn_tensor *x, const tn_type *type) {
  tn_tensor *out = NULL;
  make(c, desc, what, &x, 1, type, &out, 1);
  return out;
}
