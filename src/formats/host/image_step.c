/* Implements the steps of decoders: finds the format by the first bytes, decodes to red, green and
   blue, and writes the pixels in the order that is asked for. Gray is that of ITU-R 601. */
#include "formats/host/image_step.h"

#include "formats/host/picture.h"

#include <string.h>

static bool begins_with(const uint8_t *at, size_t n, const char *with, size_t length) {
  return n >= length && !memcmp(at, with, length);
}

static tn_status decode(const uint8_t *at, size_t n, picture *p, diag *d) {
  if (begins_with(at, n, "BM", 2)) return picture_decode_bmp(at, n, p, d);
  if (begins_with(at, n, "\x89PNG", 4)) return picture_decode_png(at, n, p, d);
  if (begins_with(at, n, "\xff\xd8\xff", 3)) return picture_decode_jpeg(at, n, p, d);
  if (begins_with(at, n, "II*\0", 4) || begins_with(at, n, "MM\0*", 4))
    return picture_decode_tiff(at, n, p, d);
  if (n >= 12 && begins_with(at, n, "RIFF", 4) && !memcmp(at + 8, "WEBP", 4))
    return picture_decode_webp(at, n, p, d);
  if (n >= 3 && at[0] == 'P' && at[1] >= '1' && at[1] <= '6')
    return picture_decode_pnm(at, n, p, d);
  if (begins_with(at, n, "\0\0\0\x0cjP  ", 8) || begins_with(at, n, "\xff\x4f\xff\x51", 4))
    return picture_decode_jpeg2000(at, n, p, d);
  return TN_OK;
}

static tn_status decode_input(string_table *t, const host_arrays *a, picture *p, tn_failure *f) {
  diag d = {0};
  *p = (picture){.mem = string_table_mem(t)};
  tn_status s = decode(a->data[0], (size_t)a->bytes[0], p, &d);
  if (s == TN_OK && p->lacked_memory) s = diag_set(&d, TN_ERR_MEMORY, "out of memory");
  return s == TN_OK ? s : tn_fail(f, s, "%.1500s", d.text);
}

tn_status image_sizes(const void *options, string_table *t, const host_arrays *a, tn_failure *f) {
  picture p;
  int64_t *sizes = a->data[1];
  (void)options;
  tn_status s = decode_input(t, a, &p, f);
  sizes[0] = (int64_t)p.height;
  sizes[1] = (int64_t)p.width;
  picture_free(&p);
  return s;
}

static uint8_t gray_of(const uint8_t *rgb) {
  return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 32768u) >> 16);
}

tn_status image_pixels(const void *options, string_table *t, const host_arrays *a, tn_failure *f) {
  const image_options *o = options;
  size_t channels = o->order == PIXELS_GRAY ? 1 : 3;
  picture p;
  uint8_t *out = a->data[1];
  tn_status s = decode_input(t, a, &p, f);
  if (s == TN_OK && p.width * p.height * channels != a->bytes[1])
    s = tn_fail(f, TN_ERR_INTERNAL, "a picture has other sizes when it is decoded again");
  for (size_t i = 0; s == TN_OK && i < p.width * p.height; i++) {
    const uint8_t *rgb = p.rgb + 3 * i;
    if (channels == 1)
      out[i] = gray_of(rgb);
    else
      for (size_t c = 0; c < 3; c++) out[3 * i + c] = rgb[o->order == PIXELS_BGR ? 2 - c : c];
  }
  picture_free(&p);
  return s;
}
