/* Derives the launch interface of a kernel (tn_program_spec) from its graph: one walk collects
   slots, variables and special indices into sorted lists; launch limits are compiled from the sizes
   of the kernel's PARAMs. */
#include "compile/program_spec.h"

#include "base/map.h"
#include "codegen/scratch_plan.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/sink_text.h"

#include <string.h>

/* Deriving. */

typedef VEC(int64_t) slot_list;
typedef VEC(const char *) name_list;
typedef VEC(tn_program_var) var_list;

typedef struct derivation {
  ir *ir;
  arena *arena;
  slot_list globals, outs, ins;
  name_list names;
  var_list vars;
  const node *size[3][3]; /* by "gli", then axis; NULL: none */
  const node *workers;    /* the number of workers */
  map storage;            /* AFTER → the storage below it */
} derivation;

static void add_slot(derivation *v, slot_list *l, const node *param) {
  int64_t slot = param->ints[0];
  size_t at = 0;
  while (at < l->n && l->at[at] < slot) at++;
  if (at < l->n && l->at[at] == slot) return;
  vec_push(v->arena, l, slot);
  memmove(&l->at[at + 1], &l->at[at], (l->n - 1 - at) * sizeof *l->at);
  l->at[at] = slot;
}

static void add_name(derivation *v, const char *name) {
  size_t at = 0;
  while (at < v->names.n && strcmp(v->names.at[at], name) < 0) at++;
  if (at < v->names.n && !strcmp(v->names.at[at], name)) return;
  vec_push(v->arena, &v->names, name);
  memmove(&v->names.at[at + 1], &v->names.at[at], (v->names.n - 1 - at) * sizeof *v->names.at);
  v->names.at[at] = name;
}

static void add_var(derivation *v, const node *n) {
  tn_program_var var = {n->text, n->ints[0], n->ints[1]};
  if (strlen(n->text) != n->n_text)
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "the name of variable %s contains a NUL", n->text);
  size_t at = 0;
  while (at < v->vars.n && strcmp(v->vars.at[at].name, var.name) < 0) at++;
  if (at < v->vars.n && !strcmp(v->vars.at[at].name, var.name)) {
    if (v->vars.at[at].min != var.min || v->vars.at[at].max != var.max)
      diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "variable %s has two bounds in one kernel",
                 var.name);
    return;
  }
  vec_push(v->arena, &v->vars, var);
  memmove(&v->vars.at[at + 1], &v->vars.at[at], (v->vars.n - 1 - at) * sizeof *v->vars.at);
  v->vars.at[at] = var;
  add_name(v, var.name);
}

static void set_size(derivation *v, const node **at, const node *special) {
  if (*at && *at != special->src[0])
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "special %s has two sizes in one kernel",
               special->text);
  *at = special->src[0];
}

static void add_special(derivation *v, const node *n) {
  static const char kinds[] = "gli";
  const char *kind = n->n_text == 2 ? memchr(kinds, n->text[0], 3) : NULL;
  if (!strcmp(n->text, "core_id")) {
    set_size(v, &v->workers, n);
    add_name(v, n->text);
  } else if (kind && n->text[1] >= '0' && n->text[1] <= '2') {
    set_size(v, &v->size[kind - kinds][n->text[1] - '0'], n);
  } else {
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "unknown special \"%s\"", n->text);
  }
}

/** The storage below AFTERs. The walk visits sources before them. */
static const node *storage_of(derivation *v, const node *storage) {
  return storage->op == OP_AFTER ? map_get(&v->storage, storage) : storage;
}

static void add_access(derivation *v, slot_list *l, const node *operand) {
  const node *storage = storage_of(v, operand);
  if (storage->op == OP_PARAM) add_slot(v, l, storage);
}

static void derive_from_node(derivation *v, const node *n) {
  switch (n->op) {
  case OP_PARAM: add_slot(v, &v->globals, n); break;
  case OP_VAR: add_var(v, n); break;
  case OP_SPECIAL: add_special(v, n); break;
  case OP_AFTER: map_set(v->arena, &v->storage, n, (void *)storage_of(v, n->src[0])); break;
  case OP_STORE: add_access(v, &v->outs, n->src[0]); break;
  case OP_LOAD:
  case OP_INDEX: add_access(v, &v->ins, n->src[0]); break;
  case OP_OUT:
    for (uint32_t i = 0; i + 1 < n->n_src; i++) add_access(v, &v->outs, n->src[i]);
    break;
  default: break;
  }
}

/** Sizes of a kind of axis, 1 where there is none. */
static void set_axes(derivation *v, tn_node to[3], int kind) {
  for (int i = 0; i < 3; i++) to[i] = v->size[kind][i] ? v->size[kind][i] : ix_const(v->ir, 1);
}

static bool has_axes(const derivation *v, int kind) {
  return v->size[kind][0] || v->size[kind][1] || v->size[kind][2];
}

static void set_sizes(derivation *v, tn_program_spec *s) {
  bool groups = has_axes(v, 0) || has_axes(v, 1), direct = has_axes(v, 2);
  if (groups + direct + (v->workers != NULL) > 1)
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL,
               "a kernel mixes worker numbers, global ids and ids in groups");
  set_axes(v, s->global, direct ? 2 : 0);
  if (groups) set_axes(v, s->local, 1);
  if (v->workers) s->global[0] = v->workers;
}

static int64_t find_name(const name_list *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (!strcmp(names->at[i], name)) return (int64_t)i;
  return -1;
}

void program_spec_derive(ir *g, const node *root, tn_program_spec *s) {
  derivation v = {.ir = g, .arena = ir_arena(g)};
  const node *code = root;
  if (root->op == OP_PROGRAM) code = root->src[root->n_src > 2 ? 2 : 0];
  node_list order = topo_sort(v.arena, &code, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) derive_from_node(&v, order.at[i]);
  *s = (tn_program_spec){
      .size = sizeof *s, .name = "", .entry = "", .device = "", .source = "", .ast = root};
  if (root->op == OP_PROGRAM)
    s->name = sink_name(v.arena, root->src[0]), s->device = root->src[1]->text;
  if (root->op == OP_SINK) s->name = sink_name(v.arena, root);
  set_sizes(&v, s);
  s->vars = v.vars.at, s->n_vars = v.vars.n;
  s->value_names = v.names.at, s->n_values = v.names.n;
  s->globals = v.globals.at, s->n_globals = v.globals.n;
  s->outs = v.outs.at, s->n_outs = v.outs.n;
  s->ins = v.ins.at, s->n_ins = v.ins.n;
  s->core_id = v.workers ? find_name(&v.names, "core_id") : -1;
  if (code->op == OP_LINEAR) s->scratch = scratch_plan_make(v.arena, code).bytes;
}

/* Limits. */

static bool has_slot(const int64_t slots[], size_t n, int64_t slot) {
  for (size_t i = 0; i < n; i++)
    if (slots[i] == slot) return true;
  return false;
}

/** The PARAM of each global in the kernel, whose sizes are still index expressions there; NULL: the
    kernel has none. */
static const node **find_params(ir *g, const tn_program_spec *s) {
  const node *kernel = s->ast->op == OP_PROGRAM ? s->ast->src[0] : s->ast;
  const node **params = arena_calloc(ir_arena(g), s->n_globals + 1, sizeof *params);
  node_list order = topo_sort(ir_arena(g), &kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    for (size_t k = 0; k < s->n_globals && order.at[i]->op == OP_PARAM; k++)
      if (order.at[i]->ints[0] == s->globals[k]) params[k] = order.at[i];
  return params;
}

static const int64_t *copy_bounds(arena *a, const tn_program_spec *s) {
  int64_t *bounds = arena_alloc(a, (2 * s->n_values + 1) * sizeof *bounds);
  for (size_t i = 0; i < s->n_values; i++) {
    bounds[2 * i] = INT64_MIN;
    bounds[2 * i + 1] = INT64_MAX;
    for (size_t k = 0; k < s->n_vars; k++) {
      if (strcmp(s->vars[k].name, s->value_names[i])) continue;
      bounds[2 * i] = s->vars[k].min;
      bounds[2 * i + 1] = s->vars[k].max;
    }
  }
  return bounds;
}

/** Compilation of sizes, which may raise. */
typedef struct sizing {
  arena *arena;
  const tn_program_spec *spec;
  node_list dims;
  launch_exprs code;
} sizing;

static void compile_dims(void *arg) {
  sizing *z = arg;
  z->code = launch_exprs_compile(z->arena, z->dims.at, z->dims.n, z->spec->value_names,
                                 z->spec->n_values);
}

/** False for an array whose size no launch expression computes, as a kernel of the caller's may
    have: it has no limits. */
static bool has_known_size(arena *a, const tn_program_spec *s, const node *param) {
  sizing z = {a, s, {(const node **)param->src, param->n_src, param->n_src}, {0}};
  tn_status failed = diag_catch(a->diag, compile_dims, &z);
  if (failed == TN_ERR_MEMORY) diag_rethrow(a->diag);
  if (failed) diag_clear(a->diag);
  return !failed;
}

launch_limits program_spec_limits(ir *g, arena *a, const tn_program_spec *s) {
  const node **params = find_params(g, s);
  launch_operand *arrays = arena_calloc(a, s->n_globals + 1, sizeof *arrays);
  sizing z = {.arena = a, .spec = s};
  for (size_t i = 0; i < s->n_globals; i++) {
    const node *p = params[i];
    arrays[i].is_stored = has_slot(s->outs, s->n_outs, s->globals[i]);
    if (!p || !has_known_size(a, s, p)) continue;
    arrays[i].element = (uint32_t)dtype_bytes((dtype)p->dtype);
    arrays[i].rank = p->n_src;
    for (uint32_t k = 0; k < p->n_src; k++) vec_push(ir_arena(g), &z.dims, p->src[k]);
  }
  compile_dims(&z);
  return (launch_limits){arrays, copy_bounds(a, s), z.code};
}
