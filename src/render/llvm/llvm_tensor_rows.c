/* Renders the ops of tensor_rows.def: as the intrinsic of x86 where the target has it for the
   number of lanes, else element by element of the words, which stand at the ends of a word once
   shifted. Tiles are intrinsics on numbered registers, which LLVM keeps in their order. */
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

/* Tiles. */

static long long number_of(const llvm_writer *w, const node *n) {
  return (long long)tile_plan_number(&w->tiles, n);
}

static void access_tile(llvm_writer *w, const char *name, const node *tile, const node *access) {
  c_access x = c_emission_access(&w->plan, access);
  bool has_rows = access->op == OP_LOAD && access->n_src > 2;
  int64_t element = (int64_t)dtype_bytes((dtype)tile->dtype);
  int64_t apart = has_rows ? node_int(access->src[2]) * element : TILE_PLAN_ROW_BYTES;
  if (!x.address || x.masks.n) llvm_fail_ill_formed(w, access, "may have no address");
  llvm_line(w, "  call void @llvm.x86.%s(i8 %lld, ptr %s, i64 %lld)", name, number_of(w, tile),
            llvm_address(w, &x), (long long)apart);
}

void llvm_write_tile(llvm_writer *w, const node *n) {
  const tensor_tile *t = tensor_tile_of((op)n->op);
  if (n->op == OP_LOAD && !c_is_register(node_storage_root(n->src[0])))
    access_tile(w, "tileloadd64", n, n);
  if (!t) return;
  llvm_line(w, "  call void @llvm.x86.%s(i8 %lld, i8 %lld, i8 %lld)",
            t->op == OP_TILE_U8I8 ? "tdpbusd" : "tdpbf16ps", number_of(w, n->src[0]),
            number_of(w, n->src[1]), number_of(w, n->src[2]));
}

void llvm_store_tile(llvm_writer *w, const node *n) {
  const node *value = n->src[2], *root = node_storage_root(n->src[0]);
  if (!c_is_register(root))
    access_tile(w, "tilestored64", value, n);
  else if (number_of(w, value) < 0)
    llvm_line(w, "  call void @llvm.x86.tilezero(i8 %lld)", number_of(w, root));
  else if (number_of(w, value) != number_of(w, root))
    llvm_fail_ill_formed(w, n, "would copy a tile to a register");
}

/** All registers have 16 rows of 64 bytes. */
void llvm_begin_tiles(llvm_writer *w) {
  enum { BYTES = 64, WIDTHS = 16, ROWS = 48, REGISTERS = 8 }; /* of the configuration */
  llvm_line(w, "  %%shapes = alloca [%d x i8], align 64", BYTES);
  for (int i = 0; i < BYTES; i++) {
    bool is_width = i >= WIDTHS && i < WIDTHS + 2 * REGISTERS && i % 2 == 0;
    int byte = !i ? 1 : is_width ? TILE_PLAN_ROW_BYTES : i >= ROWS && i < ROWS + REGISTERS ? 16 : 0;
    llvm_line(w, "  %%shape%d = getelementptr i8, ptr %%shapes, i64 %d", i, i);
    llvm_line(w, "  store i8 %d, ptr %%shape%d", byte, i);
  }
  llvm_line(w, "  call void @llvm.x86.ldtilecfg(ptr %%shapes)");
}

void llvm_end_tiles(llvm_writer *w) { llvm_line(w, "  call void @llvm.x86.tilerelease()"); }
