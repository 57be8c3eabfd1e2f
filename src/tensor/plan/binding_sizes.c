/* Sizes of a binding: finds the facts from the shapes of inputs and all sizes from the facts, and
   refuses sizes that do not fit. One message lists all of a call, each with the size that is
   expected and its origin. */
#include "ir/core/var_names.h"
#include "tensor/context/shape.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/plan/binding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Messages. */

/** Sizes that do not fit, in words. */
typedef struct misfits {
  size_t n, n_left; /* all, and those that the text has no room for */
  char text[1024];
} misfits;

/** Adds a size of an input to the list. */
BASE_PRINTF(5, 6)
static void add_misfit(misfits *m, const plan_port *p, size_t axis, int64_t size,
                       const char *format, ...) {
  char text[512];
  va_list list;
  int n = snprintf(text, sizeof text, "%sinput %.160s: axis %zu has size %lld, ", m->n ? "; " : "",
                   p->name, axis, (long long)size);
  va_start(list, format);
  vsnprintf(text + n, sizeof text - (size_t)n, format, list);
  va_end(list);
  size_t used = strlen(m->text), bytes = strlen(text) + 1;
  m->n++;
  if (used + bytes > sizeof m->text)
    m->n_left++;
  else
    memcpy(m->text + used, text, bytes);
}

static tn_status refuse_misfits(tn_binding *b, const misfits *m) {
  if (!m->n) return TN_OK;
  if (!m->n_left) return diag_set(&b->diag, TN_ERR_SHAPE, "%s", m->text);
  return diag_set(&b->diag, TN_ERR_SHAPE, "%s; and %zu more", m->text, m->n_left);
}

/* Shapes of single inputs. */

bool binding_element_count(tn_shape s, size_t bytes, uint64_t *count) {
  *count = 1;
  for (int32_t i = 0; i < s.rank; i++) {
    if (s.size[i] < 0 || s.size[i] >= DIM_NUMBER_LIMIT) return false;
    if (__builtin_mul_overflow(*count, (uint64_t)s.size[i], count)) return false;
  }
  return *count <= (uint64_t)PTRDIFF_MAX / bytes;
}

/** The value of the fact that a size of a port determines; false if no value gives this size. */
static bool solve_size(const tn_plan *p, const port_size *s, int64_t size, int64_t *value) {
  const plan_fact *f = &p->facts[s->fact];
  int64_t rest;
  if (__builtin_sub_overflow(size, s->offset, &rest) || rest % s->scale) return false;
  *value = rest / s->scale;
  return *value >= f->min && *value <= f->max;
}

/** Adds a size that gives its fact no value. */
static void add_unsolved(misfits *m, const tn_plan *p, const plan_port *port, size_t axis,
                         int64_t size) {
  const port_size *s = &port->size[axis];
  const plan_fact *f = &p->facts[s->fact];
  const char *name = var_user_name(f->name);
  if (s->offset == 0 && s->scale == 1)
    add_misfit(m, port, axis, size, "but %.80s must be from %lld to %lld", name, (long long)f->min,
               (long long)f->max);
  else
    add_misfit(m, port, axis, size, "but must be %.80s, with %.80s from %lld to %lld", s->text,
               name, (long long)f->min, (long long)f->max);
}

static tn_status refuse_rank(tn_binding *b, const plan_port *p, tn_shape shape) {
  char given[256], wanted[256];
  if (shape.rank < 0 || shape.rank > TN_MAX_RANK)
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s has rank %d, not %zu", p->name,
                    (int)shape.rank, p->rank);
  return diag_set(&b->diag, TN_ERR_SHAPE, "input %s has rank %d, not %zu: its shape is %s, not %s",
                  p->name, (int)shape.rank, p->rank,
                  shape_write_text(given, sizeof given, (size_t)shape.rank, NULL, shape.size),
                  plan_port_shape_text(p, wanted, sizeof wanted));
}

tn_status binding_check_shape(tn_binding *b, const plan_port *p, tn_shape shape, size_t bytes,
                              uint64_t *count) {
  misfits m = {0};
  int64_t value;
  const tn_plan *plan = binding_ports(b);
  bool is_any = p->is_late && shape.rank >= 0 && shape.rank <= TN_MAX_RANK;
  if (!is_any && (shape.rank < 0 || (size_t)shape.rank != p->rank)) return refuse_rank(b, p, shape);
  if (!binding_element_count(shape, bytes, count))
    return diag_set(&b->diag, TN_ERR_SHAPE, "input %s: a size is no number, or too large", p->name);
  for (size_t k = 0; k < p->rank && !is_any; k++) {
    const port_size *s = &p->size[k];
    if (s->is_fixed && shape.size[k] != s->offset)
      add_misfit(&m, p, k, shape.size[k], "not %lld, its fixed size", (long long)s->offset);
    if (s->fact != SIZE_MAX && !solve_size(plan, s, shape.size[k], &value))
      add_unsolved(&m, plan, p, k, shape.size[k]);
  }
  return refuse_misfits(b, &m);
}

/* Sizes of a run. */

/** Finds the facts from the sizes of inputs; those of a carried output may give none. */
static tn_status find_facts(tn_binding *b) {
  const tn_plan *p = b->plan;
  misfits m = {0};
  for (size_t f = 0; f < p->n_facts; f++) {
    size_t i = p->facts[f].input, k = p->facts[f].axis;
    int64_t value;
    if (!solve_size(p, &p->ports.inputs[i].size[k], b->inputs[i].size[k], &value)) {
      add_unsolved(&m, p, &p->ports.inputs[i], k, b->inputs[i].size[k]);
      continue;
    }
    if (value != b->facts[f]) b->has_sizes = false;
    b->facts[f] = value;
  }
  return refuse_misfits(b, &m);
}

static tn_status evaluate_sizes(tn_binding *b) {
  if (b->has_sizes) return TN_OK;
  tn_status s = launch_exprs_eval(&b->plan->ports.sizes, b->facts, b->terms, b->sizes, &b->diag);
  b->has_sizes = s == TN_OK;
  return s;
}

/** Adds a size of an input that differs from the value of its expression, which other inputs
    determine. */
static void add_contradiction(misfits *m, const tn_binding *b, size_t input, size_t axis) {
  const tn_plan *p = b->plan;
  const plan_port *port = &p->ports.inputs[input];
  const port_size *s = &port->size[axis];
  int64_t size = b->inputs[input].size[axis], expected = b->sizes[port->first_size + axis], value;
  const plan_fact *f = s->fact == SIZE_MAX ? NULL : &p->facts[s->fact];
  if (s->is_fixed)
    add_misfit(m, port, axis, size, "not %lld, its fixed size", (long long)expected);
  else if (f && solve_size(p, s, expected, &value))
    add_misfit(m, port, axis, size, "not %lld, as %.80s is %lld by axis %zu of input %.80s",
               (long long)expected, var_user_name(f->name), (long long)value, f->axis,
               p->ports.inputs[f->input].name);
  else
    add_misfit(m, port, axis, size, "not %lld, the value of %.80s by the other inputs",
               (long long)expected, s->text);
}

static tn_status check_inputs(tn_binding *b) {
  const tn_plan *p = b->plan;
  misfits m = {0};
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    for (size_t k = 0; k < p->ports.inputs[i].rank; k++)
      if (b->sizes[p->ports.inputs[i].first_size + k] != b->inputs[i].size[k])
        add_contradiction(&m, b, i, k);
  return refuse_misfits(b, &m);
}

tn_status binding_find_sizes(tn_binding *b) {
  tn_status s = find_facts(b);
  if (s == TN_OK) s = evaluate_sizes(b);
  return s == TN_OK ? check_inputs(b) : s;
}
