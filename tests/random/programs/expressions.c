/* Generates random expressions: each function calls a tensor operator of the library and builds the
   same expression in the model (value.h). Movements (slice, permute, pad, …) become maps of
   indices. */
#include "program.h"

#include <stdio.h>

static tn_shape without_axes(int32_t rank) {
  tn_shape s = TN_SCALAR;
  s.rank = rank;
  return s;
}

tn_shape random_shape(program *p) {
  static const int sizes[][4] = {{0},       {1, 1},    {1, 4},    {1, 6},     {1, 17},
                                 {2, 3, 4}, {2, 5, 1}, {2, 2, 2}, {2, 4, 4},  {3, 2, 3, 2},
                                 {1, 0},    {2, 2, 0}, {1, 130},  {2, 33, 3}, {2, 3, 70}};
  enum { ALL = sizeof sizes / sizeof *sizes, SMALL = 10, EMPTY = 2 };
  size_t at = rng_below(&p->r, SMALL);
  if (rng_chance(&p->r, 6)) at = SMALL + rng_below(&p->r, EMPTY);
  if (rng_chance(&p->r, 10)) at = SMALL + EMPTY + rng_below(&p->r, ALL - SMALL - EMPTY);
  tn_shape s = without_axes(sizes[at][0]);
  for (int32_t i = 0; i < s.rank; i++) s.size[i] = sizes[at][i + 1];
  return s;
}

/** Lists the first few numbers, to reproduce the program by hand. */
static const char *numbers_text(program *p, size_t n, const int32_t data[]) {
  enum { MOST = 17, WIDE = 4 };
  char *text = model_alloc(&p->memory, MOST * WIDE + 8, 1);
  size_t at = 0;
  for (size_t i = 0; i < n && i < MOST; i++)
    at += (size_t)snprintf(text + at, WIDE + 1, " %d", (int)data[i]);
  snprintf(text + at, 8, "%s", n > MOST ? " ..." : "");
  return text;
}

handle random_host(program *p, tn_shape shape) {
  size_t n = shape_count(shape);
  int32_t *data = model_alloc(&p->memory, n, sizeof *data);
  for (size_t i = 0; i < n; i++) data[i] = (int32_t)rng_between(&p->r, -5, 9);
  tn_tensor *t = tn_from_host(p->context, shape, TN_I32, data, n * sizeof *data);
  handle h = new_handle(p, t, value_constant(&p->memory, shape, data));
  say(p, "t%d = from_host%s:%s", h.number, shape_text(p, shape), numbers_text(p, n, data));
  return h;
}

/* Movements. */

typedef enum movement_kind {
  MOVE_SLICE,
  MOVE_FLIP,
  MOVE_PERMUTE,
  MOVE_RESHAPE,
  MOVE_PAD,
  MOVE_ROLL,
  MOVE_EXPAND
} movement_kind;

typedef struct movement {
  movement_kind kind;
  int axis;
  int64_t start, stop, step; /* SLICE; ROLL: by `start` */
  tn_axes axes;              /* PERMUTE */
  tn_shape low, high;        /* PAD */
  tn_shape from, to;
} movement;

static int64_t count_up(int64_t span, int64_t step) {
  return span > 0 ? (span + step - 1) / step : 0;
}

static void choose_slice(program *p, movement *m) {
  int64_t n = m->from.size[m->axis], *size = &m->to.size[m->axis];
  static const int64_t steps[] = {1, 1, 1, 2, 3, -1, -2};
  m->step = steps[rng_below(&p->r, n ? 7 : 5)];
  if (m->step > 0) {
    m->start = rng_between(&p->r, 0, rng_chance(&p->r, 50) ? 0 : n);
    m->stop = rng_between(&p->r, m->start, n);
    if (rng_chance(&p->r, 50)) m->stop = n;
    *size = count_up(m->stop - m->start, m->step);
    if (m->stop == n && rng_chance(&p->r, 50)) m->stop = TN_END;
  } else {
    m->start = rng_between(&p->r, 0, n - 1);
    m->stop = rng_chance(&p->r, 50) ? TN_END : rng_between(&p->r, 0, m->start);
    *size = count_up(m->start - (m->stop == TN_END ? -1 : m->stop), -m->step);
  }
}

static void choose_order(program *p, movement *m) {
  m->axes.count = m->from.rank;
  for (int32_t i = 0; i < m->from.rank; i++) m->axes.axis[i] = i;
  for (int32_t i = m->from.rank - 1; i > 0; i--) {
    size_t k = rng_below(&p->r, (size_t)i + 1);
    int32_t kept = m->axes.axis[i];
    m->axes.axis[i] = m->axes.axis[k];
    m->axes.axis[k] = kept;
  }
  for (int32_t i = 0; i < m->from.rank; i++) m->to.size[i] = m->from.size[m->axes.axis[i]];
}

/** Chooses a reshape: to one axis, with another axis of size 1, or with the last two axes
    merged. */
static void choose_form(program *p, movement *m) {
  int32_t rank = m->from.rank;
  size_t way = rng_below(&p->r, 3);
  if (way == 0) {
    m->to = tn_shape((tn_dim)shape_count(m->from));
  } else if (way == 1 && rank < 4) {
    m->to.size[m->to.rank++] = 1;
  } else if (rank > 1) {
    m->to.size[rank - 2] *= m->to.size[rank - 1];
    m->to.rank--;
  }
}

static void choose_pads(program *p, movement *m) {
  m->low = m->high = without_axes(m->from.rank);
  for (int32_t i = 0; i < m->from.rank; i++) {
    m->low.size[i] = rng_between(&p->r, 0, 2);
    m->high.size[i] = rng_between(&p->r, 0, 2);
    m->to.size[i] += m->low.size[i] + m->high.size[i];
  }
}

static void choose_sizes(program *p, movement *m) {
  for (int32_t i = 0; i < m->from.rank; i++)
    if (m->from.size[i] == 1 && rng_chance(&p->r, 70)) m->to.size[i] = rng_between(&p->r, 1, 3);
}

static movement random_movement(program *p, tn_shape from, bool any) {
  static const movement_kind kinds[] = {MOVE_SLICE,   MOVE_SLICE,   MOVE_SLICE,   MOVE_FLIP,
                                        MOVE_PERMUTE, MOVE_PERMUTE, MOVE_RESHAPE, MOVE_PAD,
                                        MOVE_ROLL,    MOVE_EXPAND};
  movement m = {.kind = kinds[rng_below(&p->r, any ? 10 : 7)], .from = from, .to = from};
  if (!from.rank) m.kind = MOVE_RESHAPE;
  m.axis = (int)rng_below(&p->r, (size_t)from.rank);
  m.start = rng_between(&p->r, -3, 3);
  if (m.kind == MOVE_SLICE) choose_slice(p, &m);
  if (m.kind == MOVE_PERMUTE) choose_order(p, &m);
  if (m.kind == MOVE_RESHAPE) choose_form(p, &m);
  if (m.kind == MOVE_PAD) choose_pads(p, &m);
  if (m.kind == MOVE_EXPAND) choose_sizes(p, &m);
  return m;
}

static const char *bound_text(program *p, int64_t bound) {
  char *text = model_alloc(&p->memory, 24, 1);
  if (bound == TN_END) return "END";
  snprintf(text, 24, "%lld", (long long)bound);
  return text;
}

static const char *axes_text(program *p, tn_axes axes) {
  tn_shape s = without_axes(axes.count);
  for (int32_t i = 0; i < axes.count; i++) s.size[i] = axes.axis[i];
  return shape_text(p, s);
}

static tn_tensor *build_movement(program *p, const movement *m, const handle *x, int number) {
  int n = number, of = x->number;
  switch (m->kind) {
  case MOVE_SLICE:
    say(p, "t%d = slice(t%d, axis %d, %d, %s, %d)", n, of, m->axis, (int)m->start,
        bound_text(p, m->stop), (int)m->step);
    return tn_slice(x->tensor, m->axis, m->start, m->stop, m->step);
  case MOVE_FLIP:
    say(p, "t%d = flip(t%d, axis %d)", n, of, m->axis);
    return tn_flip(x->tensor, tn_axes(m->axis));
  case MOVE_PERMUTE:
    say(p, "t%d = permute(t%d, %s)", n, of, axes_text(p, m->axes));
    return tn_permute(x->tensor, m->axes);
  case MOVE_RESHAPE:
    say(p, "t%d = reshape(t%d, %s)", n, of, shape_text(p, m->to));
    return tn_reshape(x->tensor, m->to);
  case MOVE_PAD:
    say(p, "t%d = pad(t%d, %s, %s, %d)", n, of, shape_text(p, m->low), shape_text(p, m->high),
        FILL);
    return tn_pad(x->tensor, m->low, m->high, TN_PAD_CONSTANT, FILL);
  case MOVE_ROLL:
    say(p, "t%d = roll(t%d, axis %d, %lld)", n, of, m->axis, (long long)m->start);
    return tn_roll(x->tensor, m->axis, m->start);
  case MOVE_EXPAND:
    say(p, "t%d = expand(t%d, %s)", n, of, shape_text(p, m->to));
    return tn_expand(x->tensor, m->to);
  }
  return NULL;
}

/** Returns the source coordinate along one axis of the result's coordinate `at`; −1: none. */
static int64_t place(const movement *m, int32_t axis, int64_t at) {
  int64_t n = m->from.size[axis];
  if (m->kind == MOVE_PAD) {
    at -= m->low.size[axis];
    return at < n ? at : -1;
  }
  if (m->kind == MOVE_EXPAND) return n == 1 ? 0 : at;
  if (axis != m->axis) return at;
  if (m->kind == MOVE_SLICE) return m->start + at * m->step;
  if (m->kind == MOVE_FLIP) return n - 1 - at;
  if (m->kind == MOVE_ROLL) return ((at - m->start) % n + n) % n;
  return at;
}

/** Returns the source element of element i of the result; −1: none. */
static int32_t source_of(const movement *m, size_t i) {
  int64_t at[TN_MAX_RANK] = {0}, from[TN_MAX_RANK] = {0}, where = 0;
  if (m->kind == MOVE_RESHAPE) return (int32_t)i;
  for (int32_t k = m->to.rank; k-- > 0; i /= (size_t)m->to.size[k])
    at[k] = (int64_t)(i % (size_t)m->to.size[k]);
  for (int32_t k = 0; k < m->to.rank; k++)
    from[m->kind == MOVE_PERMUTE ? m->axes.axis[k] : k] = at[k];
  for (int32_t k = 0; k < m->from.rank; k++) {
    int64_t there = m->kind == MOVE_PERMUTE ? from[k] : place(m, k, from[k]);
    if (there < 0) return -1;
    where = where * m->from.size[k] + there;
  }
  return (int32_t)where;
}

static int32_t *movement_map(program *p, const movement *m) {
  size_t n = shape_count(m->to);
  int32_t *map = model_alloc(&p->memory, n, sizeof *map);
  for (size_t i = 0; i < n; i++) map[i] = source_of(m, i);
  return map;
}

static handle moved_value(program *p, const handle *x, tn_tensor *t, tn_shape to,
                          const int32_t *map) {
  value *v = value_now(p, x);
  return new_handle(
      p, t,
      value_new(
          &p->memory,
          (value){
              .kind = VALUE_MOVED, .shape = to, .src = {v}, .n_src = 1, .map = map, .fill = FILL}));
}

/** Makes the view of a state that a movement of it is. */
static handle moved_view(program *p, const handle *x, const movement *m, tn_tensor *t,
                         const int32_t *map) {
  size_t n = shape_count(m->to);
  int32_t *of = model_alloc(&p->memory, n, sizeof *of);
  for (size_t i = 0; i < n; i++) of[i] = map[i] < 0 ? -1 : x->map[map[i]];
  handle h = *x;
  h.tensor = t;
  h.number = ++p->last_handle;
  h.shape = m->to;
  h.map = of;
  h.movements++;
  h.is_assignable &= m->kind != MOVE_PAD && m->kind != MOVE_ROLL && m->kind != MOVE_EXPAND;
  h.is_owned = false;
  h.depth = p->depth;
  h.leaving = 0;
  note_view(p, h.of);
  return h;
}

static handle moved(program *p, const handle *x, movement m) {
  tn_tensor *t = build_movement(p, &m, x, p->last_handle + 1);
  int32_t *map = movement_map(p, &m);
  return x->of ? moved_view(p, x, &m, t, map) : moved_value(p, x, t, m.to, map);
}

handle random_view(program *p, const handle *of) {
  handle h = *of;
  size_t n = 1 + rng_below(&p->r, 3);
  for (size_t i = 0; i < n; i++) h = moved(p, &h, random_movement(p, h.shape, i == 2));
  return h;
}

static handle reshaped(program *p, const handle *x, tn_shape to) {
  return moved(p, x, (movement){.kind = MOVE_RESHAPE, .from = x->shape, .to = to});
}

/* The same elements in another tensor, which the library may recognise as the same node. */

static tn_tensor *build_same(tn_tensor *x, size_t way) {
  switch (way) {
  case 0: return tn_cast(x, TN_I32);
  case 1: return tn_bitcast(x, TN_I32);
  case 2: return tn_bitcast(tn_bitcast(x, TN_U32), TN_I32);
  case 3: return tn_cast(tn_cast(x, TN_I64), TN_I32);
  case 4: return tn_transpose(tn_transpose(tn_cast(x, TN_I32)));
  default: return tn_reshape(tn_cast(x, TN_I32), tn_type_of(x).shape);
  }
}

handle same(program *p, const handle *x) {
  static const char *const ways[] = {"cast(t%d, i32)",
                                     "bitcast(t%d, i32)",
                                     "bitcast(bitcast(t%d, u32), i32)",
                                     "cast(cast(t%d, i64), i32)",
                                     "transpose(transpose(cast(t%d, i32)))",
                                     "reshape(cast(t%d, i32), its shape)"};
  size_t way = rng_below(&p->r, sizeof ways / sizeof *ways);
  movement none = {.kind = MOVE_RESHAPE, .from = x->shape, .to = x->shape};
  tn_tensor *t = build_same(x->tensor, way);
  handle h = moved_value(p, x, t, x->shape, movement_map(p, &none));
  char text[64];
  snprintf(text, sizeof text, ways[way], x->number);
  say(p, "t%d = %s", h.number, text);
  cover(p, COVERED_SAME);
  return h;
}

/* Computing. */

static const struct {
  const char *name;
  tn_tensor *(*build)(tn_tensor *a, tn_tensor *b);
  value_op op;
} binaries[BINARIES] = {{"add", tn_add, BY_SUM},
                        {"sub", tn_sub, BY_DIFFERENCE},
                        {"mul", tn_mul, BY_PRODUCT},
                        {"maximum", tn_maximum, BY_LARGEST},
                        {"minimum", tn_minimum, BY_SMALLEST},
                        {"bitwise_xor", tn_bitwise_xor, BY_XOR}};

handle binary(program *p, size_t i, const handle *a, const handle *b) {
  value v = {.kind = VALUE_BINARY,
             .op = binaries[i].op,
             .shape = a->shape,
             .src = {value_now(p, a), value_now(p, b)},
             .n_src = 2};
  handle h = new_handle(p, binaries[i].build(a->tensor, b->tensor), value_new(&p->memory, v));
  say(p, "t%d = %s(t%d, t%d)", h.number, binaries[i].name, a->number, b->number);
  return h;
}

static handle plus_number(program *p, const handle *x, int32_t number) {
  value *v = value_now(p, x);
  int32_t *all = model_alloc(&p->memory, v->count, sizeof *all);
  for (size_t i = 0; i < v->count; i++) all[i] = number;
  value *b = value_constant(&p->memory, x->shape, all);
  value sum = {.kind = VALUE_BINARY, .op = BY_SUM, .shape = x->shape, .src = {v, b}, .n_src = 2};
  tn_tensor *t = tn_add(x->tensor, tn_int(p->context, number));
  handle h = new_handle(p, t, value_new(&p->memory, sum));
  say(p, "t%d = add(t%d, %d)", h.number, x->number, number);
  return h;
}

handle made_unlike(program *p, handle x) {
  return plus_number(p, &x, 1000 + 7919 * ++p->last_constant);
}

static handle chosen(program *p, const handle *c, const handle *a, const handle *b) {
  value v = {.kind = VALUE_CHOSEN,
             .shape = a->shape,
             .src = {value_now(p, c), value_now(p, a), value_now(p, b)},
             .n_src = 3};
  tn_tensor *t = tn_where(c->tensor, a->tensor, b->tensor);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = where(t%d, t%d, t%d)", h.number, c->number, a->number, b->number);
  return h;
}

static size_t elements_within(tn_shape s, int32_t axis) {
  size_t n = 1;
  for (int32_t i = axis + 1; i < s.rank; i++) n *= (size_t)s.size[i];
  return n;
}

/** Reduces one axis, which stays with size 1. */
static handle reduced(program *p, const handle *x, int axis, bool largest) {
  value *v = value_now(p, x);
  size_t inner = elements_within(x->shape, axis), size = (size_t)x->shape.size[axis];
  int32_t *map = model_alloc(&p->memory, v->count, sizeof *map);
  for (size_t i = 0; i < v->count; i++) map[i] = (int32_t)(i / (inner * size) * inner + i % inner);
  value r = {.kind = VALUE_REDUCED,
             .op = largest ? BY_LARGEST : BY_SUM,
             .shape = x->shape,
             .src = {v},
             .n_src = 1,
             .map = map};
  r.shape.size[axis] = 1;
  tn_tensor *t = largest ? tn_max(x->tensor, tn_axes(axis), true)
                         : tn_cast(tn_sum(x->tensor, tn_axes(axis), true), TN_I32);
  handle h = new_handle(p, t, value_new(&p->memory, r));
  say(p, "t%d = %s(t%d, axis %d)", h.number, largest ? "max" : "sum", x->number, axis);
  return h;
}

static handle running(program *p, const handle *x, int axis) {
  value *v = value_now(p, x);
  size_t inner = elements_within(x->shape, axis), size = (size_t)x->shape.size[axis];
  int32_t *map = model_alloc(&p->memory, v->count, sizeof *map);
  for (size_t i = 0; i < v->count; i++) map[i] = i / inner % size ? (int32_t)(i - inner) : -1;
  value r = {
      .kind = VALUE_RUNNING, .op = BY_SUM, .shape = x->shape, .src = {v}, .n_src = 1, .map = map};
  tn_tensor *t = tn_cast(tn_cumsum(x->tensor, axis), TN_I32);
  handle h = new_handle(p, t, value_new(&p->memory, r));
  say(p, "t%d = cumsum(t%d, axis %d)", h.number, x->number, axis);
  return h;
}

/** Gathers x's elements at indices that may be out of range. */
static handle taken(program *p, const handle *x, const handle *index) {
  handle flat = reshaped(p, x, tn_shape((tn_dim)shape_count(x->shape)));
  value v = {.kind = VALUE_TAKEN,
             .shape = index->shape,
             .src = {value_now(p, &flat), value_now(p, index)},
             .n_src = 2};
  tn_tensor *t = tn_take(flat.tensor, index->tensor, 0);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = take(t%d, t%d, axis 0)", h.number, flat.number, index->number);
  return h;
}

/** Concatenates the elements of both in one axis. */
static handle joined(program *p, const handle *a, const handle *b) {
  tn_dim n = (tn_dim)shape_count(a->shape), m = (tn_dim)shape_count(b->shape);
  handle x = reshaped(p, a, tn_shape(n)), y = reshaped(p, b, tn_shape(m));
  int32_t *map = model_alloc(&p->memory, (size_t)(n + m), sizeof *map);
  for (int32_t i = 0; i < n + m; i++) map[i] = i;
  value v = {.kind = VALUE_MOVED,
             .shape = tn_shape(n + m),
             .src = {value_now(p, &x), value_now(p, &y)},
             .n_src = 2,
             .map = map};
  tn_tensor *t = tn_concat((tn_tensor *[]){x.tensor, y.tensor}, 2, 0);
  handle h = new_handle(p, t, value_new(&p->memory, v));
  say(p, "t%d = concat(t%d, t%d)", h.number, x.number, y.number);
  return h;
}

/* All. */

static bool is_any(const handle *h) { return h->tensor != NULL; }

static handle picked(program *p) {
  handle *h = rng_chance(&p->r, 85) ? pick(p, is_any) : NULL;
  return h ? *h : random_host(p, random_shape(p));
}

handle fitted(program *p, handle h, tn_shape shape) {
  size_t n = shape_count(shape), m = shape_count(h.shape);
  if (is_same_shape(h.shape, shape)) return h;
  if (n == m) return reshaped(p, &h, shape);
  if (!m) return random_host(p, shape);
  handle index = random_host(p, shape);
  return taken(p, &h, &index);
}

handle narrowed(program *p, handle h, tn_shape shape) {
  int32_t rank = (int32_t)rng_between(&p->r, 0, shape.rank);
  tn_shape s = without_axes(rank);
  for (int32_t i = 0; i < rank; i++)
    s.size[i] = rng_chance(&p->r, 50) ? 1 : shape.size[shape.rank - rank + i];
  return fitted(p, h, s);
}

value *stretched(program *p, const handle *h, tn_shape shape) {
  movement m = {.kind = MOVE_EXPAND, .from = shape, .to = shape};
  int32_t missing = shape.rank - h->shape.rank;
  for (int32_t i = 0; i < shape.rank; i++)
    m.from.size[i] = i < missing ? 1 : h->shape.size[i - missing];
  value stretch = {.kind = VALUE_MOVED,
                   .shape = shape,
                   .src = {value_now(p, h)},
                   .n_src = 1,
                   .map = movement_map(p, &m)};
  return value_new(&p->memory, stretch);
}

handle random_operand(program *p) {
  return rng_chance(&p->r, 30) ? picked(p) : random_expression(p);
}

static handle other(program *p, const handle *like) { return fitted(p, picked(p), like->shape); }

static handle grown(program *p, const handle *x) {
  enum { MOST = 400 };
  handle y = picked(p);
  bool fits = shape_count(x->shape) + shape_count(y.shape) <= MOST;
  return fits ? joined(p, x, &y) : *x;
}

/** Makes a host function of one value, of two or of none. */
static handle by_host(program *p, const handle *x) {
  handle in[2] = {*x};
  size_t n = rng_chance(&p->r, 15) ? 0 : 1 + rng_below(&p->r, 2);
  if (n > 1) in[1] = picked(p);
  return host_result(p, in, n, x->shape);
}

static handle step(program *p, const handle *x) {
  int axis = (int)rng_below(&p->r, (size_t)x->shape.rank);
  bool has_axis = x->shape.rank > 0;
  size_t way = rng_below(&p->r, has_axis ? 14 : 8);
  handle y;
  switch (way) {
  case 0:
  case 1:
  case 2: y = other(p, x); return binary(p, rng_below(&p->r, 6), x, &y);
  case 3: return plus_number(p, x, (int32_t)rng_between(&p->r, -3, 3));
  case 4: y = other(p, x); return taken(p, &y, x);
  case 5: return grown(p, x);
  case 6: return same(p, x);
  case 7: return p->has_hosts ? by_host(p, x) : same(p, x);
  case 8: return running(p, x, axis);
  case 9: return reduced(p, x, axis, false);
  case 10: return x->shape.size[axis] ? reduced(p, x, axis, true) : *x;
  case 11: {
    handle a = other(p, x), b = other(p, x);
    return chosen(p, x, &a, &b);
  }
  default: return moved(p, x, random_movement(p, x->shape, shape_count(x->shape) < 200));
  }
}

handle random_expression(program *p) {
  handle h = picked(p);
  size_t n = 1 + rng_below(&p->r, 3);
  for (size_t i = 0; i < n; i++) h = step(p, &h);
  return h;
}

void add_expression(program *p) {
  int last = p->last_handle;
  handle h = random_expression(p);
  if (h.number > last) add_handle(p, h);
}
