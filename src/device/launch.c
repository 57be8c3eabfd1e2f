#include "device/launch.h"

#include "base/map.h"
#include "ir/infer.h"
#include "ir/topo.h"
#include "ir/var.h"

#include <inttypes.h>
#include <string.h>

typedef enum step_kind {
  STEP_NUMBER,
  STEP_VALUE,
  STEP_ADD,
  STEP_SUB,
  STEP_MUL,
  STEP_FLOORDIV,
  STEP_MOD,
  STEP_CDIV,
  STEP_CMOD,
  STEP_MAX,
  STEP_MIN,
  STEP_NEG,
  STEP_ABS,
  STEP_COPY
} step_kind;

/** One operation on the results of earlier steps. */
struct launch_step {
  step_kind kind;
  dtype dtype;      /* what the result must fit in */
  uint32_t a, b;    /* steps; of a VALUE: a is its number */
  int64_t lo, hi;   /* of a VALUE; of a NUMBER: lo is it */
  const char *name; /* of a VALUE */
};

/* Compiling. */

typedef VEC(launch_step) step_list;

typedef struct compiler {
  arena *arena;
  const char *const *names;
  size_t n_names;
  step_list steps;
  map step_of; /* node → its step + 1 */
} compiler;

static uint32_t add_step(compiler *c, launch_step s) {
  vec_push(c->arena, &c->steps, s);
  return (uint32_t)c->steps.n - 1;
}

static uint32_t step_of(const compiler *c, const node *n) {
  return (uint32_t)((uintptr_t)map_get(&c->step_of, n) - 1);
}

static uint32_t add_number(compiler *c, dtype t, int64_t value) {
  return add_step(c, (launch_step){.kind = STEP_NUMBER, .dtype = t, .lo = value});
}

static uint32_t add_const(compiler *c, const node *n) {
  dtype t = (dtype)n->dtype;
  if (dtype_is_float(t))
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "a launch size uses the float constant %g",
               scalar_to_double(t, (uint64_t)n->ints[0]));
  if (t == DT_U64 && n->ints[0] < 0)
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "the constant %" PRIu64 " overflows a launch size",
               (uint64_t)n->ints[0]);
  return add_number(c, t, n->ints[0]);
}

static uint32_t add_value(compiler *c, const node *n) {
  for (size_t i = 0; i < c->n_names; i++)
    if (!strcmp(c->names[i], n->text))
      return add_step(c, (launch_step){.kind = STEP_VALUE,
                                       .dtype = (dtype)n->dtype,
                                       .a = (uint32_t)i,
                                       .lo = n->ints[0],
                                       .hi = n->ints[1],
                                       .name = arena_printf(c->arena, "%s", n->text)});
  diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "a launch size uses variable %s, which has no value",
             n->text);
}

/** arg[0] + Σ arg[i + 1] · source[i] */
static uint32_t add_affine(compiler *c, const node *n) {
  uint32_t sum = add_number(c, DT_INDEX, n->ints[0]);
  for (uint32_t i = 0; i < n->n_src; i++) {
    uint32_t factor = add_number(c, DT_INDEX, n->ints[i + 1]);
    uint32_t term = add_step(
        c, (launch_step){
               .kind = STEP_MUL, .dtype = DT_INDEX, .a = factor, .b = step_of(c, n->src[i])});
    sum = add_step(c, (launch_step){.kind = STEP_ADD, .dtype = DT_INDEX, .a = sum, .b = term});
  }
  return sum;
}

static bool find_kind(op o, step_kind *kind) {
  static const struct {
    op op;
    step_kind kind;
  } table[] = {{OP_ADD, STEP_ADD},   {OP_SUB, STEP_SUB},   {OP_MUL, STEP_MUL},
               {OP_MOD, STEP_MOD},   {OP_CDIV, STEP_CDIV}, {OP_FLOORDIV, STEP_FLOORDIV},
               {OP_CMOD, STEP_CMOD}, {OP_MAX, STEP_MAX},   {OP_MIN, STEP_MIN},
               {OP_NEG, STEP_NEG},   {OP_ABS, STEP_ABS},   {OP_CAST, STEP_COPY}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].op == o) {
      *kind = table[i].kind;
      return true;
    }
  return false;
}

static uint32_t add_operation(compiler *c, const node *n) {
  step_kind kind;
  dtype t = (dtype)n->dtype;
  if (!find_kind((op)n->op, &kind))
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "a launch size uses %s, which is not for sizes",
               op_name((op)n->op));
  if (t != DT_INDEX && !dtype_is_int(t))
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "a launch size has type %s, which is no integer's",
               dtype_name(t));
  uint32_t a = step_of(c, n->src[0]), b = n->n_src > 1 ? step_of(c, n->src[1]) : a;
  return add_step(c, (launch_step){.kind = kind, .dtype = t, .a = a, .b = b});
}

static uint32_t add_node(compiler *c, const node *n) {
  switch (n->op) {
  case OP_CONST: return add_const(c, n);
  case OP_VAR: return add_value(c, n);
  case OP_AFFINE: return add_affine(c, n);
  default: return add_operation(c, n);
  }
}

launch_code launch_compile(arena *a, const node *const exprs[], size_t n, const char *const names[],
                           size_t n_names) {
  compiler c = {.arena = a, .names = names, .n_names = n_names};
  uint32_t *results = arena_calloc(a, n, sizeof *results);
  uint32_t one = add_number(&c, DT_INDEX, 1);
  for (size_t i = 0; i < n; i++) {
    results[i] = one;
    if (!exprs[i]) continue;
    node_list order = topo_sort(a, &exprs[i], 1, NULL, NULL);
    for (size_t k = 0; k < order.n; k++)
      if (!map_has(&c.step_of, order.at[k]))
        map_set(a, &c.step_of, order.at[k], (void *)((uintptr_t)add_node(&c, order.at[k]) + 1));
    results[i] = step_of(&c, exprs[i]);
  }
  return (launch_code){c.steps.at, c.steps.n, n, results};
}

/* Sizes of launches. */

launch_code launch_compile_sizes(arena *a, const node *const global[3], const node *const local[3],
                                 const char *const names[], size_t n_names) {
  const node *all[] = {global[0], global[1], global[2], local[0], local[1], local[2]};
  launch_code c = launch_compile(a, all, local[0] ? 6 : 3, names, n_names);
  if (c.n_steps > LAUNCH_STEPS)
    diag_raise(a->diag, TN_ERR_UNSUPPORTED, "launch sizes take %zu steps to compute, more than %d",
               c.n_steps, LAUNCH_STEPS);
  return c;
}

size_t launch_bytes(const launch_code *c) {
  return c->n_steps * sizeof *c->steps + (c->n_results + 1) / 2 * 2 * sizeof *c->results;
}

launch_code launch_copy(const launch_code *c, void *block, const char *const names[]) {
  launch_step *steps = block;
  uint32_t *results = (uint32_t *)(steps + c->n_steps);
  if (c->n_steps) memcpy(steps, c->steps, c->n_steps * sizeof *steps);
  if (c->n_results) memcpy(results, c->results, c->n_results * sizeof *results);
  for (size_t i = 0; i < c->n_steps; i++)
    if (steps[i].kind == STEP_VALUE) steps[i].name = names[steps[i].a];
  return (launch_code){steps, c->n_steps, c->n_results, results};
}

/* On disk. */

enum { STEP_NUMBERS = 6 };

void launch_write(const launch_code *c, str *to) {
  wire_add(to, c->n_steps);
  for (size_t i = 0; i < c->n_steps; i++) {
    const launch_step *s = &c->steps[i];
    const uint64_t numbers[STEP_NUMBERS] = {s->kind, s->dtype,        s->a,
                                            s->b,    (uint64_t)s->lo, (uint64_t)s->hi};
    for (size_t k = 0; k < STEP_NUMBERS; k++) wire_add(to, numbers[k]);
  }
  wire_add(to, c->n_results);
  for (size_t i = 0; i < c->n_results; i++) wire_add(to, c->results[i]);
}

static launch_step read_step(wire_reader *r, size_t at, const char *const names[], size_t n_names) {
  uint64_t v[STEP_NUMBERS];
  for (size_t k = 0; k < STEP_NUMBERS; k++) v[k] = wire_number(r);
  bool is_value = v[0] == STEP_VALUE, is_number = v[0] == STEP_NUMBER;
  dtype_class cls = v[1] < DT_LIMIT ? dtype_get((int)v[1])->cls : DC_NONE;
  uint64_t operands = is_number ? UINT64_MAX : is_value ? n_names : at;
  if (v[0] > STEP_COPY || cls == DC_NONE || cls == DC_FLOAT || v[2] >= operands ||
      (!is_value && v[3] >= operands))
    r->failed = true;
  if (r->failed) return (launch_step){0};
  return (launch_step){.kind = (step_kind)v[0],
                       .dtype = (dtype)v[1],
                       .a = (uint32_t)v[2],
                       .b = (uint32_t)v[3],
                       .lo = (int64_t)v[4],
                       .hi = (int64_t)v[5],
                       .name = is_value ? names[v[2]] : NULL};
}

launch_code launch_read(wire_reader *r, arena *a, const char *const names[], size_t n_names) {
  size_t n_steps = wire_count(r, STEP_NUMBERS * sizeof(uint64_t));
  launch_step *steps = arena_calloc(a, n_steps, sizeof *steps);
  for (size_t i = 0; i < n_steps && !r->failed; i++) steps[i] = read_step(r, i, names, n_names);
  size_t n_results = wire_count(r, sizeof(uint64_t));
  uint32_t *results = arena_calloc(a, n_results, sizeof *results);
  for (size_t i = 0; i < n_results && !r->failed; i++) {
    uint64_t step = wire_number(r);
    if (step >= n_steps) r->failed = true;
    results[i] = (uint32_t)step;
  }
  return r->failed ? (launch_code){0} : (launch_code){steps, n_steps, n_results, results};
}

launch_code launch_read_sizes(wire_reader *r, arena *a, const char *const names[], size_t n_names) {
  launch_code c = launch_read(r, a, names, n_names);
  if (c.n_steps > LAUNCH_STEPS || (c.n_results != 3 && c.n_results != 6)) r->failed = true;
  return r->failed ? (launch_code){0} : c;
}

/* Evaluating. */

static tn_status overflow(diag *d, int64_t a, const char *sign, int64_t b) {
  return diag_set(d, TN_ERR_ARGUMENT, "a launch size overflows: %" PRId64 " %s %" PRId64, a, sign,
                  b);
}

static tn_status take_value(const launch_step *s, int64_t value, int64_t *r, diag *d) {
  *r = value;
  if (value >= s->lo && value <= s->hi) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "variable %s is %" PRId64 ", which is not between %" PRId64 " and %" PRId64,
                  var_name(s->name), value, s->lo, s->hi);
}

static tn_status divide(const launch_step *s, int64_t a, int64_t b, int64_t *r, diag *d) {
  static const char *const signs[] = {
      [STEP_FLOORDIV] = "floordiv", [STEP_MOD] = "mod", [STEP_CDIV] = "cdiv", [STEP_CMOD] = "cmod"};
  if (!b)
    return diag_set(d, TN_ERR_ARGUMENT, "a launch size divides by zero: %" PRId64 " %s 0", a,
                    signs[s->kind]);
  bool remainder = s->kind == STEP_MOD || s->kind == STEP_CMOD;
  if (b == -1 && !remainder && a == INT64_MIN) return overflow(d, a, signs[s->kind], b);
  switch (s->kind) {
  case STEP_FLOORDIV: *r = floor_div(a, b); break;
  case STEP_MOD: *r = floor_mod(a, b); break;
  case STEP_CDIV: *r = a / b; break;
  default: *r = b == -1 ? 0 : a % b; break;
  }
  return TN_OK;
}

static tn_status operate(const launch_step *s, int64_t a, int64_t b, int64_t *r, diag *d) {
  switch (s->kind) {
  case STEP_ADD: return __builtin_add_overflow(a, b, r) ? overflow(d, a, "+", b) : TN_OK;
  case STEP_SUB: return __builtin_sub_overflow(a, b, r) ? overflow(d, a, "-", b) : TN_OK;
  case STEP_MUL: return __builtin_mul_overflow(a, b, r) ? overflow(d, a, "*", b) : TN_OK;
  case STEP_MAX: *r = a > b ? a : b; return TN_OK;
  case STEP_MIN: *r = a < b ? a : b; return TN_OK;
  case STEP_NEG: return __builtin_sub_overflow(0, a, r) ? overflow(d, 0, "-", a) : TN_OK;
  case STEP_ABS:
    *r = a;
    return a < 0 && __builtin_sub_overflow(0, a, r) ? overflow(d, 0, "-", a) : TN_OK;
  case STEP_COPY: *r = a; return TN_OK;
  default: return divide(s, a, b, r, d);
  }
}

static tn_status check_fit(dtype t, int64_t value, diag *d) {
  if (value >= dtype_min(t) && value <= dtype_max(t)) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "a launch size has %" PRId64 ", which does not fit in type %s", value,
                  dtype_name(t));
}

tn_status launch_eval(const launch_code *c, const int64_t values[], int64_t room[],
                      int64_t results[], diag *d) {
  for (size_t i = 0; i < c->n_steps; i++) {
    const launch_step *s = &c->steps[i];
    tn_status status = TN_OK;
    if (s->kind == STEP_NUMBER)
      room[i] = s->lo;
    else if (s->kind == STEP_VALUE)
      status = take_value(s, values[s->a], &room[i], d);
    else
      status = operate(s, room[s->a], room[s->b], &room[i], d);
    if (!status) status = check_fit(s->dtype, room[i], d);
    if (status) return status;
  }
  for (size_t i = 0; i < c->n_results; i++) results[i] = room[c->results[i]];
  return TN_OK;
}

tn_status launch_sizes(const launch_code *c, const int64_t values[], int64_t global[3],
                       int64_t local[3], diag *d) {
  int64_t room[LAUNCH_STEPS], results[6] = {0};
  tn_status status = launch_eval(c, values, room, results, d);
  if (status) return status;
  for (size_t i = 0; i < c->n_results; i++)
    if (results[i] <= 0)
      return diag_set(d, TN_ERR_ARGUMENT, "%s size %zu is %" PRId64 ", which is not positive",
                      i < 3 ? "global" : "local", i % 3, results[i]);
  memcpy(global, results, 3 * sizeof *global);
  memcpy(local, results + 3, 3 * sizeof *local);
  return TN_OK;
}
