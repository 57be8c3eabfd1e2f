/* Schedules of kernels: lists of schedule primitives ("laws") as text, one a line, as a schedule is
   in Halide and TVM. A schedule can be parsed, printed and applied to any kernel that has the
   ranges, stages and expressions that it names.

     SPLIT r0 by 16: r4 r5
     KIND r5 vector

   laws.def defines the lines; blank lines and text after a `;` are ignored. Ranges are named by
   their ids in the kernel's text. New ranges are named after the colon and by these names in later
   lines, so a schedule does not depend on the ids that ranges get when it is applied. "-" stands
   for a range that does not exist because its extent would be 1; a line that names such a range
   does nothing. */
#ifndef TENON_LAWS_KERNEL_SCHEDULE_H
#define TENON_LAWS_KERNEL_SCHEDULE_H

#include "base/str.h"
#include "laws/laws.h"

enum { LAW_NO_RANGE = -1 };

/** One line. Ranges are given by number, or LAW_NO_RANGE. */
typedef struct law_schedule_line {
  law which;
  char subject_kind; /* 'r': a range; 's', 'e': a STAGE without ranges, an expression, by number */
  int64_t subject, number, other;
  bool is_multiple;
  VEC(int64_t) list;
  VEC(int64_t) new_ranges; /* names after the colon */
} law_schedule_line;
typedef VEC(law_schedule_line) law_schedule;

/** Parses a text into the arena. Raises TN_ERR_FORMAT with the line and the fault. */
law_schedule law_schedule_parse(arena *a, const char *text, size_t bytes);

/** Appends the text of a schedule; parsing it gives an equal schedule. */
void law_schedule_print(str *out, const law_schedule *list);
/** Appends one line, without a line break. */
void law_schedule_print_line(str *out, const law_schedule_line *line);

/** trace_to_schedule.c: the schedule of some steps, in the names of the text of `from`. Raises
    TN_ERR_INTERNAL if a subject is not in its kernel. */
law_schedule law_schedule_of_trace(laws *l, const node *from, const law_steps *steps);

/** apply_schedule.c: the kernel after all laws of a schedule. Raises TN_ERR_ARGUMENT with the line
   and the reason if a law is refused, names something that the kernel does not have, or makes the
   kernel too large. */
const node *law_schedule_apply(laws *l, const node *sink, const law_schedule *list);

/** apply_schedule.c: applies one law; NULL if it is refused. `principals` has room for
    law_named_ranges pointers. */
const node *law_apply(laws *l, const node *sink, law which, const law_args *args,
                      const node *principals[]);

/** trace_to_schedule.c: ranges of `to` that `from` lacks, those of outer binders first. */
node_list law_find_new_ranges(laws *l, const node *from, const node *to);

#endif
