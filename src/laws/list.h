/* Schedules: lists of laws. One prints, parses, and is applied to any kernel that has what its
   lines name.

     SPLIT r0 by 16: r4 r5
     KIND r5 vector

   Lines and what stands in them are told in laws.def; blank lines and what follows a `;` are left
   out. Ranges are named by the ids that they have in the kernel's text; what a law makes is named
   after the colon, and by these names in later lines: so a list does not depend on the numbers that
   ranges get when it is applied. "-" stands for a range that is not there, since it would have one
   index; a line that names one that turned out so does nothing. */
#ifndef TENON_LAWS_LIST_H
#define TENON_LAWS_LIST_H

#include "base/str.h"
#include "laws/laws.h"

enum { NO_RANGE = -1 };

/** One line. Ranges are their numbers, or NO_RANGE. */
typedef struct law_line {
  law which;
  char subject_kind; /* 'r': a range; 's', 'e': a STAGE without ranges, an expression, by number */
  int64_t subject, number, other;
  bool is_multiple;
  VEC(int64_t) list;
  VEC(int64_t) made; /* as many as are named */
} law_line;
typedef VEC(law_line) law_list;

/** Reads a text. Lists are in the arena. Raises TN_ERR_FORMAT with the line and what is wrong. */
law_list law_list_parse(arena *a, const char *text, size_t bytes);

/** Appends the text; what law_list_parse reads of it is the same list. */
void law_list_print(str *out, const law_list *list);
/** One line, without its end. */
void law_line_print(str *out, const law_line *line);

/** naming.c: what was done to `from`, in the names of its text. Raises TN_ERR_INTERNAL where a
    law's subject is not in its kernel. */
law_list law_list_of(laws *l, const node *from, const law_steps *steps);

/** apply.c: the kernel after all laws of a list. Raises TN_ERR_ARGUMENT with the line and the
    reason where one is refused, names what the kernel does not have or makes it too large. */
const node *law_list_apply(laws *l, const node *sink, const law_list *list);

/** apply.c: one law with its arguments; NULL if it refuses. `principals` has room for what it
    names. */
const node *law_apply(laws *l, const node *sink, law which, const law_args *args,
                      const node *principals[]);

/** naming.c: the ranges of a kernel that another one lacks, those of outer binders first. */
node_list law_new_ranges(laws *l, const node *from, const node *made);

#endif
