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

/** A size as blocks have it: sizes are rounded up, so that blocks fit again. */
typedef struct block_size {
  uint64_t bytes;
  size_t number;
} block_size;

static block_size size_for(uint64_t bytes) {
  uint64_t step = SMALLEST;
  size_t doubled = 0;
  for (; step << 4 <= bytes; step <<= 1) doubled++;
  uint64_t steps = bytes <= step ? 1 : (bytes + step - 1) / step;
  return (block_size){steps * step, 8 * doubled + (size_t)steps};
}

static void unlink_from(block_list *l, block *k, int in) {
  *(k->older[in] ? &k->older[in]->newer[in] : &l->oldest) = k->newer[in];
  *(k->newer[in] ? &k->newer[in]->older[in] : &l->newest) = k->older[in];
  k->newer[in] = k->older[in] = NULL;
}

static void link_newest(block_list *l, block *k, int in) {
  k->older[in] = l->newest;
  *(l->newest ? &l->newest->newer[in] : &l->oldest) = k;
  l->newest = k;
}

static void take_out(blocks *b, block *k) {
  unlink_from(&b->all, k, BLOCKS_ALL);
  unlink_from(&b->alike[k->size], k, BLOCKS_ALIKE);
  b->kept -= k->bytes;
}

static void put_in(blocks *b, block *k) {
  link_newest(&b->all, k, BLOCKS_ALL);
  link_newest(&b->alike[k->size], k, BLOCKS_ALIKE);
  b->kept += k->bytes;
}

static void destroy(blocks *b, block *k) {
  b->backend->free(b->device, k->memory, k->bytes);
  mem_free(b->mem, k, sizeof *k);
}

/** The block used last among those of a size, taken out; NULL if there is none. */
static block *reuse(blocks *b, size_t size) {
  mutex_lock(&b->lock);
  block *k = b->alike[size].newest;
  if (k) take_out(b, k);
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
  char none[MEM_TEXT];
  if (bytes > UINT64_MAX / 4) return diag_set(d, TN_ERR_MEMORY, "%s", mem_none(bytes, none));
  block_size size = size_for(bytes);
  if ((*out = reuse(b, size.number))) return TN_OK;
  block *k = mem_calloc(b->mem, 1, sizeof *k);
  if (!k) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  k->bytes = size.bytes;
  k->size = size.number;
  tn_status status = allocate(b, size.bytes, &k->memory, d);
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
    block *k = b->kept > bytes ? b->all.oldest : NULL;
    if (k) take_out(b, k);
    mutex_unlock(&b->lock);
    if (!k) return;
    destroy(b, k);
  }
}

void blocks_give(blocks *b, block *k) {
  if (!k) return;
  mutex_lock(&b->lock);
  put_in(b, k);
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
