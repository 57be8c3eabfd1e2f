/* Implements executables (compiled plans): reference counts, look-up of buffers and variables, and
   the links from steps to the loops that contain them, and the division into segments.
   build_executable.c and plan_record.c make them. */
#include "runtime/executable.h"

#include <stdlib.h>
#include <string.h>

executable *executable_retain(executable *p) {
  atomic_fetch_add(&p->count, 1);
  return p;
}

void executable_release(executable *p) {
  if (!p || atomic_fetch_sub(&p->count, 1) > 1) return;
  for (size_t i = 0; i < p->n_programs; i++) program_release(p->programs[i]);
  if (p->host.release) p->host.release(p->host.user);
  arena_free(&p->arena);
  mem_free(p->mem, p, sizeof *p);
}

size_t executable_buffers(const executable *p) { return p->n_buffers; }
const executable_buffer *executable_buffer_at(const executable *p, size_t i) {
  return &p->buffers[i];
}
size_t executable_output(const executable *p, size_t root) { return p->outputs[root]; }
bool executable_computes_sizes(const executable *p) { return p->n_items; }
size_t executable_steps(const executable *p) { return p->n_steps; }
size_t executable_kernels(const executable *p) { return p->n_programs; }

size_t executable_compiled_kernels(const executable *p) { return p->n_compiled; }
size_t executable_vars(const executable *p) { return p->n_vars; }
const tn_program_var *executable_var_at(const executable *p, size_t i) { return &p->vars[i]; }

size_t executable_input(const executable *p, int64_t uid, int64_t version) {
  return uid_index_find(p->inputs, p->n_inputs, uid, version);
}

bool executable_step_writes(const executable *p, const executable_step *s, size_t k) {
  switch (s->kind) {
  case STEP_KERNEL: return p->programs[s->program]->limits.arrays[k].is_stored;
  case STEP_COPY: return !k;
  case STEP_CUSTOM: return k + 1 == s->n_buffers;
  default: return true;
  }
}

int executable_compare_vars(const void *a, const void *b) {
  return strcmp(((const tn_program_var *)a)->name, ((const tn_program_var *)b)->name);
}

size_t executable_var(const executable *p, const char *name) {
  const tn_program_var key = {.name = name};
  const tn_program_var *v =
      p->n_vars ? bsearch(&key, p->vars, p->n_vars, sizeof key, executable_compare_vars) : NULL;
  return v ? (size_t)(v - p->vars) : SIZE_MAX;
}

bool executable_resolve_value(const executable *p, const char *name, size_t *var) {
  *var = executable_var(p, name);
  return *var != SIZE_MAX || !strcmp(name, "core_id") || !strcmp(name, "core_count");
}

void executable_set_targets(executable *p, const executable_request *r, size_t n_devices) {
  if (n_devices > 1 + r->n_more)
    diag_raise(p->arena.diag, TN_ERR_DEVICE, "%s: there is no device %zu", p->name, n_devices - 1);
  p->n_targets = n_devices;
  p->targets = arena_alloc(&p->arena, n_devices * sizeof *p->targets);
  p->targets[0] = r->target;
  for (size_t i = 1; i < n_devices; i++) p->targets[i] = r->more[i - 1];
}

void executable_index_inputs(executable *p) {
  p->inputs = arena_alloc(&p->arena, (p->n_buffers + 1) * sizeof *p->inputs);
  p->n_inputs = 0;
  for (size_t i = 0; i < p->n_buffers; i++) {
    const executable_buffer *b = &p->buffers[i];
    if (b->role == BUFFER_ROLE_INPUT)
      p->inputs[p->n_inputs++] = (uid_index_entry){b->uid, b->version, i};
  }
  uid_index_sort(p->inputs, p->n_inputs);
}

void executable_link_loops(executable *p) {
  size_t open = SIZE_MAX;
  for (size_t i = 0; i < p->n_steps; i++) {
    while (open != SIZE_MAX && i > open + p->steps[open].n_steps) open = p->steps[open].parent;
    p->steps[i].parent = open;
    if (p->steps[i].kind == STEP_LOOP) open = i;
  }
}

void executable_set_root_sizes(executable *p, const node *const roots[], size_t n, size_t first) {
  p->root_sizes = arena_alloc(&p->arena, (n + 1) * sizeof *p->root_sizes);
  for (size_t i = 0; i < n; i++, first += roots[i - 1]->rank) p->root_sizes[i] = first;
  p->root_sizes[n] = first;
}

bool executable_skips(const executable *p, size_t step, size_t segment, const int64_t sizes[]) {
  for (; p->has_guards && step != SIZE_MAX; step = p->steps[step].parent) {
    const executable_step *s = &p->steps[step];
    if (s->guard != SIZE_MAX && s->guard_segment <= segment && !sizes[s->guard]) return true;
  }
  return false;
}

/* Segments. An ITEM that is not read yet belongs to the segment NEVER. */

#define NEVER SIZE_MAX

typedef struct item_links {
  executable *p;
  launch_order order;
  size_t *of_var;  /* segment in which each variable becomes known; 0: before the run */
  size_t *of_term; /* likewise of each term of a size */
  size_t *writer;  /* of each buffer: the first step that has it, + 1 */
  size_t *waits_for_term, *waits_for_buffer; /* of each: 1 + an ITEM that waits for it */
  size_t *next_for_term, *next_for_buffer;   /* of each ITEM: likewise the next such one */
  size_t *n_awaited;                         /* of each ITEM: its bound, and its element */
  VEC(size_t) ready;                         /* ITEMs that wait for nothing and are not read */
} item_links;

static size_t of_size(const item_links *l, size_t size) {
  return l->of_term[l->p->sizes.results[size]];
}

/** Notes that one of the things that ITEMs wait for is there. */
static void note_ready(item_links *l, size_t item, const size_t next[]) {
  for (; item; item = next[item - 1])
    if (!--l->n_awaited[item - 1]) vec_push(&l->p->arena, &l->ready, item - 1);
}

/** Notes the segment of the terms that became known last, from `first` on. */
static void note_terms(item_links *l, size_t first, size_t segment) {
  for (size_t i = first; i < l->order.n; i++) {
    size_t term = l->order.terms[i];
    l->of_term[term] = segment;
    note_ready(l, l->waits_for_term[term], l->next_for_term);
  }
}

static void note_writer(item_links *l, size_t buffer, size_t step) {
  if (l->writer[buffer]) return;
  l->writer[buffer] = step + 1;
  note_ready(l, l->waits_for_buffer[buffer], l->next_for_buffer);
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
  size_t *least = arena_alloc(&p->arena, (p->n_buffers + 1) * sizeof *least);
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

/* Lists by segment. */

/** Lists numbers below n, all but those that `of` gives NEVER, by what it gives: a number below
    n_keys. */
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
static segment_list list_users(executable *p) {
  size_t n = 0, at = 0;
  for (size_t i = 0; i < p->n_steps; i++) n += p->steps[i].n_buffers;
  size_t *buffer = arena_alloc(&p->arena, (n + 1) * sizeof *buffer);
  size_t *step = arena_alloc(&p->arena, (n + 1) * sizeof *step);
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
  size_t *of = arena_alloc(a, (most + 1) * sizeof *of);
  s->terms = list_by(a, l->of_term, p->sizes.n_terms, n);
  for (size_t i = 0; i < p->sizes.n_results; i++) of[i] = i < p->n_buffers ? NEVER : of_size(l, i);
  s->results = list_by(a, of, p->sizes.n_results, n);
  for (size_t i = 0; i < p->n_buffers; i++) of[i] = p->buffers[i].segment;
  s->buffers = list_by(a, of, p->n_buffers, n);
  for (size_t i = 0; i < p->n_steps; i++) of[i] = p->steps[i].segment;
  s->steps = list_by(a, of, p->n_steps, n);
  for (size_t i = 0; i < p->n_items; i++) of[i] = p->items[i].segment;
  s->items = list_by(a, of, p->n_items, n);
  if (p->has_guards) p->users = list_users(p);
}

/** Makes each ITEM wait for its bound and its element. */
static void link_waits(item_links *l) {
  executable *p = l->p;
  for (size_t i = 0; i < p->n_items; i++) {
    executable_item *item = &p->items[i];
    size_t term = p->sizes.results[item->most];
    item->segment = l->of_var[item->var] = NEVER;
    l->n_awaited[i] = 2;
    l->next_for_term[i] = l->waits_for_term[term];
    l->waits_for_term[term] = i + 1;
    l->next_for_buffer[i] = l->waits_for_buffer[item->buffer];
    l->waits_for_buffer[item->buffer] = i + 1;
  }
}

static void open_links(item_links *l) {
  executable *p = l->p;
  arena *a = &p->arena;
  bool *is_late = arena_calloc(a, p->n_vars + 1, sizeof *is_late);
  l->of_var = arena_calloc(a, p->n_vars + 1, sizeof *l->of_var);
  l->of_term = arena_alloc(a, (p->sizes.n_terms + 1) * sizeof *l->of_term);
  l->writer = arena_calloc(a, p->n_buffers + 1, sizeof *l->writer);
  l->waits_for_term = arena_calloc(a, p->sizes.n_terms + 1, sizeof *l->waits_for_term);
  l->waits_for_buffer = arena_calloc(a, p->n_buffers + 1, sizeof *l->waits_for_buffer);
  l->next_for_term = arena_calloc(a, p->n_items + 1, sizeof *l->next_for_term);
  l->next_for_buffer = arena_calloc(a, p->n_items + 1, sizeof *l->next_for_buffer);
  l->n_awaited = arena_calloc(a, p->n_items + 1, sizeof *l->n_awaited);
  link_waits(l);
  for (size_t i = 0; i < p->n_items; i++) is_late[p->items[i].var] = true;
  for (size_t i = 0; i < p->sizes.n_terms; i++) l->of_term[i] = NEVER;
  l->order = launch_order_open(a, &p->sizes, is_late, p->n_vars);
  note_terms(l, 0, 0);
}

bool executable_link_items(executable *p) {
  item_links l = {.p = p};
  open_links(&l);
  bool is_linked = link_steps(&l);
  for (size_t i = 0; i < p->n_items; i++) is_linked &= p->items[i].segment != NEVER;
  if (!is_linked) return false;
  link_buffers(&l);
  list_segments(&l);
  return true;
}
