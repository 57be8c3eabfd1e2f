/* Strings by number: tensors of strings hold the numbers, so that kernels move and compare them as
   they do integers. Equal strings have one number; the empty one is 0. Strings stay until the table
   is freed. Any thread. */
#ifndef TENON_FORMATS_HOST_STRING_TABLE_H
#define TENON_FORMATS_HOST_STRING_TABLE_H

#include "base/diag.h"
#include "base/mem.h"

typedef struct string_table string_table;

/** A table with the empty string; NULL without memory. */
string_table *string_table_open(const mem *m);
void string_table_free(string_table *t); /* NULL is allowed */

/** The allocator of the table. */
const mem *string_table_mem(const string_table *t);

/** The number of a string of n bytes; -1 without memory. */
int64_t string_table_add(string_table *t, const char *text, size_t n);

/** The string of a number, with a NUL behind its n bytes; NULL: there is none. */
const char *string_table_get(string_table *t, int64_t number, size_t *n);

#endif
