/* Lists of laws applied to kernels. */
#include "laws/list.h"

#include <string.h>

/* Each law with its arguments from a list. */

typedef const node *(*law_function)(laws *l, const node *sink, const law_args *a,
                                    const node *made[]);

static const node *apply_split(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_split(l, sink, a->subject, a->number, &made[0], &made[1]);
}

static const node *apply_overlap(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_overlap(l, sink, a->subject, a->number, &made[0], &made[1]);
}

static const node *apply_partition(laws *l, const node *sink, const law_args *a,
                                   const node *made[]) {
  law_point at = {a->number, a->is_multiple};
  return law_partition(l, sink, a->subject, at, &made[0], &made[1]);
}

static const node *apply_flatten(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_flatten(l, sink, a->subject, &made[0]);
}

static const node *apply_order(laws *l, const node *sink, const law_args *a, const node *made[]) {
  (void)made;
  return law_order(l, sink, a->subject, (size_t)a->number);
}

static const node *apply_nest(laws *l, const node *sink, const law_args *a, const node *made[]) {
  (void)made;
  return law_nest(l, sink, a->subject);
}

static const node *apply_interchange(laws *l, const node *sink, const law_args *a,
                                     const node *made[]) {
  return law_interchange(l, sink, a->subject, a->list, a->n, made);
}

static const node *apply_batch(laws *l, const node *sink, const law_args *a, const node *made[]) {
  (void)made;
  return law_batch(l, sink, a->subject, a->other);
}

static const node *apply_unit(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_unit(l, sink, a->subject, &made[0]);
}

static const node *apply_hoist(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_hoist(l, sink, a->subject, a->other, &made[0]);
}

static const node *apply_data(laws *l, const node *sink, const law_args *a, const node *made[]) {
  const node *element;
  (void)made;
  return law_data(l, sink, a->subject, a->list, a->n, a->other, &element);
}

static const node *apply_peel(laws *l, const node *sink, const law_args *a, const node *made[]) {
  return law_peel(l, sink, a->subject, a->number, &made[0]);
}

static const node *apply_sink(laws *l, const node *sink, const law_args *a, const node *made[]) {
  (void)made;
  return law_sink(l, sink, a->subject, a->other);
}

static const node *apply_ungate(laws *l, const node *sink, const law_args *a, const node *made[]) {
  (void)made;
  return law_ungate(l, sink, a->subject);
}

static const node *apply_kind(laws *l, const node *sink, const law_args *a, const node *made[]) {
  const node *changed;
  (void)made;
  return law_kind(l, sink, a->subject, (range_kind)a->number, &changed);
}

const node *law_apply(laws *l, const node *sink, law which, const law_args *args,
                      const node *principals[]) {
  static const law_function functions[LAWS] = {
#define LAW(name, function, arguments, made, file, about) [LAW_##name] = apply_##function,
#include "laws/laws.def"
  };
  return functions[which](l, sink, args, principals);
}

/* Lines. */

enum {
  MOST_TOGETHER = 1 << 20, /* of the kernels after each law: all stay in memory */
  MOST_COPIES = 1 << 16 /* of the kernel with all copies and lanes; what is chosen takes a tenth */
};

typedef struct applying {
  laws *l;
  arena *a;
  const node *sink;
  const law_line *line;
  size_t number; /* of the line */
  size_t nodes;  /* of the kernels so far */
  map ids;       /* number of a range + 1 → its id + 1; 0: it would have one index */
} applying;

static _Noreturn void refuse(const applying *p, const char *why) {
  str text = str_new(p->a);
  law_line_print(&text, p->line);
  diag_raise(p->a->diag, TN_ERR_ARGUMENT, "law %zu of the schedule, \"%s\", is refused: %s",
             p->number, str_text(&text), why);
}

static const void *key_of(int64_t number) { return (const void *)(uintptr_t)(number + 1); }

static void define(applying *p, int64_t number, const node *range) {
  if (map_has(&p->ids, key_of(number)))
    refuse(p, arena_printf(p->a, "r%" PRId64 " is the name of another range", number));
  map_set(p->a, &p->ids, key_of(number), range ? (void *)(uintptr_t)(law_id(range) + 1) : NULL);
}

/** Whether an earlier line made no range of this name, since it would have had one index. */
static bool is_unit(const applying *p, int64_t number) {
  return map_has(&p->ids, key_of(number)) && !map_get(&p->ids, key_of(number));
}

static bool names_unit(const applying *p) {
  bool unit = p->line->subject_kind == 'r' && is_unit(p, p->line->subject);
  if (p->line->other != NO_RANGE) unit |= is_unit(p, p->line->other);
  for (size_t i = 0; i < p->line->list.n; i++) unit |= is_unit(p, p->line->list.at[i]);
  return unit;
}

static const node *range_of(const applying *p, int64_t number) {
  int64_t id = (int64_t)(uintptr_t)map_get(&p->ids, key_of(number)) - 1;
  node_list order = topo_sort(p->a, &p->sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n && id >= 0; i++)
    if (order.at[i]->op == OP_RANGE && law_id(order.at[i]) == id) return order.at[i];
  refuse(p, arena_printf(p->a, "the kernel has no range r%" PRId64 " then", number));
}

static const node *counted(const applying *p, node_list list, const char *what) {
  if ((uint64_t)p->line->subject < list.n) return list.at[p->line->subject];
  refuse(p, arena_printf(p->a, "the kernel has %zu %s then", list.n, what));
}

static const node *subject_of(const applying *p) {
  const law_line *line = p->line;
  if (line->subject_kind == 's')
    return counted(p, law_scalars(p->l, p->sink), "stages without ranges");
  if (line->subject_kind == 'e')
    return counted(p, law_expressions(p->l, p->sink), "expressions over elements");
  const node *range = range_of(p, line->subject);
  bool is_binder = strstr(law_get(line->which)->arguments, "BINDER");
  return is_binder ? law_binder(p->l, p->sink, range) : range;
}

static law_args args_of(const applying *p) {
  const law_line *line = p->line;
  const node **list = arena_alloc(p->a, (line->list.n + 1) * sizeof *list);
  for (size_t i = 0; i < line->list.n; i++) list[i] = range_of(p, line->list.at[i]);
  return (law_args){.subject = subject_of(p),
                    .number = line->number,
                    .is_multiple = line->is_multiple,
                    .other = line->other == NO_RANGE ? NULL : range_of(p, line->other),
                    .list = list,
                    .n = line->list.n};
}

/** The ranges that a law made in the order in which a line names them. */
static node_list made_of(const applying *p, const node *made, const node *const principals[],
                         size_t n) {
  node_list all = {0}, fresh = law_new_ranges(p->l, p->sink, made);
  for (size_t i = 0; i < n; i++) vec_push(p->a, &all, principals[i]);
  for (size_t i = 0; i < fresh.n; i++) {
    bool is_principal = false;
    for (size_t k = 0; k < n; k++) is_principal |= principals[k] == fresh.at[i];
    if (!is_principal) vec_push(p->a, &all, fresh.at[i]);
  }
  return all;
}

static void apply_line(applying *p) {
  const law_line *line = p->line;
  if (names_unit(p)) {
    for (size_t i = 0; i < line->made.n; i++)
      if (line->made.at[i] != NO_RANGE) define(p, line->made.at[i], NULL);
    return;
  }
  law_args args = args_of(p);
  size_t n = law_principals(line->which, &args);
  const node **principals = arena_calloc(p->a, n + 1, sizeof *principals);
  const node *made = law_apply(p->l, p->sink, line->which, &args, principals);
  if (!made) refuse(p, p->l->refusal);
  node_list ranges = made_of(p, made, principals, n);
  if (line->made.n > ranges.n)
    refuse(p, arena_printf(p->a, "it makes %zu ranges, and %zu are named", ranges.n, line->made.n));
  for (size_t i = 0; i < line->made.n; i++)
    if (line->made.at[i] != NO_RANGE) define(p, line->made.at[i], ranges.at[i]);
  p->sink = made;
  size_t nodes = topo_sort(p->a, &made, 1, NULL, NULL).n;
  p->nodes += nodes;
  if (nodes > LAW_MOST_NODES) refuse(p, "the kernel becomes too large");
  if (p->nodes > MOST_TOGETHER) refuse(p, "the schedule is too long for so large a kernel");
  if (law_expanded_nodes(p->a, made, false) > MOST_COPIES)
    refuse(p, "the kernel becomes too large with copies and lanes inside of copies");
}

const node *law_list_apply(laws *l, const node *sink, const law_list *list) {
  applying p = {.l = l, .a = ir_arena(l->g), .sink = sink};
  node_list order = topo_sort(p.a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE) define(&p, law_id(order.at[i]), order.at[i]);
  for (size_t i = 0; i < list->n; i++) {
    p.line = &list->at[i];
    p.number = i + 1;
    apply_line(&p);
  }
  return p.sink;
}
