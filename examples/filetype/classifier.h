#ifndef FILETYPE_CLASSIFIER_H
#define FILETYPE_CLASSIFIER_H

#include <tenon/tenon.h>

/* The network: "bytes" i32[n, features] to "target_label" f32[n, classes], for any n. */
typedef struct classifier {
  tn_context *tn;
  tn_binding *run;
  size_t features, classes;
} classifier;

/* On failure prints why; classifier_close is due in either case. */
bool classifier_open(classifier *c, const char *folder, size_t features, size_t classes);
bool classifier_run(classifier *c, size_t n, const int32_t *features, float *scores);
void classifier_close(classifier *c);

#endif
