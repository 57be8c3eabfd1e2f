/* Tells what kinds of files there are, with Magika's network:

     filetype --model DIR PATH...

   The folder holds model.onnx, config.min.json and content_types_kb.min.json. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "classifier.h"
#include "report.h"

enum { OK, SOME_FAILED, CANNOT_START, HELP = -1, MAX_BATCH = 4096 };

static const char usage[] =
    "usage: filetype --model DIR [options] PATH...\n"
    "Tells the kind of each file. Folders are walked.\n"
    "\n"
    "  --model DIR         folder with model.onnx, config.min.json, content_types_kb.min.json\n"
    "  --batch N           run the model on up to N files at once (default 1); a file's time is\n"
    "                      then an equal share of its batch's\n"
    "  --json              print one JSON object a line\n"
    "  --scores            with --json: also the score of every class\n"
    "  --features          print the model's input of each file that needs it as JSON; no model is "
    "run\n"
    "  --no-dereference    name symbolic links as such\n"
    "  --help              print this\n"
    "\n"
    "Exit status: 0 all told, 1 some paths cannot be read, 2 bad usage or no model.\n";

typedef struct options {
  const char *model;
  size_t batch;
  bool json, scores, features, dereference;
} options;

/* Up to `batch` paths that go through the model together. */
typedef struct batch {
  int32_t *features; /* [batch, inputs], rows only of the files that need the model */
  float *scores;     /* [batch, classes], rows alike */
  finding *found;
  int *error;
  double *ms;
} batch;

typedef struct session {
  options opt;
  labels labels;
  classifier net;
  report out;
  batch batch;
  size_t inputs;
} session;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool parse_batch(const char *text, size_t *rows) {
  char *end;
  long n = strtol(text, &end, 10);
  *rows = (size_t)n;
  if (end != text && *end == '\0' && n >= 1 && n <= MAX_BATCH) return true;
  fprintf(stderr, "filetype: --batch %s: a number from 1 to %d is needed\n", text, MAX_BATCH);
  return false;
}

static int check_options(const options *o, int paths) {
  if (!o->model)
    fputs("filetype: --model is missing: the folder that scripts/get-magika.sh fills\n", stderr);
  else if (o->scores && !o->json)
    fputs("filetype: --scores needs --json\n", stderr);
  else if (paths == 0)
    fputs("filetype: no path given; see --help\n", stderr);
  else
    return OK;
  return CANNOT_START;
}

static int parse_options(int argc, char **argv, options *o) {
  static const struct option known[] = {
      {"model", required_argument, NULL, 'm'}, {"batch", required_argument, NULL, 'b'},
      {"json", no_argument, NULL, 'j'},        {"scores", no_argument, NULL, 's'},
      {"features", no_argument, NULL, 'f'},    {"no-dereference", no_argument, NULL, 'n'},
      {"help", no_argument, NULL, 'h'},        {0},
  };
  *o = (options){.batch = 1, .dereference = true};
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (c) {
    case 'm': o->model = optarg; break;
    case 'b':
      if (!parse_batch(optarg, &o->batch)) return CANNOT_START;
      break;
    case 'j': o->json = true; break;
    case 's': o->scores = true; break;
    case 'f': o->features = true; break;
    case 'n': o->dereference = false; break;
    case 'h': return HELP;
    default: return CANNOT_START;
    }
  }
  return check_options(o, argc - optind);
}

static bool batch_make(batch *b, size_t rows, size_t inputs, size_t classes) {
  b->features = calloc(rows * inputs, sizeof *b->features);
  b->scores = calloc(rows * classes, sizeof *b->scores);
  b->found = calloc(rows, sizeof *b->found);
  b->error = calloc(rows, sizeof *b->error);
  b->ms = calloc(rows, sizeof *b->ms);
  if (b->features && b->scores && b->found && b->error && b->ms) return true;
  fputs("filetype: out of memory\n", stderr);
  return false;
}

static void batch_free(batch *b) {
  free(b->features);
  free(b->scores);
  free(b->found);
  free(b->error);
  free(b->ms);
}

/* Returns the rows of features that were filled. */
static size_t read_batch(session *s, const found_path *paths, size_t count) {
  batch *b = &s->batch;
  size_t rows = 0;
  for (size_t i = 0; i < count; i++) {
    double start = now_ms();
    int32_t *row = b->features + rows * s->inputs;
    b->found[i] = UNREADABLE;
    b->error[i] = paths[i].error;
    if (!paths[i].error) {
      b->found[i] = features_read(&s->labels.format, paths[i].name, s->opt.dereference, row);
      b->error[i] = errno;
    }
    rows += b->found[i] == NEEDS_MODEL;
    b->ms[i] = now_ms() - start;
  }
  return rows;
}

static int report_batch(session *s, const found_path *paths, size_t count, double run_ms) {
  const batch *b = &s->batch;
  int status = OK;
  size_t row = 0;
  for (size_t i = 0; i < count; i++) {
    const char *name = paths[i].name;
    if (b->found[i] == UNREADABLE) {
      report_failure(&s->out, name, b->error[i]);
      status = SOME_FAILED;
    } else if (b->found[i] != NEEDS_MODEL) {
      report_verdict(&s->out, name, labels_of_finding(b->found[i]), NULL, b->ms[i]);
    } else if (s->opt.features) {
      report_features(name, b->features + row++ * s->inputs, s->inputs);
    } else {
      const float *scores = b->scores + row++ * s->labels.count;
      report_verdict(&s->out, name, labels_of_scores(&s->labels, scores), scores,
                     b->ms[i] + run_ms);
    }
  }
  return status;
}

static int tell_batch(session *s, const found_path *paths, size_t count) {
  size_t rows = read_batch(s, paths, count);
  double start = now_ms();
  bool run = rows > 0 && !s->opt.features;
  if (run && !classifier_run(&s->net, rows, s->batch.features, s->batch.scores))
    return CANNOT_START;
  return report_batch(s, paths, count, run ? (now_ms() - start) / (double)rows : 0);
}

/* The first run compiles what is needed; a file's time shall not count it. */
static bool start_model(session *s) {
  if (s->opt.features) return true;
  return classifier_open(&s->net, s->opt.model, s->inputs, s->labels.count) &&
         classifier_run(&s->net, s->opt.batch, s->batch.features, s->batch.scores);
}

static int tell_all(session *s, const path_list *paths) {
  s->inputs = s->labels.format.begin + s->labels.format.end;
  bool json = s->opt.json || s->opt.features;
  s->out = (report){&s->labels, report_width(paths), json, s->opt.scores, 0};
  int status = OK;
  double begin = now_ms();
  if (!batch_make(&s->batch, s->opt.batch, s->inputs, s->labels.count) || !start_model(s))
    status = CANNOT_START;
  double started = now_ms();
  for (size_t i = 0; i < paths->count && status != CANNOT_START; i += s->opt.batch) {
    size_t left = paths->count - i;
    int one = tell_batch(s, paths->at + i, left < s->opt.batch ? left : s->opt.batch);
    if (one > status) status = one;
  }
  if (status != CANNOT_START) report_end(&s->out, now_ms() - started, started - begin);
  batch_free(&s->batch);
  if (!s->opt.features) classifier_close(&s->net);
  return status;
}

static int tell_paths(session *s, char *const names[], int count) {
  path_list paths = {0};
  int status = OK;
  for (int i = 0; i < count && status == OK; i++)
    if (!paths_add(&paths, names[i], s->opt.dereference)) status = CANNOT_START;
  if (status == OK)
    status = tell_all(s, &paths);
  else
    fputs("filetype: out of memory\n", stderr);
  paths_free(&paths);
  return status;
}

int main(int argc, char **argv) {
  session s = {0};
  char why[512];
  int status = parse_options(argc, argv, &s.opt);
  if (status == HELP) {
    fputs(usage, stdout);
    status = OK;
  } else if (status == OK && !labels_load(&s.labels, s.opt.model, why, sizeof why)) {
    fprintf(stderr, "filetype: --model %s: %s\n", s.opt.model, why);
    status = CANNOT_START;
  } else if (status == OK) {
    status = tell_paths(&s, argv + optind, argc - optind);
    labels_free(&s.labels);
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "filetype: the output cannot be written: %s\n", strerror(errno));
    if (status == OK) status = SOME_FAILED;
  }
  return status;
}
