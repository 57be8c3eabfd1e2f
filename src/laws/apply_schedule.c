/* Applies a schedule to a kernel, line by line: looks up the ranges, stages and expressions that a
   line names, calls its schedule primitive ("law"), and binds the names of the new ranges. A line
   that names a range which turned out to have one index does nothing. The size of the kernel is
   limited after every line. */
#include "laws/kernel_schedule.h"

#include "laws/law_support.h"

#include <string.h>

/* Dispatch: each law with its arguments from law_args. */

typedef const node *(*law_function)(laws *l, const node *sink, const law_args *a,
                                    const node *principals[]);

static const node *apply_split(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  return law_split(l, sink, a->subject, a->number, &principals[0], &principals[1]);
}

static const node *apply_overlap(laws *l, const node *sink, const law_args *a,
                                 const node *principals[]) {
  return law_overlap(l, sink, a->subject, a->number, &principals[0], &principals[1]);
}

static const node *apply_partition(laws *l, const node *sink, const law_args *a,
                                   const node *principals[]) {
  law_point at = {a->number, a->is_multiple};
  return law_partition(l, sink, a->subject, at, &principals[0], &principals[1]);
}

static const node *apply_flatten(laws *l, const node *sink, const law_args *a,
                                 const node *principals[]) {
  return law_flatten(l, sink, a->subject, &principals[0]);
}

static const node *apply_order(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  (void)principals;
  return law_order(l, sink, a->subject, (size_t)a->number);
}

static const node *apply_nest(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  (void)principals;
  return law_nest(l, sink, a->subject);
}

static const node *apply_interchange(laws *l, const node *sink, const law_args *a,
                                     const node *principals[]) {
  return law_interchange(l, sink, a->subject, a->list, a->n, principals);
}

static const node *apply_batch(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  (void)principals;
  return law_batch(l, sink, a->subject, a->other);
}

static const node *apply_unit(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  return law_unit(l, sink, a->subject, &principals[0]);
}

static const node *apply_hoist(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  return law_hoist(l, sink, a->subject, a->other, &principals[0]);
}

static const node *apply_data(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  const node *element;
  (void)principals;
  return law_data(l, sink, a->subject, a->list, a->n, a->other, &element);
}

static const node *apply_peel(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  return law_peel(l, sink, a->subject, a->number, &principals[0]);
}

static const node *apply_sink(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  (void)principals;
  return law_sink(l, sink, a->subject, a->other);
}

static const node *apply_inline(laws *l, const node *sink, const law_args *a,
                                const node *principals[]) {
  (void)principals;
  return law_inline(l, sink, a->subject);
}

static const node *apply_ungate(laws *l, const node *sink, const law_args *a,
                                const node *principals[]) {
  (void)principals;
  return law_ungate(l, sink, a->subject);
}

static const node *apply_pitch(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  (void)principals;
  return law_pitch(l, sink, a->subject, a->number);
}

static const node *apply_depth(laws *l, const node *sink, const law_args *a,
                               const node *principals[]) {
  (void)principals;
  return law_depth(l, sink, a->subject, a->number);
}

static const node *apply_tensor(laws *l, const node *sink, const law_args *a,
                                const node *principals[]) {
  return law_tensor(l, sink, a->subject, a->number, &principals[0]);
}

static const node *apply_kind(laws *l, const node *sink, const law_args *a,
                              const node *principals[]) {
  const node *changed;
  (void)principals;
  return law_kind_on_axis(l, sink, a->subject, (range_kind)(a->number % KIND_LIMIT),
                          a->number / KIND_LIMIT, &changed);
}

const node *law_apply(laws *l, const node *sink, law which, const law_args *args,
                      const node *principals[]) {
  static const law_function functions[LAWS] = {
#define LAW(name, function, arguments, new_ranges, file, about) [LAW_##name] = apply_##function,
#include "laws/laws.def"
  };
  return functions[which](l, sink, args, principals);
}

/* Lines. */

enum {
  MOST_TOGETHER = 1 << 20, /* nodes of the kernels after each law: all stay in memory */
  MOST_COPIES = 1 << 16    /* nodes of the expanded kernel; chosen schedules take a tenth */
};

typedef struct applying {
  laws *l;
  arena *a;
  const node *sink;
  const law_schedule_line *line;
  size_t number; /* of the line, from 1 */
  size_t nodes;  /* of all kernels so far */
  map ids; /* number of a range + 1 → its id + 1; 0: a range of one index, which does not exist */
} applying;

static _Noreturn void refuse_line(const applying *p, const char *why) {
  str text = str_new(p->a);
  law_schedule_print_line(&text, p->line);
  diag_raise(p->a->diag, TN_ERR_ARGUMENT, "law %zu of the schedule, \"%s\", is refused: %s",
             p->number, str_text(&text), why);
}

static const void *key_of(int64_t number) { return (const void *)(uintptr_t)(number + 1); }

static void define_name(applying *p, int64_t number, const node *range) {
  if (map_has(&p->ids, key_of(number)))
    refuse_line(p, arena_printf(p->a, "r%" PRId64 " already names another range", number));
  map_set(p->a, &p->ids, key_of(number),
          range ? (void *)(uintptr_t)(law_range_id(range) + 1) : NULL);
}

/** True if an earlier line made no range of this name: its extent would have been 1. */
static bool is_unit(const applying *p, int64_t number) {
  return map_has(&p->ids, key_of(number)) && !map_get(&p->ids, key_of(number));
}

static bool names_unit(const applying *p) {
  bool unit = p->line->subject_kind == 'r' && is_unit(p, p->line->subject);
  if (p->line->other != LAW_NO_RANGE) unit |= is_unit(p, p->line->other);
  for (size_t i = 0; i < p->line->list.n; i++) unit |= is_unit(p, p->line->list.at[i]);
  return unit;
}

static const node *find_range(const applying *p, int64_t number) {
  int64_t id = (int64_t)(uintptr_t)map_get(&p->ids, key_of(number)) - 1;
  node_list order = topo_sort(p->a, &p->sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n && id >= 0; i++)
    if (order.at[i]->op == OP_RANGE && law_range_id(order.at[i]) == id) return order.at[i];
  refuse_line(p, arena_printf(p->a, "the kernel has no range r%" PRId64 " at this point", number));
}

static const node *find_numbered(const applying *p, node_list list, const char *what) {
  if ((uint64_t)p->line->subject < list.n) return list.at[p->line->subject];
  refuse_line(p, arena_printf(p->a, "the kernel has only %zu %s at this point", list.n, what));
}

static const node *find_subject(const applying *p) {
  const law_schedule_line *line = p->line;
  if (line->subject_kind == 's')
    return find_numbered(p, law_scalar_stages(p->l, p->sink), "stages without ranges");
  if (line->subject_kind == 'e')
    return find_numbered(p, law_data_expressions(p->l, p->sink), "expressions over elements");
  const node *range = find_range(p, line->subject);
  bool is_binder = strstr(law_facts_of(line->which)->arguments, "BINDER");
  return is_binder ? law_find_binder(p->l, p->sink, range) : range;
}

static law_args resolve_args(const applying *p) {
  const law_schedule_line *line = p->line;
  const node **list = arena_alloc(p->a, (line->list.n + 1) * sizeof *list);
  for (size_t i = 0; i < line->list.n; i++) list[i] = find_range(p, line->list.at[i]);
  return (law_args){.subject = find_subject(p),
                    .number = line->number,
                    .is_multiple = line->is_multiple,
                    .other = line->other == LAW_NO_RANGE ? NULL : find_range(p, line->other),
                    .list = list,
                    .n = line->list.n};
}

/** The new ranges of a kernel in the order in which a line names them: principals first. */
static node_list new_ranges_of(const applying *p, const node *kernel,
                               const node *const principals[], size_t n) {
  node_list all = {0}, fresh = law_find_new_ranges(p->l, p->sink, kernel);
  for (size_t i = 0; i < n; i++) vec_push(p->a, &all, principals[i]);
  for (size_t i = 0; i < fresh.n; i++) {
    bool is_principal = false;
    for (size_t k = 0; k < n; k++) is_principal |= principals[k] == fresh.at[i];
    if (!is_principal) vec_push(p->a, &all, fresh.at[i]);
  }
  return all;
}

static void apply_line(applying *p) {
  const law_schedule_line *line = p->line;
  if (names_unit(p)) {
    for (size_t i = 0; i < line->new_ranges.n; i++)
      if (line->new_ranges.at[i] != LAW_NO_RANGE) define_name(p, line->new_ranges.at[i], NULL);
    return;
  }
  law_args args = resolve_args(p);
  size_t n = law_named_ranges(line->which, &args);
  const node **principals = arena_calloc(p->a, n + 1, sizeof *principals);
  const node *made = law_apply(p->l, p->sink, line->which, &args, principals);
  if (!made) refuse_line(p, p->l->refusal);
  node_list ranges = new_ranges_of(p, made, principals, n);
  if (line->new_ranges.n > ranges.n)
    refuse_line(p, arena_printf(p->a, "the law creates %zu ranges, but the line names %zu",
                                ranges.n, line->new_ranges.n));
  for (size_t i = 0; i < line->new_ranges.n; i++)
    if (line->new_ranges.at[i] != LAW_NO_RANGE)
      define_name(p, line->new_ranges.at[i], ranges.at[i]);
  p->sink = made;
  size_t nodes = topo_sort(p->a, &made, 1, NULL, NULL).n;
  p->nodes += nodes;
  if (nodes > LAW_MOST_NODES) refuse_line(p, "the kernel would be too large");
  if (p->nodes > MOST_TOGETHER)
    refuse_line(p, "the schedule is too long for a kernel of this size");
  if (law_expanded_nodes(p->a, made, false) > MOST_COPIES)
    refuse_line(p, "the kernel would be too large after unrolling and vectorising");
}

const node *law_schedule_apply(laws *l, const node *sink, const law_schedule *list) {
  applying p = {.l = l, .a = ir_arena(l->g), .sink = sink};
  node_list order = topo_sort(p.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE) define_name(&p, law_range_id(order.at[i]), order.at[i]);
  for (size_t i = 0; i < list->n; i++) {
    p.line = &list->at[i];
    p.number = i + 1;
    apply_line(&p);
  }
  return p.sink;
}
