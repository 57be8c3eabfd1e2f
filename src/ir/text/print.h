/* Prints graphs in the IR's text form: one node a line, sources before the nodes that use them.

     %0 = param f32 4 8 [slot=0]                         ; 4x8
     %1 = range index 8 [id=0 kind=loop axis=0 tail=0]
     %2 = const f32 -1.5
     %3 = sink void %9 "name"
     return %3

   After the op: its type (`f32x8`: 8 lanes), its sources, its integers in [], named as in ops.def
   and followed by those of the list, its text in quotes. An index constant is printed where it is
   used (`8`). `;` begins a comment; the printer adds one with the shape of a tensor. Numbers read
   back as the same bits; `nan(0x…)` is a NaN by its bits, `-` in a FOLD's list is no op.

   The order of lines depends on the graph alone, and keeps the order of node ids where canonical
   index arithmetic sorts by it: a text parsed into an empty ir is in canonical form again
   (index_arithmetic.h), and prints the same. */
#ifndef TENON_IR_TEXT_PRINT_H
#define TENON_IR_TEXT_PRINT_H

#include "base/map.h"
#include "base/str.h"
#include "ir/core/topo_sort.h"

/** Order and numbers of the lines of a graph. */
typedef struct print_lines {
  node_list order; /* without inlined constants */
  map number;      /* node → number + 1 */
} print_lines;
print_lines print_number_lines(arena *a, const node *const roots[], size_t n);

/** Appends the text of a graph to `out`; works in its arena. Raises TN_ERR_MEMORY. */
void print_graph(str *out, const node *const roots[], size_t n);

/* Parts of the text, for messages and drawings. */

/** True for index constants, which are printed where they are used and have no line. */
bool print_is_inlined_constant(const node *n);
/** Appends the line of a node without comment and newline. */
void print_node(str *out, const print_lines *l, const node *n);
/** Appends "%7", or the value of an index constant. */
void print_operand(str *out, const print_lines *l, const node *n);
/** Appends the type, such as "f32x8". */
void print_type(str *out, const node *n);
/** Appends the argument, such as " [slot=0]" and " "text""; a text is cut after `most` bytes. */
void print_arguments(str *out, const node *n, size_t most);
/** Appends the shape of a tensor, such as "4x%3"; nothing for a scalar. */
void print_shape(str *out, const print_lines *l, const node *n);
/** Appends a number; floats as the shortest decimal that reads back as the same bits. */
void print_scalar(str *out, dtype t, uint64_t bits);
/** The bits of the NaN that is printed as `nan`. */
uint64_t print_quiet_nan(dtype t);
/** Appends bytes in quotes, all but printable ASCII as escapes. */
void print_quoted(str *out, const char *text, size_t bytes);

#endif
