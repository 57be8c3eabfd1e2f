/* Generates C code from rewrite rules: one function for each variant of a rule's pattern (match,
   guards, build), and for each root op one that tries the variants, dispatched by the op of the
   first source: a decision tree of two levels. */
#include "rule_ast.h"

#include <stdlib.h>
#include <string.h>

typedef struct emitter {
  FILE *out;
  const rule_file *file;
  int nodes, values;        /* counts of the locals p… (matched nodes) and t… (built values) */
  const char *captured[64]; /* names bound so far */
  size_t n_captured;
} emitter;

/* Patterns. */

static void emit_type_check(emitter *e, const char *node, type_set types) {
  if (!types) return;
  fprintf(e->out, "  if (");
  const char *and = "";
  for (size_t i = 0; i < type_table_rows; i++)
    if (types >> i & 1) {
      fprintf(e->out, "%s%s->dtype != %s", and, node, type_table[i].name);
      and = " && ";
    }
  fprintf(e->out, ") return NULL;\n");
}

static bool is_bound(const emitter *e, const char *name) {
  for (size_t i = 0; i < e->n_captured; i++)
    if (!strcmp(e->captured[i], name)) return true;
  return false;
}

static void emit_capture(emitter *e, const pattern *p, const char *node) {
  if (!p->name) return;
  const char *c = identifier(p->name);
  if (is_bound(e, p->name)) {
    fprintf(e->out, "  if (%s != v_%s) return NULL;\n", node, c);
    return;
  }
  if (e->n_captured == 64) fail(p->at, "too many captures");
  e->captured[e->n_captured++] = p->name;
  fprintf(e->out, "  const node *v_%s = %s;\n", c, node);
}

static void emit_pattern(emitter *e, const pattern *p, const char *node);

static void emit_tail(emitter *e, const pattern *tail, const char *node, size_t from) {
  if (!tail->name) return;
  const char *c = identifier(tail->name);
  fprintf(e->out, "  const node *const *v_%s = &%s->src[%zu];\n", c, node, from);
  fprintf(e->out, "  size_t n_%s = %s->n_src - %zu;\n", c, node, from);
}

static void emit_children(emitter *e, const pattern *p, const char *node) {
  bool open = p->n && p->child[p->n - 1]->kind == P_TAIL;
  if (op_table[p->op].least != op_table[p->op].most)
    fprintf(e->out, "  if (%s->n_src %s %zu) return NULL;\n", node, open ? "<" : "!=", p->n - open);
  for (size_t i = 0; i < p->n; i++) {
    const pattern *c = p->child[i];
    if (c->kind == P_TAIL) {
      emit_tail(e, c, node, i);
    } else if (c->kind != P_ANY || c->name || c->types) {
      const char *child = text_of("p%d", e->nodes++);
      fprintf(e->out, "  const node *%s = %s->src[%zu];\n", child, node, i);
      emit_pattern(e, c, child);
    }
  }
}

static void emit_pattern(emitter *e, const pattern *p, const char *node) {
  if (p->kind == P_OP && strcmp(node, "n"))
    fprintf(e->out, "  if (%s->op != OP_%s) return NULL;\n", node, op_table[p->op].name);
  emit_type_check(e, node, p->types);
  if (p->kind == P_NUMBER)
    fprintf(e->out, "  if (!rule_is_%s(%s, %s)) return NULL;\n", number_function_suffix(&p->number),
            node, number_text(&p->number));
  if (p->kind == P_CONST) fprintf(e->out, "  if (!simple_constant(%s)) return NULL;\n", node);
  emit_capture(e, p, node);
  if (p->kind == P_OP) emit_children(e, p, node);
}

/* Templates. */

bool template_is_typed(const template *t) {
  if (t->kind == T_NUMBER) return t->type != NULL;
  if (t->kind == T_LET) return template_is_typed(t->child[t->n - 1]);
  if (t->kind == T_POLY) return template_is_typed(t->child[0]);
  if (t->kind != T_OP || t->type) return true;
  type_rule rule = op_table[t->op].type;
  if (rule == COMPARE || rule == INDEX || rule == VOID) return true;
  for (size_t i = rule == SELECT; i < t->n; i++)
    if (template_is_typed(t->child[i])) return true;
  return false;
}

static const char *emit_template(emitter *e, const template *t, const char *type);

static const char *new_value(emitter *e) { return text_of("t%d", e->values++); }

static void emit_null_check(emitter *e, const char *value) {
  fprintf(e->out, "  if (!%s) return NULL;\n", value);
}

/** Arguments of an op or call: the first one with a type of its own determines that of the others.
 */
static const char **emit_arguments(emitter *e, const template *t, size_t from, const char *type) {
  const char **value = allocate((t->n + 1) * sizeof *value);
  size_t anchor = from;
  while (anchor < t->n && !template_is_typed(t->child[anchor])) anchor++;
  if (anchor < t->n) {
    value[anchor] = emit_template(e, t->child[anchor], type);
    type = text_of("(dtype)%s->dtype", value[anchor]);
  }
  for (size_t i = from; i < t->n; i++)
    if (!value[i]) value[i] = emit_template(e, t->child[i], type);
  return value;
}

static const char *emit_number(const template *t, const char *type) {
  if (t->type) type = text_of("(dtype)%s", t->type);
  if (!type) fail(t->at, "the type of this number is not known: write it as 1:f32");
  return text_of("rule_%s(rw, n, %s, %s)", number_function_suffix(&t->number), type,
                 number_text(&t->number));
}

static const char *emit_movement(emitter *e, const template *t, const char *type) {
  const template *last = t->child[t->n - 1];
  bool tail = last->kind == T_NAME && strcmp(last->name, "root") &&
              op_table[t->op].least != op_table[t->op].most;
  template fixed = *t;
  fixed.n -= tail;
  const char **value = emit_arguments(e, &fixed, 0, type), *result = new_value(e);
  fprintf(e->out, "  const node *%s = rule_movement(rw, OP_%s, (const node *const[]){", result,
          op_table[t->op].name);
  for (size_t i = 0; i < fixed.n; i++) fprintf(e->out, "%s%s", i ? ", " : "", value[i]);
  fprintf(e->out, "}, %zu, ", fixed.n);
  if (tail)
    fprintf(e->out, "v_%s, n_%s);\n", identifier(last->name), identifier(last->name));
  else
    fprintf(e->out, "NULL, 0);\n");
  return result;
}

static const char *emit_op(emitter *e, const template *t, const char *type) {
  const op_row *o = &op_table[t->op];
  if (o->movement && !t->ints && t->op != O_PERMUTE && t->op != O_SLICE)
    return emit_movement(e, t, type);
  if (!o->elementwise || t->ints || o->most > 3)
    fail(t->at, "%s cannot be written here: declare a function with (build …)", o->text);
  bool conversion = t->op == O_CAST || t->op == O_BITCAST;
  if (conversion && !t->type) fail(t->at, "to which type? Write %s:f32", o->text);
  if (conversion) type = NULL;
  if (o->type == COMPARE) type = NULL;
  const char **value = emit_arguments(e, t, o->type == SELECT, type);
  if (o->type == SELECT) value[0] = emit_template(e, t->child[0], "DT_BOOL");
  const char *result = new_value(e);
  if (conversion)
    fprintf(e->out, "  const node *%s = simple_%s(rw->ir, %s, (dtype)%s);\n", result, o->text,
            value[0], t->type);
  else if (t->n == 1)
    fprintf(e->out, "  const node *%s = simple_op1(rw->ir, OP_%s, %s);\n", result, o->name,
            value[0]);
  else if (t->n == 2)
    fprintf(e->out, "  const node *%s = simple_op2(rw->ir, OP_%s, %s, %s);\n", result, o->name,
            value[0], value[1]);
  else
    fprintf(e->out, "  const node *%s = simple_op3(rw->ir, OP_%s, %s, %s, %s);\n", result, o->name,
            value[0], value[1], value[2]);
  return result;
}

static const char *emit_call(emitter *e, const template *t, const char *type) {
  const char **value = emit_arguments(e, t, 0, type), *result = new_value(e), *prefix = "build";
  for (size_t i = 0; i < e->file->n_definitions; i++)
    if (!strcmp(e->file->definitions[i].name, t->name)) prefix = e->file->set;
  fprintf(e->out, "  const node *%s = %s_%s(rw, n", result, prefix, identifier(t->name));
  for (size_t i = 0; i < t->n; i++) fprintf(e->out, ", %s", value[i]);
  fprintf(e->out, ");\n");
  emit_null_check(e, result);
  return result;
}

static const char *emit_let(emitter *e, const template *t, const char *type) {
  for (size_t i = 0; i + 1 < t->n; i++) {
    const char *value = emit_template(e, t->child[i], NULL);
    fprintf(e->out, "  const node *v_%s = %s;\n", identifier(t->names[i]), value);
  }
  return emit_template(e, t->child[t->n - 1], type);
}

static const char *emit_poly(emitter *e, const template *t, const char *type) {
  const char *x = emit_template(e, t->child[0], type), *result = new_value(e);
  fprintf(e->out, "  const node *%s = rule_poly(rw, n, %s, %zu, (const double[]){", result, x,
          t->n - 1);
  for (size_t i = 1; i < t->n; i++) {
    const number *v = &t->child[i]->number;
    fprintf(e->out, "%s%s", i > 1 ? ", " : "", number_text(v));
  }
  fprintf(e->out, "});\n");
  return result;
}

static const char *emit_template(emitter *e, const template *t, const char *type) {
  switch (t->kind) {
  case T_NAME: return strcmp(t->name, "root") ? text_of("v_%s", identifier(t->name)) : "n";
  case T_NUMBER: return emit_number(t, type);
  case T_OP: return emit_op(e, t, type);
  case T_CALL: return emit_call(e, t, type);
  case T_LET: return emit_let(e, t, type);
  case T_POLY: return emit_poly(e, t, type);
  default: fail(t->at, "an input stands in examples only");
  }
}

/* Rules. */

static void emit_condition(FILE *out, const condition *c) {
  const char *not = c->negated ? "" : "!";
  if (!strcmp(c->name, "lacks")) {
    fprintf(out, "  if (%srule_target_lacks_op(rw->target, OP_%s)) return NULL;\n", not,
            op_table[c->op].name);
    return;
  }
  fprintf(out, "  if (%sguard_%s(rw, n", not, identifier(c->name));
  for (size_t i = 0; i < c->n; i++)
    fprintf(out, strcmp(c->args[i], "root") ? ", v_%s" : ", n", identifier(c->args[i]));
  fprintf(out, ")) return NULL;\n");
}

/** Emits the conditions without captures (`early`, before the match) or with captures. */
static void emit_conditions(FILE *out, const rule *r, bool early) {
  for (size_t i = 0; i < r->n_conditions; i++)
    if ((r->conditions[i].n == 0) == early) emit_condition(out, &r->conditions[i]);
}

static void emit_variant(FILE *out, const rule_file *f, size_t rule, size_t variant) {
  const struct rule *r = &f->rules[rule];
  emitter e = {.out = out, .file = f};
  fprintf(out, "/* %s:%d */\n", f->set, r->at.line);
  fprintf(out, "static const node *%s_%zu_%zu(rewriter *rw, const node *n) {\n", f->set, rule,
          variant);
  emit_conditions(out, r, true);
  if (r->math) fprintf(out, "  if (!(rw->math & %d)) return NULL;\n", r->math);
  emit_pattern(&e, r->variants[variant], "n");
  emit_conditions(out, r, false);
  const char *result = emit_template(&e, r->result, "(dtype)n->dtype");
  fprintf(out, "  return rule_fire(rw, \"%s\", n, %s);\n}\n\n", r->name, result);
}

static void emit_definition_head(FILE *out, const rule_file *f, const definition *d) {
  fprintf(out, "static const node *%s_%s(rewriter *rw, const node *n", f->set, identifier(d->name));
  for (size_t i = 0; i < d->n; i++)
    fprintf(out, ", const node *v_%s", identifier(d->parameters[i]));
  fprintf(out, ")");
}

static void emit_definition(FILE *out, const rule_file *f, const definition *d) {
  emitter e = {.out = out, .file = f};
  emit_definition_head(out, f, d);
  fprintf(out, " {\n  (void)n;\n");
  const char *result = emit_template(&e, d->body, "(dtype)n->dtype");
  fprintf(out, "  return %s;\n}\n\n", result);
}

/* Dispatch. */

/** True if a pattern can match a node of an op; op −1: an op that no rule names. */
static bool may_match(const pattern *p, int op) {
  switch (p->kind) {
  case P_OP: return p->op == op;
  case P_NUMBER:
  case P_CONST: return op == O_CONST || op == O_SPLAT || op == O_EXPAND || op == O_RESHAPE;
  default: return true;
  }
}

/** True if a rule can match a node whose first source has this op. */
static bool fits_first_source(const pattern *root, int child_op) {
  return !root->n || may_match(root->child[0], child_op);
}

/** Emits calls of all variants that can match; false if there are none. */
static bool emit_tries(FILE *out, const rule_file *f, int root, int child_op, const char *indent) {
  bool any = false;
  for (size_t i = 0; i < f->n_rules; i++)
    for (size_t k = 0; k < f->rules[i].n_variants; k++) {
      const pattern *p = f->rules[i].variants[k];
      if (p->op != root || !fits_first_source(p, child_op)) continue;
      fprintf(out, "%sif ((r = %s_%zu_%zu(rw, n))) return r;\n", indent, f->set, i, k);
      any = true;
    }
  return any;
}

/** True if a rule of a root op requires this op of the first source. */
static bool needs_case(const rule_file *f, int root, int child_op) {
  for (size_t i = 0; i < f->n_rules; i++)
    for (size_t k = 0; k < f->rules[i].n_variants; k++) {
      const pattern *p = f->rules[i].variants[k];
      if (p->op == root && fits_first_source(p, child_op) && !fits_first_source(p, -1)) return true;
    }
  return false;
}

static bool has_root(const rule_file *f, int op) {
  for (size_t i = 0; i < f->n_rules; i++)
    if (f->rules[i].pattern->op == op) return true;
  return false;
}

static void emit_root(FILE *out, const rule_file *f, int root) {
  bool cases = false;
  for (int op = 0; op < O_LIMIT; op++) cases |= needs_case(f, root, op);
  fprintf(out, "static const node *%s_%s(rewriter *rw, const node *n) {\n  const node *r;\n",
          f->set, op_table[root].name);
  if (cases) {
    fprintf(out, "  switch (n->n_src ? n->src[0]->op : OP_LIMIT) {\n");
    for (int op = 0; op < O_LIMIT; op++) {
      if (!needs_case(f, root, op)) continue;
      fprintf(out, "  case OP_%s:\n", op_table[op].name);
      emit_tries(out, f, root, op, "    ");
      fprintf(out, "    return NULL;\n");
    }
    fprintf(out, "  default: break;\n  }\n");
  }
  if (!emit_tries(out, f, root, -1, "  ")) fprintf(out, "  (void)r;\n");
  fprintf(out, "  return NULL;\n}\n\n");
}

static void emit_set(FILE *out, const rule_file *f) {
  fprintf(out, "/* %s.rules */\n\n", f->set);
  for (size_t i = 0; i < f->n_definitions; i++) {
    emit_definition_head(out, f, &f->definitions[i]);
    fprintf(out, ";\n");
  }
  for (size_t i = 0; i < f->n_definitions; i++) emit_definition(out, f, &f->definitions[i]);
  for (size_t i = 0; i < f->n_rules; i++)
    for (size_t k = 0; k < f->rules[i].n_variants; k++) emit_variant(out, f, i, k);
  for (int op = 0; op < O_LIMIT; op++)
    if (has_root(f, op)) emit_root(out, f, op);
  fprintf(out, "const node *rules_%s(rewriter *rw, const node *n) {\n  switch (n->op) {\n", f->set);
  for (int op = 0; op < O_LIMIT; op++)
    if (has_root(f, op))
      fprintf(out, "  case OP_%s: return %s_%s(rw, n);\n", op_table[op].name, f->set,
              op_table[op].name);
  fprintf(out, "  default: return NULL;\n  }\n}\n\n");
}

void emit_rules(FILE *out, rule_file *const files[], size_t n) {
  fprintf(out, "/* Made by rulec. */\n"
               "#include \"rules/rule_functions.h\"\n#include \"rules/rule_runtime.h\"\n"
               "#include \"rules/rule_sets.h\"\n#include \"rules/simplifying_builder.h\"\n\n"
               "#include <math.h>\n\n");
  for (size_t i = 0; i < n; i++) emit_set(out, files[i]);
}
