#ifndef FILETYPE_LABELS_H
#define FILETYPE_LABELS_H

#include <jansson.h>

#include "features.h"

/* The facts that Magika knows besides the network's weights: config.min.json (input format,
   classes, thresholds, overwritten labels) and content_types_kb.min.json (what each label means).
 */
typedef struct labels {
  feature_format format;
  double confidence; /* the threshold of labels that have none of their own */
  size_t count;      /* the model's classes */
  json_t *config, *types;
  json_t *names, *thresholds, *overwrites; /* parts of config */
} labels;

typedef struct content_type {
  const char *mime, *group, *description;
  bool is_text;
} content_type;

typedef struct verdict {
  const char *label;  /* what the file is said to be */
  const char *raw;    /* the model's best class, "undefined" where it was not asked */
  const char *reason; /* why the two differ: "none", "low_confidence", "overwrite_map" */
  double score;       /* of the best class, 1 where the model was not asked */
} verdict;

/* Reads both files from `folder`. On failure writes a message into `why` and owns nothing. */
bool labels_load(labels *l, const char *folder, char *why, size_t why_size);
void labels_free(labels *l);

/* Of any label that a verdict holds; the strings belong to `l`. */
content_type labels_type(const labels *l, const char *label);

/* `scores` are the model's, one a class. The label is kept where the score reaches its threshold;
   below, all that is said is text or not. */
verdict labels_of_scores(const labels *l, const float *scores);

/* Of a finding that needs no model and is not UNREADABLE. */
verdict labels_of_finding(finding f);

#endif
