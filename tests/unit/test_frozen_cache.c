/* Tests exported caches: an import runs under the machine's facts that it was made with, damage of
   any byte and a full disk import nothing, and files of other builds, devices and processors are
   refused by name. */
#include "compile/frozen_cache.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/context/context.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

typedef struct fixture {
  diag diag;
  arena arena;
  char *folder;
  const char *file; /* exported */
} fixture;

static const char *path_of(fixture *f, const char *name) {
  return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static tn_context *open_for(fixture *f, const char *folder, const char *cpu) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.environment = false;
  desc.cache_dir = path_of(f, folder);
  desc.cpu = cpu;
  desc.threads = 1; /* separate devices and kernels */
  return tn_open(&desc);
}

/** The highest level here, as `cpu` states it. */
static const char *level(fixture *f) {
  tn_context *c = open_for(f, "none", NULL);
  const char *target = arena_printf(&f->arena, "%s", c->target->caps.target);
  tn_close(c);
  return target;
}

/** Runs a sum and a matrix product; returns the number of kernels that were compiled. */
static uint64_t compiled(tn_context *c) {
  const float x[] = {1, 2, 3, 4}, sums[] = {3, 4, 5, 6}, products[] = {7, 10, 15, 22};
  tn_kernel_cache_info info = TN_KERNEL_CACHE_INFO_INIT;
  check_floats(c, tn_add(floats(c, 4, x), tn_num(c, 2)), 4, sums);
  tn_tensor *m = tn_reshape(floats(c, 4, x), tn_shape(2, 2));
  check_floats(c, tn_reshape(tn_matmul(m, m), tn_shape(4)), 4, products);
  check_ok(c, tn_kernel_cache_get(c, &info));
  return info.compiled;
}

/** The entries of a folder; 0 if there is none. */
static size_t count(const char *folder) {
  DIR *d = opendir(folder);
  size_t n = 0;
  for (const struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* Entries as another machine would make them: of one with a larger second-level cache. */

static void add_content(void *user, str *to) {
  const disk_cache_file *f = user;
  str_add_bytes(to, (const char *)f->content, f->content_bytes);
}

static void ignore(void *user, const char *text) { (void)user, (void)text; }

static cache_key key_elsewhere(fixture *f, deserialiser *keys) {
  size_t n;
  uint64_t l2;
  const void *key = deserialise_block(keys, &n);
  char *copy = arena_copy(&f->arena, key, n);
  cache_key_parts p;
  assert_true(cache_key_read(copy, n, &p));
  char *at = copy + (p.target_key + p.target_key_bytes - copy) - 6 * sizeof l2;
  memcpy(&l2, at, sizeof l2);
  assert_int_equal(l2, p.hardware.l2_bytes);
  l2 += 4096;
  memcpy(at, &l2, sizeof l2);
  return cache_key_of(copy, n);
}

static void make_elsewhere(fixture *f, const char *from, const char *to) {
  disk_cache *a, *b;
  disk_cache_names names;
  int folder;
  assert_true(disk_cache_open(&a, path_of(f, from), ignore, NULL, &mem_system) &&
              disk_cache_open(&b, path_of(f, to), ignore, NULL, &mem_system));
  assert_int_equal(disk_cache_folder_open(path_of(f, from), false, &folder, &f->diag), TN_OK);
  assert_int_equal(disk_cache_list(folder, false, &f->arena, &names, &f->diag), TN_OK);
  for (size_t i = 0; i < names.n; i++) {
    disk_cache_file file;
    cache_key made[8];
    const cache_key *keys[8];
    assert_true(disk_cache_read_name(a, folder, names.at[i], &file));
    deserialiser r = file.keys;
    for (size_t k = 0; k < file.n_keys; k++) {
      made[k] = key_elsewhere(f, &r);
      keys[k] = &made[k];
    }
    if (!compiler_identity_key_is(keys[0]))
      disk_cache_write(b, keys, file.n_keys, add_content, &file);
    disk_cache_free_file(a, &file);
  }
  close(folder);
  disk_cache_close(a);
  disk_cache_close(b);
}

static void prepare(void *arg) {
  fixture *f = arg;
  f->folder = temporary_folder(&f->arena);
  f->file = path_of(f, "file");
  const char *cpu = level(f);
  tn_context *c = open_for(f, "here", cpu);
  assert_int_equal(compiled(c), 2);
  tn_close(c);
  make_elsewhere(f, "here", "elsewhere");
  c = open_for(f, "elsewhere", cpu);
  tn_cache_info info = TN_CACHE_INFO_INIT;
  check_ok(c, tn_cache_export(c, f->file, &info));
  assert_true(info.entries == 4 && info.plans == 2);
  tn_close(c);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->folder, f);
}

/* Tests. */

static void an_import_runs_under_the_facts_that_it_was_made_with(void **state) {
  fixture *f = *state;
  tn_context *c = open_for(f, "new", NULL);
  tn_cache_info info = TN_CACHE_INFO_INIT;
  check_ok(c, tn_cache_import(c, f->file, &info));
  assert_true(info.entries == 4 && info.plans == 2 && info.bytes > 0);
  assert_string_equal(info.folder, path_of(f, "new"));
  check_ok(c, tn_cache_get(c, &info));
  assert_int_equal(info.entries, 5); /* and the row */
  tn_close(c);
  c = open_for(f, "new", level(f));
  assert_int_equal(compiled(c), 0);
  check_ok(c, tn_cache_export(c, path_of(f, "again"), &info)); /* what was imported */
  assert_int_equal(info.entries, 4);
  tn_close(c);
  c = open_for(f, "new", "x86-64"); /* another level, or none of this processor's */
  if (!tn_message(c)[0] && strcmp(c->target->caps.target, level(f)))
    assert_int_equal(compiled(c), 2);
  tn_close(c);
  c = open_for(f, "new", NULL); /* asks for this machine's own */
  assert_int_equal(compiled(c), 2);
  tn_close(c);
}

static void what_an_import_lacks_is_compiled_and_kept(void **state) {
  fixture *f = *state;
  const float x[] = {1, 2, 3}, doubled[] = {2, 4, 6};
  tn_kernel_cache_info info = TN_KERNEL_CACHE_INFO_INIT;
  tn_context *c = open_for(f, "new", NULL);
  check_ok(c, tn_cache_import(c, f->file, NULL));
  tn_close(c);
  for (uint64_t left = 2; left-- > 0;) {
    c = open_for(f, "new", level(f));
    check_floats(c, tn_mul(floats(c, 3, x), tn_num(c, 2)), 3, doubled);
    check_ok(c, tn_kernel_cache_get(c, &info));
    assert_int_equal(info.compiled, left);
    assert_int_equal(compiled(c), left);
    tn_close(c);
  }
}

/** Imports bytes as a file, which must fail, and change nothing. */
static void refuse(fixture *f, tn_context *c, const void *data, size_t bytes, tn_status status,
                   const char *says) {
  assert_true(temporary_write(path_of(f, "bad"), 0600, data, bytes));
  tn_cache_info info = TN_CACHE_INFO_INIT;
  info.entries = 7;
  assert_int_equal(tn_cache_import(c, path_of(f, "bad"), &info), status);
  if (!strstr(tn_message(c), says)) fail_msg("\"%s\" lacks \"%s\"", tn_message(c), says);
  assert_int_equal(info.entries, 7);
  assert_int_equal(count(path_of(f, "new")), 0);
}

static unsigned char *read_exported(fixture *f, size_t *bytes) {
  file_map map;
  assert_int_equal(file_map_open(&map, f->file, &f->diag), TN_OK);
  unsigned char *data = arena_copy(&f->arena, map.data, map.bytes);
  *bytes = map.bytes;
  file_map_close(&map);
  return data;
}

static void damage_of_any_byte_imports_nothing(void **state) {
  fixture *f = *state;
  size_t bytes;
  unsigned char *data = read_exported(f, &bytes);
  tn_context *c = open_for(f, "new", NULL);
  for (size_t i = 0; i < bytes; i += i < 512 ? 1 : 13) {
    data[i] ^= 0x11;
    refuse(f, c, data, bytes, TN_ERR_FORMAT, "");
    data[i] ^= 0x11;
    refuse(f, c, data, i, TN_ERR_FORMAT, "");
  }
  data[7] = '9';
  refuse(f, c, data, bytes, TN_ERR_FORMAT, "of a version that this library does not read");
  refuse(f, c, "a text file, no cache", 21, TN_ERR_FORMAT, "is not an exported cache");
  tn_close(c);
}

/** An exported file of an origin without rows and files. */
static void refuse_origin(fixture *f, tn_context *c, const char *build, const char *backend,
                          const char *target, const char *says) {
  str body = str_new(&f->arena), s = str_new(&f->arena);
  uint64_t hash[2];
  serialise_text(&body, build);
  serialise_text(&body, backend);
  serialise_text(&body, target);
  serialise_number(&body, UINT64_MAX); /* no number of rows */
  cache_keys_hash(body.at, body.n, hash);
  str_add(&s, "tenonfc1");
  str_add_bytes(&s, (const char *)hash, sizeof hash);
  str_add_bytes(&s, body.at, body.n);
  bool is_malformed = !strcmp(says, "is malformed");
  refuse(f, c, s.at, s.n, is_malformed ? TN_ERR_FORMAT : TN_ERR_UNSUPPORTED, says);
}

static void files_for_others_are_refused_by_name(void **state) {
  fixture *f = *state;
  tn_context *c = open_for(f, "new", NULL);
  const char *other = "another build of the library (0.0 other; this is ";
  refuse_origin(f, c, "0.0 other", "CPU", level(f),
                arena_printf(&f->arena, "%s%s", other, tn_build_id()));
  refuse_origin(f, c, build_id, "OTHER", level(f), "is for devices of OTHER, not of CPU");
  refuse_origin(f, c, build_id, "CPU", "pdp-11", "unknown processor level \"pdp-11\"");
  refuse_origin(f, c, build_id, "CPU", level(f), "is malformed");
  tn_close(c);
}

static void missing_features_are_named(void **state) {
  fixture *f = *state;
  arena *a = &f->arena;
  static const char *const all = "x86-64-v4+avx512vnni+avx512bf16";
  assert_string_equal(frozen_cache_missing_features(a, all, "x86-64-v4+avx512vnni"), "avx512bf16");
  assert_string_equal(frozen_cache_missing_features(a, all, "x86-64-v4+avx512bf16"), "avx512vnni");
  assert_string_equal(frozen_cache_missing_features(a, all, "x86-64-v3"),
                      "x86-64-v4, avx512vnni, avx512bf16");
  assert_string_equal(frozen_cache_missing_features(a, "x86-64-v3", "x86-64"), "x86-64-v3");
}

/** Limits the size of files, as a full disk does; 0: no limit. */
static void limit_files(rlim_t bytes) {
  struct rlimit r;
  getrlimit(RLIMIT_FSIZE, &r);
  r.rlim_cur = bytes ? bytes : r.rlim_max;
  setrlimit(RLIMIT_FSIZE, &r);
}

static void a_full_disk_changes_nothing(void **state) {
  fixture *f = *state;
  size_t bytes, again;
  unsigned char *before = read_exported(f, &bytes);
  tn_context *c = open_for(f, "new", NULL), *from = open_for(f, "elsewhere", level(f));
  for (rlim_t limit = 64; limit < bytes / 2; limit += 256) {
    limit_files(limit);
    tn_status s = tn_cache_import(c, f->file, NULL);
    limit_files(0);
    if (!s) break;
    assert_int_equal(s, TN_ERR_IO);
    check_text(tn_message(c), "cache_import: cannot write to the cache folder");
    assert_int_equal(count(path_of(f, "new")), 0);
  }
  limit_files(1024);
  assert_int_equal(tn_cache_export(from, f->file, NULL), TN_ERR_IO);
  limit_files(0);
  assert_memory_equal(read_exported(f, &again), before, bytes);
  assert_int_equal(again, bytes);
  tn_close(from);
  tn_close(c);
}

static void there_must_be_a_cache_and_kernels_in_it(void **state) {
  fixture *f = *state;
  tn_context *c = open_for(f, "new", NULL);
  assert_int_equal(tn_cache_export(c, path_of(f, "empty"), NULL), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "cache_export: the cache holds no kernels for ");
  assert_int_equal(access(path_of(f, "empty"), F_OK), -1);
  assert_int_equal(tn_cache_export(c, NULL, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_cache_import(c, path_of(f, "empty"), NULL), TN_ERR_IO);
  tn_close(c);
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.cache_dir = "off";
  c = tn_open(&desc);
  assert_int_equal(tn_cache_import(c, f->file, NULL), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "cache_import: the disk cache is switched off");
  tn_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_import_runs_under_the_facts_that_it_was_made_with),
      TEST(what_an_import_lacks_is_compiled_and_kept),
      TEST(damage_of_any_byte_imports_nothing),
      TEST(files_for_others_are_refused_by_name),
      TEST(missing_features_are_named),
      TEST(a_full_disk_changes_nothing),
      TEST(there_must_be_a_cache_and_kernels_in_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
