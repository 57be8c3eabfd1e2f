/* Parses user-written kernels, derives their signatures (params, and whether each is read or
   written), checks arguments against them and builds KERNEL nodes. Refuses kernels whose result
   could depend on the loop order, such as those that may write an element twice. */
#include "ir/verify/kernel_signature.h"

#include "base/map.h"
#include "base/str.h"
#include "ir/core/binder.h"
#include "ir/core/var_names.h"
#include "ir/index/write_once.h"
#include "ir/text/parse.h"
#include "ir/transform/copy_graph.h"

#include <inttypes.h>
#include <string.h>

static _Noreturn void raise_argument(const arena *a, const char *why) {
  diag_raise(a->diag, TN_ERR_ARGUMENT, "%s", why);
}

static void add_param(const arena *a, kernel_signature *f, const node *p, size_t most) {
  uint64_t slot = (uint64_t)p->ints[0];
  if (slot >= most)
    diag_raise(
        a->diag, TN_ERR_ARGUMENT,
        "a kernel's params have the slots from 0 on without gaps: there are %zu, one with slot "
        "%" PRId64,
        most, p->ints[0]);
  if (f->params[slot].param)
    diag_raise(a->diag, TN_ERR_ARGUMENT, "two params of a kernel have slot %" PRId64, p->ints[0]);
  f->params[slot].param = p;
}

static void list_params(arena *a, kernel_signature *f, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) f->n += order->at[i]->op == OP_PARAM;
  f->params = arena_calloc(a, f->n + 1, sizeof *f->params);
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_PARAM) add_param(a, f, order->at[i], f->n);
}

static void find_uses(const arena *a, kernel_signature *f, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM)
      f->params[n->src[0]->ints[0]].is_read = true;
  }
  for (uint32_t i = 0; i + 1 < f->out->n_src; i++) {
    kernel_param *p = &f->params[f->out->src[i]->ints[0]];
    if (p->is_written)
      diag_raise(a->diag, TN_ERR_ARGUMENT, "a kernel writes slot %" PRId64 " twice",
                 p->param->ints[0]);
    p->is_written = true;
  }
}

/** Fails if a variable is in no param's shape: launches take the values of variables from the
    shapes of arrays. */
static void check_vars(arena *a, const kernel_signature *f, const node_list *order) {
  const node **params = arena_alloc(a, (f->n + 1) * sizeof *params);
  map known = {0};
  for (size_t i = 0; i < f->n; i++) params[i] = f->params[i].param;
  node_list sizes = topo_sort(a, params, f->n, NULL, NULL);
  for (size_t i = 0; i < sizes.n; i++) map_set(a, &known, sizes.at[i], (void *)sizes.at[i]);
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_VAR && !map_has(&known, order->at[i]))
      diag_raise(a->diag, TN_ERR_ARGUMENT, "variable %.100s is in no param's shape",
                 order->at[i]->text);
}

/** Fails if a stage may write an element twice: schedules reorder loops and run them in lanes and
    threads, so the last write is not defined. */
static void check_writes(ir *g, const arena *a, const node *stage) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *r = stage_overwriting_range(g, stage, i);
    if (r)
      diag_raise(a->diag, TN_ERR_ARGUMENT,
                 "a stage of the kernel may write elements twice: value %zu varies along range "
                 "r%" PRId64 ", which its coordinates do not determine; a fold emits in order",
                 i, r->ints[0]);
  }
}

/** Fails unless a range is a loop: other kinds are set by laws, which check their conditions. */
static void check_kind(const arena *a, const node *r) {
  if (range_kind_of(r) != KIND_LOOP)
    diag_raise(a->diag, TN_ERR_ARGUMENT,
               "range r%" PRId64
               " of the kernel is of kind %s: it must be a loop, and a schedule's "
               "\"KIND r%" PRId64 " %s\" may change that",
               r->ints[0], range_kind_name(range_kind_of(r)), r->ints[0],
               range_kind_name(range_kind_of(r)));
}

/** Fails unless the divisor of an index is proved to be positive. */
static void check_division(const arena *a, const node *n) {
  const node *by = n->src[1];
  if (n->dtype == DT_INDEX && by->lo <= 0)
    diag_raise(a->diag, TN_ERR_ARGUMENT,
               "the kernel takes %s of an index by what may be %" PRId64 ": it must be positive",
               op_name((op)n->op), by->hi < 0 ? by->hi : 0);
}

kernel_signature kernel_signature_of(ir *g, arena *a, const node *sink) {
  if (sink->op != OP_SINK) raise_argument(a, "a kernel is a sink");
  if (sink->n_src != 1 || sink->src[0]->op != OP_OUT)
    raise_argument(a, "a kernel's sink has one out");
  kernel_signature f = {.sink = sink, .out = sink->src[0]};
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  list_params(a, &f, &order);
  find_uses(a, &f, &order);
  check_vars(a, &f, &order);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_FLOORDIV || n->op == OP_MOD) check_division(a, n);
    if (n->op == OP_STAGE) check_writes(g, a, n);
    if (n->op == OP_RANGE) check_kind(a, n);
  }
  return f;
}

/** Formats a type and sizes, such as "f32[2,n from 1 to 9]". */
static const char *describe_array(arena *a, dtype t, size_t rank, const node *const dims[]) {
  str s = str_new(a);
  str_add(&s, dtype_name(t));
  str_add(&s, "[");
  for (size_t i = 0; i < rank; i++) {
    if (i) str_add(&s, ",");
    const node *n = dims[i];
    if (node_is_const(n))
      str_addf(&s, "%" PRId64, node_int(n));
    else if (n->op == OP_VAR)
      str_addf(&s, "%.40s from %" PRId64 " to %" PRId64, var_user_name(n->text), n->ints[0],
               n->ints[1]);
    else
      str_add(&s, "…");
  }
  str_add(&s, "]");
  return str_text(&s);
}

void kernel_signature_check_array(arena *a, const kernel_signature *f, size_t slot,
                                  const char *what, dtype t, size_t rank,
                                  const node *const dims[]) {
  const node *p = f->params[slot].param;
  bool fits = p->rank == rank;
  for (size_t i = 0; fits && i < rank; i++) fits = p->dims[i] == dims[i];
  if (fits && p->dtype == t) return;
  diag_raise(a->diag, p->dtype == t ? TN_ERR_SHAPE : TN_ERR_DTYPE,
             "the kernel's param of slot %zu is %s, %s is %s", slot,
             describe_array(a, (dtype)p->dtype, p->rank, p->dims), what,
             describe_array(a, t, rank, dims));
}

void kernel_signature_check_inputs(arena *a, const kernel_signature *f, const node *const inputs[],
                                   size_t n_inputs) {
  if (n_inputs > f->n)
    diag_raise(a->diag, TN_ERR_ARGUMENT, "the kernel has %zu params; there are %zu inputs", f->n,
               n_inputs);
  for (size_t i = 0; i < n_inputs; i++)
    kernel_signature_check_array(a, f, i, arena_printf(a, "input %zu", i), (dtype)inputs[i]->dtype,
                                 inputs[i]->rank, inputs[i]->dims);
  for (size_t i = n_inputs; i < f->n; i++)
    if (f->params[i].is_read || !f->params[i].is_written)
      diag_raise(a->diag, TN_ERR_ARGUMENT, "the kernel %s slot %zu, an output",
                 f->params[i].is_read ? "reads" : "does not write", i);
}

typedef struct kernel_home {
  ir *ir;
  arena *arena;
} kernel_home;

/** Gives VARs of a parsed kernel, which have names of users, their names in graphs. */
static const node *rename_user_var(void *user, const node *n, const node *const src[]) {
  const kernel_home *to = user;
  (void)src;
  if (n->op != OP_VAR || strlen(n->text) != n->n_text) return NULL;
  node_spec s = node_spec_with_sources(n, NULL, 0);
  s.text = var_name_in_graph(to->arena, n->text);
  s.n_text = strlen(s.text);
  return ir_make(to->ir, &s);
}

kernel_signature kernel_signature_parse(ir *g, arena *a, const char *text, size_t bytes) {
  node_list roots = parse_graph(g, a, text, bytes);
  if (roots.n != 1) raise_argument(a, "a kernel is one node");
  kernel_home to = {g, a};
  ir_copy(g, a, roots.at, 1, rename_user_var, &to, roots.at); /* makes index arithmetic canonical */
  return kernel_signature_of(g, a, roots.at[0]);
}

kernel_signature kernel_signature_of_node(ir *g, arena *a, const node *n) {
  kernel_signature f = kernel_signature_parse(g, a, n->text, n->n_text);
  if ((uint64_t)n->ints[1] > f.n) raise_argument(a, "the kernel has fewer params than inputs");
  if ((uint64_t)n->ints[0] >= f.n || !f.params[n->ints[0]].is_written)
    raise_argument(a, "the kernel does not write the slot of its node");
  return f;
}

const node *kernel_make_node(ir *g, arena *a, const kernel_signature *f, int64_t slot,
                             const node *const inputs[], size_t n_inputs, const char *text,
                             size_t n_text) {
  const node *like = f->params[slot].param;
  const node **src = arena_alloc(a, (n_inputs + like->rank + 1) * sizeof *src);
  for (size_t i = 0; i < n_inputs; i++) src[i] = inputs[i];
  for (size_t i = 0; i < like->rank; i++) src[n_inputs + i] = like->dims[i];
  int64_t ints[] = {slot, (int64_t)n_inputs};
  return ir_make(g, &(node_spec){.op = OP_KERNEL,
                                 .dtype = (dtype)like->dtype,
                                 .lanes = 1,
                                 .src = src,
                                 .n_src = n_inputs + like->rank,
                                 .ints = ints,
                                 .n_int = 2,
                                 .text = text,
                                 .n_text = n_text});
}
