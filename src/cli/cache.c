/* tenon cache: the kernels and plans that are kept on disk. */
#include "cli/command.h"
#include "cli/text.h"
#include "tensor/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

typedef struct cache_options {
  bool json, trim, clear;
  int64_t limit;
} cache_options;

static const option options[] = {
    {"trim", OPTION_FLAG, offsetof(cache_options, trim), NULL,
     "remove what was not used for the longest time, down to the limit", 0, 0, 0},
    {"limit", OPTION_BYTES, offsetof(cache_options, limit), "BYTES",
     "trim to so many bytes, or 64k, 64M, 64G, powers of 1024, not to 1G", 0, INT64_MAX,
     (int64_t)DISK_LIMIT},
    {"clear", OPTION_FLAG, offsetof(cache_options, clear), NULL,
     "remove all of them; files that are not the cache's own stay", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(cache_options, json), NULL, "print JSON", 0, 0, 0},
};

/** Does what is asked for in an open folder, and says what is there then. */
static tn_status work(const cache_options *o, int folder, disk_usage *u, diag *d) {
  const disk_bounds none = {.all = true};
  const disk_bounds some = {(uint64_t)o->limit, (uint64_t)o->limit, false};
  if (!o->clear && !o->trim) return disk_folder_usage(folder, &mem_system, u, d);
  return disk_folder_trim(folder, &mem_system, o->clear ? &none : &some, u, d);
}

/** The same in the folder of a cache, which there may not be yet. */
static tn_status use_folder(const disk *k, const cache_options *o, const char **path, disk_usage *u,
                            diag *d) {
  int folder;
  *path = disk_path(k, d);
  tn_status status = *path ? disk_folder_open(*path, false, &folder, d) : d->status;
  if (status || folder < 0) return status;
  status = work(o, folder, u, d);
  close(folder);
  return status;
}

/** `path` NULL: there is no cache. */
static void print(command *c, const char *path, const disk_usage *u) {
  const cache_options *o = c->options;
  arena *a = &c->arena;
  if (o->json) {
    text_json_print(a, json_pack("{s:o, s:I, s:I, s:I, s:I}", "folder", text_json(a, path),
                                 "entries", (json_int_t)u->entries, "plans", (json_int_t)u->plans,
                                 "bytes", (json_int_t)u->bytes, "limit", (json_int_t)DISK_LIMIT));
    return;
  }
  if (!path) path = "none: it is switched off";
  printf(
      "folder   %s\nentries  %" PRIu64 ", %" PRIu64 " of them plans\nsize     %s of at most %s\n",
      text_safe(a, path), u->entries, u->plans, text_bytes(a, u->bytes), text_bytes(a, DISK_LIMIT));
}

static int act(command *c) {
  const cache_options *o = c->options;
  diag *d = &c->diag;
  if (o->trim && o->clear) command_misuse(c, "--trim and --clear do not go together");
  if (o->limit != (int64_t)DISK_LIMIT && !o->trim) command_misuse(c, "--limit goes with --trim");
  command_open(c, NULL, 0);
  const tn_context *opened = c->context;
  const char *path = NULL;
  disk_usage u = {0};
  if (opened->disk && use_folder(opened->disk, o, &path, &u, d)) {
    diag_prefix(d, "the kernel cache");
    diag_rethrow(d);
  }
  print(c, path, &u);
  return EXIT_DONE;
}

const verb verb_cache = {
    .name = "cache",
    .summary = "Shows, trims or clears the kernels and plans that are kept on disk",
    .about =
        "Kernels that were compiled, and plans of what was run, are kept in the folder that\n"
        "TENON_CACHE names, or else in $XDG_CACHE_HOME/tenon or ~/.cache/tenon, and found there "
        "by\n"
        "later processes; with TENON_CACHE=off they are not. Beyond its limit the cache is "
        "trimmed\n"
        "by itself. A folder that is a link, or that others own or may write to, is not used.\n\n"
        "--json: folder (null: switched off), entries (kernels, plans, and compilers known), "
        "plans,\n"
        "bytes, limit; with --trim or --clear, as they are afterwards.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(cache_options),
    .act = act,
};
