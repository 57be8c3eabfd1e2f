#include "device/blocks.h"

#include "device/failure.h"

enum { SMALLEST = 64 };
#define DEFAULT_BUDGET (UINT64_C(1) << 30)

void blocks_init(blocks *b, const mem *m, const tn_backend *backend, void *device) {
  *b = (blocks){.mem = m, .backend = backend, .device = device, .budget = DEFAULT_BUDGET};
  mutex_init(&b->lock);
}

void blocks_free(blocks *b) {
  blocks_trim(b, 0);
  mutex_free(&b->lock);
}

/** Sizes are rounded up to eighths of a power of two, so that blocks fit again. */
static uint64_t size_class(uint64_t bytes) {
  uint64_t step = SMALLEST;
  while (step << 4 <= bytes && step << 4) step <<= 1;
  return bytes <= SMALLEST ? SMALLEST : (bytes + step - 1) / step * step;
}

static void unlink_block(blocks *b, block *k) {
  *(k->older ? &k->older->newer : &b->oldest) = k->newer;
  *(k->newer ? &k->newer->older : &b->newest) = k->older;
  k->newer = k->older = NULL;
  b->kept -= k->bytes;
}

static void link_newest(blocks *b, block *k) {
  k->older = b->newest;
  *(b->newest ? &b->newest->newer : &b->oldest) = k;
  b->newest = k;
  b->kept += k->bytes;
}

static void destroy(blocks *b, block *k) {
  b->backend->free(b->device, k->memory, k->bytes);
  mem_free(b->mem, k, sizeof *k);
}

/** The block used last among those of a size, taken out; NULL if there is none. */
static block *reuse(blocks *b, uint64_t bytes) {
  mutex_lock(&b->lock);
  block *k = b->newest;
  while (k && k->bytes != bytes) k = k->older;
  if (k) unlink_block(b, k);
  mutex_unlock(&b->lock);
  return k;
}

static tn_status allocate(blocks *b, uint64_t bytes, void **memory, diag *d) {
  tn_failure f;
  failure_clear(&f);
  tn_status status = b->backend->alloc(b->device, bytes, memory, &f);
  if (status == TN_ERR_MEMORY && blocks_kept(b)) {
    blocks_trim(b, 0);
    failure_clear(&f);
    status = b->backend->alloc(b->device, bytes, memory, &f);
  }
  return failure_tell(d, status, &f);
}

tn_status blocks_take(blocks *b, uint64_t bytes, block **out, diag *d) {
  *out = NULL;
  if (bytes > UINT64_MAX / 4)
    return diag_set(d, TN_ERR_MEMORY, "out of memory (%llu bytes)", (unsigned long long)bytes);
  uint64_t size = size_class(bytes);
  if ((*out = reuse(b, size))) return TN_OK;
  block *k = mem_calloc(b->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->bytes = size;
  tn_status status = allocate(b, size, &k->memory, d);
  if (status) {
    mem_free(b->mem, k, sizeof *k);
    return status;
  }
  *out = k;
  return TN_OK;
}

void blocks_trim(blocks *b, uint64_t bytes) {
  for (;;) {
    mutex_lock(&b->lock);
    block *k = b->kept > bytes ? b->oldest : NULL;
    if (k) unlink_block(b, k);
    mutex_unlock(&b->lock);
    if (!k) return;
    destroy(b, k);
  }
}

void blocks_give(blocks *b, block *k) {
  if (!k) return;
  mutex_lock(&b->lock);
  link_newest(b, k);
  uint64_t budget = b->budget;
  mutex_unlock(&b->lock);
  blocks_trim(b, budget);
}

void blocks_set_budget(blocks *b, uint64_t bytes) {
  mutex_lock(&b->lock);
  b->budget = bytes;
  mutex_unlock(&b->lock);
  blocks_trim(b, bytes);
}

uint64_t blocks_kept(blocks *b) {
  mutex_lock(&b->lock);
  uint64_t bytes = b->kept;
  mutex_unlock(&b->lock);
  return bytes;
}
