/* The files that a command reads and those that it writes: one that is written is no other of them.
 */
#ifndef TENON_CLI_FILES_H
#define TENON_CLI_FILES_H

#include "cli/feed.h"

typedef struct named_file {
  const char *what; /* the option that has it written, or words for one that is read */
  const char *path; /* NULL: standard output */
  bool written;
} named_file;

/** All that are known so far. What is added is compared with those, so that nothing is lost where
    all are added before anything is written; raises as command_misuse. */
typedef struct files {
  command *c;
  VEC(named_file) all;
} files;

/** Adds the files of the model that is the command's operand, and those that inputs are read from.
 */
void files_read_model(files *f, const tn_model *m);
void files_read_inputs(files *f, const feeds *in);

/** Adds standard output, for what is printed there. */
void files_print(files *f, const char *what);

/** Adds what an option has written (NULL: standard output), or a folder that it has made. Raises
    where that cannot be. */
void files_write(files *f, const char *option, const char *path);
void files_make_folder(files *f, const char *option, const char *path);

#endif
