/* Implements texts in messages: escapes control characters, byte by byte, as far as they fit. */
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

const char *text_printable(const char *text, char shown[TEXT_PRINTABLE_BYTES]) {
  char *at = shown;
  for (; *text && at - shown < TEXT_PRINTABLE_BYTES - 8; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '\n')
      at += sprintf(at, "\\n");
    else if (c < 0x20 || c == 0x7f)
      at += sprintf(at, "\\x%02x", c);
    else
      *at++ = *text;
  }
  strcpy(at, *text ? "…" : "");
  return shown;
}
