#include "ir/graph_key.h"

#include "base/wire.h"

static bool has_id(const node *n) {
  return n->op == OP_RANGE || n->op == OP_ALLOC || n->op == OP_CUSTOM;
}

static uint64_t id_number(graph_key *k, const node *n) {
  const void *id = (const void *)(uintptr_t)(n->ints[0] + 1);
  if (!map_has(&k->ids, id)) map_set(k->to->arena, &k->ids, id, (void *)(k->ids.n + 1));
  return (uint64_t)(uintptr_t)map_get(&k->ids, id) - 1;
}

static void add_argument(graph_key *k, const node *n) {
  uint32_t i = 0;
  if (has_id(n)) wire_add(k->to, id_number(k, n)), i = 1;
  if (n->n_int > i)
    str_add_bytes(k->to, (const char *)&n->ints[i], (n->n_int - i) * sizeof *n->ints);
}

void graph_key_refer(graph_key *k, const node *n) {
  wire_add(k->to, (uint64_t)(uintptr_t)map_get(&k->places, n));
}

void graph_key_add(graph_key *k, const node *n, uint64_t buffer) {
  uint32_t n_text = n->op == OP_SINK ? 0 : n->n_text;
  const uint32_t head[] = {n->op, n->dtype, n->lanes, n->n_src, n->n_int, n_text};
  str_add_bytes(k->to, (const char *)head, sizeof head);
  for (uint32_t i = 0; i < n->n_src; i++) graph_key_refer(k, n->src[i]);
  if (n->op == OP_BUFFER)
    wire_add(k->to, buffer);
  else
    add_argument(k, n);
  if (n_text) str_add_bytes(k->to, n->text, n_text);
  map_set(k->to->arena, &k->places, n, (void *)(k->places.n + 1));
}
