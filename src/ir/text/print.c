/* Implements the printer of the IR's text form: orders the lines so that parsing restores the
   canonical order, and prints floats as the shortest decimals that read back as the same bits. */
#include "ir/text/print.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Arguments. */

static void print_integer(str *out, argument_style style, int64_t value) {
  if (style == ARGUMENT_OP && value == -1)
    str_add(out, "-");
  else if (style == ARGUMENT_OP && value >= 0 && value < OP_LIMIT)
    str_add(out, op_name((op)value));
  else if (style == ARGUMENT_KIND && value >= 0 && value < KIND_LIMIT)
    str_add(out, range_kind_name((range_kind)value));
  else
    str_addf(out, "%" PRId64, value);
}

static void print_integers(str *out, const node *n) {
  for (size_t i = 0; i < n->n_int; i++) {
    argument_field f = argument_field_of((op)n->op, n->ints, i);
    str_add(out, i ? " " : " [");
    if (*f.name) str_addf(out, "%s=", f.name);
    print_integer(out, f.style, n->ints[i]);
  }
  if (n->n_int) str_add(out, "]");
}

void print_quoted(str *out, const char *text, size_t bytes) {
  str_add(out, "\"");
  for (size_t i = 0; i < bytes; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      str_addf(out, "\\%c", c);
    else if (c == '\n')
      str_add(out, "\\n");
    else if (c < 0x20 || c > 0x7e)
      str_addf(out, "\\x%02x", c);
    else
      str_add_bytes(out, text + i, 1);
  }
  str_add(out, "\"");
}

void print_arguments(str *out, const node *n, size_t most) {
  if (n->op == OP_CONST) {
    str_add(out, " ");
    print_scalar(out, (dtype)n->dtype, (uint64_t)n->ints[0]);
    return;
  }
  print_integers(out, n);
  if (!argument_layout_of((op)n->op).text) return;
  str_add(out, " ");
  print_quoted(out, n->text, n->n_text < most ? n->n_text : most);
  if (n->n_text > most) str_add(out, "…");
}

/* Numbers. */

uint64_t print_quiet_nan(dtype t) {
  const dtype_facts *f = dtype_facts_of(t);
  return ((UINT64_C(2) << f->exponent_bits) - 1) << (f->mantissa_bits - 1);
}

/** Appends a number that printf formatted as d.ddde±x, with a point in every locale. */
static void print_decimal(str *out, const char *text) {
  char digits[20];
  int n = 0, exponent = 0;
  const char *e = strchr(text, 'e');
  for (const char *c = text; c < e; c++)
    if (*c >= '0' && *c <= '9') digits[n++] = *c;
  exponent = atoi(e + 1);
  if (*text == '-') str_add(out, "-");
  if (exponent < -5 || exponent > 16) {
    str_addf(out, "%c.%.*se%d", digits[0], n > 1 ? n - 1 : 1, n > 1 ? digits + 1 : "0", exponent);
    return;
  }
  if (exponent < 0) str_addf(out, "0.%.*s", -exponent - 1, "0000");
  for (int i = 0; i < n || i <= exponent + 1; i++) {
    if (exponent >= 0 && i == exponent + 1) str_add(out, ".");
    if (i < n || exponent >= 0) str_addf(out, "%c", i < n ? digits[i] : '0');
  }
}

static void print_float(str *out, dtype t, uint64_t bits) {
  double v = scalar_to_double(t, bits);
  char text[48];
  if (isnan(v)) {
    str_add(out, "nan");
    if (bits != print_quiet_nan(t)) str_addf(out, "(0x%" PRIx64 ")", bits);
  } else if (isinf(v)) {
    str_add(out, v < 0 ? "-inf" : "inf");
  } else {
    for (int more = 0; more < 17; more++) {
      snprintf(text, sizeof text, "%.*e", more, v);
      if (scalar_from_double(t, strtod(text, NULL)) == bits) break;
    }
    print_decimal(out, text);
  }
}

void print_scalar(str *out, dtype t, uint64_t bits) {
  if (dtype_is_float(t))
    print_float(out, t, bits);
  else if (t == DT_U64)
    str_addf(out, "%" PRIu64, bits);
  else
    str_addf(out, "%" PRId64, (int64_t)bits);
}

/* Order of lines: depth first along the sources, except that of each canonically ordered pair the
   older node comes first, so that parsing makes the nodes in canonical order again. */

/** A list of nodes whose lines come before the line of another node. */
typedef struct predecessor {
  const node *n;
  const struct predecessor *next;
} predecessor;

typedef struct frame {
  const node *n;
  const predecessor *before; /* predecessors that are not walked yet */
  uint32_t next;             /* source to walk next */
} frame;

typedef struct line_order {
  arena *a;
  map before; /* node → list of its predecessors */
  map visited;
  VEC(frame) stack;
  print_lines *out;
} line_order;

bool print_is_inlined_constant(const node *n) {
  return n->op == OP_CONST && n->dtype == DT_INDEX && n->lanes == 1;
}

/** Makes the older of two nodes come first. */
static void order_pair(line_order *p, const node *a, const node *b) {
  if (a == b || print_is_inlined_constant(a) || print_is_inlined_constant(b)) return;
  const node *first = a->id < b->id ? a : b, *second = a->id < b->id ? b : a;
  predecessor *e = arena_alloc(p->a, sizeof *e);
  *e = (predecessor){first, map_get(&p->before, second)};
  map_set(p->a, &p->before, second, e);
}

static void enter_node(line_order *p, const node *n) {
  if (print_is_inlined_constant(n) || map_has(&p->visited, n)) return;
  map_set(p->a, &p->visited, n, NULL);
  vec_push(p->a, &p->stack, (frame){n, map_get(&p->before, n), 0});
}

static void walk_root(line_order *p, const node *root) {
  enter_node(p, root);
  while (p->stack.n) {
    frame *f = &vec_last(&p->stack);
    if (f->before) {
      const node *n = f->before->n;
      f->before = f->before->next;
      enter_node(p, n);
    } else if (f->next < f->n->n_src) {
      enter_node(p, f->n->src[f->next++]);
    } else {
      vec_push(p->a, &p->out->order, f->n);
      map_set(p->a, &p->out->number, f->n, (void *)p->out->order.n);
      p->stack.n--;
    }
  }
}

print_lines print_number_lines(arena *a, const node *const roots[], size_t n) {
  print_lines out = {0};
  line_order p = {.a = a, .out = &out};
  node_list all = topo_sort(a, roots, n, NULL, NULL);
  for (size_t i = 0; i < all.n; i++) {
    const node *first, *second;
    for (size_t k = 0; ix_ordered_pair(all.at[i], k, &first, &second); k++)
      order_pair(&p, first, second);
  }
  for (size_t i = 0; i < n; i++) walk_root(&p, roots[i]);
  return out;
}

/* Lines. */

void print_operand(str *out, const print_lines *l, const node *n) {
  if (print_is_inlined_constant(n))
    str_addf(out, "%" PRId64, node_int(n));
  else
    str_addf(out, "%%%zu", (size_t)map_get(&l->number, n) - 1);
}

void print_type(str *out, const node *n) {
  str_add(out, dtype_name((dtype)n->dtype));
  if (n->lanes != 1) str_addf(out, "x%u", n->lanes);
}

void print_node(str *out, const print_lines *l, const node *n) {
  print_operand(out, l, n);
  str_addf(out, " = %s ", op_name((op)n->op));
  print_type(out, n);
  for (uint32_t i = 0; i < n->n_src; i++) {
    str_add(out, " ");
    print_operand(out, l, n->src[i]);
  }
  print_arguments(out, n, SIZE_MAX);
}

void print_shape(str *out, const print_lines *l, const node *n) {
  for (uint16_t i = 0; i < n->rank; i++) {
    if (i) str_add(out, "x");
    print_operand(out, l, n->dims[i]);
  }
}

void print_graph(str *out, const node *const roots[], size_t n) {
  print_lines l = print_number_lines(out->arena, roots, n);
  for (size_t i = 0; i < l.order.n; i++) {
    print_node(out, &l, l.order.at[i]);
    if (l.order.at[i]->rank) {
      str_add(out, " ; ");
      print_shape(out, &l, l.order.at[i]);
    }
    str_add(out, "\n");
  }
  str_add(out, "return");
  for (size_t i = 0; i < n; i++) {
    str_add(out, " ");
    print_operand(out, &l, roots[i]);
  }
  str_add(out, "\n");
}
