/* Implements the caching allocator of device memory: size classes in eighths of a power of two, and
   doubly linked lists of cached blocks, all together and by class. The backend is called outside of
   the lock. */
#include "device/memory/caching_allocator.h"

#include "base/memory_limit.h"

enum { SMALLEST = 64 };

/* How long a caller without memory waits for blocks that queues still use. */
#define EXHAUSTED_WAIT_NS INT64_C(10000000000)

#define DEFAULT_BUDGET (UINT64_C(1) << 30)

void caching_allocator_init(caching_allocator *b, const mem *m, const tn_backend *backend,
                            void *device) {
  *b =
      (caching_allocator){.mem = m, .backend = backend, .device = device, .budget = DEFAULT_BUDGET};
  mutex_init(&b->lock);
}

void caching_allocator_free(caching_allocator *b) {
  caching_allocator_trim(b, 0);
  mutex_free(&b->lock);
}

/** A size that is rounded up to its class. */
typedef struct block_size {
  uint64_t bytes;
  size_t size_class;
} block_size;

static block_size round_up(uint64_t bytes) {
  uint64_t step = SMALLEST;
  size_t doubled = 0;
  for (; step << 4 <= bytes; step <<= 1) doubled++;
  uint64_t steps = bytes <= step ? 1 : (bytes + step - 1) / step;
  return (block_size){steps * step, 8 * doubled + (size_t)steps};
}

static void unlink_block(block_list *l, block *k, int in) {
  *(k->older[in] ? &k->older[in]->newer[in] : &l->oldest) = k->newer[in];
  *(k->newer[in] ? &k->newer[in]->older[in] : &l->newest) = k->older[in];
  k->newer[in] = k->older[in] = NULL;
}

static void link_newest(block_list *l, block *k, int in) {
  k->older[in] = l->newest;
  *(l->newest ? &l->newest->newer[in] : &l->oldest) = k;
  l->newest = k;
}

static void remove_cached(caching_allocator *b, block *k) {
  unlink_block(&b->all, k, ALLOCATOR_LIST_ALL);
  unlink_block(&b->of_size[k->size_class], k, ALLOCATOR_LIST_SIZE_CLASS);
  b->cached -= k->bytes;
}

static void add_cached(caching_allocator *b, block *k) {
  link_newest(&b->all, k, ALLOCATOR_LIST_ALL);
  link_newest(&b->of_size[k->size_class], k, ALLOCATOR_LIST_SIZE_CLASS);
  b->cached += k->bytes;
}

static void free_block(caching_allocator *b, block *k) {
  timeline_points_clear(&k->uses, b->mem);
  b->freed++;
  b->backend->free(b->device, k->memory, k->bytes);
  memory_limit_uncount(b->mem, k->counted);
  mem_free(b->mem, k, sizeof *k);
}

uint64_t caching_allocator_freed(const caching_allocator *b) { return b->freed; }

/** The block of a size class to reuse, the most recently used one of the best kind; NULL if there
    is none. Under the lock. */
static block *find_block(const caching_allocator *b, size_t size_class, const tn_signal *timeline) {
  block *own = NULL, *others = NULL;
  const int in = ALLOCATOR_LIST_SIZE_CLASS;
  for (block *k = b->of_size[size_class].newest; k; k = k->older[in]) {
    if (timeline_points_are_reached(&k->uses, NULL)) return k;
    if (timeline && !own && timeline_points_are_reached(&k->uses, timeline)) own = k;
    if (timeline && !others) others = k;
  }
  return own ? own : others;
}

static block *reuse_block(caching_allocator *b, size_t size_class, const tn_signal *timeline) {
  mutex_lock(&b->lock);
  block *k = find_block(b, size_class, timeline);
  if (k) remove_cached(b, k);
  mutex_unlock(&b->lock);
  return k;
}

/** The oldest cached block that is done, or that is not. Under the lock. */
static block *oldest_block(const caching_allocator *b, bool is_done) {
  block *k = b->all.oldest;
  while (k && timeline_points_are_reached(&k->uses, NULL) != is_done)
    k = k->newer[ALLOCATOR_LIST_ALL];
  return k;
}

/** Waits for cached blocks that queues still use. */
static void await_cached(caching_allocator *b) {
  int64_t deadline = clock_now_ns() + EXHAUSTED_WAIT_NS;
  for (bool in_time = true; in_time;) {
    diag unread;
    diag_clear(&unread);
    mutex_lock(&b->lock);
    block *k = oldest_block(b, false);
    if (k) remove_cached(b, k);
    mutex_unlock(&b->lock);
    if (!k) return;
    in_time = timeline_points_wait(&k->uses, deadline, &unread) != TN_ERR_TIMEOUT;
    mutex_lock(&b->lock);
    add_cached(b, k);
    mutex_unlock(&b->lock);
  }
}

enum { ADDRESSED = 1, NOT_ADDRESSED = 2 };

bool caching_allocator_is_addressed(caching_allocator *b) {
  tn_failure unread;
  void *memory;
  int known = atomic_load(&b->addressed);
  if (known) return known == ADDRESSED;
  if (b->backend->alloc(b->device, SMALLEST, TN_MEMORY_DEVICE, &memory, &unread)) return false;
  bool is_addressed = b->backend->host(b->device, memory) != NULL;
  b->backend->free(b->device, memory, SMALLEST);
  atomic_store(&b->addressed, is_addressed ? ADDRESSED : NOT_ADDRESSED);
  return is_addressed;
}

/** Bytes of a block that no allocator of the host's counts. */
static uint64_t uncounted_bytes(caching_allocator *b, uint64_t bytes) {
  return memory_limit_is_set(b->mem) && !caching_allocator_is_addressed(b) ? bytes : 0;
}

static tn_status alloc_once(caching_allocator *b, block *k, diag *d) {
  char text[MEMORY_LIMIT_TEXT_BYTES];
  k->counted = uncounted_bytes(b, k->bytes);
  if (!memory_limit_count(b->mem, k->counted))
    return diag_set(d, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(b->mem, k->bytes, text));
  diag_clear(d);
  tn_status status =
      b->backend->alloc(b->device, k->bytes, TN_MEMORY_DEVICE, &k->memory, &d->failure);
  if (status) memory_limit_uncount(b->mem, k->counted);
  return diag_complete(d, status);
}

static tn_status alloc_memory(caching_allocator *b, block *k, diag *d) {
  tn_status status = alloc_once(b, k, d);
  if (status != TN_ERR_MEMORY || !caching_allocator_cached_bytes(b)) return status;
  await_cached(b);
  caching_allocator_trim(b, 0);
  return alloc_once(b, k, d);
}

tn_status caching_allocator_alloc(caching_allocator *b, uint64_t bytes, const tn_signal *timeline,
                                  block **out, diag *d) {
  *out = NULL;
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (bytes > UINT64_MAX / 4)
    return diag_set(d, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(b->mem, bytes, none));
  block_size size = round_up(bytes);
  if ((*out = reuse_block(b, size.size_class, timeline))) return TN_OK;
  block *k = mem_calloc(b->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->bytes = size.bytes;
  k->size_class = size.size_class;
  tn_status status = alloc_memory(b, k, d);
  if (status) {
    mem_free(b->mem, k, sizeof *k);
    return status;
  }
  *out = k;
  return TN_OK;
}

void caching_allocator_trim(caching_allocator *b, uint64_t bytes) {
  for (;;) {
    mutex_lock(&b->lock);
    block *k = b->cached > bytes ? oldest_block(b, true) : NULL;
    if (k) remove_cached(b, k);
    mutex_unlock(&b->lock);
    if (!k) return;
    free_block(b, k);
  }
}

void caching_allocator_release(caching_allocator *b, block *k) {
  if (!k) return;
  mutex_lock(&b->lock);
  add_cached(b, k);
  uint64_t budget = b->budget;
  mutex_unlock(&b->lock);
  caching_allocator_trim(b, budget);
}

void caching_allocator_set_budget(caching_allocator *b, uint64_t bytes) {
  mutex_lock(&b->lock);
  b->budget = bytes;
  mutex_unlock(&b->lock);
  caching_allocator_trim(b, bytes);
}

uint64_t caching_allocator_cached_bytes(caching_allocator *b) {
  mutex_lock(&b->lock);
  uint64_t bytes = b->cached;
  mutex_unlock(&b->lock);
  return bytes;
}
