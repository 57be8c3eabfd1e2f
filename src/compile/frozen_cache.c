/* Implements the file of a frozen cache, which holds files of a disk cache as they are:
   the magic number, whose last digit is the version; the hash of everything after it; build_id; the
   backend's name; the target; the rows, each the target's part of a key and an identity; the files.
   An import checks all of it, then writes all files under temporary names, and renames them when
   all are there, rows last: without its row a kernel is not looked up. */
#include "compile/frozen_cache.h"

#include "base/file.h"
#include "base/printable.h"
#include "base/vec.h"

#include <tenon/cache.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = {'t', 'e', 'n', 'o', 'n', 'f', 'c', '1'};
enum { HASH_BYTES = 16, HEAD_BYTES = sizeof magic + HASH_BYTES };

/** A row, in place. */
typedef struct frozen_row {
  const void *target_key;
  size_t bytes;
  const char *identity;
} frozen_row;

typedef VEC(frozen_row) row_list;
typedef VEC(disk_cache_file) file_list;

static void count_file(disk_cache_usage *u, const disk_cache_file *f, bool is_plan) {
  u->entries += f->n_keys;
  u->plans += is_plan ? f->n_keys : 0;
}

/** The first key of a file, which its kernels agree with in all but their graphs. */
static bool read_first_key(const disk_cache_file *f, cache_key_parts *p) {
  deserialiser r = f->keys;
  size_t bytes;
  const void *key = f->n_keys ? deserialise_block(&r, &bytes) : NULL;
  return key && cache_key_read(key, bytes, p);
}

/* Exporting. */

typedef struct exporting {
  disk_cache *k;
  const device_target *t;
  const char *path;
  int folder;
  disk_cache_usage *content;
  diag *diag;
  arena arena;
  disk_cache_file file; /* at hand */
  row_list rows;
  str files; /* as blocks */
  size_t n_files;
} exporting;

static void add_row(exporting *e, const cache_key_parts *p) {
  for (size_t i = 0; i < e->rows.n; i++)
    if (e->rows.at[i].bytes == p->target_key_bytes &&
        !memcmp(e->rows.at[i].target_key, p->target_key, p->target_key_bytes) &&
        !strcmp(e->rows.at[i].identity, p->rest))
      return;
  void *copy = arena_copy(&e->arena, p->target_key, p->target_key_bytes);
  const frozen_row r = {copy, p->target_key_bytes, arena_printf(&e->arena, "%s", p->rest)};
  vec_push(&e->arena, &e->rows, r);
}

/** Adds the file at hand, if it is a kernel's or a plan's for the target. */
static void add_file(exporting *e) {
  cache_key_parts p;
  const disk_cache_file *f = &e->file;
  if (!read_first_key(f, &p) || p.is_compiler || strcmp(p.build, build_id) ||
      strcmp(p.backend, e->t->device->backend->name) || strcmp(p.target, e->t->caps.target))
    return;
  if (!p.is_plan) add_row(e, &p);
  serialise_block(&e->files, f->data, f->bytes);
  count_file(e->content, f, p.is_plan);
  e->n_files++;
}

static void write_frozen(exporting *e) {
  str s = str_new(&e->arena);
  uint64_t hash[2];
  serialise_text(&s, build_id);
  serialise_text(&s, e->t->device->backend->name);
  serialise_text(&s, e->t->caps.target);
  serialise_number(&s, e->rows.n);
  for (size_t i = 0; i < e->rows.n; i++) {
    serialise_block(&s, e->rows.at[i].target_key, e->rows.at[i].bytes);
    serialise_text(&s, e->rows.at[i].identity);
  }
  serialise_number(&s, e->n_files);
  str_add_bytes(&s, e->files.at, e->files.n);
  cache_keys_hash(s.at, s.n, hash);
  const write_part parts[] = {{magic, sizeof magic}, {hash, sizeof hash}, {s.at, s.n}};
  e->content->bytes = HEAD_BYTES + s.n;
  if (file_write_parts(e->path, parts, 3, e->diag)) diag_rethrow(e->diag);
}

static void export_all(void *arg) {
  exporting *e = arg;
  disk_cache_names names = {0};
  e->files = str_new(&e->arena);
  if (e->folder >= 0 && disk_cache_list(e->folder, false, &e->arena, &names, e->diag))
    diag_rethrow(e->diag);
  for (size_t i = 0; i < names.n; i++) {
    if (!disk_cache_read_name(e->k, e->folder, names.at[i], &e->file)) continue;
    add_file(e);
    disk_cache_free_file(e->k, &e->file);
  }
  if (!e->rows.n)
    diag_raise(e->diag, TN_ERR_UNSUPPORTED,
               "the cache holds no kernels for %s of this build; run the models with TENON_CPU=%s "
               "first, or export with the TENON_CPU that they ran with",
               e->t->caps.target, e->t->caps.target);
  write_frozen(e);
}

/** Opens the folder of a cache, and with `make` creates it. */
static tn_status open_folder(const disk_cache *k, bool make, int *folder, diag *d) {
  *folder = -1;
  if (!k) return diag_set(d, TN_ERR_UNSUPPORTED, "the disk cache is switched off");
  const char *path = disk_cache_path(k, d);
  if (!path) return d->status;
  return make || file_exists(path) ? disk_cache_folder_open(path, make, folder, d) : TN_OK;
}

tn_status frozen_cache_export(disk_cache *k, const device_target *t, const char *path,
                              disk_cache_usage *content, diag *d) {
  exporting e = {.k = k, .t = t, .path = path, .content = content, .diag = d};
  *content = (disk_cache_usage){0};
  tn_status s = open_folder(k, false, &e.folder, d);
  if (s) return s;
  arena_init(&e.arena, t->device->mem, d);
  s = diag_catch(d, export_all, &e);
  disk_cache_free_file(k, &e.file);
  arena_free(&e.arena);
  if (e.folder >= 0) close(e.folder);
  return s;
}

/* Importing. */

/** A file that is written under a temporary name. */
typedef struct staged_file {
  char name[DISK_CACHE_NAME_BYTES], temporary[DISK_CACHE_NAME_BYTES + 64];
  bool is_new; /* no file had the name */
} staged_file;

typedef struct importing {
  disk_cache *k;
  tn_device *device;
  const char *path;
  int folder;
  disk_cache_usage *content;
  diag *diag;
  arena arena;
  file_map map;
  const char *target;
  row_list rows;
  file_list files;
  staged_file *staged;
  size_t n_staged, n_renamed;
} importing;

static void refuse(importing *m, tn_status status, const char *why) {
  char shown[TEXT_PRINTABLE_BYTES];
  diag_raise(m->diag, status, "\"%.400s\" %s", text_printable(m->path, shown), why);
}

static void check_head(importing *m) {
  const file_map *f = &m->map;
  uint64_t hash[2];
  if (f->bytes < sizeof magic || memcmp(f->data, magic, sizeof magic - 1))
    refuse(m, TN_ERR_FORMAT, "is not an exported cache");
  if (f->data[sizeof magic - 1] != (unsigned char)magic[sizeof magic - 1])
    refuse(m, TN_ERR_FORMAT, "is an exported cache of a version that this library does not read");
  if (f->bytes < HEAD_BYTES) refuse(m, TN_ERR_FORMAT, "is truncated");
  cache_keys_hash(f->data + HEAD_BYTES, f->bytes - HEAD_BYTES, hash);
  if (memcmp(f->data + sizeof magic, hash, HASH_BYTES))
    refuse(m, TN_ERR_FORMAT, "is damaged or truncated");
  if (f->bytes > TN_CACHE_LIMIT)
    refuse(m, TN_ERR_UNSUPPORTED, "is larger than the limit of the cache");
}

const char *frozen_cache_missing_features(arena *a, const char *wanted, const char *here) {
  str s = str_new(a);
  size_t level = strcspn(wanted, "+");
  if (strcspn(here, "+") != level || strncmp(wanted, here, level))
    str_addf(&s, "%.*s", (int)level, wanted);
  for (const char *at = wanted + level; *at;) {
    size_t n = strcspn(++at, "+");
    const char *feature = arena_printf(a, "+%.*s+", (int)n, at);
    if (!strstr(arena_printf(a, "%s+", here), feature))
      str_addf(&s, "%s%.*s", s.n ? ", " : "", (int)n, at);
    at += n;
  }
  return str_text(&s);
}

static void check_processor(importing *m) {
  const device_target *t;
  const device_target_desc desc = {.limit = m->target};
  if (device_target_find(m->device, &desc, &t, m->diag)) {
    diag_prefix(m->diag, "the kernels are for %.60s", m->target);
    if (m->diag->status == TN_ERR_ARGUMENT) m->diag->status = TN_ERR_UNSUPPORTED;
    diag_rethrow(m->diag);
  }
  if (strcmp(t->caps.target, m->target))
    refuse(m, TN_ERR_UNSUPPORTED,
           arena_printf(&m->arena, "has kernels for %s; this processor lacks %s", m->target,
                        frozen_cache_missing_features(&m->arena, m->target, t->caps.target)));
}

static void check_origin(importing *m, deserialiser *r) {
  const char *build = deserialise_text(r, &m->arena), *backend = deserialise_text(r, &m->arena);
  m->target = deserialise_text(r, &m->arena);
  if (r->failed) return;
  if (strcmp(build, build_id))
    refuse(
        m, TN_ERR_UNSUPPORTED,
        arena_printf(&m->arena,
                     "was exported by another build of the library (%.80s; this is %.80s); export "
                     "it again with this one",
                     build, build_id));
  if (strcmp(backend, m->device->backend->name))
    refuse(m, TN_ERR_UNSUPPORTED,
           arena_printf(&m->arena, "is for devices of %.80s, not of %s", backend,
                        m->device->backend->name));
  check_processor(m);
}

/** True if the part of a key is of this build, backend and the file's target. */
static bool is_of_target(const importing *m, const cache_key_parts *p) {
  return !strcmp(p->build, build_id) && !strcmp(p->backend, m->device->backend->name) &&
         !strcmp(p->target, m->target);
}

static void read_row(importing *m, deserialiser *r) {
  frozen_row row;
  cache_key_parts p;
  row.target_key = deserialise_block(r, &row.bytes);
  row.identity = deserialise_text(r, &m->arena);
  if (r->failed) return;
  const cache_key key = imported_identity_key_make(&m->arena, row.target_key, row.bytes);
  bool is_whole = cache_key_read(key.data, key.bytes, &p) && p.target_key_bytes == row.bytes;
  if (is_whole && is_of_target(m, &p))
    vec_push(&m->arena, &m->rows, row);
  else
    r->failed = true;
}

static void read_file(importing *m, deserialiser *r) {
  disk_cache_file f;
  cache_key_parts p = {0};
  size_t bytes;
  const void *data = deserialise_block(r, &bytes);
  if (r->failed) return;
  r->failed = disk_cache_file_read(&f, data, bytes) != NULL || !f.n_keys;
  deserialiser keys = f.keys;
  for (size_t i = 0; i < f.n_keys && !r->failed; i++) {
    size_t n;
    const void *key = deserialise_block(&keys, &n);
    r->failed = !key || !cache_key_read(key, n, &p) || p.is_compiler || !is_of_target(m, &p);
  }
  if (r->failed) return;
  vec_push(&m->arena, &m->files, f);
  count_file(m->content, &f, p.is_plan);
}

static void read_frozen(importing *m) {
  deserialiser r = {.at = m->map.data + HEAD_BYTES, .end = m->map.data + m->map.bytes};
  check_head(m);
  check_origin(m, &r);
  for (size_t n = deserialise_count(&r, sizeof(uint64_t)); n && !r.failed; n--) read_row(m, &r);
  for (size_t n = deserialise_count(&r, sizeof(uint64_t)); n && !r.failed; n--) read_file(m, &r);
  if (r.failed || r.at != r.end) refuse(m, TN_ERR_FORMAT, "is malformed");
  m->content->bytes = m->map.bytes;
}

static void fail_to_write(importing *m) {
  int error = errno;
  char reason[WRITE_ERROR_TEXT];
  diag_raise(m->diag, TN_ERR_IO, "cannot write to the cache folder: %s",
             write_error_text(error, reason));
}

/** Names the next file to be staged. */
static staged_file *name_staged(importing *m, const cache_key *key) {
  staged_file *s = &m->staged[m->n_staged];
  disk_cache_file_name(key, s->name);
  snprintf(s->temporary, sizeof s->temporary, "%s.%ld-%zu.part", s->name, (long)getpid(),
           m->n_staged + 1000); /* write_atomic's own have lower numbers */
  return s;
}

static void stage(importing *m, const staged_file *s, const void *data, size_t bytes) {
  const write_part all = {data, bytes};
  if (!write_atomic(m->folder, s->temporary, 0600, &all, 1)) fail_to_write(m);
  m->n_staged++;
}

/** Stages a file for each of its keys: links, where the system has them. */
static void stage_file(importing *m, const disk_cache_file *f) {
  deserialiser r = f->keys;
  const staged_file *first = NULL;
  for (size_t i = 0, n; i < f->n_keys; i++) {
    const void *data = deserialise_block(&r, &n);
    const cache_key key = cache_key_of(data, n);
    const staged_file *s = name_staged(m, &key);
    if (first && write_hard_link(m->folder, first->temporary, s->temporary))
      m->n_staged++;
    else
      stage(m, s, f->data, f->bytes);
    if (!first) first = s;
  }
}

static void stage_row(importing *m, const frozen_row *row) {
  const cache_key key = imported_identity_key_make(&m->arena, row->target_key, row->bytes);
  const cache_key *keys[] = {&key};
  str s = str_new(&m->arena);
  disk_cache_file_write(&s, keys, 1, row->identity, strlen(row->identity));
  stage(m, name_staged(m, &key), s.at, s.n);
}

static void rename_staged(importing *m) {
  for (; m->n_renamed < m->n_staged; m->n_renamed++) {
    staged_file *s = &m->staged[m->n_renamed];
    struct stat there;
    s->is_new = fstatat(m->folder, s->name, &there, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
    if (renameat(m->folder, s->temporary, m->folder, s->name)) fail_to_write(m);
  }
}

/** Removes what a failed import wrote. A file that replaced another of its key stays. */
static void undo(importing *m) {
  for (size_t i = 0; i < m->n_staged; i++) {
    const staged_file *s = &m->staged[i];
    if (i >= m->n_renamed)
      unlinkat(m->folder, s->temporary, 0);
    else if (s->is_new)
      unlinkat(m->folder, s->name, 0);
  }
}

static void import_all(void *arg) {
  importing *m = arg;
  read_frozen(m);
  if (open_folder(m->k, true, &m->folder, m->diag)) diag_rethrow(m->diag);
  m->staged =
      arena_calloc(&m->arena, (size_t)m->content->entries + m->rows.n + 1, sizeof *m->staged);
  for (size_t i = 0; i < m->files.n; i++) stage_file(m, &m->files.at[i]);
  for (size_t i = 0; i < m->rows.n; i++) stage_row(m, &m->rows.at[i]);
  rename_staged(m);
}

tn_status frozen_cache_import(disk_cache *k, tn_device *device, const char *path,
                              disk_cache_usage *content, diag *d) {
  importing m = {
      .k = k, .device = device, .path = path, .folder = -1, .content = content, .diag = d};
  *content = (disk_cache_usage){0};
  if (!k) return diag_set(d, TN_ERR_UNSUPPORTED, "the disk cache is switched off");
  tn_status s = file_map_open(&m.map, path, d);
  if (s) return s;
  arena_init(&m.arena, device->mem, d);
  s = diag_catch(d, import_all, &m);
  if (s && m.folder >= 0) undo(&m);
  arena_free(&m.arena);
  file_map_close(&m.map);
  if (m.folder >= 0) close(m.folder);
  return s;
}
