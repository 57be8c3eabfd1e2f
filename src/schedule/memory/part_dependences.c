/* Implements the search for overlapping parts as a sweep along one axis: parts are visited by their
   first coordinate, and each is compared with those before it that have not ended. The axis is the
   one along which the parts are shortest. Parts that lie side by side, as those of a concatenation,
   take n log n steps. */
#include "schedule/memory/part_dependences.h"

#include <stdlib.h>

/** The coordinates along the axis that one step reads or writes, from the first to the last. */
typedef struct span {
  int64_t first, last;
  size_t step;
  const array_part *part;
  bool writes;
} span;

typedef VEC(const span *) open_spans;

typedef struct sweep {
  arena *a;
  const node *param; /* the array as the first step sees it */
  size_t axis;       /* of it */
  VEC(span) spans;
  open_spans readers, writers; /* before the present one, and not known to have ended */
  step_edges *edges;
} sweep;

/** True if a part is a box of the array as `param`: it may overlap all parts of another shape. */
static bool is_bounded(const array_part *p, const node *param) {
  return !p->is_all && p->param && p->param == param;
}

/** The shape of the array in the first step; NULL: all steps access all of it. */
static const node *find_param(const part_uses *uses) {
  const node *param = NULL;
  for (size_t i = 0; i < uses->n && !param; i++) {
    const array_accesses *x = uses->at[i].parts;
    param = x->written.param ? x->written.param : x->read.param;
  }
  return param;
}

/** The sum of the lengths of all parts along an axis, relative to the span of the parts. */
static double relative_length(const part_uses *uses, const node *param, size_t axis) {
  double sum = 0, low = 0, high = 0;
  size_t n = 0;
  for (size_t i = 0; i < 2 * uses->n; i++) {
    const array_accesses *x = uses->at[i / 2].parts;
    const array_part *p = i % 2 ? &x->written : &x->read;
    if (!is_bounded(p, param)) continue;
    double from = (double)p->low[axis], to = (double)p->high[axis];
    if (!n++ || from < low) low = from;
    if (n == 1 || to > high) high = to;
    sum += to - from + 1;
  }
  return n ? sum / (high - low + 1) : 0;
}

/** The axis along which the parts are shortest. */
static size_t choose_axis(const part_uses *uses, const node *param) {
  size_t best = 0;
  double least = 0;
  for (size_t axis = 0; param && axis < param->rank; axis++) {
    double length = relative_length(uses, param, axis);
    if (axis && length >= least) continue;
    least = length;
    best = axis;
  }
  return best;
}

static void add_span(sweep *s, const array_part *p, size_t step, bool writes) {
  if (!array_part_is_any(p)) return;
  span x = {INT64_MIN, INT64_MAX, step, p, writes};
  if (is_bounded(p, s->param) && s->param->rank) {
    x.first = p->low[s->axis];
    x.last = p->high[s->axis];
  }
  vec_push(s->a, &s->spans, x);
}

static int by_first(const void *a_, const void *b_) {
  const span *a = a_, *b = b_;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a->step > b->step) - (a->step < b->step);
}

/** Adds the edges between a span and others, and drops those that have ended. */
static void compare_with(sweep *s, const span *x, open_spans *others) {
  size_t kept = 0;
  for (size_t i = 0; i < others->n; i++) {
    const span *y = others->at[i];
    if (y->last < x->first) continue;
    others->at[kept++] = y;
    if (x->step == y->step || !array_parts_overlap(x->part, y->part)) continue;
    step_edge e = x->step < y->step ? (step_edge){x->step, y->step} : (step_edge){y->step, x->step};
    vec_push(s->a, s->edges, e);
  }
  others->n = kept;
}

void part_dependences_add(arena *a, const part_uses *uses, step_edges *all) {
  const node *param = find_param(uses);
  sweep s = {.a = a, .param = param, .axis = choose_axis(uses, param), .edges = all};
  for (size_t i = 0; i < uses->n; i++) {
    const part_use *u = &uses->at[i];
    add_span(&s, &u->parts->read, u->step, false);
    add_span(&s, &u->parts->written, u->step, true);
  }
  if (s.spans.n) qsort(s.spans.at, s.spans.n, sizeof *s.spans.at, by_first);
  for (size_t i = 0; i < s.spans.n; i++) {
    const span *x = &s.spans.at[i];
    compare_with(&s, x, &s.writers);
    if (x->writes) compare_with(&s, x, &s.readers);
    vec_push(a, x->writes ? &s.writers : &s.readers, x);
  }
}
