#ifndef FILETYPE_FEATURES_H
#define FILETYPE_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a file becomes the model's input: Magika's feature extraction, version 2, as its
   config.min.json parametrises it. The whitespace at the file's two ends is left out. */
typedef struct feature_format {
  size_t begin;    /* integers from the start, padded after */
  size_t end;      /* integers from the end, padded before */
  size_t block;    /* bytes read at each end; more than `begin` and `end` */
  size_t least;    /* a file with fewer bytes is judged without the model */
  int32_t padding; /* stands where there is no byte */
} feature_format;

typedef enum finding {
  NEEDS_MODEL,
  IS_EMPTY,
  IS_TEXT,
  IS_BINARY,
  IS_DIRECTORY,
  IS_SYMLINK,
  UNREADABLE, /* errno says why */
} finding;

/* Looks at what `path` names, and fills `features` (begin + end integers) if the model is needed.
   A symbolic link stands for its target unless `dereference` is false. */
finding features_read(const feature_format *format, const char *path, bool dereference,
                      int32_t *features);

#endif
