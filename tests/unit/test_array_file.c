/* Tests array files (tn_array_file_*): tensors in .npy and ONNX TensorProto files are written, read
   back and refused when damaged. Also conversions between single elements and doubles. */
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <math.h>

static arena test_arena;
static diag test_diag;

static int open_context_and_arena(void **state) {
  arena_init(&test_arena, &mem_system, &test_diag);
  *state = tn_open(NULL);
  return 0;
}

static int close_context_and_arena(void **state) {
  arena_free(&test_arena);
  return tn_close(*state);
}

static const char *new_path(const char *name) {
  return arena_printf(&test_arena, "%s/%s", temporary_folder(&test_arena), name);
}

/** Writes a file of a header and elements; returns its path. */
static const char *write_array(tn_type type, tn_file_format format, const void *data, size_t n) {
  unsigned char header[1024];
  const char *path = new_path("array");
  size_t bytes = tn_array_header(type, format, "x", header, sizeof header);
  assert_true(bytes > 0 && bytes <= sizeof header);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fwrite(header, 1, bytes, f);
  fwrite(data, 1, n, f);
  fclose(f);
  return path;
}

static void arrays_are_read_as_written(void **state) {
  tn_context *c = *state;
  const uint16_t data[] = {1, 2, 3, 4, 5, 65535};
  const tn_type types[] = {
      {TN_U16, tn_shape(3, 2)}, {TN_U16, tn_shape(6)}, {TN_U16, tn_shape(1, 6, 1)}};
  for (size_t i = 0; i < 6; i++) {
    tn_file_format format = i % 2 ? TN_FILE_ONNX : TN_FILE_NPY;
    const tn_type *type = &types[i / 2];
    tn_array_file *file;
    check_ok(c,
             tn_array_file_open(c, write_array(*type, format, data, sizeof data), format, &file));
    tn_array a = tn_array_file_get(file);
    assert_int_equal(a.type.dtype, TN_U16);
    assert_int_equal(a.type.shape.rank, type->shape.rank);
    for (int32_t k = 0; k < type->shape.rank; k++)
      assert_true(a.type.shape.size[k] == type->shape.size[k]);
    assert_memory_equal(a.data, data, sizeof data);
    if (i % 3) tn_array_file_close(file); /* the others are closed with the context */
  }
  tn_array_file_close(NULL);
  assert_null(tn_array_file_get(NULL).data);
}

static void bf16_is_u16_in_numpy(void **state) {
  tn_context *c = *state;
  const uint16_t data = 0x3f80;
  tn_type type = {TN_BF16, TN_SCALAR};
  tn_array_file *file;
  check_ok(c, tn_array_file_open(c, write_array(type, TN_FILE_NPY, &data, 2), TN_FILE_NPY, &file));
  assert_int_equal(tn_array_file_get(file).type.dtype, TN_U16);
  check_ok(c,
           tn_array_file_open(c, write_array(type, TN_FILE_ONNX, &data, 2), TN_FILE_ONNX, &file));
  assert_int_equal(tn_array_file_get(file).type.dtype, TN_BF16);
}

static void check_refused(tn_context *c, const char *path, tn_file_format format, tn_status status,
                          const char *why) {
  tn_array_file *file = (tn_array_file *)c;
  assert_int_equal(tn_array_file_open(c, path, format, &file), status);
  assert_null(file);
  check_text(tn_message(c), why);
  if (status != TN_ERR_ARGUMENT) check_text(tn_message(c), path);
}

static const char *write_text(const char *text, size_t n) {
  const char *path = new_path("text");
  FILE *f = fopen(path, "wb");
  fwrite(text, 1, n, f);
  fclose(f);
  return path;
}

static void other_files_are_refused(void **state) {
  tn_context *c = *state;
  const char *text = write_text("\377\377 no array", 11);
  check_refused(c, text, TN_FILE_NPY, TN_ERR_FORMAT, "not a .npy file");
  check_refused(c, text, TN_FILE_ONNX, TN_ERR_FORMAT, ": ");
  check_refused(c, new_path("none"), TN_FILE_NPY, TN_ERR_IO, "No such file");
  check_refused(c, new_path("none"), TN_FILE_ONNX, TN_ERR_IO, "No such file");
  static const char string[] = "\x10\x08\x32\x01x"; /* a TensorProto with one string */
  check_refused(c, write_text(string, sizeof string - 1), TN_FILE_ONNX, TN_ERR_UNSUPPORTED,
                "elements of type string");
  static const char deep[] = "\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1"
                             "\x08\1\x08\1\x10\2\x4a\1x";
  check_refused(c, write_text(deep, sizeof deep - 1), TN_FILE_ONNX, TN_ERR_SHAPE,
                "the tensor has 13 dimensions; at most 12");
  char header[128];
  static const char axes[] = "{'descr': '|u1', 'fortran_order': False, "
                             "'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }";
  memcpy(header, "\x93NUMPY\x01\0", 8);
  header[8] = (char)(sizeof axes - 1), header[9] = 0;
  memcpy(header + 10, axes, sizeof axes);
  check_refused(c, write_text(header, 10 + sizeof axes), TN_FILE_NPY, TN_ERR_SHAPE,
                "has 13 dimensions");
  check_refused(c, text, (tn_file_format)9, TN_ERR_ARGUMENT, "unknown file format 9");
  check_refused(c, NULL, TN_FILE_NPY, TN_ERR_ARGUMENT, "is NULL");
  assert_int_equal(tn_array_file_open(c, text, TN_FILE_NPY, NULL), TN_ERR_ARGUMENT);
}

static void headers_need_room_and_numbers(void **state) {
  (void)state;
  char header[1024] = "as it was";
  tn_type type = {TN_F32, tn_shape(2, 3)};
  for (int format = TN_FILE_NPY; format <= TN_FILE_ONNX; format++) {
    size_t n = tn_array_header(type, (tn_file_format)format, NULL, NULL, 0);
    assert_true(n > 0);
    assert_int_equal(tn_array_header(type, (tn_file_format)format, NULL, header, n - 1), n);
    assert_string_equal(header, "as it was");
  }
  type.shape.size[1] = -1;
  assert_int_equal(tn_array_header(type, TN_FILE_NPY, NULL, header, sizeof header), 0);
  type.shape.size[1] = INT64_MAX;
  assert_int_equal(tn_array_header(type, TN_FILE_ONNX, NULL, header, sizeof header), 0);
  type = (tn_type){TN_STRING, tn_shape(2)};
  assert_int_equal(tn_array_header(type, TN_FILE_ONNX, NULL, header, sizeof header), 0);
  type.dtype = TN_U8;
  assert_int_equal(tn_array_header(type, (tn_file_format)9, NULL, header, sizeof header), 0);
}

static void elements_are_numbers(void **state) {
  (void)state;
  unsigned char at[9] = {0};
#define CHECK(dtype, number, text, bytes, host) \
  tn_element_set(dtype, at + 1, 1.0);           \
  assert_true(tn_element_get(dtype, at + 1) == 1.0);
  TN_DTYPE_LIST(CHECK)
#undef CHECK
  tn_element_set(TN_I8, at, -3.7);
  assert_true(tn_element_get(TN_I8, at) == -3);
  tn_element_set(TN_U8, at, 1e9);
  assert_true(tn_element_get(TN_U8, at) == 255);
  tn_element_set(TN_F16, at, 2049.0 + 1e-9); /* rounded once: 2048 if rounded to f32 first */
  assert_true(tn_element_get(TN_F16, at) == 2050);
  tn_element_set(TN_I64, at, -9007199254740992.0);
  assert_true(tn_element_get(TN_I64, at) == -9007199254740992.0);
  tn_element_set(TN_F64, at, NAN);
  assert_true(isnan(tn_element_get(TN_F64, at)));
  tn_element_set(TN_STRING, at, 7);
  assert_true(tn_element_get(TN_STRING, at) == 0);
  assert_int_equal(tn_dtype_kind_of(TN_BOOL), TN_KIND_BOOL);
  assert_int_equal(tn_dtype_kind_of(TN_U64), TN_KIND_UNSIGNED);
  assert_int_equal(tn_dtype_kind_of(TN_I8), TN_KIND_SIGNED);
  assert_int_equal(tn_dtype_kind_of(TN_BF16), TN_KIND_FLOAT);
  assert_int_equal(tn_dtype_kind_of(TN_STRING), TN_KIND_NONE);
  assert_int_equal(tn_dtype_kind_of((tn_dtype)12345), TN_KIND_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(arrays_are_read_as_written, open_context_and_arena,
                                      close_context_and_arena),
      cmocka_unit_test_setup_teardown(bf16_is_u16_in_numpy, open_context_and_arena,
                                      close_context_and_arena),
      cmocka_unit_test_setup_teardown(other_files_are_refused, open_context_and_arena,
                                      close_context_and_arena),
      cmocka_unit_test(headers_need_room_and_numbers),
      cmocka_unit_test(elements_are_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
