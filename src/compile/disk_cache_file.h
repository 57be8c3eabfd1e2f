/* Writes and reads the file format of the disk cache: keys, and the content kept for them. Nothing
   in a file is trusted before its hash, its lengths and the key asked for are checked. */
#ifndef TENON_COMPILE_DISK_CACHE_FILE_H
#define TENON_COMPILE_DISK_CACHE_FILE_H

#include "base/serialise.h"
#include "compile/cache_keys.h"

/** A file in memory that the caller owns. */
typedef struct disk_cache_file {
  const unsigned char *data;
  size_t bytes;
  deserialiser keys;
  size_t n_keys;
  const unsigned char *content;
  size_t content_bytes;
} disk_cache_file;

/** Appends a file of `n` keys to a string. */
void disk_cache_file_write(str *to, const cache_key *const keys[], size_t n, const void *content,
                           size_t bytes);

/** Reads a file; NULL, or the reason why it is refused. */
const char *disk_cache_file_read(disk_cache_file *f, const void *data, size_t bytes);

/** The position of a key among the file's; SIZE_MAX if it is not there, whatever the file's name
    says. */
size_t disk_cache_file_find(const disk_cache_file *f, const cache_key *key);

#endif
