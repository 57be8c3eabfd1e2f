/* Implements the lengths of sequences, by the file's declarations. */
#include "cli/data/input_lists.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/unstable/model_file.h>

enum { MOST_TENSORS = 4096 };

typedef struct choice {
  command *c;
  const option_list *entries;
  file_map bytes;
  tn_model_file *file;
  VEC(tn_input_list) lists;
} choice;

/** One more than the greatest i of entries "NAME[i]=…"; 0: there are none. */
static int64_t count_entries(const option_list *entries, const char *name) {
  int64_t most = 0;
  size_t n = strlen(name);
  for (size_t i = 0; i < entries->n; i++) {
    const char *entry = entries->at[i];
    if (strncmp(entry, name, n) || entry[n] != '[') continue;
    char *end;
    long long k = strtoll(entry + n + 1, &end, 10);
    if (!strncmp(end, "]=", 2) && k >= most && k < MOST_TENSORS) most = k + 1;
  }
  return most;
}

static void list_sequences(void *arg) {
  choice *k = arg;
  arena *a = &k->c->arena;
  tn_declared_port p = TN_DECLARED_PORT_INIT;
  for (size_t i = 0; tn_model_file_port(k->file, TN_PORT_INPUT, i, &p) == TN_OK; i++) {
    if (p.is_tensor || strncmp(p.type, "sequence", strlen("sequence")) != 0) continue;
    int64_t n = count_entries(k->entries, p.name);
    tn_input_list list = {.name = arena_printf(a, "%s", p.name), .count = n ? n : 1};
    vec_push(a, &k->lists, list);
    if (!n)
      command_print_note(k->c,
                         "input %s: the sequence has one tensor, %s[0]; --input '%s[1]=…' makes it "
                         "longer",
                         p.name, p.name, p.name);
  }
}

bool input_lists_choose(command *c, const option_list *entries, tn_model_desc *desc) {
  choice k = {.c = c, .entries = entries};
  diag unread = {0};
  if (!strcmp(c->operand, "-") || file_map_open(&k.bytes, c->operand, &unread) != TN_OK)
    return false;
  bool is_parsed = tn_model_file_parse(k.bytes.data, k.bytes.bytes, &k.file, NULL) == TN_OK;
  tn_status s = is_parsed ? diag_catch(&c->diag, list_sequences, &k) : TN_OK;
  tn_model_file_free(k.file);
  file_map_close(&k.bytes);
  diag_require(&c->diag, s);
  desc->lists = k.lists.at;
  desc->n_lists = k.lists.n;
  return k.lists.n;
}
