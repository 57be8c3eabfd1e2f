/* Renders the ops of tensor_rows.def: as the intrinsic of x86 where the target has it for the
   number of lanes, else element by element of the words, which stand at the ends of a word once
   shifted. */
#include "render/llvm/ir_writer.h"

#include "ir/core/tensor_rows.h"

#include <string.h>

/** An intrinsic, and the type of its operands in LLVM, but for their bits: vectors of words. */
typedef struct intrinsic {
  const char *name, *element; /* of the operands, `group` times the lanes of it */
  bool adds;                  /* to its first operand */
} intrinsic;

static const char *const pmaddwd[] = {"sse2.pmadd.wd", "avx2.pmadd.wd", "avx512.pmaddw.d.512"};

/** The intrinsic of a row for vectors of 16, 32 or 64 bytes. */
static intrinsic intrinsic_of(llvm_writer *w, const tensor_row *row, size_t bytes) {
  size_t bits = 8 * bytes;
  switch (row->op) {
  case OP_DOT_U8I8:
    return (intrinsic){arena_printf(w->arena, "avx512.vpdpbusd.%zu", bits), "i32", true};
  case OP_DOT_I16: return (intrinsic){pmaddwd[bytes / 32], "i16", false};
  default:
    return (intrinsic){arena_printf(w->arena, "avx512bf16.dpbf16ps.%zu", bits), "bfloat", true};
  }
}

static const char *call_intrinsic(llvm_writer *w, const node *n, const tensor_row *row) {
  const intrinsic x = intrinsic_of(w, row, 4u * n->lanes);
  unsigned lanes = n->lanes * (unsigned)(strcmp(x.element, "i32") ? row->group : 1);
  const char *type = llvm_type_of(w, n), *args[3];
  const char *words = arena_printf(w->arena, "<%u x %s>", lanes, x.element);
  for (size_t i = 0; i < 3; i++) args[i] = llvm_value(w, n->src[i]);
  for (size_t i = 1; i < 3 && strcmp(type, words); i++)
    args[i] = llvm_emit(w, "bitcast %s %s to %s", type, args[i], words);
  if (x.adds)
    return llvm_emit(w, "call %s @llvm.x86.%s(%s %s, %s %s, %s %s)", type, x.name, type, args[0],
                     words, args[1], words, args[2]);
  const char *sum = llvm_emit(w, "call %s @llvm.x86.%s(%s %s, %s %s)", type, x.name, words, args[1],
                              words, args[2]);
  return llvm_emit(w, "add %s %s, %s", type, args[0], sum);
}

/** Element p of words of i32, as i32, or as the upper half of an f32. */
static const char *element(llvm_writer *w, const char *word, unsigned lanes, dtype t, int p) {
  const char *type = llvm_type(w, DT_I32, lanes);
  int bits = dtype_bits(t);
  const char *high = llvm_emit(w, "shl %s %s, %s", type, word,
                               llvm_constant(w, DT_I32, lanes, (uint64_t)(32 - bits * (p + 1))));
  const char *last = llvm_constant(w, DT_I32, lanes, (uint64_t)(32 - bits));
  if (!dtype_is_float(t))
    return llvm_emit(w, "%s %s %s, %s", dtype_is_signed(t) ? "ashr" : "lshr", type, high, last);
  high = llvm_emit(w, "lshr %s %s, %s", type, high, last);
  high = llvm_emit(w, "shl %s %s, %s", type, high, last);
  return llvm_emit(w, "bitcast %s %s to %s", type, high, llvm_type(w, DT_F32, lanes));
}

static const char *by_elements(llvm_writer *w, const node *n, const tensor_row *row) {
  const char *type = llvm_type_of(w, n), *sum = llvm_value(w, n->src[0]), *words[2];
  const char *integers = llvm_type(w, DT_I32, n->lanes);
  bool is_float = dtype_is_float(row->sum);
  for (size_t i = 0; i < 2; i++) {
    words[i] = llvm_value(w, n->src[1 + i]);
    if (is_float) words[i] = llvm_emit(w, "bitcast %s %s to %s", type, words[i], integers);
  }
  for (int p = row->group; p-- > 0;) {
    const char *x = element(w, words[0], n->lanes, row->x, p);
    const char *y = element(w, words[1], n->lanes, row->y, p);
    const char *product = llvm_emit(w, "%s %s %s, %s", is_float ? "fmul" : "mul", type, x, y);
    sum = llvm_emit(w, "%s %s %s, %s", is_float ? "fadd" : "add", type, sum, product);
  }
  return sum;
}

const char *llvm_tensor_row(llvm_writer *w, const node *n, const tensor_row *row) {
  bool is_vector = n->lanes == 4 || n->lanes == 8 || n->lanes == 16;
  bool is_there = w->rows >> (row - tensor_rows) & 1 && 4u * n->lanes <= w->vector_bytes;
  return is_vector && is_there ? call_intrinsic(w, n, row) : by_elements(w, n, row);
}
