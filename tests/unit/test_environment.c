/* Tests access to environment variables, and that set-user-id programs ignore those of the user who
   starts them. For that this program copies itself, gives the copy to another user, and starts it
   set-user-id, which takes root. */
#include "base/environment.h"
#include "base/file.h"
#include "base/process.h"
#include "compile/disk_cache_folder.h"
#include "device/cpu/c_compiler.h"
#include "support/temporary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, NOBODY = 65534 };

static void variables_are_read(void **state) {
  (void)state;
  setenv("TENON_TEST_VARIABLE", "value", 1);
  assert_string_equal(environment_get("TENON_TEST_VARIABLE"), "value");
  assert_ptr_equal(environment_inherited(), environ);
  setenv("TENON_TEST_VARIABLE", "", 1);
  assert_null(environment_get("TENON_TEST_VARIABLE"));
  unsetenv("TENON_TEST_VARIABLE");
  assert_null(environment_get("TENON_TEST_VARIABLE"));
}

/** Runs in the copy, in an environment that sets every variable. Returns 0, or the number of the
    check that failed. */
static int check_set_id(void) {
  static const char *const names[] = {"CC", "HOME", "TENON_CACHE", "TENON_CC", "XDG_CACHE_HOME"};
  diag d = {0};
  arena a;
  char path[DISK_CACHE_PATH_BYTES];
  process_result r;
  const char *argv[] = {"/usr/bin/env", NULL};
  if (!getauxval(AT_SECURE)) return SKIPPED; /* the file system ignores the set-user-id bit */
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!getenv(names[i]) || environment_get(names[i])) return 1;
  arena_init(&a, &mem_system, &d);
  if (process_find(&a, "planted")) return 2;
  if (!process_find(&a, "sh")) return 3;
  if (process_run(&(process_request){.argv = argv, .limit_ns = INT64_C(20000000000)}, &a, &r, &d))
    return 4;
  if (strcmp(r.output, "PATH=/usr/bin:/bin\n")) return 5;
  if (disk_cache_folder_path(NULL, path, &d) == TN_OK) return 6;
  return 0;
}

static bool copy_program(const char *to, diag *d) {
  file_map f;
  bool ok = !file_map_open(&f, "/proc/self/exe", d) && !file_write(to, f.data, f.bytes, d) &&
            !chown(to, NOBODY, (gid_t)-1) && !chmod(to, 04755);
  file_map_close(&f);
  return ok;
}

static int start_copy(const char *program, char *folder, arena *a) {
  int status;
  pid_t child = fork();
  if (!child) {
    char *const env[] = {arena_printf(a, "PATH=%s:/usr/bin:/bin", folder),
                         arena_printf(a, "HOME=%s", folder),
                         arena_printf(a, "XDG_CACHE_HOME=%s", folder),
                         "CC=planted",
                         "TENON_CC=planted",
                         "TENON_CACHE=cache",
                         NULL};
    execle(program, program, "set-id", NULL, env);
    _exit(99);
  }
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int result_of_copy = SKIPPED;

static void other_users_variables_are_not_read(void **state) {
  diag d = {0};
  arena a;
  (void)state;
  arena_init(&a, &mem_system, &d);
  char *folder = temporary_folder(&a), *program = arena_printf(&a, "%s/program", folder);
  char *planted = arena_printf(&a, "%s/planted", folder);
  if (!geteuid() && !chmod(folder, 0755) && copy_program(program, &d) &&
      !file_write(planted, "#!/bin/sh\n", 10, &d) && !chmod(planted, 0755))
    result_of_copy = start_copy(program, folder, &a);
  unlink(program);
  unlink(planted);
  rmdir(folder);
  arena_free(&a);
  if (result_of_copy == SKIPPED) skip();
  assert_int_equal(result_of_copy, 0);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "set-id")) _exit(check_set_id());
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_are_read),
      cmocka_unit_test(other_users_variables_are_not_read),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return failed ? failed : result_of_copy;
}
