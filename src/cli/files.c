#include "cli/files.h"

#include "base/file.h"
#include "cli/load.h"
#include "formats/model.h"

#include <string.h>

static const char *path_of(const named_file *f) { return f->path ? f->path : "/dev/stdout"; }

static bool are_one(const named_file *a, const named_file *b) {
  return (!a->path && !b->path) || file_is_same(path_of(a), path_of(b));
}

static const char *shown(const named_file *f) { return f->path ? f->path : "-"; }

static _Noreturn void refuse(command *c, const named_file *written, const named_file *other) {
  if (!other->written)
    command_misuse(c, "--%s: \"%s\" is %s, which it would replace", written->what, shown(written),
                   other->what);
  command_misuse(c, "--%s: \"%s\" and --%s's \"%s\" are the same file: each needs its own",
                 written->what, shown(written), other->what, shown(other));
}

static void add(files *f, named_file one) {
  for (size_t i = 0; i < f->all.n; i++) {
    const named_file *other = &f->all.at[i];
    if ((!one.written && !other->written) || !are_one(&one, other)) continue;
    if (one.written) refuse(f->c, &one, other);
    refuse(f->c, other, &one);
  }
  vec_push(&f->c->arena, &f->all, one);
}

static void add_source(files *f, const char *what, const char *path) {
  add(f, (named_file){what, path, false});
}

static void add_target(files *f, const char *option, const char *path) {
  add(f, (named_file){option, path, true});
}

void files_read_model(files *f, const tn_model *m) {
  command *c = f->c;
  const onnx_tensors *external = &m->data->onnx->external;
  const char *slash = strrchr(c->operand, '/');
  int folder = slash ? (int)(slash + 1 - c->operand) : 0;
  add_source(f, "the model", load_path(c->operand));
  for (size_t i = 0; i < external->n; i++)
    add_source(
        f, "a file of the model's weights",
        arena_printf(&c->arena, "%.*s%s", folder, c->operand, external->at[i]->external->location));
}

void files_read_inputs(files *f, const feeds *in) {
  for (size_t i = 0; i < in->n; i++)
    if (in->at[i].file)
      add_source(f, arena_printf(&f->c->arena, "the file of input %s", in->at[i].name),
                 in->at[i].file);
}

void files_print(files *f, const char *what) { add_source(f, what, NULL); }

void files_write(files *f, const char *option, const char *path) {
  diag *d = &f->c->diag;
  if (path && file_check_target(path, d)) diag_rethrow(d);
  add_target(f, option, path);
}

void files_make_folder(files *f, const char *option, const char *path) {
  diag *d = &f->c->diag;
  if (file_check_folder(path, d)) diag_rethrow(d);
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  add_target(f, option, arena_printf(&f->c->arena, "%.*s", (int)n, path));
}
