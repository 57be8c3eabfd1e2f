/* Renders types and constants as text of LLVM's intermediate representation, and appends
   instructions to the function's body. 16-bit floats and storage types are bit patterns, as in the
   C renderer. */
#include "render/llvm/ir_writer.h"

#include <stdarg.h>
#include <stdio.h>

static const char *scalar_type(dtype t, bool memory) {
  switch (t) {
  case DT_BOOL: return memory ? "i8" : "i1";
  case DT_F32: return "float";
  case DT_F64: return "double";
  default: break;
  }
  static const char *const integers[] = {[1] = "i8", [2] = "i16", [4] = "i32", [8] = "i64"};
  return integers[dtype_bytes(t)];
}

static const char *type(llvm_writer *w, dtype t, unsigned lanes, bool memory) {
  const char *scalar = scalar_type(t, memory);
  return lanes > 1 ? arena_printf(w->arena, "<%u x %s>", lanes, scalar) : scalar;
}

const char *llvm_type(llvm_writer *w, dtype t, unsigned lanes) { return type(w, t, lanes, false); }

const char *llvm_memory_type(llvm_writer *w, dtype t, unsigned lanes) {
  return type(w, t, lanes, true);
}

/** Exact: the hexadecimal digits of a float are those of the double of the same value. A NaN, whose
    bits that would change, is cast from its bits. */
static const char *scalar_constant(llvm_writer *w, dtype t, uint64_t bits) {
  if (t == DT_BOOL) return bits ? "true" : "false";
  if (!llvm_is_float(t)) {
    bool is_signed = dtype_is_signed(t) && !dtype_is_float(t);
    return is_signed ? arena_printf(w->arena, "%lld", (long long)(int64_t)bits)
                     : arena_printf(w->arena, "%llu", (unsigned long long)bits);
  }
  double v = scalar_to_double(t, bits);
  if (v != v)
    return t == DT_F32
               ? arena_printf(w->arena, "bitcast (i32 %lu to float)", (unsigned long)(uint32_t)bits)
               : arena_printf(w->arena, "bitcast (i64 %llu to double)", (unsigned long long)bits);
  return arena_printf(w->arena, "0x%016llX", (unsigned long long)scalar_from_double(DT_F64, v));
}

const char *llvm_constant(llvm_writer *w, dtype t, unsigned lanes, uint64_t bits) {
  const char *one = scalar_constant(w, t, bits);
  if (lanes == 1) return one;
  str s = str_new(w->arena);
  for (unsigned i = 0; i < lanes; i++)
    str_addf(&s, "%s%s %s", i ? ", " : "<", llvm_type(w, t, 1), one);
  str_add(&s, ">");
  return str_text(&s);
}

static void add_text(llvm_writer *w, const char *format, va_list rest) {
  char text[256];
  va_list again;
  va_copy(again, rest);
  int n = vsnprintf(text, sizeof text, format, rest);
  if (n >= 0 && (size_t)n < sizeof text) {
    str_add_bytes(&w->body, text, (size_t)n);
  } else if (n >= 0) {
    char *all = arena_alloc(w->arena, (size_t)n + 1);
    vsnprintf(all, (size_t)n + 1, format, again);
    str_add_bytes(&w->body, all, (size_t)n);
  }
  va_end(again);
  str_add(&w->body, "\n");
}

const char *llvm_emit(llvm_writer *w, const char *format, ...) {
  const char *name = arena_printf(w->arena, "%%%u", w->n_values++);
  str_add(&w->body, "  ");
  str_add(&w->body, name);
  str_add(&w->body, " = ");
  va_list rest;
  va_start(rest, format);
  add_text(w, format, rest);
  va_end(rest);
  return name;
}

void llvm_line(llvm_writer *w, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  add_text(w, format, rest);
  va_end(rest);
}
