/* Serialises graphs for cache keys: appends nodes in topological order, in which sources are
   indices of earlier nodes and ids are renumbered from 0 in order of appearance. */
#include "ir/text/graph_key.h"

#include "base/serialise.h"
#include "ir/text/sink_text.h"

#include <string.h>

/** Appends the integers of a node; an id as its number in the key. */
static void add_argument(graph_key *k, const node *n) {
  uint32_t i = 0;
  if (n->op == OP_RANGE || n->op == OP_ALLOC || n->op == OP_CUSTOM) {
    const void *id = (const void *)(uintptr_t)(n->ints[i++] + 1);
    if (!map_has(&k->ids, id)) map_set(k->to->arena, &k->ids, id, (void *)(k->ids.n + 1));
    serialise_number(k->to, (uint64_t)(uintptr_t)map_get(&k->ids, id) - 1);
  }
  if (n->n_int > i)
    str_add_bytes(k->to, (const char *)&n->ints[i], (n->n_int - i) * sizeof *n->ints);
}

static void add_head(graph_key *k, const node *n, uint32_t n_text) {
  const uint32_t head[] = {n->op, n->dtype, n->lanes, n->n_src, n->n_int, n_text};
  str_add_bytes(k->to, (const char *)head, sizeof head);
}

/* A lifted graph's key has constants where they are read, not as places of their own: which
   constants are equal, and so share a place, differs between graphs of one form. */

enum { NUMBER = 1, SCALAR = 2, TYPE = 4 }; /* places are even, so NUMBER marks a constant */

/** Appends a constant, or a few movements of one; `s` NULL: it is not liftable. */
static void add_number(graph_key *k, const node *n, const liftable_scalar *s) {
  for (; !node_is_const(n); n = n->src[0]) {
    add_head(k, n, 0);
    for (uint32_t i = 1; i < n->n_src; i++) graph_key_add_root(k, n->src[i]);
  }
  serialise_number(k->to, (uint64_t)n->dtype * TYPE | (s ? SCALAR : 0) | NUMBER);
  if (s)
    vec_push(k->to->arena, k->scalars, *s);
  else
    serialise_number(k->to, (uint64_t)node_int(n));
}

/** Appends a source or root: the place of its node, or a constant itself. */
static void add_reference(graph_key *k, const node *n, const liftable_scalar *s) {
  if (s || (k->scalars && node_is_const(n)))
    add_number(k, n, s);
  else
    serialise_number(k->to, (uint64_t)(uintptr_t)map_get(&k->places, n) << 1);
}

void graph_key_add_root(graph_key *k, const node *n) {
  liftable_scalar s;
  add_reference(k, n, k->scalars && liftable_scalar_of_root(n, &s) ? &s : NULL);
}

static int64_t known_number(void *user, int64_t id) {
  const graph_key *k = user;
  uintptr_t number = (uintptr_t)map_get(&k->ids, (const void *)(uintptr_t)(id + 1));
  return number ? (int64_t)number - 1 : -2 - id;
}

/** The schedule of a SINK, without the name, with the key's numbers of ranges. */
static const char *schedule_of_sink(graph_key *k, const node *sink, size_t *bytes) {
  const char *lines = sink_schedule(sink, bytes);
  *bytes = lines ? *bytes : 0;
  if (!lines) return "";
  lines = sink_schedule_rename_ranges(k->to->arena, lines, *bytes, known_number, k);
  *bytes = strlen(lines) + 1; /* an empty schedule differs from none */
  return lines;
}

void graph_key_add(graph_key *k, const node *n, uint64_t buffer) {
  const char *text = n->text;
  size_t n_text = n->n_text;
  if (k->scalars && (node_is_const(n) || liftable_fill_constant(n))) return;
  if (n->op == OP_SINK) text = schedule_of_sink(k, n, &n_text);
  add_head(k, n, (uint32_t)n_text);
  for (uint32_t i = 0; i < n->n_src; i++) {
    liftable_scalar s;
    add_reference(k, n->src[i], k->scalars && liftable_scalar_at(n, i, &s) ? &s : NULL);
  }
  if (n->op == OP_BUFFER) {
    serialise_number(k->to, buffer);
    if (n->n_int > 2) serialise_number(k->to, n->device);
  } else {
    add_argument(k, n);
  }
  if (n_text) str_add_bytes(k->to, text, n_text);
  map_set(k->to->arena, &k->places, n, (void *)(k->places.n + 1));
}
