/* Renders a LINEAR program for LLVM: loops, and the functions around the instructions. Loops test
   at their end; one that may run zero times is entered by a test too. The body is a function of its
   own, whose parameters say that buffers do not overlap, as the C renderer's do. */
#include "render/llvm/render_llvm.h"

#include "render/llvm/ir_writer.h"

/* Loops. */

static void open_loop(llvm_writer *w, const node *n) {
  const node *extent = n->src[0];
  const char *end = llvm_value(w, extent), *type = llvm_type_of(w, n);
  uint32_t k = llvm_new_block(w);
  bool runs = node_is_const(extent) && node_int(extent) > 0;
  llvm_line(w, "  br label %%h%u\nh%u:", k, k);
  if (runs) {
    llvm_line(w, "  br label %%l%u", k);
  } else {
    const char *some = llvm_emit(w, "icmp sgt %s %s, 0", type, end);
    llvm_line(w, "  br i1 %s, label %%l%u, label %%x%u", some, k, k);
  }
  llvm_line(w, "l%u:", k);
  const char *counter = arena_printf(w->arena, "%%i%u", k);
  llvm_line(w, "  %s = phi %s [ 0, %%h%u ], [ %s.next, %%n%u ]", counter, type, k, counter, k);
  map_set(w->arena, &w->values, n, (void *)counter);
  vec_push(w->arena, &w->open, ((llvm_loop){n, k}));
}

static void close_loop(llvm_writer *w) {
  llvm_loop loop = vec_pop(&w->open);
  w->masked.n = 0;
  uint32_t k = loop.number;
  const char *type = llvm_type_of(w, loop.range), *end = llvm_value(w, loop.range->src[0]);
  llvm_line(w, "  br label %%n%u\nn%u:", k, k);
  llvm_line(w, "  %%i%u.next = add nuw nsw %s %%i%u, 1", k, type, k);
  const char *more = llvm_emit(w, "icmp slt %s %%i%u.next, %s", type, k, end);
  llvm_line(w, "  br i1 %s, label %%l%u, label %%x%u\nx%u:", more, k, k, k);
}

static void write_instruction(llvm_writer *w, const node *n) {
  switch (n->op) {
  case OP_RANGE: open_loop(w, n); return;
  case OP_END: close_loop(w); return;
  case OP_ALLOC: llvm_write_alloc(w, n); return;
  case OP_STORE:
    if (node_is_tile(n->src[2]))
      llvm_store_tile(w, n);
    else
      llvm_write_store(w, n);
    return;
  case OP_PREFETCH: llvm_write_prefetch(w, n); return;
  default:
    if (node_is_tile(n))
      llvm_write_tile(w, n);
    else
      llvm_write_value(w, n);
  }
}

/* Functions. */

static bool is_stored(const tn_program_spec *s, int64_t slot) {
  for (size_t i = 0; i < s->n_outs; i++)
    if (s->outs[i] == slot) return true;
  return false;
}

static void add_body(const llvm_writer *w, str *out) {
  const tn_program_spec *s = w->spec;
  str_addf(out, "\ndefine internal void @%s.body(", s->entry);
  const char *comma = "";
  for (size_t i = 0; i < s->n_globals; i++, comma = ", ")
    str_addf(out, "%sptr noalias nocapture%s %%p%lld", comma,
             is_stored(s, s->globals[i]) ? "" : " readonly", (long long)s->globals[i]);
  if (w->scratch.bytes) str_addf(out, "%sptr noalias nocapture %%scratch", comma), comma = ", ";
  for (size_t i = 0; i < s->n_values; i++, comma = ", ") str_addf(out, "%si64 %%v%zu", comma, i);
  str_addf(out, ") noinline nounwind {\nentry:\n%s  br label %%start\nstart:\n%s",
           str_text(&w->head), str_text(&w->body));
#ifdef __x86_64__
  if (w->has_nontemporal) str_add(out, "  call void @llvm.x86.sse.sfence()\n");
#endif
  str_add(out, "  ret void\n}\n");
}

/** Appends the address of a pointer's or value's element and its load. */
static void add_load(str *out, const char *type, const char *name, const char *array, size_t i) {
  str_addf(out, "  %%%s.at = getelementptr %s, ptr %%%s, i64 %zu\n", name, type, array, i);
  str_addf(out, "  %%%s = load %s, ptr %%%s.at\n", name, type, name);
}

static void add_entry(const llvm_writer *w, str *out) {
  const tn_program_spec *s = w->spec;
  arena *a = w->arena;
  str arguments = str_new(a);
  str_addf(out,
           "\ndefine void @%s(ptr noalias readonly %%bufs, ptr noalias readonly %%vals) "
           "nounwind {\n",
           s->entry);
  const char *comma = "";
  for (size_t i = 0; i < s->n_globals; i++, comma = ", ") {
    const char *name = arena_printf(a, "p%lld", (long long)s->globals[i]);
    add_load(out, "ptr", name, "bufs", i);
    str_addf(&arguments, "%sptr %%%s", comma, name);
  }
  str values = str_new(a);
  for (size_t i = 0; i < s->n_values; i++) {
    const char *name = arena_printf(a, "v%zu", i);
    add_load(out, "i64", name, "vals", i);
    str_addf(&values, ", i64 %%%s", name);
  }
  if (w->scratch.bytes) {
    add_load(out, "ptr", "scratches", "bufs", s->n_globals);
    const char *worker = s->core_id >= 0 ? arena_printf(a, "%%v%lld", (long long)s->core_id) : "0";
    str_addf(out, "  %%offset = mul i64 %s, %llu\n", worker, (unsigned long long)s->scratch);
    str_add(out, "  %scratch = getelementptr i8, ptr %scratches, i64 %offset\n");
    str_addf(&arguments, "%sptr %%scratch", comma), comma = ", ";
  }
  str_add(&arguments, str_text(&values) + (*comma || !values.n ? 0 : 2));
  str_addf(out, "  call void @%s.body(%s)\n  ret void\n}\n", s->entry, str_text(&arguments));
}

void render_llvm(const node *linear, const tn_program_spec *spec, uint32_t rows,
                 size_t vector_bytes, str *out) {
  arena *a = out->arena;
  llvm_writer w = {.arena = a,
                   .spec = spec,
                   .rows = rows,
                   .vector_bytes = vector_bytes,
                   .head = str_new(a),
                   .body = str_new(a)};
  c_emission_make(&w.plan, linear, a);
  w.scratch = scratch_plan_make(a, linear);
  w.tiles = tile_plan_make(a, linear);
  if (w.tiles.n) llvm_begin_tiles(&w);
  for (uint32_t i = 0; i < linear->n_src; i++)
    if (c_emission_is_statement(&w.plan, linear->src[i])) write_instruction(&w, linear->src[i]);
  if (w.tiles.n) llvm_end_tiles(&w);
  add_body(&w, out);
  add_entry(&w, out);
}

void render_llvm_prelude(str *out) {
  str_addf(out,
           "!0 = !{i32 1}\n"
           "@zeros = private unnamed_addr constant [%d x i8] zeroinitializer, align 64\n",
           2 * LLVM_ZEROS);
}

void render_llvm_unsupported_ops(rule_target *t) {
  static const op partial[] = {OP_SHL, OP_SHR, OP_CAST};
  for (op o = 0; o < OP_LIMIT; o++) {
    bool wanted = op_is_elementwise(o) && op_facts_of(o)->stages & LEVEL_LINEAR;
    if (wanted && !llvm_has_instruction(o)) rule_target_add_missing_op(t, o);
  }
  for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
    rule_target_add_missing_op(t, partial[i]);
}
