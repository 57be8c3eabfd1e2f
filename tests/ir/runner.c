/* Runs IR tests, golden files of a graph before and after passes: `runner [--bless] FOLDER|FILE…`

   A file *.irt is

     passes: NAME NAME(ARGUMENT,…) …
     <a graph as text (print.h)>
     ---
     <the graph after the passes, or "error: " and the message of the failure>

   with comments (`;`) above. The graph is verified after each pass, and the values that kernels
   write before and after all passes are compared. --bless replaces the expected text by the result:
   review the difference. */
#include "base/file.h"
#include "base/vec.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
  const char *at;
  size_t bytes;
} part;

typedef struct test {
  part head, passes, input, expected; /* head: the file up to the end of `---` */
} test;

static bool starts_with(const char *at, const char *end, const char *word) {
  return (size_t)(end - at) >= strlen(word) && !memcmp(at, word, strlen(word));
}

static const char *line_end(const char *at, const char *end) {
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return newline ? newline + 1 : end;
}

/** Splits a file into its parts. Returns NULL, or the name of a missing part. */
static const char *read_test(test *t, const char *at, const char *end) {
  const char *start = at, *line = at, *next;
  while (line < end && *line == ';') line = line_end(line, end);
  if (!starts_with(line, end, "passes:")) return "no line 'passes: …' after the comments";
  next = line_end(line, end);
  t->passes = (part){line + strlen("passes:"), (size_t)(next - line) - strlen("passes:")};
  t->input.at = next;
  for (line = next; line < end && !starts_with(line, end, "---\n"); line = line_end(line, end)) {}
  if (line == end) return "no line '---' before what is expected";
  t->input.bytes = (size_t)(line - t->input.at);
  next = line_end(line, end);
  t->head = (part){start, (size_t)(next - start)};
  t->expected = (part){next, (size_t)(end - next)};
  return NULL;
}

typedef struct job {
  diag d;
  arena a;
  ir *g;
  const test *t;
  str result;
} job;

static const ir_pass *find_pass(const char *name) {
  for (size_t i = 0; i < sizeof ir_passes / sizeof *ir_passes; i++)
    if (!strcmp(ir_passes[i].name, name)) return &ir_passes[i];
  return NULL;
}

/** Parses a call in place and runs its pass. */
static void run_pass(job *j, char *text, node_list *roots) {
  char *at = strchr(text, '(');
  pass_call c = {.g = j->g, .roots = roots};
  if (at) *at++ = '\0';
  for (; at && *at && *at != ')' && c.n < MOST_PASS_ARGUMENTS; c.n++) {
    c.args[c.n] = at;
    at += strcspn(at, ",)");
    if (*at) *at++ = '\0';
  }
  const ir_pass *pass = find_pass(text);
  if (!pass) diag_raise(&j->d, TN_ERR_ARGUMENT, "no pass '%s'; see tests/ir/passes.h", text);
  c.name = pass->name;
  pass->run(&c);
  for (size_t i = 0; i < roots->n && pass->verified_as >= 0; i++)
    if (pass->verified_as == LEVEL_TENSOR ||
        (roots->at[i]->op != OP_CUSTOM && roots->at[i]->op != OP_TO))
      verify_stage(j->g, roots->at[i], (enum stage)pass->verified_as);
}

static void run_passes(void *arg) {
  job *j = arg;
  node_list roots = parse_graph(j->g, &j->a, j->t->input.at, j->t->input.bytes);
  const node *first = roots.n ? roots.at[0] : NULL;
  const char *c = j->t->passes.at, *end = c + j->t->passes.bytes;
  for (;;) {
    while (c < end && (*c == ' ' || *c == '\n')) c++;
    const char *name = c;
    while (c < end && *c != ' ' && *c != '\n') c++;
    if (c == name) break;
    run_pass(j, arena_printf(&j->a, "%.*s", (int)(c - name), name), &roots);
  }
  if (first && roots.n) compare_values(j->g, first, roots.at[0]);
  print_graph(&j->result, roots.at, roots.n);
}

static bool same(const str *a, const part *b) {
  return a->n == b->bytes && !memcmp(str_text(a), b->at, b->bytes);
}

static bool bless(job *j, const char *path) {
  str whole = str_new(&j->a);
  str_add_bytes(&whole, j->t->head.at, j->t->head.bytes);
  str_add_bytes(&whole, str_text(&j->result), j->result.n);
  if (file_write(path, whole.at, whole.n, &j->d) != TN_OK) {
    printf("FAILED %s: %s\n", path, j->d.text);
    return false;
  }
  printf("blessed %s\n", path);
  return true;
}

static bool compare(job *j, const char *path, bool blessing) {
  if (same(&j->result, &j->t->expected)) return true;
  if (blessing) return bless(j, path);
  printf("FAILED %s\nexpected:\n%.*sgot:\n%s", path, (int)j->t->expected.bytes, j->t->expected.at,
         str_text(&j->result));
  return false;
}

/** Runs a test. A pass's failure is a result too; line numbers in it count from the graph's first
    line. */
static bool run_test(const test *t, const char *path, bool blessing) {
  job j = {.t = t};
  arena_init(&j.a, &mem_system, &j.d);
  j.g = ir_new(&mem_system, &j.d, false);
  j.result = str_new(&j.a);
  bool ok = j.g != NULL;
  if (ok && diag_catch(&j.d, run_passes, &j) != TN_OK) str_addf(&j.result, "error: %s\n", j.d.text);
  ok = ok && compare(&j, path, blessing);
  ir_free(j.g);
  arena_free(&j.a);
  return ok;
}

static bool run_file(const char *path, bool blessing) {
  diag d = {0};
  file_map f;
  test t = {0};
  if (file_map_open(&f, path, &d) != TN_OK) {
    printf("FAILED %s\n", d.text);
    return false;
  }
  const char *text = f.data ? (const char *)f.data : "";
  const char *missing = read_test(&t, text, text + f.bytes);
  if (missing) printf("FAILED %s: %s\n", path, missing);
  bool ok = !missing && run_test(&t, path, blessing);
  file_map_close(&f);
  return ok;
}

static int is_test(const struct dirent *e) {
  size_t n = strlen(e->d_name);
  return n > 4 && !strcmp(e->d_name + n - 4, ".irt");
}

typedef struct tally {
  int files, failed;
} tally;

static void count(tally *t, const char *path, bool blessing) {
  t->files++;
  t->failed += !run_file(path, blessing);
}

/** Runs a file, or a folder's tests in the order of their names. */
static void run_path(tally *t, const char *path, bool blessing) {
  struct dirent **entries;
  char file[4096];
  int n = scandir(path, &entries, is_test, alphasort);
  if (n < 0) count(t, path, blessing);
  for (int i = 0; i < n; i++) {
    snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
    count(t, file, blessing);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

int main(int argc, char **argv) {
  tally t = {0};
  bool blessing = argc > 1 && !strcmp(argv[1], "--bless");
  for (int i = 1 + blessing; i < argc; i++) run_path(&t, argv[i], blessing);
  printf("%d IR tests, %d failed\n", t.files, t.failed);
  return !t.files || t.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
