/* Names that a node reads: its inputs, and what its nested graphs read of the graphs around them.
 */
#include "base/map.h"
#include "formats/onnx/file/onnx_file.h"

typedef struct name_reader {
  arena *a;
  void (*add)(void *user, const char *name);
  void *user;
} name_reader;

/** A graph within a node, with the names that it defines itself. */
typedef struct nested_graph {
  const struct nested_graph *outer;
  string_map own;
} nested_graph;

static void read_nodes(const name_reader *r, const onnx_node *n, const nested_graph *outer);

static void define(const name_reader *r, nested_graph *k, const char *name) {
  string_map_set(r->a, &k->own, name, k);
}

static void read_name(const name_reader *r, const char *name, const nested_graph *in) {
  for (const nested_graph *k = in; k; k = k->outer)
    if (string_map_get(&k->own, name)) return;
  if (*name) r->add(r->user, name);
}

/** The recursion is as deep as graphs are nested, at most ONNX_NESTING_MAX. */
static void read_graph(const name_reader *r, const onnx_graph *g, const nested_graph *outer) {
  nested_graph k = {.outer = outer};
  for (size_t i = 0; i < g->inputs.n; i++) define(r, &k, g->inputs.at[i].name);
  for (size_t i = 0; i < g->initializers.n; i++) define(r, &k, g->initializers.at[i]->name);
  for (size_t i = 0; i < g->nodes.n; i++) {
    const onnx_node *n = &g->nodes.at[i];
    read_nodes(r, n, &k);
    for (size_t o = 0; o < n->outputs.n; o++) define(r, &k, n->outputs.at[o]);
  }
  for (size_t i = 0; i < g->outputs.n; i++) read_name(r, g->outputs.at[i].name, &k);
}

static void read_nodes(const name_reader *r, const onnx_node *n, const nested_graph *outer) {
  for (size_t i = 0; i < n->inputs.n; i++) read_name(r, n->inputs.at[i], outer);
  for (size_t i = 0; i < n->attributes.n; i++) {
    const onnx_attribute *x = &n->attributes.at[i];
    if (x->g) read_graph(r, x->g, outer);
    for (size_t k = 0; k < x->graphs.n; k++) read_graph(r, x->graphs.at[k], outer);
  }
}

void onnx_node_for_names(arena *a, const onnx_node *n, void (*add)(void *user, const char *name),
                         void *user) {
  const name_reader r = {a, add, user};
  read_nodes(&r, n, NULL);
}
