/* Tests dynamic sizes and type promotion in the public interface: arithmetic and simplification of
   symbolic dimensions, their bounds and lifetimes, shapes and slices with them, and messages for
   what is refused. */
#include "support/tensor_check.h"

static void numbers_are_numbers(void **state) {
  tn_context *c = *state;
  assert_int_equal(tn_dim_add(c, 2, 3), 5);
  assert_int_equal(tn_dim_sub(c, 2, 3), -1);
  assert_int_equal(tn_dim_mul(c, 1 << 20, 1 << 20), INT64_C(1) << 40);
  assert_int_equal(tn_dim_div(c, 7, 2), 3);
  assert_int_equal(tn_dim_div(c, -7, 2), -4);
}

static void variables_cancel(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 100), m = tn_dim_var(c, "m", 0, 5);
  assert_true(n == tn_dim_var(c, "n", 1, 100));
  assert_true(n != m);
  assert_int_equal(tn_dim_sub(c, tn_dim_add(c, n, 7), n), 7);
  assert_true(tn_dim_add(c, n, m) == tn_dim_add(c, m, n));
  assert_true(tn_dim_mul(c, n, 2) == tn_dim_add(c, n, n));
  assert_true(tn_dim_div(c, tn_dim_mul(c, n, 6), 3) == tn_dim_mul(c, n, 2));
}

static void shapes_keep_variables(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 100);
  tn_type t = tn_type_of(tn_input(c, "x", tn_shape(n, 3), TN_F16));
  assert_int_equal(t.dtype, TN_F16);
  assert_int_equal(t.shape.rank, 2);
  assert_true(t.shape.size[0] == n);
  assert_int_equal(t.shape.size[1], 3);
}

static void check_invalid(tn_context *c, tn_tensor *x, tn_status status, const char *words) {
  float f;
  assert_int_equal(tn_type_of(x).dtype, TN_UNDEFINED);
  assert_int_equal(tn_read(x, TN_F32, &f, sizeof f), status);
  check_text(tn_message(c), words);
}

/** Checks that a shape with this size is refused with this status and text. */
static void check_refused(tn_context *c, tn_dim d, tn_status status, const char *words) {
  check_invalid(c, tn_input(c, "x", tn_shape(d), TN_F32), status, words);
}

static void shapes_beyond_memory_are_refused(void **state) {
  tn_context *c = *state;
  tn_dim big = INT64_C(1) << 40, n = tn_dim_var(c, "n", 1, 100), z = tn_dim_var(c, "z", 0, 100);
  const char *words =
      "1099511627776x1099511627776 is too large: more elements than memory can hold";
  check_invalid(c, tn_zeros(c, tn_shape(big, big), TN_F32), TN_ERR_SHAPE, words);
  check_invalid(c, tn_input(c, "x", tn_shape(big, n, big), TN_I8), TN_ERR_SHAPE,
                "1099511627776xnx1099511627776 is too large");
  check_invalid(c, tn_expand(tn_ones(c, tn_shape(1), TN_F32), tn_shape(big, big)), TN_ERR_SHAPE,
                words);
  float f;
  check_invalid(c, tn_from_host(c, tn_shape(big, big), TN_F32, &f, 4), TN_ERR_SHAPE, words);
  tn_type empty = tn_type_of(tn_zeros(c, tn_shape(big, big, 0), TN_F32));
  assert_int_equal(empty.shape.rank, 3);
  assert_int_equal(tn_type_of(tn_input(c, "y", tn_shape(big, big, z), TN_F32)).dtype, TN_F32);
}

/** Messages show names as given, also names like the compiler's own. */
static void names_are_shown_as_given(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "core_id", 1, 9), m = tn_dim_var(c, "'core_id", 1, 9);
  assert_true(n != m && n == tn_dim_var(c, "core_id", 1, 9));
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 3), TN_F32);
  check_invalid(c, tn_reshape(x, tn_shape(m, 3)), TN_ERR_SHAPE, "f32[core_id,3]");
  check_invalid(c, tn_reshape(x, tn_shape(m, 3)), TN_ERR_SHAPE, "'core_idx3");
  assert_int_equal(tn_realize(c, &x, 1), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the size core_id,");
  check_refused(c, tn_dim_var(c, "core_id", 1, 8), TN_ERR_ARGUMENT, "core_id is from 1 to 8");
}

static void equal_parts_divide(void **state) {
  tn_context *c = *state;
  tn_tensor *out[2];
  tn_split(tn_ones(c, tn_shape(4, 3), TN_F32), 1, NULL, out, 2);
  check_invalid(c, out[1], TN_ERR_SHAPE, "axis 1 of size 3 is not divisible by 2");
  tn_dim n = tn_dim_var(c, "n", 1, 100);
  tn_split(tn_input(c, "x", tn_shape(n), TN_F32), 0, NULL, out, 2);
  check_invalid(c, out[0], TN_ERR_SHAPE, "axis 0 of size n is not always divisible by 2");
  tn_split(tn_input(c, "x", tn_shape(tn_dim_mul(c, n, 2)), TN_F32), 0, NULL, out, 2);
  assert_true(tn_type_of(out[1]).shape.size[0] == n);
}

static void operators_are_caught(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 100), m = tn_dim_var(c, "m", 1, 100);
  check_refused(c, n + 1, TN_ERR_SHAPE, "is no size");
  check_refused(c, n - 1, TN_ERR_SHAPE, "is no size");
  check_refused(c, n / 2, TN_ERR_SHAPE, "is no size");
  check_refused(c, (tn_dim)((uint64_t)n * 2), TN_ERR_SHAPE, "is no size");
  check_refused(c, (tn_dim)((uint64_t)n + (uint64_t)m), TN_ERR_SHAPE, "is no size");
  check_refused(c, -n, TN_ERR_SHAPE, "is no size");
  check_refused(c, n ^ m, TN_ERR_SHAPE, "");
  tn_context *other = tn_open(NULL);
  assert_non_null(other);
  check_refused(other, n, TN_ERR_SHAPE, "is no size");
  tn_close(other);
}

static void bad_variables_carry_their_cause(void **state) {
  tn_context *c = *state;
  tn_dim_var(c, "n", 1, 100);
  check_refused(c, tn_dim_var(c, "n", 2, 100), TN_ERR_ARGUMENT, "n is from 2 to 100, and was");
  check_refused(c, tn_dim_var(c, "k", -1, 4), TN_ERR_ARGUMENT, "2^40");
  check_refused(c, tn_dim_var(c, "k", 5, 4), TN_ERR_ARGUMENT, "2^40");
  check_refused(c, tn_dim_var(c, "k", 0, (INT64_C(1) << 40) + 1), TN_ERR_ARGUMENT, "2^40");
  check_refused(c, tn_dim_var(c, "", 0, 4), TN_ERR_ARGUMENT, "name");
  check_refused(c, tn_dim_add(c, tn_dim_var(c, NULL, 0, 4), 1), TN_ERR_ARGUMENT, "name");
}

static void arithmetic_is_bounded(void **state) {
  tn_context *c = *state;
  tn_dim z = tn_dim_var(c, "z", 0, 4), big = tn_dim_var(c, "big", 0, INT64_C(1) << 40);
  check_refused(c, tn_dim_div(c, 8, z), TN_ERR_SHAPE, "divisor can be 0");
  check_refused(c, tn_dim_div(c, 8, 0), TN_ERR_SHAPE, "divisor can be 0");
  check_refused(c, tn_dim_mul(c, big, big), TN_ERR_SHAPE, "64 bits");
  check_refused(c, tn_dim_sub(c, z, 1), TN_ERR_SHAPE, "-1");
  check_refused(c, -1, TN_ERR_SHAPE, "-1");
  assert_true(tn_dim_div(c, 8, tn_dim_add(c, z, 1)) != INT64_MIN);
}

static void numbers_have_a_limit(void **state) {
  tn_context *c = *state;
  const int64_t limit = INT64_C(1) << 44;
  assert_int_equal(tn_dim_sub(c, limit - 1, limit - 1), 0);
  assert_int_equal(tn_dim_sub(c, 0, limit - 1), 1 - limit);
  check_refused(c, limit, TN_ERR_SHAPE, "below 2^44");
  check_refused(c, tn_dim_add(c, limit - 1, 1), TN_ERR_SHAPE, "17592186044416 is too large");
  check_refused(c, tn_dim_mul(c, 1 << 30, 1 << 30), TN_ERR_SHAPE, "below 2^44");
  check_invalid(c, tn_arange(c, limit, limit + 1, 1, TN_I64), TN_ERR_SHAPE, "below 2^44");
  assert_int_equal(tn_type_of(tn_arange(c, 1 - limit, limit - 1, limit - 1, TN_I64)).shape.size[0],
                   2);
  tn_dim most = tn_dim_var(c, "most", 0, INT64_C(1) << 40), wide = tn_dim_mul(c, most, 1 << 20);
  assert_true(tn_dim_div(c, wide, 1 << 20) == most);
}

/** Returns the size along axis 0 of a slice. */
static tn_dim sliced(tn_tensor *x, tn_dim start, tn_dim stop, tn_dim step) {
  tn_type t = tn_type_of(tn_slice(x, 0, start, stop, step));
  return t.dtype == TN_UNDEFINED ? -1 : t.shape.size[0];
}

static void bounds_are_clamped(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 100);
  tn_tensor *x = floats(c, FLOATS(1, 2, 3, 4, 5)), *y = tn_input(c, "y", tn_shape(n), TN_F32);
  for (int k = 3; k < 63; k++) {
    int64_t far = INT64_C(1) << k;
    assert_int_equal(sliced(x, -far, far, 1), 5);
    assert_int_equal(sliced(x, 1 - far, far - 1, 2), 3);
    assert_int_equal(sliced(x, far, -far, -1), 5);
    assert_int_equal(sliced(x, far, TN_END, 1), 0);
    if (k < 7) continue;
    assert_true(sliced(y, -far, far - 1, 1) == n);
    assert_true(sliced(y, far - 1, -far, -1) == n);
    assert_int_equal(sliced(y, far, TN_END, 1), 0);
  }
  assert_int_equal(sliced(x, INT64_MIN, 2, 1), 2);
  assert_int_equal(sliced(x, 3, INT64_MIN, -1), 4);
  assert_int_equal(sliced(x, INT64_MAX, INT64_MIN, -1), 5);
  assert_true(sliced(y, INT64_MIN, INT64_MAX, 1) == n);
  check_floats(c, tn_slice(x, 0, INT64_MAX, INT64_MIN + 1, -2), FLOATS(5, 3, 1));
}

static void bounds_that_are_no_numbers_are_refused(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 100), m = tn_dim_var(c, "m", 1, 100);
  tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *y = tn_input(c, "y", tn_shape(n), TN_F32);
  const tn_dim wrong[] = {n + 1, n - 1, n / 2, -n, n | m, INT64_C(1000000000000000)};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    check_invalid(c, tn_slice(x, 0, wrong[i], TN_END, 1), TN_ERR_SHAPE, "is no size");
    check_invalid(c, tn_slice(x, 0, 0, wrong[i], 1), TN_ERR_SHAPE, "is no size");
  }
  check_invalid(c, tn_slice(x, 0, tn_dim_add(NULL, 1, 1), TN_END, 1), TN_ERR_ARGUMENT,
                "made of a NULL");
  check_invalid(c, tn_slice(y, 0, -n, TN_END, 1), TN_ERR_SHAPE, "is no size");
  assert_int_equal(sliced(x, 0, tn_dim_add(c, n, 2), 1), 3);
  assert_true(sliced(y, tn_dim_sub(c, 0, n), n, 1) == n);
}

/** Sizes read as arithmetic does, and a shape keeps its sizes apart. */
static void messages_spell_sizes_as_arithmetic(void **state) {
  tn_context *c = *state;
  const tn_dim n = tn_dim_var(c, "n", 1, 9), p = tn_dim_var(c, "p", 1, 9),
               q = tn_dim_var(c, "q", 1, 9);
  const tn_dim sum = tn_dim_add(c, p, q), half = tn_dim_div(c, tn_dim_add(c, p, 1), 2);
  const struct {
    tn_dim size;
    const char *text;
  } all[] = {
      {sum, "nx(p + q) has n*p + n*q elements"},
      {tn_dim_mul(c, half, q), "nx(q*((p + 1)/2)) has"},
      {tn_dim_add(c, tn_dim_mul(c, 2, p), 3), "nx(2*p + 3) has"},
      {tn_dim_add(c, tn_dim_sub(c, 10, p), q), "nx(q - p + 10) has"},
      {q, "nxq has n*q elements"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    tn_tensor *x = tn_full(c, tn_shape(n, all[i].size), TN_F32, 0);
    check_invalid(c, tn_reshape(x, tn_shape(7)), TN_ERR_SHAPE, all[i].text);
  }
}

static void extremes_need_an_element(void **state) {
  tn_context *c = *state;
  tn_dim some = tn_dim_var(c, "some", 1, 8), any = tn_dim_var(c, "any", 0, 8);
  tn_tensor *x = tn_input(c, "x", tn_shape(2, any, some), TN_F32);
  tn_tensor *image = tn_input(c, "image", tn_shape(1, 2, some, any), TN_F32);
  assert_int_equal(tn_type_of(tn_max(x, tn_axes(0, 2), false)).dtype, TN_F32);
  assert_int_equal(tn_type_of(tn_argmin(x, -1, false)).dtype, TN_I64);
  assert_int_equal(tn_type_of(tn_min(x, (tn_axes){0}, false)).dtype, TN_F32);
  check_invalid(c, tn_max(x, tn_axes(1), false), TN_ERR_SHAPE, "axis 1, of size any, can be empty");
  check_invalid(c, tn_min(x, TN_ALL, true), TN_ERR_SHAPE, "axis 1, of size any, can be empty");
  check_invalid(c, tn_argmax(x, 1, false), TN_ERR_SHAPE, "minimum");
  check_invalid(c, tn_argmin(x, -2, false), TN_ERR_SHAPE, "minimum");
  check_invalid(c, tn_global_max_pool(image), TN_ERR_SHAPE, "axis 3, of size any, can be empty");
  tn_tensor *more = tn_pad(x, tn_shape(0, 1, 0), tn_shape(0, 0, 0), TN_PAD_CONSTANT, 0);
  assert_int_equal(tn_type_of(tn_max(more, TN_ALL, false)).dtype, TN_F32);
  assert_int_equal(tn_type_of(tn_sum(x, TN_ALL, false)).dtype, TN_F32);
  assert_int_equal(tn_type_of(tn_global_avg_pool(image)).dtype, TN_F32);
}

static void failures_do_not_pile_up(void **state) {
  tn_context *c = *state;
  tn_dim first = tn_dim_var(c, "k", -1, 4);
  for (int i = 0; i < 100; i++) assert_true(tn_dim_var(c, "k", -1, 4) == first);
  /* the call decides, not the message, which a label changes */
  tn_label(c, "net.c:1");
  assert_true(tn_dim_var(c, "k", -1, 4) == first);
  assert_true(tn_dim_var(c, "k", -1, 5) != first && tn_dim_var(c, "l", -1, 4) != first);
  tn_dim none = tn_dim_var(c, NULL, 1, 4);
  assert_true(tn_dim_var(c, "", 1, 4) != none && tn_dim_var(c, NULL, 1, 4) == none);
}

static void sizes_go_with_their_scope(void **state) {
  (void)state;
  enum { STEPS = 2000 };
  counting memory = {.fail_at = 0};
  tn_context *c = open_counting(&memory, NULL);
  tn_dim n = tn_dim_var(c, "n", 1, 1 << 20), old = 0;
  tn_tensor *x = tn_own(tn_input(c, "x", tn_shape(tn_dim_mul(c, n, 3)), TN_F32));
  size_t early = 0;
  for (int i = 1; i <= STEPS; i++) {
    tn_scope_begin(c);
    tn_dim sum = tn_dim_add(c, n, i), m = tn_dim_var(c, "m", 1, i);
    assert_true(sum != old && sum == tn_dim_add(c, n, i));
    assert_int_equal(tn_dim_sub(c, sum, n), i);
    tn_dim none = tn_dim_div(c, i, tn_dim_sub(c, m, 1)), other = tn_dim_var(c, "m", 0, i);
    if (i < 10) {
      check_refused(c, none, TN_ERR_SHAPE, "divisor can be 0");
      check_refused(c, other, TN_ERR_ARGUMENT, "and was from 1 to");
      if (old) check_refused(c, old, TN_ERR_SHAPE, "is no size");
    }
    if (i > 1) assert_true(sum == tn_dim_add(c, tn_dim_sub(c, sum, m), m));
    old = sum;
    tn_scope_end(c);
    if (i == STEPS / 2 + 1) early = memory.out;
  }
  assert_int_equal(memory.out, early);
  assert_true(tn_type_of(x).shape.size[0] == tn_dim_mul(c, n, 3));
  tn_release(x);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

static void ranks_are_checked(void **state) {
  tn_context *c = *state;
  tn_shape s = {13, {1}};
  float f = 0;
  assert_int_equal(tn_read(tn_from_host(c, s, TN_F32, &f, 4), TN_F32, &f, 4), TN_ERR_SHAPE);
  s.rank = -1;
  assert_int_equal(tn_read(tn_from_host(c, s, TN_F32, &f, 4), TN_F32, &f, 4), TN_ERR_SHAPE);
}

/* The table of dtype.h above its diagonal. */
static void types_meet(void **state) {
  (void)state;
  static const tn_dtype order[] = {TN_BOOL, TN_U8,  TN_U16, TN_U32,  TN_U64, TN_I8, TN_I16,
                                   TN_I32,  TN_I64, TN_F16, TN_BF16, TN_F32, TN_F64};
  static const char *const table[] = {"bool u8 u16 u32 u64 i8 i16 i32 i64 f16 bf16 f32 f64",
                                      "u8 u16 u32 u64 i16 i16 i32 i64 f16 bf16 f32 f64",
                                      "u16 u32 u64 i32 i32 i32 i64 f16 bf16 f32 f64",
                                      "u32 u64 i64 i64 i64 i64 f16 bf16 f32 f64",
                                      "u64 f64 f64 f64 f64 f16 bf16 f32 f64",
                                      "i8 i16 i32 i64 f16 bf16 f32 f64",
                                      "i16 i32 i64 f16 bf16 f32 f64",
                                      "i32 i64 f16 bf16 f32 f64",
                                      "i64 f16 bf16 f32 f64",
                                      "f16 f32 f32 f64",
                                      "bf16 f32 f64",
                                      "f32 f64",
                                      "f64"};
  for (size_t i = 0; i < 13; i++) {
    char row[128], *at = row;
    snprintf(row, sizeof row, "%s", table[i]);
    for (size_t k = i; k < 13; k++) {
      char *name = strtok(at, " ");
      at = NULL;
      assert_string_equal(tn_dtype_name(tn_promote(order[i], order[k])), name);
      assert_int_equal(tn_promote(order[k], order[i]), tn_promote(order[i], order[k]));
    }
  }
  assert_int_equal(tn_promote(TN_STRING, TN_F32), TN_UNDEFINED);
  assert_int_equal(tn_promote(TN_F32, (tn_dtype)77), TN_UNDEFINED);
}

static void types_have_names(void **state) {
  (void)state;
#define CHECK_TYPE(name, number, text, bytes, host) \
  assert_string_equal(tn_dtype_name(name), text);   \
  assert_int_equal((int)name, number);              \
  assert_int_equal(tn_dtype_size(name), bytes);     \
  assert_int_equal(sizeof(host), bytes);
  TN_DTYPE_LIST(CHECK_TYPE)
#undef CHECK_TYPE
  assert_string_equal(tn_dtype_name(TN_UNDEFINED), "undefined");
  assert_string_equal(tn_dtype_name(TN_STRING), "string");
  assert_string_equal(tn_dtype_name((tn_dtype)1000), "unknown");
  assert_int_equal(tn_dtype_size(TN_STRING), 0);
  assert_int_equal(tn_dtype_size((tn_dtype)100), 0);
  assert_string_equal(tn_status_text(TN_ERR_BUSY), "busy");
  assert_string_equal(tn_status_text((tn_status)99), "unknown status");
  assert_int_equal(tn_version(), TN_VERSION);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

static void *alloc_unless(void *user, size_t bytes, size_t align) {
  const bool *is_out = user;
  return *is_out ? NULL : aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void release(void *user, void *at, size_t bytes) {
  (void)user, (void)bytes;
  free(at);
}

static void want_of_memory_is_told(void **state) {
  (void)state;
  bool is_out = false;
  float f;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.allocator = (tn_allocator){alloc_unless, release, &is_out, NULL};
  tn_context *c = tn_open(&d);
  is_out = true;
  tn_dim n = tn_dim_var(c, "n", 1, 64);
  is_out = false;
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 30), TN_F32);
  assert_int_equal(tn_read(x, TN_F32, &f, sizeof f), TN_ERR_MEMORY);
  assert_int_equal(tn_close(c), TN_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(numbers_are_numbers),
      WITH(variables_cancel),
      WITH(shapes_keep_variables),
      WITH(shapes_beyond_memory_are_refused),
      WITH(names_are_shown_as_given),
      WITH(equal_parts_divide),
      WITH(operators_are_caught),
      WITH(bad_variables_carry_their_cause),
      WITH(arithmetic_is_bounded),
      WITH(numbers_have_a_limit),
      WITH(bounds_are_clamped),
      WITH(bounds_that_are_no_numbers_are_refused),
      WITH(messages_spell_sizes_as_arithmetic),
      WITH(extremes_need_an_element),
      WITH(failures_do_not_pile_up),
      cmocka_unit_test(sizes_go_with_their_scope),
      cmocka_unit_test(want_of_memory_is_told),
      WITH(ranks_are_checked),
      cmocka_unit_test(types_meet),
      cmocka_unit_test(types_have_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
