/* Lists the declared inputs of a model's file as ports: the numbers of variables are given in the
   order of inputs and axes. */
#include "cli/data/declared_ports.h"

#include "base/file.h"
#include "base/map.h"
#include "cli/data/load_model.h"

#include <stdint.h>
#include <string.h>
#include <tenon/unstable/model_file.h>

typedef struct listing {
  command *c;
  const tn_model_desc *desc;
  bool shares_names;
  string_map numbers; /* of variables + 1, by name */
  int32_t n_variables;
  file_map bytes;
  tn_model_file *file;
  port_list ports;
} listing;

/** The number of a size's variable. */
static int32_t variable_of(listing *l, const char *name) {
  intptr_t number = l->shares_names ? (intptr_t)string_map_get(&l->numbers, name) : 0;
  if (number) return (int32_t)number - 1;
  string_map_set(&l->c->arena, &l->numbers, name, (void *)(intptr_t)++l->n_variables);
  return l->n_variables - 1;
}

/** Narrows the bounds of a size, named as in the file and by its axis, to those of the caller. */
static void bound_size(const listing *l, const char *name, const char *by_axis, tn_port *p,
                       size_t axis) {
  for (size_t i = 0; i < l->desc->n_sizes; i++) {
    const tn_model_size *s = &l->desc->sizes[i];
    if (s->same || (strcmp(s->name, name) && strcmp(s->name, by_axis))) continue;
    if (s->min > p->min[axis]) p->min[axis] = s->min;
    if (s->max < p->max[axis]) p->max[axis] = s->max;
  }
}

static void add_size(listing *l, const tn_declared_port *d, size_t axis, tn_port *p) {
  arena *a = &l->c->arena;
  const char *by_axis = arena_printf(a, "%s:%zu", p->name, axis);
  p->min[axis] = p->max[axis] = d->sizes[axis];
  p->sizes[axis] = by_axis;
  if (d->sizes[axis] < 0) {
    if (*d->names[axis]) p->sizes[axis] = arena_printf(a, "%s", d->names[axis]);
    p->min[axis] = 0;
    p->max[axis] = TN_MODEL_SIZE_MAX;
    bound_size(l, p->sizes[axis], by_axis, p, axis);
  }
  bool is_fixed = p->min[axis] == p->max[axis];
  p->type.shape.size[axis] = is_fixed ? p->min[axis] : -1;
  p->variable[axis] = is_fixed ? -1 : variable_of(l, p->sizes[axis]);
}

static void list_inputs(void *arg) {
  listing *l = arg;
  tn_declared_port d = TN_DECLARED_PORT_INIT;
  for (size_t i = 0; tn_model_file_port(l->file, TN_PORT_INPUT, i, &d) == TN_OK; i++) {
    if (d.is_weight) continue;
    tn_port p = TN_PORT_INIT;
    bool has_rank = d.is_tensor && d.rank >= 0 && d.rank <= TN_MAX_RANK;
    p.name = arena_printf(&l->c->arena, "%s", d.name);
    p.type.shape.rank = has_rank ? (int32_t)d.rank : -1;
    for (int32_t k = 0; k < p.type.shape.rank; k++) add_size(l, &d, (size_t)k, &p);
    vec_push(&l->c->arena, &l->ports, p);
  }
}

port_list declared_ports_list(command *c, const tn_model_desc *desc, bool shares_names) {
  listing l = {.c = c, .desc = desc, .shares_names = shares_names};
  diag unread = {0};
  if (file_map_open(&l.bytes, load_model_path(c->operand), &unread) != TN_OK) return l.ports;
  bool is_parsed = tn_model_file_parse(l.bytes.data, l.bytes.bytes, &l.file, NULL) == TN_OK;
  tn_status s = is_parsed ? diag_catch(&c->diag, list_inputs, &l) : TN_OK;
  tn_model_file_free(l.file);
  file_map_close(&l.bytes);
  diag_require(&c->diag, s);
  return l.ports;
}
