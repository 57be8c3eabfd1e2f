/* Decoders of pictures. */
#ifndef TENON_FORMATS_HOST_PICTURE_H
#define TENON_FORMATS_HOST_PICTURE_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdbool.h>

/** The most pixels that are decoded. */
enum { PICTURE_PIXELS_MAX = 1 << 28 };

/** A picture of rows of red, green and blue, a byte each. */
typedef struct picture {
  const mem *mem;
  size_t width, height;
  uint8_t *rgb;       /* NULL: none */
  bool lacked_memory; /* there is none because memory was exhausted */
} picture;

/** Allocates the pixels; false without memory, which `lacked_memory` tells, or for no pixels or too
    many. */
bool picture_reserve(picture *p, size_t width, size_t height);
void picture_free(picture *p);

/** Decoders set `p`, which is empty, or leave it so where the bytes are damaged. TN_ERR_UNSUPPORTED
    where a library is missing, TN_ERR_MEMORY. */
tn_status picture_decode_bmp(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_pnm(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_png(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_webp(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_tiff(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_jpeg(const uint8_t *at, size_t n, picture *p, diag *d);
tn_status picture_decode_jpeg2000(const uint8_t *at, size_t n, picture *p, diag *d);

#endif
