/* Renders the instructions of a LINEAR program as C statements: loops, declarations, stores and
   named values. Compiler barriers keep arrays that the plan spilled in memory. */
#include "ir/core/binder_layout.h"
#include "ir/core/tensor_rows.h"
#include "render/c/writer.h"
#include "target/machine.h"

static void indent(c_writer *w) {
  for (unsigned i = 0; i <= w->open.n; i++) str_add(&w->text.body, "  ");
}

static void add_barrier(c_writer *w) {
  indent(w);
  str_addf(&w->text.body, "%s;\n", w->d->function.barrier);
}

/** A barrier before a loop keeps values in memory that were spilled to free its registers. */
static void open_loop(c_writer *w, const node *n) {
  if (w->traits.spills_before_loop && w->d->function.barrier) add_barrier(w);
  w->traits.spills_before_loop = false;
  c_value *v = c_emission_value(&w->plan, n);
  const char *type = c_value_type_name(w, c_value_type_of(w, n)),
             *end = c_expr_value(w, n->src[0]).text;
  v->name = arena_printf(w->arena, "i%u", w->names.loops++);
  if (range_is_unrolled(n) && w->d->function.unrolled) {
    c_template_arguments b = {.n = node_int(n->src[0])};
    indent(w);
    str_addf(&w->text.body, "%s\n", c_template_fill(w, w->d->function.unrolled, &b));
  }
  indent(w);
  str_addf(&w->text.body, "for (%s %s = 0; %s < %s; %s++) {\n", type, v->name, v->name, end,
           v->name);
  vec_push(w->arena, &w->open, ((c_loop){.range = n}));
}

/** An array that iterations share was spilled because registers are short. Compilers that promote
   it to registers again spill the accumulators of inner loops for it; so do those that hoist loads
   for the epilogue of a loop with many accumulators, and those that keep elements which the copies
   of an unrolled body share, as the taps of a window do. Barriers prevent all three. */
static void close_loop(c_writer *w) {
  c_loop loop = vec_last(&w->open);
  bool reloads = range_is_unrolled(loop.range) || loop.shares_array;
  if (reloads && w->d->function.barrier) add_barrier(w);
  w->traits.spills_before_loop = false;
  w->open.n--;
  indent(w);
  str_add(&w->text.body, "}\n");
  if (loop.accumulators < MACHINE_MANY_ACCUMULATORS) return;
  w->traits.many_accumulators = true;
  if (w->open.n && w->d->function.barrier) add_barrier(w);
}

/** Declares a variable for each register element that is ever read. */
static void declare_registers(c_writer *w, c_storage *s) {
  const char *type = c_value_type_name(w, c_value_type_make((dtype)s->root->dtype, s->root->lanes));
  uint32_t number = w->names.registers++;
  s->loops = w->open.n;
  for (size_t i = 0; i < s->cells.n; i++) {
    c_cell *c = &s->cells.at[i];
    if (!c->read) continue;
    c->name = s->cells.n == 1 ? arena_printf(w->arena, "acc%u", number)
                              : arena_printf(w->arena, "acc%u_%lld", number, (long long)c->address);
    indent(w);
    str_addf(&w->text.body, "%s %s;\n", type, c->name);
  }
}

static void declare_scratch(c_writer *w, c_storage *s) {
  if (s->root->lanes > 1)
    diag_raise(w->arena->diag, TN_ERR_INTERNAL,
               "alloc (node %" PRIu64 ") of vectors is not in registers", s->root->id);
  s->name = arena_printf(w->arena, "s%u", w->names.scratches++);
  int64_t elements = s->root->src[0]->hi;
  c_template_arguments b = {.a = s->name,
                            .l = arena_printf(w->arena, "%lld", (long long)elements),
                            .o = c_value_type_make((dtype)s->root->dtype, 1),
                            .n = scratch_plan_offset(&w->scratch, s->root)};
  indent(w);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, w->d->function.scratch, &b));
}

/** Notes an array of the group, which the entry declares. */
static void declare_shared(c_writer *w, c_storage *s) {
  if (!w->d->team.shared || s->root->ints[1] != SPACE_GROUP)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there are no arrays that workers share");
  s->name = arena_printf(w->arena, "g%u", w->names.shared++);
  vec_push(w->arena, &w->shared, s);
}

/* Tiles. */

static const char *tile_number(c_writer *w, const node *n) {
  return arena_printf(w->arena, "%lld", (long long)tile_plan_number(&w->tiles, n));
}

/** Bytes from a row to the next in the memory that a tile is loaded from or stored to. */
static int64_t bytes_apart(const node *tile, const node *access) {
  if (access->op != OP_LOAD || access->n_src < 3) return TILE_PLAN_ROW_BYTES;
  return node_int(access->src[2]) * (int64_t)dtype_bytes((dtype)tile->dtype);
}

static void write_tile_access(c_writer *w, const char *text, const node *tile, const node *access) {
  c_access x = c_emission_access(&w->plan, access);
  if (!x.address || x.masks.n)
    diag_raise(w->arena->diag, TN_ERR_INTERNAL, "a tile may have no address");
  x.storage->used = true;
  c_template_arguments b = {.a = tile_number(w, tile),
                            .b = x.storage->name,
                            .c = c_fragment_operand(w, c_expr_value(w, x.address)),
                            .n = bytes_apart(tile, access)};
  indent(w);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, text, &b));
}

/** A value: loaded from memory, or a sum that an op adds to in place. A register's value is there
    already, and a constant is written where it is stored. */
static void write_tile(c_writer *w, const node *n) {
  const tensor_tile *t = tensor_tile_of((op)n->op);
  if (n->op == OP_LOAD && !c_is_register(node_storage_root(n->src[0])))
    write_tile_access(w, w->d->tile.load, n, n);
  if (!t) return;
  c_template_arguments b = {.a = tile_number(w, n->src[0]),
                            .b = tile_number(w, n->src[1]),
                            .c = tile_number(w, n->src[2])};
  const c_op *row = &w->d->scalar[dtype_is_float((dtype)n->dtype) ? C_FLOAT : C_INT][n->op];
  indent(w);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, row->text, &b));
}

static void store_tile(c_writer *w, const node *n) {
  const node *value = n->src[2], *root = node_storage_root(n->src[0]);
  int64_t from = tile_plan_number(&w->tiles, value);
  if (!c_is_register(root)) {
    write_tile_access(w, w->d->tile.store, value, n);
  } else if (from < 0) {
    c_template_arguments b = {.a = tile_number(w, root)};
    indent(w);
    str_addf(&w->text.body, "%s;\n", c_template_fill(w, w->d->tile.zero, &b));
  } else if (from != tile_plan_number(&w->tiles, root)) {
    diag_raise(w->arena->diag, TN_ERR_INTERNAL, "a tile would be copied to a register");
  }
}

static void write_alloc(c_writer *w, const node *n) {
  if (node_is_tile(n)) return;
  c_storage *s = map_get(&w->plan.storages, n);
  if (!s) return;
  if (c_is_register(n))
    declare_registers(w, s);
  else if (s->cells.at[0].read && space_is_shared(n->ints[1]))
    declare_shared(w, s);
  else if (s->cells.at[0].read)
    declare_scratch(w, s);
}

/** True if a store of a vector of that many bytes is non-temporal. */
static bool is_nontemporal(const c_writer *w, const node *store, size_t bytes) {
  const size_t *bounds = w->d->nontemporal.bytes;
  bool is_marked = store->n_int && store->ints[0] == STORE_NONTEMPORAL;
  return is_marked && w->d->nontemporal.store && bytes >= bounds[0] && bytes <= bounds[1];
}

/** The place of an element: "array + address". */
static const char *place_of(c_writer *w, c_access *x) {
  x->storage->used = true;
  return arena_printf(w->arena, "%s + %s", x->storage->name,
                      c_fragment_operand(w, c_expr_value(w, x->address)));
}

/** A copy from a buffer to shared memory that a later WAIT ends; of zeros where the buffer has no
    element. */
static void write_copy(c_writer *w, const node *n) {
  c_access to = c_emission_access(&w->plan, n), from = c_emission_access(&w->plan, n->src[2]);
  if (!w->d->team.copy || !from.address)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there are no copies to shared memory");
  size_t bytes = n->src[2]->lanes * dtype_bytes((dtype)n->src[2]->dtype);
  c_template_arguments b = {.a = place_of(w, &to),
                            .b = place_of(w, &from),
                            .c = from.masks.n ? c_expr_predicate(w, &from).text : "1",
                            .n = (int64_t)bytes};
  indent(w);
  if (to.masks.n) str_addf(&w->text.body, "if (%s) ", c_expr_predicate(w, &to).text);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, w->d->team.copy, &b));
}

static void write_wait(c_writer *w, const node *n) {
  if (!w->d->team.wait)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there are no copies to shared memory");
  c_template_arguments b = {.n = n->ints[0]};
  indent(w);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, w->d->team.wait, &b));
}

static void write_store(c_writer *w, const node *n) {
  c_access access = c_emission_access(&w->plan, n);
  bool vector = n->src[2]->lanes > 1;
  c_fragment value = c_expr_stored(w, n);
  indent(w);
  if (access.masks.n) str_addf(&w->text.body, "if (%s) ", c_expr_predicate(w, &access).text);
  if (c_is_register(access.storage->root)) {
    str_addf(&w->text.body, "%s = %s;\n", access.cell->name, value.text);
    if (w->open.n > access.storage->loops) vec_last(&w->open).accumulators++;
    return;
  }
  access.storage->used = true;
  for (size_t i = 0; i < w->open.n && access.storage->root->op == OP_ALLOC; i++)
    w->open.at[i].shares_array |= !node_is_free_in(w->open.at[i].range, n->src[1]);
  w->traits.spills_before_loop |= access.storage->root->op == OP_ALLOC && node_is_const(n->src[1]);
  c_fragment address = c_expr_value(w, access.address);
  bool bare = address.primary || !vector;
  c_template_arguments b = {.a = access.storage->name,
                            .b = bare ? address.text : arena_printf(w->arena, "(%s)", address.text),
                            .c = value.text,
                            .l = arena_printf(w->arena, "%u", n->src[2]->lanes),
                            .t = c_value_type_make((dtype)n->src[2]->dtype, n->src[2]->lanes)};
  size_t bytes = b.t.lanes * dtype_bytes(b.t.dtype);
  bool nontemporal = is_nontemporal(w, n, bytes);
  b.n = (int64_t)bytes;
  w->traits.has_nontemporal |= nontemporal;
  str_addf(
      &w->text.body, "%s;\n",
      c_template_fill(w, nontemporal ? w->d->nontemporal.store : w->d->memory.store[vector], &b));
}

static void write_prefetch(c_writer *w, const node *n) {
  c_access access = c_emission_access(&w->plan, n);
  if (!w->d->memory.prefetch || !access.address) return;
  access.storage->used = true;
  c_template_arguments b = {.a = access.storage->name,
                            .b = c_fragment_operand(w, c_expr_value(w, access.address))};
  indent(w);
  str_addf(&w->text.body, "%s;\n", c_template_fill(w, w->d->memory.prefetch, &b));
}

static void write_value(c_writer *w, const node *n) {
  c_value *v = c_emission_value(&w->plan, n);
  const char *text = c_expr(w, n).text, *type = c_value_type_name(w, c_value_type_of(w, n));
  v->name = arena_printf(w->arena, "x%u", w->names.values++);
  indent(w);
  str_addf(&w->text.body, "const %s %s = %s;\n", type, v->name, text);
}

static void write_team_barrier(c_writer *w) {
  if (!w->d->team.barrier)
    diag_raise(w->arena->diag, TN_ERR_UNSUPPORTED, "there are no barriers of teams");
  indent(w);
  str_addf(&w->text.body, "%s;\n", w->d->team.barrier);
}

void c_write_statement(c_writer *w, const node *n) {
  switch (n->op) {
  case OP_RANGE: open_loop(w, n); return;
  case OP_END: close_loop(w); return;
  case OP_ALLOC: write_alloc(w, n); return;
  case OP_STORE:
    if (node_is_tile(n->src[2])) {
      store_tile(w, n);
      return;
    }
    if (c_is_copy(n))
      write_copy(w, n);
    else
      write_store(w, n);
    return;
  case OP_WAIT: write_wait(w, n); return;
  case OP_PREFETCH: write_prefetch(w, n); return;
  case OP_BARRIER: write_team_barrier(w); return;
  default:
    if (node_is_tile(n))
      write_tile(w, n);
    else
      write_value(w, n);
  }
}
