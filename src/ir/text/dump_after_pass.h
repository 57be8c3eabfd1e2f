/* Dumps the graph after compiler passes to files, by the option "DIR:after:PASS" (like LLVM's
   -print-after), where PASS is a name of pass_names.h or * for every pass. */
#ifndef TENON_IR_TEXT_DUMP_AFTER_PASS_H
#define TENON_IR_TEXT_DUMP_AFTER_PASS_H

#include "base/diag.h"
#include "base/mem.h"
#include "ir/core/node.h"

/** A parsed option; all zero: no dumps. */
typedef struct dump {
  const char *folder; /* inside the option's text, `folder_bytes` long */
  const char *pass;   /* inside the option's text */
  size_t folder_bytes;
  unsigned written; /* graphs so far; the next one's number */
} dump;

/** Parses the option, whose text must outlive `out`; NULL or "" means no dumps. TN_ERR_ARGUMENT if
    it is not of the form above or the pass does not exist; the message lists the passes. */
tn_status dump_parse_option(dump *out, const char *option, diag *d);

/** True if the option asks for dumps after a pass. */
bool dump_is_enabled(const dump *u, const char *pass);

/** Writes DIR/<number>-<name>-<pass>.ir (print.h) and .dot (graphviz.h) by file_write, if the
    option asks for the pass. Creates the folder if it is missing. One thread at a time. */
tn_status dump_after(dump *u, const char *pass, const char *name, const node *const roots[],
                     size_t n, const mem *m, diag *d);

#endif
