/* Points of timelines at which something is done, as the uses of a piece of memory: at most one of
   each timeline, the latest. The owner sees to it that one thread at a time changes a list. */
#ifndef TENON_DEVICE_STREAM_TIMELINE_POINTS_H
#define TENON_DEVICE_STREAM_TIMELINE_POINTS_H

#include "device/stream/signal.h"

typedef struct timeline_point {
  tn_signal *timeline; /* retained */
  uint64_t value;
  uint64_t written; /* the latest write, whose failure spoils the contents; 0: none, or told */
} timeline_point;

typedef struct timeline_points {
  timeline_point *at;
  size_t n, cap;
} timeline_points;

/** Drops the points that are reached, unless they are failed writes, and forgets good writes. */
void timeline_points_drop_reached(timeline_points *p);

/** How commands use a piece of memory. */
typedef enum point_use { POINT_READS, POINT_WRITES_PART, POINT_WRITES } point_use;

/** Adds a point, and drops those that are reached; a write of the whole memory makes failed ones
    good. Of a timeline the last write alone is known: who writes a part has read the rest, or is
    told of the failure. Without memory it waits for the point instead, whose failure is lost. */
void timeline_points_add(timeline_points *p, const mem *m, tn_signal *timeline, uint64_t value,
                         point_use use);

/** True if all points are reached, or are of `timeline` (NULL: of none). */
bool timeline_points_are_reached(const timeline_points *p, const tn_signal *timeline);

/** Waits for all points, failed ones too, until a deadline of clock_now_ns (negative: none), which
    is TN_ERR_TIMEOUT. Returns the failure of a write. */
tn_status timeline_points_wait(const timeline_points *p, int64_t deadline, diag *d);

/** Copies the points to an empty list; false without memory. */
bool timeline_points_copy(timeline_points *to, const timeline_points *p, const mem *m);

/** Forgets the writes of a timeline (NULL: of all): their failure was told, or matters to nobody.
 */
void timeline_points_forget_writes(timeline_points *p, const tn_signal *timeline);

/** Moves the points of a former owner of the memory to a new one's empty list. */
void timeline_points_inherit(timeline_points *p, timeline_points *from);

/** Drops all points. */
void timeline_points_clear(timeline_points *p, const mem *m);

#endif
