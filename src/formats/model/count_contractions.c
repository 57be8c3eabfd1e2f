/* Counts the arithmetic of a model's contractions (sums of products of two tensors) for given input
   shapes. Finds the products in a copy of the model's graph, because walks mark nodes and the
   model's own must not change; evaluates their sizes, expressions in the sizes of inputs. */
#include "device/program/launch_expr.h"
#include "formats/model/model.h"
#include "ir/core/tensor_loop.h"
#include "ir/core/topo_sort.h"
#include "ir/transform/copy_graph.h"
#include "tensor/context/descriptor.h"
#include "tensor/context/shape.h"

#include <stdlib.h>
#include <string.h>

/** A varying size of the model and its value. */
typedef struct size_variable {
  const char *name;
  int64_t value;
} size_variable;

typedef struct counting {
  const tn_model *model;
  const tn_shape *shapes;       /* of inputs */
  ir *ir;                       /* of the copied graph */
  VEC(size_variable) variables; /* sorted by name */
  node_list sizes;              /* of all products, concatenated */
  VEC(size_t) counts;           /* the number of sizes of each product */
  tn_contractions result;
} counting;

static bool is_constant(const node *n) {
  while (op_facts_of((op)n->op)->cls == CLASS_MOVEMENT && n->n_src) n = n->src[0];
  return n->op == OP_CONST;
}

/** The product that a REDUCE sums; NULL if the node is not a contraction. Scaling by a constant and
    squaring are none. */
static const node *contracted_product(const node *n) {
  if (n->op != OP_REDUCE || n->ints[0] != OP_ADD || n->src[0]->op != OP_MUL) return NULL;
  const node *m = n->src[0];
  bool is_scaled = is_constant(m->src[0]) || is_constant(m->src[1]);
  return m->src[0] == m->src[1] || is_scaled ? NULL : m;
}

/** Adds the trip counts of the loops around a product: the ranges on which it depends without
   binding them. Returns their number. */
static size_t add_trip_counts(counting *k, const node *product) {
  arena *a = ir_arena(k->ir);
  node_list nodes = topo_sort(a, &product, 1, NULL, NULL);
  map bound = loop_bound_ranges(a, nodes.at, nodes.n);
  size_t n = 0;
  for (size_t i = 0; i < nodes.n; i++) {
    if (nodes.at[i]->op != OP_RANGE || map_has(&bound, nodes.at[i])) continue;
    vec_push(a, &k->sizes, range_extent(nodes.at[i]));
    n++;
  }
  return n;
}

static void find_products(counting *k) {
  const tn_model *m = k->model;
  arena *a = ir_arena(k->ir);
  const node **outputs = arena_alloc(a, (m->graph.n_outputs + 1) * sizeof *outputs);
  ir_copy_sorted(k->ir, a, &m->graph.order, m->graph.nodes + m->graph.n_inputs, m->graph.n_outputs,
                 NULL, NULL, outputs);
  node_list all = topo_sort(a, outputs, m->graph.n_outputs, NULL, NULL);
  bool has_loops = loop_bound_ranges(a, all.at, all.n).n > 0;
  for (size_t i = 0; i < all.n; i++) {
    const node *p = contracted_product(all.at[i]);
    if (!p) continue;
    for (size_t d = 0; d < p->rank; d++) vec_push(a, &k->sizes, p->dims[d]);
    vec_push(a, &k->counts, p->rank + (has_loops ? add_trip_counts(k, p) : 0));
    if (!dtype_is_float((dtype)p->dtype)) k->result.is_float = false;
  }
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const size_variable *)a)->name, ((const size_variable *)b)->name);
}

static void refuse_rank(counting *k, size_t i) {
  const tn_model *m = k->model;
  size_t rank = m->graph.nodes[i]->rank;
  const tn_shape *s = &k->shapes[i];
  diag *d = ir_arena(k->ir)->diag;
  char given[256], wanted[256];
  if (s->rank < 0 || s->rank > TN_MAX_RANK || rank > TN_MAX_RANK)
    diag_raise(d, TN_ERR_SHAPE, "input '%.200s' has rank %d, not %zu", m->graph.names[i],
               (int)s->rank, rank);
  diag_raise(d, TN_ERR_SHAPE, "input '%.200s' has rank %d, not %zu: its shape is %s, not %s",
             m->graph.names[i], (int)s->rank, rank,
             shape_write_text(given, sizeof given, (size_t)s->rank, NULL, s->size),
             shape_write_text(wanted, sizeof wanted, rank, m->graph.sizes[i], NULL));
}

/** Adds the variables of input `i` with their values; raises if its shape does not fit. */
static void read_shape(counting *k, size_t i) {
  const tn_model *m = k->model;
  const node *input = m->graph.nodes[i];
  const tn_shape *shape = &k->shapes[i];
  arena *a = ir_arena(k->ir);
  if (shape->rank != (int64_t)input->rank) refuse_rank(k, i);
  for (size_t d = 0; d < input->rank; d++) {
    const node *size = input->dims[d];
    if (shape->size[d] < size->lo || shape->size[d] > size->hi)
      diag_raise(a->diag, TN_ERR_SHAPE, "input '%.200s': axis %zu has size %lld, not %s",
                 m->graph.names[i], d, (long long)shape->size[d], m->graph.sizes[i][d]);
    if (size->op == OP_VAR) vec_push(a, &k->variables, (size_variable){size->text, shape->size[d]});
  }
}

/** Reads all variables, each once; raises if two inputs give one different values. */
static void read_shapes(counting *k) {
  for (size_t i = 0; i < k->model->graph.n_inputs; i++) read_shape(k, i);
  if (!k->variables.n) return;
  size_variable *at = k->variables.at;
  qsort(at, k->variables.n, sizeof *at, compare_names);
  size_t n = 1;
  for (size_t i = 1; i < k->variables.n; i++) {
    if (strcmp(at[i].name, at[n - 1].name))
      at[n++] = at[i];
    else if (at[i].value != at[n - 1].value)
      diag_raise(ir_arena(k->ir)->diag, TN_ERR_SHAPE,
                 "size '%.200s' is %lld for one axis and %lld for another", at[i].name,
                 (long long)at[n - 1].value, (long long)at[i].value);
  }
  k->variables.n = n;
}

static void count_body(void *arg) {
  counting *k = arg;
  arena *a = ir_arena(k->ir);
  read_shapes(k);
  find_products(k);
  const char **names = arena_alloc(a, (k->variables.n + 1) * sizeof *names);
  int64_t *values = arena_alloc(a, (k->variables.n + 1) * sizeof *values);
  for (size_t i = 0; i < k->variables.n; i++) {
    names[i] = k->variables.at[i].name;
    values[i] = k->variables.at[i].value;
  }
  launch_exprs code = launch_exprs_compile(a, k->sizes.at, k->sizes.n, names, k->variables.n);
  int64_t *work = arena_alloc(a, (code.n_terms + 1) * sizeof *work);
  int64_t *size = arena_alloc(a, (code.n_results + 1) * sizeof *size);
  if (launch_exprs_eval(&code, values, work, size, a->diag)) diag_rethrow(a->diag);
  for (size_t i = 0; i < k->counts.n; i++) {
    double operations = 2;
    for (size_t d = 0; d < k->counts.at[i]; d++) operations *= (double)*size++;
    k->result.operations += operations;
  }
}

static tn_status count(const tn_model *m, const tn_shape shapes[], size_t n, tn_contractions *out,
                       diag *d) {
  if (n != m->graph.n_inputs || (n && !shapes))
    return diag_set(d, TN_ERR_ARGUMENT, "%.400s has %zu inputs, but the call has %zu shapes",
                    m->data->title, m->graph.n_inputs, shapes ? n : 0);
  if (m->graph.is_late)
    return diag_set(d, TN_ERR_UNSUPPORTED, "%.400s: the %s of inputs decide on the shapes",
                    m->data->title, m->graph.exact_reason ? "sizes" : "values");
  counting k = {.model = m,
                .shapes = shapes,
                .ir = ir_new(&m->context->mem, d, false),
                .result = TN_CONTRACTIONS_INIT};
  tn_status s = k.ir ? diag_catch(d, count_body, &k) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  ir_free(k.ir);
  return s == TN_OK ? descriptor_write(d, out, &k.result, sizeof k.result, "tn_contractions") : s;
}

tn_status tn_model_contractions(const tn_model *m, const tn_shape shapes[], size_t n,
                                tn_contractions *contractions) {
  if (!m) return TN_ERR_ARGUMENT;
  tn_context *c = m->context;
  tn_status s = context_begin_concurrent(c, REENTRANCY_NONE);
  if (s != TN_OK) return s;
  diag d = {0};
  s = count(m, shapes, n, contractions, &d);
  if (s != TN_OK) context_set_thread_message(c, &d);
  context_end_concurrent(c);
  return s;
}
