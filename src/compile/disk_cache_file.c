/* Implements the file format of the disk cache, in the serialisation of base/serialise.h. */
#include "compile/disk_cache_file.h"

#include <string.h>

/* The magic number, the hash of everything after it, the number of keys, the keys, the content. */
static const char magic[8] = {'t', 'e', 'n', 'o', 'n', 'k', 'c', '1'};
enum { HASH_BYTES = 16, HEAD_BYTES = sizeof magic + HASH_BYTES };

void disk_cache_file_write(str *to, const cache_key *const keys[], size_t n, const void *content,
                           size_t bytes) {
  str s = str_new(to->arena);
  serialise_number(&s, n);
  for (size_t i = 0; i < n; i++) serialise_block(&s, keys[i]->data, keys[i]->bytes);
  serialise_block(&s, content, bytes);
  uint64_t hash[2];
  cache_keys_hash(s.at, s.n, hash);
  str_add_bytes(to, magic, sizeof magic);
  str_add_bytes(to, (const char *)hash, sizeof hash);
  str_add_bytes(to, s.at, s.n);
}

const char *disk_cache_file_read(disk_cache_file *f, const void *data, size_t bytes) {
  uint64_t hash[2];
  *f = (disk_cache_file){.data = data, .bytes = bytes};
  if (bytes < HEAD_BYTES || memcmp(f->data, magic, sizeof magic)) return "not a file of this cache";
  cache_keys_hash(f->data + HEAD_BYTES, bytes - HEAD_BYTES, hash);
  if (memcmp(f->data + sizeof magic, hash, HASH_BYTES)) return "corrupt or truncated";
  deserialiser r = {.at = f->data + HEAD_BYTES, .end = f->data + bytes};
  size_t n;
  f->n_keys = deserialise_count(&r, sizeof(uint64_t));
  f->keys = r;
  for (size_t i = 0; i < f->n_keys; i++) deserialise_block(&r, &n);
  f->content = deserialise_block(&r, &f->content_bytes);
  return r.failed || r.at != r.end ? "wrong lengths" : NULL;
}

size_t disk_cache_file_find(const disk_cache_file *f, const cache_key *key) {
  deserialiser r = f->keys;
  for (size_t i = 0, n; i < f->n_keys; i++) {
    const void *data = deserialise_block(&r, &n);
    if (n == key->bytes && !memcmp(data, key->data, n)) return i;
  }
  return SIZE_MAX;
}
