/* Implements the bench of a kernel. A kernel that changes its operands gets them back before each
   measurement, so that repeated changes do not grow beyond the range of the type. */
#include "tune/kernel_bench.h"

#include "device/memory/span.h"
#include "runtime/execution_memory.h"
#include "tune/same_results.h"

#include <string.h>

enum { ROUNDS = 10, WINS = 8, ALIGN_BYTES = 64, MOST_COPIES = 256 };

/** The share of the incumbent's time that a faster schedule takes at most; and that from which on a
    first measurement is enough. */
static const double faster_share = 0.98, far_slower_share = 1.5;

/** The least time of a measurement. */
static const int64_t least_ns = 2000000;

typedef struct bench_operand {
  int64_t slot;
  dtype dtype;
  size_t count;
  uint64_t bytes, offset; /* in a copy of all operands */
  bool is_stored;
  double *expected; /* elements after a run, if they are stored */
} bench_operand;

struct kernel_bench {
  struct execution *e;
  size_t step;
  arena arena;
  diag *diag;
  bench_operand *operands;
  size_t n_operands, n_copies;
  uint64_t copy_bytes;
  bool is_in_place;   /* the kernel reads what it stores */
  bool has_results;   /* `expected` */
  tn_buffer *memory;  /* the copies, and one that no call changes */
  tn_buffer *scratch; /* of launches; NULL: none so far */
  tn_span all;
};

static void raise_if(diag *d, tn_status s) {
  if (s != TN_OK) diag_rethrow(d);
}

static tn_span operand_span(const kernel_bench *k, const bench_operand *o, size_t copy) {
  return span_slice(&k->all, copy * k->copy_bytes + o->offset, o->bytes);
}

/* Operands. */

static void list_operands(kernel_bench *k) {
  const executable *p = k->e->p;
  const executable_step *step = &p->steps[k->step];
  const tn_program *program = p->programs[step->program];
  k->operands = arena_calloc(&k->arena, step->n_buffers + 1, sizeof *k->operands);
  for (size_t i = 0; i < step->n_buffers; i++) {
    size_t buffer = step->buffers[i];
    bench_operand *o = &k->operands[k->n_operands++];
    *o = (bench_operand){.slot = program->facts.globals[i],
                         .dtype = p->buffers[buffer].dtype,
                         .bytes = execution_bytes_of(k->e, buffer),
                         .offset = k->copy_bytes,
                         .is_stored = program->limits.arrays[i].is_stored};
    o->count = o->bytes / dtype_bytes(o->dtype);
    if (o->is_stored) o->expected = arena_alloc(&k->arena, (o->count + 1) * sizeof *o->expected);
    k->copy_bytes += (o->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
  }
}

/** The next of a sequence of pseudo-random numbers (xorshift). */
static uint64_t next_random(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  return *x ^= *x << 17;
}

/** Numbers from -1 to 1, or of integers 0 to 3: as indices they are valid nearly everywhere. */
static void fill(kernel_bench *k, const bench_operand *o, uint64_t *random) {
  enum { BLOCK = 1024 };
  float block[BLOCK];
  tn_span span = operand_span(k, o, k->n_copies);
  size_t size = dtype_bytes(o->dtype);
  for (size_t done = 0, n; done < o->count; done += n) {
    n = o->count - done < BLOCK ? o->count - done : BLOCK;
    for (size_t i = 0; i < n; i++) {
      uint64_t bits = next_random(random) >> 40;
      block[i] = dtype_is_float(o->dtype) ? (float)bits / (float)(1 << 23) - 1 : (float)(bits & 3);
    }
    tn_span part = span_slice(&span, done * size, n * size);
    raise_if(k->diag, span_write(&part, o->dtype, DT_F32, block, n, k->diag));
  }
}

/** Copies operands from the last copy, which no call changes: all, or those that are stored. */
static void restore(kernel_bench *k, size_t copy, bool all) {
  for (size_t i = 0; i < k->n_operands; i++) {
    const bench_operand *o = &k->operands[i];
    if (!o->bytes || !(all || o->is_stored)) continue;
    tn_span to = operand_span(k, o, copy), from = operand_span(k, o, k->n_copies);
    raise_if(k->diag, span_copy(&to, &from, k->diag));
  }
}

static void alloc_operands(kernel_bench *k, uint64_t most) {
  uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
  k->n_copies = k->copy_bytes ? most / k->copy_bytes + 1 : 1;
  if (k->n_copies > MOST_COPIES) k->n_copies = MOST_COPIES;
  uint64_t bytes = (k->n_copies + 1) * k->copy_bytes;
  raise_if(k->diag, buffer_open(k->e->p->target->device, bytes ? bytes : 1, &k->memory, k->diag));
  raise_if(k->diag, buffer_span(k->memory, &k->all, k->diag));
  for (size_t i = 0; i < k->n_operands; i++) fill(k, &k->operands[i], &random);
  for (size_t i = 0; i < k->n_copies; i++) restore(k, i, true);
}

/* Launches. */

static const bench_operand *find_operand(const kernel_bench *k, int64_t slot) {
  for (size_t i = 0; i < k->n_operands; i++)
    if (k->operands[i].slot == slot) return &k->operands[i];
  diag_raise(k->diag, TN_ERR_INTERNAL, "a schedule of a kernel reads a buffer of no other");
}

/** The value that the step passes for a name. */
static int64_t find_value(const kernel_bench *k, const char *name) {
  const struct execution *e = k->e;
  const executable_step *step = &e->p->steps[k->step];
  const tn_program_facts *f = &e->p->programs[step->program]->facts;
  size_t var;
  for (size_t i = 0; i < f->n_values; i++)
    if (!strcmp(f->value_names[i], name)) return e->launch.values[k->step][i];
  if (!executable_resolve_value(e->p, name, &var))
    diag_raise(k->diag, TN_ERR_INTERNAL, "a schedule of a kernel has the value %s of no other",
               name);
  return var == SIZE_MAX ? execution_workers(e) : e->values.vars[var];
}

static uint64_t scratch_bytes(const kernel_bench *k, const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  return f->scratch * (f->core_id >= 0 ? (uint64_t)execution_workers(k->e) : 1);
}

/** Makes the memory for own arrays of kernels large enough for a program. */
static void reserve_scratch(kernel_bench *k, const tn_program *p) {
  uint64_t bytes = scratch_bytes(k, p);
  if (!bytes || (k->scratch && buffer_bytes(k->scratch) >= bytes)) return;
  if (k->scratch) buffer_release(k->scratch);
  k->scratch = NULL;
  raise_if(k->diag, buffer_open(k->e->p->target->device, bytes, &k->scratch, k->diag));
}

static tn_span scratch_span(kernel_bench *k, const tn_program *p) {
  tn_span span;
  raise_if(k->diag, buffer_span(k->scratch, &span, k->diag));
  return span_slice(&span, 0, scratch_bytes(k, p));
}

/** Launches of a program, one for each copy of the operands; in the arena. */
static tn_launch *make_launches(kernel_bench *k, const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  tn_launch *made = arena_calloc(&k->arena, k->n_copies, sizeof *made);
  int64_t *values = arena_alloc(&k->arena, (f->n_values + 1) * sizeof *values);
  size_t n = f->n_globals + (f->scratch > 0);
  for (size_t i = 0; i < f->n_values; i++) values[i] = find_value(k, f->value_names[i]);
  for (size_t c = 0; c < k->n_copies; c++) {
    tn_span *spans = arena_alloc(&k->arena, (n + 1) * sizeof *spans);
    for (size_t i = 0; i < f->n_globals; i++)
      spans[i] = operand_span(k, find_operand(k, f->globals[i]), c);
    if (f->scratch) spans[f->n_globals] = scratch_span(k, p);
    made[c] =
        (tn_launch){.buffers = spans, .n_buffers = n, .values = values, .n_values = f->n_values};
  }
  return made;
}

static void call(kernel_bench *k, tn_program *p, const tn_launch *launch) {
  diag_clear(k->diag);
  raise_if(k->diag, diag_complete(k->diag, program_execute(p, launch, &k->diag->failure)));
}

/* Results. */

static void read_operand(kernel_bench *k, const bench_operand *o, double to[]) {
  tn_span span = operand_span(k, o, 0);
  if (o->count) raise_if(k->diag, span_read(&span, o->dtype, DT_F64, to, o->count, k->diag));
}

/** True if the stored operands of the first copy are as expected. */
static bool has_expected(kernel_bench *k) {
  bool same = true;
  for (size_t i = 0; i < k->n_operands && same; i++) {
    const bench_operand *o = &k->operands[i];
    if (!o->is_stored) continue;
    arena_mark here = arena_save(&k->arena);
    double *got = arena_alloc(&k->arena, (o->count + 1) * sizeof *got);
    read_operand(k, o, got);
    same = same_results(o->dtype, got, o->expected, o->count);
    arena_rewind(&k->arena, here);
  }
  return same;
}

/** Keeps the results of the first program as those that all others are to have, so that small
    differences do not add up. Where a second run of it on the same operands has others, it reads
    what it stores. */
static void keep_expected(kernel_bench *k, tn_program *p, const tn_launch *launch) {
  if (k->has_results) return;
  restore(k, 0, false);
  call(k, p, launch);
  for (size_t i = 0; i < k->n_operands; i++)
    if (k->operands[i].is_stored) read_operand(k, &k->operands[i], k->operands[i].expected);
  call(k, p, launch);
  k->is_in_place = !has_expected(k);
  k->has_results = true;
}

static bool has_same_results(kernel_bench *k, tn_program *p, const tn_launch *launch) {
  restore(k, 0, false);
  call(k, p, launch);
  return has_expected(k);
}

/* Times. */

typedef struct contestant {
  tn_program *program;
  const tn_launch *launches;
} contestant;

/** The time of `n` calls, in ns, which use the copies of the operands in turn. */
static double measure(kernel_bench *k, const contestant *c, int64_t n) {
  for (size_t i = 0; i < k->n_copies && k->is_in_place; i++) restore(k, i, false);
  int64_t start = clock_now_ns();
  for (int64_t i = 0; i < n; i++) call(k, c->program, &c->launches[(size_t)i % k->n_copies]);
  return (double)(clock_now_ns() - start);
}

/** The number of calls that take long enough to be measured. */
static int64_t count_calls(kernel_bench *k, const contestant *c) {
  int64_t n = 1;
  while (measure(k, c, n) < (double)least_ns && n < INT32_MAX) n *= 2;
  return n;
}

static void run_rounds(kernel_bench *k, const contestant *a, const contestant *b, bench_result *r) {
  int64_t n = count_calls(k, a);
  int wins = 0, losses = 0;
  double first = measure(k, a, n), other = measure(k, b, n);
  *r = (bench_result){BENCH_SLOWER, first / (double)n, other / (double)n};
  if (other > far_slower_share * first) return;
  while (wins < WINS && losses <= ROUNDS - WINS) {
    double before = measure(k, a, n), after = measure(k, b, n);
    after += measure(k, b, n);
    before += measure(k, a, n);
    bool is_win = after <= faster_share * before;
    wins += is_win;
    losses += !is_win;
    if (before / 2 < r->incumbent_ns * (double)n) r->incumbent_ns = before / 2 / (double)n;
    if (after / 2 < r->candidate_ns * (double)n) r->candidate_ns = after / 2 / (double)n;
  }
  if (wins == WINS) r->verdict = BENCH_FASTER;
}

typedef struct comparison {
  kernel_bench *k;
  tn_program *incumbent, *candidate;
  bench_result *result;
} comparison;

static void compare_body(void *arg) {
  const comparison *c = arg;
  kernel_bench *k = c->k;
  reserve_scratch(k, c->incumbent);
  reserve_scratch(k, c->candidate);
  const contestant a = {c->incumbent, make_launches(k, c->incumbent)},
                   b = {c->candidate, make_launches(k, c->candidate)};
  keep_expected(k, a.program, a.launches);
  *c->result = (bench_result){.verdict = BENCH_WRONG};
  if (has_same_results(k, b.program, b.launches)) run_rounds(k, &a, &b, c->result);
}

tn_status kernel_bench_compare(kernel_bench *k, tn_program *incumbent, tn_program *candidate,
                               bench_result *r, diag *d) {
  arena_mark here = arena_save(&k->arena);
  *r = (bench_result){.verdict = BENCH_FAILED};
  tn_status s = diag_catch(d, compare_body, &(comparison){k, incumbent, candidate, r});
  arena_rewind(&k->arena, here);
  if (s == TN_OK || s == TN_ERR_MEMORY) return s;
  *r = (bench_result){.verdict = BENCH_FAILED};
  return TN_OK;
}

/* Opening. */

typedef struct opening {
  kernel_bench *k;
  uint64_t most;
} opening;

static void open_body(void *arg) {
  const opening *o = arg;
  list_operands(o->k);
  alloc_operands(o->k, o->most);
}

tn_status kernel_bench_open(kernel_bench **out, execution *e, size_t step, uint64_t most, diag *d) {
  const mem *m = e->p->mem;
  kernel_bench *k = *out = mem_calloc(m, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->e = e;
  k->step = step;
  k->diag = d;
  arena_init(&k->arena, m, d);
  tn_status s = diag_catch(d, open_body, &(opening){k, most});
  if (s == TN_OK) return s;
  kernel_bench_close(k);
  *out = NULL;
  return s;
}

void kernel_bench_close(kernel_bench *k) {
  if (!k) return;
  const mem *m = k->e->p->mem;
  if (k->memory) buffer_release(k->memory);
  if (k->scratch) buffer_release(k->scratch);
  arena_free(&k->arena);
  mem_free(m, k, sizeof *k);
}
