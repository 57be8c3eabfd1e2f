/* The target of code generation: vectors, registers, limits and missing ops. A renderer states it
   in its capabilities, and generated programs depend on nothing else. */
#ifndef TENON_TARGET_TARGET_H
#define TENON_TARGET_TARGET_H

#include "ir/core/tensor_rows.h"
#include "ir/transform/rewrite.h"

#include <tenon/unstable/backend.h>

typedef struct target {
  uint16_t vector_bytes; /* of the widest vector to use; 0: scalars only */
  uint16_t registers;    /* of that width; 0: unknown, so no register tiles */
  bool threads;          /* a kernel may be divided among threads (core_id) */
  bool index32;          /* prefer 32-bit indices where bounds allow */
  uint16_t arguments;    /* buffers a kernel may have; 0: any number */
  uint64_t scratch;      /* bytes of a kernel's own arrays per worker; 0: any number */
  uint32_t team_workers; /* most workers of a group; 0: there are no teams */
  uint32_t warp;         /* workers of a warp; 0: there are none */
  uint64_t group_bytes;  /* memory that a group shares */
  tn_hardware hardware;  /* as reported: see hardware_with_defaults */
  rule_target rules;     /* ops that are decomposed for it */
} target;

/** A bit for each TENSOR_ROW, then for each TENSOR_TILE, that a target has an instruction for. */
static inline uint32_t target_rows(const target *t) {
  uint32_t rows = 0;
  for (size_t i = 0; i < TENSOR_OPS; i++)
    if (!rule_target_lacks_op(&t->rules, tensor_op(i))) rows |= UINT32_C(1) << i;
  return rows;
}

#endif
