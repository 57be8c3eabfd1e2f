/* Plans: a graph with named inputs and outputs, the states that it reads and writes, and the
   variants that were compiled of it (plan_variant.h). Bindings run a plan concurrently with the
   context, on any thread; only its variants change.

   A *fact* is a value that decides shapes and that only a run knows: that of a variable of the
   graph, which the size of an input along an axis determines. All sizes are expressions over the
   facts. */
#ifndef TENON_TENSOR_PLAN_PLAN_H
#define TENON_TENSOR_PLAN_PLAN_H

#include "base/map.h"
#include "device/program/launch_expr.h"
#include "ir/core/topo_sort.h"
#include "runtime/build_request.h"
#include "tensor/state/state_storage.h"

typedef struct plan_variant plan_variant;
typedef struct variant_table variant_table;
typedef struct shared_constants shared_constants;
typedef struct late_plan late_plan;

/** A size of a port. */
typedef struct port_size {
  /* A fact that the size determines: size = offset + scale · fact. */
  size_t fact;   /* SIZE_MAX: none */
  bool is_fixed; /* the size is `offset` */
  int64_t offset, scale;
  const char *text; /* in words, for tn_port */
  int64_t min, max; /* bounds that the graph gives */
  int32_t number;   /* equal for sizes that are equal in every run; -1: a number */
  bool is_computed; /* an ITEM is in it: it is known after the run */
} port_size;

/** An input or an output. */
typedef struct plan_port {
  const char *name;
  dtype dtype;
  size_t rank;
  size_t first_size; /* of the plan's `sizes` */
  port_size size[TN_MAX_RANK];
  size_t source; /* of an input: the number of its BUFFER */
  bool has_computed_size;
  bool is_late; /* of a late plan: no rank is known; an input takes any */
} plan_port;

/** A fact, and the first size of an input that determines it. */
typedef struct plan_fact {
  const char *name; /* of the VAR */
  int64_t min, max;
  int64_t likely; /* the caller's; 0: not known */
  size_t input, axis;
  size_t like;    /* the first fact of the same user's name, which it is taken to equal until a run
                     contradicts; itself if there is none */
  bool is_pinned; /* a KERNEL, whose text has the VAR, is in the graph: it varies in all variants */
} plan_fact;

/** A state that a plan reads or writes. */
typedef struct plan_state {
  state_storage *storage;
  size_t source; /* the number of its BUFFER; SIZE_MAX: it is not read */
  size_t root;   /* the root that is its new contents; SIZE_MAX: it is not written */
} plan_state;

/** The origin of a BUFFER of a graph: one of the first three is set. */
typedef struct plan_source {
  const char *input;      /* name of an input of the plan */
  state_storage *storage; /* of a state */
  tn_buffer *memory;      /* a value that existed when the plan was made */
  const void *weight;     /* tells plan_file which one it is */
} plan_source;

/** The file in which values are mapped, or from which they are read. */
typedef struct plan_file {
  void (*drop_pages)(void *user, const void *weight); /* called once the constants made of a value
                                                         exist, which replace it; NULL: no file */
  bool (*is_unread)(void *user, const void *weight);  /* its memory is filled from the file: */
  tn_status (*read)(void *user, const void *weight, size_t offset, size_t bytes, void *to, diag *d);
  void (*release)(void *user);
  void *user;
} plan_file;

/** Ports of a plan. */
typedef struct plan_ports {
  plan_port *inputs, *outputs;
  size_t n_inputs, n_outputs;
  string_map input_of, output_of; /* name → port */
  launch_exprs sizes;             /* of all inputs, then of all outputs, from the facts */
} plan_ports;

/** The graph of which variants are compiled. BUFFERs are numbered like `sources`. Only read once it
    is made, so that any thread copies it. */
typedef struct plan_template {
  ir *ir; /* owns the graph; NULL: no more variants are compiled */
  node_list order;
  const node **roots; /* outputs, new contents of states, then labelled nodes */
  size_t n_roots, n_labels;
  size_t n_watched;     /* of the labels, the last ones: nodes whose slots are listed */
  const char **labels;  /* of the last `n_labels` roots */
  bool folds_constants; /* the memory of values never changes */
  bool has_host_calls;  /* among its nodes */
  bool may_fail;        /* in the middle of a run: it has host calls, ITEMs, or loops that the
                           context's progress may cancel */
  executable_host host; /* functions that these call */
  plan_file file;
} plan_template;

/** A number for a size with these bounds: the least from 1 on, if there is one. */
static inline int64_t plan_example_size(int64_t min, int64_t max) {
  return min > 0 || max < 1 ? min : 1;
}

/** The shape of a port in words, for messages. */
const char *plan_port_shape_text(const plan_port *p, char *text, size_t bytes);

struct tn_plan {
  atomic_size_t count; /* its handle, and bindings */
  tn_context *context;
  tn_plan *next,
      **link;  /* in the context's list, under its lock; link NULL: the handle was freed */
  arena arena; /* of all that follows */
  const char *name;
  const char *title; /* in messages of bindings; NULL: they name nothing */
  plan_ports ports;
  plan_fact *facts; /* sorted by name */
  plan_state *states;
  plan_source *sources;
  size_t n_facts, n_states, n_sources;
  plan_template template;
  tn_variants policy;
  bool is_tunable;       /* the template is kept */
  bool is_interpreted;   /* runs compile nothing (binding_interpret.c) */
  int64_t first_variant; /* the number of the first */
  bool is_shared;        /* made by a late plan, for several values or sizes, of which some may not
                            fit */
  /* The parts that change, under locks of their own: */
  variant_table *variants;
  shared_constants *constants;
  late_plan *values; /* of a late plan (late_plan.h), which has no variants; else NULL */
};

/** The value of an input in a run. */
typedef struct plan_value {
  size_t rank;
  int64_t size[TN_MAX_RANK];
  size_t count;
  void *data; /* of the port's type; NULL: not read */
} plan_value;

/** The values of a run that a plan of a late plan is made for. */
typedef struct plan_made_for {
  const plan_value *values; /* by input */
  const bool *varying;      /* by input: its value is not given, and the plan serves all that it can
                               compute with */
  bool of_sizes;            /* the sizes of all inputs too, */
  bool from_one;            /* or all sizes that are at least 1 */
} plan_made_for;

/** The maker of a late plan's graphs, on which elements of inputs decide. */
typedef struct plan_late {
  const char *const *outputs; /* names */
  const dtype *output_types;
  size_t n_outputs;
  const bool *deciding; /* by input: its value is needed */
  const bool *is_free;  /* by input: it has any shape, and each plan is for one rank; NULL: none */
  size_t most_elements; /* of a value */
  bool of_sizes;        /* every plan is for the sizes of all inputs, */
  bool fits_from_one;   /* but one may be for all that are at least 1 */
  bool may_vary;        /* plans may be made that serve several values */
  /* Makes the plan for the values of inputs, whose ports are those of the late plan. Where it needs
     more values it sets these in `deciding`, and *out to NULL. Any thread. */
  tn_status (*make)(void *user, const tn_plan *late, const plan_made_for *of, int64_t first_variant,
                    bool deciding[], diag *d, tn_plan **out);
  void (*release)(void *user);
  void *user; /* passes to the plan */
} plan_late;

/** A graph to be made a plan. The plan copies all but the memory, storages and functions that it
    refers to. */
typedef struct plan_graph {
  const char *name;
  const char *title;         /* in messages of bindings, as a model's file; may be NULL */
  const node_list *order;    /* all nodes, sources first */
  const node *const *inputs; /* the first inputs, whether anything reads them or not */
  size_t n_inputs;
  const node *const *outputs;
  const char *const *output_names; /* NULL: numbers */
  size_t n_outputs;
  const schedule_label *labels; /* of nodes below the outputs */
  size_t n_labels;
  size_t n_watched;              /* of the labels, the last ones */
  const node *const *contents;   /* new contents of states */
  state_storage *const *written; /* these states */
  size_t n_written;
  bool folds_constants; /* the memory of BUFFERs never changes */
  tn_variants variants;
  bool is_tunable, is_interpreted;
  int64_t first_variant;
  shared_constants *constants; /* of other plans of the file; NULL: the plan has its own */
  const plan_late *late;       /* of a late plan, whose graph has inputs alone */
  plan_source (*source_of)(void *user, const node *buffer); /* may raise */
  void *user;
  executable_host host; /* passes to the plan */
  plan_file file;       /* passes to the plan */
  bool is_uncompiled;   /* the plan has no table of variants, and is only scheduled */
} plan_graph;

/** TN_ERR_ARGUMENT for a number that is no policy. */
tn_status plan_check_variants(tn_variants policy, diag *d);

/** True if variants differ in a fact. */
static inline bool plan_fact_varies(const plan_fact *f) { return f->min < f->max && !f->is_pinned; }

/** Makes a plan of tensors of a context, as tn_plan_compile does, in no list, which leaves assigns
    pending. `compiles`: where no size is open, it is compiled. */
tn_status plan_of_tensors(tn_context *c, tn_tensor *const out[], size_t n, const tn_plan_desc *desc,
                          bool compiles, tn_plan **plan);

/** Makes a plan, on any thread. The plan is in no list yet. */
tn_status plan_build(tn_context *c, const plan_graph *g, diag *d, tn_plan **out);

/** The fact of a variable's name; SIZE_MAX: none. */
size_t plan_find_fact(const tn_plan *p, const char *name);

/** Frees what further variants would be compiled of. */
void plan_drop_template(tn_plan *p);

void plan_release(tn_plan *p); /* NULL is allowed */

/** Frees a plan's handle. */
void plan_free(tn_plan *p);

/** Frees all plans and bindings of a context that nobody uses. */
void plan_free_all(tn_context *c);

/** True if an asynchronous run of any binding goes on. */
bool plan_any_runs(tn_context *c);

#endif
