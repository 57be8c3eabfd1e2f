/* The text of a SINK: the kernel's name and, after the end of that line, the schedule that it
   brings along: lines of laws (laws/list.h), in which r0, r1 … are RANGEs by their ids. */
#ifndef TENON_IR_SINK_H
#define TENON_IR_SINK_H

#include "ir/ir.h"

/** The bytes of a kernel's name. */
size_t sink_name_bytes(const node *sink);

/** Its name, in the arena where a schedule follows it. */
const char *sink_name(arena *a, const node *sink);

/** The schedule, *bytes long ("": as the kernel stands); NULL: it brings none. */
const char *sink_schedule(const node *sink, size_t *bytes);

/** The kernel with a schedule in the place of its own; NULL: with none. */
const node *sink_with_schedule(ir *g, const node *sink, const char *lines, size_t bytes);

/** Lines with other names of ranges: `name` gives the number for a number. */
const char *sink_lines_renamed(arena *a, const char *lines, size_t bytes,
                               int64_t (*name)(void *user, int64_t number), void *user);

#endif
