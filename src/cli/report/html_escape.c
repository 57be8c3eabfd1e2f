/* Escapes text for HTML and SVG: the characters that both treat as markup, after those that
   text_escape treats. */
#include "cli/report/html_escape.h"

#include "cli/core/text_format.h"

void html_escape(str *s, const char *text) {
  for (const char *at = text_escape_keep_newlines(s->arena, text); *at; at++) {
    switch (*at) {
    case '&': str_add(s, "&amp;"); break;
    case '<': str_add(s, "&lt;"); break;
    case '>': str_add(s, "&gt;"); break;
    case '"': str_add(s, "&quot;"); break;
    default: str_add_bytes(s, at, 1);
    }
  }
}
