#include "device/key.h"

#include "base/wire.h"
#include "ir/graph_key.h"
#include "ir/topo.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void add_text(str *s, const char *text) { str_add_bytes(s, text, strlen(text) + 1); }

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
  const uint64_t numbers[] = {c->vector_bytes,   c->registers,      c->threads,
                              c->index32,        c->arguments,      c->scratch,
                              c->rules.f16,      c->rules.bf16,     t->caps.scratch_buffer,
                              c->rules.lacks[0], c->rules.lacks[1], h->l1_bytes,
                              h->l2_bytes,       h->l3_bytes,       h->l3_cores,
                              h->line_bytes,     h->page_bytes,     h->cores};
  str_add_bytes(s, (const char *)numbers, sizeof numbers);
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

kernel_key key_make_identity(arena *a, const device_target *t, const char *stamp) {
  str s = str_new(a);
  add_text(&s, "compiler");
  add_target(&s, t);
  add_text(&s, stamp);
  return key_of(&s);
}

/* What is a kernel's own comes last, and after it its length. */

static kernel_key key_of_own(str *s, size_t from) {
  wire_add(s, s->n - from);
  return key_of(s);
}

static str begin_kernel(arena *a, const device_target *t, const char *identity) {
  str s = str_new(a);
  add_text(&s, "kernel");
  add_target(&s, t);
  add_text(&s, identity);
  return s;
}

kernel_key key_make(arena *a, const device_target *t, const char *identity, int math,
                    const node *kernel) {
  bool is_program = kernel->op == OP_PROGRAM;
  const node *roots[] = {is_program ? kernel->src[0] : kernel, is_program ? kernel->src[2] : NULL};
  node_list order = topo_sort(a, roots, is_program ? 2 : 1, NULL, NULL);
  str s = begin_kernel(a, t, identity);
  size_t from = s.n;
  graph_key graph = {.to = &s};
  wire_add(&s, is_program ? UINT64_MAX : (uint64_t)math);
  for (size_t i = 0; i < order.n; i++) graph_key_add(&graph, order.at[i], 0);
  return key_of_own(&s, from);
}

kernel_key key_make_again(arena *a, const device_target *t, const char *identity, const void *own,
                          size_t bytes) {
  str s = begin_kernel(a, t, identity);
  size_t from = s.n;
  str_add_bytes(&s, own, bytes);
  return key_of_own(&s, from);
}

const void *key_own(const void *data, size_t bytes, size_t *own) {
  uint64_t n;
  const unsigned char *end = (const unsigned char *)data + bytes - sizeof n;
  memcpy(&n, end, sizeof n);
  *own = (size_t)n;
  return end - n;
}

static const char plan[] = "plan";

str key_begin_plan(arena *a, const device_target *t) {
  str s = str_new(a);
  add_text(&s, plan);
  add_target(&s, t);
  return s;
}

kernel_key key_end_plan(const str *s) { return key_of(s); }

bool key_is_plan(const kernel_key *k) {
  return k->bytes >= sizeof plan && !memcmp(k->data, plan, sizeof plan);
}
