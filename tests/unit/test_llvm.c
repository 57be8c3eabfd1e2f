/* Tests the LLVM module and how the library finds and opens it: broken files are told from a
   module, failing and cancelled compilations and exhausted memory are errors, threads compile at
   once, and the default pair follows what is there. Skipped where the module was not built. */
#include "base/file.h"
#include "compile/compile_kernels.h"
#include "device/cpu/elf_loader.h"
#include "device/cpu/isa_level.h"
#include "device/cpu/llvm_loader.h"
#include "device/registry/device_registry.h"
#include "support/temporary.h"

#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/** A function that sums `n` values, of which an object can be made. */
static const char program[] = "define float @sum(ptr %x, i64 %n) {\n"
                              "  br label %loop\n"
                              "loop:\n"
                              "  %i = phi i64 [ 0, %0 ], [ %next, %loop ]\n"
                              "  %s = phi float [ 0.0, %0 ], [ %t, %loop ]\n"
                              "  %at = getelementptr float, ptr %x, i64 %i\n"
                              "  %v = load float, ptr %at\n"
                              "  %t = fadd float %s, %v\n"
                              "  %next = add i64 %i, 1\n"
                              "  %more = icmp slt i64 %next, %n\n"
                              "  br i1 %more, label %loop, label %end\n"
                              "end:\n"
                              "  ret float %t\n"
                              "}\n";

typedef struct fixture {
  diag diag;
  arena arena;
  const llvm_module *module;
  const char *folder;
} fixture;

typedef struct object {
  char *data;
  size_t bytes;
} object;

static void add(void *user, const void *data, size_t bytes) {
  object *o = user;
  o->data = realloc(o->data, o->bytes + bytes);
  assert_non_null(o->data);
  memcpy(o->data + o->bytes, data, bytes);
  o->bytes += bytes;
}

static llvm_job job_of(const char *text, object *to) {
  isa_target target;
  assert_int_equal(isa_target_find(NULL, &target, NULL), TN_OK);
  return (llvm_job){.text = text,
                    .bytes = strlen(text),
                    .cpu = target.level->llvm_cpu,
                    .features = "",
                    .vector_bytes = target.level->vector_bytes,
                    .add = add,
                    .user = to};
}

static void prepare(void *arg) {
  fixture *f = arg;
  f->folder = temporary_folder(&f->arena);
}

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  *state = f;
  arena_init(&f->arena, &mem_system, &f->diag);
  if (diag_catch(&f->diag, prepare, f) || !f->folder) return 1;
  if (llvm_module_open(&f->module, &f->diag)) f->module = NULL;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
  int failed = system(command);
  arena_free(&f->arena);
  free(f);
  return failed;
}

/** Skips a test where there is no module. */
static void need_module(const fixture *f) {
  if (f->module) return;
  print_message("skipped: %s\n", f->diag.text);
  skip();
}

static void a_module_compiles(void **state) {
  fixture *f = *state;
  need_module(f);
  object o = {0};
  llvm_job job = job_of(program, &o);
  assert_int_equal(f->module->compile(&job), LLVM_COMPILED);
  elf_image *elf;
  assert_int_equal(elf_load(&elf, o.data, o.bytes, &mem_system, &f->diag), TN_OK);
  float (*sum)(const float *, int64_t) =
      (float (*)(const float *, int64_t))(uintptr_t)elf_symbol(elf, "sum");
  static const float x[] = {1, 2.5f, 4};
  assert_true(sum(x, 3) == 7.5f);
  elf_free(elf);
  free(o.data);
  char identity[256];
  f->module->identify(identity, sizeof identity);
  assert_non_null(strstr(identity, "LLVM "));
}

static void bad_text_is_an_error(void **state) {
  fixture *f = *state;
  need_module(f);
  static const char *const texts[] = {"define void @f() {", "no text of LLVM", "declare void @f(",
                                      "define void @f() { %x = add i32 1, 2.0\n ret void }"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    object o = {0};
    llvm_job job = job_of(texts[i], &o);
    assert_int_equal(f->module->compile(&job), LLVM_FAILED);
    assert_non_null(strstr(job.message, "LLVM cannot parse a kernel"));
    assert_null(o.data);
  }
}

static void a_compilation_is_cancelled(void **state) {
  fixture *f = *state;
  need_module(f);
  object o = {0};
  atomic_bool cancel;
  atomic_init(&cancel, true);
  llvm_job job = job_of(program, &o);
  job.cancel = &cancel;
  assert_int_equal(f->module->compile(&job), LLVM_CANCELLED);
  assert_null(o.data);
}

enum { THREADS = 4, TIMES = 8 };

typedef struct worker {
  const fixture *f;
  object made[TIMES];
} worker;

static void *compile_often(void *arg) {
  worker *w = arg;
  for (int i = 0; i < TIMES; i++) {
    llvm_job job = job_of(program, &w->made[i]);
    if (w->f->module->compile(&job) != LLVM_COMPILED) return NULL;
  }
  return w;
}

/** Objects depend on the text alone. */
static void threads_compile_at_once(void **state) {
  fixture *f = *state;
  need_module(f);
  pthread_t threads[THREADS];
  static worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.f = f};
    assert_int_equal(pthread_create(&threads[i], NULL, compile_often, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *done;
    pthread_join(threads[i], &done);
    assert_non_null(done);
  }
  const object *first = &workers[0].made[0];
  for (int i = 0; i < THREADS * TIMES; i++) {
    object *o = &workers[i / TIMES].made[i % TIMES];
    assert_int_equal(o->bytes, first->bytes);
    assert_memory_equal(o->data, first->data, o->bytes);
    if (o != first) free(o->data);
  }
  free(first->data);
}

/** A text whose compilation takes some memory: many functions. */
static char *long_program(int functions) {
  enum { STATEMENTS = 300 };
  char *text = malloc((size_t)functions * (STATEMENTS + 2) * 64), *at = text;
  assert_non_null(text);
  for (int k = 0; k < functions; k++) {
    at += sprintf(at, "define <8 x float> @f%d(<8 x float> %%x0) {\n", k);
    for (int i = 0; i < STATEMENTS; i++)
      at += sprintf(at, "  %%x%d = fadd <8 x float> %%x%d, %%x%d\n", i + 1, i, i / 2);
    at += sprintf(at, "  ret <8 x float> %%x%d\n}\n", STATEMENTS);
  }
  return text;
}

/** In a process of its own: compiles with some KiB of memory more than it has. */
static int compile_within(fixture *f, const char *text, size_t kib) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) {
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* not killed, by abort or otherwise */
    return WEXITSTATUS(status);
  }
  long pages = 0;
  malloc_trim(0);
  FILE *statm = fopen("/proc/self/statm", "r");
  if (!statm || fscanf(statm, "%ld", &pages) != 1) _exit(99);
  fclose(statm);
  rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + kib * 1024;
  setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
  object o = {0};
  llvm_job job = job_of(text, &o);
  _exit((int)f->module->compile(&job));
}

static void memory_may_run_out_anywhere(void **state) {
  fixture *f = *state;
  need_module(f);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  print_message("skipped: sanitizers take memory of their own\n");
  skip();
#endif
  char *text = long_program(150);
  object o = {0};
  llvm_job job = job_of(program, &o); /* what is set up once is there */
  assert_int_equal(f->module->compile(&job), LLVM_COMPILED);
  free(o.data);
  int failed = 0, outcome = LLVM_NO_MEMORY;
  for (size_t kib = 0; outcome != LLVM_COMPILED; kib += 1000) {
    assert_true(kib < 1000000);
    outcome = compile_within(f, text, kib);
    assert_true(outcome == LLVM_COMPILED || outcome == LLVM_NO_MEMORY);
    failed += outcome == LLVM_NO_MEMORY;
  }
  assert_true(failed > 2);
  free(text);
}

/* Finding. */

static void refuse_module(fixture *f, const char *path, const char *said) {
  const llvm_module *m;
  setenv("TENON_LLVM", path, 1);
  assert_int_equal(llvm_module_open(&m, &f->diag), TN_ERR_COMPILE);
  if (!strstr(f->diag.text, said)) fail_msg("%s does not say %s", f->diag.text, said);
  assert_non_null(strstr(f->diag.text, "libllvm19"));
  assert_null(m);
}

static void write_file(fixture *f, const char *path, const void *data, size_t bytes) {
  assert_int_equal(file_write(path, data, bytes, &f->diag), TN_OK);
}

static void other_files_are_told_from_a_module(void **state) {
  fixture *f = *state;
  const char *had = getenv("TENON_LLVM");
  char *keep = had ? strdup(had) : NULL, path[512];
  snprintf(path, sizeof path, "%s/tenon-llvm.so", f->folder);
  refuse_module(f, "off", "there is no LLVM module");
  refuse_module(f, path, "does not load");
  write_file(f, path, "no shared object", 16);
  refuse_module(f, path, "is torn or no shared object");
  Dl_info math;
  assert_true(dladdr((void *)(uintptr_t)cos, &math) != 0);
  refuse_module(f, math.dli_fname, "is not the LLVM module of this build");
  char make[1200];
  snprintf(make, sizeof make,
           "echo 'const int tenon_llvm_module[9] = {-1};' | cc -shared -x c - -o '%s'", path);
  if (system(make))
    print_message("without a C compiler: no module of another build\n");
  else
    refuse_module(f, path, "is not the LLVM module of this build");
  if (f->module && keep) { /* torn */
    static const char *const parts[] = {"-c 30", "-c 300", "-c 9000", "-c -1"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
      char command[1800];
      snprintf(command, sizeof command, "rm -f '%s' && head %s '%s' >'%s'", path, parts[i], keep,
               path);
      assert_int_equal(system(command), 0);
      refuse_module(f, path, "is torn or no shared object");
    }
  }
  if (keep) setenv("TENON_LLVM", keep, 1);
  free(keep);
}

static const char *default_pair(fixture *f, tn_device *cpu, const char *compiler) {
  const device_target *t;
  const device_target_desc desc = {.compiler = compiler};
  assert_int_equal(device_target_find(cpu, &desc, &t, &f->diag), TN_OK);
  return t->compiler->name;
}

static void the_default_pair_is_what_is_there(void **state) {
  fixture *f = *state;
  need_module(f);
  registry *r;
  tn_device *cpu;
  assert_int_equal(registry_open(&r, &(registry_desc){.mem = &mem_system}, &f->diag), TN_OK);
  assert_int_equal(registry_open_device(r, "CPU", &cpu, &f->diag), TN_OK);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const char *other = "cc"; /* LLVM does not instrument */
#else
  const char *other = "llvm";
#endif
  char *path = strdup(getenv("PATH"));
  assert_string_equal(default_pair(f, cpu, NULL), "cc");
  setenv("PATH", f->folder, 1); /* without a C compiler */
  assert_string_equal(default_pair(f, cpu, NULL), other);
  assert_string_equal(default_pair(f, cpu, "gcc"), "cc");
  setenv("PATH", path, 1);
  free(path);
  const device_target *c, *llvm;
  const device_target_desc descs[] = {{.pair = "c/cc"}, {.pair = "llvm/llvm"}};
  assert_int_equal(device_target_find(cpu, &descs[0], &c, &f->diag), TN_OK);
  assert_int_equal(device_target_find(cpu, &descs[1], &llvm, &f->diag), TN_OK);
  assert_memory_equal(&c->target, &llvm->target, sizeof c->target); /* the same programs */
  registry_close(r);
}

int main(void) {
  mallopt(M_ARENA_MAX, 1); /* one heap, so that a limit on memory applies to all of it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(a_module_compiles),
      TEST(bad_text_is_an_error),
      TEST(a_compilation_is_cancelled),
      TEST(threads_compile_at_once),
      TEST(memory_may_run_out_anywhere),
      TEST(other_files_are_told_from_a_module),
      TEST(the_default_pair_is_what_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
