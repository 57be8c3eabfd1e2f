#include "labels.h"

#include <stdio.h>
#include <string.h>

static const char *const finding_label[] = {
    [IS_EMPTY] = "empty",         [IS_TEXT] = "txt",
    [IS_BINARY] = "unknown",      [IS_SYMLINK] = "symlink",
    [IS_DIRECTORY] = "directory", [NEEDS_MODEL] = "undefined",
};
enum { FINDING_LABELS = sizeof finding_label / sizeof *finding_label, MAX_BLOCK = 1 << 24 };

static json_t *load(const char *folder, const char *name, char *why, size_t why_size) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
    snprintf(why, why_size, "the folder's name is too long");
    return NULL;
  }
  json_error_t error;
  json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (!json && error.line < 0)
    snprintf(why, why_size, "%s", error.text);
  else if (!json)
    snprintf(why, why_size, "%s:%d: %s", path, error.line, error.text);
  return json;
}

static bool unpack_type(const labels *l, const char *label, content_type *t) {
  json_t *mimes, *groups, *descriptions;
  int is_text;
  json_t *type = json_object_get(l->types, label);
  if (!type || json_unpack(type, "{s:o, s:o, s:o, s:b}", "mime_type", &mimes, "group", &groups,
                           "description", &descriptions, "is_text", &is_text) != 0)
    return false;
  const char *mime = json_string_value(mimes), *group = json_string_value(groups);
  const char *description = json_string_value(descriptions);
  t->mime = mime ? mime : is_text ? "text/plain" : "application/octet-stream";
  t->group = group ? group : "unknown";
  t->description = description ? description : label;
  t->is_text = is_text;
  return true;
}

static bool is_known(const labels *l, const char *label) {
  content_type type;
  return label && unpack_type(l, label, &type);
}

/* Whatever a verdict can name is looked up here once, so that no later look-up fails. */
static const char *unknown_label(const labels *l) {
  size_t i;
  json_t *name;
  const char *key;
  json_array_foreach(l->names, i, name) {
    if (!is_known(l, json_string_value(name))) return "target_labels_space";
  }
  json_object_foreach(l->overwrites, key, name) {
    if (!is_known(l, json_string_value(name))) return "overwrite_map";
  }
  json_object_foreach(l->thresholds, key, name) {
    if (!json_is_number(name)) return "thresholds";
  }
  for (i = 0; i < FINDING_LABELS; i++)
    if (!is_known(l, finding_label[i])) return finding_label[i];
  return NULL;
}

static bool read_config(labels *l, char *why, size_t why_size) {
  json_int_t begin, middle, end, block, least;
  int offsets, padding;
  json_error_t error;
  if (json_unpack_ex(
          l->config, &error, 0, "{s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:F, s:o, s:o, s:o}",
          "beg_size", &begin, "mid_size", &middle, "end_size", &end, "block_size", &block,
          "min_file_size_for_dl", &least, "padding_token", &padding, "use_inputs_at_offsets",
          &offsets, "medium_confidence_threshold", &l->confidence, "target_labels_space", &l->names,
          "thresholds", &l->thresholds, "overwrite_map", &l->overwrites) != 0) {
    snprintf(why, why_size, "config.min.json: %s", error.text);
    return false;
  }
  if (middle != 0 || offsets || least < 1 || begin < least || end < 1 || block <= begin ||
      block <= end || block > MAX_BLOCK) {
    snprintf(why, why_size, "config.min.json: asks for an input of another form than is known");
    return false;
  }
  l->format = (feature_format){(size_t)begin, (size_t)end, (size_t)block, (size_t)least, padding};
  l->count = json_array_size(l->names);
  if (l->count > 0 && json_is_object(l->thresholds) && json_is_object(l->overwrites)) return true;
  snprintf(why, why_size, "config.min.json: labels, thresholds or overwrite map have a wrong form");
  return false;
}

bool labels_load(labels *l, const char *folder, char *why, size_t why_size) {
  *l = (labels){0};
  l->config = load(folder, "config.min.json", why, why_size);
  if (l->config) l->types = load(folder, "content_types_kb.min.json", why, why_size);
  if (l->types && read_config(l, why, why_size)) {
    const char *wrong = unknown_label(l);
    if (!wrong) return true;
    snprintf(why, why_size, "content_types_kb.min.json does not match config.min.json: %s", wrong);
  }
  labels_free(l);
  return false;
}

void labels_free(labels *l) {
  json_decref(l->config);
  json_decref(l->types);
  *l = (labels){0};
}

content_type labels_type(const labels *l, const char *label) {
  content_type type = {"application/octet-stream", "unknown", label, false};
  unpack_type(l, label, &type);
  return type;
}

static size_t best_of(const float *scores, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; i++)
    if (scores[i] > scores[best]) best = i;
  return best;
}

verdict labels_of_scores(const labels *l, const float *scores) {
  size_t best = best_of(scores, l->count);
  verdict v = {.score = scores[best], .reason = "none"};
  v.raw = v.label = json_string_value(json_array_get(l->names, best));
  const json_t *other = json_object_get(l->overwrites, v.raw);
  const json_t *threshold = json_object_get(l->thresholds, v.raw);
  if (other) v.label = json_string_value(other);
  if (!(v.score >= (threshold ? json_number_value(threshold) : l->confidence))) {
    v.label = finding_label[labels_type(l, v.label).is_text ? IS_TEXT : IS_BINARY];
    v.reason = "low_confidence";
  } else if (other) {
    v.reason = "overwrite_map";
  }
  if (strcmp(v.raw, v.label) == 0) v.reason = "none";
  return v;
}

verdict labels_of_finding(finding f) {
  return (verdict){finding_label[f], finding_label[NEEDS_MODEL], "none", 1};
}
