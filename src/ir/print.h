/* The text form of graphs: one node a line, sources before the nodes that use them.

     %0 = param f32 4 8 [slot=0]                         ; 4x8
     %1 = range index 8 [id=0 kind=loop axis=0 tail=0]
     %2 = const f32 -1.5
     %3 = sink void %9 "name"
     return %3

   After the op: its type (`f32x8`: 8 lanes), its sources, its integers in [], named as in ops.def
   and followed by those of the list, its text in quotes. An index constant stands where it is used
   (`8`). `;` begins a comment, and the printer adds one with the shape of a tensor. Numbers read
   back as the same bits; `nan(0x…)` is a NaN by its bits, `-` in a fold's list is no op.

   Lines follow the graph alone, but where index arithmetic is sorted by node ids they keep these in
   order: what is parsed into an empty ir is in canonical form again (index.h), and prints the same.
   */
#ifndef TENON_IR_PRINT_H
#define TENON_IR_PRINT_H

#include "base/map.h"
#include "base/str.h"
#include "ir/topo.h"

/** The order and the numbers of a graph's lines. */
typedef struct print_lines {
  node_list order; /* without inlined constants */
  map number;      /* node → number + 1 */
} print_lines;
print_lines print_plan(arena *a, const node *const roots[], size_t n);

/** Appends a graph to `out`; works in its arena. Raises TN_ERR_MEMORY. */
void print_graph(str *out, const node *const roots[], size_t n);

/* Parts of it, for messages and drawings. */

/** Whether a node has no line: it is printed where it is used. */
bool print_is_inline(const node *n);
/** One line without its end and comment. */
void print_node(str *out, const print_lines *l, const node *n);
/** "%7", or an index constant's number. */
void print_operand(str *out, const print_lines *l, const node *n);
/** "f32x8" */
void print_type(str *out, const node *n);
/** " [slot=0]" and " "text"", as the op has them; a text is cut after `most` bytes. */
void print_arguments(str *out, const node *n, size_t most);
/** "4x%3": the shape of a tensor; nothing for a scalar. */
void print_shape(str *out, const print_lines *l, const node *n);
/** One number; floats as the shortest decimal that reads back as the same bits. */
void print_scalar(str *out, dtype t, uint64_t bits);
/** The NaN that is written `nan`. */
uint64_t print_quiet_nan(dtype t);
/** Bytes in quotes, other than printable ASCII as escapes. */
void print_quoted(str *out, const char *text, size_t bytes);

#endif
