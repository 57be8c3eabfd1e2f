/* The target of code generation: vectors, registers, limits and missing ops. A renderer states it
   in its capabilities, and generated programs depend on nothing else. */
#ifndef TENON_TARGET_TARGET_H
#define TENON_TARGET_TARGET_H

#include "ir/core/tensor_rows.h"
#include "ir/transform/rewrite.h"

#include <tenon/unstable/backend.h>

typedef struct target {
  uint16_t vector_bytes; /* of the widest vector to use; 0: scalars only */
  uint16_t registers;    /* of that width; of teams, of 32 bits; 0: unknown, so no tiles */
  bool threads;          /* a kernel may be divided among threads (core_id) */
  bool index32;          /* prefer 32-bit indices where bounds allow */
  uint16_t arguments;    /* buffers a kernel may have; 0: any number */
  uint64_t scratch;      /* bytes of a kernel's own arrays per worker; 0: any number */
  uint32_t team_workers; /* most workers of a group; 0: there are no teams */
  uint32_t warp;         /* workers of a warp; 0: there are none */
  uint64_t group_bytes;  /* memory that a group shares */
  tn_hardware hardware;  /* as reported: see hardware_with_defaults */
  rule_target rules;     /* ops that are decomposed for it */
  uint16_t lanes;        /* most of a vector; 0: as many as its bytes hold */
  uint16_t copy_bytes;   /* sum of the sizes that a worker copies to shared memory as it goes on */
} target;

/** Lanes of a vector of some bytes. */
static inline int64_t target_lanes(const target *t, size_t vector_bytes, size_t element_bytes) {
  int64_t lanes = (int64_t)(vector_bytes / element_bytes);
  return t->lanes && lanes > t->lanes ? t->lanes : lanes;
}

/** Registers that a scalar or vector of some bytes takes. */
static inline size_t target_registers_for(const target *t, size_t bytes) {
  enum { REGISTER_BYTES = 4 }; /* of a worker of a team */
  return t->team_workers ? (bytes + REGISTER_BYTES - 1) / REGISTER_BYTES : 1;
}

/** True if a target has an instruction of tensor_rows.def: for a tile, warps of its workers too. */
static inline bool target_has_tensor_op(const target *t, op o) {
  const tensor_tile *tile = tensor_tile_of(o);
  bool fits = !tile || tile->workers == 1 || (uint32_t)tile->workers == t->warp;
  return fits && !rule_target_lacks_op(&t->rules, o);
}

/** A bit for each TENSOR_ROW, then for each TENSOR_TILE, that a target has an instruction for. */
static inline uint32_t target_rows(const target *t) {
  uint32_t rows = 0;
  for (size_t i = 0; i < TENSOR_OPS; i++)
    if (target_has_tensor_op(t, tensor_op(i))) rows |= UINT32_C(1) << i;
  return rows;
}

#endif
