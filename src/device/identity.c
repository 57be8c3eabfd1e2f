#include "device/identity.h"

#include "device/failure.h"
#include "device/output.h"

#include <string.h>

/** Raises a failure of the backend's, or of the output it wrote. */
static void require(const identity_ask *q, tn_status status, const tn_failure *f) {
  diag *d = q->arena->diag;
  if (failure_tell(d, status, f) || output_check(q->output, d)) diag_rethrow(d);
}

/** Keeps what a compiler said, unless that is known; what it says itself is better than what is
    remembered. Returns what is kept. */
static const char *keep(const identity_ask *q, const char *said, bool is_remembered) {
  device_target *t = (device_target *)q->target;
  char *copy = mem_strdup(t->device->mem, said);
  if (!copy) return NULL;
  mutex_lock(&t->opened->lock);
  if (!t->identity || (t->is_remembered && !is_remembered)) {
    t->former_identity = t->identity;
    t->identity = copy;
    t->is_remembered = is_remembered;
    copy = NULL;
  }
  const char *kept = t->identity;
  mutex_unlock(&t->opened->lock);
  mem_strfree(t->device->mem, copy);
  return kept;
}

static const char *kept(const identity_ask *q, bool *is_remembered) {
  const device_target *t = q->target;
  mutex_lock(&t->opened->lock);
  const char *identity = t->identity;
  *is_remembered = t->is_remembered;
  mutex_unlock(&t->opened->lock);
  return identity;
}

/** The key under which the disk has it; false if it has none. */
static bool find_key(const identity_ask *q, kernel_key *key) {
  const device_target *t = q->target;
  if (!q->disk || !t->compiler->stamp) return false;
  tn_failure f;
  failure_clear(&f);
  require(q, t->compiler->stamp(t->device->state, t->opened->name, q->output, &f), &f);
  *key = key_make_identity(q->arena, t, output_text(q->output));
  q->output->n = 0;
  return true;
}

static const char *recall(const identity_ask *q, const kernel_key *key) {
  disk_file f;
  if (!disk_read(q->disk, key, &f)) return NULL;
  const char *identity = keep(q, (const char *)f.content, true);
  disk_free(q->disk, &f);
  return identity;
}

static void add_text(void *user, str *to) { str_add_bytes(to, user, strlen(user)); }

/** Asks the compiler itself. */
static const char *ask(const identity_ask *q, void *compiler) {
  const device_target *t = q->target;
  tn_failure f;
  failure_clear(&f);
  require(q, t->compiler->key(compiler, &t->caps, q->output, &f), &f);
  const char *said = arena_printf(q->arena, "%s", output_text(q->output));
  q->output->n = 0;
  kernel_key key;
  const kernel_key *keys[] = {&key};
  if (find_key(q, &key)) disk_write(q->disk, keys, 1, add_text, (void *)said);
  const char *identity = keep(q, said, false);
  if (!identity) diag_raise(q->arena->diag, TN_ERR_MEMORY, "out of memory");
  return identity;
}

static void *open_compiler(const identity_ask *q) {
  void *compiler;
  if (device_compiler_get(q->target, &compiler, q->arena->diag)) diag_rethrow(q->arena->diag);
  return compiler;
}

const char *identity_get(const identity_ask *q) {
  bool is_remembered;
  kernel_key key;
  const char *identity = kept(q, &is_remembered);
  if (!identity && find_key(q, &key)) identity = recall(q, &key);
  return identity ? identity : ask(q, open_compiler(q));
}

void *identity_confirm(const identity_ask *q, const char *identity, bool *is_same) {
  bool is_remembered;
  void *compiler = open_compiler(q);
  const char *now = kept(q, &is_remembered);
  if (is_remembered) now = ask(q, compiler);
  *is_same = !strcmp(now, identity);
  return compiler;
}
