#include "device/disk_file.h"

#include <string.h>

/* The magic number, the hash of all that follows, the number of keys, the keys, the content. */
static const char magic[8] = {'t', 'e', 'n', 'o', 'n', 'k', 'c', '1'};
enum { HASH_BYTES = 16, HEAD_BYTES = sizeof magic + HASH_BYTES };

void disk_file_write(str *to, const kernel_key *const keys[], size_t n, const void *content,
                     size_t bytes) {
  str s = str_new(to->arena);
  wire_add(&s, n);
  for (size_t i = 0; i < n; i++) wire_add_block(&s, keys[i]->data, keys[i]->bytes);
  wire_add_block(&s, content, bytes);
  uint64_t hash[2];
  key_hash(s.at, s.n, hash);
  str_add_bytes(to, magic, sizeof magic);
  str_add_bytes(to, (const char *)hash, sizeof hash);
  str_add_bytes(to, s.at, s.n);
}

const char *disk_file_read(disk_file *f, const void *data, size_t bytes) {
  uint64_t hash[2];
  *f = (disk_file){.data = data, .bytes = bytes};
  if (bytes < HEAD_BYTES || memcmp(f->data, magic, sizeof magic))
    return "it is no file of this cache";
  key_hash(f->data + HEAD_BYTES, bytes - HEAD_BYTES, hash);
  if (memcmp(f->data + sizeof magic, hash, HASH_BYTES)) return "it was changed or cut short";
  wire_reader r = {.at = f->data + HEAD_BYTES, .end = f->data + bytes};
  size_t n;
  f->n_keys = wire_count(&r, sizeof(uint64_t));
  f->keys = r;
  for (size_t i = 0; i < f->n_keys; i++) wire_block(&r, &n);
  f->content = wire_block(&r, &f->content_bytes);
  return r.failed || r.at != r.end ? "its lengths are wrong" : NULL;
}

size_t disk_file_find(const disk_file *f, const kernel_key *key) {
  wire_reader r = f->keys;
  for (size_t i = 0, n; i < f->n_keys; i++) {
    const void *data = wire_block(&r, &n);
    if (n == key->bytes && !memcmp(data, key->data, n)) return i;
  }
  return SIZE_MAX;
}
