#include "classifier.h"

#include <stdio.h>

bool classifier_open(classifier *c, const char *folder, size_t features, size_t classes) {
  *c = (classifier){.tn = tn_open(NULL), .features = features, .classes = classes};
  char path[4096];
  tn_model *model;
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  tn_model_load(c->tn, path, NULL, &model);
  if (tn_model_bind(model, &c->run) == TN_OK) return true;
  fprintf(stderr, "filetype: %s: %s\n", path, tn_message(c->tn));
  return false;
}

bool classifier_run(classifier *c, size_t n, const int32_t *features, float *scores) {
  int64_t rows = (int64_t)n, columns = (int64_t)c->features;
  tn_binding_input(c->run, "bytes", tn_shape(rows, columns), TN_I32, features,
                   n * c->features * sizeof *features);
  tn_status s = tn_binding_run(c->run);
  if (s == TN_OK)
    s = tn_binding_read(c->run, "target_label", TN_F32, scores, n * c->classes * sizeof *scores);
  if (s == TN_OK) return true;
  fprintf(stderr, "filetype: the model cannot be run: %s\n", tn_binding_message(c->run));
  return false;
}

void classifier_close(classifier *c) { tn_close(c->tn); }
