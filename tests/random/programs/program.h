/* Internal header of the random programs: the state of a program, in the library and in the model
   (value.h), and the steps, one group per source file. Each step does the same to both, writes a
   line of text, and compares what comes out. */
#ifndef TENON_TESTS_PROGRAM_H
#define TENON_TESTS_PROGRAM_H

#include "../random.h"
#include "value.h"

#include <tenon/tenon.h>
#include <tenon/unstable/queue.h>

#include <setjmp.h>

/** X(name, description): events that the programs must cover. */
#define COVERAGE_LIST(X)                                                    \
  X(STATES, "states")                                                       \
  X(COMPUTED_STATES, "states that start as an expression of another")       \
  X(EMPTY, "tensors without elements")                                      \
  X(LARGE, "tensors of more than 64 elements")                              \
  X(ASSIGNS, "assigns")                                                     \
  X(VIEWS_ASSIGNED, "assigns to views of states")                           \
  X(NESTED_ASSIGNED, "assigns to views of several movements")               \
  X(OVERLAPPING, "assigns of what reads the state itself")                  \
  X(BROADCAST, "assigns that broadcast")                                    \
  X(WRITES, "writes of host memory")                                        \
  X(READS, "reads")                                                         \
  X(OLD_READS, "reads of what was built before an assign")                  \
  X(VIEW_READS, "reads of views")                                           \
  X(REALIZES, "realizes")                                                   \
  X(MAPS, "maps")                                                           \
  X(SAME, "values that are another's own")                                  \
  X(SHARED, "states realised with what they start as")                      \
  X(HOSTS, "host functions")                                                \
  X(HOST_WRITES, "host functions that write states")                        \
  X(GONE, "states that go while plans have them")                           \
  X(GONE_PENDING, "states that go before what is assigned to them")         \
  X(SCOPES, "scopes that ended")                                            \
  X(KEPT, "tensors kept")                                                   \
  X(OWNED, "tensors owned")                                                 \
  X(PLANS, "plans")                                                         \
  X(PLANS_OF_INPUTS, "plans with inputs")                                   \
  X(PLANS_OF_ROWS, "plans whose sizes vary")                                \
  X(ROWS_ASSIGNED, "assigns of what varies")                                \
  X(PLANS_OF_HOSTS, "plans with host functions")                            \
  X(PLANS_OF_ASSIGNS, "plans that assign")                                  \
  X(PLANS_OF_OWN, "plans that read an assign of theirs")                    \
  X(PLANS_OF_OTHERS, "plans that compute an assign of another plan")        \
  X(PLANS_OF_READ, "plans without inputs and assigns that read states")     \
  X(PLANS_IN_PLACE, "plans that change a state in place")                   \
  X(NEVER_RUN, "plans that were never run")                                 \
  X(FREED, "plans that were freed before they ran")                         \
  X(CARRIED, "outputs that are the next run's inputs")                      \
  X(RUNS, "runs")                                                           \
  X(RUNS_AGAIN, "runs of a binding that ran before")                        \
  X(RESIZED, "runs of other sizes than the one before")                     \
  X(ASKED, "sizes asked for between runs")                                  \
  X(STARTED, "runs that were started")                                      \
  X(STARTED_BESIDE, "runs that went on beside the context")                 \
  X(RUNS_AFTER_ASSIGNS, "runs while assigns to their states were pending")  \
  X(RUNS_BESIDE_ASSIGNS, "runs while assigns to other states were pending") \
  X(OUTPUTS, "outputs compared")

typedef enum coverage {
#define COVERAGE_NAME(name, text) COVERED_##name,
  COVERAGE_LIST(COVERAGE_NAME)
#undef COVERAGE_NAME
      COVERAGE_LIMIT
} coverage;

/** A tensor, in the library and in the model. */
typedef struct handle {
  tn_tensor *tensor;
  int number;
  tn_shape shape;
  value *value; /* NULL: a view of a state, whose elements `map` gives; −1: the fill */
  state *of;
  const int32_t *map;
  int movements;      /* number of movements from the state */
  bool is_assignable; /* repeats and adds no element, and contains no roll */
  bool is_owned;
  int depth;             /* depth of its scope */
  int leaving;           /* depth of the scope whose end realises it; 0: none */
  const int32_t *mapped; /* its mapped elements, unless it is a state's; NULL: not mapped */
} handle;

enum { MOST_INPUTS = 3, MOST_ITEMS = 4, MOST_BINDINGS = 2, MOST_HOST_OUT = 2, FILL = 7 };
enum { MOST_ROWS = 5, BINARIES = 6 };

typedef struct bound {
  tn_binding *binding;
  int32_t *inputs[MOST_INPUTS];
  int32_t *output; /* memory of its first output; NULL: none */
  bool is_carried[MOST_INPUTS];
  size_t carried[MOST_INPUTS]; /* output carried to each input */
  size_t rows, rows_before;    /* rows of the next run, and of the last one */
  size_t runs;
  bool is_started;
  tn_signal *after, *done; /* signals of a started run; `after` NULL: it did not wait */
} bound;

typedef struct plan {
  int number;
  tn_plan *made; /* NULL: freed */
  value *out[MOST_ITEMS];
  size_t n_out;
  state **assigned;
  value **contents;
  size_t n_assigned;
  value *images; /* the values that it computes */
  tn_shape inputs[MOST_INPUTS];
  bool is_used[MOST_INPUTS]; /* false: the compiler removed it */
  bool varies[MOST_INPUTS];  /* the shape is that of one row */
  size_t n_inputs;
  handle rows;  /* result computed from the rows; no tensor: none */
  tn_dim least; /* minimum number of rows */
  bound bound[MOST_BINDINGS];
  size_t n_bound;
} plan;

typedef struct program {
  rng r;
  uint64_t seed;
  tn_context *context;
  memory memory;
  handle *handles;
  size_t n_handles;
  state **states;
  size_t n_states;
  plan **plans;
  size_t n_plans;
  host *hosts;
  int depth, last_handle, last_constant;
  unsigned last_run, n_started; /* number of completed runs; of started ones not yet completed */
  size_t *covered;
  char *text; /* its steps as lines of text */
  size_t n_text;
  bool has_hosts; /* host functions occur, with which no plan changes a state in place */
  bool may_map;   /* tn_map is supported */
  bool prints;    /* print each step at once */
  char failure[1024];
  jmp_buf failed;
} program;

/** Text of the program, and failures. */
void say(program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fail(program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void check_status(program *p, tn_status s, const char *what);
void check_equal(program *p, const char *what, tn_shape shape, const int32_t got[],
                 const int32_t expected[]);
const char *shape_text(program *p, tn_shape s);
void cover(program *p, coverage what);

/** Picks an existing handle; NULL: none. */
handle *pick(program *p, bool (*wanted)(const handle *h));
bool is_closed(const handle *h);     /* independent of inputs */
bool is_view(const handle *h);       /* a state or a movement of one */
bool is_assignable(const handle *h); /* a state or a movement that tn_assign takes */
value *value_now(program *p, const handle *h);

/** new_handle makes a tensor of the innermost scope that is not listed yet; add_handle lists it. */
handle new_handle(program *p, tn_tensor *t, value *v);
handle *add_handle(program *p, handle h);

/** Records an unlisted view that lives as long as its scope. */
void note_view(program *p, state *of);

/** Checks that mapped elements are unchanged. */
void check_maps(program *p);

/** Versions: once run, a version is its state's contents. */
void change_state(program *p, const handle *to, value *with);
bool is_pending(const state *s);
bool any_pending(const program *p);
void settle(program *p, state *s, value *version);
void settle_all(program *p);
void forget_unseen(program *p);
mark *innermost_mark(const program *p, state *s);

/* Steps. */

void begin_scope(program *p);
void end_scope(program *p);
void own_or_release(program *p);
void make_state(program *p);
void lose_state(program *p); /* drops a state that is being changed, unlike its readers */
void assign(program *p, const handle *to, handle from);
void assign_random(program *p);
void write_random(program *p);
void read_handle(program *p, handle *h);
void realize_some(program *p);
void realize_pending(program *p);

/* expressions.c */

tn_shape random_shape(program *p);
handle random_host(program *p, tn_shape shape);
handle random_view(program *p, const handle *of);
handle random_expression(program *p);
handle binary(program *p, size_t which, const handle *a, const handle *b);
handle same(program *p, const handle *x); /* another value with the same elements */
void add_expression(program *p);          /* adds one to the handles */
handle random_operand(program *p);        /* an existing handle or an expression */
handle fitted(program *p, handle h, tn_shape shape);

/** Narrows a handle to a shape that broadcasts to `shape`. */
handle narrowed(program *p, handle h, tn_shape shape);
value *stretched(program *p, const handle *h, tn_shape shape);

/** Adds a number to x that is unique in the program. */
handle made_unlike(program *p, handle x);

/* hosts.c */

/** Makes a host function; returns its first output. */
handle host_result(program *p, const handle in[], size_t n, tn_shape shape);
handle host_rows(program *p, const handle *x, tn_type type);
void write_by_host(program *p);

/** Record that an assignment happened in the context, was taken by a plan, or happened in a run. */
void note_due(const value *version);
void note_taken(const value *version, int plan);
void note_run(program *p, int plan, size_t rows);

/** Checks the number of calls of each function. */
void check_calls(program *p);
const char *check_destroyed(const program *p); /* NULL if every function was destroyed once */

/* rows.c */

/** Makes a plan's input of a variable number of rows, and a result computed from it. */
void make_rows(program *p, plan *made, size_t input, const char *name);
tn_shape with_rows(tn_shape row, tn_dim rows);

/* plans.c */

void compile_plan(program *p);
void run_plan(program *p);
void free_plan(program *p);
void run_all_plans(program *p);
bool touches(const plan *made, const state *s); /* any state if s is NULL */
void give_inputs(program *p, plan *made, bound *b);
void run_with(program *p, plan *made, bound *b, void (*execute)(program *p, plan *made, bound *b));
void count_plans(program *p);

/* started.c */

void start_run(program *p);
void finish_run(program *p);
void finish_all_runs(program *p);
void cancel_runs(program *p);

/** Returns the number of states that a plan changes in place. */
size_t states_in_place(const tn_plan *p);

#endif
