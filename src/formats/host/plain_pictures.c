/* Decodes pictures that are not compressed: BMP of 8, 24 and 32 bits, and PNM (P1 to P6). */
#include "formats/host/picture.h"

#include <string.h>

bool picture_reserve(picture *p, size_t width, size_t height) {
  if (!width || !height || width > PICTURE_PIXELS_MAX / height) return false;
  p->rgb = mem_calloc(p->mem, width * height, 3);
  p->lacked_memory = !p->rgb;
  p->width = p->rgb ? width : 0;
  p->height = p->rgb ? height : 0;
  return p->rgb != NULL;
}

void picture_free(picture *p) {
  mem_free(p->mem, p->rgb, 3 * p->width * p->height);
  *p = (picture){.mem = p->mem};
}

/* BMP. */

static uint32_t read_u32(const uint8_t *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

enum { PALETTE = 1024 };

/** Copies the palette behind a header, of all 256 colours unless that states fewer; the others are
    black. False: the file ends before. */
static bool read_palette(const uint8_t *at, size_t n, size_t header, uint8_t palette[PALETTE]) {
  size_t colours = read_u32(at + 46);
  size_t bytes = colours && colours < PALETTE / 4 ? 4 * colours : PALETTE;
  if (n - 14 - header < bytes) return false;
  memset(palette, 0, PALETTE);
  memcpy(palette, at + 14 + header, bytes);
  return true;
}

/** A row of a BMP, whose colours are blue, green, red; 8 bits are numbers of a palette. */
static void read_bmp_row(const uint8_t *row, const uint8_t *palette, size_t bytes, uint8_t *out,
                         size_t width) {
  for (size_t x = 0; x < width; x++) {
    const uint8_t *from = bytes == 1 ? palette + 4 * (size_t)row[x] : row + bytes * x;
    for (size_t c = 0; c < 3; c++) out[3 * x + c] = from[2 - c];
  }
}

tn_status picture_decode_bmp(const uint8_t *at, size_t n, picture *p, diag *d) {
  enum { HEADER = 54, LEAST = 40 }; /* LEAST: older headers have other fields */
  uint8_t palette[PALETTE];
  (void)d;
  if (n < HEADER || read_u32(at + 30)) return TN_OK; /* compressed */
  size_t pixels = read_u32(at + 10), bits = at[28] | (size_t)at[29] << 8,
         header = read_u32(at + 14);
  int64_t width = (int32_t)read_u32(at + 18), height = (int32_t)read_u32(at + 22);
  bool from_top = height < 0;
  if (from_top) height = -height;
  if (width < 1 || height < 1 || width > INT32_MAX / 8) return TN_OK;
  if (bits != 8 && bits != 24 && bits != 32) return TN_OK;
  size_t stride = ((size_t)width * bits / 8 + 3) / 4 * 4;
  if (header < LEAST || header > n - 14) return TN_OK;
  if (bits == 8 && !read_palette(at, n, header, palette)) return TN_OK;
  if (pixels > n || (size_t)height > (n - pixels) / stride) return TN_OK;
  if (!picture_reserve(p, (size_t)width, (size_t)height)) return TN_OK;
  for (size_t y = 0; y < p->height; y++) {
    size_t row = from_top ? y : p->height - 1 - y;
    read_bmp_row(at + pixels + row * stride, palette, bits / 8, p->rgb + 3 * p->width * y,
                 p->width);
  }
  return TN_OK;
}

/* PNM. */

typedef struct pnm {
  const uint8_t *at, *end;
} pnm;

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/** The next number behind white space and comments; −1: there is none. */
static int64_t next_number(pnm *r) {
  int64_t v = 0;
  while (r->at < r->end && (is_space(*r->at) || *r->at == '#'))
    if (*r->at++ == '#')
      while (r->at < r->end && *r->at != '\n') r->at++;
  if (r->at == r->end || *r->at < '0' || *r->at > '9') return -1;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    if ((v = 10 * v + (*r->at - '0')) > INT32_MAX) return -1;
  return v;
}

/** The next digit 0 or 1 of a bitmap in text, which white space need not part; −1: none. */
static int64_t next_digit(pnm *r) {
  while (r->at < r->end && is_space(*r->at)) r->at++;
  return r->at < r->end && (*r->at == '0' || *r->at == '1') ? *r->at++ - '0' : -1;
}

static int64_t next_sample(pnm *r, bool is_text, int64_t most) {
  if (is_text) return next_number(r);
  size_t bytes = most > 255 ? 2 : 1;
  if ((size_t)(r->end - r->at) < bytes) return -1;
  int64_t v = bytes == 2 ? r->at[0] << 8 | r->at[1] : r->at[0];
  r->at += bytes;
  return v;
}

/** Reads bits, a 1 of which is black; those of a row begin at a byte. */
static bool read_bitmap(pnm *r, bool is_text, picture *p) {
  for (size_t i = 0; i < p->width * p->height; i++) {
    size_t x = i % p->width;
    int64_t bit;
    if (is_text) {
      bit = next_digit(r);
    } else {
      if (x % 8 == 0 && r->at++ >= r->end) return false;
      bit = r->at[-1] >> (7 - x % 8) & 1;
    }
    if (bit < 0) return false;
    memset(p->rgb + 3 * i, bit ? 0 : 255, 3);
  }
  return true;
}

static bool read_samples(pnm *r, bool is_text, bool is_gray, int64_t most, picture *p) {
  for (size_t i = 0; i < p->width * p->height * (is_gray ? 1 : 3); i++) {
    int64_t v = next_sample(r, is_text, most);
    if (v < 0 || v > most) return false;
    uint8_t byte = (uint8_t)((v * 255 + most / 2) / most);
    if (is_gray)
      memset(p->rgb + 3 * i, byte, 3);
    else
      p->rgb[i] = byte;
  }
  return true;
}

tn_status picture_decode_pnm(const uint8_t *at, size_t n, picture *p, diag *d) {
  pnm r = {at + 2, at + n};
  int kind = at[1] - '0'; /* 1, 2, 3: in text; 1 and 4 of bits, 2 and 5 of grays */
  (void)d;
  int64_t width = next_number(&r), height = next_number(&r);
  int64_t most = kind % 3 == 1 ? 1 : next_number(&r);
  if (width < 1 || height < 1 || most < 1 || most > 65535 || r.at == r.end) return TN_OK;
  r.at++; /* one white space */
  if ((uint64_t)width * (uint64_t)height / 8 > n) return TN_OK;
  if (!picture_reserve(p, (size_t)width, (size_t)height)) return TN_OK;
  bool is_whole = kind % 3 == 1 ? read_bitmap(&r, kind < 4, p)
                                : read_samples(&r, kind < 4, kind % 3 == 2, most, p);
  if (!is_whole) picture_free(p);
  return TN_OK;
}
