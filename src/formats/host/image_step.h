/* Host steps that decode pictures: BMP and PNM here, PNG, JPEG, JPEG 2000, WebP and TIFF by their
   libraries, which are opened at run time. */
#ifndef TENON_FORMATS_HOST_IMAGE_STEP_H
#define TENON_FORMATS_HOST_IMAGE_STEP_H

#include "formats/host/host_steps.h"

typedef enum pixel_order { PIXELS_RGB, PIXELS_BGR, PIXELS_GRAY } pixel_order;

typedef struct image_options {
  pixel_order order;
} image_options;

/** The height and the width (i64, 2 elements) of a picture of encoded bytes; zeros of bytes that
   are none that can be decoded. TN_ERR_UNSUPPORTED where the library of its format is missing. */
tn_status image_sizes(const void *image_options, string_table *t, const host_arrays *a,
                      tn_failure *f);

/** The pixels (height, width, channels; u8) of such a picture. */
tn_status image_pixels(const void *image_options, string_table *t, const host_arrays *a,
                       tn_failure *f);

#endif
