/* Growing arrays in an arena. A vector is any struct that VEC(type) names; its elements are
   v.at[0 … v.n − 1]. Old storage stays in the arena until the arena goes. */
#ifndef TENON_BASE_VEC_H
#define TENON_BASE_VEC_H

#include "base/arena.h"

#define VEC(type)  \
  struct {         \
    type *at;      \
    size_t n, cap; \
  }

/** Appends a value: an expression that is evaluated once and does not use the vector itself. Raises
    when there is no memory. */
#define vec_push(arena_, v, ...) \
  (vec_reserve(arena_, v, (v)->n + 1), (void)((v)->at[(v)->n++] = (__VA_ARGS__)))

/** Takes the last value off; the vector must not be empty. */
#define vec_pop(v)  ((v)->at[--(v)->n])
#define vec_last(v) ((v)->at[(v)->n - 1])

/** Room for `count` elements in all. */
#define vec_reserve(arena_, v, count) \
  ((count) <= (v)->cap                \
       ? (void)0                      \
       : (void)((v)->at = vec_grow(arena_, (v)->at, (v)->n, sizeof *(v)->at, (count), &(v)->cap)))

/** The storage behind vec_reserve: a larger copy, its capacity in *cap. */
void *vec_grow(arena *a, void *at, size_t n, size_t size, size_t count, size_t *cap);

#endif
