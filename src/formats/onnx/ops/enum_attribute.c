/* String attributes of ONNX nodes that name one of a few options. */
#include "formats/onnx/ops/enum_attribute.h"

#include <string.h>

size_t onnx_enum_attribute(const onnx_call *c, const char *name, const char *const options[],
                           size_t n) {
  const char *text = onnx_string_attribute(c, name, options[0]);
  for (size_t i = 0; i < n; i++)
    if (!strcmp(text, options[i])) return i;
  onnx_fail(c, TN_ERR_FORMAT, "%s is '%.50s', which is not supported", name, text);
}
