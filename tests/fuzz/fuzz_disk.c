/* Fuzzes the reader of kernel cache files: sets the right hash on arbitrary bytes and reads them as
   a file. Either they are refused, or all keys, code and launch facts of kernels can be read. */
#include "compile/code_record.h"
#include "compile/disk_cache_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { HASH_AT = 8, HASHED = 24 };

typedef struct job {
  diag d;
  arena a;
  disk_cache_file file;
} job;

static volatile unsigned seen;

static void see(const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) seen += ((const unsigned char *)data)[i];
}

static void see_kernel(const code_record_kernel *k, arena *a) {
  const tn_program_spec *s = &k->spec;
  int64_t *values = arena_calloc(a, s->n_values, sizeof *values), global[3], local[3];
  diag d = {0};
  if (s->core_id < -1 || s->core_id >= (int64_t)s->n_values) abort();
  see(s->entry, strlen(s->entry));
  see(s->globals, s->n_globals * sizeof *s->globals);
  for (size_t i = 0; i < s->n_values; i++) see(s->value_names[i], strlen(s->value_names[i]));
  if (!launch_grid_eval(&k->sizes, values, global, local, &d) && global[0] <= 0) abort();
}

static void read_piece(void *arg) {
  job *j = arg;
  code_record p;
  size_t n = j->file.n_keys;
  if (!code_record_read(&p, j->file.content, j->file.content_bytes, n, &j->a)) return;
  if (!p.code.bytes) abort();
  see(p.code.data, p.code.bytes);
  for (size_t i = 0; i < n; i++) see_kernel(&p.kernels[i], &j->a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  job j = {.d = {0}};
  if (bytes < HASHED) return disk_cache_file_read(&j.file, data, bytes) ? 0 : -1;
  uint8_t *copy = memcpy(malloc(bytes), data, bytes);
  uint64_t hash[2];
  cache_keys_hash(copy + HASHED, bytes - HASHED, hash);
  memcpy(copy + HASH_AT, hash, sizeof hash);
  arena_init(&j.a, &mem_system, &j.d);
  const cache_key key = {.data = "key", .bytes = 3};
  if (!disk_cache_file_read(&j.file, copy, bytes)) {
    size_t at = disk_cache_file_find(&j.file, &key);
    if (at != SIZE_MAX && at >= j.file.n_keys) abort();
    if (j.file.n_keys && diag_catch(&j.d, read_piece, &j)) abort();
  }
  arena_free(&j.a);
  free(copy);
  return 0;
}
