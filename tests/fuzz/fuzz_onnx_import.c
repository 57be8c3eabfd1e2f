/* Fuzzes the ONNX importer and the compilation of models for the NULL device, which computes
   nothing: arbitrary bytes are refused with a message, or loaded and bound. Allocations beyond a
   limit fail, and all memory must be given back. */
#include <stdlib.h>
#include <tenon/tenon.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const size_t memory_limit = (size_t)1 << 28;

typedef struct counter {
  size_t live;
  bool refused;
} counter;

static void *count_alloc(void *user, size_t bytes, size_t align) {
  counter *c = user;
  if (bytes > memory_limit - c->live) {
    c->refused = true;
    return NULL;
  }
  size_t least = align < sizeof(void *) ? sizeof(void *) : align;
  void *at = aligned_alloc(least, (bytes + least - 1) / least * least);
  if (at) c->live += bytes;
  return at;
}

static void count_release(void *user, void *at, size_t bytes) {
  ((counter *)user)->live -= bytes;
  free(at);
}

/** Checks that a failure has a message, is not TN_ERR_INTERNAL, and is TN_ERR_MEMORY only if memory
    ran out. */
static void check(tn_context *c, const counter *k, tn_status s, const void *made) {
  if ((s == TN_OK) != (made != NULL)) abort();
  if (s == TN_OK) return;
  if (!*tn_message(c) || s == TN_ERR_INTERNAL) abort();
  if (s == TN_ERR_MEMORY && !k->refused) abort();
}

static void see_ports(const tn_model *m, tn_port_kind kind) {
  tn_port p = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, kind, i, &p) == TN_OK; i++) {
    if (!*p.name || p.type.shape.rank < 0 || p.type.shape.rank > TN_MAX_RANK) abort();
    for (int32_t k = 0; k < p.type.shape.rank; k++)
      if (!*p.sizes[k]) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  counter k = {0, false};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  d.threads = 1;
  d.environment = false;
  d.cache_dir = "off";
  d.allocator = (tn_allocator){count_alloc, count_release, &k, NULL};
  tn_context *c = tn_open(&d);
  tn_model *m;
  tn_binding *b;
  tn_status s = tn_model_load_bytes(c, data, bytes, NULL, &m);
  check(c, &k, s, m);
  if (s == TN_ERR_ARGUMENT) abort(); /* the file is wrong, not the arguments */
  if (m) {
    see_ports(m, TN_PORT_INPUT);
    see_ports(m, TN_PORT_OUTPUT);
    s = tn_model_bind(m, &b);
    check(c, &k, s, b);
  }
  if (tn_close(c) != TN_OK || k.live) abort();
  return 0;
}
