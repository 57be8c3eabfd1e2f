/* Reentrancy detection: a list of the threads that are inside calls of an object (a context, a
   kernel cache) or inside user callbacks that such a call runs. A thread looks itself up before it
   waits, as it would deadlock if it waited for a call that it is itself in the middle of. */
#ifndef TENON_BASE_REENTRANCY_H
#define TENON_BASE_REENTRANCY_H

#include "base/thread.h"

#include <stdatomic.h>

/** Ordered by how much the object may hold meanwhile. */
typedef enum reentrancy_kind {
  REENTRANCY_NONE,
  REENTRANCY_CALL,          /* a call of the object */
  REENTRANCY_HOST_FUNCTION, /* the caller's function that computes a value; it runs under a lock of
                               its own, and calls wait until it returns */
  REENTRANCY_CALLBACK /* any other function of the caller's (logger, progress, allocator, …);
                         locks may be held and other threads may wait */
} reentrancy_kind;

typedef struct reentrancy_list reentrancy_list;

/** One thread inside of one call; lies on that thread's stack. */
typedef struct reentrancy_entry {
  reentrancy_list *of;
  struct reentrancy_entry *next;
  pthread_t thread;
  reentrancy_kind kind;
} reentrancy_entry;

struct reentrancy_list {
  mutex lock; /* of the members below */
  reentrancy_entry *first;
  atomic_size_t n; /* number of entries, read without the lock */
};

void reentrancy_init(reentrancy_list *all);
void reentrancy_free(reentrancy_list *all);

/** Record that the calling thread enters and leaves. A thread may leave entries in any order. Both
    do nothing where `of` is NULL. */
void reentrancy_enter(reentrancy_entry *v, reentrancy_list *of, reentrancy_kind kind);
void reentrancy_leave(reentrancy_entry *v);

/** Returns the greatest kind among the calling thread's entries. */
reentrancy_kind reentrancy_of_thread(reentrancy_list *all);

#endif
