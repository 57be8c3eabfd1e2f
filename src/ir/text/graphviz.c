/* Draws graphs in Graphviz's DOT language: writes one DOT node and its incoming edges for each line
   of the graph's printed form. */
#include "ir/text/graphviz.h"

#include "ir/core/binder.h"
#include "ir/text/print.h"

enum { MOST_TEXT = 60, MOST_LABELLED = 64 };

static const char *const class_colour[] = {
    [CLASS_ELEMENTWISE] = "#eef3fb", [CLASS_MOVEMENT] = "#e3f4e6", [CLASS_REDUCE] = "#fde6c8",
    [CLASS_SOURCE] = "#f0f0f0",      [CLASS_BINDER] = "#e5dcf7",   [CLASS_MEMORY] = "#fff6bf",
    [CLASS_CONTROL] = "#f9d9d9",     [CLASS_EFFECT] = "#f7cfe0",   [CLASS_PROGRAM] = "#d9d9d9"};

static const char *const kind_colour[KIND_LIMIT] = {
    [KIND_LOOP] = "#cfd8ff",   [KIND_UNROLL] = "#b3e5e0", [KIND_VECTOR] = "#8fd3f0",
    [KIND_THREAD] = "#ffc9a3", [KIND_GLOBAL] = "#ffb3b3", [KIND_LOCAL] = "#ffd97a",
    [KIND_WARP] = "#e6ee9c",   [KIND_TILE] = "#c5a3ff"};

static const char *colour(const node *n) {
  if (n->op == OP_RANGE && n->ints[1] >= 0 && n->ints[1] < KIND_LIMIT)
    return kind_colour[range_kind_of(n)];
  return class_colour[op_facts_of((op)n->op)->cls];
}

/** Appends text with the escapes of a quoted label. */
static void add_escaped(str *out, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') str_add(out, "\\");
    str_add_bytes(out, text, 1);
  }
}

/** Appends number, op, type, inlined constant sources, argument and shape of a node. */
static void add_label(str *out, const print_lines *l, const node *n) {
  str label = str_new(out->arena);
  print_operand(&label, l, n);
  str_addf(&label, " %s ", op_name((op)n->op));
  print_type(&label, n);
  for (uint32_t i = 0; i < n->n_src && n->n_src <= MOST_LABELLED; i++) {
    if (!print_is_inlined_constant(n->src[i])) continue;
    str_addf(&label, " %u:", i);
    print_operand(&label, l, n->src[i]);
  }
  print_arguments(&label, n, MOST_TEXT);
  add_escaped(out, str_text(&label));
  if (!n->rank) return;
  str_add(out, "\\n");
  print_shape(out, l, n);
}

static size_t line_number(const print_lines *l, const node *n) {
  return (size_t)map_get(&l->number, n);
}

static void add_node(str *out, const print_lines *l, const node *n, bool root) {
  str_addf(out, "  n%zu [label=\"", line_number(l, n));
  add_label(out, l, n);
  str_addf(out, "\", fillcolor=\"%s\"%s];\n", colour(n), root ? ", penwidth=3" : "");
  for (uint32_t i = 0; i < n->n_src; i++) {
    if (print_is_inlined_constant(n->src[i])) continue;
    str_addf(out, "  n%zu -> n%zu", line_number(l, n->src[i]), line_number(l, n));
    if (n->n_src > 1) str_addf(out, " [label=\"%u\"]", i);
    str_add(out, ";\n");
  }
}

void graphviz_print(str *out, const node *const roots[], size_t n) {
  map is_root = {0};
  print_lines l = print_number_lines(out->arena, roots, n);
  for (size_t i = 0; i < n; i++) map_set(out->arena, &is_root, roots[i], NULL);
  str_add(out, "digraph ir {\n  node [shape=box, style=filled, fontname=monospace];\n");
  for (size_t i = 0; i < l.order.n; i++)
    add_node(out, &l, l.order.at[i], map_has(&is_root, l.order.at[i]));
  str_add(out, "}\n");
}
