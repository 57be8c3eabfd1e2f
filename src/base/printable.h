/* Texts of others in messages: paths, and names that a user or a file gave. A message is one line,
   which a terminal may show, so what would break the line or steer the terminal is escaped. */
#ifndef TENON_BASE_PRINTABLE_H
#define TENON_BASE_PRINTABLE_H

/** Formats a text for messages: control characters escaped, cut to fit. Returns `shown`. */
enum { TEXT_PRINTABLE_BYTES = 1024 };
const char *text_printable(const char *text, char shown[TEXT_PRINTABLE_BYTES]);

#endif
