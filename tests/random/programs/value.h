/* Reference model of random programs: values as expressions over flat i32 arrays, evaluated
   naively, with which the library's results are compared.

   A value is an expression with its elements, unless it depends on a plan's input. The contents of
   a state are values too, its versions: each assignment makes a version over the last one. Plans
   compute values anew from the states' contents (value_image). A value with a variable number of
   rows has the maps of one row. */
#ifndef TENON_TESTS_VALUE_H
#define TENON_TESTS_VALUE_H

#include <tenon/tensor.h>

typedef enum value_kind {
  VALUE_CONSTANT,
  VALUE_INPUT,
  VALUE_HELD,    /* a state's contents when a run begins */
  VALUE_MOVED,   /* elements of the concatenated sources, or `fill` */
  VALUE_CHANGED, /* the first source with elements replaced by the second's */
  VALUE_REDUCED, /* sums or maxima */
  VALUE_RUNNING, /* running sums */
  VALUE_TAKEN,   /* gathers the first source's elements at the second's indices */
  VALUE_BINARY,  /* the second source is repeated if it has fewer elements */
  VALUE_CHOSEN,
  VALUE_FLIPPED, /* rows in reverse order */
  VALUE_HOST     /* result of a host function */
} value_kind;

typedef enum value_op {
  BY_SUM,
  BY_DIFFERENCE,
  BY_PRODUCT,
  BY_LARGEST,
  BY_SMALLEST,
  BY_XOR
} value_op;

typedef struct value value;
typedef struct state state;
typedef struct host host; /* hosts.c */

struct value {
  value_kind kind;
  value_op op;
  tn_shape shape;
  size_t count;
  value *src[3];
  size_t n_src;
  const int32_t *map; /* MOVED: source of each element, −1: none; CHANGED, REDUCED: target of each
                         element; RUNNING: the element before, −1: none; NULL for RUNNING and
                         REDUCED along variable rows */
  int32_t fill;       /* HOST: the function's number */
  size_t input;       /* INPUT: number of the input; HOST: of the output */
  host *host;         /* HOST: its function, or NULL */
  bool is_open;       /* depends on an input */
  bool varies;        /* rows vary; `shape` and `count` are those of a row */
  const int32_t *data; /* elements when it was made; NULL: depends on an input */
  state *of;           /* HELD and versions: the state */
  unsigned held;       /* versions that were run: time since which the state has held it */
  bool has_next;       /* another version was made over this one */
  unsigned plan;       /* number, from 1, of the plan that took this version */
  value *image;        /* image in the last plan queried */
  unsigned image_of;
  value *next;           /* next image of the plan */
  const int32_t *result; /* elements in the last run queried */
  unsigned result_of;
  unsigned asked; /* number of the last dependency query */
};

typedef struct mark {
  int depth; /* depth of a scope */
  value *before;
} mark;

enum { MOST_DEPTH = 5 };

/** A state: a small model of src/tensor/state/state.h. */
struct state {
  int number;
  tn_shape shape;
  value *settled, *now;
  int views_from; /* outermost scope with an unlisted view */
  bool is_unseen; /* no handle refers to it */
  unsigned held;  /* time of the last version that was run: older ones are no contents of it */
  mark marks[MOST_DEPTH];
  size_t n_marks;
};

/** An arena: memory that is freed at once. */
typedef struct memory {
  void **at;
  size_t n;
} memory;

void *model_alloc(memory *m, size_t n, size_t size); /* cleared */
void model_free(memory *m);

size_t shape_count(tn_shape s);
bool is_same_shape(tn_shape a, tn_shape b);

/** Makes a value of the given sources, computed unless one depends on an input. */
value *value_new(memory *m, value v);
value *value_constant(memory *m, tn_shape shape, const int32_t data[]);

/** Returns a value's image in a plan: versions that a state holds, or held until runs replaced
    them, become the state's contents in a run; older ones are constants; everything else is
    computed from these. New images are prepended to the list `all`. */
value *value_image(memory *m, value *v, unsigned plan, value **all);

/** A run of a plan. */
typedef struct run {
  const int32_t *const *inputs;
  size_t rows; /* number of rows of variable values */
  unsigned number;
} run;

/** Computes an image's elements in a run, from the current inputs and states, and their number. */
const int32_t *value_result(memory *m, value *image, const run *r);
size_t value_count(const value *v, size_t rows);

/** Computes element i of a host function's output, of `n` inputs. */
typedef struct operands {
  const int32_t *at[3];
  size_t count[3], n;
} operands;
int32_t host_element(int32_t number, size_t output, const operands *in, size_t i);

/** True if a value depends on a version that its state does not hold any more; on any version of a
    state. */
bool value_is_old(value *v);
bool value_reads(value *v, const state *s);

#endif
