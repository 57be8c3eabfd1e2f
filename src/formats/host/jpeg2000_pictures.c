/* Decodes JPEG 2000, a JP2 file or a bare codestream, by OpenJPEG, which is opened at run time. Its
   structs are declared here as its versions of soname 7 have them since 2.1; of the decoder's
   parameters only the defaults are used, in room that is more than they need. */
#include "base/library.h"
#include "formats/host/picture.h"

#include <stddef.h>
#include <string.h>

enum { CODEC_STREAM = 0, CODEC_FILE = 2 };                      /* formats */
enum { COLOURS_YCC = 3, COLOURS_EXTENDED_YCC, COLOURS_CMYK };   /* colour spaces */
enum { BUFFER = 1 << 16, PARAMETERS = 1 << 14, BITS_MAX = 31 }; /* bytes, bytes, bits of a sample */
enum { PLANES_MAX = 4 };

/** Samples of one kind, one for each dx × dy pixels of the grid. */
typedef struct plane {
  uint32_t dx, dy, width, height, x0, y0, bits, old_bits, is_signed, levels, factor;
  int32_t *at;
  uint16_t alpha;
} plane;

typedef struct planes {
  uint32_t x0, y0, x1, y1, n; /* of the grid; of the list */
  int32_t colours;
  plane *all;
  uint8_t *profile;
  uint32_t profile_bytes;
} planes;

typedef struct jpeg2000_functions {
  void *(*new_stream)(size_t buffer, int is_input);
  void (*free_stream)(void *stream);
  void (*on_read)(void *stream, size_t (*read)(void *out, size_t n, void *user));
  void (*on_skip)(void *stream, int64_t (*skip)(int64_t n, void *user));
  void (*on_seek)(void *stream, int (*seek)(int64_t to, void *user));
  void (*user)(void *stream, void *user, void (*free)(void *user));
  void (*length)(void *stream, uint64_t bytes);
  void *(*new_decoder)(int format);
  void (*free_decoder)(void *decoder);
  void (*defaults)(void *parameters);
  int (*setup)(void *decoder, void *parameters);
  int (*read_header)(void *stream, void *decoder, planes **p);
  int (*decode)(void *decoder, void *stream, planes *p);
  void (*free_planes)(planes *p);
} jpeg2000_functions;

/* The bytes as a stream. */

typedef struct bytes_stream {
  const uint8_t *at;
  size_t n, place;
} bytes_stream;

static size_t read_bytes(void *out, size_t n, void *user) {
  bytes_stream *s = user;
  size_t left = s->n - s->place, count = n < left ? n : left;
  if (!count) return SIZE_MAX; /* the end */
  memcpy(out, s->at + s->place, count);
  s->place += count;
  return count;
}

static int seek_bytes(int64_t to, void *user) {
  bytes_stream *s = user;
  if (to < 0 || (uint64_t)to > s->n) return 0;
  s->place = (size_t)to;
  return 1;
}

static int64_t skip_bytes(int64_t n, void *user) {
  bytes_stream *s = user;
  int64_t place = (int64_t)s->place, size = (int64_t)s->n,
          to = n > size - place ? size
               : n < -place     ? 0
                                : place + n;
  s->place = (size_t)to;
  return to == place && n ? -1 : to - place;
}

/* Pixels of planes. */

/** A sample for a pixel of the grid, as a number from 0 to 255. */
static int32_t sample_at(const plane *p, uint64_t x, uint64_t y) {
  uint64_t column = x / p->dx, row = y / p->dy;
  column = column < p->x0 ? 0 : column - p->x0;
  row = row < p->y0 ? 0 : row - p->y0;
  if (column >= p->width) column = p->width - 1;
  if (row >= p->height) row = p->height - 1;
  int64_t most = ((int64_t)1 << p->bits) - 1, v = p->at[row * p->width + column];
  if (p->is_signed) v += (int64_t)1 << (p->bits - 1);
  v = v < 0 ? 0 : v > most ? most : v;
  return (int32_t)(p->bits > 8 ? v >> (p->bits - 8) : v * 255 / most);
}

static uint8_t to_byte(double v) { return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)(v + 0.5); }

/** Luminance and differences of colours, as ITU-R 601 has them, to red, green and blue. */
static void write_ycc(const int32_t in[3], uint8_t *rgb) {
  double y = in[0], blue = in[1] - 128, red = in[2] - 128;
  rgb[0] = to_byte(y + 1.402 * red);
  rgb[1] = to_byte(y - 0.344136 * blue - 0.714136 * red);
  rgb[2] = to_byte(y + 1.772 * blue);
}

/** One or two planes are gray, with opacity; of more the first three are colours. */
static void write_pixels(const planes *from, picture *p) {
  bool is_gray = from->n < 3;
  for (size_t i = 0; i < p->width * p->height; i++) {
    uint64_t x = from->x0 + i % p->width, y = from->y0 + i / p->width;
    int32_t v[3];
    for (size_t c = 0; c < 3; c++) v[c] = is_gray && c ? v[0] : sample_at(&from->all[c], x, y);
    if (!is_gray && from->colours == COLOURS_YCC)
      write_ycc(v, p->rgb + 3 * i);
    else
      for (size_t c = 0; c < 3; c++) p->rgb[3 * i + c] = (uint8_t)v[c];
  }
}

/** True if the planes that make the pixels have samples. */
static bool has_samples(const planes *p) {
  for (size_t c = 0; c < (p->n < 3 ? 1 : 3); c++) {
    const plane *s = &p->all[c];
    if (!s->at || !s->width || !s->height || !s->dx || !s->dy || !s->bits || s->bits > BITS_MAX)
      return false;
  }
  return true;
}

/* Decoding. */

static tn_status check_kind(const planes *k, diag *d) {
  if (k->colours == COLOURS_EXTENDED_YCC || k->colours == COLOURS_CMYK)
    return diag_set(d, TN_ERR_UNSUPPORTED, "JPEG 2000 in %s is not supported",
                    k->colours == COLOURS_CMYK ? "CMYK" : "e-YCC");
  if (k->n > PLANES_MAX)
    return diag_set(d, TN_ERR_UNSUPPORTED, "JPEG 2000 of %lu components is not supported",
                    (unsigned long)k->n);
  return TN_OK;
}

/** Decodes the samples into reserved pixels. Versions of OpenJPEG differ in whether the header
   tells the colours, or only the decoded picture, which a palette may have given more planes. */
static tn_status read_samples(const jpeg2000_functions *f, void *stream, void *decoder, planes *k,
                              picture *p, diag *d) {
  bool is_whole = f->decode(decoder, stream, k) && k->n;
  tn_status s = check_kind(k, d);
  if (s == TN_OK && is_whole && has_samples(k))
    write_pixels(k, p);
  else
    picture_free(p);
  return s;
}

/** Sizes are checked before OpenJPEG allocates the samples. It does so past the allocator, where
    they would escape a limit on memory: a block of their bytes is held meanwhile. */
static tn_status read_planes(const jpeg2000_functions *f, void *stream, void *decoder,
                             planes **found, picture *p, diag *d) {
  if (!f->read_header(stream, decoder, found)) return TN_OK;
  planes *k = *found;
  tn_status s = check_kind(k, d);
  if (s != TN_OK || k->x1 <= k->x0 || k->y1 <= k->y0 || !k->n ||
      !picture_reserve(p, k->x1 - k->x0, k->y1 - k->y0))
    return s;
  size_t bytes = p->width * p->height * k->n * sizeof *k->all->at;
  void *counted = mem_alloc(p->mem, bytes);
  if (!counted) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  s = read_samples(f, stream, decoder, k, p, d);
  mem_free(p->mem, counted, bytes);
  return s;
}

static tn_status decode_stream(const jpeg2000_functions *f, void *stream, void *decoder, picture *p,
                               diag *d) {
  max_align_t parameters[PARAMETERS / sizeof(max_align_t)];
  planes *found = NULL;
  f->defaults(parameters);
  tn_status s =
      f->setup(decoder, parameters) ? read_planes(f, stream, decoder, &found, p, d) : TN_OK;
  if (found) f->free_planes(found);
  return s;
}

static tn_status open_openjpeg(jpeg2000_functions *f, diag *d) {
  static const char *const names[] = {"opj_stream_create",
                                      "opj_stream_destroy",
                                      "opj_stream_set_read_function",
                                      "opj_stream_set_skip_function",
                                      "opj_stream_set_seek_function",
                                      "opj_stream_set_user_data",
                                      "opj_stream_set_user_data_length",
                                      "opj_create_decompress",
                                      "opj_destroy_codec",
                                      "opj_set_default_decoder_parameters",
                                      "opj_setup_decoder",
                                      "opj_read_header",
                                      "opj_decode",
                                      "opj_image_destroy"};
  static const library l = {.file = "libopenjp2.so.7",
                            .what = "OpenJPEG, for JPEG 2000,",
                            .version = "libopenjp2.so.7",
                            .hint = "install libopenjp2-7",
                            .names = names,
                            .n_names = sizeof names / sizeof *names};
  _Static_assert(sizeof names == sizeof *f, "a pointer for each name");
  return library_open(&l, f, d) == TN_OK ? TN_OK : diag_complete(d, TN_ERR_UNSUPPORTED);
}

tn_status picture_decode_jpeg2000(const uint8_t *at, size_t n, picture *p, diag *d) {
  jpeg2000_functions f = {0};
  bytes_stream bytes = {at, n, 0};
  tn_status s = open_openjpeg(&f, d);
  if (s != TN_OK) return s;
  void *stream = f.new_stream(BUFFER, 1);
  void *decoder = f.new_decoder(n && *at == 0xff ? CODEC_STREAM : CODEC_FILE);
  if (stream && decoder) {
    f.on_read(stream, read_bytes);
    f.on_skip(stream, skip_bytes);
    f.on_seek(stream, seek_bytes);
    f.user(stream, &bytes, NULL);
    f.length(stream, n);
    s = decode_stream(&f, stream, decoder, p, d);
  } else
    s = diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (decoder) f.free_decoder(decoder);
  if (stream) f.free_stream(stream);
  return s;
}
