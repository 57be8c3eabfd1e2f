/* Implements the search for libraries of CUDA's toolkit, and their opening. */
#include "device/cuda/find_toolkit.h"

#include "base/environment.h"
#include "base/library.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** The files that are searched for, the best one first. */
typedef struct file_names {
  const char *const *at;
  size_t n;
} file_names;

/** Finds a file in the folder of `n` characters. */
static bool find_in(char path[TOOLKIT_PATH_BYTES], const char *folder, size_t n,
                    const file_names *files) {
  if (!n || n > TOOLKIT_PATH_BYTES / 2) return false;
  for (size_t i = 0; i < files->n; i++) {
    snprintf(path, TOOLKIT_PATH_BYTES, "%.*s/%s", (int)n, folder, files->at[i]);
    if (!access(path, R_OK)) return true;
  }
  return false;
}

/** Finds a file in a list of folders with colons between. */
static bool find_along(char path[TOOLKIT_PATH_BYTES], const char *list, const file_names *files) {
  while (list && *list) {
    size_t n = strcspn(list, ":");
    if (find_in(path, list, n, files)) return true;
    list += n + (list[n] == ':');
  }
  return false;
}

/** Finds the file that a user gave, or one along the folders. */
static bool find_file(char path[TOOLKIT_PATH_BYTES], const char *given, const file_names *files) {
  static const char usual[] =
      "/usr/local/cuda/lib64:/usr/local/cuda/lib:/opt/cuda/lib64:/usr/lib/x86_64-linux-gnu:"
      "/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib";
  if (given)
    return snprintf(path, TOOLKIT_PATH_BYTES, "%s", given) < TOOLKIT_PATH_BYTES &&
           !access(path, R_OK);
  return find_along(path, environment_get("LD_LIBRARY_PATH"), files) ||
         find_along(path, usual, files);
}

tn_status toolkit_find(const toolkit_library *l, char path[TOOLKIT_PATH_BYTES], diag *d) {
  const file_names files = {l->files, l->n_files};
  const char *given = environment_get(l->variable);
  diag_clear(d);
  if (find_file(path, given, &files)) return TN_OK;
  return diag_set(d, l->missing, "%s is missing (%s): %s", l->what, given ? given : l->shown,
                  l->hint);
}

tn_status toolkit_open(const toolkit_library *l, const char *const names[], size_t n,
                       void *functions, diag *d) {
  char path[TOOLKIT_PATH_BYTES];
  const library opened = {.file = path,
                          .what = l->what,
                          .version = l->version,
                          .hint = l->hint,
                          .names = names,
                          .n_names = n};
  tn_status status = toolkit_find(l, path, d);
  return status ? status : library_open(&opened, functions, d);
}
