/* Escapes text that may hold anything for use in HTML or SVG. */
#ifndef TENON_CLI_REPORT_HTML_ESCAPE_H
#define TENON_CLI_REPORT_HTML_ESCAPE_H

#include "base/str.h"

/** Appends a text so that a browser displays it literally. */
void html_escape(str *s, const char *text);

#endif
