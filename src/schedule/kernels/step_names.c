/* Names each step of a schedule after the labels of the values that it computes, without repeated
   folders. Where there are none, the values are parts of a labelled one, which gives the step its
   name, as an operator that takes several kernels has its label at its result; or they follow from
   one, as the number of elements that a selection has. Else their ops do. */
#include "schedule/kernels/step_names.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 100 }; /* bytes after which a name lists no further word */

typedef struct naming {
  arena *arena; /* of the names */
  arena *work;
  const schedule_label *labels;
  map first;    /* tensor of a value → its last label + 1 */
  size_t *next; /* of each label: the previous one of the same value, + 1 */
  map whole;    /* tensor of a value → the last label of a value that it is a part of, or else of
                   one that it follows from, + 1 */
} naming;

/** The tensor of the value that a node is or moves; NULL: none. */
static const node *value_tensor(const values *v, const node *n) {
  while (!map_has(&v->of, n)) {
    if (op_facts_of((op)n->op)->cls != CLASS_MOVEMENT || !n->n_src) return NULL;
    n = n->src[0];
  }
  return ((const value *)map_get(&v->of, n))->tensor;
}

static void find_labels(naming *m, const schedule_request *r, const normalised *n,
                        const values *v) {
  m->next = arena_calloc(m->work, r->n_labels + 1, sizeof *m->next);
  for (size_t i = 0; i < r->n_labels; i++) {
    const node *t = *r->labels[i].text ? value_tensor(v, n->labelled[i]) : NULL;
    if (!t) continue;
    m->next[i] = (size_t)(uintptr_t)map_get(&m->first, t);
    map_set(m->work, &m->first, t, (void *)(uintptr_t)(i + 1));
  }
}

/** The last label of the first of some tensors that have one by now, + 1; NULL: none has. */
static void *first_label(const naming *m, const node_list *tensors) {
  void *label = NULL;
  for (size_t i = 0; !label && i < tensors->n; i++) label = map_get(&m->whole, tensors->at[i]);
  return label;
}

/** Gives the label of a value to those of some operands that have none of their own. */
static void give_label(naming *m, const node_list *operands, void *label) {
  for (size_t i = 0; i < operands->n; i++)
    if (!map_has(&m->first, operands->at[i])) map_set(m->work, &m->whole, operands->at[i], label);
}

/** Finds the labelled values that others are parts of: of several readers, the first one's. Then
    those that the rest follow from. */
static void find_wholes(naming *m, const values *v) {
  for (size_t i = v->at.n; i-- > 0;) {
    const value *x = v->at.at[i];
    void *own = map_get(&m->first, x->tensor), *label = own ? own : map_get(&m->whole, x->tensor);
    if (!label) continue;
    map_set(m->work, &m->whole, x->tensor, label);
    give_label(m, &x->inputs.tensors, label);
    give_label(m, &x->inputs.arrays, label);
  }
  for (size_t i = 0; i < v->at.n; i++) {
    const value *x = v->at.at[i];
    if (map_has(&m->whole, x->tensor)) continue;
    void *label = first_label(m, &x->inputs.tensors);
    for (size_t k = 0; !label && k < x->inputs.items.n; k++)
      label = map_get(&m->whole, x->inputs.items.at[k].element);
    if (label) map_set(m->work, &m->whole, x->tensor, label);
  }
}

static int by_number(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

typedef VEC(const char *) words;

/** A word without the leading folders that it shares with the word before. */
static const char *skip_shared_folders(const char *word, const char *before) {
  const char *from = word;
  for (; *word && *word == *before; before++)
    if (*word++ == '/') from = word;
  return from;
}

/** Joins the words, each once, up to the longest name. */
static const char *join_words(arena *a, const words *w) {
  str s = str_new(a);
  size_t more = 0;
  for (size_t i = 0; i < w->n; i++) {
    bool is_new = true;
    for (size_t k = 0; k < i && is_new; k++) is_new = strcmp(w->at[i], w->at[k]);
    if (is_new && s.n >= LONGEST) more++;
    if (is_new && s.n < LONGEST)
      str_addf(&s, "%s%s", s.n ? ", " : "",
               i ? skip_shared_folders(w->at[i], w->at[i - 1]) : w->at[i]);
  }
  if (more) str_addf(&s, " and %zu more", more);
  return str_text(&s);
}

/** The labels of a step's values by a map of these, `all` of each value or the last one. */
static const char *labels_name(naming *m, const schedule_step *s, const map *of, bool all) {
  VEC(size_t) found = {0};
  words w = {0};
  for (size_t i = 0; i < s->values.n; i++) {
    size_t l = (size_t)(uintptr_t)map_get(of, s->values.at[i]);
    for (; l; l = all ? m->next[l - 1] : 0) vec_push(m->work, &found, l - 1);
  }
  if (found.n) qsort(found.at, found.n, sizeof *found.at, by_number);
  for (size_t i = 0; i < found.n; i++) vec_push(m->work, &w, m->labels[found.at[i]].text);
  return join_words(m->arena, &w);
}

static const char *ops_name(naming *m, const schedule_step *s) {
  words w = {0};
  if (!s->values.n) return "copy";
  for (size_t i = 0; i < s->values.n; i++) {
    const node *t = s->values.at[i];
    const char *word = op_name((op)t->op);
    if (t->op == OP_RESULT) word = "loop";
    if (t->op == OP_REDUCE) word = arena_printf(m->work, "%s %s", word, op_name((op)t->ints[0]));
    vec_push(m->work, &w, word);
  }
  return join_words(m->arena, &w);
}

void step_names_set(ir *g, const schedule_request *r, const normalised *n, const values *v,
                    schedule *s) {
  naming m = {.arena = ir_arena(g), .work = ir_scratch(g), .labels = r->labels};
  arena_mark here = arena_save(m.work);
  find_labels(&m, r, n, v);
  find_wholes(&m, v);
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    step->name = labels_name(&m, step, &m.first, true);
    if (!*step->name) step->name = labels_name(&m, step, &m.whole, false);
    if (!*step->name) step->name = ops_name(&m, step);
  }
  arena_rewind(m.work, here);
}
