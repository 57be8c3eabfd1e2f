#include "device/spec.h"

#include "base/map.h"
#include "codegen/scratch.h"
#include "ir/build.h"
#include "ir/sink.h"
#include "ir/topo.h"
#include "ir/verify.h"

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
  const node *size[3][3]; /* by "gli", then axis */
  const node *workers;
  map storage; /* AFTER → what it orders */
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
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "the name of variable %s has a NUL", n->text);
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
    diag_raise(ir_diag(v->ir), TN_ERR_INTERNAL, "special \"%s\" is not known", n->text);
  }
}

/** What is below AFTERs; sources come before them in the walk. */
static const node *below_after(derivation *v, const node *storage) {
  return storage->op == OP_AFTER ? map_get(&v->storage, storage) : storage;
}

static void add_access(derivation *v, slot_list *l, const node *operand) {
  const node *storage = below_after(v, operand);
  if (storage->op == OP_PARAM) add_slot(v, l, storage);
}

static void add_node(derivation *v, const node *n) {
  switch (n->op) {
  case OP_PARAM: add_slot(v, &v->globals, n); break;
  case OP_VAR: add_var(v, n); break;
  case OP_SPECIAL: add_special(v, n); break;
  case OP_AFTER: map_set(v->arena, &v->storage, n, (void *)below_after(v, n->src[0])); break;
  case OP_STORE: add_access(v, &v->outs, n->src[0]); break;
  case OP_LOAD:
  case OP_INDEX: add_access(v, &v->ins, n->src[0]); break;
  case OP_OUT:
    for (uint32_t i = 0; i + 1 < n->n_src; i++) add_access(v, &v->outs, n->src[i]);
    break;
  default: break;
  }
}

/** Sizes of an axis kind, 1 where none is said. */
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
               "a kernel mixes worker numbers, direct ids and ids in groups");
  set_axes(v, s->global, direct ? 2 : 0);
  if (groups) set_axes(v, s->local, 1);
  if (v->workers) s->global[0] = v->workers;
}

static int64_t position(const name_list *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (!strcmp(names->at[i], name)) return (int64_t)i;
  return -1;
}

void spec_derive(ir *g, const node *root, tn_program_spec *s) {
  derivation v = {.ir = g, .arena = ir_arena(g)};
  const node *code = root;
  if (root->op == OP_PROGRAM) code = root->src[root->n_src > 2 ? 2 : 0];
  node_list order = topo_sort(v.arena, &code, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) add_node(&v, order.at[i]);
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
  s->core_id = v.workers ? position(&v.names, "core_id") : -1;
  if (code->op == OP_LINEAR) s->scratch = scratch_place(v.arena, code).bytes;
}

/* Terms. */

static bool has_slot(const int64_t slots[], size_t n, int64_t slot) {
  for (size_t i = 0; i < n; i++)
    if (slots[i] == slot) return true;
  return false;
}

/** The PARAM of each of the globals in the kernel, where sizes are still index expressions; NULL:
    it has none. */
static const node **params_of(ir *g, const tn_program_spec *s) {
  const node *kernel = s->ast->op == OP_PROGRAM ? s->ast->src[0] : s->ast;
  const node **params = arena_calloc(ir_arena(g), s->n_globals + 1, sizeof *params);
  node_list order = topo_sort(ir_arena(g), &kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    for (size_t k = 0; k < s->n_globals && order.at[i]->op == OP_PARAM; k++)
      if (order.at[i]->ints[0] == s->globals[k]) params[k] = order.at[i];
  return params;
}

static const int64_t *bounds_of(arena *a, const tn_program_spec *s) {
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

typedef struct sizing {
  arena *arena;
  const tn_program_spec *spec;
  node_list dims;
  launch_code code;
} sizing;

static void compile_dims(void *arg) {
  sizing *z = arg;
  z->code =
      launch_compile(z->arena, z->dims.at, z->dims.n, z->spec->value_names, z->spec->n_values);
}

/** A kernel of the caller's may have arrays of sizes that no launch computes: nothing is said of
    these. */
static bool has_known_size(arena *a, const tn_program_spec *s, const node *param) {
  sizing z = {a, s, {(const node **)param->src, param->n_src, param->n_src}, {0}};
  tn_status failed = diag_catch(a->diag, compile_dims, &z);
  if (failed == TN_ERR_MEMORY) diag_rethrow(a->diag);
  if (failed) diag_clear(a->diag);
  return !failed;
}

launch_terms spec_terms(ir *g, arena *a, const tn_program_spec *s) {
  const node **params = params_of(g, s);
  launch_array *arrays = arena_calloc(a, s->n_globals + 1, sizeof *arrays);
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
  return (launch_terms){arrays, bounds_of(a, s), z.code};
}

/* Stages. */

static _Noreturn void broken(ir *g, const char *what) {
  diag_raise(ir_diag(g), TN_ERR_INTERNAL, "a program's %s", what);
}

/** A LINEAR is well-formed, and uses no buffer that its kernel does not have. */
static void check_linear(ir *g, const node *sink, const node *linear) {
  if (verify(&linear, 1, STAGE_LINEAR, ir_mem(g), ir_diag(g))) diag_rethrow(ir_diag(g));
  tn_program_spec kernel, code;
  spec_derive(g, sink, &kernel);
  spec_derive(g, linear, &code);
  for (size_t i = 0, k = 0; i < code.n_globals; i++) {
    while (k < kernel.n_globals && kernel.globals[k] < code.globals[i]) k++;
    if (k == kernel.n_globals || kernel.globals[k] != code.globals[i])
      broken(g, "linear form uses a buffer that its kernel does not have");
  }
}

void program_node_check(ir *g, const node *program) {
  static const op stages[] = {OP_SINK, OP_DEVICE, OP_LINEAR, OP_SOURCE, OP_BINARY};
  if (program->op != OP_PROGRAM || program->n_src < 2 || program->n_src > 5)
    diag_raise(ir_diag(g), TN_ERR_INTERNAL, "%s where a program is wanted",
               op_name((op)program->op));
  for (uint32_t i = 0; i < program->n_src; i++)
    if (program->src[i]->op != stages[i]) broken(g, "stages are not in order");
  if (!program->src[1]->n_text) broken(g, "device has no name");
  if (program->n_src > 2) check_linear(g, program->src[0], program->src[2]);
  if (program->n_src > 3 && !program->src[3]->n_text) broken(g, "source is empty");
  if (program->n_src > 4 && !program->src[4]->n_text) broken(g, "binary is empty");
}

/** A PROGRAM with one stage more, its `count`-th, which is a text. */
static const node *with_text(ir *g, const node *program, uint32_t count, op o, const void *text,
                             size_t bytes) {
  if (program->n_src != count) broken(g, "stages are not made in order");
  if (!bytes) broken(g, o == OP_SOURCE ? "source is empty" : "binary is empty");
  if (bytes > UINT32_MAX) broken(g, "text has more than 4 GiB");
  const node *src[5];
  memcpy(src, program->src, count * sizeof *src);
  src[count] = ir_make(g, &(node_spec){.op = o, .dtype = DT_VOID, .text = text, .n_text = bytes});
  const node *made = ir_node(g, OP_PROGRAM, DT_VOID, src, count + 1, NULL, 0);
#ifdef TENON_VERIFY
  program_node_check(g, made);
#endif
  return made;
}

const node *program_node_source(ir *g, const node *program, const char *source, size_t bytes) {
  return with_text(g, program, 3, OP_SOURCE, source, bytes);
}

const node *program_node_binary(ir *g, const node *program, const void *code, size_t bytes) {
  return with_text(g, program, 4, OP_BINARY, code, bytes);
}
