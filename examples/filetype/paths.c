#define _POSIX_C_SOURCE 200809L
#include "paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Takes `name` over, also on failure. */
static bool append(path_list *list, char *name, int error) {
  if (name && list->count == list->room) {
    size_t room = list->room ? 2 * list->room : 64;
    found_path *at = realloc(list->at, room * sizeof *at);
    if (at) {
      list->at = at;
      list->room = room;
    }
  }
  if (!name || list->count == list->room) {
    free(name);
    return false;
  }
  list->at[list->count++] = (found_path){name, error};
  return true;
}

static char *join(const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
  char *path = malloc(size);
  if (path) snprintf(path, size, "%s%s%s", folder, slash, name);
  return path;
}

static int by_name_falling(const void *a, const void *b) {
  return -strcmp(((const found_path *)a)->name, ((const found_path *)b)->name);
}

static bool is_folder(const char *path, bool dereference) {
  struct stat st;
  return (dereference ? stat : lstat)(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns 0, or the errno of what failed. */
static int list_folder(path_list *list, const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) return errno;
  int error = 0;
  for (const struct dirent *e; !error && (errno = 0, e = readdir(dir));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (!append(list, join(folder, e->d_name), 0)) error = ENOMEM;
  }
  if (!error) error = errno;
  closedir(dir);
  return error;
}

/* Pushes the folder's entries so that the first name is popped first. */
static int push_folder(path_list *stack, const char *folder) {
  size_t first = stack->count;
  int error = list_folder(stack, folder);
  if (stack->count > first)
    qsort(stack->at + first, stack->count - first, sizeof *stack->at, by_name_falling);
  return error;
}

bool paths_add(path_list *list, const char *path, bool dereference) {
  path_list stack = {0};
  bool ok = append(&stack, strdup(path), 0);
  while (ok && stack.count > 0) {
    char *name = stack.at[--stack.count].name;
    if (!is_folder(name, dereference)) {
      ok = append(list, name, 0);
    } else {
      int error = push_folder(&stack, name);
      ok = error != ENOMEM;
      if (ok && error)
        ok = append(list, name, error);
      else
        free(name);
    }
    dereference = false;
  }
  paths_free(&stack);
  return ok;
}

void paths_free(path_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->at[i].name);
  free(list->at);
  *list = (path_list){0};
}
