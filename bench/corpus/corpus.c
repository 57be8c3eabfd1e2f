/* Implements recordings of kernels. A kernel is always scheduled from its text, by the recorder
   too, so that its hash depends on the recording alone. */
#include "bench/corpus/corpus.h"

#include "compile/cache_keys.h"
#include "ir/text/parse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Text. */

/** The numbers of a `target` line. */
enum { TARGET_NUMBERS = 18 };

void corpus_write_target(FILE *to, const codegen_options *o) {
  const target *t = &o->target;
  const tn_hardware *h = &t->hardware;
  const uint64_t n[TARGET_NUMBERS] = {
      t->vector_bytes, t->registers,  t->threads,       t->index32,        t->arguments,
      t->scratch,      h->l1_bytes,   h->l2_bytes,      h->l3_bytes,       h->l3_cores,
      h->line_bytes,   h->page_bytes, h->cores,         t->rules.lacks[0], t->rules.lacks[1],
      t->rules.f16,    t->rules.bf16, (uint64_t)o->math};
  fprintf(to, "target");
  for (size_t i = 0; i < TARGET_NUMBERS; i++) fprintf(to, " %" PRIu64, n[i]);
  fprintf(to, "\n");
}

static codegen_options parse_target(const char *line) {
  uint64_t n[TARGET_NUMBERS];
  char *at = (char *)line;
  for (size_t i = 0; i < TARGET_NUMBERS; i++) n[i] = strtoull(at, &at, 10);
  return (codegen_options){
      .target = {.vector_bytes = (uint16_t)n[0],
                 .registers = (uint16_t)n[1],
                 .threads = n[2] != 0,
                 .index32 = n[3] != 0,
                 .arguments = (uint16_t)n[4],
                 .scratch = n[5],
                 .hardware = {.l1_bytes = n[6],
                              .l2_bytes = n[7],
                              .l3_bytes = n[8],
                              .l3_cores = (uint32_t)n[9],
                              .line_bytes = (uint32_t)n[10],
                              .page_bytes = (uint32_t)n[11],
                              .cores = (uint32_t)n[12]},
                 .rules = {.lacks = {n[13], n[14]}, .f16 = n[15] != 0, .bf16 = n[16] != 0}},
      .math = (int)n[17]};
}

/** The text behind a word that a line begins with; NULL: another line. */
static char *after_word(char *line, const char *word) {
  size_t n = strlen(word);
  return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

/** Cuts a line at its next space, and returns what follows. */
static char *cut_word(char *line) {
  char *space = strchr(line, ' ');
  if (!space) return line + strlen(line);
  *space = 0;
  return space + 1;
}

static recorded_schedule parse_schedule(char *line) {
  char *hash = cut_word(line), *ns = cut_word(hash);
  return (recorded_schedule){line, hash, strtod(ns, NULL)};
}

corpus corpus_read(arena *a, char *text) {
  corpus c = {0};
  str graph = str_new(a);
  for (char *line = text, *next; line && *line; line = next) {
    char *end = strchr(line, '\n'), *rest;
    next = end ? end + 1 : NULL;
    if (end) *end = 0;
    if ((rest = after_word(line, "machine"))) {
      c.machine = rest;
    } else if ((rest = after_word(line, "target"))) {
      c.options = parse_target(rest);
    } else if ((rest = after_word(line, "kernel"))) {
      char *name = cut_word(rest);
      vec_push(a, &c.kernels, (recorded_kernel){.network = rest, .name = name});
      graph = str_new(a);
    } else if (!c.kernels.n) {
      diag_raise(a->diag, TN_ERR_FORMAT, "\"%.40s\" is before the first kernel", line);
    } else if ((rest = after_word(line, "schedule"))) {
      recorded_kernel *k = &vec_last(&c.kernels);
      k->text = str_text(&graph);
      vec_push(a, &k->schedules, parse_schedule(rest));
    } else {
      str_addf(&graph, "%s\n", line);
    }
  }
  return c;
}

/* Schedules. */

typedef struct scheduling {
  ir *g;
  const char *text, *decisions;
  codegen_options options;
  corpus_schedule *s;
  kernel_summary *summary; /* or NULL */
  bool is_used;
} scheduling;

static void note_use(void *user) { ((scheduling *)user)->is_used = true; }

static void note_cost(void *user, const kernel_cost *cost) {
  ((scheduling *)user)->s->cost = *cost;
}

static void schedule_body(void *arg) {
  scheduling *p = arg;
  arena *a = ir_arena(p->g);
  codegen_options *o = &p->options;
  uint64_t hash[2];
  decision_list decisions;
  const node *sink = parse_graph(p->g, a, p->text, strlen(p->text)).at[0];
  if (!decisions_parse(a, p->decisions, &decisions)) return;
  o->decisions = &decisions;
  o->observer = (codegen_observer){.tuned = note_use, .cost = note_cost, .user = p};
  kernel_graph_key key = kernel_graph_key_make(a, o->math, codegen_run(p->g, sink, "cpu", o));
  cache_keys_hash(key.data, key.bytes, hash);
  snprintf(p->s->hash, sizeof p->s->hash, "%016" PRIx64, hash[0]);
  if (!p->summary) return;
  const node *chosen = codegen_choose(p->g, codegen_simplify(p->g, sink, o), o);
  *p->summary = kernel_summary_of(p->g, chosen, &o->target, o->math);
}

bool corpus_schedule_of(ir *g, const recorded_kernel *k, const char *decisions,
                        const codegen_options *o, corpus_schedule *s, kernel_summary *summary) {
  scheduling p = {g, k->text, decisions, *o, s, summary, false};
  diag *d = ir_diag(g);
  tn_status status = diag_catch(d, schedule_body, &p);
  if (status == TN_ERR_MEMORY) diag_rethrow(d);
  if (status) diag_clear(d);
  return !status && p.is_used;
}
