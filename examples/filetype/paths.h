#ifndef FILETYPE_PATHS_H
#define FILETYPE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct found_path {
  char *name;
  int error; /* errno of a folder that could not be listed, else 0 */
} found_path;

typedef struct path_list {
  found_path *at;
  size_t count, room;
} path_list;

/* Appends `path`, or if it is a folder everything in it, in the order of the names' bytes. A
   symbolic link met on the way is listed and not entered; `path` itself is entered if
   `dereference`. False when memory runs out; what was listed stays. */
bool paths_add(path_list *list, const char *path, bool dereference);
void paths_free(path_list *list);

#endif
