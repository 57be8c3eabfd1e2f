#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 48 };

/* Characters of UTF-8: its continuation bytes take no column. */
static int columns(const char *text) {
  int n = 0;
  for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

int report_width(const path_list *paths) {
  int width = (int)sizeof "file" - 1;
  for (size_t i = 0; i < paths->count; i++) {
    int n = columns(paths->at[i].name);
    if (n > width) width = n;
  }
  return width < MAX_WIDTH ? width : MAX_WIDTH;
}

/* A name need not be UTF-8, which JSON is: then what is not ASCII is written as \xNN. */
static json_t *json_path(const char *path) {
  json_t *string = json_string(path);
  char *escaped = string ? NULL : malloc(4 * strlen(path) + 1);
  if (!escaped) return string;
  char *to = escaped;
  for (; *path; path++) {
    unsigned char c = (unsigned char)*path;
    to += sprintf(to, c < 0x80 ? "%c" : "\\x%02x", c);
  }
  string = json_string(escaped);
  free(escaped);
  return string;
}

static void print_json(json_t *object) {
  if (object) json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
  putchar('\n');
  json_decref(object);
}

static json_t *json_scores(const float *scores, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(array, json_real(scores[i]));
  return array;
}

static void print_object(const report *r, const char *path, verdict v, const float *scores,
                         double ms) {
  content_type type = labels_type(r->labels, v.label);
  json_t *object =
      json_pack("{s:o, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:f, s:f}", "path", json_path(path),
                "label", v.label, "description", type.description, "mime_type", type.mime, "group",
                type.group, "is_text", type.is_text, "model_label", v.raw, "overwrite_reason",
                v.reason, "score", v.score, "ms", ms);
  if (r->scores && scores)
    json_object_set_new(object, "scores", json_scores(scores, r->labels->count));
  print_json(object);
}

static void print_path(const char *path, int width) {
  for (int pad = width - columns(path); *path || pad-- > 0; *path ? path++ : path)
    putchar(!*path ? ' ' : (unsigned char)*path < ' ' || *path == 127 ? '?' : *path);
}

static void print_heads(const report *r) {
  print_path("file", r->width);
  printf("  %-16s %6s %11s  %-11s %-28s %s\n", "label", "score", "time", "group", "MIME type",
         "description");
}

void report_end(const report *r, double ms, double start_ms) {
  if (r->json || !r->told) return;
  printf("\n%zu file%s in %.1f ms, after %.0f ms to load and compile the model\n", r->told,
         r->told == 1 ? "" : "s", ms, start_ms);
}

void report_verdict(report *r, const char *path, verdict v, const float *scores, double ms) {
  bool is_first = !r->told++;
  if (r->json) {
    print_object(r, path, v, scores, ms);
    return;
  }
  if (is_first) print_heads(r);
  content_type type = labels_type(r->labels, v.label);
  print_path(path, r->width);
  printf("  %-16s %5.1f%% %8.3f ms  %-11s %-28s %s\n", v.label, 100 * v.score, ms, type.group,
         type.mime, type.description);
}

void report_features(const char *path, const int32_t *features, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(array, json_integer(features[i]));
  print_json(json_pack("{s:o, s:o}", "path", json_path(path), "features", array));
}

void report_failure(const report *r, const char *path, int error) {
  fprintf(stderr, "filetype: %s: %s\n", path, strerror(error));
  if (r->json)
    print_json(json_pack("{s:o, s:s}", "path", json_path(path), "error", strerror(error)));
}
