/* Reference model of random programs: values as expressions over flat i32 arrays, evaluated
   naively, with which the library's results are compared.

   A value is an expression and, but where it waits for an input, what that was when it was made.
   The contents of a state are values too, its versions: each assign makes one, over the one before.
   Plans compute values anew, over what states hold then: value_image. What varies has as many rows
   as the run's input has; its maps are those of rows. */
#ifndef TENON_TESTS_VALUE_H
#define TENON_TESTS_VALUE_H

#include <tenon/tensor.h>

typedef enum value_kind {
  VALUE_CONSTANT,
  VALUE_INPUT,
  VALUE_HELD,    /* what a state holds when a run begins */
  VALUE_MOVED,   /* each element is one of the sources', joined, or `fill` */
  VALUE_CHANGED, /* the first source, with elements of the second put in it */
  VALUE_REDUCED, /* sums or largest elements */
  VALUE_RUNNING, /* running sums */
  VALUE_TAKEN,   /* the first source's elements at the indices in the second */
  VALUE_BINARY,  /* where the second source has fewer elements, it is repeated */
  VALUE_CHOSEN,
  VALUE_FLIPPED, /* its rows, in the other order */
  VALUE_HOST     /* what a host function gives */
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
  const int32_t *map;  /* MOVED: where each element is, −1: nowhere; CHANGED, REDUCED: where each
                          goes; RUNNING: which is before, −1: none; RUNNING and REDUCED of what
                          varies: NULL, along the rows */
  int32_t fill;        /* HOST: the function's number */
  size_t input;        /* INPUT: which; HOST: which output */
  host *host;          /* HOST: whose it is, or NULL */
  bool is_open;        /* depends on an input */
  bool varies;         /* `shape` and `count` are those of a row */
  const int32_t *data; /* what it was when it was made; NULL: open */
  state *of;           /* HELD, and versions: whose */
  unsigned held;       /* a version that was run: since when its state has held it */
  bool has_next;       /* a version that another one was made over */
  unsigned plan;       /* a version that a plan took: which plan, from 1 */
  value *image;        /* in the plan that was last asked for */
  unsigned image_of;
  value *next;           /* an image: of its plan's */
  const int32_t *result; /* in the run that was last asked for */
  unsigned result_of;
  unsigned asked; /* the last question about what it depends on */
};

typedef struct mark {
  int depth; /* of a scope */
  value *before;
} mark;

enum { MOST_DEPTH = 5 };

/** As src/tensor/state/state.h has it, in small. */
struct state {
  int number;
  tn_shape shape;
  value *settled, *now;
  int views_from; /* the outermost scope with a view that is no handle of the program's */
  bool is_unseen; /* no handle is left */
  unsigned held;  /* as of versions: those older than the last one that was run are none of its */
  mark marks[MOST_DEPTH];
  size_t n_marks;
};

/** Memory that is freed together. */
typedef struct memory {
  void **at;
  size_t n;
} memory;

void *model_alloc(memory *m, size_t n, size_t size); /* zeros */
void model_free(memory *m);

size_t shape_count(tn_shape s);
bool is_same_shape(tn_shape a, tn_shape b);

/** A value of given sources, computed if none is open. */
value *value_new(memory *m, value v);
value *value_constant(memory *m, tn_shape shape, const int32_t data[]);

/** What a plan makes of a value: versions that a state holds, or held until runs replaced them, are
    what it holds when the plan runs; older ones are constants, and all else is computed over these.
    What is new is put before `all`, a list. */
value *value_image(memory *m, value *v, unsigned plan, value **all);

/** A run of a plan. */
typedef struct run {
  const int32_t *const *inputs;
  size_t rows; /* of what varies */
  unsigned number;
} run;

/** What an image is in a run, by what the inputs and states are now, and how many elements. */
const int32_t *value_result(memory *m, value *image, const run *r);
size_t value_count(const value *v, size_t rows);

/** What a host function makes: element i of its output, of `n` inputs. */
typedef struct operands {
  const int32_t *at[3];
  size_t count[3], n;
} operands;
int32_t host_element(int32_t number, size_t output, const operands *in, size_t i);

/** Whether a value depends on what a state does not hold any more; on any version of a state. */
bool value_is_old(value *v);
bool value_reads(value *v, const state *s);

#endif
