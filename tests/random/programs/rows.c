/* Adds plan inputs with a dynamic number of rows to random programs, and computes sums, running
   sums, flips, host functions and assigns of them. */
#include "program.h"

tn_shape with_rows(tn_shape row, tn_dim rows) {
  tn_shape s = row;
  s.rank++;
  s.size[0] = rows;
  for (int32_t i = 0; i < row.rank; i++) s.size[i + 1] = row.size[i];
  return s;
}

static handle fixed_operand(program *p, tn_shape row) {
  handle *h = pick(p, is_closed);
  return fitted(p, h ? *h : random_host(p, row), row);
}

static handle with_row(program *p, const handle *x, const handle *row) {
  size_t way = rng_below(&p->r, BINARIES);
  handle h = binary(p, way, x, row);
  h.value->varies = true;
  return h;
}

static handle flipped_rows(program *p, const handle *x) {
  value v = {
      .kind = VALUE_FLIPPED, .shape = x->shape, .src = {x->value}, .n_src = 1, .varies = true};
  handle h = new_handle(p, tn_flip(x->tensor, tn_axes(0)), value_new(&p->memory, v));
  say(p, "t%d = flip(t%d, axis 0)", h.number, x->number);
  return h;
}

static handle running_rows(program *p, const handle *x) {
  value v = {.kind = VALUE_RUNNING,
             .op = BY_SUM,
             .shape = x->shape,
             .src = {x->value},
             .n_src = 1,
             .varies = true};
  tn_tensor *t = tn_cast(tn_cumsum(x->tensor, 0), TN_I32);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = cumsum(t%d, axis 0)", h.number, x->number);
  return h;
}

/** Sums rows to one row, an ordinary value that depends on an input. */
static handle sum_of_rows(program *p, const handle *x) {
  value v = {.kind = VALUE_REDUCED, .op = BY_SUM, .shape = x->shape, .src = {x->value}, .n_src = 1};
  tn_tensor *t = tn_cast(tn_sum(x->tensor, tn_axes(0), false), TN_I32);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = sum(t%d, axis 0)", h.number, x->number);
  add_handle(p, h);
  return h;
}

static handle rows_step(program *p, const handle *x, tn_type type) {
  handle row;
  switch (rng_below(&p->r, 6)) {
  case 0: return flipped_rows(p, x);
  case 1: return running_rows(p, x);
  case 2: return p->has_hosts ? host_rows(p, x, type) : flipped_rows(p, x);
  case 3: row = sum_of_rows(p, x); return with_row(p, x, &row);
  default: row = fixed_operand(p, x->shape); return with_row(p, x, &row);
  }
}

/** Assigns all rows, concatenated, to a part of a state that has room for most of them. */
static void assign_rows(program *p, const handle *x, tn_type type) {
  handle *to = pick(p, is_assignable);
  tn_dim inner = (tn_dim)shape_count(x->shape), room = to ? (tn_dim)shape_count(to->shape) : 0;
  tn_dim most = room - inner * MOST_ROWS;
  if (most < 0 || to->of->now->has_next) return;
  handle flat = fitted(p, *to, tn_shape(room));
  tn_dim start = rng_between(&p->r, 0, most);
  tn_dim count = tn_dim_mul(p->context, type.shape.size[0], inner);
  tn_dim stop = tn_dim_add(p->context, start, count);
  say(p, "assign(slice(t%d, axis 0, %d, all rows), t%d)", flat.number, (int)start, x->number);
  tn_assign(tn_slice(flat.tensor, 0, start, stop, 1), tn_reshape(x->tensor, tn_shape(count)));
  cover(p, COVERED_ROWS_ASSIGNED);
  flat.map += start;
  change_state(p, &flat, x->value);
}

static handle rows_input(program *p, plan *made, size_t i, const char *name, tn_type *type) {
  tn_dim n = tn_dim_var(p->context, made->least ? "m" : "n", made->least, MOST_ROWS);
  tn_shape row = made->inputs[i];
  *type = (tn_type){TN_I32, with_rows(row, n)};
  value v = {.kind = VALUE_INPUT, .shape = row, .input = i, .is_open = true, .varies = true};
  tn_tensor *t = tn_input(p->context, name, type->shape, TN_I32);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = input(%s, %d to %d rows of %s)", h.number, name, (int)made->least, MOST_ROWS,
      shape_text(p, row));
  return h;
}

void make_rows(program *p, plan *made, size_t input, const char *name) {
  tn_type type;
  made->least = rng_chance(&p->r, 50);
  made->varies[input] = true;
  made->inputs[input].rank = (int32_t)rng_below(&p->r, 2);
  made->inputs[input].size[0] = rng_between(&p->r, 1, 4);
  handle h = rows_input(p, made, input, name, &type);
  for (size_t n = rng_below(&p->r, 4); n; n--) h = rows_step(p, &h, type);
  if (rng_chance(&p->r, 50)) sum_of_rows(p, &h);
  if (rng_chance(&p->r, 60)) assign_rows(p, &h, type);
  made->rows = h;
}
