/* Internal header of the tuner: its state, which tuner.c and verify_winners.c share. */
#ifndef TENON_TUNE_TUNER_STATE_H
#define TENON_TUNE_TUNER_STATE_H

#include "tune/kernel_bench.h"
#include "tune/kernel_candidates.h"
#include "tune/network_runs.h"

#include <tenon/tune.h>

/** A kernel with other schedules. */
typedef struct tuned_kernel tuned_kernel;
struct tuned_kernel {
  size_t number; /* of the executable's program */
  const node *sink;
  const char *key;    /* in the store */
  tuned_kernel *same; /* another one with this key; NULL: none */
  kernel_share share; /* of the network's runs at the beginning */
  kernel_candidates candidates;
  kernel_candidate first, present; /* schedules: at the beginning, and now */
  const char *winner;              /* the present one if it is faster than the first; or NULL */
  tn_program *program;             /* of the present one; NULL: not needed so far */
  string_map code;                 /* hashes of code that was generated */
  double gained_ns;                /* of a run of the network, by measurements of the kernel */
  int n_idle;                      /* batches in a row that gained nothing */
  bool is_exhausted;
  double before_ns; /* of a call in the network, in the end, with the first schedule; */
  double after_ns;  /* with the winner */
};

typedef struct tuner {
  tn_binding *binding;
  const tn_tune_desc *desc;
  tn_tuning *info;
  diag *diag;
  arena arena; /* of all lists */
  int64_t start;
  bool has_ended;         /* no more schedules are measured: by time, or by the caller */
  bool is_stopped;        /* by the caller, who is not asked again */
  double compile_seconds; /* spent */
  size_t n_compiled;      /* schedules */
  double build_seconds;   /* of a build of the network whose kernels are in the cache */
  kernel_copies copies;
  network before, after; /* with the schedules of the beginning, and with the winners */
  kernel_share *shares;  /* by program of `before` */
  double whole_ns;       /* of a run at the beginning */
  uint64_t network_bytes;
  tuned_kernel *kernels;
  size_t n_kernels;
  string_map by_key;   /* key → the last kernel with it */
  kernel_trial *trial; /* of `tried`; NULL: none */
  tuned_kernel *tried;
} tuner;

/** Reports the state before a build of the network beyond the usual ones; false: time is over, or
   the caller ends the tuning. */
bool tuner_may_build(tuner *t);

/** Appends a measurement of a kernel's schedule beside another one to the store. Raises. */
void tuner_record(tuner *t, const tuned_kernel *k, tuned_verdict verdict, const kernel_candidate *c,
                  double ns, const kernel_candidate *other, double other_ns);

#endif
