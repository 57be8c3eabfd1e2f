#include "render/c.h"

#include "render/c_writer.h"

#include <string.h>

enum { MANY_HELD = 8 }; /* half of the registers that the smallest processors have */

/* Arguments. */

static const char *name_of_value(c_writer *w, size_t i) {
  char *name = arena_printf(w->arena, "v%zu_%s", i, w->spec->value_names[i]);
  for (char *c = name; *c; c++) {
    bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!fits) *c = '_';
  }
  return name;
}

const char *c_value_name(c_writer *w, const char *name) {
  size_t i = 0;
  while (i < w->spec->n_values && strcmp(w->spec->value_names[i], name) != 0) i++;
  if (i == w->spec->n_values)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there is no launch index %s", name);
  w->named[i] = true;
  return name_of_value(w, i);
}

/* Statements. */

static void begin(c_writer *w) {
  for (unsigned i = 0; i <= w->open.n; i++) str_add(&w->body, "  ");
}

static void keep_in_memory(c_writer *w) {
  begin(w);
  str_addf(&w->body, "%s;\n", w->d->barrier);
}

/** What was put into memory before a loop is there because its registers are short. */
static void open_loop(c_writer *w, const node *n) {
  if (w->puts_away && w->d->barrier) keep_in_memory(w);
  w->puts_away = false;
  c_value *v = c_plan_value(&w->plan, n);
  const char *type = c_form_name(w, c_form_of(w, n)), *end = c_expr_value(w, n->src[0]).text;
  v->name = arena_printf(w->arena, "i%u", w->loops++);
  begin(w);
  str_addf(&w->body, "for (%s %s = 0; %s < %s; %s++) {\n", type, v->name, v->name, end, v->name);
  vec_push(w->arena, &w->open, ((c_loop){.range = n}));
}

/** An array that iterations share is in memory because registers are short: compilers that keep it
    in variables all the same do so at the cost of what inner loops use. So do those that load,
    before outer loops, what is wanted after a loop of many sums. */
static void close_loop(c_writer *w) {
  c_loop loop = vec_last(&w->open);
  if (loop.keeps && w->d->barrier) keep_in_memory(w);
  w->puts_away = false;
  w->open.n--;
  begin(w);
  str_add(&w->body, "}\n");
  if (loop.held < MANY_HELD) return;
  w->many_sums = true;
  if (w->open.n && w->d->barrier) keep_in_memory(w);
}

/** Registers: a variable for each element that is ever read. */
static void declare_registers(c_writer *w, c_storage *s) {
  const char *type = c_form_name(w, c_form_make((dtype)s->root->dtype, s->root->lanes));
  uint32_t number = w->registers++;
  s->loops = w->open.n;
  for (size_t i = 0; i < s->cells.n; i++) {
    c_cell *c = &s->cells.at[i];
    if (!c->read) continue;
    c->name = s->cells.n == 1 ? arena_printf(w->arena, "acc%u", number)
                              : arena_printf(w->arena, "acc%u_%lld", number, (long long)c->address);
    begin(w);
    str_addf(&w->body, "%s %s;\n", type, c->name);
  }
}

static void declare_scratch(c_writer *w, c_storage *s) {
  if (s->root->lanes > 1)
    diag_raise(w->arena->diag, TN_ERR_INTERNAL,
               "alloc (node %" PRIu64 ") of vectors is not in registers", s->root->id);
  s->name = arena_printf(w->arena, "s%u", w->scratches++);
  c_blanks b = {.a = s->name,
                .o = c_form_make((dtype)s->root->dtype, 1),
                .n = scratch_offset(&w->scratch, s->root)};
  begin(w);
  str_addf(&w->body, "%s;\n", c_fill(w, w->d->scratch, &b));
}

static void write_alloc(c_writer *w, const node *n) {
  c_storage *s = map_get(&w->plan.storages, n);
  if (!s) return;
  if (c_is_register(n))
    declare_registers(w, s);
  else if (s->cells.at[0].read)
    declare_scratch(w, s);
}

/** Whether a store of so many bytes at once goes past the caches. */
static bool is_streamed(const c_writer *w, const node *store, size_t bytes) {
  const size_t *bounds = w->d->stream_bytes;
  return store->n_int && w->d->stream && bytes >= bounds[0] && bytes <= bounds[1];
}

static void write_store(c_writer *w, const node *n) {
  c_access access = c_plan_access(&w->plan, n);
  bool vector = n->src[2]->lanes > 1;
  c_piece value = c_expr_stored(w, n);
  begin(w);
  if (access.gates.n) str_addf(&w->body, "if (%s) ", c_expr_gates(w, &access).text);
  if (c_is_register(access.storage->root)) {
    str_addf(&w->body, "%s = %s;\n", access.cell->name, value.text);
    if (w->open.n > access.storage->loops) vec_last(&w->open).held++;
    return;
  }
  access.storage->used = true;
  for (size_t i = 0; i < w->open.n && access.storage->root->op == OP_ALLOC; i++)
    w->open.at[i].keeps |= !node_is_free_in(w->open.at[i].range, n->src[1]);
  w->puts_away |= access.storage->root->op == OP_ALLOC && node_is_const(n->src[1]);
  c_piece address = c_expr_value(w, access.address);
  bool bare = address.primary || !vector;
  c_blanks b = {.a = access.storage->name,
                .b = bare ? address.text : arena_printf(w->arena, "(%s)", address.text),
                .c = value.text,
                .t = c_form_make((dtype)n->src[2]->dtype, n->src[2]->lanes)};
  size_t bytes = b.t.lanes * dtype_bytes(b.t.dtype);
  bool streamed = is_streamed(w, n, bytes);
  b.n = (int64_t)bytes;
  w->streams |= streamed;
  str_addf(&w->body, "%s;\n", c_fill(w, streamed ? w->d->stream : w->d->store[vector], &b));
}

static void write_value(c_writer *w, const node *n) {
  c_value *v = c_plan_value(&w->plan, n);
  const char *text = c_expr(w, n).text, *type = c_form_name(w, c_form_of(w, n));
  v->name = arena_printf(w->arena, "x%u", w->values++);
  begin(w);
  str_addf(&w->body, "const %s %s = %s;\n", type, v->name, text);
}

static void write_instruction(c_writer *w, const node *n) {
  switch (n->op) {
  case OP_RANGE: open_loop(w, n); return;
  case OP_END: close_loop(w); return;
  case OP_ALLOC: write_alloc(w, n); return;
  case OP_STORE: write_store(w, n); return;
  default: write_value(w, n); return;
  }
}

/* The function. Buffers and runtime values that its text does not use are not passed to it. */

static void name_params(c_writer *w) {
  for (size_t i = 0; i < w->plan.slots.n; i++) {
    c_storage *s = w->plan.slots.at[i];
    s->name = arena_printf(w->arena, "p%lld", (long long)s->root->ints[0]);
  }
}

/** The storage of a slot, if the text uses it. */
static const c_storage *used_slot(const c_writer *w, int64_t slot) {
  for (size_t i = 0; i < w->plan.slots.n; i++)
    if (w->plan.slots.at[i]->root->ints[0] == slot)
      return w->plan.slots.at[i]->used ? w->plan.slots.at[i] : NULL;
  return NULL;
}

/** Appends, after a comma if it is not the first, a template. */
static void add_item(c_writer *w, str *list, const char *text, const c_blanks *b) {
  str_addf(list, "%s%s", list->n ? ", " : "", c_fill(w, text, b));
}

static void list_arguments(c_writer *w, str *params, str *arguments) {
  for (size_t i = 0; i < w->spec->n_globals; i++) {
    const c_storage *s = used_slot(w, w->spec->globals[i]);
    if (!s) continue;
    c_blanks b = {.a = s->name, .o = c_form_make((dtype)s->root->dtype, 1), .n = (int64_t)i};
    add_item(w, params, w->d->param[s->written], &b);
    add_item(w, arguments, w->d->argument[0], &b);
  }
  if (w->scratches) {
    bool shared = w->spec->core_id >= 0;
    c_blanks b = {.a = arena_printf(w->arena, "%zu", w->spec->n_globals),
                  .b = arena_printf(w->arena, "%lld", (long long)w->spec->core_id),
                  .n = (int64_t)w->spec->scratch};
    add_item(w, params, w->d->scratch_param, &b);
    add_item(w, arguments, w->d->scratch_argument[shared], &b);
  }
  for (size_t i = 0; i < w->spec->n_values; i++) {
    if (!w->named[i]) continue;
    c_blanks b = {.a = name_of_value(w, i), .n = (int64_t)i};
    add_item(w, params, w->d->value, &b);
    add_item(w, arguments, w->d->argument[1], &b);
  }
}

static void write_function(c_writer *w, const char *entry, str *out) {
  str params = str_new(w->arena), arguments = str_new(w->arena);
  list_arguments(w, &params, &arguments);
  c_blanks b = {.a = entry};
  const char *how = w->many_sums ? w->d->many_sums : "";
  str_addf(out, "%s%s(%s) {\n%s}\n\n", how, c_fill(w, w->d->function, &b),
           params.n ? str_text(&params) : "void", str_text(&w->body));
  str_addf(out, "%s%s(%s);\n}\n", how, c_fill(w, w->d->entry, &b), str_text(&arguments));
}

void render_c(const node *linear, const tn_program_spec *spec, const c_dialect *d, str *out) {
  arena *a = out->arena;
  c_writer w = {.d = d, .arena = a, .spec = spec};
  w.named = arena_calloc(a, spec->n_values + 1, sizeof *w.named);
  w.head = str_new(a);
  w.body = str_new(a);
  c_plan_make(&w.plan, linear, a);
  w.scratch = scratch_place(a, linear);
  name_params(&w);
  for (uint32_t i = 0; i < linear->n_src; i++)
    if (c_plan_is_written(&w.plan, linear->src[i])) write_instruction(&w, linear->src[i]);
  if (w.streams) str_add(&w.head, d->streams);
  if (w.streams) str_addf(&w.body, "  %s;\n", d->streamed);
  str_addf(out, "\n/* %s */\n%s", spec->entry, str_text(&w.head));
  write_function(&w, spec->entry, out);
}

void render_c_prelude(const c_dialect *d, str *out) { str_add(out, d->prelude); }

/* What a dialect lacks. */

static bool has_own_text(op o) {
  return o == OP_CAST || o == OP_BITCAST || o == OP_SPLAT || o == OP_VECTORIZE || o == OP_EXTRACT;
}

static bool is_said(const c_dialect *d, op o) {
  for (int c = 0; c < C_CLASSES; c++)
    if (d->scalar[c][o].text) return true;
  return has_own_text(o);
}

void render_c_lacks(const c_dialect *d, rule_target *t) {
  for (op o = 0; o < OP_LIMIT; o++) {
    bool wanted = op_is_elementwise(o) && op_get(o)->stages & STAGE_LINEAR;
    if (wanted && !is_said(d, o)) target_lack(t, o);
  }
  for (size_t i = 0; d->partial[i] != OP_LIMIT; i++) target_lack(t, d->partial[i]);
}
