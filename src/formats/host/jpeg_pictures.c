/* Decodes JPEG by libjpeg-turbo, which is opened at run time. Its structs are those of its header,
   so that a library which was built without the header decodes none. */
#include "formats/host/picture.h"

#if defined __has_include
#if __has_include(<jpeglib.h>)
#define HAS_JPEG 1
#endif
#endif

#ifdef HAS_JPEG

#include "base/library.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

typedef struct jpeg_functions {
  struct jpeg_error_mgr *(*std_error)(struct jpeg_error_mgr *e);
  void (*create)(j_decompress_ptr j, int version, size_t bytes);
  void (*destroy)(j_decompress_ptr j);
  void (*source)(j_decompress_ptr j, const unsigned char *at, unsigned long n);
  int (*read_header)(j_decompress_ptr j, boolean requires_picture);
  boolean (*start)(j_decompress_ptr j);
  JDIMENSION (*read)(j_decompress_ptr j, JSAMPARRAY rows, JDIMENSION most);
} jpeg_functions;

typedef struct jpeg_reader {
  struct jpeg_error_mgr errors; /* the first, as libjpeg passes its address */
  jmp_buf failed;
  struct jpeg_decompress_struct jpeg;
  picture *p;
} jpeg_reader;

static void leave(j_common_ptr j) { longjmp(((jpeg_reader *)j->err)->failed, 1); }
static void keep_silent(j_common_ptr j) { (void)j; }

/** Unwinds by longjmp where the bytes are damaged. Sizes are checked before libjpeg allocates the
    coefficients of a whole progressive picture. */
static void read_rows(const jpeg_functions *f, jpeg_reader *r, const uint8_t *at, size_t n) {
  f->create(&r->jpeg, JPEG_LIB_VERSION, sizeof r->jpeg);
  f->source(&r->jpeg, at, n);
  f->read_header(&r->jpeg, TRUE);
  r->jpeg.out_color_space = JCS_RGB;
  if (!picture_reserve(r->p, r->jpeg.image_width, r->jpeg.image_height)) return;
  f->start(&r->jpeg);
  while (r->jpeg.output_scanline < r->jpeg.output_height) {
    JSAMPROW row = r->p->rgb + 3 * r->p->width * r->jpeg.output_scanline;
    f->read(&r->jpeg, &row, 1);
  }
}

#define SONAME(version) version == 62 ? "libjpeg.so.62" : "libjpeg.so.8"

tn_status picture_decode_jpeg(const uint8_t *at, size_t n, picture *p, diag *d) {
  static const char *const names[] = {
      "jpeg_std_error",   "jpeg_CreateDecompress", "jpeg_destroy_decompress", "jpeg_mem_src",
      "jpeg_read_header", "jpeg_start_decompress", "jpeg_read_scanlines"};
  static const library l = {.file = SONAME(JPEG_LIB_VERSION),
                            .what = "libjpeg, for JPEG,",
                            .version = "libjpeg-turbo",
                            .hint = "install libjpeg-turbo",
                            .names = names,
                            .n_names = sizeof names / sizeof *names};
  jpeg_functions f;
  _Static_assert(sizeof names == sizeof f, "a pointer for each name");
  if (library_open(&l, &f, d) != TN_OK) return diag_complete(d, TN_ERR_UNSUPPORTED);
  jpeg_reader r;
  memset(&r, 0, sizeof r);
  r.p = p;
  r.jpeg.err = f.std_error(&r.errors);
  r.errors.error_exit = leave;
  r.errors.output_message = keep_silent;
  if (setjmp(r.failed))
    picture_free(p);
  else
    read_rows(&f, &r, at, n);
  f.destroy(&r.jpeg);
  return TN_OK;
}

#else

tn_status picture_decode_jpeg(const uint8_t *at, size_t n, picture *p, diag *d) {
  (void)at, (void)n, (void)p;
  return diag_set(d, TN_ERR_UNSUPPORTED,
                  "the library was built without the header of libjpeg-turbo");
}

#endif
