/* Reads environment variables by secure_getenv(3), which finds none where the program has more
   rights than the user who starts it (AT_SECURE). */
#include "base/environment.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

const char *environment_get(const char *name) {
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

char *const *environment_inherited(void) {
  static char *const none[] = {NULL};
  return environ && !getauxval(AT_SECURE) ? environ : none;
}
