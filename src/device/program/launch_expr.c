/* Implements launch expressions as lists of terms in evaluation order: compiles them from index
   expressions, copies, serialises, and evaluates them with overflow checks, as the values come from
   callers. */
#include "device/program/launch_expr.h"

#include "base/map.h"
#include "ir/core/shape_inference.h"
#include "ir/core/topo_sort.h"
#include "ir/core/var_names.h"

#include <inttypes.h>
#include <string.h>

typedef enum term_kind {
  TERM_CONST,
  TERM_VALUE,
  TERM_ADD,
  TERM_SUB,
  TERM_MUL,
  TERM_FLOORDIV,
  TERM_MOD,
  TERM_CDIV,
  TERM_CMOD,
  TERM_MAX,
  TERM_MIN,
  TERM_NEG,
  TERM_ABS,
  TERM_COPY,
  TERM_BITCAST,
  TERM_LT,
  TERM_LE,
  TERM_WHERE,
  TERM_EQ,
  TERM_NE,
  TERM_NOT,
  TERM_AND,
  TERM_OR,
  TERM_XOR,
  TERM_LIMIT
} term_kind;

/** One operation on the results of earlier terms, or a leaf. */
struct launch_term {
  term_kind kind;
  dtype dtype;      /* the type that the result must fit in */
  uint32_t a, b;    /* indices of terms; of a VALUE: a is its index among the values */
  int64_t lo, hi;   /* of a VALUE: its bounds; of a CONST: lo is the number; of a WHERE: lo is the
                       index of the term of its condition */
  const char *name; /* of a VALUE */
};

/* Compiling. */

typedef VEC(launch_term) term_list;

typedef struct term_compiler {
  arena *arena;
  const char *const *names;
  size_t n_names;
  term_list terms;
  map term_of; /* node → index of its term + 1 */
} term_compiler;

static uint32_t add_term(term_compiler *c, launch_term s) {
  vec_push(c->arena, &c->terms, s);
  return (uint32_t)c->terms.n - 1;
}

static uint32_t term_of(const term_compiler *c, const node *n) {
  return (uint32_t)((uintptr_t)map_get(&c->term_of, n) - 1);
}

static uint32_t add_number(term_compiler *c, dtype t, int64_t value) {
  return add_term(c, (launch_term){.kind = TERM_CONST, .dtype = t, .lo = value});
}

static uint32_t add_const(term_compiler *c, const node *n) {
  dtype t = (dtype)n->dtype;
  if (dtype_is_float(t))
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "a launch size uses the float constant %g",
               scalar_to_double(t, (uint64_t)n->ints[0]));
  if (t == DT_U64 && n->ints[0] < 0)
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "the constant %" PRIu64 " overflows a launch size",
               (uint64_t)n->ints[0]);
  return add_number(c, t, n->ints[0]);
}

static uint32_t add_value(term_compiler *c, const node *n) {
  for (size_t i = 0; i < c->n_names; i++)
    if (!strcmp(c->names[i], n->text))
      return add_term(c, (launch_term){.kind = TERM_VALUE,
                                       .dtype = (dtype)n->dtype,
                                       .a = (uint32_t)i,
                                       .lo = n->ints[0],
                                       .hi = n->ints[1],
                                       .name = arena_printf(c->arena, "%s", n->text)});
  diag_raise(c->arena->diag, TN_ERR_ARGUMENT, "variable %s of a launch size has no value", n->text);
}

/** ints[0] + Σ ints[i + 1] · src[i] */
static uint32_t add_affine(term_compiler *c, const node *n) {
  uint32_t sum = add_number(c, DT_INDEX, n->ints[0]);
  for (uint32_t i = 0; i < n->n_src; i++) {
    uint32_t factor = add_number(c, DT_INDEX, n->ints[i + 1]);
    uint32_t term = add_term(
        c, (launch_term){
               .kind = TERM_MUL, .dtype = DT_INDEX, .a = factor, .b = term_of(c, n->src[i])});
    sum = add_term(c, (launch_term){.kind = TERM_ADD, .dtype = DT_INDEX, .a = sum, .b = term});
  }
  return sum;
}

static bool find_kind(op o, term_kind *kind) {
  static const struct {
    op op;
    term_kind kind;
  } table[] = {{OP_ADD, TERM_ADD},         {OP_SUB, TERM_SUB},   {OP_MUL, TERM_MUL},
               {OP_MOD, TERM_MOD},         {OP_CDIV, TERM_CDIV}, {OP_FLOORDIV, TERM_FLOORDIV},
               {OP_CMOD, TERM_CMOD},       {OP_MAX, TERM_MAX},   {OP_MIN, TERM_MIN},
               {OP_NEG, TERM_NEG},         {OP_ABS, TERM_ABS},   {OP_CAST, TERM_COPY},
               {OP_BITCAST, TERM_BITCAST}, {OP_LT, TERM_LT},     {OP_LE, TERM_LE},
               {OP_EQ, TERM_EQ},           {OP_NE, TERM_NE},     {OP_NOT, TERM_NOT},
               {OP_AND, TERM_AND},         {OP_OR, TERM_OR},     {OP_XOR, TERM_XOR}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].op == o) {
      *kind = table[i].kind;
      return true;
    }
  return false;
}

static uint32_t add_where(term_compiler *c, const node *n) {
  return add_term(c, (launch_term){.kind = TERM_WHERE,
                                   .dtype = (dtype)n->dtype,
                                   .a = term_of(c, n->src[1]),
                                   .b = term_of(c, n->src[2]),
                                   .lo = term_of(c, n->src[0])});
}

static uint32_t add_operation(term_compiler *c, const node *n) {
  term_kind kind;
  dtype t = (dtype)n->dtype;
  if (!find_kind((op)n->op, &kind))
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT,
               "a launch size uses %s, which is not supported in sizes", op_name((op)n->op));
  if (t != DT_INDEX && !dtype_is_int(t) && t != DT_BOOL)
    diag_raise(c->arena->diag, TN_ERR_ARGUMENT,
               "a launch size has type %s, expected an integer type", dtype_name(t));
  uint32_t a = term_of(c, n->src[0]), b = n->n_src > 1 ? term_of(c, n->src[1]) : a;
  return add_term(c, (launch_term){.kind = kind, .dtype = t, .a = a, .b = b});
}

static uint32_t add_node(term_compiler *c, const node *n) {
  switch (n->op) {
  case OP_CONST: return add_const(c, n);
  case OP_VAR: return add_value(c, n);
  case OP_AFFINE: return add_affine(c, n);
  case OP_WHERE: return add_where(c, n);
  default: return add_operation(c, n);
  }
}

launch_exprs launch_exprs_compile(arena *a, const node *const exprs[], size_t n,
                                  const char *const names[], size_t n_names) {
  term_compiler c = {.arena = a, .names = names, .n_names = n_names};
  uint32_t *results = arena_calloc(a, n, sizeof *results);
  uint32_t one = add_number(&c, DT_INDEX, 1);
  for (size_t i = 0; i < n; i++) {
    results[i] = one;
    if (!exprs[i]) continue;
    node_list order = topo_sort(a, &exprs[i], 1, NULL, NULL);
    for (size_t k = 0; k < order.n; k++)
      if (!map_has(&c.term_of, order.at[k]))
        map_set(a, &c.term_of, order.at[k], (void *)((uintptr_t)add_node(&c, order.at[k]) + 1));
    results[i] = term_of(&c, exprs[i]);
  }
  return (launch_exprs){c.terms.at, c.terms.n, n, results};
}

/* Grid sizes. */

launch_exprs launch_grid_compile(arena *a, const node *const global[3], const node *const local[3],
                                 const char *const names[], size_t n_names) {
  const node *all[] = {global[0], global[1], global[2], local[0], local[1], local[2]};
  launch_exprs c = launch_exprs_compile(a, all, local[0] ? 6 : 3, names, n_names);
  if (c.n_terms > LAUNCH_MOST_TERMS)
    diag_raise(a->diag, TN_ERR_UNSUPPORTED, "launch sizes need %zu terms; at most %d are supported",
               c.n_terms, LAUNCH_MOST_TERMS);
  return c;
}

size_t launch_exprs_bytes(const launch_exprs *c) {
  return c->n_terms * sizeof *c->terms + (c->n_results + 1) / 2 * 2 * sizeof *c->results;
}

launch_exprs launch_exprs_copy(const launch_exprs *c, void *block, const char *const names[]) {
  launch_term *terms = block;
  uint32_t *results = (uint32_t *)(terms + c->n_terms);
  if (c->n_terms) memcpy(terms, c->terms, c->n_terms * sizeof *terms);
  if (c->n_results) memcpy(results, c->results, c->n_results * sizeof *results);
  for (size_t i = 0; i < c->n_terms; i++)
    if (terms[i].kind == TERM_VALUE) terms[i].name = names[terms[i].a];
  return (launch_exprs){terms, c->n_terms, c->n_results, results};
}

/* Serialisation. */

enum { TERM_NUMBERS = 6 };

void launch_exprs_write(const launch_exprs *c, str *to) {
  serialise_number(to, c->n_terms);
  for (size_t i = 0; i < c->n_terms; i++) {
    const launch_term *s = &c->terms[i];
    const uint64_t numbers[TERM_NUMBERS] = {s->kind, s->dtype,        s->a,
                                            s->b,    (uint64_t)s->lo, (uint64_t)s->hi};
    for (size_t k = 0; k < TERM_NUMBERS; k++) serialise_number(to, numbers[k]);
  }
  serialise_number(to, c->n_results);
  for (size_t i = 0; i < c->n_results; i++) serialise_number(to, c->results[i]);
}

static launch_term read_term(deserialiser *r, size_t at, const char *const names[],
                             size_t n_names) {
  uint64_t v[TERM_NUMBERS];
  for (size_t k = 0; k < TERM_NUMBERS; k++) v[k] = deserialise_number(r);
  bool is_value = v[0] == TERM_VALUE, is_number = v[0] == TERM_CONST;
  dtype_class cls = v[1] < DT_LIMIT ? dtype_facts_of((int)v[1])->cls : DC_NONE;
  uint64_t operands = is_number ? UINT64_MAX : is_value ? n_names : at;
  if (v[0] >= TERM_LIMIT || (v[0] == TERM_WHERE && v[4] >= at) || cls == DC_NONE ||
      cls == DC_FLOAT || v[2] >= operands || (!is_value && v[3] >= operands))
    r->failed = true;
  if (r->failed) return (launch_term){0};
  return (launch_term){.kind = (term_kind)v[0],
                       .dtype = (dtype)v[1],
                       .a = (uint32_t)v[2],
                       .b = (uint32_t)v[3],
                       .lo = (int64_t)v[4],
                       .hi = (int64_t)v[5],
                       .name = is_value ? names[v[2]] : NULL};
}

launch_exprs launch_exprs_read(deserialiser *r, arena *a, const char *const names[],
                               size_t n_names) {
  size_t n_terms = deserialise_count(r, TERM_NUMBERS * sizeof(uint64_t));
  launch_term *terms = arena_calloc(a, n_terms, sizeof *terms);
  for (size_t i = 0; i < n_terms && !r->failed; i++) terms[i] = read_term(r, i, names, n_names);
  size_t n_results = deserialise_count(r, sizeof(uint64_t));
  uint32_t *results = arena_calloc(a, n_results, sizeof *results);
  for (size_t i = 0; i < n_results && !r->failed; i++) {
    uint64_t term = deserialise_number(r);
    if (term >= n_terms) r->failed = true;
    results[i] = (uint32_t)term;
  }
  return r->failed ? (launch_exprs){0} : (launch_exprs){terms, n_terms, n_results, results};
}

launch_exprs launch_grid_read(deserialiser *r, arena *a, const char *const names[],
                              size_t n_names) {
  launch_exprs c = launch_exprs_read(r, a, names, n_names);
  if (c.n_terms > LAUNCH_MOST_TERMS || (c.n_results != 3 && c.n_results != 6)) r->failed = true;
  return r->failed ? (launch_exprs){0} : c;
}

/* Evaluating. */

static tn_status fail_overflow(diag *d, int64_t a, const char *sign, int64_t b) {
  return diag_set(d, TN_ERR_ARGUMENT, "a launch size overflows: %" PRId64 " %s %" PRId64, a, sign,
                  b);
}

static tn_status eval_value(const launch_term *s, int64_t value, int64_t *r, diag *d) {
  *r = value;
  if (value >= s->lo && value <= s->hi) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT,
                  "variable %s is %" PRId64 ", not between %" PRId64 " and %" PRId64,
                  var_user_name(s->name), value, s->lo, s->hi);
}

static tn_status eval_division(const launch_term *s, int64_t a, int64_t b, int64_t *r, diag *d) {
  static const char *const signs[] = {
      [TERM_FLOORDIV] = "floordiv", [TERM_MOD] = "mod", [TERM_CDIV] = "cdiv", [TERM_CMOD] = "cmod"};
  if (!b)
    return diag_set(d, TN_ERR_ARGUMENT, "a launch size divides by zero: %" PRId64 " %s 0", a,
                    signs[s->kind]);
  bool remainder = s->kind == TERM_MOD || s->kind == TERM_CMOD;
  if (b == -1 && !remainder && a == INT64_MIN) return fail_overflow(d, a, signs[s->kind], b);
  switch (s->kind) {
  case TERM_FLOORDIV: *r = floor_div(a, b); break;
  case TERM_MOD: *r = floor_mod(a, b); break;
  case TERM_CDIV: *r = a / b; break;
  default: *r = b == -1 ? 0 : a % b; break;
  }
  return TN_OK;
}

/** The number whose bits in type `t` are the low bits of `a`. A u64 beyond int64_t stays negative,
    and does not fit. */
static int64_t reinterpret(dtype t, int64_t a) {
  unsigned above = 64 - 8 * (unsigned)dtype_bytes(t);
  uint64_t high = (uint64_t)a << above;
  return dtype_is_signed(t) ? (int64_t)high >> above : (int64_t)(high >> above);
}

static tn_status eval_operation(const launch_term *s, int64_t a, int64_t b, int64_t *r, diag *d) {
  switch (s->kind) {
  case TERM_ADD: return __builtin_add_overflow(a, b, r) ? fail_overflow(d, a, "+", b) : TN_OK;
  case TERM_SUB: return __builtin_sub_overflow(a, b, r) ? fail_overflow(d, a, "-", b) : TN_OK;
  case TERM_MUL: return __builtin_mul_overflow(a, b, r) ? fail_overflow(d, a, "*", b) : TN_OK;
  case TERM_MAX: *r = a > b ? a : b; return TN_OK;
  case TERM_MIN: *r = a < b ? a : b; return TN_OK;
  case TERM_NEG: return __builtin_sub_overflow(0, a, r) ? fail_overflow(d, 0, "-", a) : TN_OK;
  case TERM_ABS:
    *r = a;
    return a < 0 && __builtin_sub_overflow(0, a, r) ? fail_overflow(d, 0, "-", a) : TN_OK;
  case TERM_COPY: *r = a; return TN_OK;
  case TERM_BITCAST: *r = reinterpret(s->dtype, a); return TN_OK;
  case TERM_LT: *r = a < b; return TN_OK;
  case TERM_LE: *r = a <= b; return TN_OK;
  case TERM_EQ: *r = a == b; return TN_OK;
  case TERM_NE: *r = a != b; return TN_OK;
  case TERM_NOT: *r = s->dtype == DT_BOOL ? !a : reinterpret(s->dtype, ~a); return TN_OK;
  case TERM_AND: *r = a & b; return TN_OK;
  case TERM_OR: *r = a | b; return TN_OK;
  case TERM_XOR: *r = a ^ b; return TN_OK;
  default: return eval_division(s, a, b, r, d);
  }
}

static tn_status check_fit(dtype t, int64_t value, diag *d) {
  if (value >= dtype_min(t) && value <= dtype_max(t)) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT, "a launch size is %" PRId64 ", which does not fit in type %s",
                  value, dtype_name(t));
}

static inline tn_status eval_term(const launch_term *s, const int64_t values[],
                                  const int64_t term_results[], int64_t *r, diag *d) {
  tn_status status = TN_OK;
  if (s->kind == TERM_CONST)
    *r = s->lo;
  else if (s->kind == TERM_VALUE)
    status = eval_value(s, values[s->a], r, d);
  else if (s->kind == TERM_WHERE)
    *r = term_results[term_results[s->lo] ? s->a : s->b];
  else
    status = eval_operation(s, term_results[s->a], term_results[s->b], r, d);
  return status ? status : check_fit(s->dtype, *r, d);
}

tn_status launch_exprs_eval(const launch_exprs *c, const int64_t values[], int64_t term_results[],
                            int64_t results[], diag *d) {
  for (size_t i = 0; i < c->n_terms; i++) {
    tn_status status = eval_term(&c->terms[i], values, term_results, &term_results[i], d);
    if (status) return status;
  }
  for (size_t i = 0; i < c->n_results; i++) results[i] = term_results[c->results[i]];
  return TN_OK;
}

/* Evaluating what has a value. */

launch_terms launch_terms_open(arena *a, size_t n) {
  launch_terms t = {.results = arena_calloc(a, n + 1, sizeof *t.results),
                    .fails = arena_calloc(a, n + 1, sizeof *t.fails)};
  return t;
}

static bool is_leaf(const launch_term *s) { return s->kind == TERM_CONST || s->kind == TERM_VALUE; }

/** The operand without a value for which a term has none; SIZE_MAX: there is none. */
static inline size_t failing_operand(const launch_term *s, const launch_terms *t) {
  if (is_leaf(s)) return SIZE_MAX;
  if (s->kind == TERM_WHERE) {
    size_t condition = (size_t)s->lo;
    if (t->fails[condition]) return condition;
    size_t taken = t->results[condition] ? s->a : s->b;
    return t->fails[taken] ? taken : SIZE_MAX;
  }
  return t->fails[s->a] ? s->a : t->fails[s->b] ? s->b : SIZE_MAX;
}

/** True if one operand of a term is 0, and so the result for any other operand. */
static bool is_absorbed(const launch_term *s, const launch_terms *t) {
  if (s->kind != TERM_MUL && s->kind != TERM_AND) return false;
  return (!t->fails[s->a] && !t->results[s->a]) || (!t->fails[s->b] && !t->results[s->b]);
}

void launch_terms_eval(launch_terms *t, const launch_exprs *c, const size_t terms[], size_t n,
                       const int64_t values[]) {
  diag unread;
  diag_clear(&unread);
  for (size_t k = 0; k < n; k++) {
    size_t i = terms ? terms[k] : k;
    const launch_term *s = &c->terms[i];
    if (failing_operand(s, t) == SIZE_MAX) {
      t->fails[i] = eval_term(s, values, t->results, &t->results[i], &unread) != TN_OK;
    } else {
      t->fails[i] = !is_absorbed(s, t);
      t->results[i] = 0;
    }
  }
}

tn_status launch_terms_refuse(const launch_terms *t, const launch_exprs *c, size_t result,
                              const int64_t values[], diag *d) {
  int64_t unread;
  size_t at = c->results[result];
  for (size_t next = at; next != SIZE_MAX; next = failing_operand(&c->terms[at], t)) at = next;
  return eval_term(&c->terms[at], values, t->results, &unread, d);
}

/* When terms become known. */

/** Lists the terms that a term is computed from; returns their number. */
static size_t list_operands(const launch_term *s, size_t operands[3]) {
  if (is_leaf(s)) return 0;
  operands[0] = s->a;
  operands[1] = s->b;
  operands[2] = (size_t)s->lo;
  return s->kind == TERM_WHERE ? 3 : 2;
}

/** Makes a term a reader of what it is computed from and is not known: terms, which have numbers
    below n_terms, and values, which follow them. */
static void add_reader(arena *a, launch_order *o, uint32_t term, const bool is_late[]) {
  const launch_term *s = &o->exprs->terms[term];
  size_t operands[3], n = list_operands(s, operands);
  if (s->kind == TERM_VALUE && is_late[s->a]) operands[n++] = o->exprs->n_terms + s->a;
  for (size_t i = 0; i < n; i++) {
    if (operands[i] < o->exprs->n_terms && o->is_known[operands[i]]) continue;
    vec_push(a, &o->readers, (launch_reader){term, o->last_reader[operands[i]]});
    o->last_reader[operands[i]] = (uint32_t)o->readers.n;
    o->n_unknown[term]++;
  }
}

launch_order launch_order_open(arena *a, const launch_exprs *c, const bool is_late[],
                               size_t n_values) {
  launch_order o = {.exprs = c};
  o.terms = arena_alloc(a, (c->n_terms + 1) * sizeof *o.terms);
  o.is_known = arena_calloc(a, c->n_terms + 1, sizeof *o.is_known);
  o.n_unknown = arena_calloc(a, c->n_terms + 1, sizeof *o.n_unknown);
  o.last_reader = arena_calloc(a, c->n_terms + n_values + 1, sizeof *o.last_reader);
  for (size_t i = 0; i < c->n_terms; i++) {
    add_reader(a, &o, (uint32_t)i, is_late);
    o.is_known[i] = !o.n_unknown[i];
    if (o.is_known[i]) o.terms[o.n++] = i;
  }
  return o;
}

/** Tells the readers of a term, or of a value, that it is known. */
static void tell_readers(launch_order *o, size_t of) {
  for (uint32_t i = o->last_reader[of]; i; i = o->readers.at[i - 1].before) {
    uint32_t term = o->readers.at[i - 1].term;
    if (--o->n_unknown[term]) continue;
    o->is_known[term] = true;
    o->terms[o->n++] = term;
  }
}

void launch_order_know(launch_order *o, size_t value) {
  size_t told = o->n;
  tell_readers(o, o->exprs->n_terms + value);
  while (told < o->n) tell_readers(o, o->terms[told++]);
}

tn_status launch_grid_eval(const launch_exprs *c, const int64_t values[], int64_t global[3],
                           int64_t local[3], diag *d) {
  int64_t term_results[LAUNCH_MOST_TERMS], results[6] = {0};
  tn_status status = launch_exprs_eval(c, values, term_results, results, d);
  if (status) return status;
  for (size_t i = 0; i < c->n_results; i++)
    if (results[i] <= 0)
      return diag_set(d, TN_ERR_ARGUMENT, "%s size %zu is %" PRId64 ", expected a positive number",
                      i < 3 ? "global" : "local", i % 3, results[i]);
  memcpy(global, results, 3 * sizeof *global);
  memcpy(local, results + 3, 3 * sizeof *local);
  return TN_OK;
}
