/* The plans of a late plan. The inputs that decide are found as plans are made: each import may
   find more. Plans that exist stay right, as each is kept with all values that it was made for. One
   thread makes plans; others find theirs meanwhile.

   An input that has had a few values varies: its next one is left out of what the plan is made for,
   which computes with it, as with other data, and serves all values. Where nodes need the value
   after all, it is given in all further plans. Likewise one plan serves all sizes from 1 on where
   that is known to fit. A plan for several may turn out not to fit what a run has, as computed
   sizes know no -1; that run gets a plan of its own. */
#include "tensor/plan/late_plan.h"
#include "base/stop.h"

#include "base/thread.h"
#include "tensor/plan/variant_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Numbers of variants that each plan has for its own. */
enum { NUMBERS_OF_PLAN = 1 << 16 };

/** Values of an input that have plans of their own, until the next one makes it vary. */
enum { MOST_GIVEN_VALUES = 2 };

/** The part that an input's value has in plans. */
typedef enum value_use {
  VALUE_GIVEN, /* each plan is for one, so far */
  VALUE_VARIES,
  VALUE_FIXED /* each plan is for one, as nodes need it */
} value_use;

typedef struct plan_of_values {
  tn_plan *plan;
  plan_value *values; /* by input */
  bool of_sizes;      /* made for the sizes of all inputs, */
  bool from_one;      /* or all that are at least 1 */
  uint64_t last_used;
} plan_of_values;

struct late_plan {
  plan_late late;  /* its lists are not kept */
  mutex making;    /* held while a plan is made */
  mutex lock;      /* of all that follows */
  bool *deciding;  /* by input */
  value_use *uses; /* likewise */
  plan_of_values at[MOST_EXACT_VARIANTS];
  size_t n;
  bool refuses_shared; /* kernels of shared plans could not be compiled */
  int64_t n_made;
  uint64_t n_uses;
};

/* Values. */

static void free_data(const tn_plan *p, plan_value values[], size_t i) {
  plan_value *v = &values[i];
  mem_free(&p->context->mem, v->data, v->count * dtype_bytes(p->ports.inputs[i].dtype) + 1);
  v->data = NULL;
}

static void free_values(const tn_plan *p, plan_value values[]) {
  const mem *m = &p->context->mem;
  for (size_t i = 0; values && i < p->ports.n_inputs; i++) free_data(p, values, i);
  mem_free(m, values, p->ports.n_inputs * sizeof *values);
}

static bool is_empty(const plan_value *v) {
  bool is = false;
  for (size_t k = 0; k < v->rank; k++) is |= !v->size[k];
  return is;
}

/** True if a run's values are those that a plan was made for. */
static bool has_values(const tn_plan *p, const plan_of_values *made, const plan_value values[]) {
  for (size_t i = 0; i < p->ports.n_inputs; i++) {
    const plan_value *a = &made->values[i], *b = &values[i];
    if (a->rank != b->rank || (made->from_one && is_empty(b))) return false;
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
  late_plan *k = p->values;
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
  else if (dtype_is_signed(t))
    add_text(m, "%lld", (long long)bits);
  else
    add_text(m, "%llu", (unsigned long long)bits);
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

void late_plan_refuse_shared(tn_plan *late, const char *why) {
  context_log(late->context, TN_LOG_WARNING, "plan %s is compiled for each set of values: %s",
              late->name, why);
  mutex_lock(&late->values->lock);
  late->values->refuses_shared = true;
  mutex_unlock(&late->values->lock);
}

void late_plan_explain(tn_plan *late, const tn_plan *made, diag *d) {
  late_plan *k = late->values;
  mutex_lock(&k->lock);
  for (size_t i = 0; i < k->n; i++)
    if (k->at[i].plan == made) explain_failure(late, k->at[i].values, d);
  mutex_unlock(&k->lock);
}

/* Plans. */

/** The plan for the run's values alone, else one for several; NULL: there is none. */
static plan_of_values *find_in_table(tn_plan *p, const plan_value values[], bool is_exact) {
  late_plan *k = p->values;
  plan_of_values *found = NULL;
  for (size_t i = 0; i < k->n; i++) {
    bool is_shared = k->at[i].plan->is_shared;
    if (is_shared && (is_exact || found)) continue;
    if (has_values(p, &k->at[i], values)) found = &k->at[i];
  }
  return found;
}

static tn_plan *find_made(tn_plan *p, const plan_value values[], bool is_exact) {
  late_plan *k = p->values;
  mutex_lock(&k->lock);
  plan_of_values *found = find_in_table(p, values, is_exact);
  tn_plan *made = found ? found->plan : NULL;
  if (found) found->last_used = ++k->n_uses;
  if (made) atomic_fetch_add_explicit(&made->count, 1, memory_order_relaxed);
  mutex_unlock(&k->lock);
  return made;
}

/** Keeps a plan with the values, which it takes over, in the place of the one used least recently
    where there are many. */
static void keep_plan(tn_plan *p, tn_plan *made, plan_value values[], const plan_made_for *of) {
  late_plan *k = p->values;
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
  k->at[at] = (plan_of_values){made, values, of->of_sizes, of->from_one, ++k->n_uses};
  mutex_unlock(&k->lock);
  plan_release(old.plan);
  free_values(p, old.values);
}

/* Making. */

static const char needs_given_values[] = "a plan waits for values that it was given";

/** A plan being made for a run. */
typedef struct plan_import {
  tn_plan *late;
  plan_value *values; /* of the run, by input */
  plan_value *given;  /* those that the plan is made for */
  bool *varying;      /* by input: the value is left out of these */
  bool *none;         /* by input: false */
  bool *deciding;     /* by input: the value is needed */
  plan_made_for of;
  bool lacks_values;        /* values are needed that were not read */
  char why_not_shared[512]; /* the failure of a shared plan; "": none */
  diag *d;
  tn_plan *made; /* NULL: none so far */
} plan_import;

static bool has_data(const tn_plan *p, const plan_value *x, const plan_value *y, size_t i) {
  return x->data && y->data && x->count == y->count &&
         !memcmp(x->data, y->data, x->count * dtype_bytes(p->ports.inputs[i].dtype));
}

/** The number of values of an input that plans are for, and the run does not have. */
static size_t count_other_values(const plan_import *j, size_t i) {
  const late_plan *k = j->late->values;
  size_t n = 0;
  for (size_t a = 0; a < k->n; a++) {
    const plan_value *x = &k->at[a].values[i];
    bool is_new = x->data && !has_data(j->late, x, &j->values[i], i);
    for (size_t b = 0; b < a && is_new; b++) is_new = !has_data(j->late, x, &k->at[b].values[i], i);
    n += is_new;
  }
  return n;
}

/** Leaves out the values of inputs that have had others in several plans; false: there are none. */
static bool choose_varying(plan_import *j) {
  late_plan *k = j->late->values;
  bool found = false;
  mutex_lock(&k->lock);
  for (size_t i = 0; i < j->late->ports.n_inputs; i++) {
    value_use *use = &k->uses[i];
    bool is_given = j->values[i].data && *use == VALUE_GIVEN;
    if (is_given && count_other_values(j, i) >= MOST_GIVEN_VALUES) *use = VALUE_VARIES;
    j->given[i] = j->values[i];
    j->varying[i] = *use == VALUE_VARIES;
    if (j->varying[i]) j->given[i].data = NULL;
    found |= j->varying[i];
  }
  mutex_unlock(&k->lock);
  return found;
}

/** Has values given from now on that were left out: all, or those that are needed. False: there are
    none. */
static bool fix_varying(plan_import *j, bool all) {
  late_plan *k = j->late->values;
  bool found = false;
  mutex_lock(&k->lock);
  for (size_t i = 0; i < j->late->ports.n_inputs; i++) {
    if (!j->varying[i] || !(all || j->deciding[i])) continue;
    k->uses[i] = VALUE_FIXED;
    found = true;
  }
  mutex_unlock(&k->lock);
  return found;
}

static tn_status check_ports(const tn_plan *p, const tn_plan *made, diag *d) {
  bool agree = made->ports.n_inputs == p->ports.n_inputs &&
               made->ports.n_outputs == p->ports.n_outputs && !made->n_states;
  return agree ? TN_OK : diag_set(d, TN_ERR_INTERNAL, "a plan has other ports than its late plan");
}

/** Makes a plan for what `of` says; none if it needs more values. */
static tn_status import_plan(plan_import *j) {
  tn_plan *p = j->late;
  late_plan *k = p->values;
  size_t n = p->ports.n_inputs;
  int64_t first = k->n_made++ * NUMBERS_OF_PLAN;
  j->lacks_values = false;
  memset(j->deciding, 0, n * sizeof *j->deciding);
  tn_status s = k->late.make(k->late.user, p, &j->of, first, j->deciding, j->d, &j->made);
  if (s == TN_OK && j->made) s = check_ports(p, j->made, j->d);
  mutex_lock(&k->lock);
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    j->lacks_values |= j->deciding[i] && !j->values[i].data;
    k->deciding[i] |= j->deciding[i];
  }
  mutex_unlock(&k->lock);
  if (s == TN_OK) return s;
  plan_release(j->made);
  j->made = NULL;
  return s;
}

static bool are_from_one(const plan_import *j) {
  bool are = true;
  for (size_t i = 0; i < j->late->ports.n_inputs; i++)
    for (size_t k = 0; k < j->values[i].rank; k++) are &= j->values[i].size[k] > 0;
  return are;
}

/** Makes a plan that serves values besides those of the run, if there can be one; a failure is
    kept, and is none of the run's. */
static tn_status make_shared(plan_import *j) {
  late_plan *k = j->late->values;
  for (;;) {
    bool varies = choose_varying(j), from_one = k->late.fits_from_one && are_from_one(j);
    if (!varies && !from_one) return TN_OK;
    j->of = (plan_made_for){j->given, j->varying, k->late.of_sizes && !from_one, from_one};
    tn_status s = import_plan(j);
    if (s != TN_OK && !stops_work(s)) {
      snprintf(j->why_not_shared, sizeof j->why_not_shared, "%.500s", j->d->text);
      diag_clear(j->d);
      return TN_OK;
    }
    if (s != TN_OK || j->made) return s;
    if (fix_varying(j, false)) continue;
    return j->lacks_values ? s : diag_set(j->d, TN_ERR_INTERNAL, needs_given_values);
  }
}

/** Makes the plan for the values of the run; where nodes do not fit together for all sizes, for
    its sizes. */
static tn_status make_for_run(plan_import *j) {
  late_plan *k = j->late->values;
  j->of = (plan_made_for){j->values, j->none, k->late.of_sizes, false};
  tn_status s = import_plan(j);
  if (s == TN_OK || j->of.of_sizes || stops_work(s)) return s;
  diag_clear(j->d);
  j->of.of_sizes = true;
  return import_plan(j);
}

/** Makes no shared plan like the one again that could not be made, although one for the values of
    the run can: values that were left out of it are given from now on, or else all sizes. */
static void stop_sharing(plan_import *j) {
  const tn_plan *p = j->late;
  context_log(p->context, TN_LOG_WARNING, "plan %s cannot be made for values that vary: %s",
              p->name, j->why_not_shared);
  if (!fix_varying(j, true)) p->values->late.fits_from_one = false;
}

static tn_status make_plan(plan_import *j, bool is_exact) {
  bool may_vary = j->late->values->late.may_vary && !is_exact;
  tn_status s = may_vary ? make_shared(j) : TN_OK;
  if (s != TN_OK || j->lacks_values) return s;
  if (j->made) {
    j->made->is_shared = true;
    return s;
  }
  s = make_for_run(j);
  if (s == TN_OK && !j->made && !j->lacks_values)
    s = diag_set(j->d, TN_ERR_INTERNAL, needs_given_values);
  if (j->made && *j->why_not_shared) stop_sharing(j);
  return s;
}

/** Makes a plan and keeps it, with the values that it is for, which it takes over. */
static tn_status make_and_keep(tn_plan *p, plan_value **values, bool is_exact, diag *d,
                               tn_plan **out) {
  const mem *m = &p->context->mem;
  size_t n = p->ports.n_inputs + 1;
  plan_import j = {.late = p,
                   .values = *values,
                   .given = mem_calloc(m, n, sizeof *j.given),
                   .varying = mem_calloc(m, n, sizeof *j.varying),
                   .none = mem_calloc(m, n, sizeof *j.none),
                   .deciding = mem_calloc(m, n, sizeof *j.deciding),
                   .d = d};
  bool has_memory = j.given && j.varying && j.none && j.deciding;
  tn_status s = has_memory ? make_plan(&j, is_exact) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (s != TN_OK) explain_failure(p, *values, d);
  for (size_t i = 0; i < p->ports.n_inputs && j.made; i++)
    if (j.of.varying[i]) free_data(p, *values, i);
  if (j.made) {
    keep_plan(p, j.made, *values, &j.of);
    *values = NULL;
  }
  *out = j.made;
  mem_free(m, j.given, n * sizeof *j.given);
  mem_free(m, j.varying, n * sizeof *j.varying);
  mem_free(m, j.none, n * sizeof *j.none);
  mem_free(m, j.deciding, n * sizeof *j.deciding);
  return s;
}

/* Finding. */

/** Finds or makes the plan; without one the loop of the caller reads more values. */
static tn_status find_or_make(tn_plan *p, plan_value **values, bool is_exact, diag *d,
                              tn_plan **out) {
  tn_status s = TN_OK;
  *out = find_made(p, *values, is_exact);
  if (*out) return s;
  mutex_lock(&p->values->making);
  *out = find_made(p, *values, is_exact); /* another run may have made it */
  if (!*out) s = make_and_keep(p, values, is_exact, d, out);
  mutex_unlock(&p->values->making);
  return s;
}

static bool refuses_shared(tn_plan *p) {
  mutex_lock(&p->values->lock);
  bool refuses = p->values->refuses_shared;
  mutex_unlock(&p->values->lock);
  return refuses;
}

tn_status late_plan_find(tn_plan *p, bool is_exact, plan_value_reader read, void *user, diag *d,
                         tn_plan **out) {
  plan_value *values = mem_calloc(&p->context->mem, p->ports.n_inputs, sizeof *values);
  *out = NULL;
  tn_status s = values ? TN_OK : diag_set(d, TN_ERR_MEMORY, "out of memory");
  for (size_t i = 0; i < p->ports.n_inputs && s == TN_OK; i++) s = read(user, i, true, &values[i]);
  is_exact |= refuses_shared(p);
  while (s == TN_OK && !*out) {
    s = read_deciding(p, read, user, d, values);
    if (s == TN_OK) s = find_or_make(p, &values, is_exact, d, out);
  }
  free_values(p, values);
  return s;
}

/* Opening. */

tn_status late_plan_open(tn_plan *p, const plan_late *late, diag *d) {
  const mem *m = &p->context->mem;
  late_plan *k = mem_calloc(m, 1, sizeof *k);
  size_t n = p->ports.n_inputs + 1;
  bool *deciding = mem_calloc(m, n, sizeof *deciding);
  value_use *uses = mem_calloc(m, n, sizeof *uses);
  if (!k || !deciding || !uses) {
    mem_free(m, k, sizeof *k);
    mem_free(m, deciding, n * sizeof *deciding);
    mem_free(m, uses, n * sizeof *uses);
    late->release(late->user);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  p->values = k;
  k->late = (plan_late){.most_elements = late->most_elements,
                        .of_sizes = late->of_sizes,
                        .fits_from_one = late->fits_from_one,
                        .may_vary = late->may_vary,
                        .make = late->make,
                        .release = late->release,
                        .user = late->user};
  k->deciding = deciding;
  k->uses = uses;
  for (size_t i = 0; i < p->ports.n_inputs; i++) deciding[i] = late->deciding[i];
  mutex_init(&k->making);
  mutex_init(&k->lock);
  return TN_OK;
}

void late_plan_close(tn_plan *p) {
  const mem *m = &p->context->mem;
  late_plan *k = p->values;
  if (!k) return;
  for (size_t i = 0; i < k->n; i++) {
    plan_release(k->at[i].plan);
    free_values(p, k->at[i].values);
  }
  k->late.release(k->late.user);
  mutex_free(&k->making);
  mutex_free(&k->lock);
  mem_free(m, k->deciding, (p->ports.n_inputs + 1) * sizeof *k->deciding);
  mem_free(m, k->uses, (p->ports.n_inputs + 1) * sizeof *k->uses);
  mem_free(m, k, sizeof *k);
  p->values = NULL;
}
