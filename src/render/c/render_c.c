/* Renders a LINEAR program (a list of instructions) as one C function: the arguments that the text
   uses, scratch memory and the entry point around the statements. Also lists the ops that a dialect
   lacks, for decomposition. */
#include "render/c/render_c.h"

#include "render/c/writer.h"
#include "target/machine.h"

#include <string.h>

/* Arguments. */

static const char *name_of_value(c_writer *w, size_t i) {
  char *name = arena_printf(w->arena, "v%zu_%s", i, w->spec->value_names[i]);
  for (char *c = name; *c; c++) {
    bool fits = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!fits) *c = '_';
  }
  return name;
}

const char *c_runtime_value_name(c_writer *w, const char *name) {
  size_t i = 0;
  while (i < w->spec->n_values && strcmp(w->spec->value_names[i], name) != 0) i++;
  if (i == w->spec->n_values)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there is no launch index %s", name);
  w->named[i] = true;
  return name_of_value(w, i);
}

/* The function. The entry passes only those buffers and runtime values that its text uses. */

/** The storage of a slot; NULL: the text does not use it. */
static const c_storage *used_slot(const c_writer *w, int64_t slot) {
  for (size_t i = 0; i < w->plan.slots.n; i++)
    if (w->plan.slots.at[i]->root->ints[0] == slot)
      return w->plan.slots.at[i]->used ? w->plan.slots.at[i] : NULL;
  return NULL;
}

/** Appends a filled template to a list separated by commas. */
static void add_item(c_writer *w, str *list, const char *text, const c_template_arguments *b) {
  str_addf(list, "%s%s", list->n ? ", " : "", c_template_fill(w, text, b));
}

/** Text of the function's parameters and of the entry's, arrays and arguments. */
typedef struct lists {
  str params, arguments, entry, arrays;
} lists;

/** Lists all buffers and values of a launch, used or not. */
static void list_entry_params(c_writer *w, lists *l) {
  const char *const *text = w->d->team.entry_param;
  for (size_t i = 0; i < w->spec->n_globals && text[0]; i++) {
    const c_storage *s = used_slot(w, w->spec->globals[i]);
    c_template_arguments b = {.a = s && !s->written ? "const " : "",
                              .o = c_value_type_make(s ? (dtype)s->root->dtype : DT_U8, 1),
                              .n = (int64_t)i};
    add_item(w, &l->entry, text[0], &b);
  }
  for (size_t i = 0; i < w->spec->n_values && text[1]; i++)
    add_item(w, &l->entry, text[1], &(c_template_arguments){.a = name_of_value(w, i)});
}

static void list_shared_arrays(c_writer *w, lists *l) {
  for (size_t i = 0; i < w->shared.n; i++) {
    const c_storage *s = w->shared.at[i];
    c_template_arguments b = {
        .a = s->name, .o = c_value_type_make((dtype)s->root->dtype, 1), .n = s->root->src[0]->hi};
    str_addf(&l->arrays, "  %s;\n", c_template_fill(w, w->d->team.shared, &b));
    add_item(w, &l->params, w->d->team.shared_param, &b);
    add_item(w, &l->arguments, "$a", &b);
  }
}

static void list_arguments(c_writer *w, lists *l) {
  str *params = &l->params, *arguments = &l->arguments;
  for (size_t i = 0; i < w->spec->n_globals; i++) {
    const c_storage *s = used_slot(w, w->spec->globals[i]);
    if (!s) continue;
    c_template_arguments b = {
        .a = s->name, .o = c_value_type_make((dtype)s->root->dtype, 1), .n = (int64_t)i};
    add_item(w, params, w->d->function.param[s->written], &b);
    add_item(w, arguments, w->d->function.argument[0], &b);
  }
  list_shared_arrays(w, l);
  if (w->names.scratches && w->d->function.scratch_param) {
    bool shared = w->spec->core_id >= 0;
    c_template_arguments b = {.a = arena_printf(w->arena, "%zu", w->spec->n_globals),
                              .b = arena_printf(w->arena, "%lld", (long long)w->spec->core_id),
                              .n = (int64_t)w->spec->scratch};
    add_item(w, params, w->d->function.scratch_param, &b);
    add_item(w, arguments, w->d->function.scratch_argument[shared], &b);
  }
  for (size_t i = 0; i < w->spec->n_values; i++) {
    if (!w->named[i]) continue;
    c_template_arguments b = {.a = name_of_value(w, i), .n = (int64_t)i};
    add_item(w, params, w->d->function.value, &b);
    add_item(w, arguments, w->d->function.argument[1], &b);
  }
}

/** Workers of a group along each axis, as "64, 1, 1", which a launch states, and all of them. */
static const char *group_sizes(const c_writer *w, int64_t *workers) {
  int64_t sizes[3] = {1, 1, 1};
  for (int i = 0; i < 3; i++) {
    const node *local = w->spec->local[i];
    if (local && !node_is_const(local))
      diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "the size of a group is no constant");
    if (local) sizes[i] = node_int(local);
  }
  *workers = sizes[0] * sizes[1] * sizes[2];
  return arena_printf(w->arena, "%lld, %lld, %lld", (long long)sizes[0], (long long)sizes[1],
                      (long long)sizes[2]);
}

static void write_function(c_writer *w, const char *entry, str *out) {
  arena *a = w->arena;
  lists l = {str_new(a), str_new(a), str_new(a), str_new(a)};
  list_arguments(w, &l);
  list_entry_params(w, &l);
  c_template_arguments b = {.a = entry, .b = str_text(&l.arrays), .l = str_text(&l.entry)};
  b.c = w->d->team.entry_param[0] ? group_sizes(w, &b.n) : "";
  const char *qualifier = w->traits.many_accumulators ? w->d->function.many_accumulators : "";
  str_addf(out, "%s%s(%s) {\n%s}\n\n", qualifier, c_template_fill(w, w->d->function.function, &b),
           l.params.n ? str_text(&l.params) : "void", str_text(&w->text.body));
  str_addf(out, "%s%s(%s);\n}\n", qualifier, c_template_fill(w, w->d->function.entry, &b),
           str_text(&l.arguments));
}

void render_c(const node *linear, const tn_program_spec *spec, const c_dialect *d, str *out) {
  arena *a = out->arena;
  c_writer w = {.d = d, .arena = a, .spec = spec};
  w.named = arena_calloc(a, spec->n_values + 1, sizeof *w.named);
  w.text.head = str_new(a);
  w.text.body = str_new(a);
  c_emission_make(&w.plan, linear, a);
  w.scratch = scratch_plan_make(a, linear);
  w.tiles = tile_plan_make(a, linear);
  if (w.tiles.n && !d->tile.prelude)
    diag_raise(a->diag, TN_ERR_UNSUPPORTED, "there are no registers for tiles");
  if (w.tiles.n) str_add(&w.text.head, d->tile.prelude);
  if (w.tiles.n) str_addf(&w.text.body, "  %s;\n", d->tile.begin);
  for (size_t i = 0; i < w.plan.slots.n; i++) {
    c_storage *s = w.plan.slots.at[i];
    s->name = arena_printf(a, "p%lld", (long long)s->root->ints[0]);
  }
  for (uint32_t i = 0; i < linear->n_src; i++)
    if (c_emission_is_statement(&w.plan, linear->src[i])) c_write_statement(&w, linear->src[i]);
  if (w.traits.has_nontemporal) str_add(&w.text.head, d->nontemporal.prelude);
  if (w.traits.has_nontemporal) str_addf(&w.text.body, "  %s;\n", d->nontemporal.fence);
  if (w.tiles.n) str_addf(&w.text.body, "  %s;\n", d->tile.end);
  str_addf(out, "\n/* %s */\n%s%s%s", spec->entry, w.traits.has_dots ? d->dots_prelude : "",
           w.plan.has_copies ? d->team.copy_prelude : "", str_text(&w.text.head));
  write_function(&w, spec->entry, out);
}

void render_c_prelude(const c_dialect *d, str *out) { str_add(out, d->prelude); }

/* Ops that a dialect lacks. */

/** True if a table of the dialect, or the writer itself, has the expression of an op. */
static bool has_text(const c_dialect *d, op o) {
  for (int c = 0; c < C_CLASSES; c++)
    if (d->scalar[c][o].text || d->vector[c][o].text) return true;
  return o == OP_CAST || o == OP_BITCAST || o == OP_SPLAT || o == OP_VECTORIZE || o == OP_EXTRACT;
}

void render_c_unsupported_ops(const c_dialect *d, rule_target *t) {
  for (op o = 0; o < OP_LIMIT; o++) {
    bool wanted = op_is_elementwise(o) && op_facts_of(o)->stages & LEVEL_LINEAR;
    if (wanted && !has_text(d, o)) rule_target_add_missing_op(t, o);
  }
  for (size_t i = 0; d->partial[i] != OP_LIMIT; i++) rule_target_add_missing_op(t, d->partial[i]);
}
