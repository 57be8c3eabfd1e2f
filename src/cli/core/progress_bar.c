/* Draws a progress bar in place on the last line of a terminal, at most every 50 ms. A lock orders
   it with lines of text, as the library reports progress and remarks on any thread. */
#include "cli/core/progress_bar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t interval_ns = 50 * (int64_t)1000000; /* between two drawings */
enum { WIDTH = 30 };

/** Verbs of the units that the library reports. */
static const char *verb_of(const char *what) {
  return !strcmp(what, "kernels") ? " compiled" : !strcmp(what, "schedules") ? " compared" : "";
}

static void draw_bar(progress *p, uint64_t done, uint64_t total) {
  char bar[WIDTH + 1];
  size_t n = strlen(p->what);
  bool is_one = (total ? total : done) == 1;
  int shown = (int)(is_one && n && p->what[n - 1] == 's' ? n - 1 : n);
  if (!total) {
    fprintf(stderr, "\r%llu %.*s%s\x1b[K", (unsigned long long)done, shown, p->what,
            verb_of(p->what));
    fflush(stderr);
    p->drawn = true;
    return;
  }
  int full = (int)((double)done / (double)total * WIDTH);
  if (full > WIDTH) full = WIDTH;
  memset(bar, '.', WIDTH);
  memset(bar, '#', (size_t)full);
  bar[WIDTH] = 0;
  fprintf(stderr, "\r[%s] %llu of %llu %.*s%s\x1b[K", bar, (unsigned long long)done,
          (unsigned long long)total, shown, p->what, verb_of(p->what));
  fflush(stderr);
  p->drawn = true;
}

static void erase_bar(progress *p) {
  if (p->drawn) fputs("\r\x1b[K", stderr);
  p->drawn = false;
}

/** Draws the bar. The first report of each unit is drawn at once, because the next may take long.
 */
static bool show_progress(void *user, const char *what, uint64_t done, uint64_t total) {
  progress *p = user;
  int64_t now = clock_now_ns();
  if (!strcmp(what, "steps")) return true; /* they have no end that is shown */
  mutex_lock(&p->lock);
  bool is_first = strncmp(p->what, what, sizeof p->what - 1) != 0;
  snprintf(p->what, sizeof p->what, "%s", what);
  if (total ? done >= total : !done) {
    erase_bar(p);
  } else if (is_first || now - p->last > interval_ns) {
    draw_bar(p, done, total);
    p->last = now;
  }
  mutex_unlock(&p->lock);
  return true;
}

void progress_init(progress *p) {
  *p = (progress){0};
  mutex_init(&p->lock);
}

void progress_free(progress *p) { mutex_free(&p->lock); }

bool progress_has_terminal(void) {
  const char *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb");
}

void progress_show(progress *p, const char *text) {
  if (!progress_has_terminal()) return;
  mutex_lock(&p->lock);
  int64_t now = clock_now_ns();
  if (now - p->last > interval_ns) {
    fprintf(stderr, "\r%s\x1b[K", text);
    fflush(stderr);
    p->drawn = true;
    p->last = now;
  }
  mutex_unlock(&p->lock);
}

tn_progress progress_callback(progress *p) {
  return progress_has_terminal() ? (tn_progress){show_progress, p, NULL}
                                 : (tn_progress){NULL, NULL, NULL};
}

void progress_clear(progress *p) {
  mutex_lock(&p->lock);
  erase_bar(p);
  mutex_unlock(&p->lock);
}

void progress_print_line(progress *p, const char *verb, const char *text) {
  mutex_lock(&p->lock);
  erase_bar(p);
  fprintf(stderr, "tenon %s: %s\n", verb, text);
  mutex_unlock(&p->lock);
}
