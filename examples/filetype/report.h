#ifndef FILETYPE_REPORT_H
#define FILETYPE_REPORT_H

#include "labels.h"
#include "paths.h"

typedef struct report {
  const labels *labels;
  int width;   /* columns for the path, where lines are text */
  bool json;   /* an object a line, else aligned text */
  bool scores; /* every class's score too */
  size_t told; /* verdicts so far */
} report;

/* Columns that the longest path takes, within reason. */
int report_width(const path_list *paths);

/* After all lines, if there are any, how many they are and how long they took. Nothing with `json`.
 */
void report_end(const report *r, double ms, double start_ms);

/* One line to the standard output, below the heads of the columns. `scores` may be NULL. */
void report_verdict(report *r, const char *path, verdict v, const float *scores, double ms);
void report_features(const char *path, const int32_t *features, size_t count);

/* A line to the standard error, and with `json` an object to the standard output. */
void report_failure(const report *r, const char *path, int error);

#endif
