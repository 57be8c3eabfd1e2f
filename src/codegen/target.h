/* What code generation must know of a target. A renderer states it (its capabilities); the program
   that is made depends on nothing else. */
#ifndef TENON_CODEGEN_TARGET_H
#define TENON_CODEGEN_TARGET_H

#include "ir/rewrite.h"

#include <tenon/unstable/backend.h>

enum {
  TARGET_HAND_OVER =
      2000 /* operations that take as long as to give work to waiting threads: 1 µs */
};

typedef struct target {
  uint16_t vector_bytes; /* the widest vector to use; 0: scalars only */
  uint16_t registers;    /* of that width; 0: none is known to be worth filling */
  bool threads;          /* a kernel may be cut along core_id */
  bool index32;          /* prefer 32-bit indices where bounds allow */
  uint16_t arguments;    /* buffers a kernel may have; 0: any number */
  uint64_t scratch;      /* bytes of arrays of its own that a kernel may have; 0: any number */
  tn_hardware hardware;  /* as it was stated: hardware_known */
  rule_target rules;     /* what is decomposed for it */
} target;

#endif
