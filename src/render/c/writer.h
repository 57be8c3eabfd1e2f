/* Internal header of the C renderer, which prints one LINEAR program (a list of instructions) as
   one function in C or a dialect of it: the renderer's state, and the functions that its source
   files share. */
#ifndef TENON_RENDER_C_WRITER_H
#define TENON_RENDER_C_WRITER_H

#include "base/str.h"
#include "codegen/scratch_plan.h"
#include "codegen/tile_plan.h"
#include "render/c/dialect.h"
#include "render/c/emission.h"

#include <tenon/unstable/backend.h>

/** The type of a value in the text: 16-bit floats are u16, masks are signed integers. */
typedef struct c_value_type {
  dtype dtype;
  uint16_t lanes;
} c_value_type;

/** A piece of text that is an expression; primary: needs no parentheses as an operand. */
typedef struct c_fragment {
  const char *text;
  bool primary;
} c_fragment;

/** Values for a template's placeholders (dialect.h); those that it does not have may be 0. */
typedef struct c_template_arguments {
  const char *a, *b, *c, *k, *l;
  c_value_type t, o;
  int64_t n;
} c_template_arguments;

/** A loop while it is written. */
typedef struct c_loop {
  const node *range;
  bool shares_array;     /* iterations store to the same elements of an array in memory */
  uint32_t accumulators; /* registers that iterations update */
} c_loop;

/** The text of the function, as it grows. */
typedef struct c_text {
  str head;                   /* declarations before the function */
  str body;                   /* its statements */
  VEC(const char *) declared; /* types and helper functions in `head` */
} c_text;

/** Numbers of the names taken so far: x0, x1, …; i0, i1, …; acc0, …; s0, …; g0, …. */
typedef struct c_name_counts {
  uint32_t values, loops, registers, scratches, shared;
} c_name_counts;

/** Facts of the statements so far, on which the text around them depends. */
typedef struct c_traits {
  bool has_nontemporal;    /* some store is non-temporal */
  bool has_dots;           /* some op is of tensor_rows.def */
  bool many_accumulators;  /* a loop has MACHINE_MANY_ACCUMULATORS */
  bool spills_before_loop; /* values were spilled to memory for the next loop */
} c_traits;

typedef struct c_writer {
  const c_dialect *d;
  arena *arena;
  const tn_program_spec *spec;
  c_emission plan;         /* decisions about the program */
  scratch_plan scratch;    /* offsets of its arrays in scratch memory */
  tile_plan tiles;         /* its registers for tiles */
  bool *named;             /* runtime values that the text uses */
  VEC(c_storage *) shared; /* arrays of a group */
  VEC(c_loop) open;        /* loops, innermost last */
  c_text text;
  c_name_counts names;
  c_traits traits;
} c_writer;

/* types_and_literals.c. */

/** The value type of a dtype's scalars or vectors; for masks see c_value_type_of. */
c_value_type c_value_type_make(dtype t, uint16_t lanes);
/** The value type of a mask with lanes of `bytes` bytes. */
c_value_type c_value_type_of_mask(unsigned bytes, uint16_t lanes);
/** The name of a value type; declares a vector type at its first use. */
const char *c_value_type_name(c_writer *w, c_value_type f);
/** The same for names of helper functions ("f32", "f32x8"). */
const char *c_value_type_label(c_writer *w, c_value_type f);

/** A template with its placeholders replaced. */
const char *c_template_fill(c_writer *w, const char *text, const c_template_arguments *b);

/** A scalar constant of type `t`: an exact literal; NaN, infinities and −0 by their bits. */
c_fragment c_scalar_constant(c_writer *w, dtype t, uint64_t bits);

/** True if a name was declared before; declares it. */
bool c_declared_before(c_writer *w, const char *name);

/* conversions.c: fragments, helper functions, conversions. */

c_fragment c_fragment_primary(const char *text);
c_fragment c_fragment_compound(const char *text);
/** A fragment's text as an operand, in parentheses if need be. */
const char *c_fragment_operand(c_writer *w, c_fragment p);
/** A filled template as an expression, in parentheses as an operand or not. */
c_fragment c_template_compound(c_writer *w, const char *text, const c_template_arguments *b);
c_fragment c_template_primary(c_writer *w, const char *text, const c_template_arguments *b);

/** A call of a helper function of parameters a, b, c; declares it at its first use. */
c_fragment c_call_helper(c_writer *w, const char *name, const char *body, c_value_type result,
                         const c_value_type params[], const c_fragment args[], size_t n);

/** The same bits as another value type. */
c_fragment c_reinterpret(c_writer *w, c_value_type to, c_value_type from, c_fragment p);
/** The same number as another value type; masks are signed integers here. */
c_fragment c_convert(c_writer *w, c_value_type to, c_value_type from, c_fragment p);
/** A conversion between f16, as bit patterns, and f32, in a dialect that has the instruction. */
c_fragment c_convert_f16(c_writer *w, dtype to, dtype from, uint16_t lanes, c_fragment p);

static inline bool c_is_half(dtype t) { return t == DT_F16 || t == DT_BF16; }
static inline bool c_is_number(dtype t) { return dtype_is_float(t) && !c_is_half(t); }

/* expressions.c. */

/** A value at its use: its name or, if it is inlined, its expression. */
c_fragment c_expr_value(c_writer *w, const node *n);
/** The expression of an instruction whose operands have been written. */
c_fragment c_expr(c_writer *w, const node *n);
/** The type of a value in the text. */
c_value_type c_value_type_of(c_writer *w, const node *n);
/** The value that a STORE writes, as the type that it has in memory. */
c_fragment c_expr_stored(c_writer *w, const node *store);
/** "a && b": the masks of an access, at least one. */
c_fragment c_expr_predicate(c_writer *w, const c_access *access);
/** The name of a runtime value, which the entry will pass. */
const char *c_runtime_value_name(c_writer *w, const char *name);

/* statements.c. */

/** Appends the statement of an instruction to the function's body. */
void c_write_statement(c_writer *w, const node *n);

#endif
