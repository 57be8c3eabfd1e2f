/* Reads the process's environment variables. They decide which compiler is executed and which
   folder code is loaded from, so they are ignored where a program has more rights than the user who
   starts it (set-user-id and the like, AT_SECURE in getauxval(3)). */
#ifndef TENON_BASE_ENVIRONMENT_H
#define TENON_BASE_ENVIRONMENT_H

/** The value of a variable; NULL where it is unset, empty or ignored. */
const char *environment_get(const char *name);

/** The variables, as "NAME=value" up to NULL, that programs inherit: `environ`, or none where they
    are ignored. */
char *const *environment_inherited(void);

#endif
