#include "device/cpu/cc.h"

#include "base/file.h"
#include "base/process.h"
#include "base/str.h"
#include "base/vec.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef VEC(const char *) words;

static const int64_t version_limit_ns = 10 * (int64_t)1000000000;
static const int64_t compile_limit_ns = 60 * (int64_t)1000000000;

static const char install_hint[] =
    "install gcc or clang (on Debian: apt install gcc, or apt install clang)";

/* Contraction would make results differ between compilers; errno and floating-point traps are
   nothing that a kernel's results can show. Hidden visibility lets calls inside the object be
   direct. The rest keeps out sections and calls that the loader has no use for. */
static const char *const always[] = {
    "-c",
    "-O2",
    "-std=gnu11",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-common",
    "-fno-ident",
#ifdef __x86_64__
    "-fcf-protection=none",
#endif
    "-w",
    NULL,
};

/* The loader runs no constructors, so globals are not registered; a stack frame's red zones would
   need the sanitizer's private state. */
static const char *const instrument_flags[2][3][6] = {
    [CC_GCC] = {[CC_PLAIN] = {"-pipe"},
                [CC_ADDRESS] = {"-pipe", "-fsanitize=address", "--param=asan-globals=0",
                                "--param=asan-stack=0"},
                [CC_THREAD] = {"-pipe", "-fsanitize=thread"}},
    [CC_CLANG] = {[CC_PLAIN] = {NULL},
                  [CC_ADDRESS] = {"-fsanitize=address", "-mllvm", "-asan-globals=0", "-mllvm",
                                  "-asan-stack=0"},
                  [CC_THREAD] = {"-fsanitize=thread"}},
};

static void add_words(arena *a, words *w, const char *const *more) {
  for (; more && *more; more++) vec_push(a, w, *more);
}

/* Finding. */

static words split(const char *text, arena *a) {
  words w = {0};
  char *rest = NULL;
  for (char *at = strtok_r(arena_printf(a, "%s", text), " \t", &rest); at;
       at = strtok_r(NULL, " \t", &rest))
    vec_push(a, &w, at);
  vec_push(a, &w, NULL);
  return w;
}

/** What --version said: gcc begins with the name it was started by, as "gcc-12" or "cc". */
static bool read_kind(cc *c, const char *said, arena *a) {
  c->version = arena_printf(a, "%.*s", (int)strcspn(said, "\n"), said);
  const char *name = arena_printf(a, "%.*s", (int)strcspn(said, " \n"), said);
  bool clang = strstr(c->version, "clang");
  c->kind = clang ? CC_CLANG : CC_GCC;
  return clang || strstr(name, "gcc") ||
         (strstr(name, "cc") && strstr(said, "Free Software Foundation"));
}

/** Fills in a compiler; false if there is none of that name, or it is of another kind. */
static bool try_command(cc *c, const char *text, arena *a) {
  words command = split(text, a), asking = {0};
  if (!command.at[0] || !(command.at[0] = process_find(a, command.at[0]))) return false;
  c->command = command.at;
  vec_push(a, &asking, c->env);
  vec_push(a, &asking, "LC_ALL=C");
  add_words(a, &asking, c->command);
  vec_push(a, &asking, "--version");
  vec_push(a, &asking, NULL);
  process_result r;
  diag ignored = {0};
  if (process_run(asking.at, version_limit_ns, a, &r, &ignored)) return false;
  return r.exit_code == 0 && read_kind(c, r.output, a);
}

tn_status cc_find(cc *c, arena *a, diag *d) {
  static const char *const usual[] = {"cc", "gcc", "clang"};
  *c = (cc){.limit_ns = compile_limit_ns, .env = process_find(a, "env")};
  if (!c->env) return diag_set(d, TN_ERR_COMPILE, "cannot find the env command on the PATH");
  const char *wanted = getenv("CC");
  if (wanted && *wanted) {
    if (try_command(c, wanted, a)) return TN_OK;
    return diag_set(
        d, TN_ERR_COMPILE,
        "CC is \"%s\", which is not a gcc or clang that starts: correct or unset it, or %s", wanted,
        install_hint);
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (try_command(c, usual[i], a)) return TN_OK;
  return diag_set(d, TN_ERR_COMPILE, "no C compiler found (tried cc, gcc and clang): set CC, or %s",
                  install_hint);
}

const char *cc_identity(const cc *c, arena *a) {
  str s = str_new(a);
  str_addf(&s, "%s; %s;", c->kind == CC_GCC ? "gcc" : "clang", c->version);
  for (const char *const *w = c->command; *w; w++) str_addf(&s, " %s", *w);
  for (const char *const *w = always; *w; w++) str_addf(&s, " %s", *w);
  for (const char *const *w = instrument_flags[c->kind][c->instrument]; *w; w++)
    str_addf(&s, " %s", *w);
  return str_text(&s);
}

/* Compiling. */

enum { SAID_BYTES = 1200, SAID_LINES = 12 };

typedef struct job {
  const cc *c;
  const char *source;
  size_t bytes;
  const char *const *flags;
  arena *arena;
  diag *diag;
  char *folder;
  file_map map; /* of the object made */
  cc_object *object;
  tn_status status;
} job;

static const char *const *command_line(const job *j, const char *from, const char *to) {
  words w = {0};
  arena *a = j->arena;
  vec_push(a, &w, j->c->env);
  vec_push(a, &w, "LC_ALL=C");
  vec_push(a, &w, arena_printf(a, "TMPDIR=%s", j->folder)); /* what it leaves is left there */
  add_words(a, &w, j->c->command);
  add_words(a, &w, always);
  add_words(a, &w, instrument_flags[j->c->kind][j->c->instrument]);
  add_words(a, &w, j->flags);
  add_words(a, &w, (const char *const[]){"-x", "c", from, "-o", to, NULL});
  vec_push(a, &w, NULL);
  return w.at;
}

/** The first lines of what the compiler said, without the folder's name. */
static const char *first_lines(const job *j, const char *said) {
  str s = str_new(j->arena);
  size_t folder = strlen(j->folder);
  for (int lines = 0; *said && lines < SAID_LINES && s.n < SAID_BYTES;) {
    if (!strncmp(said, j->folder, folder) && said[folder] == '/') said += folder + 1;
    if (!*said) break;
    lines += *said == '\n';
    str_add_bytes(&s, said++, 1);
  }
  return str_text(&s);
}

static tn_status judge(const job *j, const process_result *r) {
  const char *name = j->c->command[0];
  if (r->timed_out)
    return diag_set(j->diag, TN_ERR_TIMEOUT, "%s took longer than %lld ms and was stopped", name,
                    (long long)(j->c->limit_ns / 1000000));
  if (r->exit_code == 0) return TN_OK;
  const char *said = first_lines(j, r->output);
  if (r->exit_code < 0)
    return diag_set(j->diag, TN_ERR_COMPILE, "%s was ended by a signal\n%s", name, said);
  return diag_set(j->diag, TN_ERR_COMPILE, "%s failed (exit code %d)\n%s", name, r->exit_code,
                  said);
}

static tn_status compile_in_folder(job *j) {
  process_result r;
  tn_status s = file_make_temporary_folder(&j->folder, j->arena, j->diag);
  if (s != TN_OK) return s;
  const char *from = arena_printf(j->arena, "%s/kernel.c", j->folder);
  const char *to = arena_printf(j->arena, "%s/kernel.o", j->folder);
  s = file_write(from, j->source, j->bytes, j->diag);
  if (s == TN_OK) s = process_run(command_line(j, from, to), j->c->limit_ns, j->arena, &r, j->diag);
  if (s == TN_OK) s = judge(j, &r);
  if (s == TN_OK) s = file_map_open(&j->map, to, j->diag);
  if (s == TN_OK)
    *j->object = (cc_object){arena_copy(j->arena, j->map.data, j->map.bytes), j->map.bytes};
  return s;
}

static void compile_body(void *arg) {
  job *j = arg;
  j->status = compile_in_folder(j);
}

/** Empties and removes a folder without subfolders. A compiler that was killed leaves files. */
static void remove_folder(const char *path) {
  DIR *d = opendir(path);
  for (const struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(dirfd(d), e->d_name, 0);
  if (d) closedir(d);
  file_remove_folder(path);
}

tn_status cc_compile(const cc *c, const char *source, size_t bytes, const char *const flags[],
                     arena *a, cc_object *object, diag *d) {
  job j = {.c = c,
           .source = source,
           .bytes = bytes,
           .flags = flags,
           .arena = a,
           .diag = d,
           .object = object};
  *object = (cc_object){0};
  tn_status s = diag_catch(a->diag, compile_body, &j);
  if (s != TN_OK && a->diag != d) diag_copy(d, a->diag);
  file_map_close(&j.map);
  if (j.folder) remove_folder(j.folder);
  return s == TN_OK ? j.status : s;
}
