/* Checks the files that a command reads and writes for conflicts: one that is written may be none
   of the others, so that no input and no other output is lost. */
#ifndef TENON_CLI_DATA_FILE_CONFLICTS_H
#define TENON_CLI_DATA_FILE_CONFLICTS_H

#include "cli/data/model_inputs.h"

typedef struct named_file {
  const char *what; /* the option that names a written file, or a description of a read one */
  const char *path; /* NULL: standard output */
  bool is_written;
} named_file;

/** The files added so far. Adding a conflicting file raises as command_usage_error. All files are
   added before any is written. */
typedef struct file_set {
  command *c;
  VEC(named_file) all;
} file_set;

/** Adds the files of the model that is the command's operand, and those of its inputs. */
void file_conflicts_add_model(file_set *f, const tn_model *m);
void file_conflicts_add_inputs(file_set *f, const model_inputs *in);

/** Adds standard output; `what` describes the text printed there. */
void file_conflicts_add_stdout(file_set *f, const char *what);

/** Adds a file that an option writes (NULL: standard output), or a folder that it creates. Raises
    TN_ERR_IO if it is not writable. */
void file_conflicts_add_target(file_set *f, const char *option, const char *path);
void file_conflicts_add_folder(file_set *f, const char *option, const char *path);

#endif
