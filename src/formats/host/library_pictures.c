/* Decodes PNG, WebP and TIFF by libpng, libwebp and libtiff, which are opened at run time. What of
   their interfaces is used is declared here, as they promise to keep it. */
#include "base/library.h"
#include "formats/host/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static tn_status open_functions(const library *l, void *functions, diag *d) {
  return library_open(l, functions, d) == TN_OK ? TN_OK : diag_complete(d, TN_ERR_UNSUPPORTED);
}

#define LIBRARY(soname, called, package, functions)                                \
  {                                                                                \
    .file = soname, .what = called, .version = soname, .hint = "install " package, \
    .names = functions, .n_names = sizeof functions / sizeof *functions            \
  }

/* PNG: the simplified interface of libpng 1.6. */

enum { PNG_VERSION = 1, PNG_RGBA = 3 };

typedef struct png_picture {
  void *opaque;
  uint32_t version, width, height, format, flags, colours, is_failure;
  char message[64];
} png_picture;

typedef struct png_functions {
  int (*begin)(png_picture *p, const void *at, size_t n);
  int (*finish)(png_picture *p, const void *background, void *pixels, int32_t stride, void *map);
  void (*end)(png_picture *p);
} png_functions;

/** The pixels without their opacity. */
static void drop_alpha(const uint8_t *rgba, picture *p) {
  for (size_t i = 0; i < p->width * p->height; i++) memcpy(p->rgb + 3 * i, rgba + 4 * i, 3);
}

/** Reads to pixels of four bytes first. */
static void read_png(const png_functions *png, png_picture *from, picture *p) {
  if (!picture_reserve(p, from->width, from->height)) return;
  size_t bytes = 4 * p->width * p->height;
  uint8_t *rgba = mem_alloc(p->mem, bytes);
  bool is_read = rgba && png->finish(from, NULL, rgba, (int32_t)(4 * p->width), NULL);
  if (is_read)
    drop_alpha(rgba, p);
  else
    picture_free(p);
  mem_free(p->mem, rgba, bytes);
}

tn_status picture_decode_png(const uint8_t *at, size_t n, picture *p, diag *d) {
  static const char *const names[] = {"png_image_begin_read_from_memory", "png_image_finish_read",
                                      "png_image_free"};
  static const library l = LIBRARY("libpng16.so.16", "libpng, for PNG,", "libpng16-16", names);
  png_functions png = {0};
  _Static_assert(sizeof names == sizeof png, "a pointer for each name");
  png_picture from = {.version = PNG_VERSION};
  tn_status s = open_functions(&l, &png, d);
  if (s != TN_OK || !png.begin(&from, at, n)) return s;
  from.format = PNG_RGBA;
  read_png(&png, &from, p);
  png.end(&from);
  return TN_OK;
}

/* WebP. */

typedef struct webp_functions {
  int (*info)(const uint8_t *at, size_t n, int *width, int *height);
  uint8_t *(*decode)(const uint8_t *at, size_t n, uint8_t *out, size_t bytes, int stride);
} webp_functions;

tn_status picture_decode_webp(const uint8_t *at, size_t n, picture *p, diag *d) {
  static const char *const names[] = {"WebPGetInfo", "WebPDecodeRGBInto"};
  static const library l = LIBRARY("libwebp.so.7", "libwebp, for WebP,", "libwebp7", names);
  webp_functions webp = {0};
  _Static_assert(sizeof names == sizeof webp, "a pointer for each name");
  int width, height;
  tn_status s = open_functions(&l, &webp, d);
  if (s != TN_OK || !webp.info(at, n, &width, &height) || width < 1 || height < 1) return s;
  if (!picture_reserve(p, (size_t)width, (size_t)height)) return s;
  if (!webp.decode(at, n, p->rgb, 3 * p->width * p->height, 3 * width)) picture_free(p);
  return s;
}

/* TIFF, from memory. */

enum { TIFF_WIDTH = 256, TIFF_HEIGHT = 257, TIFF_TOP_LEFT = 1 };

typedef struct tiff_file {
  const uint8_t *at;
  uint64_t n, place;
} tiff_file;

typedef int (*tiff_handler)(void *tiff, void *user, const char *module, const char *format,
                            va_list list);

typedef struct tiff_functions {
  void *(*new_options)(void);
  void (*free_options)(void *options);
  void (*on_error)(void *options, tiff_handler handler, void *user);
  void (*on_warning)(void *options, tiff_handler handler, void *user);
  void *(*open)(const char *name, const char *mode, void *user,
                int64_t (*read)(void *, void *, int64_t), int64_t (*write)(void *, void *, int64_t),
                uint64_t (*seek)(void *, uint64_t, int), int (*close)(void *),
                uint64_t (*size)(void *), int (*map)(void *, void **, uint64_t *),
                void (*unmap)(void *, void *, uint64_t), void *options);
  int (*field)(void *tiff, uint32_t tag, ...);
  int (*read)(void *tiff, uint32_t width, uint32_t height, uint32_t *out, int orientation,
              int stops);
  void (*close)(void *tiff);
} tiff_functions;

static int64_t read_tiff(void *user, void *out, int64_t n) {
  tiff_file *f = user;
  uint64_t left = f->place < f->n ? f->n - f->place : 0,
           count = (uint64_t)n < left ? (uint64_t)n : left;
  if (n > 0 && count) memcpy(out, f->at + f->place, count);
  f->place += count;
  return (int64_t)count;
}

static int64_t write_tiff(void *user, void *from, int64_t n) {
  (void)user, (void)from, (void)n;
  return 0;
}

static uint64_t seek_tiff(void *user, uint64_t offset, int whence) {
  tiff_file *f = user;
  f->place = offset + (whence == SEEK_CUR ? f->place : whence == SEEK_END ? f->n : 0);
  return f->place;
}

static int close_tiff(void *user) {
  (void)user;
  return 0;
}

static uint64_t size_of_tiff(void *user) { return ((tiff_file *)user)->n; }

static int map_tiff(void *user, void **at, uint64_t *n) {
  (void)user, (void)at, (void)n;
  return 0;
}

static void unmap_tiff(void *user, void *at, uint64_t n) { (void)user, (void)at, (void)n; }

/** Says nothing, where libtiff would print. */
static int keep_silent(void *tiff, void *user, const char *module, const char *format,
                       va_list list) {
  (void)tiff, (void)user, (void)module, (void)format, (void)list;
  return 1;
}

/** Reads to words whose lowest byte is red. */
static void read_rgba(const tiff_functions *f, void *tiff, picture *p) {
  size_t bytes = 4 * p->width * p->height;
  uint32_t *rgba = mem_alloc(p->mem, bytes);
  bool is_read =
      rgba && f->read(tiff, (uint32_t)p->width, (uint32_t)p->height, rgba, TIFF_TOP_LEFT, 1);
  for (size_t i = 0; is_read && i < p->width * p->height; i++)
    for (size_t c = 0; c < 3; c++) p->rgb[3 * i + c] = (uint8_t)(rgba[i] >> 8 * c);
  mem_free(p->mem, rgba, bytes);
  if (!is_read) picture_free(p);
}

tn_status picture_decode_tiff(const uint8_t *at, size_t n, picture *p, diag *d) {
  static const char *const names[] = {"TIFFOpenOptionsAlloc",
                                      "TIFFOpenOptionsFree",
                                      "TIFFOpenOptionsSetErrorHandlerExtR",
                                      "TIFFOpenOptionsSetWarningHandlerExtR",
                                      "TIFFClientOpenExt",
                                      "TIFFGetField",
                                      "TIFFReadRGBAImageOriented",
                                      "TIFFClose"};
  static const library l = LIBRARY("libtiff.so.6", "libtiff, for TIFF,", "libtiff6", names);
  tiff_functions f = {0};
  _Static_assert(sizeof names == sizeof f, "a pointer for each name");
  tiff_file file = {at, n, 0};
  uint32_t width = 0, height = 0;
  tn_status s = open_functions(&l, &f, d);
  void *options = s == TN_OK ? f.new_options() : NULL;
  if (!options) return s;
  f.on_error(options, keep_silent, NULL);
  f.on_warning(options, keep_silent, NULL);
  void *tiff = f.open("picture", "r", &file, read_tiff, write_tiff, seek_tiff, close_tiff,
                      size_of_tiff, map_tiff, unmap_tiff, options);
  f.free_options(options);
  if (!tiff) return s;
  if (f.field(tiff, TIFF_WIDTH, &width) && f.field(tiff, TIFF_HEIGHT, &height) &&
      picture_reserve(p, width, height))
    read_rgba(&f, tiff, p);
  f.close(tiff);
  return s;
}
