/* Tests the reader and writer of NumPy's .npy files: what NumPy writes, column-major and
   byte-swapped arrays, round trips, and damaged or cut files. */
#include "formats/npy/npy.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

/** A file being read or written, in a temporary folder. */
typedef struct work {
  diag diag;
  arena arena;
  char *folder, *path;
  npy_array array;
  tn_status (*act)(struct work *w);
  tn_status got;
} work;

static void enter(void *arg) {
  work *w = arg;
  w->got = w->act(w);
}

static tn_status run(work *w, tn_status (*act)(work *w)) {
  w->act = act;
  tn_status raised = diag_catch(&w->diag, enter, w);
  return raised ? raised : w->got;
}

static tn_status make_path(work *w) {
  w->folder = temporary_folder(&w->arena);
  if (!w->folder) return TN_ERR_IO;
  w->path = arena_printf(&w->arena, "%s/x.npy", w->folder);
  return TN_OK;
}

static int start(void **state) {
  static work w;
  w = (work){0};
  arena_init(&w.arena, &mem_system, &w.diag);
  *state = &w;
  return run(&w, make_path);
}

static int end(void **state) {
  work *w = *state;
  npy_close(&w->array);
  unlink(w->path);
  int left = rmdir(w->folder);
  arena_free(&w->arena);
  return left;
}

static tn_status open_array(work *w) { return npy_open(&w->array, w->path, &w->arena, &w->diag); }

static tn_status read_again(work *w) {
  npy_close(&w->array);
  return run(w, open_array);
}

static void put(const work *w, const void *data, size_t bytes) {
  FILE *f = fopen(w->path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, bytes, f), bytes);
  assert_int_equal(fclose(f), 0);
}

/** Composes a file of version `version`.0 with this dictionary and data; returns its length. */
static size_t compose(unsigned char *file, int version, const char *text, const void *data,
                      size_t bytes) {
  size_t n = strlen(text), at = version > 1 ? 12 : 10;
  memcpy(file, "\x93NUMPY", 6);
  file[6] = (unsigned char)version;
  file[7] = 0;
  for (size_t i = 8; i < at; i++) file[i] = (unsigned char)(n >> 8 * (i - 8));
  memcpy(file + at, text, n);
  if (bytes) memcpy(file + at + n, data, bytes);
  return at + n + bytes;
}

static tn_status read_text(work *w, const char *text, const void *data, size_t bytes) {
  static unsigned char file[4096];
  put(w, file, compose(file, 1, text, data, bytes));
  return read_again(w);
}

static void reads_what_numpy_writes(void **state) {
  work *w = *state;
  static const float data[] = {1, 2, 3, 4, 5, 6};
  for (int version = 1; version <= 3; version++) {
    unsigned char file[256];
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n";
    put(w, file, compose(file, version, text, data, sizeof data));
    assert_int_equal(read_again(w), TN_OK);
    assert_int_equal(w->array.dtype, DT_F32);
    assert_int_equal(w->array.rank, 2);
    assert_int_equal(w->array.dims[0], 2);
    assert_int_equal(w->array.dims[1], 3);
    assert_int_equal(w->array.bytes, sizeof data);
    assert_memory_equal(w->array.data, data, sizeof data);
  }
}

static void turns_columns_and_bytes(void **state) {
  work *w = *state;
  static const unsigned char columns[] = {0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6};
  static const int16_t rows[] = {1, 2, 3, 4, 5, 6};
  assert_int_equal(
      read_text(w, "{'descr':'>i2','fortran_order':True,'shape':(2,3)}", columns, sizeof columns),
      TN_OK);
  assert_int_equal(w->array.dtype, DT_I16);
  assert_memory_equal(w->array.data, rows, sizeof rows);

  static const uint8_t cube[] = {0, 4, 2, 6, 1, 5, 3, 7}, straight[] = {0, 1, 2, 3, 4, 5, 6, 7};
  assert_int_equal(
      read_text(w, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2)}", cube, 8), TN_OK);
  assert_memory_equal(w->array.data, straight, 8);
}

static void reads_scalars_and_empty_arrays(void **state) {
  work *w = *state;
  double pi = 3.25;
  assert_int_equal(read_text(w, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", &pi, 8),
                   TN_OK);
  assert_int_equal(w->array.rank, 0);
  assert_memory_equal(w->array.data, &pi, 8);
  assert_int_equal(read_text(w, "{'descr': '|b1', 'fortran_order': True, 'shape': (0, 7)}", "", 0),
                   TN_OK);
  assert_int_equal(w->array.bytes, 0);
  assert_int_equal(w->array.dims[1], 7);
  assert_int_equal(read_text(w,
                             "{'descr': '<f4', 'fortran_order': False, "
                             "'shape': (4611686018427387904, 4, 0)}",
                             "", 0),
                   TN_OK);
  assert_int_equal(w->array.bytes, 0);
}

static void tells_of_other_types(void **state) {
  static const struct {
    const char *type, *told;
  } cases[] = {
      {"'<c8'", "complex numbers ('<c8')"}, {"'<U5'", "strings ('<U5')"},
      {"'|S3'", "strings ('|S3')"},         {"'|O'", "Python objects ('|O')"},
      {"'<M8[ns]'", "dates ('<M8[ns]')"},   {"'<f16'", "floats of this size ('<f16')"},
      {"'<i3'", "an unknown type ('<i3')"}, {"''", "an unknown type ('')"},
      {"'\x1b[31m'", "('\\x1b[31m')"},      {"[('a', '<f4'), ('b', '<i4')]", "records, which"}};
  work *w = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (1,), }",
             cases[i].type);
    assert_int_equal(read_text(w, text, "................", 16), TN_ERR_UNSUPPORTED);
    assert_non_null(strstr(w->diag.text, w->path));
    assert_non_null(strstr(w->diag.text, cases[i].told));
  }
}

static void refuses_damaged_files(void **state) {
  static const char *const damaged[] = {
      "",
      "{",
      "{}",
      "{'descr': '<f4'",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'shape': (1,)}",
      "{'fortran_order': False, 'shape': (1,)}",
      "{'descr': <f4, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
  };
  work *w = *state;
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    assert_int_equal(read_text(w, damaged[i], "................", 16), TN_ERR_FORMAT);
    assert_non_null(strstr(w->diag.text, w->path));
    assert_null(w->array.file.data);
  }
}

static void refuses_too_many_axes(void **state) {
  work *w = *state;
  for (int rank = NPY_RANK_MAX; rank <= NPY_RANK_MAX + 1; rank++) {
    char text[256] = "{'descr': '|i1', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < rank; i++) strcat(text, "1, ");
    strcat(text, ")}");
    assert_int_equal(read_text(w, text, ".", 1), rank > NPY_RANK_MAX ? TN_ERR_FORMAT : TN_OK);
  }
}

/** Reads a file from memory of its exact size. */
static tn_status read_bytes(work *w) {
  unsigned char file[256], *copy;
  const char *text = "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }";
  size_t bytes = compose(file, 1, text, "\1\2\3\4", 4);
  copy = arena_copy(&w->arena, file, bytes);
  tn_status cut = npy_parse(&w->array, copy, bytes - 1, "the bytes", &w->arena, &w->diag);
  if (cut != TN_ERR_FORMAT || !strstr(w->diag.text, "the bytes")) return TN_ERR_INTERNAL;
  return npy_parse(&w->array, copy, bytes, "the bytes", &w->arena, &w->diag);
}

static void reads_bytes(void **state) {
  work *w = *state;
  assert_int_equal(run(w, read_bytes), TN_OK);
  assert_null(w->array.file.data);
  assert_int_equal(w->array.dtype, DT_U16);
  assert_memory_equal(w->array.data, ((uint16_t[]){0x0102, 0x0304}), 4);
}

static void refuses_every_cut(void **state) {
  work *w = *state;
  unsigned char file[256];
  const char *text = "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }";
  size_t bytes = compose(file, 2, text, "................", 16);
  for (size_t n = 0; n < bytes; n++) {
    put(w, file, n);
    assert_int_equal(read_again(w), TN_ERR_FORMAT);
  }
  put(w, file, bytes);
  assert_int_equal(read_again(w), TN_OK);
}

static void refuses_other_files(void **state) {
  work *w = *state;
  put(w, "\x93NUMPY\x04\x00\x02\x00\x00\x00{}", 14);
  assert_int_equal(read_again(w), TN_ERR_FORMAT);
  put(w, "\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14);
  assert_int_equal(read_again(w), TN_ERR_FORMAT);
  assert_non_null(strstr(w->diag.text, "not a .npy file"));
  put(w, "PK\x03\x04 is a zip file, as .npz is", 30);
  assert_int_equal(read_again(w), TN_ERR_FORMAT);
  assert_non_null(strstr(w->diag.text, ".npz"));
  unlink(w->path);
  assert_int_equal(read_again(w), TN_ERR_IO);
}

static const int64_t written_dims[] = {3, 1, 2};
static const uint16_t written[] = {1, 2, 3, 4, 5, 65535};

static tn_status write_file(work *w, const char *path, dtype t, size_t rank, const int64_t dims[],
                            const void *data, size_t bytes) {
  char header[NPY_HEADER_BYTES];
  size_t n = npy_header(t, rank, dims, header);
  return file_write_parts(path, (write_part[]){{header, n}, {data, bytes}}, 2, &w->diag);
}

static tn_status write_array(work *w) {
  return write_file(w, w->path, DT_U16, 3, written_dims, written, sizeof written);
}

static tn_status write_scalar(work *w) {
  return write_file(w, w->path, DT_F64, 0, NULL, &(double){-0.5}, 8);
}

static tn_status write_nothing(work *w) {
  return write_file(w, w->path, DT_BOOL, 1, (int64_t[]){0}, NULL, 0);
}

/** Writes the longest header that an array can have. */
static tn_status write_long_header(work *w) {
  int64_t dims[NPY_RANK_MAX];
  for (size_t i = 0; i < NPY_RANK_MAX; i++) dims[i] = i ? INT64_MAX / 100 : 0;
  return write_file(w, w->path, DT_I8, NPY_RANK_MAX, dims, NULL, 0);
}

static void reads_what_it_wrote(void **state) {
  work *w = *state;
  assert_int_equal(run(w, write_array), TN_OK);
  assert_int_equal(read_again(w), TN_OK);
  assert_int_equal(w->array.dtype, DT_U16);
  assert_int_equal(w->array.rank, 3);
  assert_memory_equal(w->array.dims, written_dims, sizeof written_dims);
  assert_memory_equal(w->array.data, written, sizeof written);
  assert_int_equal((uintptr_t)w->array.data % 64, 0);

  assert_int_equal(run(w, write_scalar), TN_OK);
  assert_int_equal(read_again(w), TN_OK);
  assert_int_equal(w->array.rank, 0);
  assert_memory_equal(w->array.data, &(double){-0.5}, 8);

  assert_int_equal(run(w, write_nothing), TN_OK);
  assert_int_equal(read_again(w), TN_OK);
  assert_int_equal(w->array.bytes, 0);

  assert_int_equal(run(w, write_long_header), TN_OK);
  assert_int_equal(read_again(w), TN_OK);
  assert_int_equal(w->array.rank, NPY_RANK_MAX);
  assert_true(w->array.dims[NPY_RANK_MAX - 1] == INT64_MAX / 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(reads_what_numpy_writes, start, end),
      cmocka_unit_test_setup_teardown(turns_columns_and_bytes, start, end),
      cmocka_unit_test_setup_teardown(reads_scalars_and_empty_arrays, start, end),
      cmocka_unit_test_setup_teardown(tells_of_other_types, start, end),
      cmocka_unit_test_setup_teardown(refuses_damaged_files, start, end),
      cmocka_unit_test_setup_teardown(refuses_too_many_axes, start, end),
      cmocka_unit_test_setup_teardown(reads_bytes, start, end),
      cmocka_unit_test_setup_teardown(refuses_every_cut, start, end),
      cmocka_unit_test_setup_teardown(refuses_other_files, start, end),
      cmocka_unit_test_setup_teardown(reads_what_it_wrote, start, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
