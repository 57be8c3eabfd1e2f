/* What a well-formed node is. Each rule returns NULL or what is wrong. Rules look at a node and its
   sources only; what concerns a whole graph is verify.c's. */
#include "ir/loop.h"

enum { MOST_SOURCES = 1 << 24 };

static const char too_many_dims[] = "more than 31 dimensions";
_Static_assert(IR_MOST_RANK == 31, "what too_many_dims says");

/* Kinds of operands. */

static bool is_binder(const node *n) { return n->op == OP_STAGE || n->op == OP_FOLD; }

/** Whether elementwise ops can take it. */
static bool is_value(const node *n) {
  return n->dtype != DT_VOID && n->op != OP_STATE && n->op != OP_ALLOC && n->op != OP_AFTER;
}

static bool is_scalar(const node *n) { return is_value(n) && !n->rank && n->lanes == 1; }
static bool is_index(const node *n) { return is_scalar(n) && n->dtype == DT_INDEX; }

/** Index nodes are given 32 or 64 bits by a late pass. */
static bool is_address(const node *n) {
  return is_scalar(n) && (n->dtype == DT_INDEX || dtype_is_int((dtype)n->dtype));
}

static bool is_size(const node *n) { return is_index(n) && n->hi >= 0; }

static bool all(bool (*is)(const node *n), const node *const *src, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!is(src[i])) return false;
  return true;
}

static bool is_range(const node *n) { return n->op == OP_RANGE; }

static bool distinct(const node *const *n, size_t count) {
  for (size_t i = 1; i < count; i++)
    for (size_t k = 0; k < i; k++)
      if (n[i] == n[k]) return false;
  return true;
}

static bool distinct_below(const int64_t *v, size_t n, size_t limit) {
  uint64_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    if (v[i] < 0 || (uint64_t)v[i] >= limit || (seen >> v[i] & 1)) return false;
    seen |= UINT64_C(1) << v[i];
  }
  return true;
}

/** Whether an op may combine the values of a reduction. */
static bool reduces(int64_t o, dtype t) {
  uint64_t start;
  return o >= 0 && o < OP_LIMIT && (op_get((op)o)->facts & FACT_ASSOCIATIVE) &&
         op_takes((op)o, t) && op_identity((op)o, t, &start);
}

/** The number of elements, if all dimensions are constants and it fits. */
static bool known_size(const node *const *dims, size_t rank, int64_t *size) {
  bool fits = true, empty = false;
  *size = 1;
  for (size_t i = 0; i < rank; i++) {
    if (dims[i]->op != OP_CONST) return false;
    empty |= !node_int(dims[i]);
    fits &= !__builtin_mul_overflow(*size, node_int(dims[i]), size);
  }
  if (empty) *size = 0;
  return fits || empty;
}

/* Movement. */

static const char *check_sizes(const node *const *dims, size_t rank) {
  if (rank > IR_MOST_RANK) return too_many_dims;
  return all(is_size, dims, rank) ? NULL : "a size that is no index, or is negative";
}

static const char *check_reshape(const node_spec *s) {
  int64_t before, after;
  const node *x = s->src[0];
  const char *why = check_sizes(s->src + 1, s->n_src - 1);
  if (why) return why;
  if (known_size(x->dims, x->rank, &before) && known_size(s->src + 1, s->n_src - 1, &after) &&
      before != after)
    return "reshape changes the number of elements";
  return NULL;
}

static const char *check_expand(const node_spec *s) {
  const node *x = s->src[0];
  if (s->n_src - 1 != x->rank) return "expand changes the number of dimensions";
  for (size_t i = 0; i < x->rank; i++)
    if (s->src[i + 1] != x->dims[i] && !node_is_bits(x->dims[i], 1))
      return "expand repeats a dimension that is not 1";
  return check_sizes(s->src + 1, x->rank);
}

static const char *check_permute(const node_spec *s) {
  size_t rank = s->src[0]->rank;
  return s->n_int == rank && distinct_below(s->ints, rank, rank) ? NULL
                                                                 : "not a permutation of the axes";
}

/** Whether start, start + step, …, `size` of them, lie in 0 … dim − 1, as far as numbers are
    known. */
static bool slice_is_inside(const node *start, const node *size, int64_t step, const node *dim) {
  int64_t last;
  if (start->op != OP_CONST || size->op != OP_CONST || dim->op != OP_CONST) return true;
  if (!node_int(size)) return true;
  if (__builtin_mul_overflow(step, node_int(size) - 1, &last) ||
      __builtin_add_overflow(last, node_int(start), &last))
    return false;
  return node_int(start) >= 0 && node_int(start) < node_int(dim) && last >= 0 &&
         last < node_int(dim);
}

static const char *check_slice(const node_spec *s) {
  const node *x = s->src[0], *const *starts = s->src + 1, *const *sizes = starts + x->rank;
  if (s->n_src != 1 + 2 * (size_t)x->rank) return "slice needs a start and a size for each axis";
  if (s->n_int != x->rank) return "slice needs a step for each axis";
  if (!all(is_index, starts, x->rank)) return "a start that is no index";
  const char *why = check_sizes(sizes, x->rank);
  for (size_t i = 0; i < x->rank && !why; i++) {
    if (!s->ints[i]) why = "a step of 0";
    if (!slice_is_inside(starts[i], sizes[i], s->ints[i], x->dims[i]))
      why = "slice reads outside its source";
  }
  return why;
}

static bool pad_is_inside(const node *low, const node *dim, const node *size) {
  int64_t end;
  if (low->op != OP_CONST || dim->op != OP_CONST || size->op != OP_CONST) return true;
  return !__builtin_add_overflow(node_int(low), node_int(dim), &end) && end <= node_int(size);
}

static const char *check_pad(const node_spec *s) {
  const node *x = s->src[0], *const *lows = s->src + 2, *const *sizes = lows + x->rank;
  if (s->n_src != 2 + 2 * (size_t)x->rank) return "pad needs a low and a size for each axis";
  if (!is_scalar(s->src[1]) || s->src[1]->dtype != x->dtype)
    return "pad's value is no scalar of the source's type";
  if (!all(is_size, lows, x->rank)) return "a low padding that is no index, or is negative";
  const char *why = check_sizes(sizes, x->rank);
  for (size_t i = 0; i < x->rank && !why; i++)
    if (!pad_is_inside(lows[i], x->dims[i], sizes[i])) why = "pad cuts its source";
  return why;
}

static const char *check_gather(const node_spec *s) {
  if (s->n_src - 1 != s->src[0]->rank) return "gather needs an index tensor for each axis";
  for (size_t i = 1; i < s->n_src; i++) {
    if (!is_value(s->src[i]) || s->src[i]->dtype != DT_I64) return "gather's indices are i64";
    if (!ir_same_shape(s->src[i], s->src[1])) return "gather's index tensors differ in shape";
  }
  return NULL;
}

static const char *check_reduce(const node_spec *s) {
  const node *x = s->src[0];
  if (!reduces(s->ints[0], (dtype)x->dtype)) return "not an op that reduces this type";
  return distinct_below(s->ints + 1, s->n_int - 1, x->rank)
             ? NULL
             : "reduced axes are not distinct axes of the source";
}

static const char *check_set(const node_spec *s) {
  const node *old = s->src[0], *view = s->src[1], *value = s->src[2];
  if (!all(is_value, s->src, 3)) return "set takes tensors";
  if (view->dtype != old->dtype || value->dtype != old->dtype) return "set of another type";
  return ir_same_shape(view, value) ? NULL : "set needs a value of the view's shape";
}

static const char *check_custom(const node_spec *s) {
  int64_t uid = s->ints[0], output = s->ints[1], inputs = s->ints[2], writes = s->ints[3];
  if (uid < 0 || output < 0) return "a negative number";
  if (inputs < 0 || (uint64_t)inputs > s->n_src) return "more inputs than sources";
  if (inputs < 64 && (uint64_t)writes >> inputs) return "writes to an input that is not there";
  if (!all(is_value, s->src, (size_t)inputs)) return "custom takes tensors";
  return check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
}

static const char *check_kernel(const node_spec *s) {
  int64_t slot = s->ints[0], inputs = s->ints[1];
  if (slot < 0 || inputs < 0) return "a negative number";
  if ((uint64_t)inputs > s->n_src) return "more inputs than sources";
  if (!s->n_text) return "there is no kernel";
  if (!all(is_value, s->src, (size_t)inputs)) return "kernel takes tensors";
  return check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
}

/* Loops of tensors. */

static const char *check_loop(const node_spec *s) {
  int64_t states = s->ints[0], emits = s->ints[1];
  if (states < 0 || emits < 0 || states > MOST_SOURCES || emits > MOST_SOURCES ||
      s->n_src != 1 + 2 * (size_t)(states + emits))
    return "wrong number of sources";
  if (!is_range(s->src[0])) return "a loop counts by a range";
  const node *const *inits = s->src + 1, *const *steps = inits + states;
  const node *const *emitted = steps + states, *const *places = emitted + emits;
  if (!all(is_value, inits, (size_t)(2 * states + emits))) return "loop takes tensors";
  for (int64_t i = 0; i < states; i++)
    if (inits[i]->dtype != steps[i]->dtype || !ir_same_shape(inits[i], steps[i]))
      return "a step of another type or shape than its start";
  for (int64_t i = 0; i < emits; i++)
    if (emitted[i]->rank >= IR_MOST_RANK) return too_many_dims;
  return all(is_index, places, (size_t)emits) ? NULL : "a place that is no index";
}

static const char *check_carry(const node_spec *s) {
  if (!is_range(s->src[0])) return "a carry is known by its loop's range";
  if (s->ints[0] < 0) return "a negative number";
  return check_sizes(s->src + 1, s->n_src - 1);
}

static const char *check_result(const node_spec *s) {
  int64_t component = s->ints[0], inputs = s->ints[1], number = s->ints[2];
  const node *l = s->src[0], *sizes[IR_MOST_RANK + 1];
  if (component < 0 || inputs < 0 || number < 0) return "a negative number";
  if ((uint64_t)inputs > s->n_src) return "more inputs than sources";
  const char *why = check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
  if (why || number)
    return why || all(is_value, s->src, (size_t)inputs) ? why : "result of tensors";
  if (inputs != 1 || l->op != OP_LOOP) return "a result is of a loop";
  if ((size_t)component >= loop_results(l)) return "no such component";
  if (loop_result_dtype(l, (size_t)component) != s->dtype) return "result of another type";
  size_t n = loop_result_sizes(l, (size_t)component, sizes);
  bool same = n == s->n_src - 1;
  for (size_t i = 0; same && i < n; i++) same = sizes[i] == s->src[1 + i];
  return same ? NULL : "result of another shape";
}

/* Sources. */

static const char *check_const(const node_spec *s) {
  uint64_t bits = (uint64_t)s->ints[0];
  uint8_t memory[8];
  if (s->dtype == DT_BOOL) return bits > 1 ? "a bool is 0 or 1" : NULL;
  scalar_store(s->dtype, memory, bits);
  return scalar_load(s->dtype, memory) == bits ? NULL : "a number outside its type";
}

static const char *check_var(const node_spec *s) {
  if (!s->n_text) return "a variable needs a name";
  return s->ints[0] <= s->ints[1] ? NULL : "a variable's least value exceeds its greatest";
}

static const char *check_iota(const node_spec *s) {
  if (s->ints[0] < 0 || (uint64_t)s->ints[0] >= s->n_src) return "no such axis";
  return check_sizes(s->src, s->n_src);
}

static const char *check_buffer(const node_spec *s) {
  if (s->ints[0] < 0 || (s->op == OP_BUFFER && s->ints[1] < 0)) return "a negative number";
  if (s->n_src > IR_MOST_RANK) return too_many_dims;
  for (size_t i = 0; i < s->n_src; i++)
    if (!(s->op == OP_PARAM ? is_address(s->src[i]) : is_index(s->src[i])) || s->src[i]->hi < 0)
      return "a size that is no index, or is negative";
  return NULL;
}

/* Kernels. */

static const char *check_range(const node_spec *s) {
  const node *extent = s->src[0];
  if (!is_scalar(extent)) return "an extent is a scalar";
  if (extent->hi < 0) return "an extent below 0";
  if (s->ints[0] < 0 || s->ints[0] == INT64_MAX) return "no number of a range";
  if (s->ints[1] < 0 || s->ints[1] >= KIND_LIMIT) return "no kind of range";
  return s->ints[2] < 0 || s->ints[3] < 0 ? "a negative number" : NULL;
}

/** What a binder's arrays, ranges and pins are: all that follows its states. */
static const char *check_arrays(const node_spec *s, const binder_parts *p) {
  const node *const *ranges = s->src + p->ranges;
  size_t coords = p->extents - p->coords;
  for (size_t i = 0; i < p->arrays; i++)
    if (!is_value(s->src[p->values + i]) || s->src[p->values + i]->rank)
      return s->op == OP_STAGE ? "a stage's values are scalars" : "a fold emits scalars";
  if (!all(is_index, s->src + p->coords, coords)) return "a coordinate that is no index";
  if (!all(is_size, s->src + p->extents, coords))
    return "an extent that is no index, or is negative";
  if (!all(is_range, ranges, p->n_ranges)) return "a binder binds ranges";
  if (!distinct(ranges, p->n_ranges)) return "a binder binds a range twice";
  return all(is_index, s->src + p->pins, p->n_pins) ? NULL : "a pin that is no index";
}

static const char *check_stage(const node_spec *s) {
  const char *why = binder_objection(s->op, s->ints, s->n_int, s->n_src);
  if (why) return why;
  binder_parts p = binder_parts_of(s->op, s->ints);
  return check_arrays(s, &p);
}

static bool has_component(const node *n, int64_t which) {
  return n->op == OP_STAGE && which >= 0 && (size_t)which < stage_values(n);
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
    if (!is_scalar(init)) return "an array starts as a scalar or a stage";
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
  else if (!is_scalar(init) || !is_scalar(step))
    why = "a state is a scalar, or a component of a stage";
  else if (init->dtype != step->dtype)
    why = "a step of another type than its start";
  if (why || o == -1) return why;
  const node *value = which < 0 ? step : stage_value(step, (size_t)which);
  return reduces(o, (dtype)value->dtype) ? NULL : "not an op that reduces this type";
}

static const char *check_fold(const node_spec *s) {
  const char *why = binder_objection(s->op, s->ints, s->n_int, s->n_src);
  if (why) return why;
  binder_parts p = binder_parts_of(s->op, s->ints);
  for (size_t i = 0; i < p.states && !why; i++)
    why = check_fold_state(s->src[i], s->src[p.states + i], fold_op_of(s->ints, i),
                           fold_component_of(s->ints, i));
  return why ? why : check_arrays(s, &p);
}

static const char *check_state(const node_spec *s) {
  if (!is_range(s->src[0])) return "a state is known by its fold's innermost range";
  return s->ints[0] < 0 ? "a negative number" : NULL;
}

/** The rank and type of a component that INDEX may read; false if there is none. What a STATE's
    rank is, its fold knows. */
static bool component(const node *of, int64_t which, size_t *rank, dtype *type) {
  size_t n = of->op == OP_STAGE  ? stage_values(of)
             : of->op == OP_FOLD ? fold_states(of) + fold_emits(of)
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

static const char *check_index(const node_spec *s) {
  const node *of = s->src[0];
  size_t rank;
  dtype type;
  if (!is_binder(of) && of->op != OP_STATE && of->op != OP_PARAM)
    return "index reads a stage, a fold, a state or a param";
  if (!component(of, s->ints[0], &rank, &type)) return "no such component";
  if (type != s->dtype) return "index of another type than what it reads";
  if (rank != SIZE_MAX && rank != s->n_src - 1) return "wrong number of coordinates";
  if (s->n_src - 1 > IR_MOST_RANK) return too_many_dims;
  return all(is_index, s->src + 1, s->n_src - 1) ? NULL : "a coordinate that is no index";
}

static bool has_extents(const node *param, const node *stage, size_t value) {
  size_t rank = stage_rank(stage, value);
  if (param->n_src != rank) return false;
  for (size_t i = 0; i < rank; i++)
    if (param->src[i] != stage_extents(stage, value)[i]) return false;
  return true;
}

static const char *check_out(const node_spec *s) {
  const node *stage = s->src[s->n_src - 1];
  if (stage->op != OP_STAGE) return "out ends in a stage";
  if (stage_values(stage) != s->n_src - 1) return "out needs a param for each value of its stage";
  for (size_t i = 0; i + 1 < s->n_src; i++) {
    if (s->src[i]->op != OP_PARAM) return "out writes params";
    if (s->src[i]->dtype != stage_value(stage, i)->dtype) return "out of another type";
    if (!has_extents(s->src[i], stage, i)) return "out of another shape";
  }
  return NULL;
}

static const char *check_affine(const node_spec *s) {
  if (s->n_int != s->n_src + 1) return "affine needs an offset and a factor for each source";
  if (s->n_src > IX_MOST_TERMS) return "too many terms";
  if (!s->n_src || (s->n_src == 1 && s->ints[1] == 1 && !s->ints[0]))
    return "a constant or one node is no affine form";
  if (!all(is_index, s->src, s->n_src)) return "a term that is no index";
  for (size_t i = 0; i < s->n_src; i++) {
    if (!s->ints[i + 1]) return "a factor of 0";
    if (s->src[i]->op == OP_AFFINE || s->src[i]->op == OP_CONST) return "a term that is no atom";
    if (i && s->src[i - 1]->id >= s->src[i]->id)
      return "terms of an affine form are distinct and in the order of their nodes";
  }
  return NULL;
}

/* Lowered kernels. */

static bool is_storage(const node *n) {
  return n->op == OP_PARAM || n->op == OP_ALLOC || n->op == OP_AFTER;
}

/** A range, or a number: the copy that an expanded range left. */
static bool is_place(const node *n) { return is_range(n) || n->op == OP_CONST; }

static const char *check_alloc(const node_spec *s) {
  if (!is_address(s->src[0]) || s->src[0]->hi < 0) return "a size that is no index, or is negative";
  if (!all(is_place, s->src + 1, s->n_src - 1)) return "the place of an alloc is ranges";
  if (s->ints[0] < 0 || s->ints[0] == INT64_MAX) return "no number of an alloc";
  return s->ints[1] & ~INT64_C(1) ? "a space is 0 or 1" : NULL;
}

static const char *check_load(const node_spec *s) {
  if (!is_storage(s->src[0])) return "load reads a param or an alloc";
  if (s->src[0]->dtype != s->dtype) return "load of another type";
  if (s->n_int > 1) return "load may be marked with one distance only";
  return is_address(s->src[1]) ? NULL : "an address that is no index";
}

static const char *check_store(const node_spec *s) {
  const node *value = s->src[2];
  if (!is_storage(s->src[0])) return "store writes a param or an alloc";
  if (!is_address(s->src[1])) return "an address that is no index";
  if (!is_value(value) || value->rank) return "store takes a value";
  if (!all(is_place, s->src + 3, s->n_src - 3)) return "the place of a store is ranges";
  if (s->n_int > 1 || (s->n_int && s->ints[0] != 1)) return "store may be marked with a 1 only";
  return value->dtype == s->src[0]->dtype ? NULL : "store of another type";
}

static const char *check_after(const node_spec *s) {
  return is_storage(s->src[0]) ? NULL : "after orders a param or an alloc";
}

static const char *check_end(const node_spec *s) {
  return is_range(s->src[0]) ? NULL : "end closes a range";
}

static const char *check_special(const node_spec *s) {
  if (!s->n_text) return "a launch index needs a name";
  return is_scalar(s->src[0]) && s->src[0]->hi >= 0 ? NULL : "a size that is negative";
}

static const char *check_device(const node_spec *s) {
  return s->n_text ? NULL : "a device needs a name";
}

static const char *check_program(const node_spec *s) {
  static const op parts[] = {OP_SINK, OP_DEVICE, OP_LINEAR, OP_SOURCE, OP_BINARY};
  for (size_t i = 0; i < s->n_src; i++)
    if (s->src[i]->op != parts[i]) return "a program is sink, device, linear, source, binary";
  return NULL;
}

static const char *(*const rules[OP_LIMIT])(const node_spec *s) = {
    [OP_RESHAPE] = check_reshape, [OP_EXPAND] = check_expand, [OP_PERMUTE] = check_permute,
    [OP_SLICE] = check_slice,     [OP_PAD] = check_pad,       [OP_GATHER] = check_gather,
    [OP_REDUCE] = check_reduce,   [OP_SET] = check_set,       [OP_CUSTOM] = check_custom,
    [OP_KERNEL] = check_kernel,   [OP_LOOP] = check_loop,     [OP_CARRY] = check_carry,
    [OP_RESULT] = check_result,   [OP_CONST] = check_const,   [OP_VAR] = check_var,
    [OP_IOTA] = check_iota,       [OP_BUFFER] = check_buffer, [OP_PARAM] = check_buffer,
    [OP_RANGE] = check_range,     [OP_STAGE] = check_stage,   [OP_FOLD] = check_fold,
    [OP_STATE] = check_state,     [OP_INDEX] = check_index,   [OP_OUT] = check_out,
    [OP_AFFINE] = check_affine,   [OP_ALLOC] = check_alloc,   [OP_LOAD] = check_load,
    [OP_STORE] = check_store,     [OP_AFTER] = check_after,   [OP_END] = check_end,
    [OP_SPECIAL] = check_special, [OP_DEVICE] = check_device, [OP_PROGRAM] = check_program};

/* What the tables tell. */

static const char *check_numbers(const node_spec *s) {
  if ((unsigned)s->op >= OP_LIMIT) return "no such op";
  if (!dtype_get(s->dtype)->name) return "no such type";
  const op_facts *f = op_get(s->op);
  if (s->n_src < f->least) return "too few sources";
  if (s->n_src > (f->most == OP_MANY ? (size_t)MOST_SOURCES : f->most)) return "too many sources";
  argument_form form = argument_form_of(s->op);
  if (form.list ? s->n_int < form.named : s->n_int != form.named) return "wrong number of integers";
  if (s->n_int > MOST_SOURCES) return "too many integers";
  return s->n_text && !form.text ? "the op takes no text" : NULL;
}

static const char *check_operands(const node_spec *s, size_t first, int type) {
  if (!op_takes(s->op, (dtype)type)) return "the op does not take this type";
  for (size_t i = first; i < s->n_src; i++)
    if (s->src[i]->dtype != type) return "operands of different types";
  return NULL;
}

static const char *check_conversion(const node_spec *s) {
  dtype from = (dtype)s->src[0]->dtype;
  if (!op_takes(s->op, from)) return "the op does not take this type";
  if (s->op == OP_BITCAST && dtype_bytes(from) != dtype_bytes(s->dtype))
    return "bitcast between types of different widths";
  return NULL;
}

static const char *check_types(const node_spec *s) {
  switch (op_get(s->op)->type) {
  case TYPE_SAME:
  case TYPE_SHIFT: return check_operands(s, 0, s->dtype);
  case TYPE_COMPARE:
    if (s->dtype != DT_BOOL) return "a comparison is a bool";
    return check_operands(s, 0, s->src[0]->dtype);
  case TYPE_SELECT:
    if (s->src[0]->dtype != DT_BOOL) return "a condition is a bool";
    return check_operands(s, 1, s->dtype);
  case TYPE_INDEX: return s->dtype == DT_INDEX ? NULL : "the op makes an index";
  case TYPE_VOID: return s->dtype == DT_VOID ? NULL : "the op has no value";
  case TYPE_FIRST:
    return s->dtype == s->src[0]->dtype ? check_operands(s, s->n_src, s->dtype)
                                        : "the op has the type of its first source";
  default: break;
  }
  if (!op_takes(s->op, s->dtype)) return "the op does not make this type";
  return s->op == OP_CAST || s->op == OP_BITCAST ? check_conversion(s) : NULL;
}

static const char *check_lanes(const node_spec *s) {
  unsigned lanes = s->lanes ? s->lanes : 1;
  switch (s->op) {
  case OP_CONST:
  case OP_LOAD:
  case OP_ALLOC: return NULL;
  case OP_AFTER: return lanes == 1 || lanes == s->src[0]->lanes ? NULL : "after has other lanes";
  case OP_VECTORIZE:
    if (lanes != s->n_src) return "vectorize needs a scalar for each lane";
    return all(is_scalar, s->src, s->n_src) ? NULL : "lanes are made of scalars";
  case OP_SPLAT: return is_scalar(s->src[0]) ? NULL : "splat repeats a scalar";
  case OP_EXTRACT:
    if (s->ints[0] < 0 || s->ints[0] >= s->src[0]->lanes) return "no such lane";
    return lanes == 1 ? NULL : "extract makes a scalar";
  default: break;
  }
  if (!op_is_elementwise(s->op) || s->op == OP_AFFINE)
    return lanes == 1 ? NULL : "the op has no lanes";
  for (size_t i = 0; i < s->n_src; i++)
    if (s->src[i]->lanes != lanes) return "operands differ in lanes";
  return NULL;
}

static const char *check_shapes(const node_spec *s) {
  if (op_is_movement(s->op) || s->op == OP_REDUCE)
    return is_value(s->src[0]) && s->src[0]->lanes == 1 ? NULL : "the op takes a tensor";
  if (!op_is_elementwise(s->op) || s->op == OP_AFFINE) return NULL;
  if (!all(is_value, s->src, s->n_src)) return "the op takes values, not storage";
  for (size_t i = 1; i < s->n_src; i++)
    if (!ir_same_shape(s->src[0], s->src[i])) return "operands differ in shape";
  return NULL;
}

const char *ir_check(const node_spec *spec) {
  static const char *(*const steps[])(const node_spec *s) = {check_numbers, check_types,
                                                             check_lanes, check_shapes};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    const char *why = steps[i](spec);
    if (why) return why;
  }
  return rules[spec->op] ? rules[spec->op](spec) : NULL;
}
