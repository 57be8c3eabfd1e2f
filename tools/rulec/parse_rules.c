/* Parses rule files: S-expressions to the structures of rule_ast.h. Expands (for …) loops and
   constants, resolves names in scopes, and checks arity, use of every name, and declarations. Any
   error ends the program with the place of the fault. */
#include "rule_ast.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Atoms: names, types, numbers. */

const char *identifier(const char *name) {
  char *to = copy_text(name, strlen(name));
  for (char *c = to; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return to;
}

static size_t before_colon(const char *text) { return strcspn(text, ":"); }

/** The set of types of a class name; 0 if there is no such class. */
static type_set class_types(const char *text, size_t n) {
  static const struct {
    const char *name, *classes;
  } table[] = {{"float", "FLOAT"},
               {"int", "INT UINT"},
               {"sint", "INT "},
               {"uint", "UINT"},
               {"half", "FLOAT 2"},
               {"wide", "FLOAT 48"},
               {"data", "BOOL INT UINT FLOAT"}};
  type_set set = 0;
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strlen(table[k].name) != n || memcmp(table[k].name, text, n)) continue;
    const char *sizes = strpbrk(table[k].classes, "248");
    for (size_t i = 0; i < type_table_rows; i++) {
      const type_row *t = &type_table[i];
      const char *at = strstr(table[k].classes, t->cls);
      /* UINT contains INT: match at the start of a word only. */
      if (!at || (at != table[k].classes && at[-1] != ' ')) continue;
      if (!sizes || strchr(sizes, '0' + t->bytes)) set |= (type_set)1 << i;
    }
  }
  return set;
}

/** Parses a set of types: "f32", "float" or "f32|f64". */
static type_set read_types(place at, const char *text) {
  type_set set = 0;
  for (const char *next = text;; next++) {
    size_t n = strcspn(next, "|");
    int one = find_type(next, n);
    type_set more = one >= 0 ? (type_set)1 << one : class_types(next, n);
    if (!more) fail(at, "there is no type '%.*s'", (int)n, next);
    set |= more;
    next += n;
    if (!*next) return set;
  }
}

static bool looks_like_number(const char *t) {
  size_t n = before_colon(t);
  if (*t == '-' || *t == '+') t++, n--;
  return isdigit((unsigned char)*t) || (*t == '.' && isdigit((unsigned char)t[1])) ||
         (n == 3 && (!strncmp(t, "inf", 3) || !strncmp(t, "nan", 3)));
}

static number read_number(place at, const char *text, size_t n) {
  number v = {0};
  char *copy = copy_text(text, n), *end;
  bool hex = strstr(copy, "0x") != NULL;
  v.is_float = strpbrk(copy, hex ? ".pP" : ".eEni") != NULL;
  errno = 0;
  if (v.is_float) {
    v.value = strtod(copy, &end);
  } else {
    v.negative = *copy == '-';
    v.bits = strtoull(copy + v.negative, &end, 0);
    if (v.negative) v.bits = 0 - v.bits;
    if (errno) fail(at, "the number '%s' does not fit in 64 bits", copy);
  }
  if (*end) fail(at, "'%s' is no number", copy);
  return v;
}

const char *number_function_suffix(const number *v) { return v->is_float ? "float" : "int"; }

const char *number_text(const number *v) {
  char *text = allocate(64);
  if (!v->is_float && v->negative)
    snprintf(text, 64, "(int64_t)UINT64_C(0x%llx)", (unsigned long long)v->bits);
  else if (!v->is_float)
    snprintf(text, 64, v->bits >> 63 ? "(int64_t)UINT64_C(0x%llx)" : "%llu",
             (unsigned long long)v->bits);
  else if (v->value != v->value)
    snprintf(text, 64, "NAN");
  else if (v->value - v->value != 0)
    snprintf(text, 64, v->value < 0 ? "-INFINITY" : "INFINITY");
  else
    snprintf(text, 64, "%a", v->value);
  return text;
}

/* Scopes. */

typedef enum meaning { NOTHING, CAPTURE, TAIL, LOCAL } meaning; /* of a name */

typedef struct binding {
  const char *name;
  meaning meaning;
  place at;
  int bound, used; /* number of captures, and of uses */
} binding;

typedef struct scope {
  rule_file *file;
  binding *names;
  size_t n;
  bool example; /* names are inputs of an example */
} scope;

static binding *look_up(scope *s, const char *name) {
  for (size_t i = s->n; i-- > 0;)
    if (!strcmp(s->names[i].name, name)) return &s->names[i];
  return NULL;
}

static binding *bind(scope *s, place at, const char *name, meaning m) {
  append(s->names, s->n, (binding){name, m, at, 1, 0});
  return &s->names[s->n - 1];
}

static void check_used(const scope *s, size_t from) {
  for (size_t i = from; i < s->n; i++)
    if (!s->names[i].used && s->names[i].bound < 2)
      fail(s->names[i].at, "'%s' is never used: write _", s->names[i].name);
}

static declaration *find_declaration(const rule_file *f, const char *name) {
  for (size_t i = 0; i < f->n_declarations; i++)
    if (!strcmp(f->declarations[i].name, name)) return &f->declarations[i];
  return NULL;
}

static definition *find_definition(const rule_file *f, const char *name) {
  for (size_t i = 0; i < f->n_definitions; i++)
    if (!strcmp(f->definitions[i].name, name)) return &f->definitions[i];
  return NULL;
}

/* Patterns. */

/** Bytes of the dots at the end of a tail capture (ASCII or U+2026); 0 for other names. */
static size_t tail_marks(const char *text) {
  size_t n = strlen(text);
  if (n > 3 && (!strcmp(text + n - 3, "...") || !strcmp(text + n - 3, "\xe2\x80\xa6"))) return 3;
  return 0;
}

static void bind_capture(scope *s, pattern *p, const char *name) {
  if (!strcmp(name, "_")) return;
  binding *b = look_up(s, name);
  p->name = name;
  if (!b)
    bind(s, p->at, name, p->kind == P_TAIL ? TAIL : CAPTURE);
  else if (b->meaning == TAIL || p->kind == P_TAIL)
    fail(p->at, "a list of sources cannot be captured twice");
  else
    b->bound++;
}

static void restrict_types(pattern *p, const char *text) {
  p->type_text = text;
  p->types = read_types(p->at, text);
}

static pattern *read_atom_pattern(scope *s, const sexpr *e) {
  pattern *p = allocate(sizeof *p);
  size_t n = before_colon(e->text), tail = tail_marks(e->text);
  p->at = e->at;
  if (looks_like_number(e->text)) {
    p->kind = P_NUMBER;
    p->number = read_number(e->at, e->text, n);
  } else if (tail) {
    p->kind = P_TAIL;
    bind_capture(s, p, copy_text(e->text, strlen(e->text) - tail));
    return p;
  } else {
    p->kind = P_ANY;
    bind_capture(s, p, copy_text(e->text, n));
  }
  if (e->text[n]) restrict_types(p, e->text + n + 1);
  return p;
}

static void check_arity(place at, int op, size_t n, bool open) {
  const op_row *o = &op_table[op];
  if ((int)n > o->most || (!open && (int)n < o->least))
    fail(at, "%s takes %s%d source%s, not %zu", o->text, o->most != o->least ? "at least " : "",
         o->least, o->least == 1 ? "" : "s", n);
}

static int read_op(place at, const char *text, size_t n) {
  int op = find_op(text, n);
  if (op < 0) fail(at, "there is no op or function '%.*s'", (int)n, text);
  return op;
}

static pattern *read_pattern(scope *s, const sexpr *e) {
  if (e->kind == 'a') return read_atom_pattern(s, e);
  if (e->kind != '(' || !e->n || e->item[0]->kind != 'a') fail(e->at, "a pattern is expected");
  if (sexpr_starts(e, "as")) {
    if (e->n != 3 || e->item[1]->kind != 'a') fail(e->at, "write (as NAME PATTERN)");
    pattern *p = read_pattern(s, e->item[2]);
    if (p->name || p->kind == P_TAIL) fail(e->at, "this has a name already");
    bind_capture(s, p, e->item[1]->text);
    return p;
  }
  pattern *p = allocate(sizeof *p);
  p->at = e->at;
  if (sexpr_starts(e, "const")) {
    if (e->n != 2 || e->item[1]->kind != 'a') fail(e->at, "write (const NAME)");
    pattern *inner = read_atom_pattern(s, e->item[1]);
    if (inner->kind != P_ANY) fail(e->at, "write (const NAME)");
    inner->kind = P_CONST;
    return inner;
  }
  const char *text = e->item[0]->text;
  size_t n = before_colon(text);
  p->kind = P_OP;
  p->op = read_op(e->at, text, n);
  if (text[n]) restrict_types(p, text + n + 1);
  bool open = false;
  for (size_t i = 1; i < e->n; i++) {
    if (open) fail(e->item[i]->at, "nothing can follow a list of sources");
    append(p->child, p->n, read_pattern(s, e->item[i]));
    open = p->child[p->n - 1]->kind == P_TAIL;
  }
  check_arity(e->at, p->op, p->n - open, open);
  return p;
}

/* Templates. */

static template *read_template(scope *s, const sexpr *e);

/** Parses a result's type: "f32" is that type, "@x" the type of the node x. */
static void read_type(scope *s, template *t, const char *text) {
  char *c = allocate(strlen(text) + 32);
  if (*text == '@') {
    binding *b = look_up(s, text + 1);
    bool root = !strcmp(text + 1, "root");
    if (!root && (!b || b->meaning == TAIL)) fail(t->at, "there is no node '%s'", text + 1);
    if (b) b->used++;
    sprintf(c, root ? "n->dtype" : "v_%s->dtype", identifier(text + 1));
    t->type_of = text + 1;
  } else {
    int type = find_type(text, strlen(text));
    if (type < 0) fail(t->at, "there is no type '%s'", text);
    t->types = (type_set)1 << type;
    sprintf(c, "%s", type_table[type].name);
  }
  t->type = c;
}

static void read_leaf(scope *s, template *t, const char *text) {
  size_t n = before_colon(text);
  const char *extents = strchr(text, '[');
  if (!text[n]) fail(t->at, "the type of '%s' is not said", text);
  t->kind = T_LEAF;
  t->name = copy_text(text, n);
  t->extents = extents;
  const char *type = text + n + 1;
  read_type(s, t, copy_text(type, extents ? (size_t)(extents - type) : strlen(type)));
}

static template *read_atom_template(scope *s, const sexpr *e) {
  template *t = allocate(sizeof *t);
  size_t n = before_colon(e->text);
  t->at = e->at;
  if (looks_like_number(e->text)) {
    t->kind = T_NUMBER;
    t->number = read_number(e->at, e->text, n);
    if (e->text[n]) read_type(s, t, e->text + n + 1);
    return t;
  }
  if (s->example) {
    read_leaf(s, t, e->text);
    return t;
  }
  size_t tail = tail_marks(e->text);
  t->kind = T_NAME;
  t->name = copy_text(e->text, strlen(e->text) - tail);
  if (!strcmp(t->name, "root")) return t;
  binding *b = look_up(s, t->name);
  if (!b) fail(e->at, "there is no '%s' here", t->name);
  if ((b->meaning == TAIL) != (tail != 0))
    fail(e->at, "'%s' is %s", t->name, tail ? "one node" : "a list: write its dots");
  b->used++;
  return t;
}

static void read_children(scope *s, template *t, const sexpr *e, size_t from) {
  for (size_t i = from; i < e->n; i++) append(t->child, t->n, read_template(s, e->item[i]));
}

/** (let ((a A) (b B)) BODY): b may use a. */
static void read_let(scope *s, template *t, const sexpr *bindings, const sexpr *body) {
  size_t from = s->n, n_names = 0;
  t->kind = T_LET;
  if (bindings->kind != '(') fail(bindings->at, "write ((NAME EXPRESSION) …)");
  for (size_t i = 0; i < bindings->n; i++) {
    const sexpr *b = bindings->item[i];
    if (b->kind != '(' || b->n != 2 || b->item[0]->kind != 'a')
      fail(b->at, "write (NAME EXPRESSION)");
    append(t->child, t->n, read_template(s, b->item[1]));
    if (look_up(s, b->item[0]->text)) fail(b->at, "'%s' is taken", b->item[0]->text);
    bind(s, b->at, b->item[0]->text, LOCAL);
    append(t->names, n_names, b->item[0]->text);
  }
  append(t->child, t->n, read_template(s, body));
  check_used(s, from);
  s->n = from;
}

static bool read_call(scope *s, template *t, const sexpr *e) {
  const char *name = e->item[0]->text;
  definition *d = find_definition(s->file, name);
  declaration *c = find_declaration(s->file, name);
  if (s->example || (!d && (!c || c->is_guard))) return false;
  t->kind = T_CALL;
  t->name = name;
  read_children(s, t, e, 1);
  if (t->n != (d ? d->n : c->n))
    fail(e->at, "%s takes %zu argument(s), not %zu", name, d ? d->n : c->n, t->n);
  if (d)
    d->used = true;
  else
    c->used = true;
  return true;
}

static template *read_template(scope *s, const sexpr *e) {
  if (e->kind == 'a') return read_atom_template(s, e);
  if (e->kind != '(' || !e->n || e->item[0]->kind != 'a') fail(e->at, "an expression is expected");
  template *t = allocate(sizeof *t);
  t->at = e->at;
  if (sexpr_starts(e, "let")) {
    if (e->n != 3) fail(e->at, "write (let ((NAME EXPRESSION) …) BODY)");
    read_let(s, t, e->item[1], e->item[2]);
    return t;
  }
  if (sexpr_starts(e, "poly")) {
    t->kind = T_POLY;
    read_children(s, t, e, 1);
    if (t->n < 3) fail(e->at, "a polynomial has a variable and two coefficients or more");
    for (size_t i = 1; i < t->n; i++)
      if (t->child[i]->kind != T_NUMBER) fail(t->child[i]->at, "a coefficient is a number");
    return t;
  }
  if (read_call(s, t, e)) return t;
  const char *text = e->item[0]->text;
  size_t n = before_colon(text);
  t->kind = T_OP;
  t->op = read_op(e->at, text, n);
  if (text[n]) read_type(s, t, text + n + 1);
  size_t from = 1;
  if (e->n > 1 && e->item[1]->kind == '{') t->ints = e->item[from++];
  read_children(s, t, e, from);
  bool open = t->n && t->child[t->n - 1]->kind == T_NAME && look_up(s, t->child[t->n - 1]->name) &&
              look_up(s, t->child[t->n - 1]->name)->meaning == TAIL;
  check_arity(e->at, t->op, t->n - open, open);
  return t;
}

/* Rules and other forms. */

static void read_condition(scope *s, rule *r, const sexpr *e) {
  condition c = {.at = e->at};
  if (sexpr_starts(e, "not") && e->n == 2) {
    c.negated = true;
    e = e->item[1];
  }
  if (e->kind != '(' || !e->n || e->item[0]->kind != 'a') fail(e->at, "write (GUARD NAME …)");
  c.name = e->item[0]->text;
  if (!strcmp(c.name, "lacks")) {
    if (e->n != 2 || e->item[1]->kind != 'a') fail(e->at, "write (lacks OP)");
    c.op = read_op(e->at, e->item[1]->text, strlen(e->item[1]->text));
    append(r->conditions, r->n_conditions, c);
    return;
  }
  declaration *d = find_declaration(s->file, c.name);
  if (!d || !d->is_guard) fail(e->at, "no guard '%s' is declared", c.name);
  d->used = true;
  for (size_t i = 1; i < e->n; i++) {
    const char *name = e->item[i]->kind == 'a' ? e->item[i]->text : "";
    binding *b = look_up(s, name);
    if (strcmp(name, "root")) {
      if (!b || b->meaning != CAPTURE) fail(e->item[i]->at, "there is no node '%s'", name);
      b->used++;
    }
    append(c.args, c.n, name);
  }
  if (c.n != d->n) fail(e->at, "%s takes %zu argument(s), not %zu", c.name, d->n, c.n);
  append(r->conditions, r->n_conditions, c);
}

static math read_math(const sexpr *e) {
  if (sexpr_is(e, "fast")) return FAST;
  if (sexpr_is(e, "contract")) return CONTRACT;
  if (sexpr_is(e, "sum")) return SUM;
  if (sexpr_is(e, "flush")) return FLUSH;
  fail(e->at, "math is fast, contract, sum or flush");
}

/** Parses TYPES WORD … from item i up to the next field; returns the index of the item after them.
 */
static size_t read_exemption(proof_exemption *x, const sexpr *e, size_t i) {
  bool all = i < e->n && sexpr_is(e->item[i], "all");
  if (i >= e->n || e->item[i]->kind != 'a') fail(e->at, "write TYPES WORD ...");
  *x =
      (proof_exemption){.at = e->item[i]->at,
                        .types = all ? ~(type_set)0 : read_types(e->item[i]->at, e->item[i]->text)};
  char *words = allocate(1);
  for (i++; i < e->n && e->item[i]->kind == 'a' && *e->item[i]->text != ':'; i++) {
    const char *word = e->item[i]->text;
    words = enlarge(words, strlen(words) + strlen(word) + 2);
    if (*words) strcat(words, " ");
    strcat(words, word);
  }
  if (!*words) fail(x->at, "say why there is no proof");
  x->words = words;
  return i;
}

static void read_fields(scope *s, rule *r, const sexpr *e, const sexpr **let,
                        const sexpr **example) {
  for (size_t i = 5; i < e->n; i++) {
    const sexpr *key = e->item[i], *value = i + 1 < e->n ? e->item[i + 1] : NULL;
    if (key->kind != 'a' || *key->text != ':' || !value) fail(key->at, "a field is expected");
    if (sexpr_is(key, ":if"))
      for (; i + 1 < e->n && e->item[i + 1]->kind == '('; i++) read_condition(s, r, e->item[i + 1]);
    else if (sexpr_is(key, ":math"))
      r->math = read_math(value), i++;
    else if (sexpr_is(key, ":let"))
      *let = value, i++;
    else if (sexpr_is(key, ":example"))
      *example = value, i++;
    else if (sexpr_is(key, ":unproved")) {
      proof_exemption x;
      i = read_exemption(&x, e, i + 1) - 1;
      append(r->unproved, r->n_unproved, x);
    } else
      fail(key->at, "there is no field '%s'", key->text);
  }
}

static void read_rule(rule_file *f, const sexpr *e, const char *suffix) {
  rule r = {.at = e->at};
  scope s = {.file = f};
  const sexpr *let = NULL, *example = NULL;
  if (e->n < 5 || e->item[1]->kind != 'a' || !sexpr_is(e->item[3], "->"))
    fail(e->at, "write (rule NAME PATTERN -> EXPRESSION …)");
  char *name = allocate(strlen(e->item[1]->text) + strlen(suffix) + 1);
  r.name = strcat(strcpy(name, e->item[1]->text), suffix);
  for (size_t i = 0; i < f->n_rules; i++)
    if (!strcmp(f->rules[i].name, r.name))
      fail(e->at, "the name '%s' is taken by line %d", r.name, f->rules[i].at.line);
  r.pattern = read_pattern(&s, e->item[2]);
  if (r.pattern->kind != P_OP) fail(e->at, "a rule's pattern starts with an op");
  read_fields(&s, &r, e, &let, &example);
  if (let) {
    r.result = allocate(sizeof *r.result);
    r.result->at = let->at;
    read_let(&s, r.result, let, e->item[4]);
  } else {
    r.result = read_template(&s, e->item[4]);
  }
  check_used(&s, 0);
  if (!example) fail(e->at, "the rule '%s' has no :example", r.name);
  r.example = read_template(&(scope){.file = f, .example = true}, example);
  append(f->rules, f->n_rules, r);
}

static void read_file_exemption(rule_file *f, const sexpr *e) {
  proof_exemption x;
  if (read_exemption(&x, e, 1) != e->n) fail(e->at, "write (unproved TYPES WORD ...)");
  append(f->unproved, f->n_unproved, x);
}

static void read_definition(rule_file *f, const sexpr *e) {
  scope s = {.file = f};
  if (e->n != 3 || e->item[1]->kind != '(' || e->item[1]->n < 2)
    fail(e->at, "write (define (NAME PARAMETER …) EXPRESSION)");
  definition d = {.at = e->at};
  for (size_t i = 0; i < e->item[1]->n; i++) {
    const sexpr *p = e->item[1]->item[i];
    if (p->kind != 'a') fail(p->at, "a name is expected");
    if (!i) {
      d.name = p->text;
    } else {
      append(d.parameters, d.n, p->text);
      bind(&s, p->at, p->text, LOCAL);
    }
  }
  if (find_definition(f, d.name) || find_op(d.name, strlen(d.name)) >= 0)
    fail(e->at, "the name '%s' is taken", d.name);
  d.body = read_template(&s, e->item[2]);
  check_used(&s, 0);
  append(f->definitions, f->n_definitions, d);
}

static void read_declaration(rule_file *f, const sexpr *e, bool is_guard) {
  if (e->n != 3 || e->item[1]->kind != 'a' || e->item[2]->kind != '(')
    fail(e->at, "write (%s NAME (PARAMETER …))", is_guard ? "guard" : "build");
  declaration d = {e->at, e->item[1]->text, e->item[2]->n, is_guard, false};
  if (find_declaration(f, d.name) || find_op(d.name, strlen(d.name)) >= 0)
    fail(e->at, "the name '%s' is taken", d.name);
  append(f->declarations, f->n_declarations, d);
}

typedef struct constants {
  char **name;
  const sexpr **value;
  size_t n, n_values;
} constants;

static void read_form(rule_file *f, const sexpr *e, const char *suffix, constants *c);

/** (for NAME (A B …) FORM …) and (for (NAME NAME …) ((A B …) …) FORM …): reads the forms once for
    each value or tuple. */
static void read_for(rule_file *f, const sexpr *e, const char *suffix, constants *c) {
  if (e->n < 4 || e->item[2]->kind != '(') fail(e->at, "write (for NAME (VALUE …) FORM …)");
  const sexpr *names = e->item[1];
  bool tuples = names->kind == '(';
  for (size_t i = 0; i < e->item[2]->n; i++) {
    const sexpr *row = e->item[2]->item[i];
    size_t n = tuples ? names->n : 1;
    if (tuples && (row->kind != '(' || row->n != n)) fail(row->at, "%zu values are expected", n);
    char **from = allocate(n * sizeof *from);
    const sexpr **to = allocate(n * sizeof *to);
    for (size_t k = 0; k < n; k++) {
      from[k] = (char *)(tuples ? names->item[k] : names)->text;
      to[k] = tuples ? row->item[k] : row;
    }
    if (to[0]->kind != 'a') fail(row->at, "the first value names the rule: a word is expected");
    char *rule_suffix = allocate(strlen(suffix) + strlen(to[0]->text) + 2);
    sprintf(rule_suffix, "%s-%s", suffix, to[0]->text);
    for (size_t k = 3; k < e->n; k++)
      read_form(f, sexpr_replace(e->item[k], from, to, n), rule_suffix, c);
  }
}

static void read_form(rule_file *f, const sexpr *e, const char *suffix, constants *c) {
  if (sexpr_starts(e, "rule"))
    read_rule(f, e, suffix);
  else if (sexpr_starts(e, "for"))
    read_for(f, e, suffix, c);
  else if (sexpr_starts(e, "define"))
    read_definition(f, e);
  else if (sexpr_starts(e, "guard"))
    read_declaration(f, e, true);
  else if (sexpr_starts(e, "build"))
    read_declaration(f, e, false);
  else if (sexpr_starts(e, "unproved"))
    read_file_exemption(f, e);
  else if (sexpr_starts(e, "constant") && e->n == 3 && e->item[1]->kind == 'a') {
    append(c->name, c->n, (char *)e->item[1]->text);
    append(c->value, c->n_values, e->item[2]);
  } else
    fail(e->at, "a form starts with rule, for, define, guard, build, constant or unproved");
}

/** The file name without folder and ending, as a C identifier. */
static const char *stem(const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path,
             *dot = strchr(base, '.');
  return identifier(copy_text(base, dot ? (size_t)(dot - base) : strlen(base)));
}

static void check_all_used(const rule_file *f) {
  for (size_t i = 0; i < f->n_definitions; i++)
    if (!f->definitions[i].used)
      fail(f->definitions[i].at, "'%s' is never used", f->definitions[i].name);
  for (size_t i = 0; i < f->n_declarations; i++)
    if (!f->declarations[i].used)
      fail(f->declarations[i].at, "'%s' is never used", f->declarations[i].name);
}

rule_file *rules_parse(const char *path) {
  rule_file *f = allocate(sizeof *f);
  constants c = {0};
  f->path = path;
  f->set = stem(path);
  sexpr *all = sexpr_read(path);
  for (size_t i = 0; i < all->n; i++)
    read_form(f, sexpr_replace(all->item[i], c.name, c.value, c.n), "", &c);
  check_all_used(f);
  return f;
}
