/* Internal header of the LLVM renderer: the state of one function, and the functions that its
   source files share. Values are texts: "%12", a constant, or an argument. */
#ifndef TENON_RENDER_LLVM_IR_WRITER_H
#define TENON_RENDER_LLVM_IR_WRITER_H

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "codegen/scratch_plan.h"
#include "codegen/tile_plan.h"
#include "ir/core/tensor_rows.h"
#include "render/c/emission.h"

#include <tenon/unstable/backend.h>

/** Bytes of the constant @zeros on each side of its middle, where masked loads read if the mask
    fails: more than those of the widest vector. */
enum { LLVM_ZEROS = 2048 };

/** The address of masked loads, or of zeros if the mask fails: loads with the same masks at
   constant distances share it. */
typedef struct llvm_masked_address {
  const char *value;
  const node *root, *base; /* the storage, and the address but for a constant */
  int64_t offset;          /* that constant */
  node_list masks;
} llvm_masked_address;

/** A loop while it is written. */
typedef struct llvm_loop {
  const node *range;
  uint32_t number; /* of its blocks */
} llvm_loop;

typedef struct llvm_writer {
  arena *arena;
  const tn_program_spec *spec;
  uint32_t rows;                   /* a bit for each TENSOR_ROW that is an intrinsic */
  size_t vector_bytes;             /* of the widest vectors of these */
  c_emission plan;                 /* which values are written at their use: see llvm_value */
  scratch_plan scratch;            /* offsets of the program's arrays in scratch memory */
  tile_plan tiles;                 /* its registers for tiles */
  map values;                      /* instruction → its value (const char *) */
  str head;                        /* stack slots of registers and addresses of arrays */
  str body;                        /* instructions */
  VEC(llvm_loop) open;             /* loops, innermost last */
  VEC(llvm_masked_address) masked; /* those of the current block */
  uint32_t n_values, n_blocks, n_slots;
  bool has_nontemporal; /* some store is non-temporal */
} llvm_writer;

/* llvm_types.c. */

/** The name of a type in SSA values, where bool is i1, and in memory, where it is i8. */
const char *llvm_type(llvm_writer *w, dtype t, unsigned lanes);
const char *llvm_memory_type(llvm_writer *w, dtype t, unsigned lanes);
static inline const char *llvm_type_of(llvm_writer *w, const node *n) {
  return llvm_type(w, (dtype)n->dtype, n->lanes);
}

/** A constant with the same bits in each lane. */
const char *llvm_constant(llvm_writer *w, dtype t, unsigned lanes, uint64_t bits);

static inline bool llvm_is_float(dtype t) { return t == DT_F32 || t == DT_F64; }

/** Appends an instruction with a result, and returns its name. */
const char *llvm_emit(llvm_writer *w, const char *format, ...) BASE_PRINTF(2, 3);

/** Appends a line without a result. */
void llvm_line(llvm_writer *w, const char *format, ...) BASE_PRINTF(2, 3);

/** The number of a new block, for labels. */
static inline uint32_t llvm_new_block(llvm_writer *w) {
  w->masked.n = 0;
  return w->n_blocks++;
}

/* llvm_values.c. */

/** A value at its use. One that the plan inlines is written there: loads stand by the operations
    that need them, as in C, so that few of them wait in registers. */
const char *llvm_value(llvm_writer *w, const node *n);

/** Appends the instruction of a value, which it sets and returns. */
const char *llvm_write_value(llvm_writer *w, const node *n);

/** llvm_tensor_rows.c: the value of a row's op. */
const char *llvm_tensor_row(llvm_writer *w, const node *n, const tensor_row *row);

/** llvm_tensor_rows.c: appends the instructions of a value or store of a tile, or of the beginning
    and end of a program that has some. */
void llvm_write_tile(llvm_writer *w, const node *n);
void llvm_store_tile(llvm_writer *w, const node *n);
void llvm_begin_tiles(llvm_writer *w);
void llvm_end_tiles(llvm_writer *w);

/** Appends an elementwise instruction, and returns its value. */
const char *llvm_elementwise(llvm_writer *w, const node *n);

/** True for an op that llvm_elementwise renders for some type. */
bool llvm_has_instruction(op o);

_Noreturn void llvm_fail_unsupported(llvm_writer *w, const node *n);
_Noreturn void llvm_fail_ill_formed(llvm_writer *w, const node *n, const char *what);

/* llvm_memory.c. */

/** The address in memory of an access. */
const char *llvm_address(llvm_writer *w, const c_access *x);

/** Appends a load, and returns its value. */
const char *llvm_load(llvm_writer *w, const node *n);
void llvm_write_store(llvm_writer *w, const node *n);
void llvm_write_prefetch(llvm_writer *w, const node *n);
/** Declares an array in scratch memory; registers are declared where they are used first. */
void llvm_write_alloc(llvm_writer *w, const node *n);

#endif
