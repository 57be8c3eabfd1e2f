/* The plans of a late plan. The inputs that decide are found as plans are made: each import may
   find more. Plans that exist stay right, as each is kept with all values that it was made for. One
   thread makes plans; others find theirs meanwhile. */
#include "tensor/plan/plan_values.h"
#include "base/stop.h"

#include "base/thread.h"
#include "tensor/plan/variant_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Numbers of variants that each plan has for its own. */
enum { NUMBERS_OF_PLAN = 1 << 16 };

typedef struct plan_of_values {
  tn_plan *plan;
  plan_value *values; /* by input */
  bool of_sizes;      /* made for the sizes of all inputs */
  uint64_t last_used;
} plan_of_values;

struct plan_values {
  plan_late late; /* its lists are not kept */
  mutex making;   /* held while a plan is made */
  mutex lock;     /* of all that follows */
  bool *deciding; /* by input */
  plan_of_values at[MOST_EXACT_VARIANTS];
  size_t n;
  int64_t n_made;
  uint64_t n_uses;
};

/* Values. */

static void free_values(const tn_plan *p, plan_value values[]) {
  const mem *m = &p->context->mem;
  for (size_t i = 0; values && i < p->ports.n_inputs; i++)
    mem_free(m, values[i].data, values[i].count * dtype_bytes(p->ports.inputs[i].dtype) + 1);
  mem_free(m, values, p->ports.n_inputs * sizeof *values);
}

/** True if a run's values are those that a plan was made for. */
static bool has_values(const tn_plan *p, const plan_of_values *made, const plan_value values[]) {
  for (size_t i = 0; i < p->ports.n_inputs; i++) {
    const plan_value *a = &made->values[i], *b = &values[i];
    if (a->rank != b->rank) return false;
    bool has_sizes = !memcmp(a->size, b->size, a->rank * sizeof *a->size);
    if ((made->of_sizes || a->data) && !has_sizes) return false;
    if (!a->data) continue;
    if (!b->data) return false;
    if (memcmp(a->data, b->data, a->count * dtype_bytes(p->ports.inputs[i].dtype))) return false;
  }
  return true;
}

static tn_status read_elements(tn_plan *p, size_t i, plan_value_reader read, void *user, diag *d,
                               plan_value *v) {
  size_t most = p->values->late.most_elements;
  if (v->count <= most) return read(user, i, false, v);
  return diag_set(d, TN_ERR_UNSUPPORTED,
                  "input %s decides on shapes and has %zu elements; at most %zu are supported",
                  p->ports.inputs[i].name, v->count, most);
}

/** Reads the elements of deciding inputs that were not read yet. */
static tn_status read_deciding(tn_plan *p, plan_value_reader read, void *user, diag *d,
                               plan_value values[]) {
  plan_values *k = p->values;
  tn_status s = TN_OK;
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++) {
    mutex_lock(&k->lock);
    bool decides = k->deciding[i];
    mutex_unlock(&k->lock);
    if (decides && !values[i].data) s = read_elements(p, i, read, user, d, &values[i]);
  }
  return s;
}

/* Values in messages. */

enum { MOST_SHOWN = 16 /* elements of an input */ };

typedef struct message_text {
  char text[512];
  size_t n;
} message_text;

BASE_PRINTF(2, 3)
static void add_text(message_text *m, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int n = vsnprintf(m->text + m->n, sizeof m->text - m->n, format, list);
  va_end(list);
  m->n += n > 0 ? (size_t)n : 0;
  if (m->n >= sizeof m->text) m->n = sizeof m->text - 1;
}

static void add_element(message_text *m, dtype t, const void *at) {
  uint64_t bits = scalar_load(t, at);
  if (dtype_has_floats(t))
    add_text(m, "%g", scalar_to_double(t, bits));
  else
    add_text(m, "%lld", (long long)bits);
}

static void add_value(message_text *m, const plan_port *port, const plan_value *v) {
  bool is_list = port->rank > 0;
  add_text(m, "%s'%.80s' = %s", m->n ? ", " : "; with ", port->name, is_list ? "[" : "");
  for (size_t i = 0; i < v->count && i < MOST_SHOWN; i++) {
    add_text(m, "%s", i ? ", " : "");
    add_element(m, port->dtype, (const char *)v->data + i * dtype_bytes(port->dtype));
  }
  add_text(m, "%s%s", v->count > MOST_SHOWN ? ", …" : "", is_list ? "]" : "");
}

/** Adds the values that decide to the message of a failure. */
static void explain_failure(const tn_plan *p, const plan_value values[], diag *d) {
  message_text m = {.n = 0};
  if (stops_work(d->status)) return;
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    if (values[i].data) add_value(&m, &p->ports.inputs[i], &values[i]);
  if (m.n) diag_set(d, d->status, "%.1400s%s", d->text, m.text);
}

void plan_values_explain(tn_plan *late, const tn_plan *made, diag *d) {
  plan_values *k = late->values;
  mutex_lock(&k->lock);
  for (size_t i = 0; i < k->n; i++)
    if (k->at[i].plan == made) explain_failure(late, k->at[i].values, d);
  mutex_unlock(&k->lock);
}

/* Plans. */

static tn_plan *find_made(tn_plan *p, const plan_value values[]) {
  plan_values *k = p->values;
  tn_plan *found = NULL;
  mutex_lock(&k->lock);
  for (size_t i = 0; i < k->n && !found; i++) {
    if (!has_values(p, &k->at[i], values)) continue;
    found = k->at[i].plan;
    k->at[i].last_used = ++k->n_uses;
    atomic_fetch_add_explicit(&found->count, 1, memory_order_relaxed);
  }
  mutex_unlock(&k->lock);
  return found;
}

/** Keeps a plan with the values, which it takes over, in the place of the one used least recently
    where there are many. */
static void keep_plan(tn_plan *p, tn_plan *made, plan_value values[], bool of_sizes) {
  plan_values *k = p->values;
  plan_of_values old = {0};
  atomic_fetch_add_explicit(&made->count, 1, memory_order_relaxed);
  mutex_lock(&k->lock);
  size_t at = k->n;
  if (k->n == MOST_EXACT_VARIANTS) {
    at = 0;
    for (size_t i = 1; i < k->n; i++)
      if (k->at[i].last_used < k->at[at].last_used) at = i;
    old = k->at[at];
  } else {
    k->n++;
  }
  k->at[at] = (plan_of_values){made, values, of_sizes, ++k->n_uses};
  mutex_unlock(&k->lock);
  plan_release(old.plan);
  free_values(p, old.values);
}

static tn_status check_ports(const tn_plan *p, const tn_plan *made, diag *d) {
  bool agree = made->ports.n_inputs == p->ports.n_inputs &&
               made->ports.n_outputs == p->ports.n_outputs && !made->n_states;
  return agree ? TN_OK : diag_set(d, TN_ERR_INTERNAL, "a plan has other ports than its late plan");
}

/** Makes the plan for values; *out is NULL if it needs more of them. Where nodes do not fit
   together for all sizes, it is made for those of the run. */
static tn_status make_plan(tn_plan *p, const plan_value values[], bool *of_sizes, diag *d,
                           tn_plan **out) {
  plan_values *k = p->values;
  const mem *m = &p->context->mem;
  size_t n = p->ports.n_inputs;
  bool *deciding = mem_calloc(m, n + 1, sizeof *deciding), lacks_values = false;
  *out = NULL;
  if (!deciding) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  int64_t first = k->n_made++ * NUMBERS_OF_PLAN;
  *of_sizes = k->late.of_sizes;
  tn_status s = k->late.make(k->late.user, p, values, *of_sizes, first, deciding, d, out);
  if (s != TN_OK && !*of_sizes && !stops_work(s)) {
    diag_clear(d);
    *of_sizes = true;
    s = k->late.make(k->late.user, p, values, true, first, deciding, d, out);
  }
  if (s == TN_OK && *out) s = check_ports(p, *out, d);
  mutex_lock(&k->lock);
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    lacks_values |= deciding[i] && !values[i].data;
    k->deciding[i] |= deciding[i];
  }
  mutex_unlock(&k->lock);
  mem_free(m, deciding, (n + 1) * sizeof *deciding);
  if (s == TN_OK && !*out && !lacks_values)
    s = diag_set(d, TN_ERR_INTERNAL, "a plan waits for values that it was given");
  if (s != TN_OK) plan_release(*out);
  return s;
}

/** Finds or makes the plan; without one the loop of the caller reads more values. */
static tn_status find_or_make(tn_plan *p, plan_value **values, diag *d, tn_plan **out) {
  tn_status s = TN_OK;
  bool of_sizes = false;
  *out = find_made(p, *values);
  if (*out) return s;
  mutex_lock(&p->values->making);
  *out = find_made(p, *values); /* another run may have made it */
  if (!*out) {
    s = make_plan(p, *values, &of_sizes, d, out);
    if (s != TN_OK) explain_failure(p, *values, d);
    if (s == TN_OK && *out) {
      keep_plan(p, *out, *values, of_sizes);
      *values = NULL;
    }
  }
  mutex_unlock(&p->values->making);
  if (s != TN_OK) *out = NULL;
  return s;
}

tn_status plan_values_find(tn_plan *p, plan_value_reader read, void *user, diag *d, tn_plan **out) {
  plan_value *values = mem_calloc(&p->context->mem, p->ports.n_inputs, sizeof *values);
  *out = NULL;
  tn_status s = values ? TN_OK : diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++) s = read(user, i, true, &values[i]);
  while (s == TN_OK && !*out) {
    s = read_deciding(p, read, user, d, values);
    if (s == TN_OK) s = find_or_make(p, &values, d, out);
  }
  free_values(p, values);
  return s;
}

/* Opening. */

tn_status plan_values_open(tn_plan *p, const plan_late *late, diag *d) {
  const mem *m = &p->context->mem;
  plan_values *k = mem_calloc(m, 1, sizeof *k);
  bool *deciding = mem_calloc(m, p->ports.n_inputs + 1, sizeof *deciding);
  if (!k || !deciding) {
    mem_free(m, k, sizeof *k);
    mem_free(m, deciding, (p->ports.n_inputs + 1) * sizeof *deciding);
    late->release(late->user);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  p->values = k;
  k->late = (plan_late){.most_elements = late->most_elements,
                        .of_sizes = late->of_sizes,
                        .make = late->make,
                        .release = late->release,
                        .user = late->user};
  k->deciding = deciding;
  for (size_t i = 0; i < p->ports.n_inputs; i++) deciding[i] = late->deciding[i];
  mutex_init(&k->making);
  mutex_init(&k->lock);
  return TN_OK;
}

void plan_values_close(tn_plan *p) {
  const mem *m = &p->context->mem;
  plan_values *k = p->values;
  if (!k) return;
  for (size_t i = 0; i < k->n; i++) {
    plan_release(k->at[i].plan);
    free_values(p, k->at[i].values);
  }
  k->late.release(k->late.user);
  mutex_free(&k->making);
  mutex_free(&k->lock);
  mem_free(m, k->deciding, (p->ports.n_inputs + 1) * sizeof *k->deciding);
  mem_free(m, k, sizeof *k);
  p->values = NULL;
}
