/* String attributes of ONNX nodes that name one of a few options. */
#ifndef TENON_FORMATS_ONNX_OPS_ENUM_ATTRIBUTE_H
#define TENON_FORMATS_ONNX_OPS_ENUM_ATTRIBUTE_H

#include "formats/onnx/importer/importer.h"

/** The number of the option that an attribute names; the first if it is absent. Raises for other
    texts. */
size_t onnx_enum_attribute(const onnx_call *c, const char *name, const char *const options[],
                           size_t n);

#define ENUM_ATTRIBUTE(c, name, options) \
  onnx_enum_attribute(c, name, options, sizeof(options) / sizeof *(options))

#endif
