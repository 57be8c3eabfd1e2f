/* Divides the steps of an executable into segments: a segment ends where the next step mentions a
   size that an element decides, so that the host reads the element first. Sizes, buffers and ITEMs
   belong to the segment with which they become known. */
#include "runtime/executable.h"

/** The segment of an ITEM that is not read yet. */
#define NEVER SIZE_MAX

/** Things that an ITEM may wait for. */
enum { WAIT_BOUND, WAIT_GUARD, WAIT_ELEMENT, WAITS };

typedef struct item_links {
  executable *p;
  arena *work;
  launch_order order;
  size_t *of_var;  /* segment in which each variable becomes known; 0: before the run */
  size_t *of_term; /* likewise of each term of a size */
  size_t *writer;  /* of each buffer: the first step that has it, + 1; an element has one writer */
  size_t *waits_for_term, *waits_for_buffer; /* of each: 1 + the first of the waits for it */
  size_t *next;      /* of each wait, of which an ITEM has WAITS: 1 + the next one for the same */
  size_t *n_awaited; /* of each ITEM: waits that have not ended */
  VEC(size_t) ready; /* ITEMs that wait for nothing and are not read */
} item_links;

static size_t of_size(const item_links *l, size_t size) {
  return l->of_term[l->p->sizes.results[size]];
}

/** Ends the waits for one thing, from the first of them on. */
static void end_waits(item_links *l, size_t wait) {
  for (; wait; wait = l->next[wait - 1]) {
    size_t item = (wait - 1) / WAITS;
    if (!--l->n_awaited[item]) vec_push(l->work, &l->ready, item);
  }
}

/** Notes the segment of the terms that became known last, from `first` on. */
static void note_terms(item_links *l, size_t first, size_t segment) {
  for (size_t i = first; i < l->order.n; i++) {
    size_t term = l->order.terms[i];
    l->of_term[term] = segment;
    end_waits(l, l->waits_for_term[term]);
  }
}

static void note_writer(item_links *l, size_t buffer, size_t step) {
  if (l->writer[buffer]) return;
  l->writer[buffer] = step + 1;
  end_waits(l, l->waits_for_buffer[buffer]);
}

/** The segment in which all is known that a step and the steps inside of it mention. */
static size_t segment_of_step(const item_links *l, size_t first, size_t end) {
  size_t latest = 0;
  for (size_t i = first; i < end; i++) {
    const executable_step *s = &l->p->steps[i];
    for (size_t k = 0; k < s->n_buffers; k++)
      if (of_size(l, s->buffers[k]) > latest) latest = of_size(l, s->buffers[k]);
    if (s->kind == STEP_LOOP && of_size(l, s->trips) > latest) latest = of_size(l, s->trips);
    if (s->guard != SIZE_MAX && of_size(l, s->guard) > latest) latest = of_size(l, s->guard);
    if (s->kind != STEP_KERNEL) continue;
    size_t n_values = l->p->programs[s->program]->facts.n_values;
    for (size_t k = 0; k < n_values; k++)
      if (s->values[k] != SIZE_MAX && l->of_var[s->values[k]] > latest)
        latest = l->of_var[s->values[k]];
  }
  return latest;
}

/** Begins a segment: reads all ITEMs that are written and whose bounds are known. */
static void read_items(item_links *l, size_t segment) {
  while (l->ready.n) {
    size_t before = l->order.n;
    executable_item *item = &l->p->items[vec_pop(&l->ready)];
    if (l->of_var[item->var] == NEVER) launch_order_know(&l->order, item->var);
    item->segment = l->of_var[item->var] = segment;
    item->writer = l->writer[item->buffer] - 1;
    note_terms(l, before, segment);
  }
}

static bool link_steps(item_links *l) {
  executable *p = l->p;
  size_t segment = 0, end;
  for (size_t i = 0; i < p->n_steps; i = end) {
    end = i + 1 + (p->steps[i].kind == STEP_LOOP ? p->steps[i].n_steps : 0);
    if (segment_of_step(l, i, end) == NEVER) read_items(l, ++segment);
    if (segment_of_step(l, i, end) == NEVER) return false;
    for (size_t k = i; k < end; k++) {
      p->steps[k].segment = segment;
      for (size_t b = 0; b < p->steps[k].n_buffers; b++) note_writer(l, p->steps[k].buffers[b], k);
    }
  }
  p->n_segments = segment + 1;
  read_items(l, p->n_segments);
  return true;
}

/** The segment in which the guard of a step is known, and those of the loops around it. */
static size_t segment_of_guard(const item_links *l, size_t step) {
  const executable_step *s = &l->p->steps[step];
  size_t own = s->guard == SIZE_MAX ? 0 : of_size(l, s->guard);
  size_t outer = s->parent == SIZE_MAX ? 0 : l->p->steps[s->parent].guard_segment;
  return own > outer ? own : outer;
}

/** Sets the segments of guards. A buffer that guarded steps alone use is placed when the first of
    their guards is known: a run that skips all of them has no size for it. */
static void link_guards(item_links *l) {
  executable *p = l->p;
  size_t *least = arena_alloc(l->work, (p->n_buffers + 1) * sizeof *least);
  for (size_t i = 0; i < p->n_buffers; i++) least[i] = NEVER;
  p->has_guards = false;
  for (size_t i = 0; i < p->n_steps; i++) {
    executable_step *s = &p->steps[i];
    p->has_guards |= s->guard != SIZE_MAX;
    s->guard_segment = segment_of_guard(l, i);
    for (size_t k = 0; k < s->n_buffers; k++) {
      size_t b = p->buffers[s->buffers[k]].within;
      if (s->guard_segment < least[b]) least[b] = s->guard_segment;
    }
  }
  for (size_t i = 0; i < p->n_buffers; i++) {
    buffer_role role = p->buffers[i].role;
    bool is_inner = role == BUFFER_ROLE_SCRATCH || role == BUFFER_ROLE_STATE;
    if (is_inner && least[i] != NEVER && least[i] > p->buffers[i].segment)
      p->buffers[i].segment = least[i];
  }
}

/** Sets the segments of buffers; the buffer of which one is a part stands before it. */
static void link_buffers(item_links *l) {
  executable *p = l->p;
  for (size_t i = 0; i < p->n_buffers; i++) p->buffers[i].segment = of_size(l, i);
  link_guards(l);
  for (size_t i = 0; i < p->n_buffers; i++) {
    size_t outer = p->buffers[p->buffers[i].within].segment;
    if (outer > p->buffers[i].segment) p->buffers[i].segment = outer;
  }
}

/** True if each step uses buffers that have their places by then: an executable read from disk may
    have a view of a buffer that is placed later. */
static bool has_places(const executable *p) {
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++)
      if (p->buffers[p->steps[i].buffers[k]].segment > p->steps[i].segment) return false;
  return true;
}

/* Lists by segment. */

/** Sorts the numbers below n by of[i], which is below n_keys, and leaves out those whose of[i] is
    NEVER. While key k is filled, its end so far is first[k + 1]. */
static segment_list list_by(arena *a, const size_t of[], size_t n, size_t n_keys) {
  segment_list list = {.at = arena_alloc(a, (n + 1) * sizeof *list.at),
                       .first = arena_calloc(a, n_keys + 2, sizeof *list.first)};
  for (size_t i = 0; i < n; i++)
    if (of[i] != NEVER) list.first[of[i] + 2]++;
  for (size_t k = 2; k < n_keys + 2; k++) list.first[k] += list.first[k - 1];
  for (size_t i = 0; i < n; i++)
    if (of[i] != NEVER) list.at[list.first[of[i] + 1]++] = i;
  return list;
}

/** Lists for each buffer the steps that mention it, or a part of it. */
static segment_list list_users(const item_links *l) {
  executable *p = l->p;
  size_t n = 0, at = 0;
  for (size_t i = 0; i < p->n_steps; i++) n += p->steps[i].n_buffers;
  size_t *buffer = arena_alloc(l->work, (n + 1) * sizeof *buffer);
  size_t *step = arena_alloc(l->work, (n + 1) * sizeof *step);
  for (size_t i = 0; i < p->n_steps; i++)
    for (size_t k = 0; k < p->steps[i].n_buffers; k++) {
      buffer[at] = p->buffers[p->steps[i].buffers[k]].within;
      step[at++] = i;
    }
  segment_list list = list_by(&p->arena, buffer, n, p->n_buffers);
  for (size_t i = 0; i < n; i++) list.at[i] = step[list.at[i]];
  return list;
}

static void list_segments(item_links *l) {
  executable *p = l->p;
  executable_segments *s = &p->segments;
  arena *a = &p->arena;
  size_t most = p->n_buffers + p->n_steps + p->n_items + p->sizes.n_results, n = p->n_segments + 1;
  size_t *of = arena_alloc(l->work, (most + 1) * sizeof *of);
  s->terms = list_by(a, l->of_term, p->sizes.n_terms, n);
  for (size_t i = 0; i < p->sizes.n_results; i++) of[i] = i < p->n_buffers ? NEVER : of_size(l, i);
  s->results = list_by(a, of, p->sizes.n_results, n);
  for (size_t i = 0; i < p->n_buffers; i++) of[i] = p->buffers[i].segment;
  s->buffers = list_by(a, of, p->n_buffers, n);
  for (size_t i = 0; i < p->n_steps; i++) of[i] = p->steps[i].segment;
  s->steps = list_by(a, of, p->n_steps, n);
  for (size_t i = 0; i < p->n_items; i++) of[i] = p->items[i].segment;
  s->items = list_by(a, of, p->n_items, n);
  if (p->has_guards) p->users = list_users(l);
}

/** Has an ITEM wait; `first`: the first wait for the same thing, + 1. */
static void begin_wait(item_links *l, size_t item, size_t kind, size_t *first) {
  size_t wait = item * WAITS + kind;
  l->next[wait] = *first;
  *first = wait + 1;
  l->n_awaited[item]++;
}

/** Has each ITEM wait for its bound, its guard and its element. */
static void begin_waits(item_links *l) {
  executable *p = l->p;
  for (size_t i = 0; i < p->n_items; i++) {
    executable_item *item = &p->items[i];
    item->segment = l->of_var[item->var] = NEVER;
    begin_wait(l, i, WAIT_BOUND, &l->waits_for_term[p->sizes.results[item->most]]);
    begin_wait(l, i, WAIT_ELEMENT, &l->waits_for_buffer[item->buffer]);
    if (item->guard != SIZE_MAX)
      begin_wait(l, i, WAIT_GUARD, &l->waits_for_term[p->sizes.results[item->guard]]);
  }
}

static void open_links(item_links *l) {
  executable *p = l->p;
  arena *a = l->work;
  bool *is_late = arena_calloc(a, p->n_vars + 1, sizeof *is_late);
  l->of_var = arena_calloc(a, p->n_vars + 1, sizeof *l->of_var);
  l->of_term = arena_alloc(a, (p->sizes.n_terms + 1) * sizeof *l->of_term);
  l->writer = arena_calloc(a, p->n_buffers + 1, sizeof *l->writer);
  l->waits_for_term = arena_calloc(a, p->sizes.n_terms + 1, sizeof *l->waits_for_term);
  l->waits_for_buffer = arena_calloc(a, p->n_buffers + 1, sizeof *l->waits_for_buffer);
  l->next = arena_calloc(a, p->n_items * WAITS + 1, sizeof *l->next);
  l->n_awaited = arena_calloc(a, p->n_items + 1, sizeof *l->n_awaited);
  begin_waits(l);
  for (size_t i = 0; i < p->n_items; i++) is_late[p->items[i].var] = true;
  for (size_t i = 0; i < p->sizes.n_terms; i++) l->of_term[i] = NEVER;
  l->order = launch_order_open(a, &p->sizes, is_late, p->n_vars);
  note_terms(l, 0, 0);
}

bool executable_link_items(executable *p, arena *work) {
  item_links l = {.p = p, .work = work};
  open_links(&l);
  bool is_linked = link_steps(&l);
  for (size_t i = 0; i < p->n_items; i++) is_linked &= p->items[i].segment != NEVER;
  if (!is_linked) return false;
  link_buffers(&l);
  if (!has_places(p)) return false;
  list_segments(&l);
  return true;
}
