/* Finds arrays of FOLDs (states and emitted values) that lie in the kernel's outputs. A STAGE that
   merely copies such an array to an OUT's param is not needed: the FOLD writes there itself. That
   holds where nothing else reads the array, the STAGE's ranges along the array are its coordinates
   there, one for each axis, of equal extents, and the FOLD runs inside of all other ranges; where
   the kernel reads the param only to start the state, or those of nests for other elements of it,
   with what it holds; and where no element of the copy is stored twice, as a FOLD that runs anew
   there would overwrite results, or update them again. States of which each step writes all
   elements are accumulators, for registers: they do not lie in outputs. In a kernel for teams, all
   digits are the STAGE's own, so that its elements part the workers. */
#include "codegen/lower/lowering.h"
#include "ir/index/write_once.h"

typedef struct search {
  lowering *l;
  map users;       /* INDEX of a FOLD → its only user, NULL: several */
  node_list reads; /* INDEXes of PARAMs */
  node_list outs;
} search;

static void note_user(search *s, const node *n) {
  for (uint32_t i = 0; i < n->n_src; i++) {
    const node *x = n->src[i];
    if (x->op != OP_INDEX || x->src[0]->op != OP_FOLD) continue;
    bool only = !map_has(&s->users, x) && n->op == OP_STAGE;
    map_set(s->l->a, &s->users, x, only ? (void *)n : NULL);
  }
  if (n->op == OP_INDEX && n->src[0]->op == OP_PARAM) vec_push(s->l->a, &s->reads, n);
  if (n->op == OP_OUT) vec_push(s->l->a, &s->outs, n);
}

/** The axis of an array, among those without one of the param yet, along which the k-th coordinate
    of the param goes: a RANGE that both have, or an axis of size 1. The rank if there is none. */
static size_t axis_along(const output_part *p, size_t k, size_t rank) {
  const node *at = p->at[k];
  for (size_t a = 0; a < rank; a++) {
    bool is_taken = false;
    for (size_t i = 0; i < k; i++) is_taken |= p->axis[i] == a;
    bool is_same = at->op == OP_RANGE || node_is_bits(p->param->dims[k], 1);
    if (!is_taken && is_same && at == p->own[a]) return a;
  }
  return rank;
}

/** The part of a param that a value of an OUT's STAGE copies to; NULL: it is no such copy. */
static output_part *part_of(search *s, const node *out, size_t i) {
  const node *stage = out->src[out->n_src - 1], *v = stage_value(stage, i), *param = out->src[i];
  const node *const *at = stage_coords(stage, i);
  if (v->op != OP_INDEX || v->src[0]->op != OP_FOLD || map_get(&s->users, v) != stage) return NULL;
  size_t rank = v->n_src - 1u, component = (size_t)v->ints[0], found = 0;
  const node *const *extents = fold_extents(v->src[0], component);
  if (!rank) return NULL;
  output_part *p = arena_alloc(s->l->a, sizeof *p);
  *p = (output_part){.param = param, .at = at, .own = v->src + 1};
  for (size_t k = 0; k < param->rank; k++) {
    size_t axis = p->axis[k] = axis_along(p, k, rank);
    if (axis < rank) {
      found++;
      if (extents[axis] != param->dims[k]) return NULL;
      if (at[k]->op == OP_RANGE && range_extent(at[k]) != param->dims[k]) return NULL;
    } else if (node_reads_memory(s->l->g, at[k])) {
      return NULL;
    }
    for (size_t a = 0; a < rank; a++)
      if (a != axis && p->own[a]->op == OP_RANGE && node_is_free_in(p->own[a], at[k])) return NULL;
  }
  return found == rank ? p : NULL;
}

bool lower_starts_as_output(const node *fold, size_t state, const output_part *part) {
  const node *init = fold_init(fold, state), *param = part->param;
  if (init->op != OP_STAGE) return false;
  size_t c = (size_t)fold_component(fold, state), rank = stage_rank(init, c);
  const node *v = stage_value(init, c), *const *own = stage_coords(init, c);
  if (v->op != OP_INDEX || v->src[0] != param || !stage_spans_array(init, c)) return false;
  for (size_t k = 0; k < param->rank; k++) {
    const node *want = part->axis[k] < rank ? own[part->axis[k]] : part->at[k];
    if (v->src[1 + k] != want) return false;
  }
  return true;
}

/** The INDEX by which a component of a FOLD starts as what a part of an output holds; NULL: it does
    not. */
static const node *start_read(const node *fold, size_t component, const output_part *p) {
  if (component >= fold_n_states(fold) || !lower_starts_as_output(fold, component, p)) return NULL;
  return stage_value(fold_init(fold, component), (size_t)fold_component(fold, component));
}

/** True for a read by which a state of some output's nest starts as what it is stored to. */
static bool starts_a_state(search *s, const node *read) {
  for (size_t k = 0; k < s->outs.n; k++) {
    const node *out = s->outs.at[k], *stage = out->src[out->n_src - 1];
    for (size_t i = 0; i + 1 < out->n_src; i++) {
      const output_part *p = out->src[i] == read->src[0] ? part_of(s, out, i) : NULL;
      const node *v = stage_value(stage, i);
      if (p && start_read(v->src[0], (size_t)v->ints[0], p) == read) return true;
    }
  }
  return false;
}

/** True if the kernel reads the param only to start states as what it holds: this one, and those of
    other nests, which read what they store. */
static bool is_read_alone(search *s, const node *fold, size_t component, const output_part *p) {
  const node *own = start_read(fold, component, p);
  for (size_t i = 0; i < s->reads.n; i++) {
    const node *read = s->reads.at[i];
    if (read->src[0] == p->param && read != own && !starts_a_state(s, read)) return false;
  }
  return true;
}

/** True if no element of a param is stored twice that an OUT's nest stores as its i-th value. */
static bool is_stored_once(const search *s, const node *out, size_t i) {
  const node *stage = out->src[out->n_src - 1];
  for (size_t k = 0; k < s->outs.n; k++) {
    const node *other = s->outs.at[k], *nest = other->src[other->n_src - 1];
    for (size_t v = 0; v + 1 < other->n_src; v++)
      if (other->src[v] == out->src[i] && (other != out || v != i) &&
          !stages_write_apart(s->l->g, stage, i, nest, v))
        return false;
  }
  return stage_writes_once(stage, i);
}

static bool is_own(const output_part *p, size_t rank, const node *range) {
  for (size_t i = 0; i < rank; i++)
    if (p->own[i] == range) return true;
  return false;
}

/** True if the STAGE's ranges are those of the array, and others inside of which the FOLD runs. */
static bool ranges_fit(const node *stage, const node *fold, const output_part *p, size_t rank) {
  size_t own = 0, ranges = 0;
  for (size_t a = 0; a < rank; a++) ranges += p->own[a]->op == OP_RANGE;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    bool mine = is_own(p, rank, r);
    if (mine && range_kind_of(r) != KIND_LOOP) return false;
    if (mine == node_is_free_in(r, fold)) return false;
    own += mine;
  }
  return own == ranges;
}

/** True if the i-th value of a STAGE is fit for outputs: an array that lies in one, with the ranges
    of the first one, or a value free of those ranges. */
static bool value_fits(const node *stage, size_t i, output_part *const parts[], size_t first) {
  const node *v = stage_value(stage, i), *head = stage_value(stage, first);
  size_t rank = head->n_src - 1u;
  for (size_t k = 0; k < stage_n_ranges(stage); k++) {
    const node *r = stage_range(stage)[k];
    bool own = is_own(parts[first], rank, r);
    if (parts[i] && own != is_own(parts[i], v->n_src - 1u, r)) return false;
    if (parts[i] || !own) continue;
    if (node_is_free_in(r, v)) return false;
    for (size_t c = 0; c < stage_rank(stage, i); c++)
      if (node_is_free_in(r, stage_coords(stage, i)[c])) return false;
  }
  return true;
}

bool lower_parts_workers(const lowering *l, const node *stage) {
  const team_digits *t = &l->teams.digits;
  for (size_t i = 0; i < t->all.n; i++) {
    bool is_own = false;
    for (size_t k = 0; k < stage_n_ranges(stage); k++) {
      const node *r = stage_range(stage)[k];
      is_own |= range_is_digit(r) && team_digits_find(t, r) == &t->all.at[i];
    }
    if (!is_own) return false;
  }
  return true;
}

static void find_parts(search *s, const node *out) {
  lowering *l = s->l;
  const node *stage = out->src[out->n_src - 1];
  size_t n = stage_n_values(stage), first = n;
  output_part **parts = arena_calloc(l->a, n + 1, sizeof *parts);
  if (map_get(&l->direct, stage) != out || !lower_parts_workers(l, stage)) return;
  for (size_t i = 0; i < n; i++) {
    const node *v = stage_value(stage, i);
    output_part *p = part_of(s, out, i);
    if (!p || !stage_placed_fold(stage, i) || !ranges_fit(stage, v->src[0], p, v->n_src - 1u) ||
        !is_read_alone(s, v->src[0], (size_t)v->ints[0], p) || !is_stored_once(s, out, i) ||
        nodes_contain(stage->src, i, v) || lower_output_of(l, v->src[0], (size_t)v->ints[0]))
      continue;
    parts[i] = p;
    if (first == n) first = i;
  }
  for (size_t i = 0; i < n; i++)
    if (first == n || !value_fits(stage, i, parts, first)) return;
  for (size_t i = 0; i < n; i++)
    if (parts[i]) map_set(l->a, &l->outputs, stage_value(stage, i), parts[i]);
}

void lower_find_outputs(lowering *l, const node_list *order) {
  search s = {.l = l};
  for (size_t i = 0; i < order->n; i++) note_user(&s, order->at[i]);
  for (size_t i = 0; i < s.outs.n; i++) find_parts(&s, s.outs.at[i]);
}

const output_part *lower_output_of(const lowering *l, const node *fold, size_t component) {
  for (size_t i = 0; i < l->outputs.n; i++) {
    const node *v = l->outputs.at[i].key;
    if (v->src[0] == fold && v->ints[0] == (int64_t)component) return l->outputs.at[i].value;
  }
  return NULL;
}

bool lower_has_outputs(const lowering *l, const node *stage) {
  for (size_t i = 0; l->outputs.n && i < stage_n_values(stage); i++)
    if (map_has(&l->outputs, stage_value(stage, i))) return true;
  return false;
}

bool lower_is_own_range(const lowering *l, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *v = stage_value(stage, i);
    const output_part *p = map_get(&l->outputs, v);
    if (p && is_own(p, v->n_src - 1u, range)) return true;
  }
  return false;
}
