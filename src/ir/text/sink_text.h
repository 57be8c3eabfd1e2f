/* Reads and replaces the text of a SINK, a kernel's root node: the kernel's name and, from the
   second line on, an optional schedule of its own, a list of schedule primitives ("laws", src/laws)
   as text, in which r0, r1 … are RANGEs by their ids. */
#ifndef TENON_IR_TEXT_SINK_TEXT_H
#define TENON_IR_TEXT_SINK_TEXT_H

#include "ir/core/ir.h"

/** The name of the kernel; in `a` if a schedule follows it, else in the node. */
const char *sink_name(arena *a, const node *sink);

/** The schedule, *bytes long; an empty one applies no law. NULL: the kernel has none. */
const char *sink_schedule(const node *sink, size_t *bytes);

/** Remakes a kernel with another schedule; NULL: with none. */
const node *sink_with_schedule(ir *g, const node *sink, const char *lines, size_t bytes);

/** The lines of a schedule with ranges renumbered by `name`; in `a`. */
const char *sink_schedule_rename_ranges(arena *a, const char *lines, size_t bytes,
                                        int64_t (*name)(void *user, int64_t number), void *user);

#endif
