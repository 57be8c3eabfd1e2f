/* Fuzzes the IR's parser, verifier and printers: arbitrary bytes are refused as text of a graph, or
   make a graph that is verified, drawn, and printed to a text that parses to the same text. Seeds
   are the graphs of the IR tests. */
#include "ir/text/graphviz.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify_graph.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct job {
  diag d;
  arena a;
  ir *first, *second;
  const char *text;
  size_t bytes;
  bool parsed;
} job;

static void verify_stages(job *j, const node_list *roots) {
  diag d = {0};
  for (int stage = LEVEL_TENSOR; stage <= LEVEL_LINEAR; stage *= 2) {
    tn_status s = verify_graph(roots->at, roots->n, (enum stage)stage, &mem_system, &d);
    if (s != TN_OK && s != TN_ERR_INTERNAL) abort();
  }
  str drawing = str_new(&j->a);
  graphviz_print(&drawing, roots->at, roots->n);
}

static void round_trip(void *arg) {
  job *j = arg;
  node_list roots = parse_graph(j->first, &j->a, j->text, j->bytes);
  j->parsed = true;
  str once = str_new(&j->a), twice = str_new(&j->a);
  print_graph(&once, roots.at, roots.n);
  node_list again = parse_graph(j->second, &j->a, once.at, once.n);
  print_graph(&twice, again.at, again.n);
  if (once.n != twice.n || memcmp(once.at, twice.at, once.n)) abort();
  verify_stages(j, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  bool counted = bytes % 2;
  job j = {.text = (const char *)data, .bytes = bytes};
  arena_init(&j.a, &mem_system, &j.d);
  j.first = ir_new(&mem_system, &j.d, counted);
  j.second = ir_new(&mem_system, &j.d, !counted);
  if (!j.first || !j.second) abort();
  tn_status s = diag_catch(&j.d, round_trip, &j);
  if (s != TN_OK && (j.parsed || s != TN_ERR_FORMAT || !j.d.text[0])) abort();
  ir_free(j.first);
  ir_free(j.second);
  arena_free(&j.a);
  return 0;
}
