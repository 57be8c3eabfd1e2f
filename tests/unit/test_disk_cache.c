/* Tests the disk cache of kernels as contexts use it: a second process starts no compiler, keys
   cover everything that decides the code, and damaged or forged files are detected and replaced.
   Each context has its own devices here, as another process would. */
#include "base/str.h"
#include "compile/code_record.h"
#include "compile/disk_cache.h"
#include "compile/kernel_cache.h"
#include "support/temporary.h"
#include "support/tensor_check.h"
#include "tensor/context/context.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAMES = 64 };

typedef struct fixture {
  diag diag;
  arena arena;
  const char *folder, *above, *script,
      *started; /* started: the compiler appends a line per start */
  int remarks;
  char remark[1024]; /* the first warning */
} fixture;

static void save(const char *path, const void *data, size_t bytes) {
  assert_true(temporary_write(path, 0700, data, bytes));
}

/** Writes a compiler script that records each start and adds a file's contents to its version. */
static void write_script(fixture *f, const char *comment) {
  const char *text = arena_printf(&f->arena,
                                  "#!/bin/sh\n# %s\necho \"$*\" >> %s\n"
                                  "if [ \"$1\" = --version ]; then\n"
                                  "  gcc --version | sed \"1s/\\$/ $(cat %s/update)/\"\n"
                                  "else\n  exec gcc \"$@\"\nfi\n",
                                  comment, f->started, f->above);
  save(f->script, text, strlen(text));
}

static void prepare(void *arg) {
  fixture *f = arg;
  arena *a = &f->arena;
  f->above = temporary_folder(a);
  f->folder = arena_printf(a, "%s/cache", f->above);
  f->script = arena_printf(a, "%s/gcc-told", f->above);
  f->started = arena_printf(a, "%s/started", f->above);
  save(arena_printf(a, "%s/update", f->above), "one", 3);
  write_script(f, "first");
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->above, f);
}

/* Workload. */

static void take_remark(void *user, tn_log_level level, const char *text) {
  fixture *f = user;
  if (level != TN_LOG_WARNING) return;
  if (!f->remarks++) snprintf(f->remark, sizeof f->remark, "%s", text);
}

static tn_open_desc desc_of(fixture *f) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 1;
  d.cache_dir = f->folder;
  d.compiler = f->script;
  d.logger = (tn_logger){take_remark, f, NULL};
  return d;
}

/** Computes several kernels, the `shift`-th set of them. */
static tn_status compute(tn_context *c, float shift) {
  static const float x[] = {1, 2, 3, 4, 5, 6};
  float got[3], sum;
  tn_scope_begin(c);
  tn_tensor *a = tn_from_host(c, tn_shape(2, 3), TN_F32, x, sizeof x);
  tn_tensor *rows = tn_sum(tn_add(a, tn_num(c, shift)), tn_axes(0), false);
  tn_tensor *all = tn_max(tn_mul(a, tn_num(c, 2 * shift)), tn_axes(0, 1), false);
  tn_status s = tn_realize(c, (tn_tensor *const[]){rows, all}, 2);
  if (s == TN_OK) s = tn_read(rows, TN_F32, got, sizeof got);
  if (s == TN_OK) s = tn_read(all, TN_F32, &sum, sizeof sum);
  for (int i = 0; i < 3 && s == TN_OK; i++) assert_true(got[i] == x[i] + x[i + 3] + 2 * shift);
  if (s == TN_OK) assert_true(sum == 12 * shift);
  tn_status ended = tn_scope_end(c);
  return s ? s : ended;
}

/** Opens a context, computes and closes, as a process would; returns the number of kernels
    compiled. */
static uint64_t run(fixture *f, float shift) {
  tn_open_desc d = desc_of(f);
  tn_context *c = tn_open(&d);
  f->remarks = 0;
  f->remark[0] = 0;
  check_ok(c, compute(c, shift));
  kernel_cache_stats n = kernel_cache_get_stats(kernel_cache_of(c->registry));
  assert_true(n.compiled + n.found > 0);
  tn_close(c);
  return n.compiled;
}

/** Returns the number of compiler starts since the last call. */
static int starts(const fixture *f) {
  int lines = 0;
  FILE *t = fopen(f->started, "r");
  for (int c; t && (c = getc(t)) != EOF;) lines += c == '\n';
  if (t) fclose(t);
  unlink(f->started);
  return lines;
}

typedef struct names {
  size_t n;
  const char *path[NAMES];
} names;

/** Lists the cache's files; `all` includes those of compilers. */
static names list(fixture *f, bool all) {
  names l = {0};
  DIR *d = opendir(f->folder);
  for (const struct dirent *e; d && (e = readdir(d));) {
    const char *path = arena_printf(&f->arena, "%s/%s", f->folder, e->d_name);
    char head[128] = "";
    int fd = open(path, O_RDONLY);
    if (!strstr(e->d_name, ".tenon") || l.n == NAMES) continue;
    ssize_t n = pread(fd, head, sizeof head - 1, 40);
    close(fd);
    if (all || (n > 6 && !memcmp(head, "kernel", 6))) l.path[l.n++] = path;
  }
  if (d) closedir(d);
  return l;
}

typedef struct text {
  size_t n;
  unsigned char at[1 << 16];
} text;

static void load(const char *path, text *t) {
  int fd = open(path, O_RDONLY);
  ssize_t n = fd < 0 ? -1 : read(fd, t->at, sizeof t->at);
  close(fd);
  assert_true(n > 0 && (size_t)n < sizeof t->at);
  t->n = (size_t)n;
}

/* Finding. */

static void a_second_process_starts_no_program(void **state) {
  fixture *f = *state;
  uint64_t kernels = run(f, 1);
  assert_true(kernels > 0);
  assert_true(starts(f) >= 2);
  assert_int_equal(run(f, 1), 0);
  assert_int_equal(starts(f), 0);
  assert_int_equal(list(f, false).n, kernels);
  assert_int_equal(f->remarks, 0);
  assert_int_equal(run(f, 2), kernels);
  assert_true(starts(f) >= 2);
  assert_int_equal(run(f, 1) + run(f, 2), 0);
  assert_int_equal(starts(f), 0);
}

static void it_can_be_switched_off(void **state) {
  fixture *f = *state;
  tn_open_desc d = desc_of(f);
  assert_true(run(f, 1) > 0);
  starts(f);
  d.cache_dir = "off";
  tn_context *c = tn_open(&d);
  check_ok(c, compute(c, 1));
  assert_true(kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled > 0);
  tn_close(c);
  assert_true(starts(f) >= 2);
  setenv("TENON_CACHE", f->folder, 1);
  d.cache_dir = NULL;
  c = tn_open(&d);
  check_ok(c, compute(c, 1));
  assert_int_equal(kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled, 0);
  tn_close(c);
  setenv("TENON_CACHE", "off", 1);
}

/** Code of a backend that is not marked `lasting` is not stored. */
static void only_lasting_code_is_kept(void **state) {
  fixture *f = *state;
  tn_open_desc d = desc_of(f);
  d.device = "NULL";
  tn_context *c = tn_open(&d);
  tn_tensor *t = tn_add(floats(c, FLOATS(1, 2)), floats(c, FLOATS(3, 4)));
  check_ok(c, tn_realize(c, &t, 1));
  assert_true(kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled > 0);
  tn_close(c);
  assert_int_equal(list(f, true).n, 0);
}

/** Targets, math modes and compilers have separate kernels. */
static void keys_tell_what_differs(void **state) {
  fixture *f = *state;
  tn_open_desc d = desc_of(f);
  run(f, 1);
  for (int i = 0; i < 3; i++) {
    d = desc_of(f);
    if (i == 0) d.math = TN_MATH_EXACT;
    if (i == 1) d.cpu = "x86-64";
    if (i == 2) d.compiler = arena_printf(&f->arena, "%s -O1", f->script);
#ifndef __x86_64__
    d.cpu = NULL;
#endif
    for (int again = 0; again < 2; again++) {
      tn_context *c = tn_open(&d);
      check_ok(c, compute(c, 1));
      uint64_t compiled = kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled;
      if (d.cpu || i != 1) assert_int_equal(compiled > 0, !again);
      tn_close(c);
    }
  }
}

/* Compilers that change. */

static void a_new_compiler_is_asked(void **state) {
  fixture *f = *state;
  uint64_t kernels = run(f, 1);
  starts(f);
  write_script(f, "second"); /* the version is unchanged, so kernels are found */
  assert_int_equal(run(f, 1), 0);
  assert_int_equal(starts(f), 1);
  save(arena_printf(&f->arena, "%s/update", f->above), "two", 3);
  write_script(f, "third");
  assert_int_equal(run(f, 1), kernels);
  assert_int_equal(run(f, 1), 0);
}

/** A script's compiler may change without the script: this is noticed at the next compilation,
    whose kernels are then not stored under the old identity. */
static void what_is_hidden_comes_out(void **state) {
  fixture *f = *state;
  uint64_t kernels = run(f, 1);
  save(arena_printf(&f->arena, "%s/update", f->above), "two", 3);
  assert_int_equal(run(f, 1), 0);
  size_t before = list(f, false).n;
  assert_int_equal(run(f, 2), kernels);
  assert_int_equal(list(f, false).n, before);
  assert_int_equal(run(f, 1), kernels);
  assert_int_equal(run(f, 2), kernels);
  assert_int_equal(list(f, false).n, before + 2 * kernels);
  starts(f);
  assert_int_equal(run(f, 1) + run(f, 2), 0);
  assert_int_equal(starts(f), 0);
}

/* Hostile files. */

static void what_was_damaged_is_made_anew(void **state) {
  fixture *f = *state;
  static text t;
  uint64_t kernels = run(f, 1);
  names l = list(f, false);
  for (int way = 0; way < 3; way++) {
    for (size_t i = 0; i < l.n; i++) {
      load(l.path[i], &t);
      unlink(l.path[i]);
      t.at[t.n / 2] ^= 1;
      save(l.path[i], t.at, way == 0 ? t.n : way == 1 ? t.n / 2 : 0);
      chmod(l.path[i], 0600);
    }
    assert_int_equal(run(f, 1), kernels);
    assert_true(f->remarks > 0);
    check_text(f->remark, "kernel cache: ignoring file ");
    assert_int_equal(run(f, 1), 0);
    assert_int_equal(f->remarks, 0);
  }
  l = list(f, true);
  for (size_t i = 0; i < l.n; i++) save(l.path[i], "no", 2);
  assert_int_equal(run(f, 1), kernels);
  assert_int_equal(run(f, 1), 0);
}

/** Changes the contents of a copy of a file. */
typedef void forgery(char *content, const code_record *p);

typedef struct forging {
  arena *arena;
  const char *path;
  forgery *change;
} forging;

/** Rewrites a file with other contents and a valid hash. */
static void forge_body(void *arg) {
  const forging *j = arg;
  static text t;
  disk_cache_file file;
  code_record p;
  cache_key keys[NAMES];
  const cache_key *all[NAMES];
  load(j->path, &t);
  assert_null(disk_cache_file_read(&file, t.at, t.n));
  deserialiser r = file.keys;
  for (size_t i = 0; i < file.n_keys; i++) {
    keys[i].data = deserialise_block(&r, &keys[i].bytes);
    all[i] = &keys[i];
  }
  char *content = arena_copy(j->arena, file.content, file.content_bytes);
  assert_true(code_record_read(&p, content, file.content_bytes, file.n_keys, j->arena));
  j->change(content, &p);
  str s = str_new(j->arena);
  disk_cache_file_write(&s, all, file.n_keys, content, file.content_bytes);
  unlink(j->path);
  save(j->path, s.at, s.n);
}

static void forge(fixture *f, forgery *change) {
  names l = list(f, false);
  for (size_t i = 0; i < l.n; i++) {
    forging j = {&f->arena, l.path[i], change};
    if (diag_catch(&f->diag, forge_body, &j)) fail_msg("%s", f->diag.text);
  }
}

static void no_object(char *content, const code_record *p) {
  memset(content + ((const char *)p->code.data - content), 0, p->code.bytes);
}

static void no_entry(char *content, const code_record *p) {
  (void)p;
  content[8 + 4] ^= 1; /* in a function's name, which is the first text */
}

/** After the text come core_id and the number of slots. */
static char *slots_of(char *content, const code_record *p) {
  return content + 8 + strlen(p->kernels[0].spec.entry) + 8 + 8;
}

static void wild_slot(char *content, const code_record *p) {
  content[8 + (slots_of(content, p) - content)] = 99;
}

static void many_slots(char *content, const code_record *p) { slots_of(content, p)[7] = 1; }

/** Wrong facts and code are detected even with a valid hash and valid keys. */
static void what_was_forged_is_made_anew(void **state) {
  fixture *f = *state;
  static forgery *const ways[] = {no_object, no_entry, wild_slot, many_slots};
  uint64_t kernels = run(f, 1);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    forge(f, ways[i]);
    uint64_t compiled = run(f, 1); /* kernels of the same file may be intact */
    assert_true(compiled > 0 && compiled <= kernels);
    assert_true(f->remarks > 0);
    check_text(f->remark, "no loadable kernel");
    assert_int_equal(run(f, 1), 0);
    assert_int_equal(f->remarks, 0);
  }
}

typedef struct reading {
  fixture *f;
  const disk_cache_file *file;
  size_t at, good, bad;
} reading;

static void read_changed(void *arg) {
  reading *j = arg;
  static const unsigned char lies[] = {0, 1, 0x7f, 0x80, 0xff};
  for (size_t i = 0; i < sizeof lies; i++) {
    size_t n = j->file->content_bytes;
    unsigned char *copy = memcpy(malloc(n), j->file->content,
                                 n); /* of its exact size, so that sanitizers see overruns */
    copy[j->at] = lies[i];
    code_record p;
    bool whole = code_record_read(&p, copy, n, j->file->n_keys, &j->f->arena);
    *(whole ? &j->good : &j->bad) += 1;
    for (size_t k = 0; k < j->file->n_keys && whole; k++) {
      const code_record_kernel *kernel = &p.kernels[k];
      int64_t *values = calloc(kernel->spec.n_values + 1, sizeof *values), global[3], local[3];
      diag d = {0};
      assert_true(kernel->spec.core_id < (int64_t)kernel->spec.n_values);
      launch_grid_eval(&kernel->sizes, values, global, local, &d);
      free(values);
    }
    free(copy);
  }
}

/** A code record with random bytes is read within its bounds, and its kernels can be used. */
static void pieces_are_not_trusted(void **state) {
  fixture *f = *state;
  static text t;
  disk_cache_file file;
  run(f, 1);
  load(list(f, false).path[0], &t);
  assert_null(disk_cache_file_read(&file, t.at, t.n));
  reading j = {.f = f, .file = &file};
  for (; j.at < file.content_bytes; j.at++)
    if (diag_catch(&f->diag, read_changed, &j)) fail_msg("%s", f->diag.text);
  assert_true(j.good > 0 && j.bad > 0);
}

static void a_folder_that_cannot_be_used_is_told_once(void **state) {
  fixture *f = *state;
  assert_int_equal(mkdir(f->folder, 0777), 0);
  assert_int_equal(chmod(f->folder, 0777), 0);
  assert_true(run(f, 1) > 0);
  assert_int_equal(f->remarks, 1);
  check_text(f->remark, "is writable by other users");
  assert_true(run(f, 1) > 0);
  assert_int_equal(list(f, true).n, 0);
}

/* Concurrency. */

static void processes_compile_the_same(void **state) {
  fixture *f = *state;
  enum { CHILDREN = 4 };
  pid_t child[CHILDREN];
  for (int i = 0; i < CHILDREN; i++)
    if (!(child[i] = fork())) _exit(run(f, 1) == UINT64_MAX || f->remarks);
  for (int i = 0; i < CHILDREN; i++) {
    int status;
    assert_int_equal(waitpid(child[i], &status, 0), child[i]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
  starts(f);
  assert_int_equal(run(f, 1), 0);
  assert_int_equal(starts(f), 0);
}

/* Memory. */

/** Each allocation of a run that finds its kernels fails in turn. */
static void memory_may_run_out(void **state) {
  fixture *f = *state;
  uint64_t kernels = run(f, 1);
  bool done = false;
  f->remarks = 0;
  for (size_t n = 1; !done; n++) {
    counting count = {.fail_at = n};
    tn_open_desc d = desc_of(f);
    d.allocator = (tn_allocator){counting_alloc, counting_release, &count, counting_destroy};
    tn_context *c = tn_open(&d);
    tn_status s = c ? compute(c, 1) : TN_ERR_MEMORY;
    if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
    tn_close(c);
    assert_int_equal(count.out, 0);
    done = count.calls < n;
  }
  assert_int_equal(f->remarks, 0);
  assert_int_equal(list(f, false).n, kernels);
  assert_int_equal(run(f, 1), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {TEST(a_second_process_starts_no_program),
                                     TEST(it_can_be_switched_off),
                                     TEST(only_lasting_code_is_kept),
                                     TEST(keys_tell_what_differs),
                                     TEST(a_new_compiler_is_asked),
                                     TEST(what_is_hidden_comes_out),
                                     TEST(what_was_damaged_is_made_anew),
                                     TEST(what_was_forged_is_made_anew),
                                     TEST(pieces_are_not_trusted),
                                     TEST(a_folder_that_cannot_be_used_is_told_once),
                                     TEST(processes_compile_the_same),
                                     TEST(memory_may_run_out)};
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
