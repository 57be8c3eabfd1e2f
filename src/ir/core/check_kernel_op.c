/* Implements the per-op well-formedness rules of kernels: binders (STAGE, FOLD) and their readers,
   AFFINE, then storage and control flow of lowered kernels, and the parts of a program. */
#include "ir/core/affine.h"
#include "ir/core/binder_layout.h"
#include "ir/core/check_op.h"

static bool distinct_nodes(const node *const *n, size_t count) {
  for (size_t i = 1; i < count; i++)
    for (size_t k = 0; k < i; k++)
      if (n[i] == n[k]) return false;
  return true;
}

const char *check_op_range(const node_spec *s) {
  const node *extent = s->src[0];
  if (!check_is_scalar(extent)) return "an extent is a scalar";
  if (extent->hi < 0) return "an extent below 0";
  if (s->ints[0] < 0 || s->ints[0] == INT64_MAX) return "no number of a range";
  if (s->ints[1] < 0 || s->ints[1] >= KIND_LIMIT) return "no kind of range";
  return s->ints[2] < 0 || s->ints[3] < 0 ? "a negative number" : NULL;
}

/** Checks the sources of a binder that follow its states: arrays, ranges and pins. */
static const char *check_arrays(const node_spec *s, const binder_layout *p) {
  const node *const *ranges = s->src + p->ranges;
  size_t coords = p->extents - p->coords;
  for (size_t i = 0; i < p->arrays; i++)
    if (!check_is_value(s->src[p->values + i]) || s->src[p->values + i]->rank)
      return s->op == OP_STAGE ? "a stage's values are scalars" : "a fold emits scalars";
  if (!check_all(check_is_index, s->src + p->coords, coords))
    return "a coordinate that is no index";
  if (!check_all(check_is_size, s->src + p->extents, coords))
    return "an extent that is no index, or is negative";
  if (!check_all(check_is_range, ranges, p->n_ranges)) return "a binder binds ranges";
  if (!distinct_nodes(ranges, p->n_ranges)) return "a binder binds a range twice";
  return check_all(check_is_index, s->src + p->pins, p->n_pins) ? NULL : "a pin that is no index";
}

const char *check_op_stage(const node_spec *s) {
  const char *why = binder_check_layout(s->op, s->ints, s->n_int, s->n_src);
  if (why) return why;
  binder_layout p = binder_layout_of(s->op, s->ints);
  return check_arrays(s, &p);
}

static bool has_component(const node *n, int64_t which) {
  return n->op == OP_STAGE && which >= 0 && (size_t)which < stage_n_values(n);
}

static bool same_extents(const node *a, const node *b, size_t which) {
  size_t rank = stage_rank(a, which);
  if (stage_rank(b, which) != rank) return false;
  for (size_t i = 0; i < rank; i++)
    if (stage_extents(a, which)[i] != stage_extents(b, which)[i]) return false;
  return true;
}

static const char *check_array_state(const node *init, const node *step, int64_t which) {
  if (!has_component(step, which)) return "an array steps by a component of a stage";
  const node *value = stage_value(step, (size_t)which);
  if (init->op != OP_STAGE) {
    if (!check_is_scalar(init)) return "an array starts as a scalar or a stage";
  } else {
    if (!has_component(init, which)) return "an array starts as the component that it steps by";
    if (!same_extents(init, step, (size_t)which)) return "a step of another shape than its start";
    init = stage_value(init, (size_t)which);
  }
  return init->dtype == value->dtype ? NULL : "a step of another type than its start";
}

static const char *check_fold_state(const node *init, const node *step, int64_t o, int64_t which) {
  const char *why = NULL;
  if (which != -1)
    why = check_array_state(init, step, which);
  else if (!check_is_scalar(init) || !check_is_scalar(step))
    why = "a state is a scalar, or a component of a stage";
  else if (init->dtype != step->dtype)
    why = "a step of another type than its start";
  if (why || o == -1) return why;
  const node *value = which < 0 ? step : stage_value(step, (size_t)which);
  return check_reduces(o, (dtype)value->dtype) ? NULL : "not an op that reduces this type";
}

const char *check_op_fold(const node_spec *s) {
  const char *why = binder_check_layout(s->op, s->ints, s->n_int, s->n_src);
  if (why) return why;
  binder_layout p = binder_layout_of(s->op, s->ints);
  for (size_t i = 0; i < p.states && !why; i++)
    why = check_fold_state(s->src[i], s->src[p.states + i], fold_op_of(s->ints, i),
                           fold_component_of(s->ints, i));
  return why ? why : check_arrays(s, &p);
}

const char *check_op_state(const node_spec *s) {
  if (!check_is_range(s->src[0])) return "a state is known by its fold's innermost range";
  return s->ints[0] < 0 ? "a negative number" : NULL;
}

/** Writes the rank and type of a component that INDEX reads; false if there is no such component.
    The rank of a STATE is unknown here (SIZE_MAX): only its FOLD has it. */
static bool find_component(const node *of, int64_t which, size_t *rank, dtype *type) {
  size_t n = of->op == OP_STAGE  ? stage_n_values(of)
             : of->op == OP_FOLD ? fold_n_states(of) + fold_n_emits(of)
                                 : 1;
  if (which < 0 || (size_t)which >= n) return false;
  size_t i = (size_t)which;
  *rank = of->op == OP_STAGE   ? stage_rank(of, i)
          : of->op == OP_FOLD  ? fold_rank(of, i)
          : of->op == OP_PARAM ? of->n_src
                               : SIZE_MAX;
  *type = of->op == OP_STAGE  ? (dtype)stage_value(of, i)->dtype
          : of->op == OP_FOLD ? fold_dtype(of, i)
                              : (dtype)of->dtype;
  return true;
}

const char *check_op_index(const node_spec *s) {
  const node *of = s->src[0];
  size_t rank;
  dtype type;
  if (of->op != OP_STAGE && of->op != OP_FOLD && of->op != OP_STATE && of->op != OP_PARAM)
    return "index reads a stage, a fold, a state or a param";
  if (!find_component(of, s->ints[0], &rank, &type)) return "no such component";
  if (type != s->dtype) return "index of another type than what it reads";
  if (rank != SIZE_MAX && rank != s->n_src - 1) return "wrong number of coordinates";
  if (s->n_src - 1 > IR_MAX_RANK) return check_too_many_dims;
  return check_all(check_is_index, s->src + 1, s->n_src - 1) ? NULL
                                                             : "a coordinate that is no index";
}

static bool has_extents(const node *param, const node *stage, size_t value) {
  size_t rank = stage_rank(stage, value);
  if (param->n_src != rank) return false;
  for (size_t i = 0; i < rank; i++)
    if (param->src[i] != stage_extents(stage, value)[i]) return false;
  return true;
}

const char *check_op_out(const node_spec *s) {
  const node *stage = s->src[s->n_src - 1];
  if (stage->op != OP_STAGE) return "out ends in a stage";
  if (stage_n_values(stage) != s->n_src - 1) return "out needs a param for each value of its stage";
  for (size_t i = 0; i + 1 < s->n_src; i++) {
    if (s->src[i]->op != OP_PARAM) return "out writes params";
    if (s->src[i]->dtype != stage_value(stage, i)->dtype) return "out of another type";
    if (!has_extents(s->src[i], stage, i)) return "out of another shape";
  }
  return NULL;
}

const char *check_op_affine(const node_spec *s) {
  if (s->n_int != s->n_src + 1) return "affine needs an offset and a factor for each source";
  if (s->n_src > IX_MAX_TERMS) return "too many terms";
  if (!s->n_src || (s->n_src == 1 && s->ints[1] == 1 && !s->ints[0]))
    return "a constant or one node is no affine form";
  if (!check_all(check_is_index, s->src, s->n_src)) return "a term that is no index";
  for (size_t i = 0; i < s->n_src; i++) {
    if (!s->ints[i + 1]) return "a factor of 0";
    if (s->src[i]->op == OP_AFFINE || s->src[i]->op == OP_CONST) return "a term that is no atom";
    if (i && s->src[i - 1]->id >= s->src[i]->id)
      return "terms of an affine form are distinct and in the order of their nodes";
  }
  return NULL;
}

const char *check_op_distinct(const node_spec *s) {
  return check_all(check_is_index, s->src, s->n_src) ? NULL : "a source that is no index";
}

/* Lowered kernels. */

static bool is_storage(const node *n) {
  return n->op == OP_PARAM || n->op == OP_ALLOC || n->op == OP_AFTER;
}

/** A scope source of an ALLOC or STORE: a range, or the number that an expanded range became. */
static bool is_scope(const node *n) { return check_is_range(n) || n->op == OP_CONST; }

const char *check_op_alloc(const node_spec *s) {
  if (!check_is_address(s->src[0]) || s->src[0]->hi < 0)
    return "a size that is no index, or is negative";
  if (!check_all(is_scope, s->src + 1, s->n_src - 1)) return "the place of an alloc is ranges";
  if (s->ints[0] < 0 || s->ints[0] == INT64_MAX) return "no number of an alloc";
  if (s->n_int > 2 && s->ints[2] < 2) return "several slots are two or more";
  return s->ints[1] < 0 || s->ints[1] > SPACE_GROUP ? "a space is 0 to 3" : NULL;
}

const char *check_op_wait(const node_spec *s) {
  if (!check_all(is_scope, s->src, s->n_src)) return "the place of a wait is ranges";
  return s->ints[0] < -1 ? "a number of copies is not negative" : NULL;
}

const char *check_op_barrier(const node_spec *s) {
  bool is_team = s->ints[1] == SPACE_WARP || s->ints[1] == SPACE_GROUP;
  return is_team && s->ints[0] >= 0 ? NULL : "a warp or a group meets";
}

const char *check_op_load(const node_spec *s) {
  if (!is_storage(s->src[0])) return "load reads a param or an alloc";
  if (s->src[0]->dtype != s->dtype) return "load of another type";
  if (!check_is_address(s->src[1])) return "an address that is no index";
  if (s->n_src == 2) return s->n_int ? "only a tile has columns" : NULL;
  if (!check_is_address(s->src[2])) return "a distance of rows that is no index";
  bool has_rows = s->n_int && s->ints[0] > 0 && s->lanes % s->ints[0] == 0;
  return has_rows ? NULL : "a tile has whole rows";
}

/** True for a store of what a LOAD of a PARAM has, to memory that workers share. */
static bool is_copy_of_param(const node_spec *store) {
  const node *to = node_storage_root(store->src[0]), *from = store->src[2];
  return to->op == OP_ALLOC && space_is_shared(to->ints[1]) && from->op == OP_LOAD &&
         from->n_src == 2 && from->src[0]->op == OP_PARAM;
}

const char *check_op_store(const node_spec *s) {
  const node *value = s->src[2];
  if (!is_storage(s->src[0])) return "store writes a param or an alloc";
  if (!check_is_address(s->src[1])) return "an address that is no index";
  if (!check_is_value(value) || value->rank) return "store takes a value";
  if (!check_all(is_scope, s->src + 3, s->n_src - 3)) return "the place of a store is ranges";
  if (s->n_int > 1 || (s->n_int && s->ints[0] != STORE_NONTEMPORAL && s->ints[0] != STORE_AHEAD))
    return "store may be marked with a 1 or a 2 only";
  if (s->n_int && s->ints[0] == STORE_AHEAD && !is_copy_of_param(s))
    return "an element of a param is copied to memory that workers share";
  return value->dtype == s->src[0]->dtype ? NULL : "store of another type";
}

const char *check_op_prefetch(const node_spec *s) {
  if (!is_storage(s->src[0])) return "prefetch touches a param or an alloc";
  if (!check_is_address(s->src[1])) return "an address that is no index";
  return check_all(is_scope, s->src + 2, s->n_src - 2) ? NULL : "the place of a prefetch is ranges";
}

const char *check_op_after(const node_spec *s) {
  return is_storage(s->src[0]) ? NULL : "after orders a param or an alloc";
}

const char *check_op_end(const node_spec *s) {
  return check_is_range(s->src[0]) ? NULL : "end closes a range";
}

const char *check_op_special(const node_spec *s) {
  if (!s->n_text) return "a launch index needs a name";
  return check_is_scalar(s->src[0]) && s->src[0]->hi >= 0 ? NULL : "a size that is negative";
}

const char *check_op_device(const node_spec *s) {
  return s->n_text ? NULL : "a device needs a name";
}

const char *check_op_program(const node_spec *s) {
  static const op parts[] = {OP_SINK, OP_DEVICE, OP_LINEAR, OP_SOURCE, OP_BINARY};
  for (size_t i = 0; i < s->n_src; i++)
    if (s->src[i]->op != parts[i]) return "a program is sink, device, linear, source, binary";
  return NULL;
}
