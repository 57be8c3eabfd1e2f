/* Implements copies of command lists, each in one block of memory. */
#include "device/queue/submission.h"

#include <string.h>

/** A block of memory that is measured first, then filled. */
typedef struct layout {
  char *at; /* NULL: measuring */
  size_t bytes;
} layout;

static void *place(layout *l, size_t n, size_t size) {
  void *at = l->at ? l->at + l->bytes : NULL;
  l->bytes += (n * size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
  return at;
}

static const void *place_copy(layout *l, const void *from, size_t n, size_t size) {
  if (!from) return NULL;
  void *at = place(l, n, size);
  if (at && n) memcpy(at, from, n * size);
  return at;
}

static const tn_launch *copy_launch(layout *l, const tn_launch *from) {
  tn_launch *to = place(l, 1, sizeof *to);
  const tn_span *buffers = place_copy(l, from->buffers, from->n_buffers, sizeof *buffers);
  const int64_t *values = place_copy(l, from->values, from->n_values, sizeof *values);
  if (to) *to = (tn_launch){buffers, from->n_buffers, values, from->n_values};
  return to;
}

/** Copies what a command points to. */
static command copy_command(layout *l, const command *from) {
  command to = *from;
  to.value = from->kind == COMMAND_WAIT || from->kind == COMMAND_SIGNAL ? command_value(from) : 0;
  to.value_at = NULL;
  if (from->launch) to.launch = copy_launch(l, from->launch);
  if (from->to) to.to = place_copy(l, from->to, 1, sizeof *from->to);
  if (from->from) to.from = place_copy(l, from->from, 1, sizeof *from->from);
  return to;
}

static void lay_out(submission *s, layout *l, const tn_commands *list) {
  s->commands = place(l, list->n, sizeof *s->commands);
  s->awaits = place(l, list->n, sizeof *s->awaits);
  s->ends = place(l, list->n + 1, sizeof *s->ends);
  for (size_t i = 0; i < list->n; i++) {
    command c = copy_command(l, &list->at[i]);
    if (s->commands) s->commands[i] = c;
  }
}

tn_status submission_fill(submission *s, tn_commands *list, diag *d) {
  const mem *m = list->device->mem;
  layout l = {NULL, 0};
  lay_out(s, &l, list);
  if (l.bytes > s->block_bytes) {
    mem_free(m, s->block, s->block_bytes);
    s->block = mem_alloc(m, l.bytes);
    s->block_bytes = s->block ? l.bytes : 0;
    if (!s->block) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  l = (layout){s->block, 0};
  lay_out(s, &l, list);
  s->list = command_list_retain(list);
  s->n = list->n;
  s->next_command = s->n_awaits = s->n_checked = s->n_ends = s->n_published = s->n_ended = 0;
  s->failed_from = SIZE_MAX;
  s->is_skipped = false;
  return TN_OK;
}

void submission_free(submission *s, const mem *m) {
  mem_free(m, s->block, s->block_bytes);
  mem_free(m, s, sizeof *s);
}
