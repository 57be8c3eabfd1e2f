/* Generates C code for tests from the examples of rewrite rules: one function for each rule that
   builds its example graph without simplification, and a table of them (tests/rules/examples.h). */
#include "rule_ast.h"

#include <stdlib.h>
#include <string.h>

typedef struct builder {
  FILE *out;
  const char *leaf[32]; /* inputs so far; the position is the slot */
  size_t leaves;
  int values; /* locals so far */
} builder;

static const char *build_template(builder *b, const template *t, const char *type);

static const char *local_name(int k) {
  char *text = allocate(16);
  snprintf(text, 16, "e%d", k);
  return text;
}

static size_t leaf_slot(builder *b, const template *t) {
  for (size_t i = 0; i < b->leaves; i++)
    if (!strcmp(b->leaf[i], t->name)) return i;
  if (b->leaves == 32) fail(t->at, "too many inputs");
  b->leaf[b->leaves++] = t->name;
  return b->leaves - 1;
}

/** "[4,6]" as the C list 4,6 and its length. */
static const char *extent_list(const template *t, size_t *n) {
  size_t length = t->extents ? strlen(t->extents) : 0;
  *n = 0;
  if (!length) return "0";
  if (t->extents[length - 1] != ']' || strspn(t->extents + 1, "-0123456789,") != length - 2)
    fail(t->at, "extents are written as [4,6]");
  const char *list = copy_text(t->extents + 1, length - 2);
  for (const char *c = list; *c; c++) *n += *c == ',';
  ++*n;
  return list;
}

static const char *build_leaf(builder *b, const template *t) {
  size_t slot = leaf_slot(b, t), n;
  const char *list = extent_list(t, &n), *value = local_name(b->values++);
  bool index = !strcmp(t->type, "DT_INDEX");
  if (index && n != 2 && n) fail(t->at, "an index has a least and a greatest value");
  if (index)
    fprintf(b->out, "  const node *%s = variable(g, \"%s\", %s);\n", value, t->name,
            n ? list : "-1000, 1000");
  else
    fprintf(b->out, "  const node *%s = input(g, %s, %zu, %zu, (const int64_t[]){%s});\n", value,
            t->type, slot, n, list);
  return value;
}

static const char *build_number(builder *b, const template *t, const char *type, const char *like) {
  const char *value = local_name(b->values++);
  if (t->type) type = t->type;
  if (!type) fail(t->at, "the type of this number is not known: write it as 1:f32");
  fprintf(b->out, "  const node *%s = literal_%s(g, %s, %s, %s);\n", value,
          number_function_suffix(&t->number), like ? like : "NULL", type, number_text(&t->number));
  return value;
}

static bool is_number(const template *t) { return t->kind == T_NUMBER; }

/** True if source i of an op is an index. */
static bool takes_index(int op, size_t i, size_t n) {
  switch (op) {
  case O_RESHAPE:
  case O_EXPAND:
  case O_SLICE: return i > 0;
  case O_PAD: return i > 1;
  case O_IOTA: return n > 0;
  default: return false;
  }
}

static const char *build_ints(const template *t, size_t *n) {
  char *text = allocate(1);
  *n = t->ints ? t->ints->n : 0;
  for (size_t i = 0; i < *n; i++) {
    const char *word = t->ints->item[i]->text;
    int op = word ? find_op(word, strlen(word)) : -1;
    if (!word) fail(t->at, "numbers are expected in { }");
    const char *c = op >= 0 ? op_table[op].name : word;
    text = enlarge(text, strlen(text) + strlen(c) + 8);
    sprintf(text + strlen(text), "%s%s%s", i ? ", " : "", op >= 0 ? "OP_" : "", c);
  }
  return *n ? text : "0";
}

static void build_sources(builder *b, const template *t, const char **value, const char *type) {
  const char *like = NULL;
  size_t from = op_table[t->op].type == SELECT;
  bool conversion = t->op == O_CAST || t->op == O_BITCAST;
  if (conversion || op_table[t->op].type == COMPARE) type = NULL;
  for (size_t i = 0; i < t->n; i++) {
    if (is_number(t->child[i])) continue;
    bool condition = from && !i;
    value[i] = build_template(b, t->child[i], condition ? "DT_BOOL" : type);
    if (condition || like) continue;
    like = value[i];
    char *text = allocate(32);
    snprintf(text, 32, "(dtype)%s->dtype", like);
    type = text;
  }
  for (size_t i = 0; i < t->n; i++) {
    if (value[i]) continue;
    bool index = takes_index(t->op, i, t->n), condition = from && !i;
    bool scalar = index || (t->op == O_PAD && i == 1);
    value[i] = build_number(b, t->child[i],
                            index       ? "DT_INDEX"
                            : condition ? "DT_BOOL"
                                        : type,
                            scalar ? NULL : like);
  }
}

static const char *build_op(builder *b, const template *t, const char *type) {
  const char **value = allocate((t->n + 1) * sizeof *value), *made;
  size_t n_int;
  const char *ints = build_ints(t, &n_int);
  build_sources(b, t, value, type);
  made = local_name(b->values++);
  fprintf(b->out, "  const node *%s = make(g, OP_%s, %s, (const node *const[]){", made,
          op_table[t->op].name, t->type ? t->type : "DT_LIMIT");
  for (size_t i = 0; i < t->n; i++) fprintf(b->out, "%s%s", i ? ", " : "", value[i]);
  fprintf(b->out, "%s}, %zu, (const int64_t[]){%s}, %zu);\n", t->n ? "" : "NULL", t->n, ints,
          n_int);
  return made;
}

static const char *build_template(builder *b, const template *t, const char *type) {
  switch (t->kind) {
  case T_LEAF: return build_leaf(b, t);
  case T_NUMBER: return build_number(b, t, type, NULL);
  case T_OP: return build_op(b, t, type);
  default: fail(t->at, "an example consists of ops, inputs and numbers");
  }
}

static const char head[] =
    "/* Made by rulec. */\n"
    "#include \"examples.h\"\n"
    "\n"
    "#include \"ir/core/build.h\"\n"
    "#include \"ir/index/build_tensor.h\"\n"
    "#include \"ir/index/index_arithmetic.h\"\n"
    "\n"
    "#include <math.h>\n"
    "#include <string.h>\n"
    "\n"
    "static const node *input(ir *g, dtype t, int64_t slot, size_t rank, const int64_t sizes[]) {\n"
    "  const node *dims[8] = {NULL};\n"
    "  for (size_t i = 0; i < rank; i++) dims[i] = ix_const(g, sizes[i]);\n"
    "  return ir_node(g, OP_PARAM, t, dims, rank, &slot, 1);\n"
    "}\n"
    "\n"
    "static inline const node *variable(ir *g, const char *name, int64_t least, int64_t most) {\n"
    "  int64_t bounds[] = {least, most};\n"
    "  return ir_make(g, &(node_spec){.op = OP_VAR, .dtype = DT_INDEX, .ints = bounds, .n_int = "
    "2,\n"
    "                                 .text = name, .n_text = strlen(name)});\n"
    "}\n"
    "\n"
    "static const node *literal(ir *g, const node *like, const node *c) {\n"
    "  return like && like->rank ? ir_fill(g, c, like->rank, like->dims) : c;\n"
    "}\n"
    "\n"
    "static inline const node *literal_int(ir *g, const node *like, dtype t, int64_t v) {\n"
    "  uint64_t bits = dtype_is_float(t) ? scalar_from_double(t, (double)v)\n"
    "                                    : scalar_cast(t, DT_I64, (uint64_t)v);\n"
    "  return literal(g, like, ir_const_bits(g, t, bits));\n"
    "}\n"
    "\n"
    "static inline const node *literal_float(ir *g, const node *like, dtype t, double v) {\n"
    "  return literal(g, like, ir_const(g, t, v));\n"
    "}\n"
    "\n"
    "static const node *make(ir *g, op o, dtype t, const node *const src[], size_t n,\n"
    "                        const int64_t ints[], size_t n_int) {\n"
    "  if (t == DT_LIMIT && n && src[0]->dtype == DT_INDEX && o == OP_ADD)\n"
    "    return ix_add(g, src[0], src[1]);\n"
    "  if (t == DT_LIMIT && op_is_elementwise(o))\n"
    "    return n == 1   ? ir_op1(g, o, src[0])\n"
    "           : n == 2 ? ir_op2(g, o, src[0], src[1])\n"
    "                    : ir_op3(g, o, src[0], src[1], src[2]);\n"
    "  return ir_node(g, o, t == DT_LIMIT ? (dtype)src[0]->dtype : t, src, n, ints, n_int);\n"
    "}\n\n";

static void emit_builders(FILE *out, const rule_file *f) {
  for (size_t i = 0; i < f->n_rules; i++) {
    builder b = {.out = out};
    fprintf(out, "static const node *%s_%zu(ir *g) {\n", f->set, i);
    const char *root = build_template(&b, f->rules[i].example, NULL);
    fprintf(out, "  return %s;\n}\n\n", root);
  }
}

void emit_examples(FILE *out, rule_file *const files[], size_t n) {
  fputs(head, out);
  for (size_t i = 0; i < n; i++) emit_builders(out, files[i]);
  fprintf(out, "const rule_example rule_examples[] = {\n");
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < files[i]->n_rules; k++) {
      const rule *r = &files[i]->rules[k];
      fprintf(out, "    {\"%s\", \"%s\", %d, %d, %s_%zu},\n", files[i]->set, r->name, r->at.line,
              r->math, files[i]->set, k);
    }
  fprintf(out, "};\n\nconst size_t rule_example_count = sizeof rule_examples / sizeof "
               "*rule_examples;\n");
}
