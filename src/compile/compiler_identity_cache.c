/* Finds the identity (kind, version, flags) of a target's compiler: on the target, else in the disk
   cache, else by asking the compiler; then keeps it in the places that lacked it. */
#include "compile/compiler_identity_cache.h"

#include "device/core/output.h"

#include <string.h>

/** Raises the failure of a backend's function, or of the output it wrote. */
static void require_ok(const compiler_identity_request *q, tn_status status) {
  diag *d = q->arena->diag;
  if (diag_complete(d, status) || output_check(q->output, d)) diag_rethrow(d);
}

/** Sets the target's identity unless it has one; one from the compiler itself replaces one from
    the disk. Returns the target's; NULL without memory. */
static const char *set_identity(const compiler_identity_request *q, const char *identity,
                                bool is_from_disk) {
  device_target *t = (device_target *)q->target;
  char *copy = mem_strdup(t->device->mem, identity);
  if (!copy) return NULL;
  mutex_lock(&t->opened->lock);
  if (!t->identity || (t->is_identity_from_disk && !is_from_disk)) {
    t->previous_identity = t->identity;
    t->identity = copy;
    t->is_identity_from_disk = is_from_disk;
    copy = NULL;
  }
  const char *current = t->identity;
  mutex_unlock(&t->opened->lock);
  mem_strfree(t->device->mem, copy);
  return current;
}

static const char *target_identity(const compiler_identity_request *q, bool *is_from_disk) {
  const device_target *t = q->target;
  mutex_lock(&t->opened->lock);
  const char *identity = t->identity;
  *is_from_disk = t->is_identity_from_disk;
  mutex_unlock(&t->opened->lock);
  return identity;
}

/** The key of the identity in the disk cache; false if there is none: no disk, or a compiler
   without a fingerprint. */
static bool disk_key(const compiler_identity_request *q, cache_key *key) {
  const device_target *t = q->target;
  if (!q->disk || !t->compiler->stamp) return false;
  diag *d = q->arena->diag;
  diag_clear(d);
  require_ok(q, t->compiler->stamp(t->device->state, t->opened->name, q->output, &d->failure));
  *key = compiler_identity_key_make(q->arena, t, output_text(q->output));
  q->output->n = 0;
  return true;
}

static const char *read_identity(const compiler_identity_request *q, const cache_key *key) {
  disk_cache_file f;
  if (!disk_cache_read(q->disk, key, &f)) return NULL;
  const char *identity = set_identity(q, (const char *)f.content, true);
  disk_cache_free_file(q->disk, &f);
  return identity;
}

static void add_text(void *user, str *to) { str_add_bytes(to, user, strlen(user)); }

/** Raises for a compiler's key with a NUL: identities end at one, and would be equal. */
static void check_key(const compiler_identity_request *q) {
  const device_target *t = q->target;
  if (strlen(output_text(q->output)) == q->output->n) return;
  diag_raise(q->arena->diag, TN_ERR_DEVICE, "compiler %s of backend %s wrote a key with a NUL",
             t->compiler->name, t->device->backend->name);
}

/** Asks the compiler itself, and keeps its answer on disk. */
static const char *ask_compiler(const compiler_identity_request *q, void *compiler) {
  const device_target *t = q->target;
  diag *d = q->arena->diag;
  diag_clear(d);
  require_ok(q, t->compiler->key(compiler, &t->caps, q->output, &d->failure));
  check_key(q);
  const char *answer = arena_printf(q->arena, "%s", output_text(q->output));
  q->output->n = 0;
  cache_key key;
  const cache_key *keys[] = {&key};
  if (disk_key(q, &key)) disk_cache_write(q->disk, keys, 1, add_text, (void *)answer);
  const char *identity = set_identity(q, answer, false);
  if (!identity) diag_raise(q->arena->diag, TN_ERR_MEMORY, "out of memory");
  return identity;
}

/** Adds to the failure why a compiler is needed, although the cache has kernels. */
static void explain_lack(const device_target *target, diag *d) {
  bool is_imported = false;
  for (const device_target *t = target; t; t = t->alternative) is_imported |= t->is_imported;
  const char *about =
      is_imported ? "the cache lacks a kernel, as of other sizes than those that ran "
                    "before it was exported, or has it with a tuned schedule, whose file "
                    "(TENON_TUNED) is to be shipped too: run this once where a compiler "
                    "is, with TENON_TUNED=off, and export the cache again (tenon cache "
                    "--export), or install a compiler"
                  : "the cache has kernels of earlier runs, and lacks one, as of other sizes";
  diag_set(d, d->status, "%s; %s", d->text, about);
}

static void *open_compiler(const compiler_identity_request *q) {
  void *compiler;
  diag *d = q->arena->diag;
  if (device_target_open_compiler(q->target, &compiler, d)) {
    if (q->target->stated_identity) explain_lack(q->target, d);
    diag_rethrow(d);
  }
  return compiler;
}

const char *compiler_identity_get(const compiler_identity_request *q) {
  bool is_from_disk;
  cache_key key;
  const char *identity = target_identity(q, &is_from_disk);
  if (!identity && disk_key(q, &key)) identity = read_identity(q, &key);
  return identity ? identity : ask_compiler(q, open_compiler(q));
}

void *compiler_identity_confirm(const compiler_identity_request *q, const char *identity,
                                bool *is_same) {
  bool is_from_disk;
  void *compiler = open_compiler(q);
  const char *now = target_identity(q, &is_from_disk);
  if (is_from_disk) now = ask_compiler(q, compiler);
  *is_same = !strcmp(now, identity);
  return compiler;
}
