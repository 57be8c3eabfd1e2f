/* Points of timelines at which something is done, as the uses of a piece of memory: at most one of
   each timeline, the latest. The owner sees to it that one thread at a time changes a list. */
#ifndef TENON_DEVICE_STREAM_TIMELINE_POINTS_H
#define TENON_DEVICE_STREAM_TIMELINE_POINTS_H

#include "device/stream/signal.h"

typedef struct timeline_point {
  tn_signal *timeline; /* retained */
  uint64_t value;
  bool is_past; /* a use whose failure matters to nobody: a former owner's, or one that was told */
} timeline_point;

typedef struct timeline_points {
  timeline_point *at;
  size_t n, cap;
} timeline_points;

/** Adds a point, and drops those that are reached. Without memory it waits for the point instead.
 */
void timeline_points_add(timeline_points *p, const mem *m, tn_signal *timeline, uint64_t value);

/** True if all points are reached, or are of `timeline` (NULL: of none). */
bool timeline_points_are_reached(const timeline_points *p, const tn_signal *timeline);

/** Waits for all points, until a deadline of clock_now_ns (negative: none). Returns the first
    failure, which may be TN_ERR_TIMEOUT. */
tn_status timeline_points_wait(const timeline_points *p, int64_t deadline, diag *d);

/** Copies the points to an empty list; false without memory. */
bool timeline_points_copy(timeline_points *to, const timeline_points *p, const mem *m);

/** Has the failure of a timeline's point matter to nobody. */
void timeline_points_pass(timeline_points *p, const tn_signal *timeline);

/** Moves the points of a former owner of the memory to a new one's empty list. */
void timeline_points_inherit(timeline_points *p, timeline_points *from);

/** Drops all points. */
void timeline_points_clear(timeline_points *p, const mem *m);

#endif
