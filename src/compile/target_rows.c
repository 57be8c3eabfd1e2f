/* Implements the choice of a target by the rows of a disk cache. Rows come from files, so each is
   believed only if the target it names has the same part of a key here. */
#include "compile/target_rows.h"

#include "compile/disk_cache_trim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** More rows than this are not tried. */
enum { MOST_ROWS = 8 };

typedef struct row {
  char pair[128];
  const char *target, *identity;
  tn_hardware hardware;
  bool is_imported, is_own; /* of this machine's facts and highest level */
  str key;                  /* the target's part */
} row;

/** A choice of a target, which may raise. */
typedef struct choosing {
  tn_device *device;
  const device_target_desc *desc;
  disk_cache *disk;
  int folder;
  bool lacks_compiler;
  const device_target *target;
  arena arena;
  diag *diag;
  row rows[MOST_ROWS];
  size_t n;
} choosing;

/** True if a row's kernels may be used: they are of this build, backend, pair and limit. */
static bool is_wanted(const choosing *c, const cache_key_parts *p, const char *pair) {
  const device_target_desc *desc = c->desc;
  return !strcmp(p->build, build_id) && !strcmp(p->backend, c->device->backend->name) &&
         (!desc->pair || !strcmp(desc->pair, pair)) &&
         (!desc->limit || !strcmp(p->target, c->target->caps.target)) &&
         (c->lacks_compiler || !strcmp(p->rest, imported_stamp));
}

/** The target of a row; NULL: there is none here, as the processor lacks a feature. */
static const device_target *row_target(choosing *c, const row *r,
                                       const device_target *alternative) {
  const device_target *t;
  const device_target_desc desc = {.pair = r->pair,
                                   .limit = r->target,
                                   .hardware = &r->hardware,
                                   .identity = r->identity,
                                   .is_imported = r->is_imported,
                                   .alternative = alternative};
  if (device_target_find(c->device, &desc, &t, c->diag)) {
    if (c->diag->status == TN_ERR_MEMORY) diag_rethrow(c->diag);
    diag_clear(c->diag);
    return NULL;
  }
  const str key = target_key_make(&c->arena, t);
  return key.n == r->key.n && !memcmp(key.at, r->key.at, key.n) ? t : NULL;
}

static bool is_known(const choosing *c, const row *r) {
  for (size_t i = 0; i < c->n; i++)
    if (c->rows[i].key.n == r->key.n && !memcmp(c->rows[i].key.at, r->key.at, r->key.n) &&
        !strcmp(c->rows[i].identity, r->identity))
      return true;
  return false;
}

/** Adds the row of a file, if it is wanted. */
static void add_row(choosing *c, const disk_cache_file *f) {
  cache_key_parts p;
  deserialiser keys = f->keys;
  size_t bytes;
  const void *key = f->n_keys ? deserialise_block(&keys, &bytes) : NULL;
  row r = {0};
  if (!key || !cache_key_read(key, bytes, &p) || !p.is_compiler) return;
  snprintf(r.pair, sizeof r.pair, "%s/%s", p.renderer, p.compiler);
  if (!is_wanted(c, &p, r.pair)) return;
  r.target = arena_printf(&c->arena, "%s", p.target);
  r.identity = arena_printf(&c->arena, "%s", (const char *)f->content);
  r.hardware = p.hardware;
  r.is_imported = !strcmp(p.rest, imported_stamp);
  r.key = str_new(&c->arena);
  str_add_bytes(&r.key, p.target_key, p.target_key_bytes);
  const device_target *t = c->n < MOST_ROWS && !is_known(c, &r) ? row_target(c, &r, NULL) : NULL;
  if (!t) return;
  const str own = target_key_make(&c->arena, c->target);
  r.is_own = own.n == r.key.n && !memcmp(own.at, r.key.at, own.n);
  c->rows[c->n++] = r;
}

/** Reads the rows, the most recently used first. */
static void read_rows(choosing *c) {
  disk_cache_names names;
  if (disk_cache_list(c->folder, true, &c->arena, &names, c->diag)) diag_rethrow(c->diag);
  for (size_t i = names.n; i-- > 0;) {
    disk_cache_file f;
    if (!disk_cache_read_name(c->disk, c->folder, names.at[i], &f)) continue;
    add_row(c, &f);
    disk_cache_free_file(c->disk, &f);
  }
}

/** The order in which rows are tried: this machine's own, then imported ones. */
static int rank(const row *r) { return r->is_own ? 0 : r->is_imported ? 1 : 2; }

static void sort_rows(choosing *c) {
  for (size_t i = 1; i < c->n; i++) {
    const row r = c->rows[i];
    size_t k = i;
    for (; k && rank(&c->rows[k - 1]) > rank(&r); k--) c->rows[k] = c->rows[k - 1];
    c->rows[k] = r;
  }
}

static void choose(void *arg) {
  choosing *c = arg;
  read_rows(c);
  if (!c->n) return;
  sort_rows(c);
  const device_target *first = NULL;
  for (size_t i = c->n; i-- > 0;) first = row_target(c, &c->rows[i], first);
  if (c->lacks_compiler) {
    c->target = first;
    return;
  }
  device_target_desc desc = *c->desc;
  desc.hardware = &c->rows[0].hardware;
  desc.alternative = first;
  if (device_target_find(c->device, &desc, &c->target, c->diag)) diag_rethrow(c->diag);
}

/** A folder that cannot be opened has no rows; whoever uses the cache tells why. */
static int open_folder(const disk_cache *disk) {
  diag none = {0};
  int folder = -1;
  const char *path = disk_cache_path(disk, &none);
  if (path && file_exists(path)) disk_cache_folder_open(path, false, &folder, &none);
  return folder;
}

static bool lacks_compiler(tn_device *v, const device_target *t) {
  diag none = {0};
  return !t->opened->name && device_target_check_pair(v, t->pair, NULL, &none) != TN_OK;
}

tn_status target_rows_choose(tn_device *v, const device_target_desc *desc, disk_cache *disk,
                             const device_target **target, diag *d) {
  tn_status s = device_target_find(v, desc, target, d);
  if (s || !disk || !(*target)->compiler->lasting) return s;
  choosing c = {.device = v, .desc = desc, .disk = disk, .target = *target, .diag = d};
  c.lacks_compiler = lacks_compiler(v, *target);
  if (!desc->limit && !c.lacks_compiler) return TN_OK;
  c.folder = open_folder(disk);
  if (c.folder < 0) return TN_OK;
  arena_init(&c.arena, v->mem, d);
  s = diag_catch(d, choose, &c);
  if (!s) *target = c.target;
  arena_free(&c.arena);
  close(c.folder);
  return s;
}
