/* Converts a logged path of laws (schedule primitives) to a schedule that replays it: subjects and
   ranges get the names that they have in the text of the first kernel, new ranges the next free
   ids, in the order in which law_schedule_apply will meet them. */
#include "laws/kernel_schedule.h"

#include "laws/law_support.h"

typedef struct naming {
  laws *l;
  arena *a;
  map names;    /* id of a range + 1 → its number + 1 */
  int64_t next; /* free number */
} naming;

static const void *key_of(const node *range) {
  return (const void *)(uintptr_t)(law_range_id(range) + 1);
}

static void name_range(naming *s, const node *range, int64_t number) {
  map_set(s->a, &s->names, key_of(range), (void *)(uintptr_t)(number + 1));
  if (number >= s->next) s->next = number + 1;
}

static int64_t number_of(const naming *s, const node *range) {
  return range ? (int64_t)(uintptr_t)map_get(&s->names, key_of(range)) - 1 : LAW_NO_RANGE;
}

static node_list all_ranges(laws *l, const node *sink) {
  arena *a = ir_arena(l->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL), ranges = {0};
  for (size_t i = order.n; i-- > 0;) {
    const node *const *bound;
    if (!node_is_binder(order.at[i])) continue;
    for (size_t k = 0, n = binder_ranges(order.at[i], &bound); k < n; k++)
      vec_push(a, &ranges, bound[k]);
  }
  return ranges;
}

node_list law_find_new_ranges(laws *l, const node *from, const node *to) {
  arena *a = ir_arena(l->g);
  node_list old = all_ranges(l, from), all = all_ranges(l, to), fresh = {0};
  map known = {0};
  for (size_t i = 0; i < old.n; i++) map_set(a, &known, key_of(old.at[i]), NULL);
  for (size_t i = 0; i < all.n; i++)
    if (!map_has(&known, key_of(all.at[i]))) vec_push(a, &fresh, all.at[i]);
  return fresh;
}

static int64_t position_in(const node_list *list, const node *n) {
  for (size_t i = 0; i < list->n; i++)
    if (list->at[i] == n) return (int64_t)i;
  return -1;
}

static void name_subject(naming *s, law_schedule_line *line, const law_step *step) {
  const node *n = step->args.subject, *const *ranges = NULL;
  bool is_binder = node_is_binder(n) && binder_ranges(n, &ranges);
  node_list numbered = {0};
  line->subject_kind = n->op == OP_RANGE || is_binder ? 'r' : n->op == OP_STAGE ? 's' : 'e';
  if (line->subject_kind == 's') numbered = law_scalar_stages(s->l, step->from);
  if (line->subject_kind == 'e') numbered = law_data_expressions(s->l, step->from);
  line->subject = line->subject_kind == 'r' ? number_of(s, is_binder ? ranges[0] : n)
                                            : position_in(&numbered, n);
  if (line->subject < 0)
    diag_raise(s->a->diag, TN_ERR_INTERNAL, "the subject of a law cannot be named in its kernel");
}

/** Numbers the new ranges of a step: principals first. */
static void name_new_ranges(naming *s, law_schedule_line *line, const law_step *step) {
  size_t n = law_named_ranges(step->which, &step->args);
  node_list fresh = law_find_new_ranges(s->l, step->from, step->to);
  for (size_t i = 0; i < n; i++) {
    const node *r = step->principals[i];
    if (r) name_range(s, r, s->next);
    vec_push(s->a, &line->new_ranges, number_of(s, r));
  }
  for (size_t i = 0; i < fresh.n; i++) {
    if (map_has(&s->names, key_of(fresh.at[i]))) continue;
    name_range(s, fresh.at[i], s->next);
    vec_push(s->a, &line->new_ranges, number_of(s, fresh.at[i]));
  }
}

static law_schedule_line make_line(naming *s, const law_step *step) {
  law_schedule_line line = {.which = step->which,
                            .number = step->args.number,
                            .is_multiple = step->args.is_multiple,
                            .other = number_of(s, step->args.other)};
  name_subject(s, &line, step);
  for (size_t i = 0; i < step->args.n; i++)
    vec_push(s->a, &line.list, number_of(s, step->args.list[i]));
  name_new_ranges(s, &line, step);
  return line;
}

law_schedule law_schedule_of_trace(laws *l, const node *from, const law_steps *steps) {
  naming s = {.l = l, .a = ir_arena(l->g)};
  law_schedule list = {0};
  node_list ranges = all_ranges(l, from);
  for (size_t i = 0; i < ranges.n; i++) name_range(&s, ranges.at[i], law_range_id(ranges.at[i]));
  for (size_t i = 0; i < steps->n; i++) vec_push(s.a, &list, make_line(&s, &steps->at[i]));
  return list;
}
