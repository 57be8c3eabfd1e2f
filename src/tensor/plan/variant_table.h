/* The variants of a plan, and which of them a run takes: by the plan's policy a form is exact, or
   widened where facts differed. Only the table changes in a plan, under locks of its own. */
#ifndef TENON_TENSOR_PLAN_VARIANT_TABLE_H
#define TENON_TENSOR_PLAN_VARIANT_TABLE_H

#include "base/thread.h"
#include "tensor/plan/background_jobs.h"
#include "tensor/plan/plan_variant.h"

/* Limits, which include/tenon/plan.h documents. Variants used least recently go first. */
enum { MOST_EXACT_VARIANTS = 8, MOST_WIDENED_VARIANTS = 4, MOST_TRACKED_FACTS = 64 };

/** Results in a row on which a plan gives up exact variants, or widened ones: one may be chance. */
enum { LEAST_IN_VAIN = 2 };

/** Facts whose runs a wider variant serves. */
typedef struct tracked_facts {
  int64_t *facts;
  int64_t time_ns;                                        /* of their runs on wider variants */
  int64_t best_ns;                                        /* the shortest of these */
  enum { FACTS_COUNTED, FACTS_DUE, FACTS_SETTLED } state; /* due for, or have had, an exact one */
  uint64_t last_used;                                     /* 0: the entry is free */
} tracked_facts;

struct variant_table {
  background_job job; /* compiles what is due */
  tn_plan *plan;
  int64_t (*now)(void); /* clock_now_ns, unless a test sets another */
  mutex compiling;      /* held while a run compiles a variant */
  mutex lock;           /* of all that follows */
  plan_variant *at[MOST_EXACT_VARIANTS + MOST_WIDENED_VARIANTS];
  size_t n;
  atomic_uint_fast64_t n_changes; /* of the list; read without the lock */
  int64_t n_made;                 /* variants made so far */
  uint64_t n_uses;                /* the time of the last use */
  bool is_never_widened;          /* the graph cannot be compiled with sizes open */
  int n_unwidened;                /* times in a row that only the exact variant could be compiled */
  int64_t exact_ns;               /* the longest time that compiling an exact variant takes, without
                                     caches */
  int n_gained_nothing; /* exact variants in a row that are not faster; at most LEAST_IN_VAIN, from
                           which on none is compiled in the background */
  tracked_facts tracked[MOST_TRACKED_FACTS];
};

/** Opens the table; where all runs take one variant, compiles it. */
tn_status variant_table_open(tn_plan *p, diag *d);

void variant_table_close(tn_plan *p);

/** Finds the variant for facts, or compiles it. *out has a reference for the caller. */
tn_status variant_table_find(tn_plan *p, const int64_t facts[], diag *d, plan_variant **out);

/** Puts a variant of the same form in the place of another one, and takes the reference to it; runs
    take it from now on. */
void variant_table_replace(tn_plan *p, const plan_variant *old, plan_variant *v);

/** The time that runs with these facts may take on a variant until that is to be reported by
    variant_table_add_time; INT64_MAX: never. */
int64_t variant_table_time_left(tn_plan *p, const int64_t facts[], const plan_variant *v);

/** Adds the time that runs with these facts took on a wider variant, and the shortest of them. Once
    it is as long as compiling, an exact variant is compiled in the background. */
void variant_table_add_time(tn_plan *p, const int64_t facts[], int64_t time_ns, int64_t best_ns);

/** True until the runs of an exact variant were compared with those on the wider one before. */
bool variant_table_is_new(tn_plan *p, const plan_variant *v);

/** Compares the shortest run of an exact variant with those on the wider one before, once. */
void variant_table_compare(tn_plan *p, plan_variant *v, int64_t best_ns);

#endif
