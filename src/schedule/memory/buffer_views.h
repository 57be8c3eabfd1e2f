/* Gives kernels that access a part of an array the part as a buffer of its own, a view. */
#ifndef TENON_SCHEDULE_MEMORY_BUFFER_VIEWS_H
#define TENON_SCHEDULE_MEMORY_BUFFER_VIEWS_H

#include "schedule/core/schedule_types.h"

/** Replaces parts of arrays that several kernels write by views, in all kernels. */
void buffer_views_make(ir *g, schedule *s);

#endif
