/* Detects conflicts between the files that a command reads and writes: compares every file that is
   added with all files before it, by device and inode where they exist, so that two names of one
   file are found. */
#include "cli/data/file_conflicts.h"

#include "base/file.h"
#include "cli/data/load_model.h"

#include <string.h>

static const char *real_path(const named_file *f) { return f->path ? f->path : "/dev/stdout"; }

static bool is_same_file(const named_file *a, const named_file *b) {
  return (!a->path && !b->path) || file_same(real_path(a), real_path(b));
}

static const char *shown_path(const named_file *f) { return f->path ? f->path : "-"; }

static _Noreturn void fail_conflict(command *c, const named_file *written,
                                    const named_file *other) {
  if (!other->is_written)
    command_usage_error(c, "--%s: \"%s\" is %s and would be overwritten", written->what,
                        shown_path(written), other->what);
  command_usage_error(c, "--%s: \"%s\" and \"%s\" of --%s are the same file", written->what,
                      shown_path(written), shown_path(other), other->what);
}

static void add_file(file_set *f, named_file added) {
  for (size_t i = 0; i < f->all.n; i++) {
    const named_file *other = &f->all.at[i];
    if ((!added.is_written && !other->is_written) || !is_same_file(&added, other)) continue;
    if (added.is_written) fail_conflict(f->c, &added, other);
    fail_conflict(f->c, other, &added);
  }
  vec_push(&f->c->arena, &f->all, added);
}

static void add_source(file_set *f, const char *what, const char *path) {
  add_file(f, (named_file){what, path, false});
}

static void add_target(file_set *f, const char *option, const char *path) {
  add_file(f, (named_file){option, path, true});
}

void file_conflicts_add_model(file_set *f, const tn_model *m) {
  const char *path;
  add_source(f, "the model", load_model_path(f->c->operand));
  for (size_t i = 0; (path = tn_model_data_file(m, i)); i++)
    add_source(f, "a file of the model's weights", path);
}

void file_conflicts_add_inputs(file_set *f, const model_inputs *in) {
  for (size_t i = 0; i < in->n; i++)
    if (in->at[i].file)
      add_source(f, arena_printf(&f->c->arena, "the file of input %s", in->at[i].name),
                 in->at[i].file);
}

void file_conflicts_add_stdout(file_set *f, const char *what) { add_source(f, what, NULL); }

void file_conflicts_add_target(file_set *f, const char *option, const char *path) {
  diag *d = &f->c->diag;
  if (path && file_check_writable(path, d)) diag_rethrow(d);
  add_target(f, option, path);
}

void file_conflicts_add_folder(file_set *f, const char *option, const char *path) {
  diag *d = &f->c->diag;
  if (file_check_folder_writable(path, d)) diag_rethrow(d);
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  add_target(f, option, arena_printf(&f->c->arena, "%.*s", (int)n, path));
}
