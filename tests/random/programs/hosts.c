/* Adds host functions (custom operators that run user code) to random programs: their outputs, the
   states that they write in place, and checks of how often each was called and destroyed. Each has
   an id that is nowhere else in the program, so that no two give the same results. */
#include "program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN = 3 };

struct host {
  int32_t number;
  size_t n_in, n_out;
  uint64_t writes;
  unsigned due; /* minimum number of calls, for its writes */
  int plan;     /* plan that took its write; 0: none */
  bool of_rows; /* that write is of all rows, of which there may be none */
  atomic_uint calls, destroyed;
  host *next;
};

/* The function. */

static size_t elements_of(tn_array a) { return shape_count(a.type.shape); }

static void fill(tn_array to, const host *h, size_t output, const operands *in) {
  int32_t *out = to.data;
  for (size_t i = 0; i < elements_of(to); i++) out[i] = host_element(h->number, output, in, i);
}

/** Computes all new contents from the old ones, then writes them. */
static tn_status write_inputs(const host *h, tn_call *call, const operands *in) {
  tn_array made[MOST_IN] = {{0}};
  bool fine = true;
  for (size_t i = 0; i < h->n_in; i++) {
    if (!(h->writes >> i & 1)) continue;
    made[i] = tn_call_in(call, i);
    made[i].data = calloc(elements_of(made[i]) + 1, sizeof(int32_t));
    if (made[i].data) fill(made[i], h, h->n_out + i, in);
    fine &= made[i].data != NULL;
  }
  for (size_t i = 0; i < h->n_in; i++) {
    size_t bytes = made[i].data ? elements_of(made[i]) * sizeof(int32_t) : 0;
    if (bytes) memcpy(tn_call_in(call, i).data, made[i].data, bytes);
    free(made[i].data);
  }
  return fine ? TN_OK : TN_ERR_MEMORY;
}

static tn_status call_host(void *user, tn_call *call) {
  host *h = user;
  operands in = {.n = h->n_in};
  for (size_t i = 0; i < h->n_in; i++) {
    in.at[i] = tn_call_in(call, i).data;
    in.count[i] = elements_of(tn_call_in(call, i));
  }
  for (size_t i = 0; i < h->n_out; i++) fill(tn_call_out(call, i), h, i, &in);
  atomic_fetch_add(&h->calls, 1);
  return write_inputs(h, call, &in);
}

static void destroy(void *user) { atomic_fetch_add(&((host *)user)->destroyed, 1); }

/* Building. */

static host *new_host(program *p, size_t n_in, size_t n_out) {
  host *h = model_alloc(&p->memory, 1, sizeof *h);
  *h = (host){.number = 1000 + 7919 * ++p->last_constant, .n_in = n_in, .n_out = n_out};
  h->next = p->hosts;
  return p->hosts = h;
}

static value *output_value(program *p, host *h, value *const in[], tn_shape shape, size_t output) {
  value v = {.kind = VALUE_HOST,
             .shape = shape,
             .n_src = h->n_in,
             .fill = h->number,
             .input = output,
             .host = h};
  for (size_t i = 0; i < h->n_in; i++) {
    v.src[i] = in[i];
    v.varies |= in[i]->varies && is_same_shape(in[i]->shape, shape);
  }
  if (h->n_in) return value_new(&p->memory, v);
  int32_t *all = model_alloc(&p->memory, shape_count(shape), sizeof *all);
  for (size_t i = 0; i < shape_count(shape); i++)
    all[i] = host_element(h->number, output, &(operands){.n = 0}, i);
  return value_constant(&p->memory, shape, all);
}

static void say_host(program *p, const host *h, const handle in[], const handle out[]) {
  for (size_t i = 0; i < h->n_out; i++)
    say(p, "t%d = output %zu of host function %d", out[i].number, i, (int)h->number);
  say(p, "host function %d of %zu inputs%s", (int)h->number, h->n_in, h->writes ? " writes" : "");
  for (size_t i = 0; i < h->n_in; i++)
    say(p, "  input %zu: t%d%s", i, in[i].number, h->writes >> i & 1 ? ", written" : "");
}

static void build(program *p, host *h, const handle in[], const tn_type types[],
                  const tn_shape shapes[], handle out[]) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_tensor *from[MOST_IN], *made[MOST_HOST_OUT];
  value *values[MOST_IN];
  d.run = call_host;
  d.destroy = destroy;
  d.user = h;
  d.writes = h->writes;
  for (size_t i = 0; i < h->n_in; i++) from[i] = in[i].tensor;
  for (size_t i = 0; i < h->n_in; i++) values[i] = value_now(p, &in[i]);
  tn_custom(p->context, &d, from, h->n_in, types, made, h->n_out);
  for (size_t i = 0; i < h->n_out; i++)
    out[i] = new_handle(p, made[i], output_value(p, h, values, shapes[i], i));
  say_host(p, h, in, out);
  for (size_t i = 0; i < h->n_in; i++)
    if (h->writes >> i & 1)
      change_state(p, &in[i], output_value(p, h, values, in[i].shape, h->n_out + i));
}

static void build_fixed(program *p, host *h, const handle in[], const tn_shape shapes[],
                        handle out[]) {
  tn_type types[MOST_HOST_OUT];
  for (size_t i = 0; i < h->n_out; i++) types[i] = (tn_type){TN_I32, shapes[i]};
  build(p, h, in, types, shapes, out);
}

handle host_result(program *p, const handle in[], size_t n, tn_shape shape) {
  handle out[MOST_HOST_OUT];
  tn_shape shapes[MOST_HOST_OUT] = {shape, random_shape(p)};
  host *h = new_host(p, n, 1 + rng_below(&p->r, MOST_HOST_OUT));
  build_fixed(p, h, in, shapes, out);
  cover(p, COVERED_HOSTS);
  for (size_t i = 1; i < h->n_out; i++) add_handle(p, out[i]);
  return out[0];
}

handle host_rows(program *p, const handle *x, tn_type type) {
  handle out;
  build(p, new_host(p, 1, 1), x, &type, &x->shape, &out);
  cover(p, COVERED_HOSTS);
  return out;
}

static size_t pick_written(program *p, handle in[]) {
  size_t n = 0;
  for (size_t tries = 1 + rng_below(&p->r, 2); tries; tries--) {
    handle *to = pick(p, is_assignable);
    if (!to) return n;
    in[n] = rng_chance(&p->r, 30) ? random_view(p, to) : *to;
    n += in[n].is_assignable;
  }
  return n;
}

static void write_some(program *p) {
  handle in[MOST_IN], out[MOST_HOST_OUT];
  tn_shape shapes[] = {random_shape(p), random_shape(p)};
  size_t n = pick_written(p, in);
  if (!n) return;
  uint64_t writes = ((uint64_t)1 << n) - 1;
  if (rng_chance(&p->r, 60)) in[n++] = random_operand(p);
  host *h = new_host(p, n, rng_below(&p->r, MOST_HOST_OUT + 1));
  h->writes = writes;
  cover(p, COVERED_HOST_WRITES);
  build_fixed(p, h, in, shapes, out);
  for (size_t i = 0; i < h->n_out; i++) add_handle(p, out[i]);
}

void write_by_host(program *p) {
  if (p->has_hosts)
    write_some(p);
  else
    assign_random(p);
}

/* Calls. */

void note_due(const value *version) {
  if (version->src[1]->host) version->src[1]->host->due = 1;
}

/** Plans drop writes of no elements, and with them the function; for no rows, exact variants do. */
void note_taken(const value *version, int plan) {
  const value *with = version->src[1];
  if (!with->host || !with->count) return;
  with->host->plan = plan;
  with->host->of_rows = with->varies;
}

void note_run(program *p, int plan, size_t rows) {
  for (host *h = p->hosts; h; h = h->next) h->due += h->plan == plan && (rows || !h->of_rows);
}

void check_calls(program *p) {
  unsigned runs = p->last_run + p->n_started;
  for (const host *h = p->hosts; h; h = h->next) {
    unsigned calls = atomic_load(&h->calls);
    if (calls < h->due)
      fail(p, "host function %d was called %u times, not %u", (int)h->number, calls, h->due);
    if (calls > 1 + runs)
      fail(p, "host function %d was called %u times, in %u runs", (int)h->number, calls, runs);
  }
}

const char *check_destroyed(const program *p) {
  for (const host *h = p->hosts; h; h = h->next)
    if (atomic_load(&h->destroyed) != 1) return "a host function was not destroyed once";
  return NULL;
}
