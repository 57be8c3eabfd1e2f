/* Random tensor graph together with its inputs: contents of its BUFFERs (graph inputs), values of
   its VARs (runtime scalars and dynamic sizes), and host functions of its CUSTOMs.

   All of these follow from the graph itself, so that its text form is a whole test case: the
   contents of a BUFFER follow from its uid, the value of a VAR is part of its name, what a CUSTOM
   computes is part of its uid. So several graphs in one IR can be merged into one. */
#ifndef TENON_TESTS_RANDOM_GRAPH_H
#define TENON_TESTS_RANDOM_GRAPH_H

#include "base/map.h"
#include "base/vec.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/interp/interp.h"
#include "ir/transform/rewrite.h"

/** Contents of a BUFFER. */
typedef enum contents_kind {
  CONTENTS_SMALL,   /* small numbers; floats are multiples of 1/4 */
  CONTENTS_WIDE,    /* floats around 1 of both signs; integers of all sizes */
  CONTENTS_SPECIAL, /* NaN, infinities, zeros, extremes, among others */
  CONTENTS_INDEX,   /* mostly valid indices of small arrays; floats above 0 */
  CONTENTS_KINDS
} contents_kind;

typedef struct graph_buffer {
  const node *n;
  interp_array array;
} graph_buffer;

typedef struct graph {
  ir *ir;
  arena *a;      /* owner of everything below */
  uint64_t seed; /* seed of the generator; 0: none */
  int math;      /* math_mode */
  const node **roots;
  size_t n_roots;
  VEC(graph_buffer) buffers;
  VEC(interp_var) vars;
  node_list customs;
  map items; /* ITEM → its value + 1, as far as they were asked for */
} graph;

/** Returns the uid of a BUFFER. Contents are a function of the number, the kind and the type. */
int64_t graph_uid(uint64_t number, contents_kind kind, bool may_overwrite);

/** Makes a VAR of type `t` with the value `value`. */
const node *graph_var(ir *g, int64_t k, dtype t, int64_t min, int64_t max, int64_t value);

/** Returns the uid of a CUSTOM with inputs of one type. */
int64_t graph_custom_uid(int64_t k, dtype input);

/** Finds the BUFFERs and VARs that the roots reach and makes their contents. */
void graph_prepare(graph *g);

/** Returns the environment for interp_tensor; valid while the graph is unchanged. */
interp_env graph_env(const graph *g);

/** Callback schedule_request.may_overwrite. */
bool graph_may_overwrite(void *user, const node *buffer);

/** Computes a CUSTOM: element i of the result from elements i of its inputs, repeated
    cyclically. */
void graph_custom(int64_t uid, int64_t output, size_t n_inputs, const void *const data[],
                  const size_t counts[], dtype type, void *result, size_t count);

/** Returns the value of an index expression; ITEMs are computed by the interpreter. */
int64_t graph_size(const graph *g, const node *n);

/** True if an ITEM is among the nodes that the roots reach. */
bool graph_has_items(const graph *g);

/** Returns the number of elements of a tensor. */
int64_t graph_count(const graph *g, const node *n);

/** Returns the nodes of a sorted list that depend on a loop's index. There are at most 64 loops. */
map graph_open_nodes(arena *a, const node_list *order);

/** Prints a graph, with its math mode and seed in a comment at the top. */
const char *graph_text(const graph *g);

/** Parses the text of graph_text into *g, whose ir and arena are set. Raises. */
void graph_read(graph *g, const char *text, size_t bytes);

#endif
