/* The parts of the writer of the C family. */
#ifndef TENON_RENDER_C_WRITER_H
#define TENON_RENDER_C_WRITER_H

#include "codegen/scratch.h"
#include "render/c_dialect.h"
#include "render/c_plan.h"

/** The type of something in the text. 16-bit floats are u16, masks signed integers. */
typedef struct c_form {
  dtype dtype;
  uint16_t lanes;
} c_form;

/** An expression, and whether it can be an operand without parentheses. */
typedef struct c_piece {
  const char *text;
  bool primary;
} c_piece;

/** What the blanks of a template are filled with; those that it does not have may be left 0. */
typedef struct c_blanks {
  const char *a, *b, *c, *k, *l;
  c_form t, o;
  int64_t n;
} c_blanks;

/** A loop that is being written. */
typedef struct c_loop {
  const node *range;
  bool keeps;    /* iterations store to the same places of an array in memory */
  uint32_t held; /* registers that iterations have in common and change */
} c_loop;

typedef struct c_writer {
  const c_dialect *d;
  arena *arena;
  c_plan plan;
  const tn_program_spec *spec;
  bool *named;             /* runtime values: whether they are used */
  VEC(const char *) known; /* types and helper functions declared so far */
  str head, body;          /* declarations; the function's statements */
  VEC(c_loop) open;        /* loops, the innermost last */
  bool streams;            /* something is stored past the caches */
  bool many_sums;          /* a loop changes many registers */
  bool puts_away;          /* something is in memory for the time of the loop that comes next */
  uint32_t values, loops, registers, scratches;
  scratch_plan scratch;
} c_writer;

/* c_text.c: types, templates, constants. */

/** The form of a type's scalars or vectors; masks have other forms (c_form_of). */
c_form c_form_make(dtype t, uint16_t lanes);
/** The mask of lanes of `bytes` bytes. */
c_form c_form_mask(unsigned bytes, uint16_t lanes);
/** A form's name in the text; a vector type is declared if it was not yet. */
const char *c_form_name(c_writer *w, c_form f);
/** The same for names of helper functions ("f32", "f32x8"). */
const char *c_form_label(c_writer *w, c_form f);

/** A template with its blanks filled in. */
const char *c_fill(c_writer *w, const char *text, const c_blanks *b);

/** A constant of type `t`, exactly, as an operand. NULL: it is no finite number. */
const char *c_literal(c_writer *w, dtype t, uint64_t bits);

/** Whether a name was declared before; it is now. */
bool c_is_known(c_writer *w, const char *name);

/* c_convert.c: pieces, helper functions, conversions. */

c_piece c_primary(const char *text);
c_piece c_expression(const char *text);
/** A piece's text as an operand. */
const char *c_operand(c_writer *w, c_piece p);
/** A template filled in as an expression; and one that needs no parentheses. */
c_piece c_fill_piece(c_writer *w, const char *text, const c_blanks *b);
c_piece c_fill_unary(c_writer *w, const char *text, const c_blanks *b);

/** A call of a helper function of parameters a, b, c; it is declared if it was not yet. */
c_piece c_call(c_writer *w, const char *name, const char *body, c_form result,
               const c_form params[], const c_piece args[], size_t n);

/** The same bits in another form. */
c_piece c_reinterpret(c_writer *w, c_form to, c_form from, c_piece p);
/** The number of another form; masks are signed integers here. */
c_piece c_convert(c_writer *w, c_form to, c_form from, c_piece p);

static inline bool c_is_half(dtype t) { return t == DT_F16 || t == DT_BF16; }
static inline bool c_is_number(dtype t) { return dtype_is_float(t) && !c_is_half(t); }

/* c_expr.c: values. */

/** A value where it is used: its name or, if it is inlined, its expression. */
c_piece c_expr_value(c_writer *w, const node *n);
/** The expression of an instruction; its operands have been written. */
c_piece c_expr(c_writer *w, const node *n);
/** The type of a value in the text. */
c_form c_form_of(c_writer *w, const node *n);
/** What a STORE writes, in the form that it has in memory. */
c_piece c_expr_stored(c_writer *w, const node *store);
/** "a && b": the gates of an access, which has some. */
c_piece c_expr_gates(c_writer *w, const c_access *access);
/** The name of a runtime value. */
const char *c_value_name(c_writer *w, const char *name);

#endif
