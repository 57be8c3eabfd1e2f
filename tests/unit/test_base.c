/* Tests the base layer: arenas, allocation sizes and failures, kept blocks, error messages,
   strings, vectors, file mapping and writing, child processes, and threads. */
#include "base/arena.h"
#include "base/block_cache.h"
#include "base/file.h"
#include "base/memory_limit.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/vec.h"
#include "support/counting_mem.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

typedef struct work {
  arena *arena;
  diag *diag;
} work;

/* diag */

static void inner_raise(void *arg) { diag_raise(arg, TN_ERR_SHAPE, "inner %d", 7); }

static void outer_body(void *arg) {
  diag *d = arg;
  assert_int_equal(diag_catch(d, inner_raise, d), TN_ERR_SHAPE);
  diag_prefix(d, "outer");
  diag_rethrow(d);
}

static void diag_nests(void **state) {
  (void)state;
  diag d = {0};
  assert_int_equal(diag_catch(&d, outer_body, &d), TN_ERR_SHAPE);
  assert_string_equal(d.text, "outer: inner 7");
  assert_null(d.at);
  diag_clear(&d);
  assert_int_equal(d.status, TN_OK);
  assert_string_equal(d.text, "");
}

/** A backend may return a status without a message. */
static void diag_completes_failures(void **state) {
  (void)state;
  diag d = {0};
  assert_int_equal(diag_complete(&d, TN_OK), TN_OK);
  assert_string_equal(d.text, "");
  assert_int_equal(diag_complete(&d, TN_ERR_DEVICE), TN_ERR_DEVICE);
  assert_int_equal(d.failure.status, TN_ERR_DEVICE);
  assert_string_equal(d.failure.text, tn_status_text(TN_ERR_DEVICE));
  diag_clear(&d);
  tn_fail(&d.failure, TN_ERR_IO, "no %s", "reply");
  assert_int_equal(diag_complete(&d, TN_ERR_TIMEOUT), TN_ERR_TIMEOUT);
  assert_int_equal(d.status, TN_ERR_TIMEOUT);
  assert_string_equal(d.text, "no reply");
}

static void diag_cuts_long_text(void **state) {
  (void)state;
  diag d = {0};
  char *wide = malloc(5000);
  memset(wide, 'x', 4999);
  wide[4999] = 0;
  assert_int_equal(diag_set(&d, TN_ERR_IO, "%s", wide), TN_ERR_IO);
  assert_int_equal(strlen(d.text), DIAG_TEXT_BYTES - 1);
  diag_set(&d, TN_ERR_IO, "%s again", d.text); /* reads its own buffer */
  assert_int_equal(strlen(d.text), DIAG_TEXT_BYTES - 1);
  diag_prefix(&d, "%s", wide);
  assert_int_equal(strlen(d.text), DIAG_TEXT_BYTES - 1);
  diag other = {0};
  other.failure = d.failure;
  assert_int_equal(other.status, TN_ERR_IO);
  assert_string_equal(other.text, d.text);
  free(wide);
}

/* arena */

static void fill_arena(void *arg) {
  arena *a = ((work *)arg)->arena;
  for (size_t i = 1; i < 3000; i++) {
    unsigned char *p = arena_alloc(a, i);
    assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
    memset(p, (int)i, i);
  }
  unsigned char *zero = arena_calloc(a, 1000, 1000);
  for (size_t i = 0; i < 1000000; i++) assert_int_equal(zero[i], 0);
  assert_string_equal(arena_printf(a, "%s-%d", "a", 5), "a-5");
  assert_memory_equal(arena_copy(a, "abc", 4), "abc", 4);
}

static void arena_keeps_and_frees(void **state) {
  (void)state;
  counting_mem c = {.limit = 1 << 30};
  mem m = counting_mem_of(&c);
  diag d = {0};
  arena a;
  arena_init(&a, &m, &d);
  work w = {&a, &d};
  assert_int_equal(diag_catch(&d, fill_arena, &w), TN_OK);
  assert_true(c.bytes > 1000000);
  arena_free(&a);
  assert_int_equal(c.bytes, 0);
  assert_int_equal(diag_catch(&d, fill_arena, &w), TN_OK); /* usable again */
  arena_free(&a);
  assert_int_equal(c.bytes, 0);
}

static void arena_fails_everywhere(void **state) {
  (void)state;
  for (size_t n = 1;; n++) {
    counting_mem c = {.limit = 1 << 30, .fail_at = n};
    mem m = counting_mem_of(&c);
    diag d = {0};
    arena a;
    arena_init(&a, &m, &d);
    work w = {&a, &d};
    tn_status s = diag_catch(&d, fill_arena, &w);
    arena_free(&a);
    assert_int_equal(c.bytes, 0);
    if (s == TN_OK) {
      assert_true(n > 3);
      return;
    }
    assert_int_equal(s, TN_ERR_MEMORY);
    assert_non_null(strstr(d.text, "memory"));
  }
}

static void ask_too_much(void *arg) { arena_alloc(arg, SIZE_MAX); }
static void ask_block_too_much(void *arg) { arena_alloc(arg, SIZE_MAX - 40); }
static void ask_product_too_much(void *arg) { arena_calloc(arg, SIZE_MAX / 2, 3); }

static void arena_refuses_overflow(void **state) {
  (void)state;
  counting_mem c = {.limit = 1 << 30};
  mem m = counting_mem_of(&c);
  diag d = {0};
  arena a;
  arena_init(&a, &m, &d);
  assert_int_equal(diag_catch(&d, ask_too_much, &a), TN_ERR_MEMORY);
  assert_int_equal(diag_catch(&d, ask_block_too_much, &a), TN_ERR_MEMORY);
  assert_int_equal(diag_catch(&d, ask_product_too_much, &a), TN_ERR_MEMORY);
  arena_free(&a);
}

static void arena_goes_back(void **state) {
  (void)state;
  counting_mem c = {.limit = 1 << 30};
  mem m = counting_mem_of(&c);
  diag d = {0};
  arena a;
  arena_init(&a, &m, &d);
  char *first = arena_printf(&a, "kept");
  arena_mark mark = arena_save(&a);
  size_t before = c.bytes;
  void *after = arena_alloc(&a, 100);
  for (int i = 0; i < 100; i++) arena_alloc(&a, 10000);
  arena_rewind(&a, mark);
  assert_in_range(c.bytes, before, before + (1 << 20)); /* one block is kept for reuse */
  assert_ptr_equal(arena_alloc(&a, 100), after);
  assert_string_equal(first, "kept");
  arena_free(&a);
  assert_int_equal(c.bytes, 0);
}

typedef struct kept_array {
  arena a;
  arena_mark before;
  int *at;
  size_t n;
} kept_array;

static void keep_array(void *arg) {
  kept_array *k = arg;
  k->at = arena_rewind_keeping(&k->a, k->before, k->at, k->n * sizeof *k->at);
}

/** Rewinds past an array of `n` numbers with `junk` bytes before and behind it; the allocation
    `fail_at` of the move fails (0: none). Returns the bytes that the arena then has. */
static size_t keep_of(size_t first, size_t n, size_t junk, size_t fail_at) {
  counting_mem c = {0};
  mem m = counting_mem_of(&c);
  diag d = {0};
  kept_array k = {.n = n};
  arena_init(&k.a, &m, &d);
  char *text = arena_printf(&k.a, "kept");
  arena_alloc(&k.a, first);
  k.before = arena_save(&k.a);
  arena_alloc(&k.a, junk);
  k.at = arena_alloc(&k.a, n * sizeof *k.at);
  for (size_t i = 0; i < n; i++) k.at[i] = (int)i;
  arena_alloc(&k.a, junk);
  if (fail_at) c.fail_at = c.calls + fail_at;
  assert_int_equal(diag_catch(&d, keep_array, &k), fail_at ? TN_ERR_MEMORY : TN_OK);
  for (size_t i = 0; i < n; i++) assert_int_equal(k.at[i], i);
  assert_string_equal(text, "kept");
  if (!fail_at)
    assert_ptr_equal(arena_alloc(&k.a, 1), (char *)k.at + (n * sizeof *k.at + 15) / 16 * 16);
  size_t bytes = c.bytes;
  arena_free(&k.a);
  assert_int_equal(c.bytes, 0);
  return bytes;
}

/** An array is moved to the mark, also over itself, or gets a block of its own. */
static void arena_keeps_an_array(void **state) {
  (void)state;
  keep_of(0, 10, 0, 0);
  keep_of(0, 100, 16, 0);
  keep_of(3000, 500, 100000, 0);
  assert_in_range(keep_of(16, 100, 3 << 20, 0), 0, (1 << 20) + 10000);
  keep_of(3000, 500, 100000, 1);
}

static void mem_checks_sizes(void **state) {
  (void)state;
  assert_null(mem_calloc(&mem_system, SIZE_MAX / 4, 8));
  void *page = mem_alloc_aligned(&mem_system, 100, 4096);
  assert_int_equal((uintptr_t)page % 4096, 0);
  mem_free(&mem_system, page, 100);
  char *grown = mem_alloc(&mem_system, 4);
  memcpy(grown, "abc", 4);
  grown = mem_resize(&mem_system, grown, 4, 1000);
  assert_string_equal(grown, "abc");
  counting_mem c = {.limit = 1 << 30, .fail_at = 1};
  mem m = counting_mem_of(&c);
  assert_null(mem_resize(&m, grown, 1000, 2000));
  assert_string_equal(grown, "abc");
  mem_free(&mem_system, grown, 1000);
  char *copy = mem_strdup(&mem_system, "text");
  assert_string_equal(copy, "text");
  mem_strfree(&mem_system, copy);
  mem_free(&mem_system, NULL, 3);
}

static void block_cache_keeps_blocks(void **state) {
  counting_mem count = {0};
  mem m = counting_mem_of(&count);
  block_cache c;
  (void)state;
  block_cache_init(&c, &m);
  void *small = mem_alloc(&c.mem, 10), *large = mem_alloc(&c.mem, 5000);
  void *huge = mem_alloc(&c.mem, (size_t)100 << 20), *page = mem_alloc_aligned(&c.mem, 5000, 4096);
  assert_true(small && large && huge && page);
  assert_int_equal((uintptr_t)page % 4096, 0);
  memset(large, 1, 5000);
  memset(page, 1, 5000);
  mem_free(&c.mem, small, 10);
  mem_free(&c.mem, huge, (size_t)100 << 20);
  assert_int_equal(count.bytes, 2 * 8192); /* blocks that no class has are not kept */
  mem_free(&c.mem, large, 5000);
  assert_int_equal(count.bytes, 2 * 8192);
  assert_ptr_equal(mem_alloc(&c.mem, 8192), large); /* of the same class */
  assert_int_equal(count.calls, 4);
  void *other = mem_alloc(&c.mem, 4096); /* a smaller one is a new block */
  assert_int_equal(count.calls, 5);
  mem_free(&c.mem, other, 4096);
  mem_free(&c.mem, large, 8192);
  mem_free(&c.mem, page, 5000);
  block_cache_free(&c);
  assert_int_equal(count.bytes, 0);
  count.fail_at = count.calls + 1;
  assert_null(mem_alloc(&c.mem, 5000));
  count.fail_at = count.calls + 1;
  assert_null(mem_alloc(&c.mem, 10));
  block_cache_free(&c);
}

/* containers */

static void vec_grows(void **state) {
  (void)state;
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  VEC(int) v = {0};
  int evaluated = 0;
  for (int i = 0; i < 10000; i++) vec_push(&a, &v, evaluated++);
  assert_int_equal(v.n, 10000);
  assert_int_equal(evaluated, 10000);
  for (int i = 0; i < 10000; i++) assert_int_equal(v.at[i], i);
  assert_int_equal(vec_last(&v), 9999);
  assert_int_equal(vec_pop(&v), 9999);
  assert_int_equal(v.n, 9999);
  vec_reserve(&a, &v, 50000);
  assert_true(v.cap >= 50000);
  assert_int_equal(v.at[9998], 9998);
  arena_free(&a);
}

static void str_grows(void **state) {
  (void)state;
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  str s = str_new(&a);
  assert_string_equal(str_text(&s), "");
  char expected[4096] = "";
  for (int i = 0; i < 200; i++) {
    str_addf(&s, "%d,", i);
    sprintf(expected + strlen(expected), "%d,", i);
  }
  assert_string_equal(str_text(&s), expected);
  str_addf(&s, "%s", expected); /* longer than the first reservation */
  assert_int_equal(s.n, 2 * strlen(expected));
  str_add(&s, "end");
  str_add_bytes(&s, "\0x", 2);
  assert_memory_equal(s.at + s.n - 5, "end\0x", 6);
  arena_free(&a);
}

/* files */

typedef struct place {
  arena arena;
  diag diag;
  char *folder;
} place;

static int make_place(void **state) {
  place *p = calloc(1, sizeof *p);
  arena_init(&p->arena, &mem_system, &p->diag);
  *state = p;
  p->folder = temporary_folder(&p->arena);
  return p->folder ? 0 : -1;
}

static int remove_place(void **state) {
  place *p = *state;
  rmdir(p->folder);
  int left = access(p->folder, F_OK) == 0; /* fails if files are left */
  arena_free(&p->arena);
  free(p);
  return left;
}

static void file_round_trip(void **state) {
  place *p = *state;
  char *path = arena_printf(&p->arena, "%s/f", p->folder);
  static char large[100000];
  memset(large, 'z', sizeof large);
  file_map f;
  assert_int_equal(file_write(path, large, sizeof large, &p->diag), TN_OK);
  assert_int_equal(file_write(path, "new", 3, &p->diag), TN_OK);
  assert_int_equal(file_map_open(&f, path, &p->diag), TN_OK);
  assert_int_equal(f.bytes, 3);
  assert_memory_equal(f.data, "new", 3);
  file_map_close(&f);
  assert_int_equal(file_write(path, NULL, 0, &p->diag), TN_OK);
  assert_int_equal(file_map_open(&f, path, &p->diag), TN_OK);
  assert_null(f.data);
  assert_int_equal(f.bytes, 0);
  file_map_close(&f);
  unlink(path);
}

static void file_parts_follow_one_another(void **state) {
  place *p = *state;
  char *path = arena_printf(&p->arena, "%s/f", p->folder);
  const write_part parts[] = {{"ab", 2}, {NULL, 0}, {"c", 1}, {"defg", 4}};
  file_map f;
  assert_int_equal(file_check_writable(path, &p->diag), TN_OK);
  assert_int_equal(file_write_parts(path, parts, 4, &p->diag), TN_OK);
  assert_int_equal(file_map_open(&f, path, &p->diag), TN_OK);
  assert_int_equal(f.bytes, 7);
  assert_memory_equal(f.data, "abcdefg", 7);
  file_map_close(&f);
  assert_int_equal(file_write_parts(path, parts, 0, &p->diag), TN_OK);
  assert_int_equal(file_map_open(&f, path, &p->diag), TN_OK);
  assert_int_equal(f.bytes, 0);
  file_map_close(&f);
  unlink(path);
}

/** Writes to `path` and expects the data in `file`, which has this mode. */
static void check_written(place *p, const char *path, const char *file, mode_t mode) {
  file_map f;
  struct stat s;
  assert_int_equal(file_check_writable(path, &p->diag), TN_OK);
  assert_int_equal(file_write(path, path, strlen(path), &p->diag), TN_OK);
  assert_int_equal(lstat(file, &s), 0);
  assert_true(S_ISREG(s.st_mode));
  assert_int_equal(s.st_mode & 0777, mode);
  assert_int_equal(file_map_open(&f, file, &p->diag), TN_OK);
  assert_int_equal(f.bytes, strlen(path));
  assert_memory_equal(f.data, path, f.bytes);
  file_map_close(&f);
}

static bool is_link(const char *path) {
  struct stat s;
  return !lstat(path, &s) && S_ISLNK(s.st_mode);
}

static void file_follows_links_and_keeps_modes(void **state) {
  place *p = *state;
  char *file = arena_printf(&p->arena, "%s/f", p->folder);
  char *link = arena_printf(&p->arena, "%s/to-f", p->folder);
  char *far = arena_printf(&p->arena, "%s/to-link", p->folder);
  mode_t before = umask(027);
  assert_int_equal(symlink("f", link), 0);
  assert_int_equal(symlink(link, far), 0);
  check_written(p, far, file, 0640); /* creates the target */
  umask(before);
  assert_int_equal(chmod(file, 0604), 0);
  check_written(p, file, file, 0604);
  check_written(p, far, file, 0604);
  assert_true(is_link(link) && is_link(far));
  char *dotted = arena_printf(&p->arena, "%s/./f", p->folder);
  char *other = arena_printf(&p->arena, "%s/g", p->folder);
  for (int i = 0; i < 2; i++) { /* once per link, then with a missing target */
    assert_true(file_same(far, file) && file_same(link, link) && file_same(file, dotted));
    assert_false(file_same(file, p->folder) || file_same(file, other));
    unlink(file);
  }
  unlink(link);
  assert_int_equal(symlink("to-link", link), 0);
  assert_int_equal(file_check_writable(far, &p->diag), TN_ERR_IO); /* a cycle of links */
  assert_int_equal(file_write(far, "x", 1, &p->diag), TN_ERR_IO);
  unlink(link);
  unlink(far);
}

static void file_writes_into_what_is_no_file(void **state) {
  place *p = *state;
  char *path = arena_printf(&p->arena, "%s/f", p->folder), got[8] = {0};
  const write_part parts[] = {{"ab", 2}, {"c", 1}};
  assert_int_equal(mkfifo(path, 0600), 0);
  int reader = open(path, O_RDONLY | O_NONBLOCK);
  assert_int_equal(file_check_writable(path, &p->diag), TN_OK);
  assert_int_equal(file_write_parts(path, parts, 2, &p->diag), TN_OK);
  assert_int_equal(read(reader, got, sizeof got), 3);
  assert_string_equal(got, "abc");
  close(reader);
  unlink(path);
  assert_int_equal(file_write("/dev/null", "x", 1, &p->diag), TN_OK);
  assert_int_equal(file_write("/dev/full", "x", 1, &p->diag), TN_ERR_IO);
  assert_false(file_same("/dev/null", "/dev/null"));
}

static void texts_are_made_printable(void **state) {
  (void)state;
  char shown[TEXT_PRINTABLE_BYTES], text[2 * TEXT_PRINTABLE_BYTES];
  assert_string_equal(text_printable("a\nb\x1b[1m\x7fé", shown), "a\\nb\\x1b[1m\\x7fé");
  memset(text, '\t', sizeof text - 1);
  text[sizeof text - 1] = 0;
  text_printable(text, shown);
  assert_in_range(strlen(shown), TEXT_PRINTABLE_BYTES - 16, TEXT_PRINTABLE_BYTES - 1);
  assert_string_equal(shown + strlen(shown) - 7, "\\x09…");
}

/** Reads a pipe with more data than its buffer holds, and an empty one. */
static void file_reads_pipes_whole(void **state) {
  place *p = *state;
  char *path = arena_printf(&p->arena, "%s/f", p->folder), command[FILE_PATH_BYTES];
  file_map f;
  assert_int_equal(mkfifo(path, 0600), 0);
  for (int k = 0; k < 2; k++) {
    snprintf(command, sizeof command, "head -c %d /dev/zero > '%s' &", k * 200001, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(file_map_open_or_pipe(&f, path, &p->diag), TN_OK);
    assert_true(f.is_copy);
    assert_int_equal(f.bytes, k * 200001);
    for (size_t i = 0; i < f.bytes; i++) assert_int_equal(f.data[i], 0);
    file_map_close(&f);
    assert_null(f.data);
  }
  assert_int_equal(file_map_open(&f, path, &p->diag), TN_ERR_IO);
  unlink(path);
  assert_int_equal(file_map_open_or_pipe(&f, path, &p->diag), TN_ERR_IO);
  assert_int_equal(file_map_open_or_pipe(&f, "/dev/zero", &p->diag), TN_ERR_IO);
  assert_int_equal(file_write(path, "x", 1, &p->diag), TN_OK);
  assert_int_equal(file_map_open_or_pipe(&f, path, &p->diag), TN_OK);
  assert_true(f.bytes == 1 && !f.is_copy);
  file_map_close(&f);
  unlink(path);
}

/* Files that must lie in a folder. */

static char *opened_within(place *p, const char *path, const char *folder, const char *other) {
  file_map f;
  if (file_map_open_within(&f, path, folder, other, &p->diag)) return NULL;
  char *text = arena_printf(&p->arena, "%.*s", (int)f.bytes, (const char *)f.data);
  file_map_close(&f);
  return text;
}

static void file_must_lie_within(void **state) {
  place *p = *state;
  char *in = arena_printf(&p->arena, "%s/in", p->folder);
  char *other = arena_printf(&p->arena, "%s/other", p->folder);
  char *file = arena_printf(&p->arena, "%s/f", in),
       *secret = arena_printf(&p->arena, "%s/g", other);
  char *link = arena_printf(&p->arena, "%s/link", in), *pipe = arena_printf(&p->arena, "%s/p", in);
  assert_int_equal(mkdir(in, 0700) | mkdir(other, 0700) | mkfifo(pipe, 0600), 0);
  assert_int_equal(file_write(file, "inside", 6, &p->diag), TN_OK);
  assert_int_equal(file_write(secret, "secret", 6, &p->diag), TN_OK);
  assert_string_equal(opened_within(p, file, in, NULL), "inside");
  assert_int_equal(symlink("../in/f", link), 0);
  assert_string_equal(opened_within(p, link, in, NULL), "inside");
  unlink(link);
  assert_int_equal(symlink("../other/g", link), 0);
  assert_null(opened_within(p, link, in, NULL));
  assert_non_null(strstr(p->diag.text, "a link leads out of the folder it must be in"));
  assert_null(opened_within(p, link, in, file));
  assert_string_equal(opened_within(p, link, in, secret), "secret"); /* next to the link's target */
  assert_string_equal(opened_within(p, link, p->folder, NULL), "secret");
  assert_null(opened_within(p, file, arena_printf(&p->arena, "%s/i", p->folder), NULL));
  assert_null(opened_within(p, pipe, in, NULL));
  assert_non_null(strstr(p->diag.text, "not a regular file"));
  unlink(link), unlink(pipe), unlink(file), unlink(secret);
  assert_null(opened_within(p, file, in, NULL));
  assert_non_null(strstr(p->diag.text, "cannot open"));
  rmdir(in), rmdir(other);
}

/* Replaces a path by a link between two steps of opening a file. The functions below override the C
   library's for these steps, once per assignment of `path`. */

static struct { const char *path, *to; /* path NULL or "": inactive */ } swap_after_step;

static void swap_after(void) {
  int error = errno;
  if (swap_after_step.path && !unlink(swap_after_step.path))
    (void)!symlink(swap_after_step.to, swap_after_step.path);
  swap_after_step.path = NULL;
  errno = error;
}

char *realpath(const char *path, char *to) {
  static char *(*real)(const char *, char *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "realpath");
  char *found = real(path, to);
  swap_after();
  return found;
}

ssize_t readlink(const char *path, char *to, size_t bytes) {
  ssize_t n = readlinkat(AT_FDCWD, path, to, bytes);
  swap_after();
  return n;
}

static void file_cannot_be_swapped_while_it_is_opened(void **state) {
  place *p = *state;
  char *in = arena_printf(&p->arena, "%s/in", p->folder);
  char *file = arena_printf(&p->arena, "%s/f", in);
  char *secret = arena_printf(&p->arena, "%s/g", p->folder);
  assert_int_equal(mkdir(in, 0700), 0);
  assert_int_equal(file_write(file, "inside", 6, &p->diag), TN_OK);
  assert_int_equal(file_write(secret, "secret", 6, &p->diag), TN_OK);
  swap_after_step.path = file;
  swap_after_step.to = secret;
  char *text = opened_within(p, file, in, NULL);
  swap_after_step.path = NULL;
  bool was_swapped = is_link(file);
  unlink(file), unlink(secret);
  rmdir(in);
  assert_true(was_swapped);
  assert_true(!text || strcmp(text, "secret"));
}

/** Writes to a deleted file that is still open, through its descriptor in /proc. */
static void file_writes_without_a_name(void **state) {
  place *p = *state;
  char *path = arena_printf(&p->arena, "%s/f", p->folder), got[8] = {0};
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  char *number = arena_printf(&p->arena, "/proc/self/fd/%d", fd);
  assert_int_equal(write(fd, "longer", 6), 6);
  unlink(path);
  assert_int_equal(file_write(number, "abc", 3, &p->diag), TN_OK);
  assert_int_equal(pread(fd, got, sizeof got, 0), 3);
  assert_string_equal(got, "abc");
  close(fd);
}

static void file_errors_name_the_path(void **state) {
  place *p = *state;
  file_map f;
  char *none = arena_printf(&p->arena, "%s/none/f", p->folder);
  assert_int_equal(file_map_open(&f, none, &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, none));
  assert_int_equal(file_write(none, "x", 1, &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, none));
  assert_int_equal(file_map_open(&f, p->folder, &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, "a folder, not a file"));
  assert_int_equal(file_map_open(&f, "/dev/zero", &p->diag), TN_ERR_IO);
  assert_int_equal(file_check_writable(none, &p->diag), TN_ERR_IO);
  assert_int_equal(file_map_open(&f, "two\nlines\x1b", &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, "\"two\\nlines\\x1b\":"));
  /* renaming onto a folder fails and leaves no file (see remove_place) */
  char *folder = arena_printf(&p->arena, "%s/sub", p->folder);
  assert_int_equal(file_create_folders(folder, 0700, &p->diag), TN_OK);
  assert_int_equal(file_write(folder, "x", 1, &p->diag), TN_ERR_IO);
  rmdir(folder);
}

static void file_makes_folders(void **state) {
  place *p = *state;
  char *deep = arena_printf(&p->arena, "%s/a/b//c/", p->folder);
  struct stat s;
  assert_int_equal(file_create_folders(deep, 0700, &p->diag), TN_OK);
  assert_int_equal(file_create_folders(deep, 0700, &p->diag), TN_OK);
  assert_int_equal(stat(deep, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0700);
  char *file = arena_printf(&p->arena, "%s/a/f", p->folder);
  assert_int_equal(file_write(file, "x", 1, &p->diag), TN_OK);
  assert_int_equal(file_create_folders(file, 0700, &p->diag), TN_ERR_IO);
  assert_int_equal(file_create_folders(arena_printf(&p->arena, "%s/under", file), 0700, &p->diag),
                   TN_ERR_IO);
  assert_int_equal(file_create_folders("", 0700, &p->diag), TN_ERR_IO);
  assert_int_equal(file_check_folder_writable(file, &p->diag), TN_ERR_IO);
  unlink(file);
  assert_int_equal(file_check_folder_writable(deep, &p->diag), TN_OK);
  assert_int_equal(
      file_check_folder_writable(arena_printf(&p->arena, "%s/x//y/z/", p->folder), &p->diag),
      TN_OK);
  assert_int_equal(file_check_folder_writable("no/such", &p->diag), TN_OK);
  assert_int_equal(file_check_folder_writable("/proc/no/such", &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, "cannot create \"/proc/no/such\""));
  assert_int_equal(file_check_folder_writable("", &p->diag), TN_ERR_IO);
  const char *parts[] = {"a/b/c", "a/b", "a"};
  for (int i = 0; i < 3; i++) rmdir(arena_printf(&p->arena, "%s/%s", p->folder, parts[i]));
}

/* processes */

static const int64_t second = 1000000000;

static tn_status shell(place *p, const char *script, int64_t limit, process_result *r) {
  const char *argv[] = {"/bin/sh", "-c", script, NULL};
  process_request q = {.argv = argv, .limit_ns = limit};
  return process_run(&q, &p->arena, r, &p->diag);
}

static void process_reports(void **state) {
  place *p = *state;
  process_result r;
  assert_int_equal(shell(p, "echo out; echo err >&2; cat; exit 3", 20 * second, &r), TN_OK);
  assert_int_equal(r.exit_code, 3);
  assert_false(r.timed_out);
  assert_string_equal(r.output, "out\nerr\n");
  assert_int_equal(shell(p, "kill -9 $$", 20 * second, &r), TN_OK);
  assert_int_equal(r.exit_code, -1);
  assert_false(r.timed_out);
  assert_int_equal(shell(p, "exit 0", INT64_MAX, &r), TN_OK);
  assert_int_equal(r.exit_code, 0);
}

static void process_limits_output(void **state) {
  place *p = *state;
  process_result r;
  assert_int_equal(shell(p, "head -c 1000000 /dev/zero | tr '\\0' x", 20 * second, &r), TN_OK);
  assert_int_equal(r.exit_code, 0);
  assert_int_equal(strlen(r.output), 64 << 10);
}

static void expect_timeout(place *p, const char *script) {
  process_result r;
  int64_t start = clock_now_ns();
  assert_int_equal(shell(p, script, second / 5, &r), TN_OK);
  assert_true(r.timed_out);
  assert_int_equal(r.exit_code, -1);
  assert_true(clock_now_ns() - start < 10 * second);
}

static void process_is_stopped(void **state) {
  place *p = *state;
  expect_timeout(p, "sleep 30");
  expect_timeout(p, "sleep 30 & sleep 30"); /* its children are killed too */
  expect_timeout(p, "exec >/dev/null 2>&1; sleep 30");
}

/** Sets a flag as soon as a program has made a file. */
typedef struct canceller {
  const char *path;
  atomic_bool flag;
} canceller;

static void *cancel_when_it_runs(void *arg) {
  canceller *k = arg;
  while (!file_exists(k->path)) nanosleep(&(struct timespec){0, 1000000}, NULL);
  atomic_store(&k->flag, true);
  return NULL;
}

static void process_is_cancelled(void **state) {
  place *p = *state;
  process_result r;
  canceller k = {.path = arena_printf(&p->arena, "%s/runs", p->folder)};
  const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
  argv[2] = arena_printf(&p->arena, "echo > '%s'; sleep 30", k.path);
  const process_request q = {.argv = argv, .limit_ns = 60 * second, .cancel = &k.flag};
  thread t;
  atomic_init(&k.flag, false);
  assert_int_equal(thread_start(&t, cancel_when_it_runs, &k, &p->diag), TN_OK);
  int64_t start = clock_now_ns();
  assert_int_equal(process_run(&q, &p->arena, &r, &p->diag), TN_OK);
  thread_join(t);
  assert_true(r.timed_out);
  assert_int_equal(r.exit_code, -1);
  assert_true(clock_now_ns() - start < 20 * second);
  assert_int_equal(unlink(k.path), 0);
}

static void process_ends_before_its_children(void **state) {
  place *p = *state;
  process_result r;
  int64_t start = clock_now_ns();
  assert_int_equal(shell(p, "sleep 15 & echo done", 60 * second, &r), TN_OK);
  assert_int_equal(r.exit_code, 0);
  assert_string_equal(r.output, "done\n");
  assert_true(clock_now_ns() - start < 10 * second);
}

/** Background children survive, also once the lifeline pipe that ends them with the host is
    closed. */
static void process_leaves_its_children_running(void **state) {
  place *p = *state;
  process_result r;
  char *path = arena_printf(&p->arena, "%s/f", p->folder);
  char *script = arena_printf(&p->arena, "(sleep 0.3; echo x > '%s') & echo done", path);
  assert_int_equal(shell(p, script, 60 * second, &r), TN_OK);
  for (int i = 0; i < 1000 && !file_exists(path); i++)
    nanosleep(&(struct timespec){0, 10000000}, NULL);
  assert_int_equal(unlink(path), 0);
}

static void process_cannot_start(void **state) {
  place *p = *state;
  process_result r;
  const char *argv[] = {"/nonexistent/program", NULL};
  process_request q = {.argv = argv, .limit_ns = second};
  assert_int_equal(process_run(&q, &p->arena, &r, &p->diag), TN_ERR_IO);
  assert_non_null(strstr(p->diag.text, argv[0]));
}

static void process_takes_input_and_makes_a_file(void **state) {
  place *p = *state;
  static char large[200000];
  for (size_t i = 0; i < sizeof large; i++) large[i] = (char)(i * 7 % 251);
  const char *argv[] = {"/bin/sh", "-c", "echo said >&2; cat; printf '%s' \"$A$B\"", NULL};
  const char *set[] = {"A=1", "PATH=/nowhere:/usr/bin:/bin", "B=2", NULL};
  process_request q = {.argv = argv,
                       .set = set,
                       .input = large,
                       .input_bytes = sizeof large,
                       .stdout_is_file = true,
                       .limit_ns = 20 * second};
  process_result r;
  setenv("A", "0", 1);
  assert_int_equal(process_run(&q, &p->arena, &r, &p->diag), TN_OK);
  unsetenv("A");
  assert_int_equal(r.exit_code, 0);
  assert_string_equal(r.output, "said\n");
  assert_int_equal(r.file_bytes, sizeof large + 2);
  assert_memory_equal(r.file, large, sizeof large);
  assert_memory_equal(r.file + sizeof large, "12", 2);
  argv[2] = "echo named > " PROCESS_STDOUT_PATH;
  assert_int_equal(process_run(&q, &p->arena, &r, &p->diag), TN_OK);
  assert_int_equal(r.file_bytes, 6);
  argv[2] = "exit 1";
  assert_int_equal(process_run(&q, &p->arena, &r, &p->diag), TN_OK);
  assert_null(r.file);
}

/** The host's standard streams are closed: no pipe of the child's takes their numbers. */
static void process_runs_without_standard_files(void **state) {
  place *p = *state;
  pid_t child = fork();
  if (!child) {
    for (int i = 0; i < 3; i++) close(i);
    process_result r;
    bool fine = shell(p, "echo out; echo err >&2; cat; exit 3", 20 * second, &r) == TN_OK;
    _exit(fine && r.exit_code == 3 && !strcmp(r.output, "out\nerr\n") ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void process_exit_code_may_be_lost(void **state) {
  place *p = *state;
  process_result r;
  void (*before)(int) = signal(SIGCHLD, SIG_IGN);
  tn_status s = shell(p, "echo done; exit 3", 20 * second, &r);
  expect_timeout(p, "sleep 30");
  signal(SIGCHLD, before);
  assert_int_equal(s, TN_OK);
  assert_true(r.exit_code_lost);
  assert_int_equal(r.exit_code, -1);
  assert_string_equal(r.output, "done\n");
}

static void process_finds_programs(void **state) {
  place *p = *state;
  char *path = process_find(&p->arena, "sh");
  assert_non_null(path);
  assert_int_equal(access(path, X_OK), 0);
  assert_string_equal(process_find(&p->arena, "/bin/sh"), "/bin/sh");
  assert_null(process_find(&p->arena, "no-such-program"));
  assert_null(process_find(&p->arena, "/bin")); /* a folder, not a program */
  char *kept = arena_printf(&p->arena, "%s", getenv("PATH"));
  setenv("PATH", arena_printf(&p->arena, "/:%s", kept), 1);
  char *found = process_find(&p->arena, "bin");
  setenv("PATH", kept, 1);
  assert_null(found);
}

/* threads */

typedef struct shared {
  mutex mutex;
  condition condition;
  int count;
} shared;

static void *add_many(void *arg) {
  shared *s = arg;
  for (int i = 0; i < 10000; i++) {
    mutex_lock(&s->mutex);
    s->count++;
    mutex_unlock(&s->mutex);
    if (i % 100 == 0) thread_spin_hint();
  }
  mutex_lock(&s->mutex);
  condition_broadcast(&s->condition);
  mutex_unlock(&s->mutex);
  return NULL;
}

static void threads_count_together(void **state) {
  (void)state;
  enum { N = 4 };
  diag d = {0};
  shared s = {0};
  thread t[N];
  mutex_init(&s.mutex);
  condition_init(&s.condition);
  for (int i = 0; i < N; i++) assert_int_equal(thread_start(&t[i], add_many, &s, &d), TN_OK);
  mutex_lock(&s.mutex);
  while (s.count < N * 10000) condition_wait(&s.condition, &s.mutex);
  mutex_unlock(&s.mutex);
  for (int i = 0; i < N; i++) thread_join(t[i]);
  assert_int_equal(s.count, N * 10000);
  mutex_lock(&s.mutex);
  int64_t start = clock_now_ns(), deadline = start + second / 20;
  while (condition_wait_until(&s.condition, &s.mutex, deadline)) {}
  assert_true(clock_now_ns() >= deadline);
  assert_true(clock_now_ns() - start < 10 * second);
  mutex_unlock(&s.mutex);
  condition_free(&s.condition);
  mutex_free(&s.mutex);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

/* memory_limit */

typedef struct refusal {
  const mem *m;
  atomic_bool is_over;
} refusal;

static void *ask_in_vain(void *arg) {
  refusal *r = arg;
  for (int i = 0; i < 1000000; i++) assert_null(mem_alloc(r->m, 5000));
  atomic_store(&r->is_over, true);
  return NULL;
}

/** A refused request leaves the memory of other threads as it was: theirs, if they fit, succeed. */
static void memory_limits_are_exact(void **state) {
  (void)state;
  counting_mem c = {.limit = 1 << 30};
  memory_limit l;
  mem m = memory_limit_begin(&l, counting_mem_of(&c), 4096, 96);
  refusal r = {.m = &m};
  diag d = {0};
  thread t;
  void *all = mem_alloc(&m, 4000);
  assert_non_null(all);
  assert_null(mem_alloc(&m, 1));
  mem_free(&m, all, 4000);
  c.fail_at = c.calls + 1;
  assert_null(mem_alloc(&m, 1));
  assert_null(mem_alloc(&m, SIZE_MAX));
  assert_int_equal(atomic_load(&l.used), 96);
  atomic_init(&r.is_over, false);
  assert_int_equal(thread_start(&t, ask_in_vain, &r, &d), TN_OK);
  while (!atomic_load(&r.is_over)) {
    void *at = mem_alloc(&m, 4000);
    assert_non_null(at);
    mem_free(&m, at, 4000);
  }
  thread_join(t);
  assert_int_equal(atomic_load(&l.used), 96);
}

/** A message names the limit where that refuses a request, and not where the allocator does. */
static void memory_limits_are_told(void **state) {
  (void)state;
  counting_mem c = {.limit = 1 << 30};
  memory_limit l;
  mem inner = counting_mem_of(&c), m = memory_limit_begin(&l, inner, 4096, 1024);
  char text[MEMORY_LIMIT_TEXT_BYTES];
  assert_string_equal(memory_limit_exhausted_text(&inner, 5000, text), "out of memory (4.9 KiB)");
  assert_string_equal(memory_limit_exhausted_text(&m, 3072, text), "out of memory (3.0 KiB)");
  assert_string_equal(memory_limit_exhausted_text(&m, 3073, text),
                      "out of memory (3.0 KiB): 1.0 KiB of the limit of 4.0 KiB are in use");
  assert_string_equal(memory_limit_exhausted_text(&m, UINT64_MAX, text),
                      "out of memory (16.0 EiB): 1.0 KiB of the limit of 4.0 KiB are in use");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(diag_nests),
      cmocka_unit_test(diag_completes_failures),
      cmocka_unit_test(diag_cuts_long_text),
      cmocka_unit_test(arena_keeps_and_frees),
      cmocka_unit_test(arena_fails_everywhere),
      cmocka_unit_test(arena_refuses_overflow),
      cmocka_unit_test(arena_goes_back),
      cmocka_unit_test(arena_keeps_an_array),
      cmocka_unit_test(mem_checks_sizes),
      cmocka_unit_test(block_cache_keeps_blocks),
      cmocka_unit_test(memory_limits_are_exact),
      cmocka_unit_test(memory_limits_are_told),
      cmocka_unit_test(vec_grows),
      cmocka_unit_test(str_grows),
      IN_PLACE(file_round_trip),
      IN_PLACE(file_must_lie_within),
      IN_PLACE(file_cannot_be_swapped_while_it_is_opened),
      IN_PLACE(file_parts_follow_one_another),
      IN_PLACE(file_follows_links_and_keeps_modes),
      IN_PLACE(file_writes_into_what_is_no_file),
      cmocka_unit_test(texts_are_made_printable),
      IN_PLACE(file_reads_pipes_whole),
      IN_PLACE(file_writes_without_a_name),
      IN_PLACE(file_errors_name_the_path),
      IN_PLACE(file_makes_folders),
      IN_PLACE(process_reports),
      IN_PLACE(process_limits_output),
      IN_PLACE(process_is_stopped),
      IN_PLACE(process_is_cancelled),
      IN_PLACE(process_ends_before_its_children),
      IN_PLACE(process_leaves_its_children_running),
      IN_PLACE(process_cannot_start),
      IN_PLACE(process_takes_input_and_makes_a_file),
      IN_PLACE(process_runs_without_standard_files),
      IN_PLACE(process_exit_code_may_be_lost),
      IN_PLACE(process_finds_programs),
      cmocka_unit_test(threads_count_together),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
