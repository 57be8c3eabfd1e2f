/* Fuzzes the reader of plan records, executables in the disk cache: arbitrary bytes are refused, or
   make an executable whose steps refer only to buffers that it has, and whose sizes can be
   computed. */
#include "plan.h"
#include "runtime/executable.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct job {
  diag d;
  ir *g;
  arena work;
  executable p;
  const void *data;
  size_t bytes;
  program_record *records;
  size_t n_records;
  bool is_read;
} job;

static volatile size_t seen;

static void require(bool holds) {
  if (!holds) abort();
}

static void see_buffers(const executable *p) {
  for (size_t i = 0; i < p->n_buffers; i++) require(dtype_is_data(p->buffers[i].dtype));
  for (size_t i = 0; i < p->n_inputs; i++) require(p->inputs[i].at < p->n_buffers);
  for (size_t i = 0; i < 2; i++) require(p->buffers[p->outputs[i]].role < BUFFER_ROLE_SCRATCH);
}

/** Checks that a loop's state is in buffers of its init's size, which no other state uses. */
static void see_states(const executable_step *s, const executable *p) {
  unsigned *users = calloc(p->n_buffers, sizeof *users);
  for (size_t i = 0; i < s->n_states; i++) {
    const schedule_state *x = &s->states[i];
    const size_t all[] = {x->result, x->spare, x->now, x->next};
    size_t n = x->now == x->next ? 1 : 4;
    for (size_t k = 0; k < 4; k++) {
      require(p->buffers[all[k]].dtype == p->buffers[x->init].dtype);
      require(p->sizes.results[all[k]] == p->sizes.results[x->init]);
      require(n == 4 || all[k] == x->result);
      if (k < n) require(!users[all[k]]++);
    }
    require(p->buffers[x->spare].role == BUFFER_ROLE_OUTPUT ||
            p->buffers[x->spare].role == BUFFER_ROLE_SCRATCH);
  }
  for (size_t i = 0; i < s->n_states; i++) require(!users[s->states[i].init]);
  free(users);
}

static void see_loop(const executable *p, size_t step) {
  const executable_step *s = &p->steps[step];
  require(s->n_steps < p->n_steps - step);
  require(s->trips < p->sizes.n_results && (s->trip == SIZE_MAX || s->trip < p->n_vars));
  for (size_t i = 0; i < s->n_states; i++) {
    const schedule_state *x = &s->states[i];
    require(x->init < p->n_buffers && x->result < p->n_buffers && x->spare < p->n_buffers);
    require(x->now < p->n_buffers && x->next < p->n_buffers);
    require(p->buffers[x->result].role != BUFFER_ROLE_INPUT);
  }
  see_states(s, p);
}

static void see_step(const job *j, size_t i) {
  const executable *p = &j->p;
  const executable_step *s = &p->steps[i];
  seen += strlen(s->name);
  for (size_t k = 0; k < s->n_buffers; k++) {
    require(s->buffers[k] < p->n_buffers);
    const executable_buffer *b = &p->buffers[s->buffers[k]];
    require(b->role != BUFFER_ROLE_SCRATCH ||
            (b->first <= i && i <= b->last && b->last < p->n_steps));
    for (size_t at = s->parent; at != SIZE_MAX && b->role == BUFFER_ROLE_SCRATCH;
         at = p->steps[at].parent)
      require(b->first > at || b->last >= at + p->steps[at].n_steps);
  }
  if (s->kind == STEP_CUSTOM) {
    require(s->n_buffers == 3 && s->uid == 9 && s->parent == SIZE_MAX);
    require(p->buffers[s->buffers[2]].role !=
            BUFFER_ROLE_INPUT); /* inputs must not be overwritten */
    return;
  }
  if (s->kind == STEP_LOOP) {
    see_loop(p, i);
    return;
  }
  require(s->program < j->n_records);
  const program_record *r = &j->records[s->program];
  require(r->n_globals == s->n_buffers);
  for (size_t k = 0; k < r->key.bytes; k++) seen += ((const unsigned char *)r->key.data)[k];
  for (size_t k = 0; k < r->n_values; k++)
    require(s->values[k] == SIZE_MAX || s->values[k] < p->n_vars);
}

static void see_sizes(job *j, const launch_exprs *c) {
  int64_t *values = arena_calloc(&j->work, j->p.n_vars + 1, sizeof *values);
  int64_t *room = arena_calloc(&j->work, c->n_terms + 1, sizeof *room);
  int64_t *results = arena_calloc(&j->work, c->n_results + 1, sizeof *results);
  diag d = {0};
  for (size_t i = 0; i < j->p.n_vars; i++) values[i] = j->p.vars[i].min;
  launch_exprs_eval(c, values, room, results, &d);
  for (size_t i = 0; i < j->n_records; i++) {
    const executable_kernel_counts *w = &j->p.kernel_counts[i];
    if (c == &j->p.count_sizes && !d.status)
      seen += kernel_counts_evaluate(w->items, w->n_items, results + w->first).bytes > 0;
  }
}

static void body(void *arg) {
  job *j = arg;
  executable_request r = {.target = NULL};
  plan_request(&r, j->g, plan_text);
  plan_cache_graph leaves = plan_leaves(&j->work, &r);
  j->is_read =
      plan_record_read(&j->p, &r, &leaves, j->data, j->bytes, &j->work, &j->records, &j->n_records);
  if (!j->is_read) return;
  see_buffers(&j->p);
  for (size_t i = 0; i < j->p.n_steps; i++) see_step(j, i);
  see_sizes(j, &j->p.sizes);
  see_sizes(j, &j->p.count_sizes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  job j = {.data = data, .bytes = bytes};
  j.g = ir_new(&mem_system, &j.d, false);
  arena_init(&j.work, &mem_system, &j.d);
  arena_init(&j.p.arena, &mem_system, &j.d);
  require(diag_catch(&j.d, body, &j) == TN_OK);
  arena_free(&j.p.arena);
  arena_free(&j.work);
  ir_free(j.g);
  return 0;
}
