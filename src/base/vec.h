/* Vectors (growing arrays) in an arena. A vector is a struct of type VEC(type), or one with such
   members; its elements are v.at[0 … v.n − 1]. Capacity doubles; old storage stays until the arena
   is freed. */
#ifndef TENON_BASE_VEC_H
#define TENON_BASE_VEC_H

#include "base/arena.h"

#define VEC(type)  \
  struct {         \
    type *at;      \
    size_t n, cap; \
  }

/** Appends a value: an expression that is evaluated once and does not use the vector itself. Raises
    TN_ERR_MEMORY. */
#define vec_push(arena_, v, ...) \
  (vec_reserve(arena_, v, (v)->n + 1), (void)((v)->at[(v)->n++] = (__VA_ARGS__)))

/** Removes and yields the last element; the vector must not be empty. */
#define vec_pop(v)  ((v)->at[--(v)->n])
#define vec_last(v) ((v)->at[(v)->n - 1])

/** Makes sure that the vector can hold `count` elements in all without growing. */
#define vec_reserve(arena_, v, count) \
  ((count) <= (v)->cap                \
       ? (void)0                      \
       : (void)((v)->at = vec_grow(arena_, (v)->at, (v)->n, sizeof *(v)->at, (count), &(v)->cap)))

/** Copies an array into a larger one, whose capacity it stores in *cap; used by vec_reserve. */
void *vec_grow(arena *a, void *at, size_t n, size_t size, size_t count, size_t *cap);

#endif
