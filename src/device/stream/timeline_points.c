/* Implements lists of points of timelines, which are short: one for each queue that uses the same
   memory at a time. */
#include "device/stream/timeline_points.h"

static bool is_reached(const timeline_point *p) { return signal_get(p->timeline) >= p->value; }

/** The failure of a point's latest write, which is TN_ERR_TIMEOUT as long as it has not ended. */
static tn_status check_write(const timeline_point *p, diag *d) {
  return p->written ? signal_wait(p->timeline, p->written, 0, d) : TN_OK;
}

void timeline_points_drop_reached(timeline_points *p) {
  size_t kept = 0;
  diag unread;
  diag_clear(&unread);
  for (size_t i = 0; i < p->n; i++) {
    timeline_point *k = &p->at[i];
    if (k->written && check_write(k, &unread) == TN_OK) k->written = 0;
    if (is_reached(k) && !k->written)
      signal_release(k->timeline);
    else
      p->at[kept++] = *k;
  }
  p->n = kept;
}

void timeline_points_add(timeline_points *p, const mem *m, tn_signal *timeline, uint64_t value,
                         point_use use) {
  uint64_t written = use == POINT_READS ? 0 : value;
  if (use == POINT_WRITES) timeline_points_forget_writes(p, NULL);
  timeline_points_drop_reached(p);
  for (size_t i = 0; i < p->n; i++) {
    timeline_point *k = &p->at[i];
    if (k->timeline != timeline) continue;
    if (k->value < value) k->value = value;
    if (k->written < written) k->written = written;
    return;
  }
  if (p->n == p->cap) {
    size_t cap = p->cap ? p->cap * 2 : 2;
    timeline_point *more = mem_resize(m, p->at, p->cap * sizeof *more, cap * sizeof *more);
    diag unread;
    if (!more) {
      diag_clear(&unread);
      signal_wait(timeline, value, -1, &unread);
      return;
    }
    p->at = more;
    p->cap = cap;
  }
  p->at[p->n++] = (timeline_point){signal_retain(timeline), value, written};
}

bool timeline_points_are_reached(const timeline_points *p, const tn_signal *timeline) {
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i].timeline != timeline && !is_reached(&p->at[i])) return false;
  return true;
}

tn_status timeline_points_wait(const timeline_points *p, int64_t deadline, diag *d) {
  tn_status status = TN_OK;
  for (size_t i = 0; i < p->n; i++) {
    diag end;
    diag_clear(&end);
    int64_t left = deadline < 0 ? -1 : deadline - clock_now_ns();
    if (deadline >= 0 && left < 0) left = 0;
    signal_wait(p->at[i].timeline, p->at[i].value, left, &end);
    if (is_reached(&p->at[i])) continue;
    d->failure = end.failure;
    return TN_ERR_TIMEOUT;
  }
  for (size_t i = 0; i < p->n && !status; i++) status = check_write(&p->at[i], d);
  return status;
}

bool timeline_points_copy(timeline_points *to, const timeline_points *p, const mem *m) {
  if (!p->n) return true;
  to->at = mem_alloc(m, p->n * sizeof *to->at);
  if (!to->at) return false;
  to->n = to->cap = p->n;
  for (size_t i = 0; i < p->n; i++) {
    to->at[i] = p->at[i];
    signal_retain(to->at[i].timeline);
  }
  return true;
}

void timeline_points_forget_writes(timeline_points *p, const tn_signal *timeline) {
  for (size_t i = 0; i < p->n; i++)
    if (!timeline || p->at[i].timeline == timeline) p->at[i].written = 0;
}

void timeline_points_inherit(timeline_points *p, timeline_points *from) {
  timeline_points_forget_writes(from, NULL);
  timeline_points_drop_reached(from);
  *p = *from;
  *from = (timeline_points){0};
}

void timeline_points_clear(timeline_points *p, const mem *m) {
  for (size_t i = 0; i < p->n; i++) signal_release(p->at[i].timeline);
  mem_free(m, p->at, p->cap * sizeof *p->at);
  *p = (timeline_points){0};
}
