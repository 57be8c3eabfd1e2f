/* Implements the search for libraries of CUDA's toolkit. */
#include "device/cuda/find_toolkit.h"

#include "base/environment.h"

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

bool toolkit_find(char path[TOOLKIT_PATH_BYTES], const char *given, const char *const files[],
                  size_t n) {
  static const char usual[] =
      "/usr/local/cuda/lib64:/usr/local/cuda/lib:/opt/cuda/lib64:/usr/lib/x86_64-linux-gnu:"
      "/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib";
  const file_names names = {files, n};
  if (given)
    return snprintf(path, TOOLKIT_PATH_BYTES, "%s", given) < TOOLKIT_PATH_BYTES &&
           !access(path, R_OK);
  return find_along(path, environment_get("LD_LIBRARY_PATH"), &names) ||
         find_along(path, usual, &names);
}
