/* Finds gcc or clang on the PATH or by name, and runs it to compile C from standard input to an
   object on standard output. The fixed flags ask for strict floating point, make objects the
   same for all users, and avoid sections and calls that the ELF loader does not support. Also
   identifies the compiler for cache keys. */
#include "device/cpu/c_compiler.h"

#include "base/environment.h"
#include "base/process.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/cpu/llvm_loader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef VEC(const char *) word_list;

static const int64_t version_limit_ns = 10 * (int64_t)1000000000;
static const int64_t compile_limit_ns = 180 * (int64_t)1000000000;

static const char install_hint[] =
    "install gcc or clang (on Debian: apt install gcc, or apt install clang)";

/** The way to do without a C compiler. */
static const char *llvm_hint(void) {
  char path[LLVM_PATH_BYTES];
  diag unreported;
  const char *given = environment_get("TENON_LLVM");
  if (!llvm_module_find(path, &unreported))
    return "LLVM compiles in its place (the pair llvm/llvm)";
  if (given && !strcmp(given, "off")) return "LLVM would do too, but TENON_LLVM switches it off";
  return "LLVM would do too, but there is no LLVM module (scripts/setup.sh --llvm, then build)";
}

/* Flags behind those of the caller's command, as the last flag wins. Relaxed floating-point
   is the business of the rules, by the math mode, and never of the compiler: an option that was
   switched on by its own name outlives -fno-fast-math, so each is switched off by name, after
   -fno-fast-math, which would also bring clang's contraction back. Contraction would make results
   differ between compilers; errno and floating-point traps do not show in a kernel's results.
   Hidden visibility lets calls inside the object be direct. The other flags avoid sections and
   calls that the loader does not support. */
static const char *const always[] = {
    "-c",
    "-O2",
    "-std=gnu11",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-fast-math",
    "-fno-finite-math-only",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fsigned-zeros",
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

/* Flags by kind. clang reads -fno-unsafe-math-optimizations as a request for traps. gcc does not
   vectorise loops: kernels are vectorised already, and gcc 12.2 adds wrongly where it puts eight
   sums of i32 as i64 into lanes of AVX-512; without -frounding-math it replaces 0.0 - x by -x where
   x was an integer. Its choice of induction variables compares every candidate with every use in a
   loop, for seconds where copies and lanes have hundreds: it leaves such loops as they are. No flag
   writes files, not even when the compiler crashes. */
static const char *const kind_flags[][8] = {
    [CC_GCC] = {"-fno-unsafe-math-optimizations", "-fno-single-precision-constant",
                "-fno-tree-loop-vectorize", "-frounding-math", "--param=iv-max-considered-uses=160",
                "-pipe", "-fno-report-bug"},
    [CC_CLANG] = {"-fno-approx-func", "-fdenormal-fp-math=ieee", "-fno-crash-diagnostics"},
};

/* The loader runs no constructors, so globals are not instrumented; red zones in stack frames would
   need the sanitizer's private state. */
static const char *const instrument_flags[2][3][6] = {
    [CC_GCC] = {[CC_ADDRESS_SANITIZER] = {"-fsanitize=address", "--param=asan-globals=0",
                                          "--param=asan-stack=0"},
                [CC_THREAD_SANITIZER] = {"-fsanitize=thread"}},
    [CC_CLANG] = {[CC_ADDRESS_SANITIZER] = {"-fsanitize=address", "-mllvm", "-asan-globals=0",
                                            "-mllvm", "-asan-stack=0"},
                  [CC_THREAD_SANITIZER] = {"-fsanitize=thread"}},
};

static const char *const plain_english[] = {"LC_ALL=C", NULL};

static void add_words(arena *a, word_list *w, const char *const *more) {
  for (; more && *more; more++) vec_push(a, w, *more);
}

/* The names that a compiler is looked for by, if none is given. */
static const char *const default_names[] = {"cc", "gcc", "clang"};
enum { DEFAULT_NAMES = sizeof default_names / sizeof *default_names };

/* Finding. */

static word_list split_words(const char *text, arena *a) {
  word_list w = {0};
  char *rest = NULL;
  for (char *at = strtok_r(arena_printf(a, "%s", text), " \t", &rest); at;
       at = strtok_r(NULL, " \t", &rest))
    vec_push(a, &w, at);
  vec_push(a, &w, NULL);
  return w;
}

/** Reads the answer to --version, in which gcc begins with the name it was started by, as "gcc-12"
    or "cc". False if it is neither gcc's nor clang's. */
static bool read_version(cc *c, const char *answer, arena *a) {
  c->version = arena_printf(a, "%.*s", (int)strcspn(answer, "\n"), answer);
  const char *name = arena_printf(a, "%.*s", (int)strcspn(answer, " \n"), answer);
  bool clang = strstr(c->version, "clang");
  c->kind = clang ? CC_CLANG : CC_GCC;
  return clang || strstr(name, "gcc") ||
         (strstr(name, "cc") && strstr(answer, "Free Software Foundation"));
}

/** Fills in the compiler of a command; false if there is none, or it is of another kind. The first
    failure to start one, or to get an answer of one within the limit, is recorded in `d`. */
static bool try_command(cc *c, const char *text, int64_t limit_ns, arena *a, diag *d) {
  word_list command = split_words(text, a), query = {0};
  if (!command.at[0] || !(command.at[0] = process_find(a, command.at[0]))) return false;
  c->command = command.at;
  add_words(a, &query, c->command);
  vec_push(a, &query, "--version");
  vec_push(a, &query, NULL);
  process_result r;
  diag why = {0};
  if (process_run(&(process_request){.argv = query.at, .set = plain_english, .limit_ns = limit_ns},
                  a, &r, &why)) {
    if (d->status == TN_OK) d->failure = why.failure;
    return false;
  }
  if (r.timed_out && d->status == TN_OK)
    diag_set(d, TN_ERR_TIMEOUT, "%s --version gave no answer within %.3g s and was killed",
             c->command[0], (double)limit_ns * 1e-9);
  return (r.exit_code == 0 || r.exit_code_lost) && read_version(c, r.output, a);
}

/** The option that a compiler's name comes from, for messages. */
static const char *name_origin(const char *name) {
  static const char *const variables[] = {"TENON_CC", "CC"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = environment_get(variables[i]);
    if (value && !strcmp(value, name)) return variables[i];
  }
  return "the context's compiler";
}

tn_status cc_find(cc *c, const char *name, arena *a, diag *d) {
  return cc_find_within(c, name, version_limit_ns, a, d);
}

tn_status cc_find_within(cc *c, const char *name, int64_t limit_ns, arena *a, diag *d) {
  diag why = {0};
  *c = (cc){.limit_ns = compile_limit_ns};
  for (size_t i = 0; i < (name ? 1 : DEFAULT_NAMES); i++)
    if (try_command(c, name ? name : default_names[i], limit_ns, a, &why)) {
      c->shown = name ? arena_printf(a, "\"%s\" (%s)", name, name_origin(name)) : c->command[0];
      return TN_OK;
    }
  const char *program = name ? split_words(name, a).at[0] : NULL;
  if (name && !program)
    diag_set(&why, TN_ERR_COMPILE, "the name is empty");
  else if (program && !process_find(a, program))
    diag_set(&why, TN_ERR_COMPILE, "there is no program \"%.200s\"", program);
  const char *colon = why.status ? ": " : "";
  if (name && why.status == TN_ERR_TIMEOUT)
    return diag_set(d, TN_ERR_COMPILE,
                    "the C compiler \"%s\" (%s) hangs: %s; set or unset the compiler (the "
                    "context's, TENON_CC or CC)",
                    name, name_origin(name), why.text);
  if (name)
    return diag_set(d, TN_ERR_COMPILE,
                    "the C compiler \"%s\" (%s) %s%s; set or unset the compiler (the context's, "
                    "TENON_CC or CC), or %s",
                    name, name_origin(name),
                    why.status ? "does not start: "
                               : "starts, but --version tells of no gcc or clang",
                    why.text, install_hint);
  return diag_set(d, TN_ERR_COMPILE,
                  "no C compiler found (tried cc, gcc and clang%s%s); set the compiler (the "
                  "context's, TENON_CC or CC), or %s; %s",
                  colon, why.text, install_hint, llvm_hint());
}

tn_status cc_check_present(const char *name, arena *a, diag *d) {
  word_list command = {0};
  for (size_t i = 0; i < (name ? 1 : DEFAULT_NAMES); i++) {
    command = split_words(name ? name : default_names[i], a);
    if (command.at[0] && process_find(a, command.at[0])) return TN_OK;
  }
  if (name)
    return diag_set(d, TN_ERR_COMPILE,
                    "the C compiler \"%.200s\" (%s) does not start: there is no program \"%.200s\"",
                    name, name_origin(name), command.at[0] ? command.at[0] : "");
  return diag_set(d, TN_ERR_COMPILE, "no C compiler found (tried cc, gcc and clang): %s; %s",
                  install_hint, llvm_hint());
}

static void add_file_fingerprint(str *s, const char *path) {
  struct stat f;
  if (stat(path, &f)) return;
  str_addf(s, " %s %llu %llu %lld %lld.%09ld %lld.%09ld", path, (unsigned long long)f.st_dev,
           (unsigned long long)f.st_ino, (long long)f.st_size, (long long)f.st_mtim.tv_sec,
           f.st_mtim.tv_nsec, (long long)f.st_ctim.tv_sec, f.st_ctim.tv_nsec);
}

/** Adds a word of a command, and the fingerprints of the file it names and of all on the PATH that
    have its name. */
static void add_word(str *s, const char *word) {
  const char *slash = strrchr(word, '/');
  str_addf(s, "\n%s", word);
  if (slash) add_file_fingerprint(s, word);
  process_paths found = process_find_all(s->arena, slash ? slash + 1 : word);
  for (size_t i = 0; i < found.n; i++) add_file_fingerprint(s, found.at[i]);
}

const char *cc_fingerprint(const char *name, arena *a) {
  str s = str_new(a);
  for (size_t i = 0; i < (name ? 1 : DEFAULT_NAMES); i++) {
    word_list command = split_words(name ? name : default_names[i], a);
    for (size_t k = 0; k + 1 < command.n; k++) add_word(&s, command.at[k]);
  }
  return str_text(&s);
}

const char *cc_identity(const cc *c, arena *a) {
  str s = str_new(a);
  str_addf(&s, "%s; %s;", c->kind == CC_GCC ? "gcc" : "clang", c->version);
  for (const char *const *w = c->command; *w; w++) str_addf(&s, " %s", *w);
  for (const char *const *w = always; *w; w++) str_addf(&s, " %s", *w);
  for (const char *const *w = kind_flags[c->kind]; *w; w++) str_addf(&s, " %s", *w);
  for (const char *const *w = instrument_flags[c->kind][c->instrument]; *w; w++)
    str_addf(&s, " %s", *w);
  return str_text(&s);
}

/* Compiling. */

/* Of the compiler's output, in messages. */
enum { SHOWN_BYTES = 1200, SHOWN_LINES = 12 };

/** One call of a compiler. */
typedef struct compile_job {
  const cc *c;
  const char *source;
  size_t bytes;
  const char *const *flags;
  arena *arena;
  diag *diag;
  cc_object *object;
  tn_status status;
} compile_job;

static const char *const *command_line(const compile_job *j) {
  word_list w = {0};
  arena *a = j->arena;
  add_words(a, &w, j->c->command);
  add_words(a, &w, always);
  add_words(a, &w, kind_flags[j->c->kind]);
  add_words(a, &w, instrument_flags[j->c->kind][j->c->instrument]);
  add_words(a, &w, j->flags);
  add_words(a, &w, (const char *const[]){"-x", "c", "-", "-o", PROCESS_STDOUT_PATH, NULL});
  vec_push(a, &w, NULL);
  return w.at;
}

/** The first lines of the compiler's output, beginning with a line end; "" if there are none. */
static const char *first_lines(const compile_job *j, const char *output) {
  size_t n = 0;
  for (int lines = 0; output[n] && lines < SHOWN_LINES && n < SHOWN_BYTES; n++)
    lines += output[n] == '\n';
  while (n && output[n - 1] == '\n') n--;
  return arena_printf(j->arena, "%s%.*s", n ? "\n" : "", (int)n, output);
}

static tn_status check_result(const compile_job *j, const process_result *r) {
  const char *name = j->c->shown, *lines = first_lines(j, r->output);
  if (r->timed_out && j->c->cancel && atomic_load(j->c->cancel))
    return diag_set(j->diag, TN_ERR_CANCELLED, "%s was cancelled", name);
  if (r->timed_out)
    return diag_set(j->diag, TN_ERR_TIMEOUT, "%s exceeded the time limit of %lld ms and was killed",
                    name, (long long)(j->c->limit_ns / 1000000));
  if (r->exit_code_lost && *lines) /* the flags leave it silent but for errors */
    return diag_set(j->diag, TN_ERR_COMPILE, "%s failed%s", name, lines);
  if (r->exit_code > 0)
    return diag_set(j->diag, TN_ERR_COMPILE, "%s failed (exit code %d)%s", name, r->exit_code,
                    lines);
  if (r->exit_code < 0 && !r->exit_code_lost)
    return diag_set(j->diag, TN_ERR_COMPILE, "%s was killed by a signal%s", name, lines);
  if (!r->file)
    return diag_set(j->diag, TN_ERR_COMPILE, "%s created no object file%s", name, lines);
  return TN_OK;
}

static void compile_body(void *arg) {
  compile_job *j = arg;
  process_result r;
  process_request q = {.argv = command_line(j),
                       .set = plain_english,
                       .input = j->source,
                       .input_bytes = j->bytes,
                       .stdout_is_file = true,
                       .limit_ns = j->c->limit_ns,
                       .cancel = j->c->cancel};
  j->status = process_run(&q, j->arena, &r, j->diag);
  if (j->status == TN_OK) j->status = check_result(j, &r);
  if (j->status == TN_OK) *j->object = (cc_object){r.file, r.file_bytes};
}

tn_status cc_compile(const cc *c, const char *source, size_t bytes, const char *const flags[],
                     arena *a, cc_object *object, diag *d) {
  compile_job j = {.c = c,
                   .source = source,
                   .bytes = bytes,
                   .flags = flags,
                   .arena = a,
                   .diag = d,
                   .object = object};
  *object = (cc_object){0};
  tn_status s = diag_catch(a->diag, compile_body, &j);
  if (s != TN_OK && a->diag != d) d->failure = a->diag->failure;
  return s == TN_OK ? j.status : s;
}
