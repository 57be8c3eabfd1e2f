/* ONNX Loop and Scan on the host: the body becomes a model of its own, whose inputs are the states
   and what the body reads of the graphs around it. A first step of the host runs the model step by
   step and tells the sizes of the results; one more for each result hands its array out.

   Sizes of the states that no step changes are numbers of the body's model, or its variables, named
   by the sizes of the model around. Which ones a step changes is found by importing the body: those
   that come out otherwise than they went in are open in the next import. A body that fits no open
   sizes, or whose steps change the rank of a state, is late: it is imported by runs. The model
   around needs the ranks of results: they follow from imports for the ranks that states have in the
   first step, in the second, and so on until they stay. */
#include "formats/onnx/ops/onnx_host_loop.h"

#include "formats/onnx/importer/shape_tensors.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"

#include <string.h>

/* The attempt to make the loop one of the plan. */

typedef struct attempt {
  onnx_call *c;
  void (*build)(onnx_call *c);
} attempt;

static void build_attempt(void *arg) {
  const attempt *k = arg;
  k->build(k->c);
}

/** Builds a loop that waits for values of inputs, as for its trip count, with another trip count:
   if that fails too, no value helps, and its failure is that of the loop. Else the first one is. */
static tn_status try_any_trips(attempt *k) {
  import *m = k->c->m;
  const tn_failure first = m->b.diag->failure;
  onnx_names deciding = {0};
  for (size_t i = 0; i < m->deciding.n; i++) vec_push(m->b.arena, &deciding, m->deciding.at[i]);
  m->deciding.n = 0;
  diag_clear(m->b.diag);
  m->assumes_trips = true;
  tn_status s = diag_catch(m->b.diag, build_attempt, k);
  m->assumes_trips = false;
  if (s == TN_OK || importer_lacks_values(m)) {
    m->b.diag->failure = first;
    m->deciding = deciding;
    diag_rethrow(m->b.diag);
  }
  m->uses_data = true;
  return s;
}

const char *onnx_try_in_plan(onnx_call *c, void (*build)(onnx_call *c)) {
  import *m = c->m;
  attempt k = {c, build};
  tn_status s = diag_catch(m->b.diag, build_attempt, &k);
  if (s == TN_OK) return NULL;
  if (importer_lacks_values(m)) s = try_any_trips(&k);
  bool may_host = s == TN_ERR_UNSUPPORTED || s == TN_ERR_SHAPE;
  m->refuses_loop |= may_host;
  if (!may_host || !m->hosts_loops) diag_rethrow(m->b.diag);
  const char *why = arena_printf(&m->host->arena, "%s", m->b.diag->text);
  diag_clear(m->b.diag);
  memset(c->outputs, 0, c->n_outputs * sizeof *c->outputs);
  return why;
}

/* Inputs of the body's model. */

/** An array of the step that runs the loop, of which the body gets all or, of a scanned one, an
    entry. */
typedef struct loop_input {
  const char *name;  /* in the body */
  const node *x;     /* of strings their numbers */
  size_t first_axis; /* 1: scanned */
  bool is_string;
  size_t rank;  /* of what the body gets; of a state in the step for which it is imported */
  bool is_open; /* steps change it otherwise than single sizes: all sizes are open */
  size_t group[SIZES_MAX_RANK]; /* 0: no step changes the size of this axis; else it is changed like
                                   those of the same group and first size */
} loop_input;

/** A size that is open in the body. Those of one name are equal: of equal sizes around it, as far
   as steps change them alike. */
typedef struct body_size {
  const node *around;
  size_t group;
  const char *name; /* of the first input and axis of that size, as "x:0" */
} body_size;

typedef struct loop_import {
  onnx_call *c;
  const onnx_loop_form *f;
  arena *a;               /* of the steps of the host */
  size_t n_first;         /* inputs and outputs of the body before the states: of a Loop one each */
  VEC(loop_input) inputs; /* states, scanned arrays, then values of graphs around */
  onnx_tensors constants; /* values of graphs around that are known */
  string_map seen;        /* names of these values */
  onnx_names absent;      /* those that are inputs of a function that its call leaves out */
  onnx_nodes made;        /* nodes of the body that make sequences of inputs */
  VEC(body_size) sizes;   /* that are open in the body */
  VEC(tn_model_size) changing; /* sizes of the body that a step changes */
  size_t n_rank_changes;       /* steps so far that change the rank of a state */
  importer_loop spec;
} loop_import;

/** Adds an input, or a tensor of the numbers that strings have. */
static void add_input(loop_import *l, const char *name, value v, size_t first_axis) {
  import *m = l->c->m;
  const node *numbers = importer_find_strings(m, v);
  loop_input in = {.name = name, .first_axis = first_axis, .is_string = numbers != NULL};
  in.x = numbers ? numbers : value_typed(&m->b, v).node;
  if (in.x->rank > TN_MAX_RANK)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED, "'%.200s' has %u dimensions; at most %d are supported",
              name, in.x->rank, TN_MAX_RANK);
  in.rank = in.x->rank - first_axis;
  vec_push(l->a, &l->inputs, in);
}

/** A constant of the body, of n elements. */
static void add_constant(loop_import *l, const char *name, const node *x, size_t n,
                         const void *data) {
  onnx_tensor t = {.name = name,
                   .dtype = (onnx_dtype)x->dtype,
                   .elements = n,
                   .bytes = n * dtype_bytes(x->dtype),
                   .data = data};
  if (x->rank) vec_push(l->a, &t.dims, (int64_t)n);
  vec_push(l->a, &l->constants, arena_copy(l->a, &t, sizeof t));
}

/** A weight of the file, or the value of an input, copied, as runs may import the body once more.
 */
static onnx_tensor *copy_weight(loop_import *l, const onnx_tensor *weight) {
  const import *m = l->c->m;
  onnx_tensor *t = arena_copy(l->a, weight, sizeof *weight);
  if (!m->n_given || weight < m->given || weight >= m->given + m->n_given) return t;
  t->dims = (onnx_ints){0};
  for (size_t i = 0; i < weight->dims.n; i++) vec_push(l->a, &t->dims, weight->dims.at[i]);
  t->data = arena_copy(l->a, weight->data, weight->bytes);
  return t;
}

/** Adds a value as a constant, if it is a weight, or few elements that are known; else false. */
static bool add_known(loop_import *l, const char *name, value v) {
  import *m = l->c->m;
  const onnx_tensor *weight = map_get(&m->weights, v.node);
  if (weight && !weight->is_computed) {
    onnx_tensor *t = copy_weight(l, weight);
    t->name = name;
    vec_push(l->a, &l->constants, t);
    return true;
  }
  size_t n, bytes = dtype_bytes(v.node->dtype);
  if (v.node->rank > 1 || v.node->dtype == DT_INDEX) return false;
  const node *const *e = constant_tensor_elements(m, v, &n);
  if (!e) return false;
  char *data = arena_alloc(l->a, n * bytes + 1);
  for (size_t i = 0; i < n; i++) {
    int64_t bits = node_int(e[i]);
    memcpy(data + i * bytes, &bits, bytes); /* little-endian, as the file's */
  }
  add_constant(l, name, v.node, n, data);
  return true;
}

static void add_tensor(loop_import *l, const char *name, value v) {
  bool is_string = importer_find_strings(l->c->m, v);
  if (is_string || !add_known(l, name, value_typed(onnx_builder(l->c), v)))
    add_input(l, name, v, 0);
}

/** Adds the tensors of a sequence, and a node of the body that makes it of them; for an optional
    value that is absent, one that makes such. */
static void add_sequence(loop_import *l, const char *name, const importer_sequence *s) {
  onnx_node n = {.name = "", .domain = "", .overload = ""};
  if (s->is_map)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED,
              "the body reads '%.200s', a map; and no loop of a plan can be it: %.800s", name,
              l->f->why);
  n.op_type = s->is_absent ? "Optional" : s->n ? "SequenceConstruct" : "SequenceEmpty";
  for (size_t i = 0; i < s->n; i++) {
    const char *of = arena_printf(l->a, "%s[%zu]", name, i);
    add_tensor(l, of, s->at[i]);
    vec_push(l->a, &n.inputs, of);
  }
  vec_push(l->a, &n.outputs, name);
  vec_push(l->a, &l->made, n);
}

/** Adds a value of the graphs around the body. */
static void add_outer_value(void *user, const char *name) {
  loop_import *l = user;
  if (string_map_get(&l->seen, name)) return;
  string_map_set(l->a, &l->seen, name, l);
  value v = onnx_named_value(l->c, name)->v;
  const importer_sequence *s = v.node ? importer_find_sequence(l->c->m, v) : NULL;
  if (!v.node) {
    vec_push(l->a, &l->absent, name);
  } else if (s) {
    add_sequence(l, name, s);
  } else {
    add_tensor(l, name, v);
  }
}

static void list_inputs(loop_import *l) {
  const onnx_loop_form *f = l->f;
  const onnx_value *in = f->body->inputs.at + (f->is_scan ? 0 : 2);
  static const bool holds = true;
  for (size_t i = 0; i < f->n_states; i++)
    add_input(l, in[i].name, onnx_any_input(l->c, f->first_state + i), 0);
  for (size_t i = 0; i < f->n_scanned; i++)
    add_input(l, in[f->n_states + i].name, f->scanned[i], 1);
  if (!f->is_scan) /* a step is taken where the condition holds */
    add_constant(l, f->body->inputs.at[1].name,
                 ir_const_bits(onnx_builder(l->c)->ir, DT_BOOL, true), 1, &holds);
  onnx_node body = {.op_type = l->c->node->op_type};
  onnx_attribute graph = {.name = "body", .g = (onnx_graph *)f->body};
  vec_push(l->a, &body.attributes, graph);
  onnx_node_for_names(l->a, &body, add_outer_value, l);
}

/** The name of the size of an input's axis in the body. */
static const char *size_name(loop_import *l, const loop_input *in, size_t axis) {
  body_size made = {.around = in->x->dims[axis], .group = in->group[axis]};
  for (size_t i = 0; i < l->sizes.n; i++)
    if (l->sizes.at[i].around == made.around && l->sizes.at[i].group == made.group)
      return l->sizes.at[i].name;
  made.name = arena_printf(l->a, "%s:%zu", in->name, axis - in->first_axis);
  vec_push(l->a, &l->sizes, made);
  return made.name;
}

/** Notes a size that a step changes. Its first values are often the smallest: kernels that serve
   all of them are made fast for a usual one. */
static void add_changing(loop_import *l, const char *name) {
  enum { USUAL = 64 };
  tn_model_size size = TN_MODEL_SIZE_INIT;
  for (size_t i = 0; i < l->changing.n; i++)
    if (!strcmp(l->changing.at[i].name, name)) return;
  size.name = name;
  size.likely = USUAL;
  vec_push(l->a, &l->changing, size);
}

static onnx_value typed_input(loop_import *l, const loop_input *in) {
  onnx_value v = {.name = in->name};
  v.type.kind = ONNX_TYPE_TENSOR;
  v.type.dtype = in->is_string ? ONNX_STRING : (int32_t)in->x->dtype;
  v.type.has_shape = true;
  for (size_t k = 0; k < in->rank && in->is_open; k++)
    vec_push(l->a, &v.type.dims, ((onnx_dim){.value = -1, .param = ""}));
  for (size_t k = in->first_axis; k < in->x->rank && !in->is_open; k++) {
    const node *size = in->x->dims[k];
    bool is_number = node_is_const(size) && !in->group[k];
    onnx_dim d = {.value = is_number ? node_int(size) : -1, .param = ""};
    if (!is_number) d.param = size_name(l, in, k);
    if (in->group[k]) add_changing(l, d.param);
    vec_push(l->a, &v.type.dims, d);
  }
  return v;
}

/* The body as a model. */

/** Adds outputs, each under a name of its own, as those of a model are. */
static void add_outputs(loop_import *l, onnx_graph *g) {
  string_map seen = {0};
  for (size_t i = 0; i < l->f->body->outputs.n; i++) {
    onnx_value v = l->f->body->outputs.at[i];
    if (string_map_get(&seen, v.name)) {
      onnx_node copy = {.name = "", .op_type = "Identity", .domain = "", .overload = ""};
      vec_push(l->a, &copy.inputs, v.name);
      v.name = arena_printf(l->a, "%s\t%zu", v.name, i);
      vec_push(l->a, &copy.outputs, v.name);
      vec_push(l->a, &g->nodes, copy);
    }
    string_map_set(l->a, &seen, v.name, l);
    vec_push(l->a, &g->outputs, v);
  }
}

static onnx_graph body_graph(loop_import *l) {
  const onnx_graph *body = l->f->body;
  onnx_graph g = {.name = body->name,
                  .is_of_function = onnx_is_in_function(l->c),
                  .absent = l->absent,
                  .given = onnx_function_attributes(l->c, l->a)};
  onnx_value step = {.name = l->f->is_scan ? "" : body->inputs.at[0].name,
                     .type = {.kind = ONNX_TYPE_TENSOR, .dtype = ONNX_I64, .has_shape = true}};
  if (!l->f->is_scan) vec_push(l->a, &g.inputs, step);
  for (size_t i = 0; i < l->inputs.n; i++)
    vec_push(l->a, &g.inputs, typed_input(l, &l->inputs.at[i]));
  for (size_t i = 0; i < body->initializers.n; i++)
    vec_push(l->a, &g.initializers, body->initializers.at[i]);
  for (size_t i = 0; i < l->constants.n; i++) vec_push(l->a, &g.initializers, l->constants.at[i]);
  for (size_t i = 0; i < l->made.n; i++) vec_push(l->a, &g.nodes, l->made.at[i]);
  for (size_t i = 0; i < body->nodes.n; i++) vec_push(l->a, &g.nodes, body->nodes.at[i]);
  add_outputs(l, &g);
  return g;
}

static const bool *copy_flags(const loop_import *l, const bool from[], size_t n) {
  return from ? arena_copy(l->a, from, n * sizeof *from) : NULL;
}

static void describe_loop(loop_import *l) {
  const onnx_loop_form *f = l->f;
  size_t results = f->n_states + f->n_entries, n = 0;
  bool *wanted = arena_calloc(l->a, results + 1, sizeof *wanted); /* at least the node's outputs */
  onnx_find_read_outputs(l->c, wanted);
  int64_t *fixed = arena_alloc(l->a, (l->inputs.n * TN_MAX_RANK + 1) * sizeof *fixed);
  size_t *ranks = arena_alloc(l->a, (l->inputs.n + 1) * sizeof *ranks);
  for (size_t i = 0; i < l->inputs.n; i++) ranks[i] = l->inputs.at[i].x->rank;
  for (size_t i = 0; i < l->inputs.n; i++)
    for (size_t k = 0; k < l->inputs.at[i].x->rank; k++) {
      const node *size = l->inputs.at[i].x->dims[k];
      fixed[n++] = node_is_const(size) ? node_int(size) : -1;
    }
  l->spec = (importer_loop){.opsets = l->c->m->opsets,
                            .may_be_late = l->c->m->has_late_bodies,
                            .is_scan = f->is_scan,
                            .has_trips = !f->is_scan && onnx_has_input(l->c, 0),
                            .has_condition = !f->is_scan && onnx_has_input(l->c, 1),
                            .n_states = f->n_states,
                            .n_scanned = f->n_scanned,
                            .n_entries = f->n_entries,
                            .reads_backward = copy_flags(l, f->reads_backward, f->n_scanned),
                            .writes_backward = copy_flags(l, f->writes_backward, f->n_entries),
                            .is_wanted = wanted,
                            .ranks = ranks,
                            .fixed = fixed};
}

/** Checks that a step gives a state of the same type. */
static void check_state(const loop_import *l, size_t i, const importer_loop_body *made) {
  const importer_type *after = &made->types[l->n_first + i];
  const loop_input *in = &l->inputs.at[i];
  if (in->x->dtype != after->dtype || after->is_string != in->is_string)
    onnx_fail(l->c, TN_ERR_DTYPE, "state '%.100s' is %s, but becomes %s", in->name,
              dtype_name((dtype)in->x->dtype), dtype_name(after->dtype));
}

/** The trip count; -1: it is not known. */
static int64_t known_trips(const loop_import *l) {
  size_t n;
  if (!l->spec.has_trips) return -1;
  const node *const *e = shape_tensor_elements(l->c->m, l->c->inputs[0], &n);
  if (!e || n != 1 || !node_is_const(e[0])) return -1;
  int64_t trips = node_int(e[0]);
  return trips > 0 ? trips : 0;
}

/** Refuses a state whose rank has no end known; a trip count that is an input of the model decides
   on the rank. */
static _Noreturn void refuse_ranks(const loop_import *l, size_t state) {
  import *m = l->c->m;
  m->deciding.n = 0;
  m->uses_data = false;
  bool is_known = known_trips(l) >= 0; /* lists what decides */
  m->uses_data |= is_known;
  onnx_fail(l->c, TN_ERR_UNSUPPORTED,
            "each step changes the rank of state '%.100s', so that only the number of steps tells "
            "the rank of the result; give the trip count when the model is loaded",
            l->inputs.at[state].name);
}

/** Takes the ranks that states have after a step for those before the next one; false: they stay,
   or there is no next one. */
static bool take_ranks(loop_import *l, const importer_loop_body *made) {
  enum { MOST_CHANGES = 4, MOST_OF_KNOWN_TRIPS = 64 };
  const importer_type *after = made->types + l->n_first;
  const import *m = l->c->m;
  size_t changed = SIZE_MAX;
  for (size_t i = 0; i < l->f->n_states; i++) {
    check_state(l, i, made);
    if (l->inputs.at[i].rank != after[i].rank) changed = i;
  }
  if (changed == SIZE_MAX) return false;
  if (!m->has_late_bodies)
    onnx_fail(l->c, TN_ERR_UNSUPPORTED, "a step changes the rank of state '%.100s'",
              l->inputs.at[changed].name);
  int64_t trips = known_trips(l);
  if (++l->n_rank_changes > (trips < 0 ? MOST_CHANGES : MOST_OF_KNOWN_TRIPS))
    refuse_ranks(l, changed);
  if (trips >= 0 && l->n_rank_changes >= (size_t)trips) return false;
  for (size_t i = 0; i < l->f->n_states; i++) {
    l->inputs.at[i].rank = after[i].rank;
    l->inputs.at[i].is_open = true;
  }
  return true;
}

/** The axis of a state before a step and after it. */
typedef struct state_axis {
  const node *before, *after;
  size_t *group;
} state_axis;

/** Puts axes that were taken to change alike into other groups where a step changes them otherwise
    than the first of them; false: all change alike. */
static bool split_groups(const state_axis axes[], size_t n) {
  bool found = false;
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n && *axes[i].group; k++) {
      if (*axes[k].group != *axes[i].group || axes[k].before != axes[i].before ||
          axes[k].after == axes[i].after)
        continue;
      *axes[k].group = *axes[i].group + 1;
      found = true;
    }
  return found;
}

/** Notes the sizes of states that a step changes; false: there are no new ones. */
static bool note_changes(loop_import *l, const importer_loop_body *made) {
  VEC(state_axis) axes = {0};
  bool found = false;
  for (size_t i = 0; i < l->f->n_states; i++) {
    const node *before = made->inputs[l->n_first + i], *after = made->outputs[l->n_first + i];
    for (size_t k = 0; k < before->rank; k++) {
      state_axis x = {before->dims[k], after->dims[k], &l->inputs.at[i].group[k]};
      vec_push(l->a, &axes, x);
    }
  }
  for (size_t i = 0; i < axes.n; i++) {
    if (*axes.at[i].group || axes.at[i].before == axes.at[i].after) continue;
    *axes.at[i].group = 1;
    found = true;
  }
  return found || split_groups(axes.at, axes.n);
}

/** Imports the body. Its run is kept as a step, which frees the body in the end. */
static importer_loop_body import_once(loop_import *l) {
  import *m = l->c->m;
  l->changing.n = l->sizes.n = 0;
  l->spec.body = body_graph(l);
  l->spec.changing = l->changing.at;
  l->spec.n_changing = l->changing.n;
  importer_loop_body made = m->callbacks.loop(m->callbacks.user, &l->spec);
  vec_push(&m->host->arena, &m->host->all, made.run);
  return made;
}

static void forget_body(loop_import *l, const importer_loop_body *made) {
  made->run.destroy(made->run.options);
  l->c->m->host->all.n--;
}

/** Opens the body as one that runs import for the shapes that its states have. */
static importer_loop_body import_late(loop_import *l, const importer_loop_body *made) {
  size_t n = l->n_first + l->f->n_states + l->f->n_entries;
  importer_type *types = arena_copy(l->a, made->types, n * sizeof *types);
  bool takes_none = l->n_rank_changes && known_trips(l) == 0;
  for (size_t i = 0; i < l->f->n_states; i++) {
    if (takes_none) types[l->n_first + i].rank = l->inputs.at[i].x->rank;
    l->inputs.at[i].is_open = true;
  }
  l->spec.late = types;
  const char *reason = l->n_rank_changes ? NULL : made->late_reason;
  l->spec.late_reason = reason ? arena_printf(l->a, "%s", reason) : NULL; /* the body has it */
  forget_body(l, made);
  return import_once(l);
}

/** Imports the body, again as long as states turn out to change. */
static importer_loop_body import_loop(loop_import *l) {
  for (;;) {
    importer_loop_body made = import_once(l);
    bool changes = take_ranks(l, &made);
    if (!changes && (made.is_late || l->n_rank_changes)) return import_late(l, &made);
    if (!changes && !note_changes(l, &made)) return made;
    forget_body(l, &made);
  }
}

/* Steps of the host. */

/** The sizes that the steps do not know, as a vector; none: no value. */
static value sizes_vector(const loop_import *l) {
  builder *b = onnx_builder(l->c);
  VEC(value) open = {0};
  for (size_t i = 0; i < l->inputs.n; i++)
    for (size_t k = 0; k < l->inputs.at[i].x->rank; k++) {
      const node *size = l->inputs.at[i].x->dims[k];
      if (!node_is_const(size)) vec_push(l->a, &open, value_of(ir_cast(b->ir, size, DT_I64)));
    }
  return open.n ? build_stack(b, open.at, open.n, 0) : (value){0};
}

static value one_element(const loop_import *l, size_t i, dtype t) {
  value v = onnx_scalar_input(l->c, i);
  if (v.node->dtype != t)
    onnx_fail(l->c, TN_ERR_DTYPE, "the %s is %s, expected %s", i ? "condition" : "trip count",
              dtype_name((dtype)v.node->dtype), dtype_name(t));
  return v;
}

/** The step that runs the loop; its result is a vector of n numbers. */
static value build_run(loop_import *l, const importer_loop_body *made, size_t n) {
  builder *b = onnx_builder(l->c);
  VEC(value) in = {0};
  if (l->spec.has_trips) vec_push(l->a, &in, one_element(l, 0, DT_I64));
  if (l->spec.has_condition) vec_push(l->a, &in, one_element(l, 1, DT_BOOL));
  for (size_t i = 0; i < l->inputs.n; i++) vec_push(l->a, &in, value_of(l->inputs.at[i].x));
  value open = sizes_vector(l);
  if (open.node) vec_push(l->a, &in, open);
  host_step run = made->run;
  run.destroy = NULL; /* the step that keeps the body has it */
  run.what =
      arena_printf(&l->c->m->host->arena, "a loop that the host runs%s%s (%s)",
                   l->c->m->is_body ? " in each step of another" : "",
                   made->is_late ? ", with a plan for each shape of its states" : "", l->f->why);
  sizes s = {1, {ix_const(b->ir, (int64_t)n)}};
  return onnx_host_step(l->c, run, in.at, in.n, DT_I64, &s);
}

/* Sizes of results. */

typedef struct size_translation {
  const loop_import *l;
  const importer_loop_body *made;
  bool fails;
} size_translation;

static bool is_index(const node *n, void *user) {
  (void)user;
  return n->dtype == DT_INDEX;
}

/** The size around the loop that a variable of the body stands for, in all steps. */
static const node *outer_size(void *user, const node *n, const node *const src[]) {
  size_translation *t = user;
  (void)src;
  if (n->op != OP_VAR) return NULL;
  for (size_t i = 0; i < t->l->inputs.n; i++) {
    const loop_input *in = &t->l->inputs.at[i];
    const node *port = t->made->inputs[t->l->n_first + i];
    for (size_t k = 0; k < port->rank; k++)
      if (port->dims[k] == n && !in->group[in->first_axis + k])
        return in->x->dims[in->first_axis + k];
  }
  t->fails = true;
  return NULL;
}

/** The size of a result's axis in the body in terms of the sizes around the loop; NULL: steps
   differ in it, or compute it. */
static const node *translate_size(loop_import *l, const importer_loop_body *made, size_t result,
                                  size_t axis) {
  const node *size = made->outputs[l->n_first + result]->dims[axis];
  size_translation t = {.l = l, .made = made};
  node_list parts = topo_sort(l->a, &size, 1, is_index, NULL);
  const node *out;
  for (size_t i = 0; i < parts.n; i++) t.fails |= parts.at[i]->op == OP_ITEM;
  if (t.fails) return NULL;
  ir_copy(onnx_builder(l->c)->ir, l->a, &size, 1, outer_size, &t, &out);
  return t.fails ? NULL : out;
}

/** The sizes of a result, with `run`'s elements from `first` on where steps differ. Returns where
    those of the next result begin. */
static size_t find_sizes(loop_import *l, const importer_loop_body *made, value run, size_t result,
                         size_t first, sizes *out) {
  ir *g = onnx_builder(l->c)->ir;
  size_t rank = made->types[l->n_first + result].rank;
  bool is_entry = result >= l->f->n_states;
  *out = (sizes){.rank = rank + is_entry};
  for (size_t k = 0; k < out->rank; k++) {
    bool counts = is_entry && !k;
    bool is_known = !made->is_late && (is_entry ? k > 0 : !l->inputs.at[result].group[k]);
    const node *known = is_known ? translate_size(l, made, result, k - is_entry) : NULL;
    const node *at = ix_const(g, counts ? 0 : (int64_t)(first + k - is_entry));
    if (!known) known = ir_item(g, run.node, &at, 0, ix_const(g, ONNX_SIZE_MAX));
    out->at[k] = known;
  }
  return first + rank;
}

static void set_results(loop_import *l, const importer_loop_body *made, value results[]) {
  size_t n = 1, all = l->f->n_states + l->f->n_entries;
  for (size_t i = 0; i < all; i++)
    if (l->spec.is_wanted[i]) n += made->types[l->n_first + i].rank;
  value run = build_run(l, made, n);
  n = 1;
  for (size_t i = 0; i < all; i++) {
    sizes s;
    if (!l->spec.is_wanted[i]) continue;
    const importer_type *t = &made->types[l->n_first + i];
    n = find_sizes(l, made, run, i, n, &s);
    if (s.rank > TN_MAX_RANK)
      onnx_fail(l->c, TN_ERR_UNSUPPORTED, "output %zu has %zu dimensions", i, s.rank);
    value v = onnx_host_step(l->c, made->results[i], &run, 1, t->dtype, &s);
    results[i] = t->is_string ? onnx_strings(l->c, v) : v;
  }
}

/** Raises if the loop is in one of the plan, whose steps compute what it reads: before its body is
    imported, as the import of a body may import others. */
static void refuse_in_loop(const loop_import *l) {
  if (l->spec.has_trips) onnx_refuse_host_in_loop(l->c, l->c->inputs[0].node);
  if (l->spec.has_condition) onnx_refuse_host_in_loop(l->c, l->c->inputs[1].node);
  for (size_t i = 0; i < l->inputs.n; i++) onnx_refuse_host_in_loop(l->c, l->inputs.at[i].x);
}

void onnx_host_loop(onnx_call *c, const onnx_loop_form *f, value results[]) {
  loop_import l = {.c = c, .f = f, .a = &c->m->host->arena, .n_first = f->is_scan ? 0 : 1};
  list_inputs(&l);
  describe_loop(&l);
  refuse_in_loop(&l);
  importer_loop_body made = import_loop(&l);
  const node *goes_on = f->is_scan || made.is_late ? NULL : made.outputs[0];
  if (!f->is_scan && made.types->dtype != DT_BOOL)
    onnx_fail(c, TN_ERR_DTYPE, "the condition is %s, expected bool", dtype_name(made.types->dtype));
  if (goes_on && !l.spec.has_trips && node_is_bits(goes_on, 1))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "neither a trip count nor a condition ends the loop");
  set_results(&l, &made, results);
}
