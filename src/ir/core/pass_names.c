/* Maps compiler passes to their names. */
#include "ir/core/pass_names.h"

static const char *const names[] = {
#define PASS_NAME(name, text) [name] = text,
    PASS_LIST(PASS_NAME)
#undef PASS_NAME
};

const char *pass_name(pass p) { return names[p]; }
