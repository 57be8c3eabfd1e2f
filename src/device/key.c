#include "device/key.h"

#include "base/map.h"
#include "base/str.h"
#include "ir/topo.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void add_text(str *s, const char *text) { str_add_bytes(s, text, strlen(text) + 1); }

static void add_number(str *s, uint64_t n) { str_add_bytes(s, (const char *)&n, sizeof n); }

/* All fields, by position: one more in either struct is a warning (-Wmissing-field-initializers),
   and belongs in add_target's numbers too. */
_Static_assert(sizeof((target){0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0}, {{0, 0}, 0, 0}}) ==
                   sizeof(target),
               "");

static void add_target(str *s, const device_target *t) {
  add_text(s, build_id);
  add_text(s, t->device->backend->name);
  add_text(s, t->caps.target);
  add_text(s, t->renderer->name);
  add_text(s, t->compiler->name);
  const target *c = &t->target;
  const tn_hardware *h = &c->hardware;
  const uint64_t numbers[] = {c->vector_bytes,   c->registers,      c->threads,    c->index32,
                              c->arguments,      c->scratch,        c->rules.f16,  c->rules.bf16,
                              c->rules.lacks[0], c->rules.lacks[1], h->l1_bytes,   h->l2_bytes,
                              h->l3_bytes,       h->l3_cores,       h->line_bytes, h->page_bytes,
                              h->cores};
  str_add_bytes(s, (const char *)numbers, sizeof numbers);
}

/** A graph's nodes, numbered as they are written. */
typedef struct numbering {
  map nodes;  /* node → number + 1 */
  map places; /* id + 1 of a RANGE or ALLOC → number + 1 */
} numbering;

/** Ids count up from the first that is met: which they are says nothing. */
static uint64_t id_number(arena *a, numbering *v, const node *n) {
  const void *id = (const void *)(uintptr_t)(n->ints[0] + 1);
  if (!map_has(&v->places, id)) map_set(a, &v->places, id, (void *)(v->places.n + 1));
  return (uint64_t)(uintptr_t)map_get(&v->places, id) - 1;
}

static void add_node(str *s, numbering *v, const node *n) {
  bool has_id = n->op == OP_RANGE || n->op == OP_ALLOC;
  uint32_t n_text = n->op == OP_SINK ? 0 : n->n_text;
  const uint32_t head[] = {n->op, n->dtype, n->lanes, n->n_src, n->n_int, n_text};
  str_add_bytes(s, (const char *)head, sizeof head);
  for (uint32_t i = 0; i < n->n_src; i++)
    add_number(s, (uint64_t)(uintptr_t)map_get(&v->nodes, n->src[i]));
  for (uint32_t i = 0; i < n->n_int; i++)
    add_number(s, has_id && !i ? id_number(s->arena, v, n) : (uint64_t)n->ints[i]);
  if (n_text) str_add_bytes(s, n->text, n_text);
  map_set(s->arena, &v->nodes, n, (void *)(v->nodes.n + 1));
}

void key_hash(const void *data, size_t bytes, uint64_t hash[2]) {
  XXH128_hash_t h = XXH3_128bits(data, bytes);
  hash[0] = h.high64;
  hash[1] = h.low64;
}

static kernel_key key_of(const str *s) {
  kernel_key k = {.data = s->at, .bytes = s->n};
  key_hash(s->at, s->n, k.hash);
  return k;
}

bool key_is(const kernel_key *a, const kernel_key *b) {
  return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] && a->bytes == b->bytes &&
         !memcmp(a->data, b->data, a->bytes);
}

kernel_key key_make_identity(arena *a, const device_target *t, const char *stamp) {
  str s = str_new(a);
  add_text(&s, "compiler");
  add_target(&s, t);
  add_text(&s, stamp);
  return key_of(&s);
}

kernel_key key_make(arena *a, const device_target *t, const char *identity, int math,
                    const node *kernel) {
  bool is_program = kernel->op == OP_PROGRAM;
  const node *roots[] = {is_program ? kernel->src[0] : kernel, is_program ? kernel->src[2] : NULL};
  node_list order = topo_sort(a, roots, is_program ? 2 : 1, NULL, NULL);
  numbering v = {0};
  str s = str_new(a);
  add_text(&s, "kernel");
  add_target(&s, t);
  add_text(&s, identity);
  add_number(&s, is_program ? UINT64_MAX : (uint64_t)math);
  for (size_t i = 0; i < order.n; i++) add_node(&s, &v, order.at[i]);
  return key_of(&s);
}
