/* Implements the per-op well-formedness rules of tensor graphs: movement, gather, reductions, SET
   (a write to a view), host functions, user kernels, loops, and the sources (constants, variables,
   iotas and buffers). Sizes are compared where they are constants; symbolic ones are trusted. */
#include "ir/core/build.h"
#include "ir/core/check_op.h"
#include "ir/core/node_device.h"
#include "ir/core/tensor_loop.h"

static bool distinct_below(const int64_t *v, size_t n, size_t limit) {
  uint64_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    if (v[i] < 0 || (uint64_t)v[i] >= limit || (seen >> v[i] & 1)) return false;
    seen |= UINT64_C(1) << v[i];
  }
  return true;
}

/** Writes the number of elements; false if a dimension is symbolic or the product does not fit. */
static bool constant_element_count(const node *const *dims, size_t rank, int64_t *size) {
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

const char *check_op_reshape(const node_spec *s) {
  int64_t before, after;
  const node *x = s->src[0];
  const char *why = check_sizes(s->src + 1, s->n_src - 1);
  if (why) return why;
  if (constant_element_count(x->dims, x->rank, &before) &&
      constant_element_count(s->src + 1, s->n_src - 1, &after) && before != after)
    return "reshape changes the number of elements";
  return NULL;
}

const char *check_op_expand(const node_spec *s) {
  const node *x = s->src[0];
  if (s->n_src - 1 != x->rank) return "expand changes the number of dimensions";
  for (size_t i = 0; i < x->rank; i++)
    if (s->src[i + 1] != x->dims[i] && !node_is_bits(x->dims[i], 1))
      return "expand repeats a dimension that is not 1";
  return check_sizes(s->src + 1, x->rank);
}

const char *check_op_permute(const node_spec *s) {
  size_t rank = s->src[0]->rank;
  return s->n_int == rank && distinct_below(s->ints, rank, rank) ? NULL
                                                                 : "not a permutation of the axes";
}

/** True if the `size` indices start, start + step, … lie in 0 … dim − 1, or one of the numbers is
    symbolic. */
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

const char *check_op_slice(const node_spec *s) {
  const node *x = s->src[0], *const *starts = s->src + 1, *const *sizes = starts + x->rank;
  if (s->n_src != 1 + 2 * (size_t)x->rank) return "slice needs a start and a size for each axis";
  if (s->n_int != x->rank && s->n_int != x->rank + 1u) return "slice needs a step for each axis";
  if (!check_all(check_is_index, starts, x->rank)) return "a start that is no index";
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

const char *check_op_pad(const node_spec *s) {
  const node *x = s->src[0], *const *lows = s->src + 2, *const *sizes = lows + x->rank;
  if (s->n_src != 2 + 2 * (size_t)x->rank) return "pad needs a low and a size for each axis";
  if (!check_is_scalar(s->src[1]) || s->src[1]->dtype != x->dtype)
    return "pad's value is no scalar of the source's type";
  if (!check_all(check_is_size, lows, x->rank))
    return "a low padding that is no index, or is negative";
  const char *why = check_sizes(sizes, x->rank);
  for (size_t i = 0; i < x->rank && !why; i++)
    if (!pad_is_inside(lows[i], x->dims[i], sizes[i])) why = "pad cuts its source";
  return why;
}

const char *check_op_gather(const node_spec *s) {
  if (s->n_src - 1 != s->src[0]->rank) return "gather needs an index tensor for each axis";
  for (size_t i = 1; i < s->n_src; i++) {
    if (!check_is_value(s->src[i]) || s->src[i]->dtype != DT_I64) return "gather's indices are i64";
    if (!ir_same_shape(s->src[i], s->src[1])) return "gather's index tensors differ in shape";
  }
  return NULL;
}

const char *check_op_reduce(const node_spec *s) {
  const node *x = s->src[0];
  if (!check_reduces(s->ints[0], (dtype)x->dtype)) return "not an op that reduces this type";
  return distinct_below(s->ints + 1, s->n_int - 1, x->rank)
             ? NULL
             : "reduced axes are not distinct axes of the source";
}

const char *check_op_set(const node_spec *s) {
  const node *old = s->src[0], *view = s->src[1], *value = s->src[2];
  if (!check_all(check_is_value, s->src, 3)) return "set takes tensors";
  if (view->dtype != old->dtype || value->dtype != old->dtype) return "set of another type";
  return ir_same_shape(view, value) ? NULL : "set needs a value of the view's shape";
}

const char *check_op_scatter(const node_spec *s) {
  const node *old = s->src[0], *values = s->src[1];
  if (!check_all(check_is_value, s->src, s->n_src)) return "scatter takes tensors";
  if (values->dtype != old->dtype) return "scatter of another type";
  if (s->n_src - 2 != old->rank) return "scatter needs an index tensor for each axis";
  for (size_t i = 2; i < s->n_src; i++) {
    if (s->src[i]->dtype != DT_I64) return "scatter's indices are i64";
    if (!ir_same_shape(s->src[i], values)) return "scatter's index tensors differ in shape";
  }
  if (s->ints[0] != -1 && !check_reduces(s->ints[0], (dtype)old->dtype))
    return "not an op that reduces this type";
  return s->n_int == 1 || s->ints[1] == 1 ? NULL : "scatter's places are distinct (1) or unknown";
}

const char *check_op_scan(const node_spec *s) {
  const node *x = s->src[0];
  if (!check_reduces(s->ints[0], (dtype)x->dtype)) return "not an op that reduces this type";
  if (s->n_src - 1 != s->n_int - 2) return "a scan has classes and their number, or neither";
  if (s->n_src > 1) {
    if (s->src[1]->dtype != DT_I64) return "a scan's classes are i64";
    if (!ir_same_shape(s->src[1], x)) return "a scan's classes differ in shape";
    if (s->ints[2] < 1) return "a scan of no classes";
  }
  return s->ints[1] >= 0 && (uint64_t)s->ints[1] < x->rank ? NULL : "no such axis";
}

const char *check_op_item(const node_spec *s) {
  const node *x = s->src[0];
  if (!check_is_value(x) || x->lanes != 1 ||
      !(dtype_is_int((dtype)x->dtype) || x->dtype == DT_BOOL))
    return "an item is an element of integers or bools";
  if (s->n_src - 2 != x->rank) return "item needs a coordinate for each axis";
  return check_all(check_is_index, s->src + 1, s->n_src - 1) ? NULL
                                                             : "a coordinate that is no index";
}

const char *check_op_pick(const node_spec *s) {
  const node *c = s->src[0], *a = s->src[1], *b = s->src[2];
  if (!check_is_index(c) || c->lo < 0 || c->hi > 1) return "pick takes an index from 0 to 1";
  if (!check_is_value(a) || !check_is_value(b)) return "pick takes tensors";
  if (a->dtype != s->dtype || b->dtype != s->dtype) return "pick takes tensors of its type";
  if (a->rank != b->rank || s->n_src - 3 != a->rank) return "pick takes tensors of its rank";
  for (size_t i = 0; i < a->rank; i++)
    if (a->dims[i] == b->dims[i] && s->src[3 + i] != a->dims[i]) return "pick of another shape";
  return check_sizes(s->src + 3, a->rank);
}

const char *check_op_to(const node_spec *s) {
  const node *x = s->src[0];
  if (!check_is_value(x) || x->lanes != 1 || x->dtype == DT_INDEX) return "to takes a tensor";
  for (size_t i = 0; i < s->n_int; i++)
    if (s->ints[i] < 0 || s->ints[i] >= IR_MAX_DEVICES) return "no such device";
  return NULL;
}

const char *check_op_custom(const node_spec *s) {
  int64_t uid = s->ints[0], output = s->ints[1], inputs = s->ints[2], writes = s->ints[3];
  if (uid < 0 || output < 0) return "a negative number";
  if (inputs < 0 || (uint64_t)inputs > s->n_src) return "more inputs than sources";
  if (inputs < 64 && (uint64_t)writes >> inputs) return "writes to an input that is not there";
  if (!check_all(check_is_value, s->src, (size_t)inputs)) return "custom takes tensors";
  return check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
}

const char *check_op_kernel(const node_spec *s) {
  int64_t slot = s->ints[0], inputs = s->ints[1];
  if (slot < 0 || inputs < 0) return "a negative number";
  if ((uint64_t)inputs > s->n_src) return "more inputs than sources";
  if (!s->n_text) return "there is no kernel";
  if (!check_all(check_is_value, s->src, (size_t)inputs)) return "kernel takes tensors";
  return check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
}

/* Loops of tensors. */

const char *check_op_loop(const node_spec *s) {
  int64_t states = s->ints[0], emits = s->ints[1];
  if (states < 0 || emits < 0 || states > CHECK_MAX_SOURCES || emits > CHECK_MAX_SOURCES ||
      s->n_src != 1 + 2 * (size_t)(states + emits))
    return "wrong number of sources";
  if (!check_is_range(s->src[0])) return "a loop counts by a range";
  const node *const *inits = s->src + 1, *const *steps = inits + states;
  const node *const *emitted = steps + states, *const *places = emitted + emits;
  if (!check_all(check_is_value, inits, (size_t)(2 * states + emits))) return "loop takes tensors";
  for (int64_t i = 0; i < states; i++)
    if (inits[i]->dtype != steps[i]->dtype || !ir_same_shape(inits[i], steps[i]))
      return "a step of another type or shape than its start";
  for (int64_t i = 0; i < emits; i++)
    if (emitted[i]->rank >= IR_MAX_RANK) return check_too_many_dims;
  if (s->n_int > 2) {
    int64_t until = s->ints[2];
    if (until < 0 || until >= states) return "no such state";
    if (inits[until]->dtype != DT_BOOL || inits[until]->rank) return "a loop ends by one bool";
  }
  return check_all(check_is_index, places, (size_t)emits) ? NULL : "a place that is no index";
}

const char *check_op_carry(const node_spec *s) {
  if (!check_is_range(s->src[0])) return "a carry is known by its loop's range";
  if (s->ints[0] < 0) return "a negative number";
  return check_sizes(s->src + 1, s->n_src - 1);
}

const char *check_op_result(const node_spec *s) {
  int64_t component = s->ints[0], inputs = s->ints[1], number = s->ints[2];
  const node *l = s->src[0], *sizes[IR_MAX_RANK + 1];
  if (component < 0 || inputs < 0 || number < 0) return "a negative number";
  if ((uint64_t)inputs > s->n_src) return "more inputs than sources";
  const char *why = check_sizes(s->src + inputs, s->n_src - (size_t)inputs);
  if (why || number)
    return why || check_all(check_is_value, s->src, (size_t)inputs) ? why : "result of tensors";
  if (inputs != 1 || l->op != OP_LOOP) return "a result is of a loop";
  if ((size_t)component >= loop_n_results(l)) return "no such component";
  if (loop_result_dtype(l, (size_t)component) != s->dtype) return "result of another type";
  size_t n = loop_result_sizes(l, (size_t)component, sizes);
  bool same = n == s->n_src - 1;
  for (size_t i = 0; same && i < n; i++) same = sizes[i] == s->src[1 + i];
  return same ? NULL : "result of another shape";
}

/* Sources. */

const char *check_op_const(const node_spec *s) {
  uint64_t bits = (uint64_t)s->ints[0];
  uint8_t memory[8];
  if (s->dtype == DT_BOOL) return bits > 1 ? "a bool is 0 or 1" : NULL;
  scalar_store(s->dtype, memory, bits);
  return scalar_load(s->dtype, memory) == bits ? NULL : "a number outside its type";
}

const char *check_op_var(const node_spec *s) {
  if (!s->n_text) return "a variable needs a name";
  if (s->ints[0] > s->ints[1]) return "a variable's least value exceeds its greatest";
  bool fits = s->n_int < 3 || (s->ints[0] <= s->ints[2] && s->ints[2] <= s->ints[1]);
  return fits ? NULL : "a variable's likely value is not within its bounds";
}

const char *check_op_iota(const node_spec *s) {
  if (s->ints[0] < 0 || (uint64_t)s->ints[0] >= s->n_src) return "no such axis";
  return check_sizes(s->src, s->n_src);
}

const char *check_op_buffer(const node_spec *s) {
  size_t named = s->op == OP_BUFFER ? 2 : 1; /* integers before the device */
  if (s->ints[0] < 0 || (s->op == OP_BUFFER && s->ints[1] < 0)) return "a negative number";
  if (s->n_int > named && (s->ints[named] < -1 || s->ints[named] >= IR_MAX_DEVICES))
    return "no such device";
  if (s->n_src > IR_MAX_RANK) return check_too_many_dims;
  for (size_t i = 0; i < s->n_src; i++)
    if (!(s->op == OP_PARAM ? check_is_address(s->src[i]) : check_is_index(s->src[i])) ||
        s->src[i]->hi < 0)
      return "a size that is no index, or is negative";
  return NULL;
}
