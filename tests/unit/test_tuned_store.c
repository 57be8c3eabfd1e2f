/* Tests the store of tuned schedules (compile/tuned_store.h) and the texts of decisions: what is
   appended is read again, the last record of a kernel counts, and lines that are torn, foreign or
   forged are ignored; several writers and a full disk leave whole lines. */
#include "compile/tuned_store.h"

#include "codegen/decisions.h"
#include "compile/cache_keys.h"
#include "compile/tuned_compaction.h"
#include "support/counting_mem.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define KEY   "00112233445566778899aabbccddeeff 0123456789abcdef fedcba9876543210"
#define OTHER "ffffffffffffffffffffffffffffffff 0123456789abcdef fedcba9876543210"

static const char library[] = "library:blas";

typedef struct fixture {
  diag diag;
  arena arena;
  const char *folder, *path;
  int remarks, records;
  char line[512]; /* the last one for the log */
} fixture;

static void prepare(void *arg) {
  fixture *f = arg;
  f->folder = temporary_folder(&f->arena);
  f->path = arena_printf(&f->arena, "%s/tuned", f->folder);
}

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  return temporary_set_up(&f->arena, &f->diag, prepare, f);
}

static int tear_down(void **state) {
  fixture *f = *state;
  return temporary_tear_down(&f->arena, f->folder, f);
}

static void count_remark(void *user, tn_log_level level, const char *text) {
  fixture *f = user;
  f->remarks += level == TN_LOG_WARNING;
  snprintf(f->line, sizeof f->line, "%s", text);
}

static tuned_store *open_at(fixture *f, const char *path) {
  tuned_store *s;
  assert_true(tuned_store_open(&s, path, NULL, count_remark, f, &mem_system));
  return s;
}

static tuned_store *open_one(fixture *f) { return open_at(f, f->path); }

static tuned_record record(const char *key, tuned_verdict verdict, const char *decisions) {
  return (tuned_record){key, verdict, {decisions, 1000, 900.4}, {"tile:0/3", 1100, 1200}, false};
}

static void append(tuned_store *s, const char *key, tuned_verdict verdict, const char *decisions) {
  diag d = {0};
  const tuned_record r = record(key, verdict, decisions);
  if (tuned_store_append(s, &r, &d)) fail_msg("%s", d.text);
}

/** Keeps decisions that were measured against `other`. */
static void keep_after(tuned_store *s, const char *key, const char *decisions, const char *other) {
  diag d = {0};
  tuned_record r = record(key, TUNED_KEPT, decisions);
  r.other.decisions = other;
  if (tuned_store_append(s, &r, &d)) fail_msg("%s", d.text);
}

/** The decisions that a later process finds for a kernel; NULL: none. */
static const char *find(fixture *f, const char *key, library_use libraries) {
  tuned_store *s = open_one(f);
  const tuned_choice t = {.store = s, .libraries = libraries};
  const char *decisions = tuned_choice_find(&t, key);
  if (decisions) decisions = arena_printf(&f->arena, "%s", decisions);
  assert_true(decisions == NULL || !tuned_choice_is_empty(&t));
  tuned_store_close(s);
  return decisions;
}

/** As `find`, where no libraries are called. */
static const char *found(fixture *f, const char *key) { return find(f, key, LIBRARIES_OFF); }

/** Checks what later processes find without libraries and with them; NULL: nothing. */
static void check_found(fixture *f, const char *key, const char *schedule, const char *called) {
  const char *got[] = {find(f, key, LIBRARIES_OFF), find(f, key, LIBRARIES_ON)};
  const char *const wanted[] = {schedule, called};
  for (int i = 0; i < 2; i++)
    if (!got[i] != !wanted[i] || (got[i] && strcmp(got[i], wanted[i]) != 0))
      fail_msg("%d: %s, not %s", i, got[i] ? got[i] : "none", wanted[i] ? wanted[i] : "none");
}

static void count_record(void *user, const tuned_record *r) {
  fixture *f = user;
  f->records++;
  assert_true(r->schedule.predicted == 1000 && r->schedule.measured == 900);
  assert_string_equal(r->other.decisions, "tile:0/3");
}

static int records(fixture *f) {
  tuned_store *s = open_one(f);
  f->records = 0;
  assert_int_equal(tuned_store_read(s, count_record, f, &f->diag), TN_OK);
  tuned_store_close(s);
  return f->records;
}

static void add_bytes(const fixture *f, const char *text, size_t bytes) {
  FILE *file = fopen(f->path, "a");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, bytes, file), bytes);
  fclose(file);
}

/* Decisions. */

static void check_decisions(void *arg) {
  fixture *f = arg;
  arena *a = &f->arena;
  static const char *const good[] = {"-", "lanes:0/2", "outermost:1/2,expansion:3/5,tile:11/12",
                                     "order:1/2,block:0/4"};
  static const char *const bad[] = {
      "",          "tile",       "tile:",      "tile:1",
      "tile:1/",   "tile:3/3",   "tile:0/0",   "tile:-1/3",
      "tile:1/3,", ",tile:1/3",  "tile:1/3 ",  "tiles:1/3",
      "tile: 1/3", "tile:1/3;-", "-,tile:1/3", "tile:1/99999999999999999999"};
  decision_list list, again;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(decisions_parse(a, good[i], &list) && decisions_parse(a, good[i], &again));
    assert_string_equal(decisions_text(a, &list), good[i]);
    assert_true(decisions_equal(&list, &again));
    assert_int_equal(list.n == 0, i == 0);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (decisions_parse(a, bad[i], &list)) fail_msg("%s", bad[i]);
  assert_true(decisions_parse(a, "tile:1/3", &list) && decisions_parse(a, "tile:2/3", &again));
  assert_false(decisions_equal(&list, &again));
  assert_true(decisions_parse(a, "tile:1/4", &again) && !decisions_equal(&list, &again));
}

static void decisions_are_read_as_printed(void **state) {
  fixture *f = *state;
  assert_int_equal(diag_catch(&f->diag, check_decisions, f), TN_OK);
}

/* Lines. */

static void the_last_kept_record_counts(void **state) {
  fixture *f = *state;
  assert_null(found(f, KEY)); /* there is no file */
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_FASTER, "tile:1/3");
  assert_null(found(f, KEY));
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  append(s, OTHER, TUNED_KEPT, "order:1/2");
  append(s, KEY, TUNED_KEPT, "tile:2/3");
  append(s, KEY, TUNED_DROPPED, "tile:0/3");
  const tuned_choice t = {.store = s};
  assert_string_equal(tuned_choice_find(&t, KEY), "tile:2/3"); /* in the same process too */
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:2/3");
  assert_string_equal(found(f, OTHER), "order:1/2");
  s = open_one(f);
  append(s, KEY, TUNED_KEPT, "-"); /* takes it back */
  tuned_store_close(s);
  assert_null(found(f, KEY));
  assert_int_equal(records(f), 6);
  assert_int_equal(f->remarks, 1); /* of the file that was not there */
}

/** A library and a schedule are kept side by side: runs without libraries have the schedule, and a
    schedule takes the place of a library only if it was measured against it. */
static void libraries_and_schedules_are_kept_apart(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, library);
  check_found(f, KEY, NULL, library);
  assert_int_equal(tuned_store_count(s), 1);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  check_found(f, KEY, "tile:1/3", library);
  append(s, KEY, TUNED_KEPT, "-");
  check_found(f, KEY, NULL, library);
  append(s, KEY, TUNED_KEPT, "tile:2/3");
  append(s, OTHER, TUNED_KEPT, "order:1/2");
  append(s, OTHER, TUNED_KEPT, library);
  check_found(f, OTHER, "order:1/2", library);
  assert_int_equal(tuned_store_count(s), 2);
  keep_after(s, KEY, "tile:0/3", library);
  check_found(f, KEY, "tile:0/3", "tile:0/3");
  const tuned_choice t = {.store = s, .libraries = LIBRARIES_ON};
  assert_string_equal(tuned_choice_find(&t, KEY), "tile:0/3"); /* in the same process too */
  assert_string_equal(tuned_choice_find(&t, OTHER), library);
  keep_after(s, KEY, "-", library);
  assert_int_equal(tuned_store_count(s), 1);
  tuned_store_close(s);
}

/** A file that the caller named and that is not there is a warning, unless what is compiled may be
    tuned; one that is there is told with what it holds. */
static void the_log_tells_what_a_file_holds(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  tuned_choice t = {.store = s, .is_tunable = true};
  assert_null(tuned_choice_find(&t, KEY));
  tuned_store_close(s);
  assert_int_equal(f->remarks, 0);
  assert_null(found(f, KEY));
  assert_int_equal(f->remarks, 1);
  assert_non_null(strstr(f->line, "there is no file of tuned schedules \""));
  assert_non_null(strstr(f->line, f->path));
  s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:1/3");
  assert_non_null(strstr(f->line, "tuned schedules of 1 kernel in \""));
  assert_int_equal(f->remarks, 1);
}

static void trials_come_first(void **state) {
  fixture *f = *state;
  string_map trial = {0};
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  append(s, OTHER, TUNED_KEPT, "tile:1/3");
  string_map_set(&f->arena, &trial, KEY, (void *)"-");
  const tuned_choice t = {.store = s, .trial = &trial}, alone = {.trial = &trial}, none = {0};
  assert_null(tuned_choice_find(&t, KEY));
  assert_string_equal(tuned_choice_find(&t, OTHER), "tile:1/3");
  assert_false(tuned_choice_is_empty(&alone));
  assert_true(tuned_choice_is_empty(&none));
  tuned_store_close(s);
}

static void torn_and_foreign_lines_are_ignored(void **state) {
  fixture *f = *state;
  char line[512];
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  FILE *file = fopen(f->path, "r");
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  char *at = strstr(line, "tile:1/3");
  size_t n = strlen(line);
  at[5] = '2'; /* the check is that of the line before the change */
  add_bytes(f, line, n);
  at[5] = '9';
  add_bytes(f, line, n);
  static const char foreign[] = "\n \n# a remark\ntenon-tuned-1 of another version\n\0\0\n";
  add_bytes(f, foreign, sizeof foreign - 1);
  at[5] = '1';
  add_bytes(f, line, n - 20); /* torn: the next line does not continue it */
  append(s, OTHER, TUNED_KEPT, "tile:0/3");
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:1/3");
  assert_string_equal(found(f, OTHER), "tile:0/3");
  assert_int_equal(records(f), 2);
  add_bytes(f, line, n / 2);
  assert_int_equal(records(f), 2);
  s = open_one(f); /* as after a kill */
  append(s, KEY, TUNED_KEPT, "tile:2/3");
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:2/3");
}

static void count_foreign(void *user, const tuned_record *r) {
  fixture *f = user;
  f->records += r->is_foreign;
}

/** A line with another hash of the build, and the check of all before. */
static void add_foreign_line(fixture *f) {
  char line[512];
  uint64_t hash[2];
  FILE *file = fopen(f->path, "r");
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  char *check = strrchr(line, ' '), *build = strstr(line, " kept ") - 1;
  *build = *build == '0' ? '1' : '0';
  cache_keys_hash(line, (size_t)(check - line), hash);
  add_bytes(f, arena_printf(&f->arena, "%.*s %08x\n", (int)(check - line), line, (uint32_t)hash[1]),
            strlen(line));
}

/** A kept schedule of another build is used, but its measurements are not: code may differ by now.
 */
static void records_of_other_builds_are_foreign(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  assert_int_equal(tuned_store_read(s, count_foreign, f, &f->diag), TN_OK);
  assert_int_equal(f->records, 0);
  add_foreign_line(f);
  assert_int_equal(tuned_store_read(s, count_foreign, f, &f->diag), TN_OK);
  assert_int_equal(f->records, 1);
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:1/3");
}

/** A line with a right check, but decisions that cannot be. */
static void impossible_decisions_are_ignored(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:3/3");
  append(s, KEY, TUNED_KEPT, "tile:one/3");
  tuned_store_close(s);
  assert_null(found(f, KEY));
  assert_int_equal(records(f), 0);
}

/* Compaction. */

/** Facts that a tuning reads in a log about one kernel: bits of the schedules that it does not
   measure again, the one that was faster, and the one that lookups find. */
typedef struct meaning {
  unsigned measured;
  const char *winner, *kept, *library; /* kept: without libraries */
} meaning;

enum { LIBRARY = 3 }; /* of the schedules of random logs */
static const char *const schedules[] = {"a", "b", "c", "library:l"};

static meaning meaning_of(const tuned_line lines[], size_t n, bool stays_only) {
  meaning m = {0, NULL, NULL, NULL};
  for (size_t i = 0; i < n; i++) {
    const tuned_line *l = &lines[i];
    if (stays_only && l->is_superseded) continue;
    bool is_library = l->decisions == schedules[LIBRARY];
    if (l->verdict == TUNED_KEPT && !is_library) m.kept = l->decisions;
    if (l->verdict == TUNED_KEPT && (is_library || l->other == schedules[LIBRARY]))
      m.library = is_library ? l->decisions : NULL;
    if (l->is_foreign) continue;
    m.measured |= 1u << (l->decisions[0] - 'a');
    if (l->verdict == TUNED_FASTER)
      m.winner = l->decisions;
    else if (m.winner == l->decisions)
      m.winner = NULL;
  }
  return m;
}

/** Random logs mean the same without their superseded lines. */
static void check_random_logs(void *arg) {
  enum { LOGS = 20000, MOST = 12 };
  static const tuned_verdict verdicts[] = {TUNED_KEPT, TUNED_FASTER, TUNED_FASTER, TUNED_SLOWER,
                                           TUNED_DROPPED};
  fixture *f = arg;
  size_t n_superseded = 0;
  uint64_t z = 1;
  for (int log = 0; log < LOGS; log++) {
    tuned_line lines[MOST];
    size_t n = (size_t)log % MOST + 1;
    for (size_t i = 0; i < n; i++) {
      z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      lines[i] = (tuned_line){KEY,
                              schedules[(z >> 33) % 4],
                              schedules[(z >> 37) % 4],
                              verdicts[(z >> 40) % 5],
                              (z >> 50) % 8 == 0,
                              false};
    }
    arena_mark here = arena_save(&f->arena);
    tuned_lines_find_superseded(&f->arena, lines, n);
    arena_rewind(&f->arena, here);
    meaning all = meaning_of(lines, n, false), stays = meaning_of(lines, n, true);
    if (all.measured != stays.measured || all.winner != stays.winner || all.kept != stays.kept ||
        all.library != stays.library)
      fail_msg("log %d means something else", log);
    for (size_t i = 0; i < n; i++) n_superseded += lines[i].is_superseded;
  }
  assert_true(n_superseded > LOGS);
}

static void superseded_lines_mean_nothing(void **state) {
  fixture *f = *state;
  if (diag_catch(&f->diag, check_random_logs, f)) fail_msg("%s", f->diag.text);
}

static size_t file_bytes(const fixture *f) {
  struct stat s;
  assert_int_equal(stat(f->path, &s), 0);
  return (size_t)s.st_size;
}

/** A file of which more than half is superseded shrinks when the next process appends; one that
    holds it open writes to the new file. */
static void files_are_compacted(void **state) {
  fixture *f = *state;
  enum { TIMES = 500 };
  tuned_store *s = open_one(f), *other;
  add_bytes(f, "tenon-tuned-1 of another version\n", 33);
  append(s, OTHER, TUNED_KEPT, "order:1/2");
  for (int i = 0; i < TIMES; i++) append(s, KEY, TUNED_KEPT, i % 2 ? "tile:1/3" : "tile:2/3");
  assert_int_equal(records(f), TIMES + 1);
  size_t all = file_bytes(f);
  assert_int_equal(chmod(f->path, 0640), 0);
  other = open_one(f);
  append(other, KEY, TUNED_SLOWER, "tile:0/3");
  assert_true(file_bytes(f) < all / 50);
  assert_int_equal(records(f), 4);
  append(s, KEY, TUNED_KEPT, "order:0/2");
  append(other, OTHER, TUNED_SLOWER, "tile:0/3");
  assert_int_equal(records(f), 6);
  tuned_store_close(other);
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "order:0/2");
  assert_string_equal(found(f, OTHER), "order:1/2");
  struct stat st;
  assert_true(!stat(f->path, &st) && (st.st_mode & 0777) == 0640);
  char line[64];
  FILE *file = fopen(f->path, "r");
  assert_non_null(fgets(line, sizeof line, file));
  assert_string_equal(line, "tenon-tuned-1 of another version\n");
  fclose(file);
}

/** Compaction leaves the newest schedule of a kernel and its newest library, whichever is last. */
static void compacted_files_keep_libraries_and_schedules(void **state) {
  fixture *f = *state;
  enum { TIMES = 500 };
  const char *const third = "33333333333333333333333333333333 0123456789abcdef fedcba9876543210";
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:2/3");
  append(s, OTHER, TUNED_KEPT, library);
  append(s, third, TUNED_KEPT, library);
  for (int i = 0; i < TIMES; i++) {
    append(s, KEY, TUNED_KEPT, library);
    append(s, OTHER, TUNED_KEPT, i % 2 ? "tile:1/3" : "tile:2/3");
    keep_after(s, third, "tile:1/3", i ? "tile:2/3" : library);
  }
  size_t all = file_bytes(f);
  tuned_store_close(s);
  s = open_one(f);
  append(s, KEY, TUNED_SLOWER, "order:0/2");
  tuned_store_close(s);
  assert_true(file_bytes(f) < all / 50);
  check_found(f, KEY, "tile:2/3", library);
  check_found(f, OTHER, "tile:1/3", library);
  check_found(f, third, "tile:1/3", "tile:1/3");
}

/* Files. */

static void files_that_cannot_be_written_are_told(void **state) {
  fixture *f = *state;
  const char *const paths[] = {f->folder, arena_printf(&f->arena, "%s/none/tuned", f->folder)};
  const tuned_record r = record(KEY, TUNED_KEPT, "tile:1/3");
  for (size_t i = 0; i < 2; i++) {
    tuned_store *s = open_at(f, paths[i]);
    const tuned_choice t = {.store = s};
    assert_int_equal(tuned_store_check_writable(s, &f->diag), TN_ERR_IO);
    assert_non_null(strstr(f->diag.text, paths[i]));
    assert_int_equal(tuned_store_append(s, &r, &f->diag), TN_ERR_IO);
    assert_null(tuned_choice_find(&t, KEY));
    assert_null(tuned_choice_find(&t, KEY)); /* it warns once */
    tuned_store_close(s);
  }
  assert_int_equal(f->remarks, 2);
  tuned_store *off = open_at(f, "off");
  assert_null(off);
}

/** The store beside a cache, in the folder at a path. */
static tuned_store *open_beside_cache(fixture *f, const char *folder, disk_cache **cache) {
  tuned_store *s;
  assert_true(disk_cache_open(cache, folder, NULL, NULL, &mem_system));
  assert_true(tuned_store_open(&s, NULL, *cache, count_remark, f, &mem_system));
  return s;
}

static void count_lines(void *user, const tuned_record *r) {
  (void)r;
  ++*(int *)user;
}

/** A store that nobody named lies in a folder of the user's alone, or is not used: as the cache. */
static void stores_in_refused_folders_are_not_used(void **state) {
  fixture *f = *state;
  const char *folder = arena_printf(&f->arena, "%s/own", f->folder);
  const char *link = arena_printf(&f->arena, "%s/link", f->folder);
  const char *expected[] = {NULL, "is a link", "is writable by other users"};
  assert_int_equal(symlink(folder, link), 0);
  for (int i = 0; i < 3; i++) {
    disk_cache *cache;
    diag d = {0};
    int lines = 0;
    if (i == 2) assert_int_equal(chmod(folder, 0777), 0);
    tuned_store *s = open_beside_cache(f, i == 1 ? link : folder, &cache);
    const tuned_record r = record(KEY, TUNED_KEPT, "tile:0/1");
    if (i) {
      f->remarks = 0;
      assert_int_equal(tuned_store_count(s), 0);
      assert_int_equal(f->remarks, 1);
      assert_non_null(strstr(f->line, "the file of tuned schedules is not used: the cache folder"));
      assert_non_null(strstr(f->line, expected[i]));
      assert_int_equal(tuned_store_read(s, count_lines, &lines, &d), TN_ERR_IO);
      assert_int_equal(tuned_store_append(s, &r, &d), TN_ERR_IO);
      assert_non_null(strstr(d.text, expected[i]));
      assert_int_equal(tuned_store_check_writable(s, &d), TN_ERR_IO);
    } else {
      assert_int_equal(tuned_store_append(s, &r, &d), TN_OK); /* which makes the folder */
      assert_int_equal(tuned_store_read(s, count_lines, &lines, &d), TN_OK);
    }
    assert_int_equal(lines, i == 0);
    tuned_store_close(s);
    disk_cache_close(cache);
  }
  tuned_store *named = open_at(f, arena_printf(&f->arena, "%s/tuned", link));
  assert_int_equal(tuned_store_count(named), 1);
  tuned_store_close(named);
  assert_int_equal(chmod(folder, 0700), 0);
}

/** Checks that a store is refused for a reason, whether it is read or written. */
static void check_refused(fixture *f, const char *folder, const char *why) {
  disk_cache *cache;
  diag d = {0};
  int lines = 0;
  tuned_store *s = open_beside_cache(f, folder, &cache);
  const tuned_record r = record(KEY, TUNED_KEPT, "tile:0/1");
  f->remarks = 0;
  assert_int_equal(tuned_store_count(s), 0);
  assert_int_equal(f->remarks, 1);
  assert_non_null(strstr(f->line, "/tuned\" is not used: "));
  assert_non_null(strstr(f->line, why));
  assert_int_equal(tuned_store_read(s, count_lines, &lines, &d), TN_ERR_IO);
  assert_int_equal(tuned_store_append(s, &r, &d), TN_ERR_IO);
  assert_non_null(strstr(d.text, why));
  assert_int_equal(tuned_store_check_writable(s, &d), TN_ERR_IO);
  assert_int_equal(lines, 0);
  tuned_store_close(s);
  disk_cache_close(cache);
}

/** In a folder of the user's alone too, the file itself must be the user's own. */
static void stores_of_others_are_not_used(void **state) {
  fixture *f = *state;
  const char *elsewhere = arena_printf(&f->arena, "%s/elsewhere", f->folder);
  disk_cache *cache;
  struct stat stat;
  mode_t mask = umask(0);
  tuned_store *s = open_beside_cache(f, f->folder, &cache);
  append(s, KEY, TUNED_KEPT, "tile:0/1");
  umask(mask);
  tuned_store_close(s);
  disk_cache_close(cache);
  assert_int_equal(lstat(f->path, &stat), 0);
  assert_int_equal(stat.st_mode & 0777, 0600);
  assert_int_equal(chmod(f->path, 0602), 0);
  check_refused(f, f->folder, "writable by other users");
  assert_int_equal(chmod(f->path, 0600), 0);
  if (!chown(f->path, 65534, 65534)) { /* root alone may do so */
    check_refused(f, f->folder, "owned by another user");
    assert_int_equal(chown(f->path, geteuid(), getegid()), 0);
  }
  assert_int_equal(rename(f->path, elsewhere), 0);
  assert_int_equal(symlink(elsewhere, f->path), 0);
  check_refused(f, f->folder, "a link");
  assert_int_equal(records(f), 1); /* of the file as one that is named */
}

/** The current folder may change between opening a context and its first compilation. */
static void relative_paths_stay_the_same_file(void **state) {
  fixture *f = *state;
  char here[4096];
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(f->folder), 0);
  tuned_store *s = open_at(f, "tuned");
  assert_int_equal(chdir(here), 0);
  assert_string_equal(tuned_store_path(s), f->path);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:1/3");
}

/** Cut short, this path would be that of another file. */
static void long_paths_are_refused(void **state) {
  fixture *f = *state;
  str path = str_new(&f->arena);
  str_addf(&path, "%s/", f->folder);
  while (path.n < 4050) str_addf(&path, "./");
  for (int i = 0; i < 100; i++) str_addf(&path, "x");
  tuned_store *s = open_at(f, str_text(&path));
  const tuned_record r = record(KEY, TUNED_KEPT, "tile:1/3");
  const tuned_choice t = {.store = s};
  assert_int_equal(tuned_store_check_writable(s, &f->diag), TN_ERR_IO);
  assert_non_null(strstr(f->diag.text, "the file of tuned schedules: cannot use \"/"));
  assert_int_equal(tuned_store_append(s, &r, &f->diag), TN_ERR_IO);
  assert_null(tuned_choice_find(&t, KEY));
  assert_int_equal(f->remarks, 1);
  tuned_store_close(s);
  assert_int_equal(rmdir(f->folder), 0); /* it is empty */
  assert_int_equal(mkdir(f->folder, 0700), 0);
}

static void other_files_are_left_alone(void **state) {
  fixture *f = *state;
  char text[64];
  add_bytes(f, "a letter\n", 9);
  tuned_store *s = open_one(f);
  assert_int_equal(tuned_store_check_writable(s, &f->diag), TN_ERR_IO);
  const tuned_record r = record(KEY, TUNED_KEPT, "tile:1/3");
  assert_int_equal(tuned_store_append(s, &r, &f->diag), TN_ERR_IO);
  tuned_store_close(s);
  FILE *file = fopen(f->path, "r");
  assert_int_equal(fread(text, 1, sizeof text, file), 9);
  fclose(file);
  f->remarks = 0;
  assert_null(found(f, KEY));
  assert_int_equal(f->remarks, 1);
  assert_non_null(strstr(f->line, "is not used: it begins with something else"));
}

/** A larger file could not be read: what it holds would be lost. */
static void a_full_file_stays_readable(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  const tuned_record r = record(OTHER, TUNED_KEPT, "tile:1/3");
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  assert_int_equal(truncate(f->path, (1 << 28) - 20), 0);
  assert_int_equal(tuned_store_append(s, &r, &f->diag), TN_ERR_IO);
  assert_non_null(strstr(f->diag.text, "it is full"));
  tuned_store_close(s);
  assert_string_equal(found(f, KEY), "tile:1/3");
  assert_int_equal(f->remarks, 0);
}

static void a_pipe_is_no_store(void **state) {
  fixture *f = *state;
  assert_int_equal(mkfifo(f->path, 0600), 0);
  assert_null(found(f, KEY));
  tuned_store *s = open_one(f);
  assert_int_equal(tuned_store_check_writable(s, &f->diag), TN_ERR_IO);
  tuned_store_close(s);
  assert_int_equal(f->remarks, 1);
}

static int status_of(pid_t child) {
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/** A disk that takes half a line more, as a limit of the file's size does. */
static int write_to_full_disk(fixture *f) {
  struct stat stat_before;
  const tuned_record r = record(OTHER, TUNED_KEPT, "tile:1/3");
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  if (stat(f->path, &stat_before)) return 2;
  const struct rlimit most = {(rlim_t)stat_before.st_size + 60, RLIM_INFINITY};
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &most)) return 3;
  for (int i = 0; i < 2; i++)
    if (tuned_store_append(s, &r, &f->diag) != TN_ERR_IO) return 4;
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &none)) return 5;
  append(s, OTHER, TUNED_KEPT, "tile:2/3");
  tuned_store_close(s);
  return 0;
}

static void a_full_disk_loses_one_line(void **state) {
  fixture *f = *state;
  pid_t child = fork();
  if (!child) _exit(write_to_full_disk(f));
  assert_int_equal(status_of(child), 0);
  assert_string_equal(found(f, KEY), "tile:1/3");
  assert_string_equal(found(f, OTHER), "tile:2/3");
  assert_int_equal(records(f), 2);
}

/** Appends a line about a schedule of its own. */
static void append_new(tuned_store *s, int number) {
  char decisions[32];
  snprintf(decisions, sizeof decisions, "tile:%d/100000", number % 100000);
  append(s, KEY, TUNED_SLOWER, decisions);
}

/** The first writer to begin compacts the file, while others may have opened it. */
static void writers_do_not_mix_their_lines(void **state) {
  fixture *f = *state;
  enum { WRITERS = 4, LINES = 200, SUPERSEDED = 500 };
  tuned_store *first = open_one(f);
  for (int i = 0; i < SUPERSEDED; i++) append(first, KEY, TUNED_SLOWER, "tile:1/3");
  tuned_store_close(first);
  pid_t child[WRITERS];
  for (int i = 0; i < WRITERS; i++) {
    child[i] = fork();
    if (child[i]) continue;
    tuned_store *s = open_one(f);
    for (int k = 0; k < LINES; k++) append_new(s, i * LINES + k);
    _exit(0);
  }
  for (int i = 0; i < WRITERS; i++) assert_int_equal(status_of(child[i]), 0);
  assert_int_equal(records(f), WRITERS * LINES + 1);
}

static const char *key_of_number(char key[80], int number) {
  snprintf(key, 80, "%032x 0123456789abcdef fedcba9876543210", number);
  return key;
}

/** One process keeps a library for each kernel, another one schedules, while the file is compacted:
    all of both are there. */
static void writers_keep_libraries_beside_schedules(void **state) {
  fixture *f = *state;
  enum { KERNELS = 100, SUPERSEDED = 500 };
  char key[80];
  tuned_store *first = open_one(f);
  for (int i = 0; i < SUPERSEDED; i++) append(first, KEY, TUNED_KEPT, "tile:1/3");
  append(first, KEY, TUNED_KEPT, library);
  tuned_store_close(first);
  pid_t child[2];
  for (int i = 0; i < 2; i++) {
    child[i] = fork();
    if (child[i]) continue;
    tuned_store *s = open_one(f);
    for (int k = 0; k < KERNELS; k++)
      append(s, key_of_number(key, k), TUNED_KEPT, i ? library : "order:1/2");
    _exit(0);
  }
  for (int i = 0; i < 2; i++) assert_int_equal(status_of(child[i]), 0);
  for (int k = 0; k < KERNELS; k++) check_found(f, key_of_number(key, k), "order:1/2", library);
  check_found(f, KEY, "tile:1/3", library);
}

static void a_killed_writer_leaves_whole_lines(void **state) {
  fixture *f = *state;
  pid_t child = fork();
  if (!child) {
    tuned_store *s = open_one(f);
    for (int i = 0;; i++) append_new(s, i);
  }
  while (records(f) < 50) usleep(1000);
  kill(child, SIGKILL);
  assert_int_equal(status_of(child), -1);
  int before = records(f);
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  tuned_store_close(s);
  assert_int_equal(records(f), before + 1);
}

static void exhausted_memory_loses_nothing(void **state) {
  fixture *f = *state;
  tuned_store *s = open_one(f);
  append(s, KEY, TUNED_KEPT, "tile:1/3");
  tuned_store_close(s);
  const tuned_record r = record(OTHER, TUNED_KEPT, "tile:1/3");
  for (size_t at = 1, ends = 0; !ends; at++) {
    counting_mem counter = {.fail_at = at};
    mem m = counting_mem_of(&counter);
    if (tuned_store_open(&s, f->path, NULL, count_remark, f, &m)) {
      const tuned_choice t = {.store = s};
      const char *decisions = tuned_choice_find(&t, KEY);
      diag d = {0};
      tn_status appended = tuned_store_append(s, &r, &d);
      ends = counter.calls < at;
      if (ends) assert_true(decisions && appended == TN_OK);
      assert_true(appended == TN_OK || appended == TN_ERR_MEMORY);
      tuned_store_close(s);
    }
    assert_int_equal(counter.bytes, 0);
    assert_string_equal(found(f, KEY), "tile:1/3");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(decisions_are_read_as_printed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_last_kept_record_counts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(libraries_and_schedules_are_kept_apart, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_log_tells_what_a_file_holds, set_up, tear_down),
      cmocka_unit_test_setup_teardown(trials_come_first, set_up, tear_down),
      cmocka_unit_test_setup_teardown(torn_and_foreign_lines_are_ignored, set_up, tear_down),
      cmocka_unit_test_setup_teardown(records_of_other_builds_are_foreign, set_up, tear_down),
      cmocka_unit_test_setup_teardown(impossible_decisions_are_ignored, set_up, tear_down),
      cmocka_unit_test_setup_teardown(superseded_lines_mean_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(files_are_compacted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compacted_files_keep_libraries_and_schedules, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(files_that_cannot_be_written_are_told, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stores_in_refused_folders_are_not_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(stores_of_others_are_not_used, set_up, tear_down),
      cmocka_unit_test_setup_teardown(relative_paths_stay_the_same_file, set_up, tear_down),
      cmocka_unit_test_setup_teardown(long_paths_are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(other_files_are_left_alone, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_file_stays_readable, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_pipe_is_no_store, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_full_disk_loses_one_line, set_up, tear_down),
      cmocka_unit_test_setup_teardown(writers_do_not_mix_their_lines, set_up, tear_down),
      cmocka_unit_test_setup_teardown(writers_keep_libraries_beside_schedules, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_killed_writer_leaves_whole_lines, set_up, tear_down),
      cmocka_unit_test_setup_teardown(exhausted_memory_loses_nothing, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
