/* Where threads are: in calls of something, and in functions of the caller's that it called from
   there. A thread must not wait for what it is itself in the middle of, which only it can know. */
#ifndef TENON_BASE_VISIT_H
#define TENON_BASE_VISIT_H

#include "base/thread.h"

#include <stdatomic.h>

/** From the least to the most that is held meanwhile. */
typedef enum visit_kind {
  VISIT_NONE,
  VISIT_CALL,    /* a call */
  VISIT_HOST,    /* a function that computes: calls wait for it, and it is under its own lock */
  VISIT_CALLBACK /* any other function: it may be under locks, or have others wait */
} visit_kind;

typedef struct visits visits;

typedef struct visit {
  visits *of;
  struct visit *next;
  pthread_t thread;
  visit_kind kind;
} visit;

struct visits {
  mutex lock; /* of the list */
  visit *first;
  atomic_size_t n;
};

void visits_init(visits *all);
void visits_free(visits *all);

/** The calling thread enters, and leaves; visits end in any order. `of` NULL: nothing. */
void visit_begin(visit *v, visits *of, visit_kind kind);
void visit_end(visit *v);

/** The greatest kind among the calling thread's visits. */
visit_kind visits_mine(visits *all);

#endif
