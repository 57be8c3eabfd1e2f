/* Implements the basic steps of a random program, on the library and on the model (value.h) alike:
   creates states, assigns to them and reads them, opens and closes scopes, keeps and releases
   handles, realises pending values, and compares contents. Tracks the versions of each state. */
#include "program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines. */

enum { MOST_TEXT = 1 << 18, MOST_LINE = 512 };

void say(program *p, const char *format, ...) {
  va_list args;
  char line[MOST_LINE];
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (p->prints) printf("  %*s%s\n", 2 * p->depth, "", line), fflush(stdout);
  if (!p->text) p->text = model_alloc(&p->memory, MOST_TEXT, 1);
  if (p->n_text + MOST_LINE + 20 > MOST_TEXT) return;
  p->n_text +=
      (size_t)snprintf(p->text + p->n_text, MOST_LINE + 20, "  %*s%s\n", 2 * p->depth, "", line);
}

_Noreturn void fail(program *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(p->failure, sizeof p->failure, format, args);
  va_end(args);
  longjmp(p->failed, 1);
}

void check_status(program *p, tn_status s, const char *what) {
  if (s != TN_OK) fail(p, "%s: status %d: %s", what, (int)s, tn_message(p->context));
}

void check_equal(program *p, const char *what, tn_shape shape, const int32_t got[],
                 const int32_t expected[]) {
  size_t n = shape_count(shape);
  for (size_t i = 0; i < n; i++)
    if (got[i] != expected[i])
      fail(p, "%s: element %zu of %s is %d, not %d", what, i, shape_text(p, shape), (int)got[i],
           (int)expected[i]);
}

const char *shape_text(program *p, tn_shape s) {
  char *text = model_alloc(&p->memory, 64, 1);
  size_t n = 0;
  for (int32_t i = 0; i < s.rank; i++)
    n += (size_t)snprintf(text + n, 64 - n, "%s%d", i ? ", " : "(", (int)s.size[i]);
  snprintf(text + n, 64 - n, "%s", s.rank ? ")" : "()");
  return text;
}

void cover(program *p, coverage what) { p->covered[what]++; }

/* Handles. */

bool is_closed(const handle *h) { return h->of ? !h->of->now->is_open : !h->value->is_open; }
bool is_view(const handle *h) { return h->of != NULL; }
bool is_assignable(const handle *h) { return h->of && h->is_assignable; }

handle *pick(program *p, bool (*wanted)(const handle *h)) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_handles; i++) n += wanted(&p->handles[i]);
  enum { RECENT = 4 };
  size_t which = rng_below(&p->r, n);
  if (n > RECENT && rng_chance(&p->r, 35)) which = n - 1 - rng_below(&p->r, RECENT);
  for (size_t i = 0; i < p->n_handles; i++)
    if (wanted(&p->handles[i]) && !which--) return &p->handles[i];
  return NULL;
}

value *value_now(program *p, const handle *h) {
  if (!h->of) return h->value;
  return value_new(&p->memory, (value){.kind = VALUE_MOVED,
                                       .shape = h->shape,
                                       .src = {h->of->now},
                                       .n_src = 1,
                                       .map = h->map,
                                       .fill = FILL});
}

handle new_handle(program *p, tn_tensor *t, value *v) {
  return (handle){
      .tensor = t, .number = ++p->last_handle, .shape = v->shape, .value = v, .depth = p->depth};
}

handle *add_handle(program *p, handle h) {
  size_t n = shape_count(h.shape);
  if (!n) cover(p, COVERED_EMPTY);
  if (n > 64) cover(p, COVERED_LARGE);
  p->handles[p->n_handles] = h;
  return &p->handles[p->n_handles++];
}

void check_maps(program *p) {
  for (size_t i = 0; i < p->n_handles; i++) {
    const handle *h = &p->handles[i];
    char name[32];
    snprintf(name, sizeof name, "map of t%d", h->number);
    if (h->mapped) check_equal(p, name, h->shape, h->mapped, h->value->data);
  }
}

static void drop_handle(program *p, handle *h) { *h = p->handles[--p->n_handles]; }

/** Marks a handle as realised: its graph is gone. */
static void hold_value(program *p, handle *h) {
  if (!h->of) h->value = value_constant(&p->memory, h->shape, h->value->data);
}

/* Versions. */

bool is_pending(const state *s) { return s->now != s->settled; }

bool any_pending(const program *p) {
  for (size_t i = 0; i < p->n_states; i++)
    if (is_pending(p->states[i])) return true;
  return false;
}

static value *new_version(program *p, state *s, const int32_t data[]) {
  value *v = value_constant(&p->memory, s->shape, data);
  v->of = s;
  v->held = s->held;
  return v;
}

void settle(program *p, state *s, value *version) {
  if (version == s->settled) return;
  version->held = ++s->held;
  for (const value *v = version; v != s->settled; v = v->src[0]) note_due(v);
  bool is_newest = version == s->now;
  s->settled = new_version(p, s, version->data);
  if (is_newest) s->now = s->settled;
}

void settle_all(program *p) {
  for (size_t i = 0; i < p->n_states; i++) {
    settle(p, p->states[i], p->states[i]->now);
    p->states[i]->n_marks = 0;
  }
  forget_unseen(p);
}

mark *innermost_mark(const program *p, state *s) {
  mark *last = s->n_marks ? &s->marks[s->n_marks - 1] : NULL;
  return last && last->depth == p->depth ? last : NULL;
}

static value *changed(program *p, const handle *to, value *with) {
  state *s = to->of;
  value *v = value_new(&p->memory, (value){.kind = VALUE_CHANGED,
                                           .shape = s->shape,
                                           .src = {s->now, with},
                                           .n_src = 2,
                                           .map = to->map});
  v->of = s;
  return v;
}

static void push_version(program *p, state *s, value *version) {
  if (!innermost_mark(p, s)) s->marks[s->n_marks++] = (mark){p->depth, s->now};
  s->now->has_next = true;
  s->now = version;
}

void change_state(program *p, const handle *to, value *with) {
  push_version(p, to->of, changed(p, to, with));
}

void note_view(program *p, state *of) {
  if (of->views_from > p->depth) of->views_from = p->depth;
}

static bool is_seen(const program *p, const state *s) {
  bool seen = s->is_unseen || s->views_from < MOST_DEPTH;
  for (size_t i = 0; i < p->n_handles; i++) seen |= p->handles[i].of == s;
  return seen;
}

static bool is_planned(const program *p, const state *s) {
  for (size_t i = 0; i < p->n_plans; i++)
    if (touches(p->plans[i], s)) return true;
  return false;
}

/** Marks states without handles: only plans made before can refer to them. */
void forget_unseen(program *p) {
  for (size_t i = 0; i < p->n_states; i++) {
    state *s = p->states[i];
    if (is_pending(s) || is_seen(p, s)) continue;
    s->is_unseen = true;
    s->held++;
    if (is_planned(p, s)) cover(p, COVERED_GONE);
  }
}

/* Scopes. */

void begin_scope(program *p) {
  if (p->depth + 1 >= MOST_DEPTH) return;
  say(p, "scope_begin");
  tn_scope_begin(p->context);
  p->depth++;
}

static void keep(program *p, handle *h) {
  say(p, "keep(t%d)", h->number);
  cover(p, COVERED_KEPT);
  tn_keep(h->tensor);
  h->leaving = p->depth;
  h->depth--;
}

/** Realises the tensors that leave the scope, and frees the rest. */
static void leave_scope(program *p) {
  for (size_t i = 0; i < p->n_states; i++)
    if (p->states[i]->views_from == p->depth) p->states[i]->views_from = MOST_DEPTH;
  for (size_t i = p->n_handles; i-- > 0;) {
    handle *h = &p->handles[i];
    if (h->leaving == p->depth) {
      hold_value(p, h);
      h->leaving = 0;
    }
    if (h->depth == p->depth && !h->is_owned) drop_handle(p, h);
  }
}

void end_scope(program *p) {
  if (!p->depth) return;
  for (size_t i = 0; i < p->n_handles; i++) {
    handle *h = &p->handles[i];
    bool may = h->depth == p->depth && !h->is_owned && !h->leaving && is_closed(h);
    if (may && rng_chance(&p->r, 25)) keep(p, h);
  }
  check_maps(p);
  check_status(p, tn_scope_end(p->context), "scope_end");
  leave_scope(p);
  settle_all(p);
  check_calls(p);
  p->depth--;
  cover(p, COVERED_SCOPES);
  say(p, "scope_end");
}

static bool is_owned(const handle *h) { return h->is_owned; }
static bool is_ownable(const handle *h) { return !h->is_owned && is_closed(h); }

static void own(program *p, handle *h) {
  say(p, "own(t%d)", h->number);
  cover(p, COVERED_OWNED);
  tn_own(h->tensor);
  h->is_owned = true;
  if (!h->leaving) h->leaving = p->depth;
}

static void release(program *p, handle *h) {
  check_maps(p);
  say(p, "release(t%d)", h->number);
  tn_release(h->tensor);
  state *of = h->of;
  drop_handle(p, h);
  if (of && is_pending(of) && !is_seen(p, of)) cover(p, COVERED_GONE_PENDING);
  forget_unseen(p);
}

void own_or_release(program *p) {
  bool owns = rng_chance(&p->r, 60);
  handle *h = pick(p, owns ? is_ownable : is_owned);
  if (h && owns) own(p, h);
  if (h && !owns) release(p, h);
}

/* States. */

static const int32_t *whole_map(program *p, size_t n) {
  int32_t *map = model_alloc(&p->memory, n, sizeof *map);
  for (size_t i = 0; i < n; i++) map[i] = (int32_t)i;
  return map;
}

static state *new_state(program *p, const value *init) {
  state *s = model_alloc(&p->memory, 1, sizeof *s);
  s->shape = init->shape;
  s->held = 1;
  s->views_from = MOST_DEPTH;
  s->settled = s->now = new_version(p, s, init->data);
  s->number = (int)p->n_states;
  p->states[p->n_states++] = s;
  return s;
}

/** Makes a state whose initial value is realised and kept. */
static void realize_start(program *p, handle *init, handle *made) {
  if (rng_chance(&p->r, 40)) return;
  bool last = rng_chance(&p->r, 50);
  tn_tensor *list[] = {last ? made->tensor : init->tensor, last ? init->tensor : made->tensor};
  say(p, "realize(t%d, t%d)", last ? made->number : init->number,
      last ? init->number : made->number);
  cover(p, COVERED_SHARED);
  check_status(p, tn_realize(p->context, list, 2), "realize");
  hold_value(p, init);
  settle_all(p);
}

static handle *add_state(program *p, const handle *init) {
  handle h = new_handle(p, tn_state(init->tensor), value_now(p, init));
  h.of = new_state(p, h.value);
  h.map = whole_map(p, h.value->count);
  h.value = NULL;
  h.is_assignable = true;
  say(p, "t%d = state(t%d)", h.number, init->number);
  cover(p, COVERED_STATES);
  return add_handle(p, h);
}

void make_state(program *p) {
  bool computed = p->n_handles && rng_chance(&p->r, 60);
  int last = p->last_handle;
  handle init = computed ? random_operand(p) : random_host(p, random_shape(p));
  handle *made = add_state(p, &init);
  if (computed) cover(p, COVERED_COMPUTED_STATES);
  if (p->depth && rng_chance(&p->r, 60)) own(p, made);
  if (init.number > last && rng_chance(&p->r, 40)) realize_start(p, add_handle(p, init), made);
}

static void count_assign(program *p, const handle *to, const handle *from, value *with) {
  cover(p, COVERED_ASSIGNS);
  if (to->movements) cover(p, COVERED_VIEWS_ASSIGNED);
  if (to->movements > 1) cover(p, COVERED_NESTED_ASSIGNED);
  if (value_reads(with, to->of)) cover(p, COVERED_OVERLAPPING);
  if (shape_count(from->shape) != shape_count(to->shape)) cover(p, COVERED_BROADCAST);
}

/** Assigns. Versions over the same version need distinct values: the library would merge equal
    ones, pending or of another plan, which the model does not know. */
void assign(program *p, const handle *to, handle from) {
  if (to->of->now->has_next) from = made_unlike(p, from);
  value *with = stretched(p, &from, to->shape);
  count_assign(p, to, &from, with);
  say(p, "assign(t%d, t%d)", to->number, from.number);
  tn_assign(to->tensor, from.tensor);
  change_state(p, to, with);
}

void assign_random(program *p) {
  handle *to = pick(p, is_assignable);
  if (!to) return;
  handle target = *to;
  if (rng_chance(&p->r, 30)) target = random_view(p, to);
  if (!target.is_assignable) return;
  handle from = random_operand(p);
  bool is_narrow = target.shape.rank && rng_chance(&p->r, 20);
  from = is_narrow ? narrowed(p, from, target.shape) : fitted(p, from, target.shape);
  assign(p, &target, from);
}

static handle *numbered(program *p, int number) {
  size_t i = 0;
  while (p->handles[i].number != number) i++;
  return &p->handles[i];
}

void lose_state(program *p) {
  handle init = random_operand(p), *h = add_state(p, &init);
  int number = h->number;
  own(p, h);
  add_handle(p, same(p, h));
  if (rng_chance(&p->r, 60)) compile_plan(p);
  handle to = *numbered(p, number);
  assign(p, &to, fitted(p, random_operand(p), to.shape));
  release(p, numbered(p, number));
}

void write_random(program *p) {
  handle *to = pick(p, is_assignable);
  if (!to) return;
  handle from = random_host(p, to->shape);
  value *v = value_now(p, &from);
  say(p, "write(t%d, t%d's)", to->number, from.number);
  cover(p, COVERED_WRITES);
  check_status(p, tn_write(to->tensor, TN_I32, v->data, v->count * sizeof *v->data), "write");
  change_state(p, to, v);
}

/* Reads. */

static void map_handle(program *p, handle *h, const value *v, const char *name) {
  tn_array a;
  say(p, "map(t%d)", h->number);
  cover(p, COVERED_MAPS);
  check_status(p, tn_map(h->tensor, &a), "map");
  if (!is_same_shape(a.type.shape, h->shape)) fail(p, "%s: the map has another shape", name);
  check_equal(p, name, h->shape, a.data, v->data);
  if (!h->of) h->mapped = a.data;
}

static void copy_handle(program *p, handle *h, const value *v, const char *name) {
  int32_t *got = model_alloc(&p->memory, v->count, sizeof *got);
  say(p, "read(t%d)", h->number);
  for (size_t i = 0; i < v->count; i++) got[i] = ~v->data[i];
  check_status(p, tn_read(h->tensor, TN_I32, got, v->count * sizeof *got), "read");
  check_equal(p, name, h->shape, got, v->data);
}

void read_handle(program *p, handle *h) {
  value *v = value_now(p, h);
  char name[32];
  snprintf(name, sizeof name, "t%d", h->number);
  cover(p, h->of ? COVERED_VIEW_READS : COVERED_READS);
  if (!h->of && value_is_old(v)) cover(p, COVERED_OLD_READS);
  if (p->may_map && rng_chance(&p->r, 50))
    map_handle(p, h, v, name);
  else
    copy_handle(p, h, v, name);
  hold_value(p, h);
  settle_all(p);
  check_calls(p);
  check_maps(p);
}

static bool is_closed_view(const handle *h) { return is_view(h) && is_closed(h); }

void realize_some(program *p) {
  enum { MOST = 4 };
  tn_tensor *list[MOST];
  size_t n = rng_below(&p->r, MOST + 1);
  for (size_t i = 0; i < n; i++) {
    bool of_state = rng_chance(&p->r, 40);
    handle *h = pick(p, of_state ? is_closed_view : is_closed);
    if (!h) return;
    if (of_state || rng_chance(&p->r, 20)) h = add_handle(p, same(p, h));
    list[i] = h->tensor;
    say(p, "realize(t%d ...)", h->number);
    hold_value(p, h);
  }
  if (!n) say(p, "realize()");
  cover(p, COVERED_REALIZES);
  check_status(p, tn_realize(p->context, list, n), "realize");
  settle_all(p);
}

void realize_pending(program *p) {
  say(p, "realize()");
  check_status(p, tn_realize(p->context, NULL, 0), "realize");
  settle_all(p);
}
