/* ONNX Gradient, of its preview of training: derivatives in reverse mode. The nodes between the
   tensors that `xs` and `zs` name and the tensor `y` are built once more, of the values that the
   node gives for those (equal nodes of the graph are one node), then differentiated from the last
   one back. Of a `y` with several elements it is the gradient of their sum. */
#include "formats/onnx/ops/gradient_rules.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

#include <string.h>

/** A named tensor that depends on `xs` or `zs`. */
typedef struct slot {
  value v;
  value d;       /* the gradient so far; without a node: none yet */
  bool is_of_xs; /* it depends on `xs` */
  bool is_given; /* one of `xs` and `zs`: no node is differentiated for it */
} slot;

typedef struct gradient {
  onnx_call *c;
  string_map slots; /* name → slot */
  VEC(const onnx_node *) nodes;
  map found; /* the nodes, and others that were seen */
} gradient;

static slot *slot_of(const gradient *k, const char *name) {
  return *name ? string_map_get(&k->slots, name) : NULL;
}

static void add_slot(gradient *k, const char *name, slot s) {
  arena *a = onnx_builder(k->c)->arena;
  string_map_set(a, &k->slots, name, arena_copy(a, &s, sizeof s));
}

static void add_variables(gradient *k, const onnx_attribute *names, size_t first, bool is_of_xs) {
  for (size_t i = 0; names && i < names->strings.n; i++) {
    const char *name = names->strings.at[i].at;
    if (slot_of(k, name))
      onnx_fail(k->c, TN_ERR_FORMAT, "'%.200s' is named twice in xs and zs", name);
    onnx_named_value(k->c, name); /* raises if there is none */
    add_slot(k, name,
             (slot){.v = onnx_input(k->c, first + i), .is_of_xs = is_of_xs, .is_given = true});
  }
}

/* The nodes in order. */

/** A node whose operands are being followed. */
typedef struct visit {
  const onnx_node *n;
  size_t next;
} visit;

/** Raises for a node whose operands its inputs do not tell: it has a graph, or is a Gradient. */
static void check_inputs_known(const gradient *k, const onnx_node *n) {
  for (size_t i = 0; i < n->attributes.n; i++)
    if (n->attributes.at[i].type == ONNX_ATTRIBUTE_GRAPH)
      onnx_fail(k->c, TN_ERR_UNSUPPORTED, "y depends on %.100s node '%.200s', which has a graph",
                n->op_type, onnx_node_name(n));
  if (!strcmp(n->op_type, "Gradient") && !strcmp(n->domain, k->c->node->domain))
    onnx_fail(k->c, TN_ERR_UNSUPPORTED,
              "y depends on Gradient node '%.200s': gradients of gradients are not supported",
              onnx_node_name(n));
}

/** The node that gives a tensor; NULL: it is a variable, an input or a constant, or was seen. */
static const onnx_node *unseen_producer(gradient *k, const char *name) {
  if (!*name || slot_of(k, name)) return NULL;
  const onnx_node *n = onnx_named_value(k->c, name)->producer;
  if (!n || map_has(&k->found, n)) return NULL;
  map_set(onnx_builder(k->c)->arena, &k->found, n, NULL);
  check_inputs_known(k, n);
  return n;
}

/** Lists the nodes that `name` depends on, each behind those that it reads. */
static void list_nodes(gradient *k, const char *name) {
  arena *a = onnx_builder(k->c)->arena;
  VEC(visit) open = {0};
  const onnx_node *n = unseen_producer(k, name);
  if (n) vec_push(a, &open, ((visit){n, 0}));
  while (open.n) {
    visit *last = &open.at[open.n - 1];
    if (last->next == last->n->inputs.n) {
      vec_push(a, &k->nodes, last->n);
      open.n--;
      continue;
    }
    n = unseen_producer(k, last->n->inputs.at[last->next++]);
    if (n) vec_push(a, &open, ((visit){n, 0}));
  }
}

/* Forward. */

/** The operands of a node; true if one depends on the variables. */
static bool read_operands(const gradient *k, const onnx_node *n, value in[], bool *is_of_xs) {
  bool depends = false;
  *is_of_xs = false;
  for (size_t i = 0; i < n->inputs.n; i++) {
    const char *name = n->inputs.at[i];
    const slot *s = slot_of(k, name);
    if (*name) in[i] = s ? s->v : onnx_named_value(k->c, name)->v;
    depends |= s != NULL;
    *is_of_xs |= s && s->is_of_xs;
  }
  return depends;
}

static value *operands(const gradient *k, const onnx_node *n) {
  return arena_calloc(onnx_builder(k->c)->arena, n->inputs.n + 1, sizeof(value));
}

static void build_nodes(gradient *k) {
  for (size_t i = 0; i < k->nodes.n; i++) {
    const onnx_node *n = k->nodes.at[i];
    bool is_of_xs;
    value *in = operands(k, n);
    if (!read_operands(k, n, in, &is_of_xs)) continue;
    const value *out = onnx_build_node(k->c, n, in);
    for (size_t o = 0; o < n->outputs.n; o++)
      if (*n->outputs.at[o] && out[o].node && !slot_of(k, n->outputs.at[o]))
        add_slot(k, n->outputs.at[o], (slot){.v = out[o], .is_of_xs = is_of_xs});
  }
}

/* Backward. */

static void add_gradient(gradient *k, slot *s, value d) {
  builder *b = onnx_builder(k->c);
  sizes to = sizes_of(s->v.node);
  d = build_cast(b, gradient_sum_to(b, d, &to), (dtype)s->v.node->dtype);
  s->d = s->d.node ? build_add(b, s->d, d) : d;
}

/** Adds what a node's result contributes to the gradients of its operands. */
static void differentiate(gradient *k, const onnx_node *n, const slot *y) {
  bool is_of_xs;
  onnx_call call = onnx_call_of(k->c, n);
  value *in = operands(k, n), *dx = operands(k, n);
  read_operands(k, n, in, &is_of_xs);
  call.inputs = in;
  gradient_rule rule = gradient_rule_of(n);
  bool is_function = onnx_function_of_node(k->c->m->model, n) != NULL;
  if (!rule || is_function || onnx_has_attribute(&call, "broadcast"))
    onnx_fail(k->c, TN_ERR_UNSUPPORTED, "the gradient of %.100s (node '%.200s') is not supported",
              n->op_type, onnx_node_name(n));
  gradient_call g = {.c = &call, .y = y->v, .dy = y->d, .dx = dx};
  rule(&g);
  for (size_t i = 0; i < n->inputs.n; i++) {
    slot *s = slot_of(k, n->inputs.at[i]);
    if (s && s->is_of_xs && dx[i].node) add_gradient(k, s, dx[i]);
  }
}

/** From the last node to the first: each has the whole gradient of its result by then. */
static void differentiate_nodes(gradient *k) {
  for (size_t i = k->nodes.n; i-- > 0;) {
    const onnx_node *n = k->nodes.at[i];
    for (size_t o = 0; o < n->outputs.n; o++) {
      const slot *y = slot_of(k, n->outputs.at[o]);
      if (y && y->d.node && !y->is_given) differentiate(k, n, y);
    }
  }
}

static value filled_like(builder *b, value x, double v) {
  sizes s = sizes_of(x.node);
  return build_full(b, &s, (dtype)x.node->dtype, v);
}

/** Gradients are of floats: the variables, and y. */
static void check_floats(const onnx_call *c, const char *name, value v) {
  if (!dtype_is_float((dtype)v.node->dtype))
    onnx_fail(c, TN_ERR_DTYPE, "'%.200s' is %s, and has no gradient", name,
              dtype_name((dtype)v.node->dtype));
}

void onnx_training_Gradient(onnx_call *c) {
  builder *b = onnx_builder(c);
  gradient k = {.c = c};
  const char *y = onnx_string_attribute(c, "y", "");
  const onnx_attribute *xs = onnx_find_attribute(c, "xs", ONNX_ATTRIBUTE_STRINGS),
                       *zs = onnx_find_attribute(c, "zs", ONNX_ATTRIBUTE_STRINGS);
  size_t n = xs->strings.n, more = zs ? zs->strings.n : 0;
  if (c->n_inputs != n + more || c->n_outputs > n)
    onnx_fail(c, TN_ERR_FORMAT, "%zu inputs and %zu outputs do not fit to %zu xs and %zu zs",
              c->n_inputs, c->n_outputs, n, more);
  add_variables(&k, xs, 0, true);
  add_variables(&k, zs, n, false);
  list_nodes(&k, y);
  build_nodes(&k);
  slot *last = slot_of(&k, y);
  if (last && last->is_of_xs) {
    check_floats(c, y, last->v);
    last->d = filled_like(b, last->v, 1);
    differentiate_nodes(&k);
  }
  for (size_t i = 0; i < c->n_outputs; i++) {
    const slot *x = slot_of(&k, xs->strings.at[i].at);
    check_floats(c, xs->strings.at[i].at, x->v);
    c->outputs[i] = x->d.node ? x->d : filled_like(b, x->v, 0);
  }
}
