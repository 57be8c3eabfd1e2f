/* Graphs written to files after a pass: "DIR:after:PASS", where PASS is a name of pass.h or `*`,
   every pass. */
#ifndef TENON_IR_DUMP_H
#define TENON_IR_DUMP_H

#include "base/diag.h"
#include "base/mem.h"
#include "ir/node.h"

/** What to write and where; all zero: nothing. */
typedef struct dump {
  const char *folder, *pass; /* inside the option's text; the folder's bytes are counted */
  size_t folder_bytes;
  unsigned written; /* graphs so far, which begin the names of files */
} dump;

/** Reads the option, whose text must stay; NULL or "" is nothing to write. TN_ERR_ARGUMENT if it
    is not of the form above, or there is no such pass: then the message lists them. */
tn_status dump_parse(dump *out, const char *option, diag *d);

/** Whether graphs are written after a pass. */
bool dump_wants(const dump *u, const char *pass);

/** Writes DIR/<number>-<name>-<pass>.ir (print.h) and .dot (dot.h), as file_write does, if the
    option asks for the pass. The folder is made if it is missing. One thread at a time. */
tn_status dump_after(dump *u, const char *pass, const char *name, const node *const roots[],
                     size_t n, const mem *m, diag *d);

#endif
