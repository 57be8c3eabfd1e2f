/* Implements `tenon cache`, which shows, trims or clears the folder of compiled kernels and plans
   on disk, and exports and imports its entries. */
#include "cli/core/command.h"
#include "cli/core/text_format.h"
#include "cli/verbs/verb_table.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct cache_options {
  bool json, trim, clear;
  int64_t limit;
  const char *export, *import;
} cache_options;

static const option options[] = {
    {"trim", OPTION_FLAG, offsetof(cache_options, trim), NULL,
     "remove the least recently used entries until the size is within the limit", 0, 0, 0},
    {"limit", OPTION_BYTES, offsetof(cache_options, limit), "BYTES",
     "limit of --trim, with an optional suffix k, M, G or T (default: 1G)", 0, INT64_MAX,
     (int64_t)TN_CACHE_LIMIT},
    {"clear", OPTION_FLAG, offsetof(cache_options, clear), NULL,
     "remove all entries; other files in the folder stay", 0, 0, 0},
    {"export", OPTION_STRING, offsetof(cache_options, export), "FILE",
     "write the entries for this processor, or the level TENON_CPU, to a file", 0, 0, 0},
    {"import", OPTION_STRING, offsetof(cache_options, import), "FILE",
     "add an exported file, which you trust: kernels are code", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(cache_options, json), NULL, "print JSON", 0, 0, 0},
};

static void print_frozen_text(command *c, const char *file, const tn_cache_info *info) {
  arena *a = &c->arena;
  printf("file     %s\nentries  %" PRIu64 ", %" PRIu64 " of them plans\nsize     %s\n",
         text_escape(a, file), info->entries, info->plans, text_bytes(a, info->bytes));
}

static void print_frozen_json(command *c, const char *file, const tn_cache_info *info) {
  arena *a = &c->arena;
  text_json_print(a, json_pack("{s:o, s:I, s:I, s:I}", "file", text_json(a, file), "entries",
                               (json_int_t)info->entries, "plans", (json_int_t)info->plans, "bytes",
                               (json_int_t)info->bytes));
}

/** Exports or imports a file, and prints what it holds. */
static int act_on_file(command *c, const cache_options *o) {
  const char *file = o->export ? o->export : o->import;
  tn_cache_info info = TN_CACHE_INFO_INIT;
  command_check_status(c, o->export ? tn_cache_export(c->context, file, &info)
                                    : tn_cache_import(c->context, file, &info));
  if (o->json)
    print_frozen_json(c, file, &info);
  else
    print_frozen_text(c, file, &info);
  if (info.tuned)
    command_print_note(
        c,
        "%s %s not in this file: ship the file of tuned schedules too (TENON_TUNED), "
        "or run the models with TENON_TUNED=off and export again",
        text_count(&c->arena, info.tuned, "tuned schedule"), info.tuned == 1 ? "is" : "are");
  return EXIT_DONE;
}

static void print_text(command *c, const tn_cache_info *info) {
  arena *a = &c->arena;
  const char *folder = info->folder ? info->folder : "none (switched off)";
  printf("folder   %s\nentries  %" PRIu64 ", %" PRIu64
         " of them plans\nsize     %s of at most %s\n",
         text_escape(a, folder), info->entries, info->plans, text_bytes(a, info->bytes),
         text_bytes(a, TN_CACHE_LIMIT));
}

static void print_json(command *c, const tn_cache_info *info) {
  arena *a = &c->arena;
  text_json_print(a,
                  json_pack("{s:o, s:I, s:I, s:I, s:I}", "folder", text_json(a, info->folder),
                            "entries", (json_int_t)info->entries, "plans", (json_int_t)info->plans,
                            "bytes", (json_int_t)info->bytes, "limit", (json_int_t)TN_CACHE_LIMIT));
}

static int act(command *c) {
  const cache_options *o = c->options;
  if (o->trim && o->clear) command_usage_error(c, "--trim and --clear cannot be combined");
  if ((o->export || o->import) && (o->trim || o->clear || (o->export && o->import)))
    command_usage_error(c, "--export and --import stand alone");
  if (o->limit != (int64_t)TN_CACHE_LIMIT && !o->trim)
    command_usage_error(c, "--limit requires --trim");
  command_open_context(c, NULL, -1, NULL);
  if (o->export || o->import) return act_on_file(c, o);
  tn_cache_info info = TN_CACHE_INFO_INIT;
  command_check_status(c, o->clear  ? tn_cache_clear(c->context, &info)
                          : o->trim ? tn_cache_trim(c->context, (uint64_t)o->limit, &info)
                                    : tn_cache_get(c->context, &info));
  if (o->json)
    print_json(c, &info);
  else
    print_text(c, &info);
  return EXIT_DONE;
}

const verb verb_cache = {
    .name = "cache",
    .summary = "Print, trim, clear, export or import the disk cache",
    .examples = "tenon cache\n"
                "tenon cache --trim --limit 256M\n"
                "tenon cache --clear\n"
                "TENON_CPU=x86-64-v3 tenon run model.onnx\n"
                "TENON_CPU=x86-64-v3 tenon cache --export kernels.frozen\n"
                "tenon cache --import kernels.frozen",
    .about =
        "Compiled kernels and plans are kept in a folder, where later processes find them:\n"
        "TENON_CACHE, or else $XDG_CACHE_HOME/tenon or ~/.cache/tenon. TENON_CACHE=off disables\n"
        "the cache. A cache that exceeds its limit is trimmed automatically. A folder that is a\n"
        "link, or that other users own or may write to, is not used.\n\n"
        "An exported file runs where neither a C compiler nor LLVM is installed, on any processor "
        "of\n"
        "the level at least and with the same build of Tenon. The import looks kernels up by the\n"
        "caches and cores of the machine that exported them: always without a compiler, and else\n"
        "where TENON_CPU is the level of the file. Run the models before the export, with the "
        "same\n"
        "TENON_CPU, and with TENON_TUNED=off where tenon tune was used: tuned schedules are not "
        "in\n"
        "the file, and kernels that have one are only found with the file of TENON_TUNED.\n"
        "A damaged file imports nothing. Import only files that you trust: kernels are code.\n\n"
        "--json: folder (null: switched off), entries (kernels, plans and compiler identities),\n"
        "plans, bytes, limit; after --trim or --clear, if specified. --export and --import: file,\n"
        "entries, plans and bytes of the file.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(cache_options),
    .act = act,
};
