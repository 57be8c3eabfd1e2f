/* Runs differential tests over random tensor graphs: each graph goes through every pass and its
   interpreter (check.h), then batches of them are merged, compiled and run (compiled.h), also with
   scalars lifted to variables (varying.h), and with numbers for sizes (exact.h). Shrinks and saves
   graphs that fail.

     test_graphs [--seed=N] [--shard=I/N] [--long] [--interpret] [--opencl | --cuda] [FILE.ir …]

   TENON_SEED: the first graph's seed (graph i has seed TENON_SEED + i). TENON_GRAPHS: number of
   graphs (default 1,000; 150 with the verifier after each pass, 75 under a sanitizer; 20,000 with
   --long or TENON_LONG). TENON_FOUND: a folder for failing graphs. TENON_PRINT: print each graph.
   TENON_PASSES: print each stage.

   --opencl, --cuda: graphs, 25 of them, are compiled for the first such device and compared with
   the expected values alone; without one, they are skipped (77).

   Without TENON_SEED the seed is random for many graphs, and --seed for few. --shard=I/N checks
   every Nth batch of graphs, from the Ith on, and every Nth graph of found/; other batches are only
   generated, so that coverage is that of all graphs. --interpret compiles nothing. With files, only
   these are checked. The graphs in found/, which failed once, always are. */
#include "compiled.h"
#include "exact.h"
#include "generate.h"
#include "shrink.h"
#include "suite.h"
#include "varying.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct coverage {
  size_t ops[OP_LIMIT];             /* number of graphs with each op */
  size_t types[OP_LIMIT][DT_LIMIT]; /* elementwise ops, by operand type */
  size_t reductions[OP_LIMIT][DT_LIMIT];
} coverage;

typedef struct suite {
  compiled compiled;
  coverage covered;
  size_t graphs, failures;
  size_t shard, shards; /* batch i belongs to this process if i % shards == shard */
  bool interpret;       /* compile nothing */
  const char *device;   /* run on it alone; NULL: the CPU */
  bool is_long;
  uint64_t seed; /* 0: not set */
  const char *found;
} suite;

/* Coverage. */

static void count_graph(coverage *c, const graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  bool seen[OP_LIMIT] = {false};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (!seen[n->op]) c->ops[n->op]++;
    seen[n->op] = true;
    if (n->op == OP_REDUCE) c->reductions[n->ints[0]][n->dtype]++;
    if (op_is_elementwise((op)n->op) && n->n_src) {
      const node *x = n->src[n->op == OP_WHERE ? 1 : 0];
      c->types[n->op][x->dtype]++;
    }
  }
}

/** True for ops that cannot occur in a user's graph. */
static bool is_no_users(op o) {
  return o == OP_PARAM       /* made from BUFFERs by normalise, so covered by every graph */
         || o == OP_SINK     /* has no value: the end of kernels and plans */
         || o == OP_DOT_BF16 /* of words that schedules make: check_rows */
         || o == OP_DOT_F16;
}

enum {
  LEAST_GRAPHS = 50,
  ALL_TYPES = 4000 /* graphs after which every op has met every type, for any seed */
};

static bool check_coverage(const suite *s) {
  bool fine = true;
  size_t least = s->graphs / (1000 / LEAST_GRAPHS);
  for (int o = 0; o < OP_LIMIT; o++) {
    if (!(op_facts_of((op)o)->stages & LEVEL_TENSOR) || is_no_users((op)o)) continue;
    if (s->covered.ops[o] >= least) continue;
    printf("op %s is in %zu graphs only: the generator does not cover it\n", op_name((op)o),
           s->covered.ops[o]);
    fine = false;
  }
  bool types = s->seed || s->graphs >= ALL_TYPES;
  for (int o = 0; o < OP_LIMIT && types; o++)
    for (int t = 0; t < DT_LIMIT; t++) {
      bool data = dtype_facts_of(t)->name && dtype_is_data((dtype)t);
      bool takes = data && (op_facts_of((op)o)->stages & LEVEL_TENSOR) && !is_no_users((op)o) &&
                   op_is_elementwise((op)o) && op_facts_of((op)o)->least &&
                   op_takes((op)o, (dtype)t);
      uint64_t start;
      bool reduces = takes && (op_facts_of((op)o)->facts & FACT_ASSOCIATIVE) &&
                     op_identity((op)o, (dtype)t, &start);
      if (takes && !s->covered.types[o][t])
        printf("op %s is never used on %s\n", op_name((op)o), dtype_name((dtype)t)), fine = false;
      if (reduces && !s->covered.reductions[o][t])
        printf("no reduction by %s on %s\n", op_name((op)o), dtype_name((dtype)t)), fine = false;
    }
  return fine;
}

/* Checking. */

static void check_varied(suite *s, const graph *g, const expected *e, report *r) {
  check_varying(s->interpret ? NULL : &s->compiled, compiled_target(&s->compiled), g, e, r);
}

/** Checks some graphs with numbers for their sizes: compiling them takes long. */
static void check_numbers(suite *s, const graph *g, const expected *e, report *r) {
  if ((g->seed + g->n_roots) % 3) return;
  check_exact(s->interpret ? NULL : &s->compiled, compiled_target(&s->compiled), g, e, r);
}

/** Checks one graph in all ways. */
static void check_whole(void *user, const graph *g, report *r) {
  suite *s = user;
  if (s->device) {
    compiled_check_expected(&s->compiled, g, expect(g), r);
    return;
  }
  void **results = arena_calloc(g->a, g->n_roots, sizeof *results);
  const expected *e = check_graph(g, compiled_target(&s->compiled), r);
  if (!r->failed) check_programs(g, compiled_target(&s->compiled), e, results, r);
  if (!r->failed && !s->interpret) compiled_check(&s->compiled, g, results, r);
  if (!r->failed) check_varied(s, g, e, r);
  if (!r->failed) check_numbers(s, g, e, r);
}

static void write_found(const suite *s, const graph *g, const report *r) {
  char path[1024];
  const char *text = graph_text(g);
  printf("%s", text);
  if (!s->found) return;
  snprintf(path, sizeof path, "%s/seed_%llu.ir", s->found, (unsigned long long)g->seed);
  FILE *f = fopen(path, "w");
  if (!f) return;
  fprintf(f, "; %s: %.*s\n%s", r->stage, (int)strcspn(r->text, "\n"), r->text, text);
  fclose(f);
  printf("written to %s\n", path);
}

/** Reports a failing graph and shrinks it. */
static void tell(suite *s, graph *g, report *r, bool shrinks) {
  s->failures++;
  printf("FAILED at %s: %s\n", r->stage, r->text);
  if (g->seed) printf("again: TENON_SEED=%llu TENON_GRAPHS=1\n", (unsigned long long)g->seed);
  fflush(stdout);
  if (shrinks) {
    shrink(g, check_whole, s, 30, r);
    printf("smaller, FAILED at %s: %s\n", r->stage, r->text);
  }
  write_found(s, g, r);
  fflush(stdout);
}

/** Sets the text that a crash prints. */
static void now_running(const char *what, uint64_t seed, size_t n) {
  snprintf(suite_running, sizeof suite_running,
           "\ncrashed (%s) at TENON_SEED=%llu TENON_GRAPHS=%zu\n", what, (unsigned long long)seed,
           n);
}

/* Graphs are compiled in batches: one plan computes the values of all graphs of a batch. */

enum { BATCH = 25 };

typedef struct batch {
  suite *s;
  ir *ir;
  arena a;
  diag d;
  uint64_t first;
  size_t n;
  graph graphs[BATCH];
  const expected *expected[BATCH]; /* NULL: the graph failed */
} batch;

/** Generates graph `i` of the batch and counts its ops. */
static graph *generate_graph(batch *b, size_t i) {
  graph *g = &b->graphs[i];
  *g = (graph){.ir = b->ir, .a = &b->a};
  generate(g, b->first + i);
  graph_prepare(g);
  count_graph(&b->s->covered, g);
  return g;
}

static void check_each(batch *b) {
  for (size_t i = 0; i < b->n; i++) {
    report r;
    now_running("interpreters", b->first + i, 1);
    graph *g = generate_graph(b, i);
    if (getenv("TENON_PRINT")) printf("%s", graph_text(g)), fflush(stdout);
    if (b->s->device) {
      b->expected[i] = expect(g);
      continue;
    }
    b->expected[i] = check_graph(g, compiled_target(&b->s->compiled), &r);
    if (!r.failed) continue;
    b->expected[i] = NULL;
    tell(b->s, g, &r, true);
  }
}

/** Merges the graphs of one math mode. */
static graph merged(batch *b, int math, const expected **e) {
  graph m = {.ir = b->ir, .a = &b->a, .math = math};
  node_list roots = {0};
  VEC(expected) all = {0};
  for (size_t i = 0; i < b->n; i++) {
    const graph *g = &b->graphs[i];
    for (size_t k = 0; k < g->n_roots && g->math == math && b->expected[i]; k++) {
      vec_push(&b->a, &roots, g->roots[k]);
      vec_push(&b->a, &all, b->expected[i][k]);
    }
  }
  m.roots = roots.at;
  m.n_roots = roots.n;
  graph_prepare(&m);
  *e = all.at;
  return m;
}

/** Checks graphs that fail together one by one; if none fails alone, reports the merged graph. */
static void find_failure(batch *b, graph *all, report *together) {
  for (size_t i = 0; i < b->n; i++) {
    report r = {0};
    if (b->graphs[i].math != all->math || !b->expected[i]) continue;
    check_whole(b->s, &b->graphs[i], &r);
    if (!r.failed) continue;
    tell(b->s, &b->graphs[i], &r, true);
    return;
  }
  tell(b->s, all, together, true);
}

static void check_together(batch *b, int math) {
  const expected *e;
  report r;
  graph all = merged(b, math, &e);
  if (!all.n_roots) return;
  void **results = arena_calloc(&b->a, all.n_roots, sizeof *results);
  now_running("all together", b->first, b->n);
  if (b->s->device) {
    compiled_check_expected(&b->s->compiled, &all, e, &r);
    if (r.failed) find_failure(b, &all, &r);
    return;
  }
  check_programs(&all, compiled_target(&b->s->compiled), e, results, &r);
  if (!r.failed && !b->s->interpret) compiled_check(&b->s->compiled, &all, results, &r);
  if (!r.failed) check_varied(b->s, &all, e, &r);
  if (r.failed) find_failure(b, &all, &r);
}

static void batch_body(void *arg) {
  batch *b = arg;
  check_each(b);
  check_together(b, MATH_EXACT);
  check_together(b, MATH_DEFAULT);
}

/** Generates graphs of another shard, for coverage only. */
static void count_body(void *arg) {
  batch *b = arg;
  for (size_t i = 0; i < b->n; i++) generate_graph(b, i);
}

static void check_batch(suite *s, uint64_t first, size_t n, bool is_ours) {
  static batch b;
  memset(&b, 0, sizeof b);
  b.s = s;
  b.first = first;
  b.n = n;
  b.ir = ir_new(&mem_system, &b.d, true);
  arena_init(&b.a, &mem_system, &b.d);
  if (diag_catch(&b.d, is_ours ? batch_body : count_body, &b) != TN_OK) {
    printf("TENON_SEED=%llu TENON_GRAPHS=%zu: %s\n", (unsigned long long)first, n, b.d.text);
    s->failures++;
  }
  ir_free(b.ir);
  arena_free(&b.a);
}

/* Files. */

typedef struct file_job {
  suite *s;
  graph g;
  const char *text;
  size_t bytes;
} file_job;

static void file_body(void *arg) {
  file_job *j = arg;
  report r = {0};
  graph_read(&j->g, j->text, j->bytes);
  graph_prepare(&j->g);
  check_whole(j->s, &j->g, &r);
  if (r.failed) tell(j->s, &j->g, &r, getenv("TENON_SHRINK") != NULL);
}

static void check_text(suite *s, const char *path, const char *text, size_t bytes) {
  static diag d;
  arena a;
  arena_init(&a, &mem_system, &d);
  file_job j = {.s = s, .text = text, .bytes = bytes};
  j.g = (graph){.ir = ir_new(&mem_system, &d, true), .a = &a};
  size_t before = s->failures;
  if (diag_catch(&d, file_body, &j) != TN_OK) {
    printf("%s\n", d.text);
    s->failures++;
  }
  if (s->failures != before) printf("%s FAILED\n", path);
  ir_free(j.g.ir);
  arena_free(&a);
}

static void check_file(suite *s, const char *path) {
  enum { MOST = 1 << 22 };
  char *text = calloc(1, MOST);
  FILE *f = fopen(path, "rb");
  size_t n = f && text ? fread(text, 1, MOST - 1, f) : 0;
  if (f) fclose(f);
  snprintf(suite_running, sizeof suite_running, "\ncrashed at %.100s\n", path);
  if (n) {
    check_text(s, path, text, n);
  } else {
    printf("%s cannot be read\n", path);
    s->failures++;
  }
  free(text);
}

/** Hashes a file's name, as folders are listed in any order. */
static size_t stable_share(const char *name) {
  size_t sum = 0;
  for (; *name; name++) sum += (unsigned char)*name;
  return sum;
}

static size_t check_found(suite *s) {
  const char *folder = TENON_SOURCE_DIR "/tests/random/found";
  DIR *d = opendir(folder);
  size_t n = 0;
  for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
    size_t length = strlen(e->d_name);
    if (length < 4 || strcmp(e->d_name + length - 3, ".ir")) continue;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (stable_share(e->d_name) % s->shards == s->shard) check_file(s, path), n++;
  }
  if (d) closedir(d);
  return n;
}

/* All. */

static void set_shard(suite *s, const char *text) {
  unsigned shard, shards;
  if (sscanf(text, "%u/%u", &shard, &shards) != 2 || !shard || shard > shards) {
    printf("--shard=%s is not I/N with I from 1 to N\n", text);
    exit(2);
  }
  s->shard = shard - 1;
  s->shards = shards;
}

static void read_device(suite *s, const char *argument) {
  if (!strcmp(argument, "--opencl")) s->device = "OPENCL";
  if (!strcmp(argument, "--cuda")) s->device = "CUDA";
}

static size_t check_arguments(suite *s, int argc, char **argv) {
  size_t files = 0;
  for (int i = 1; i < argc; i++) {
    s->is_long |= !strcmp(argv[i], "--long");
    if (!strncmp(argv[i], "--seed=", 7)) s->seed = strtoull(argv[i] + 7, NULL, 10);
    if (!strncmp(argv[i], "--shard=", 8)) set_shard(s, argv[i] + 8);
    s->interpret |= !strcmp(argv[i], "--interpret");
    read_device(s, argv[i]);
    if (strncmp(argv[i], "--", 2)) check_file(s, argv[i]), files++;
  }
  return files;
}

/** Checks that unbounded elements are the exception. */
static bool check_counts(void) {
  const expect_counts *c = &expect_counted;
  bool fine = c->unknown <= (c->exact + c->bounded + c->unknown) / 20;
  if (!fine) printf("too many elements of which nothing is known\n");
  return fine;
}

/** Checks that arrays lie inside of others, in runs of enough graphs for that. */
static bool check_places(const suite *s) {
  bool fine = s->graphs / s->shards < 75 || (check_places_by_cost && check_places_at_random);
  if (!fine) printf("no arrays are placed inside of others\n");
  return fine;
}

/** True if a target has a tile of a row of floats, which become words for tiles alone: the graphs'
    products are too small for them. */
static bool is_for_tiles(uint32_t rows, size_t row) {
  bool has_tile = false;
  for (size_t k = 0; k < TENSOR_TILES; k++)
    has_tile |= (rows >> (TENSOR_ROWS + k) & 1) && (size_t)tensor_tiles[k].row == row;
  return has_tile && dtype_is_float(tensor_rows[row].sum);
}

/** Checks that schedules apply each row of tensor_rows.def that the target has, in runs of enough
    graphs for that. */
static bool check_rows(const suite *s) {
  uint32_t rows = target_rows(compiled_target(&s->compiled));
  bool fine = true;
  for (size_t i = 0; i < TENSOR_ROWS; i++) {
    if (s->graphs / s->shards < 500 || !(rows >> i & 1) || check_rows_applied[i]) continue;
    if (is_for_tiles(rows, i)) continue;
    printf("no kernel has the op %s\n", op_name(tensor_rows[i].op));
    fine = false;
  }
  return fine;
}

static void summarise(const suite *s, size_t found) {
  const compiled *c = &s->compiled;
  printf("shard %zu of %zu: %zu graphs, %zu found before, %zu failures\n", s->shard + 1, s->shards,
         s->graphs, found, s->failures);
  printf(
      "elements: %llu equal bit by bit, %llu within tolerances, %llu of which nothing is known\n",
      (unsigned long long)expect_counted.exact, (unsigned long long)expect_counted.bounded,
      (unsigned long long)expect_counted.unknown);
  printf("random schedules: %zu laws, %zu for teams\n", check_laws_applied,
         check_team_laws_applied);
  printf("arrays in slots: %zu of a worker, %zu shared, %zu copies ahead\n", check_slots_private,
         check_slots_shared, check_copies_ahead);
  printf("arrays inside of others: %zu by cost, %zu at random\n", check_places_by_cost,
         check_places_at_random);
  printf("kernels with products of small types:");
  for (size_t i = 0; i < TENSOR_ROWS; i++)
    printf("%s %zu %s", i ? "," : "", check_rows_applied[i], op_name(tensor_rows[i].op));
  printf("\ncompiled by %s%s%s: %zu kernels in %.1f s\n", c->names[0],
         c->n > 1 ? " and " : " alone", c->n > 1 ? c->names[1] : "", c->kernels, c->compiling);
}

/** Returns the first graph's seed if the environment sets none. */
static uint64_t usual_seed(const suite *s) {
  if (s->seed && !s->is_long) return s->seed;
  return (uint64_t)time(NULL) * 1000003 % 1000000000 + 1;
}

/** True under a sanitizer, which instruments kernels too and is slow. */
static bool is_watched(void) {
  const char *text = getenv("TENON_SANITIZE");
  return text && *text;
}

#ifdef TENON_VERIFY
enum { USUAL = 150 };
#else
enum { USUAL = 1000 };
#endif
enum { WATCHED = 75, MANY = 20000, MOST_FAILURES = 10, SKIPPED = 77 };

int main(int argc, char **argv) {
  static suite s = {.shards = 1};
  s.is_long = getenv("TENON_LONG") != NULL;
  suite_catch_crashes();
  for (int i = 1; i < argc; i++) read_device(&s, argv[i]);
  if (!(s.device ? compiled_open_device(&s.compiled, s.device) : compiled_open(&s.compiled))) {
    printf("%s%s\n", s.device ? "SKIPPED: " : "", s.compiled.d.text);
    return s.device ? SKIPPED : 1;
  }
  s.found = getenv("TENON_FOUND");
  if (check_arguments(&s, argc, argv)) return s.failures ? 1 : 0;
  uint64_t first = suite_number("TENON_SEED", usual_seed(&s));
  size_t usual = is_watched() ? WATCHED : USUAL, many = MANY;
  if (s.device) usual = BATCH, many = USUAL;
  s.graphs = (size_t)suite_number("TENON_GRAPHS", s.is_long ? many : usual);
  printf("TENON_SEED=%llu, %zu graphs\n", (unsigned long long)first, s.graphs);
  fflush(stdout);
  size_t found = s.device ? 0 : check_found(&s);
  for (size_t i = 0; i < s.graphs && s.failures < MOST_FAILURES; i += BATCH)
    check_batch(&s, first + i, s.graphs - i < BATCH ? s.graphs - i : BATCH,
                i / BATCH % s.shards == s.shard);
  bool covered =
      s.failures || s.device || s.graphs < 1000 || (check_coverage(&s) && check_counts());
  covered &= s.failures || s.device || (check_places(&s) && check_rows(&s));
  summarise(&s, found);
  compiled_close(&s.compiled);
  return s.failures || !covered;
}
