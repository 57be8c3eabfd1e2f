/* What a file of the kernel cache on disk holds: the keys it is found by, and what is kept for
   them. Nothing in a file is trusted before its hash, its lengths and the key asked for are right.
 */
#ifndef TENON_DEVICE_DISK_FILE_H
#define TENON_DEVICE_DISK_FILE_H

#include "base/wire.h"
#include "device/key.h"

/** A file in memory, which is not its own. */
typedef struct disk_file {
  const unsigned char *data;
  size_t bytes;
  wire_reader keys;
  size_t n_keys;
  const unsigned char *content;
  size_t content_bytes;
} disk_file;

/** Appends a file to a string. */
void disk_file_write(str *to, const kernel_key *const keys[], size_t n, const void *content,
                     size_t bytes);

/** Reads a file; NULL, or what is wrong with it. */
const char *disk_file_read(disk_file *f, const void *data, size_t bytes);

/** Which of the file's keys one is; SIZE_MAX if it is none, whatever the file's name says. */
size_t disk_file_find(const disk_file *f, const kernel_key *key);

#endif
