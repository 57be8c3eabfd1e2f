/* A map from strings to pointers, in an arena. Keys are compared in full and must stay. */
#ifndef TENON_BASE_NAMES_H
#define TENON_BASE_NAMES_H

#include "base/intern.h"

typedef struct names {
  intern_table table;
} names;

/** The value of a key, or NULL. */
void *names_get(const names *m, const char *key);

/** Sets the value of a key. Raises when there is no memory. */
void names_set(arena *a, names *m, const char *key, void *value);

#endif
