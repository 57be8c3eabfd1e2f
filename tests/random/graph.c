/* Derives the inputs of a random tensor graph from the graph itself: fills a BUFFER (graph input)
   with pseudo-random elements seeded by its uid, reads the value of a VAR (runtime scalar or size)
   from its name, and evaluates CUSTOMs (host functions) by their uid. Also builds the interpreter's
   environment, and prints and parses a graph with its seed and math mode. */
#include "graph.h"

#include "ir/core/scalar_eval.h"
#include "ir/core/shape_inference.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "random.h"
#include "support/interp_kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Encoding of a BUFFER's or CUSTOM's kind in its uid. */

enum { BIT_OVERWRITE = 1, SHIFT_KIND = 1, SHIFT_NUMBER = 4 };

int64_t graph_uid(uint64_t number, contents_kind kind, bool may_overwrite) {
  return (int64_t)(number << SHIFT_NUMBER) | (int64_t)kind << SHIFT_KIND |
         (may_overwrite ? BIT_OVERWRITE : 0);
}

bool graph_may_overwrite(void *user, const node *buffer) {
  (void)user;
  return buffer->ints[0] & BIT_OVERWRITE;
}

const node *graph_var(ir *g, int64_t k, dtype t, int64_t min, int64_t max, int64_t value) {
  char name[128];
  int n = snprintf(name, sizeof name, "v%" PRId64 "_%s_%" PRId64 "_%" PRId64 "_is_%" PRId64, k,
                   dtype_name(t), min, max, value);
  int64_t ints[] = {min, max, min + value * 7 % (max - min + 1)};
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = t,
                                 .ints = ints,
                                 .n_int = t == DT_INDEX ? 3 : 2,
                                 .text = name,
                                 .n_text = (size_t)n});
}

static int64_t value_of_var(const graph *g, const node *var) {
  for (size_t i = 0; var_is_late(var->text) && i < g->vars.n; i++)
    if (!strcmp(g->vars.at[i].name, var->text)) return g->vars.at[i].value;
  const char *at = strstr(var->text, "_is_");
  return at ? strtoll(at + 4, NULL, 10) : 0;
}

int64_t graph_custom_uid(int64_t k, dtype input) { return k << 8 | input; }

/* Contents. */

static double special_float(uint64_t h) {
  static const double all[] = {NAN,  INFINITY, -INFINITY, 0.0,     -0.0,  1e-40, -1e-45, 0.5,
                               -0.5, 1.0,      -1.0,      2.5,     1e30,  -1e30, 65504,  1e-6,
                               3.0,  -2.0,     0x1p31,    -0x1p63, 255.5, 1.5,   -1.5,   0x1p24};
  return all[h % (sizeof all / sizeof *all)];
}

static double float_content(contents_kind k, uint64_t h) {
  double unit = (double)(h >> 11) * 0x1p-53;
  switch (k) {
  case CONTENTS_SMALL: return (double)((int64_t)(h % 65) - 32) / 4;
  case CONTENTS_SPECIAL: return h >> 60 < 6 ? special_float(h) : unit * 8 - 4;
  case CONTENTS_INDEX: return 0.1 + unit * 3;
  default: return unit * 6 - 3;
  }
}

static uint64_t int_content(contents_kind k, dtype t, uint64_t h) {
  const uint64_t all[] = {0,
                          1,
                          UINT64_MAX,
                          (uint64_t)dtype_min(t),
                          (uint64_t)dtype_max(t),
                          2,
                          7,
                          (uint64_t)dtype_min(t) + 1};
  switch (k) {
  case CONTENTS_SMALL: return scalar_cast(t, DT_I64, h % 17 - (dtype_is_signed(t) ? 8 : 0));
  case CONTENTS_SPECIAL: return scalar_cast(t, DT_I64, h >> 60 < 8 ? all[h % 8] : h % 100);
  case CONTENTS_INDEX: return scalar_cast(t, DT_I64, h >> 60 < 2 ? h % 40 - 10 : h % 5);
  default: return scalar_cast(t, DT_I64, h >> (h % 61));
  }
}

static void fill(interp_array *a, int64_t uid, size_t count) {
  contents_kind k = (contents_kind)(uid >> SHIFT_KIND & (CONTENTS_KINDS - 1));
  uint64_t number = rng_mix((uint64_t)uid >> SHIFT_NUMBER);
  for (size_t i = 0; i < count; i++) {
    uint64_t h = rng_mix(number + i);
    uint64_t bits = a->dtype == DT_BOOL        ? h & 1
                    : dtype_is_float(a->dtype) ? scalar_from_double(a->dtype, float_content(k, h))
                                               : int_content(k, a->dtype, h);
    scalar_store(a->dtype, (char *)a->data + i * dtype_bytes(a->dtype), bits);
  }
}

static void add_buffer(graph *g, const node *n) {
  graph_buffer b = {.n = n, .array = {.dtype = (dtype)n->dtype, .rank = n->rank}};
  size_t count = 1;
  for (size_t i = 0; i < n->rank; i++) {
    b.array.dims[i] = graph_size(g, n->dims[i]);
    count *= (size_t)b.array.dims[i];
  }
  b.array.bytes = count * dtype_bytes(b.array.dtype);
  b.array.data = arena_alloc(g->a, b.array.bytes + 1);
  fill(&b.array, n->ints[0], count);
  vec_push(g->a, &g->buffers, b);
}

void graph_prepare(graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  g->buffers.n = g->vars.n = g->customs.n = 0;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_VAR) vec_push(g->a, &g->vars, (interp_var){n->text, value_of_var(g, n)});
    if (n->op == OP_BUFFER) add_buffer(g, n);
    if (n->op == OP_CUSTOM) vec_push(g->a, &g->customs, n);
  }
}

/* Running. */

static const interp_array *contents(void *user, int64_t uid, int64_t version) {
  const graph *g = user;
  for (size_t i = 0; i < g->buffers.n; i++) {
    const graph_buffer *b = &g->buffers.at[i];
    if (b->n->ints[0] == uid && b->n->ints[1] == version) return &b->array;
  }
  return NULL;
}

static uint64_t element(const void *data, dtype t, size_t count, size_t i) {
  return count ? scalar_load(t, (const char *)data + i % count * dtype_bytes(t)) : 0;
}

void graph_custom(int64_t uid, int64_t output, size_t n_inputs, const void *const data[],
                  const size_t counts[], dtype type, void *result, size_t count) {
  dtype from = (dtype)(uid & 0xff);
  for (size_t i = 0; i < count; i++) {
    size_t first = n_inputs ? (size_t)output % n_inputs : 0;
    uint64_t v = n_inputs ? element(data[first], from, counts[first], i) : i;
    for (size_t k = 0; k < n_inputs; k++)
      if (element(data[k], from, counts[k], i) & 1) v = element(data[k], from, counts[k], i);
    scalar_store(type, (char *)result + i * dtype_bytes(type),
                 scalar_cast(type, n_inputs ? from : DT_I64, v));
  }
}

static tn_status run_custom(void *user, const node *n, const interp_array inputs[], size_t n_inputs,
                            interp_array *result, diag *d) {
  const void *data[8];
  size_t counts[8];
  (void)user, (void)d;
  for (size_t i = 0; i < n_inputs && i < 8; i++) {
    data[i] = inputs[i].data;
    counts[i] = inputs[i].bytes / dtype_bytes(inputs[i].dtype);
  }
  graph_custom(n->ints[0], n->ints[1], n_inputs, data, counts, result->dtype, result->data,
               result->bytes / dtype_bytes(result->dtype));
  return TN_OK;
}

interp_env graph_env(const graph *g) {
  return (interp_env){.vars = g->vars.at,
                      .n_vars = g->vars.n,
                      .buffer = contents,
                      .custom = run_custom,
                      .kernel = interp_kernel_node,
                      .user = (void *)g};
}

/** Computes an ITEM in a graph of its own, whose inputs follow from it as well. */
static int64_t value_of_item(const graph *g, const node *item) {
  const map *known = &g->items;
  uintptr_t found = (uintptr_t)map_get(known, item);
  if (found) return (int64_t)found - 1;
  const node *element = ir_item_element(g->ir, item);
  graph own = {.ir = g->ir, .a = g->a, .roots = &element, .n_roots = 1, .items = g->items};
  interp_array result;
  graph_prepare(&own);
  interp_env e = graph_env(&own);
  if (interp_tensor(&e, own.roots, 1, &result, g->a) != TN_OK) diag_rethrow(g->a->diag);
  int64_t value = (int64_t)scalar_load(DT_I64, result.data);
  map_set(g->a, &own.items, item, (void *)(uintptr_t)(value + 1));
  ((graph *)g)->items = own.items; /* one table: others were added meanwhile */
  return value;
}

bool graph_has_items(const graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ITEM) return true;
  return false;
}

int64_t graph_size(const graph *g, const node *n) {
  bool overflow = false;
  uint64_t args[64];
  if (n->op == OP_CONST) return node_int(n);
  if (n->op == OP_VAR) return value_of_var(g, n);
  if (n->op == OP_ITEM) return value_of_item(g, n);
  if (n->n_src > 64) diag_raise(g->a->diag, TN_ERR_INTERNAL, "a size of %u terms", n->n_src);
  for (uint32_t i = 0; i < n->n_src; i++) args[i] = (uint64_t)graph_size(g, n->src[i]);
  if (n->op == OP_AFFINE) return (int64_t)scalar_eval_affine(n->ints, n->n_src, args, &overflow);
  if (!n->n_src) diag_raise(g->a->diag, TN_ERR_INTERNAL, "a size uses %s", op_name((op)n->op));
  dtype operand = (dtype)n->src[scalar_typed_operand((op)n->op)]->dtype;
  return (int64_t)scalar_eval((op)n->op, operand, (dtype)n->dtype, args, &overflow);
}

int64_t graph_count(const graph *g, const node *n) {
  int64_t count = 1;
  for (size_t i = 0; i < n->rank; i++) count *= graph_size(g, n->dims[i]);
  return count;
}

static uint64_t bit_of(const map *ranges, const node *range) {
  return UINT64_C(1) << ((uintptr_t)map_get(ranges, range) - 1);
}

map graph_open_nodes(arena *a, const node_list *order) {
  map open = {0}, ranges = {0}, on = {0};
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_RANGE)
      map_set(a, &ranges, order->at[i], (void *)(uintptr_t)(ranges.n + 1));
  if (ranges.n > 64) diag_raise(a->diag, TN_ERR_INTERNAL, "more than 64 loops");
  for (size_t i = 0; i < order->n; i++) {
    const node *n = order->at[i];
    uint64_t bits = n->op == OP_RANGE ? bit_of(&ranges, n) : 0;
    for (uint32_t k = 0; k < n->n_src; k++) bits |= (uint64_t)(uintptr_t)map_get(&on, n->src[k]);
    if (n->op == OP_LOOP) bits &= ~bit_of(&ranges, n->src[0]);
    map_set(a, &on, n, (void *)(uintptr_t)bits);
    if (bits) map_set(a, &open, n, (void *)n);
  }
  return open;
}

/* Text. */

const char *graph_text(const graph *g) {
  str s = str_new(g->a);
  str_addf(&s, "; math=%d seed=%" PRIu64 "\n", g->math, g->seed);
  print_graph(&s, g->roots, g->n_roots);
  return str_text(&s);
}

void graph_read(graph *g, const char *text, size_t bytes) {
  const char *at = strstr(text, "math=");
  if (!at || sscanf(at, "math=%d", &g->math) != 1)
    diag_raise(g->a->diag, TN_ERR_FORMAT, "a graph without its math mode");
  at = strstr(text, "seed=");
  g->seed = at ? strtoull(at + 5, NULL, 10) : 0;
  node_list roots = parse_graph(g->ir, g->a, text, bytes);
  g->roots = roots.at;
  g->n_roots = roots.n;
}
