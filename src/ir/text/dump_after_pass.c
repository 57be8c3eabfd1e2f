/* Implements graph dumps: parses the option, and writes a graph as text and as a Graphviz
   drawing. */
#include "ir/text/dump_after_pass.h"

#include "base/file.h"
#include "ir/core/pass_names.h"
#include "ir/text/graphviz.h"
#include "ir/text/print.h"

#include <stdio.h>
#include <string.h>

static const char separator[] = ":after:";

/** The last ":after:" of an option; folders may contain it too. */
static const char *find_separator(const char *text) {
  const char *at = NULL;
  for (const char *next = strstr(text, separator); next; next = strstr(next + 1, separator))
    at = next;
  return at;
}

static tn_status unknown_pass(const char *name, diag *d) {
  char all[1024] = "";
  for (pass p = 0; p < PASSES; p++) {
    size_t n = strlen(all);
    snprintf(all + n, sizeof all - n, "%s%s", p ? ", " : "", pass_name(p));
  }
  return diag_set(d, TN_ERR_ARGUMENT,
                  "dump option: there is no pass '%.200s'; there are %s, and * for all", name, all);
}

tn_status dump_parse_option(dump *out, const char *option, diag *d) {
  *out = (dump){0};
  if (!option || !*option) return TN_OK;
  const char *at = find_separator(option);
  if (!at || at == option || !at[strlen(separator)])
    return diag_set(d, TN_ERR_ARGUMENT,
                    "dump option '%.200s': expected DIR:after:PASS, or DIR:after:* for all passes",
                    option);
  const char *name = at + strlen(separator);
  bool known = !strcmp(name, "*");
  for (pass p = 0; p < PASSES; p++) known |= !strcmp(name, pass_name(p));
  if (!known) return unknown_pass(name, d);
  *out = (dump){.folder = option, .folder_bytes = (size_t)(at - option), .pass = name};
  return TN_OK;
}

bool dump_is_enabled(const dump *u, const char *pass) {
  return u->pass && (!strcmp(u->pass, "*") || !strcmp(u->pass, pass));
}

/** A name with all characters but letters, digits and _ replaced, for use in a file name. */
static const char *file_name_part(arena *a, const char *name) {
  char *out = arena_printf(a, "%.80s", *name ? name : "graph");
  for (char *c = out; *c; c++) {
    bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!fine && *c != '_') *c = '_';
  }
  return out;
}

typedef struct job {
  dump *u;
  const char *pass, *name;
  const node *const *roots;
  size_t n;
  arena work;
} job;

static void raise_failure(const job *j, tn_status s) {
  if (s != TN_OK) diag_rethrow(j->work.diag);
}

static void write_files(void *arg) {
  job *j = arg;
  arena *a = &j->work;
  const char *folder = arena_printf(a, "%.*s", (int)j->u->folder_bytes, j->u->folder);
  const char *path = arena_printf(a, "%s/%04u-%s-%s", folder, j->u->written,
                                  file_name_part(a, j->name), file_name_part(a, j->pass));
  str text = str_new(a), drawing = str_new(a);
  print_graph(&text, j->roots, j->n);
  graphviz_print(&drawing, j->roots, j->n);
  raise_failure(j, file_create_folders(folder, 0700, a->diag));
  raise_failure(j, file_write(arena_printf(a, "%s.ir", path), text.at, text.n, a->diag));
  raise_failure(j, file_write(arena_printf(a, "%s.dot", path), drawing.at, drawing.n, a->diag));
  j->u->written++;
}

tn_status dump_after(dump *u, const char *pass, const char *name, const node *const roots[],
                     size_t n, const mem *m, diag *d) {
  if (!dump_is_enabled(u, pass)) return TN_OK;
  job j = {.u = u, .pass = pass, .name = name, .roots = roots, .n = n};
  arena_init(&j.work, m, d);
  tn_status s = diag_catch(d, write_files, &j);
  arena_free(&j.work);
  return s;
}
