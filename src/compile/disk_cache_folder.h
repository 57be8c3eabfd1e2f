/* Finds and opens the folder of the disk cache. It holds code that will be run: it is used only if
   it belongs to the user alone, and no link in it is followed. */
#ifndef TENON_COMPILE_DISK_CACHE_FOLDER_H
#define TENON_COMPILE_DISK_CACHE_FOLDER_H

#include "base/file.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { DISK_CACHE_PATH_BYTES = FILE_PATH_BYTES };

/** The path of the folder: `given`, made absolute; if that is NULL $XDG_CACHE_HOME/tenon, else
    $HOME/.cache/tenon, if HOME is an existing folder. TN_ERR_IO if there is no such place. */
tn_status disk_cache_folder_path(const char *given, char path[DISK_CACHE_PATH_BYTES], diag *d);

/** Opens the folder, and with `make` creates it; *fd is -1 on failure, and if it does not exist and
    is not made. TN_ERR_IO for a folder that cannot be opened or made, that is a link, that others
    own or may write to, or whose lock is no file. */
tn_status disk_cache_folder_open(const char *path, bool make, int *fd, diag *d);

/** Why a file in the folder may not be used, by what fstat tells of it; NULL if it is a regular
   file that only this user can write. */
const char *disk_cache_folder_file_fault(const struct stat *s);

/** The name of the lock file in the folder. */
extern const char disk_cache_lock_name[];

#endif
