/* Builds cache keys, as byte strings: a prefix by kind, the build, the backend, the target's name
   and features, and then the parts of that kind. */
#include "compile/cache_keys.h"

#include "base/serialise.h"
#include "ir/core/topo_sort.h"
#include "ir/text/graph_key.h"

#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char compiler_prefix[] = "compiler", kernel_prefix[] = "kernel",
                  plan_prefix[] = "plan";

static void add_text(str *s, const char *text) { str_add_bytes(s, text, strlen(text) + 1); }

/* All fields, by position: a new field in either struct is a warning here
   (-Wmissing-field-initializers), and belongs in add_machine's numbers too. */
_Static_assert(sizeof((target){
                   0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0}, {{0, 0}, 0, 0, 0}, 0, 0}) ==
                   sizeof(target),
               "");

enum { NUMBERS = 24, FIRST_OF_HARDWARE = 17 };

static void add_machine(str *s, const device_target *t) {
  add_text(s, t->device->backend->name);
  add_text(s, t->caps.target);
  add_text(s, t->renderer->name);
  add_text(s, t->compiler->name);
  const target *c = &t->target;
  const tn_hardware *h = &c->hardware;
  const uint64_t numbers[NUMBERS] = {c->vector_bytes,   c->registers,       c->threads,
                                     c->index32,        c->arguments,       c->scratch,
                                     c->rules.f16,      c->rules.bf16,      t->caps.scratch_buffer,
                                     c->rules.lacks[0], c->rules.lacks[1],  c->team_workers,
                                     c->warp,           c->group_bytes,     c->lanes,
                                     c->copy_bytes,     c->rules.f16_casts, h->l1_bytes,
                                     h->l2_bytes,       h->l3_bytes,        h->l3_cores,
                                     h->line_bytes,     h->page_bytes,      h->cores};
  str_add_bytes(s, (const char *)numbers, sizeof numbers);
}

static void add_target(str *s, const device_target *t) {
  add_text(s, build_id);
  add_machine(s, t);
}

str target_key_make(arena *a, const device_target *t) {
  str s = str_new(a);
  add_target(&s, t);
  return s;
}

void cache_keys_hash(const void *data, size_t bytes, uint64_t hash[2]) {
  XXH128_hash_t h = XXH3_128bits(data, bytes);
  hash[0] = h.high64;
  hash[1] = h.low64;
}

static cache_key make_key(const str *s) {
  cache_key k = {.data = s->at, .bytes = s->n};
  cache_keys_hash(s->at, s->n, k.hash);
  return k;
}

cache_key compiler_identity_key_make(arena *a, const device_target *t, const char *stamp) {
  str s = str_new(a);
  add_text(&s, compiler_prefix);
  add_target(&s, t);
  add_text(&s, stamp);
  return make_key(&s);
}

/* The graph part of a kernel's key comes last, followed by its length. */

kernel_graph_key kernel_graph_key_make(arena *a, int math, const node *kernel) {
  bool is_program = kernel->op == OP_PROGRAM;
  const node *roots[] = {is_program ? kernel->src[0] : kernel, is_program ? kernel->src[2] : NULL};
  node_list order = topo_sort(a, roots, is_program ? 2 : 1, NULL, NULL);
  str s = str_new(a);
  graph_key graph = {.to = &s};
  serialise_number(&s, is_program ? UINT64_MAX : (uint64_t)math);
  for (size_t i = 0; i < order.n; i++) graph_key_add(&graph, order.at[i], 0);
  return (kernel_graph_key){s.at, s.n};
}

cache_key kernel_key_make(arena *a, const device_target *t, const char *identity, const char *tuned,
                          kernel_graph_key graph) {
  str s = str_new(a);
  add_text(&s, kernel_prefix);
  add_target(&s, t);
  add_text(&s, identity);
  add_text(&s, tuned);
  str_add_bytes(&s, graph.data, graph.bytes);
  serialise_number(&s, graph.bytes);
  return make_key(&s);
}

kernel_graph_key kernel_key_graph(const void *data, size_t bytes) {
  uint64_t n;
  const unsigned char *end = (const unsigned char *)data + bytes - sizeof n;
  memcpy(&n, end, sizeof n);
  return (kernel_graph_key){end - n, (size_t)n};
}

const char *tuned_key_make(arena *a, const device_target *t, const char *identity,
                           kernel_graph_key graph) {
  str machine = str_new(a);
  uint64_t kernel[2], on[2], by[2];
  add_machine(&machine, t);
  cache_keys_hash(graph.data, graph.bytes, kernel);
  cache_keys_hash(machine.at, machine.n, on);
  cache_keys_hash(identity, strlen(identity), by);
  return arena_printf(a, "%016" PRIx64 "%016" PRIx64 " %016" PRIx64 " %016" PRIx64, kernel[0],
                      kernel[1], on[0], by[0]);
}

str plan_key_begin(arena *a, const device_target *t) {
  str s = str_new(a);
  add_text(&s, plan_prefix);
  add_target(&s, t);
  return s;
}

cache_key plan_key_end(const str *s) { return make_key(s); }

static bool has_prefix(const cache_key *k, const char *prefix) {
  size_t n = strlen(prefix) + 1;
  return k->bytes >= n && !memcmp(k->data, prefix, n);
}

bool plan_key_is(const cache_key *k) { return has_prefix(k, plan_prefix); }
bool compiler_identity_key_is(const cache_key *k) { return has_prefix(k, compiler_prefix); }

/* Reading. */

/** The next text of a key, whose NUL is within it; NULL: there is none. */
static const char *next_text(deserialiser *r) {
  const char *text = (const char *)r->at;
  const void *end = r->failed ? NULL : memchr(r->at, 0, (size_t)(r->end - r->at));
  r->failed |= !end;
  if (end) r->at = (const unsigned char *)end + 1;
  return end ? text : NULL;
}

static void read_hardware(deserialiser *r, tn_hardware *h) {
  uint64_t n[NUMBERS];
  for (size_t i = 0; i < NUMBERS; i++) n[i] = deserialise_number(r);
  const uint64_t *at = n + FIRST_OF_HARDWARE;
  *h = (tn_hardware){.l1_bytes = at[0],
                     .l2_bytes = at[1],
                     .l3_bytes = at[2],
                     .l3_cores = (uint32_t)at[3],
                     .line_bytes = (uint32_t)at[4],
                     .page_bytes = (uint32_t)at[5],
                     .cores = (uint32_t)at[6]};
}

bool cache_key_read(const void *data, size_t bytes, cache_key_parts *p) {
  const cache_key key = {.data = data, .bytes = bytes};
  deserialiser r = {.at = data, .end = (const unsigned char *)data + bytes};
  *p = (cache_key_parts){.is_plan = plan_key_is(&key),
                         .is_compiler = compiler_identity_key_is(&key)};
  if (!p->is_plan && !p->is_compiler && !has_prefix(&key, kernel_prefix)) return false;
  next_text(&r);
  p->target_key = (const char *)r.at;
  p->build = next_text(&r);
  p->backend = next_text(&r);
  p->target = next_text(&r);
  p->renderer = next_text(&r);
  p->compiler = next_text(&r);
  read_hardware(&r, &p->hardware);
  p->target_key_bytes = (size_t)((const char *)r.at - p->target_key);
  if (!p->is_plan) p->rest = next_text(&r);
  return !r.failed;
}

const char imported_stamp[] = "imported";

cache_key imported_identity_key_make(arena *a, const void *target_key, size_t bytes) {
  str s = str_new(a);
  add_text(&s, compiler_prefix);
  str_add_bytes(&s, target_key, bytes);
  add_text(&s, imported_stamp);
  return make_key(&s);
}

cache_key cache_key_of(const void *data, size_t bytes) {
  cache_key k = {.data = data, .bytes = bytes};
  cache_keys_hash(data, bytes, k.hash);
  return k;
}
