/* Implements the runs of a kernel alone. The last copy of the operands is one that no call changes:
   from it, what a call stores is restored. Floats are random numbers; integers and bools, which may
   be indices, sizes and masks, have the values of a run. As buffers that live at different times
   share memory, the steps before the kernel's are run once more for these. */
#include "tune/kernel_trial.h"

#include "base/random.h"
#include "device/memory/span.h"
#include "runtime/execution_memory.h"
#include "tune/same_results.h"

#include <string.h>

enum { ALIGN_BYTES = 64, MOST_COPIES = 256 };

typedef struct trial_operand {
  int64_t slot;
  size_t buffer; /* of the execution */
  dtype dtype;
  size_t count;
  uint64_t bytes, offset; /* in a copy of all operands */
  bool is_stored;
  void *expected; /* results (same_results.h), if it is stored */
} trial_operand;

struct kernel_trial {
  struct execution *e;
  size_t step;
  arena arena, launches; /* the latter of programs that are prepared */
  diag *diag;
  trial_operand *operands;
  size_t n_operands, n_copies;
  uint64_t copy_bytes;
  bool is_in_place;   /* the kernel reads what it stores */
  bool has_results;   /* `expected` */
  tn_buffer *memory;  /* the copies, and one that no call changes */
  tn_buffer *scratch; /* of launches; NULL: none so far */
  tn_span all;
};

static tn_span operand_span(const kernel_trial *k, const trial_operand *o, size_t copy) {
  return span_slice(&k->all, copy * k->copy_bytes + o->offset, o->bytes);
}

bool kernel_trial_operand(const kernel_trial *k, size_t copy, size_t i, tn_span *span) {
  if (copy > k->n_copies || i >= k->n_operands) return false;
  *span = operand_span(k, &k->operands[i], copy);
  return true;
}

/* Operands. */

static void list_operands(kernel_trial *k) {
  const executable *p = k->e->p;
  const executable_step *step = &p->steps[k->step];
  const tn_program *program = p->programs[step->program];
  k->operands = arena_calloc(&k->arena, step->n_buffers + 1, sizeof *k->operands);
  for (size_t i = 0; i < step->n_buffers; i++) {
    size_t buffer = step->buffers[i];
    trial_operand *o = &k->operands[k->n_operands++];
    *o = (trial_operand){.slot = program->facts.globals[i],
                         .buffer = buffer,
                         .dtype = p->buffers[buffer].dtype,
                         .bytes = execution_bytes_of(k->e, buffer),
                         .offset = k->copy_bytes,
                         .is_stored = program->limits.arrays[i].is_stored};
    o->count = o->bytes / dtype_bytes(o->dtype);
    k->copy_bytes += (o->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
  }
}

/** True if the values of an operand in a run matter. */
static bool is_taken(const trial_operand *o) { return o->bytes && !dtype_is_float(o->dtype); }

static bool is_input(const kernel_trial *k, const trial_operand *o) {
  const executable_buffer *all = k->e->p->buffers;
  return all[all[o->buffer].within].role == BUFFER_ROLE_INPUT;
}

/** Makes the buffers of the execution what the step finds in a run, if an operand is taken from
    one that steps write; false where a loop is among these, whose states alternate. */
static bool run_to_step(kernel_trial *k) {
  struct execution *e = k->e;
  bool is_needed = false;
  for (size_t i = 0; i < k->n_operands; i++)
    is_needed |= is_taken(&k->operands[i]) && !is_input(k, &k->operands[i]);
  for (size_t i = 0; i < k->step; i++)
    if (e->p->steps[i].kind != STEP_KERNEL) return false;
  if (!is_needed) return true;
  diag_require(k->diag, execution_run(e, k->diag));
  for (size_t i = 0; i < k->step; i++) {
    tn_program *p = e->p->programs[e->p->steps[i].program];
    diag_clear(k->diag);
    tn_status s = program_execute(p, &e->launch.launches[i], &k->diag->failure);
    diag_require(k->diag, diag_complete(k->diag, s));
  }
  return true;
}

static void take(kernel_trial *k, const trial_operand *o) {
  tn_span to = operand_span(k, o, k->n_copies);
  tn_span from = span_slice(&k->e->memory.spans[o->buffer], 0, o->bytes);
  diag_require(k->diag, span_copy(&to, &from, k->diag));
}

/** Numbers from -1 to 1, or of integers 0 to 3: as indices they are valid nearly everywhere. */
static void fill(kernel_trial *k, const trial_operand *o, uint64_t *random) {
  enum { BLOCK = 1024 };
  float block[BLOCK];
  tn_span span = operand_span(k, o, k->n_copies);
  size_t size = dtype_bytes(o->dtype);
  for (size_t done = 0, n; done < o->count; done += n) {
    n = o->count - done < BLOCK ? o->count - done : BLOCK;
    for (size_t i = 0; i < n; i++) {
      uint64_t bits = random_next(random) >> 40;
      block[i] = dtype_is_float(o->dtype) ? (float)bits / (float)(1 << 23) - 1 : (float)(bits & 3);
    }
    tn_span part = span_slice(&span, done * size, n * size);
    diag_require(k->diag, span_write(&part, o->dtype, DT_F32, block, n, k->diag));
  }
}

/** Copies operands from the last copy, which no call changes: all, or those that are stored. */
static void restore(kernel_trial *k, size_t copy, bool all) {
  for (size_t i = 0; i < k->n_operands; i++) {
    const trial_operand *o = &k->operands[i];
    if (!o->bytes || !(all || o->is_stored)) continue;
    tn_span to = operand_span(k, o, copy), from = operand_span(k, o, k->n_copies);
    diag_require(k->diag, span_copy(&to, &from, k->diag));
  }
}

static void set_operands(kernel_trial *k) {
  uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
  bool has_values = run_to_step(k);
  for (size_t i = 0; i < k->n_operands; i++) {
    const trial_operand *o = &k->operands[i];
    if (is_taken(o) && (has_values || is_input(k, o)))
      take(k, o);
    else
      fill(k, o, &random);
  }
  for (size_t i = 0; i < k->n_copies; i++) restore(k, i, true);
}

static void alloc_operands(kernel_trial *k, uint64_t most) {
  k->n_copies = k->copy_bytes ? most / k->copy_bytes + 1 : 1;
  if (k->n_copies > MOST_COPIES) k->n_copies = MOST_COPIES;
  uint64_t bytes = (k->n_copies + 1) * k->copy_bytes;
  diag_require(k->diag,
               buffer_open(k->e->p->target->device, bytes ? bytes : 1, &k->memory, k->diag));
  diag_require(k->diag, buffer_span(k->memory, &k->all, k->diag));
}

/* Launches. */

static const trial_operand *find_operand(const kernel_trial *k, int64_t slot) {
  for (size_t i = 0; i < k->n_operands; i++)
    if (k->operands[i].slot == slot) return &k->operands[i];
  diag_raise(k->diag, TN_ERR_INTERNAL, "a schedule of a kernel reads a buffer of no other");
}

/** The value that the step passes for a name. */
static int64_t find_value(const kernel_trial *k, const char *name) {
  const struct execution *e = k->e;
  const executable_step *step = &e->p->steps[k->step];
  const tn_program_facts *f = &e->p->programs[step->program]->facts;
  size_t var;
  for (size_t i = 0; i < f->n_values; i++)
    if (!strcmp(f->value_names[i], name)) return e->launch.values[k->step][i];
  if (!executable_resolve_value(e->p, name, &var))
    diag_raise(k->diag, TN_ERR_INTERNAL, "a schedule of a kernel has the value %s of no other",
               name);
  return var == SIZE_MAX ? execution_workers(e, 0) : e->values.vars[var];
}

static uint64_t scratch_bytes(const kernel_trial *k, const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  return f->scratch * (f->core_id >= 0 ? (uint64_t)execution_workers(k->e, 0) : 1);
}

/** Makes the memory for own arrays of kernels large enough for a program. */
static void reserve_scratch(kernel_trial *k, const tn_program *p) {
  uint64_t bytes = scratch_bytes(k, p);
  if (!bytes || (k->scratch && buffer_bytes(k->scratch) >= bytes)) return;
  if (k->scratch) buffer_release(k->scratch);
  k->scratch = NULL;
  diag_require(k->diag, buffer_open(k->e->p->target->device, bytes, &k->scratch, k->diag));
}

static tn_span scratch_span(kernel_trial *k, const tn_program *p) {
  tn_span span;
  diag_require(k->diag, buffer_span(k->scratch, &span, k->diag));
  return span_slice(&span, 0, scratch_bytes(k, p));
}

/** Launches of a program, one for each copy of the operands. */
static tn_launch *make_launches(kernel_trial *k, const tn_program *p) {
  const tn_program_facts *f = &p->facts;
  arena *a = &k->launches;
  tn_launch *made = arena_calloc(a, k->n_copies, sizeof *made);
  int64_t *values = arena_alloc(a, (f->n_values + 1) * sizeof *values);
  size_t n = f->n_globals + (f->scratch > 0);
  for (size_t i = 0; i < f->n_values; i++) values[i] = find_value(k, f->value_names[i]);
  for (size_t c = 0; c < k->n_copies; c++) {
    tn_span *spans = arena_alloc(a, (n + 1) * sizeof *spans);
    for (size_t i = 0; i < f->n_globals; i++)
      spans[i] = operand_span(k, find_operand(k, f->globals[i]), c);
    if (f->scratch) spans[f->n_globals] = scratch_span(k, p);
    made[c] =
        (tn_launch){.buffers = spans, .n_buffers = n, .values = values, .n_values = f->n_values};
  }
  return made;
}

void kernel_trial_prepare(kernel_trial *k, trial_program programs[], size_t n) {
  arena_rewind(&k->launches, (arena_mark){0});
  for (size_t i = 0; i < n; i++) reserve_scratch(k, programs[i].program);
  for (size_t i = 0; i < n; i++) programs[i].launches = make_launches(k, programs[i].program);
}

static void call(kernel_trial *k, const trial_program *p, size_t copy) {
  diag *d = k->diag;
  diag_clear(d);
  diag_require(d, diag_complete(d, program_execute(p->program, &p->launches[copy], &d->failure)));
}

/* Results. */

static void *read_operand(kernel_trial *k, const trial_operand *o) {
  const tn_span span = operand_span(k, o, 0);
  return read_results(&k->arena, &span, o->dtype, o->count);
}

/** True if the stored operands of the first copy are as expected. */
static bool has_expected(kernel_trial *k) {
  bool same = true;
  for (size_t i = 0; i < k->n_operands && same; i++) {
    const trial_operand *o = &k->operands[i];
    if (!o->is_stored) continue;
    arena_mark here = arena_save(&k->arena);
    same = same_results(o->dtype, read_operand(k, o), o->expected, o->count);
    arena_rewind(&k->arena, here);
  }
  return same;
}

/** Keeps the results of a program as those that all others are to have, so that small differences
    do not add up. Where a second run of it on the same operands has others, it reads what it
    stores. */
static void keep_expected(kernel_trial *k, const trial_program *p) {
  for (size_t i = 0; i < k->n_operands; i++)
    if (k->operands[i].is_stored) k->operands[i].expected = read_operand(k, &k->operands[i]);
  call(k, p, 0);
  k->is_in_place = !has_expected(k);
  k->has_results = true;
}

bool kernel_trial_agrees(kernel_trial *k, const trial_program *p) {
  restore(k, 0, false);
  call(k, p, 0);
  if (k->has_results) return has_expected(k);
  keep_expected(k, p);
  return true;
}

/* Time. */

double kernel_trial_time(kernel_trial *k, const trial_program *p, int64_t n) {
  int64_t ns = 0;
  for (int64_t done = 0, calls; done < n; done += calls) {
    calls = n - done;
    if (k->is_in_place && calls > (int64_t)k->n_copies) calls = (int64_t)k->n_copies;
    for (size_t i = 0; i < k->n_copies && k->is_in_place; i++) restore(k, i, false);
    int64_t start = clock_now_ns();
    for (int64_t i = 0; i < calls; i++) call(k, p, (size_t)i % k->n_copies);
    ns += clock_now_ns() - start;
  }
  return (double)ns;
}

/* Opening. */

typedef struct opening {
  kernel_trial *k;
  uint64_t most;
} opening;

static void open_body(void *arg) {
  const opening *o = arg;
  list_operands(o->k);
  alloc_operands(o->k, o->most);
  set_operands(o->k);
}

tn_status kernel_trial_open(kernel_trial **out, execution *e, size_t step, uint64_t most, diag *d) {
  const mem *m = e->p->mem;
  kernel_trial *k = *out = mem_calloc(m, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->e = e;
  k->step = step;
  k->diag = d;
  arena_init(&k->arena, m, d);
  arena_init(&k->launches, m, d);
  tn_status s = diag_catch(d, open_body, &(opening){k, most});
  if (s == TN_OK) return s;
  kernel_trial_close(k);
  *out = NULL;
  return s;
}

void kernel_trial_close(kernel_trial *k) {
  if (!k) return;
  const mem *m = k->e->p->mem;
  if (k->memory) buffer_release(k->memory);
  if (k->scratch) buffer_release(k->scratch);
  arena_free(&k->arena);
  arena_free(&k->launches);
  mem_free(m, k, sizeof *k);
}
