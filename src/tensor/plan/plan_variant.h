/* Variants of a plan: executables of its graph, each for the facts of one form, with the buffers
   that hold the plan's ports, states and values there. */
#ifndef TENON_TENSOR_PLAN_PLAN_VARIANT_H
#define TENON_TENSOR_PLAN_PLAN_VARIANT_H

#include "runtime/executable.h"
#include "tensor/plan/shared_constants.h"

/** Stand in a form for a fact that varies (a pinned one always does), and for one that does and
    equals that of its name (plan_fact.like). */
#define FACT_OPEN INT64_MIN
#define FACT_LIKE (INT64_MIN + 1)

static inline bool fact_is_open(int64_t number) { return number <= FACT_LIKE; }

/** A buffer of the executable that holds a port. */
typedef struct variant_port {
  size_t buffer;  /* SIZE_MAX: an input that nothing reads */
  bool is_shared; /* an output in a buffer that is also an input, a state or another output: it is
                     copied */
  const int64_t *size; /* of an output whose size runs compute as a rule, and this variant knows;
                          else NULL */
} variant_port;

typedef struct variant_state {
  size_t in, out;   /* buffers of the executable that hold the old and the new contents; SIZE_MAX:
                       not read, not written */
  bool is_in_place; /* the new contents are written over the old ones */
  bool is_overwritten; /* the old contents are, by the new ones or by a value on the way to them */
} variant_state;

/** A value that is the same in all runs. */
typedef struct variant_value {
  tn_buffer *memory;
  size_t buffer; /* of the executable; SIZE_MAX: not read */
} variant_value;

struct plan_variant {
  atomic_size_t count; /* references */
  const mem *mem;
  arena arena;     /* of all that follows */
  int64_t *form;   /* by fact: its number, FACT_OPEN or FACT_LIKE */
  int64_t *least;  /* by fact that is open: the least that it is compiled for */
  int64_t *most;   /* likewise: the greatest */
  int64_t *likely; /* likewise: the value that it is made fast for; 0: not known */
  size_t n_open;   /* facts, not counting pinned ones */
  executable *executable;
  size_t *fact_of_var; /* of the executable's variables; SIZE_MAX: the trip count of a loop */
  variant_port *inputs, *outputs;
  variant_state *states;
  variant_value *values;
  size_t n_values;
  tn_plan *plan;               /* not retained */
  shared_constant **constants; /* among the values */
  size_t n_constants;
  atomic_bool is_dropped; /* from the plan's table */
  /* Under the table's lock: */
  int64_t wider_ns; /* the shortest run of its facts on the variant before, until runs were compared
                       with it; 0: there is none */
  int64_t number;   /* among those of the plan */
  uint64_t last_used;
};

typedef struct variant_request {
  const int64_t *form;
  const int64_t *facts;          /* of the run that it is compiled for, 0 where unknown; or NULL */
  const atomic_bool *background; /* not NULL: kernels are compiled on the calling thread alone,
                                    until the flag is set, and nobody follows the progress */
  kernel_copies *kernels;        /* of executable_request */
  const string_map *trial;       /* of tuned_choice */
} variant_request;

/** Compiles a variant of a plan for a form, on any thread. The plan outlives the variant. */
tn_status plan_variant_build(tn_plan *p, const variant_request *request, diag *d,
                             plan_variant **out);

/** Fills an open view with the schedule of a plan whose facts are all open; compiles nothing. */
tn_status plan_variant_view(tn_plan *p, struct schedule_view *view, diag *d);

plan_variant *plan_variant_retain(plan_variant *v);
void plan_variant_release(plan_variant *v); /* NULL is allowed */

#endif
