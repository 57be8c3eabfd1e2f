/* Stands in for NVRTC: compiles CUDA C as C++ with the emulation's header by the C++ compiler of
   the machine. Its "cubin" is the shared object, behind a head. */
#include "device/cuda/nvrtc_api.h"
#include "stand_in.h"

#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every function of the table has the type that the table says. */
#define NVRTC(name, result, parameters) result nvrtc##name parameters;
#include "device/cuda/nvrtc_functions.def"
#undef NVRTC

enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6 };

struct nvrtc_program_object {
  char *source, *log, *image;
  size_t image_bytes;
};

nvrtc_status nvrtcVersion(int *major, int *minor) {
  *major = 0, *minor = 1;
  return 0;
}

const char *nvrtcGetErrorString(nvrtc_status status) {
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION"};
  return status >= 0 && status <= COMPILATION ? names[status] : "NVRTC_ERROR unknown";
}

nvrtc_status nvrtcCreateProgram(nvrtc_program *program, const char *source, const char *name,
                                int headers, const char *const *texts, const char *const *names) {
  if (!source || !name || headers || texts || names) return INVALID_INPUT;
  nvrtc_program p = calloc(1, sizeof *p);
  if (p) p->source = strdup(source);
  *program = p;
  return p && p->source ? 0 : NVRTC_OUT_OF_MEMORY;
}

nvrtc_status nvrtcDestroyProgram(nvrtc_program *program) {
  nvrtc_program p = *program;
  free(p->source), free(p->log), free(p->image);
  free(p);
  *program = NULL;
  return 0;
}

/* Files. */

static char *read_file(const char *path, size_t before, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  *bytes = (size_t)ftell(f);
  rewind(f);
  char *text = calloc(1, before + *bytes + 1);
  bool fine = text && fread(text + before, 1, *bytes, f) == *bytes;
  fclose(f);
  if (fine) return text;
  free(text);
  return NULL;
}

/** Writes the entry of each kernel after a text: the name before the parentheses of what is
    declared __global__. */
static void write_entries(FILE *f, const char *text) {
  static const char mark[] = "__global__", bounds[] = "__launch_bounds__";
  while ((text = strstr(text, mark))) {
    text += sizeof mark - 1;
    const char *open = strchr(text, '(');
    const char *found = strstr(text, bounds);
    if (found && open && found < open) open = strchr(open + 1, '(');
    if (!open) return;
    const char *first = open;
    while (first > text && first[-1] != ' ' && first[-1] != ')') first--;
    fprintf(f, "EMULATED(%.*s)\n", (int)(open - first), first);
  }
}

static bool write_source(const char *path, const char *text, bool has_entries) {
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fputs(text, f);
  if (has_entries) write_entries(f, text);
  return fclose(f) == 0;
}

/** Leaves a copy of a source for whoever asked for it. */
static void keep_source(const char *text) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static int number;
  const char *folder = getenv("STAND_IN_SOURCES");
  char path[512];
  if (!folder) return;
  pthread_mutex_lock(&lock);
  snprintf(path, sizeof path, "%s/%d-%d.cu", folder, (int)getpid(), number++);
  pthread_mutex_unlock(&lock);
  write_source(path, text, false);
}

/* Compiling. */

static int compilations;

int stand_in_compilations(void) { return __atomic_load_n(&compilations, __ATOMIC_SEQ_CST); }

/** Runs the C++ compiler with its messages in a file; false if it fails. */
static bool run_compiler(const char *source, const char *object, const char *messages) {
  char *const arguments[] = {"g++",
                             "-shared",
                             "-fPIC",
                             "-O1",
                             "-w",
                             "-std=c++17",
                             "-ffp-contract=off",
                             "-fno-math-errno",
                             "-fno-exceptions",
                             "-include",
                             EMULATION_HEADER,
                             "-x",
                             "c++",
                             (char *)source,
                             "-o",
                             (char *)object,
                             NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = 1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, messages, 01101, 0600);
  if (!posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ))
    waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return WIFEXITED(status) && !WEXITSTATUS(status);
}

/** Checks options as NVRTC knows them; the target's name, "" if one is wrong. */
static const char *target_of(int n, const char *const *options) {
  static const char *const known[] = {"--std=c++17",     "--fmad=false",     "--ftz=false",
                                      "--prec-div=true", "--prec-sqrt=true", NULL};
  static const char arch[] = "--gpu-architecture=";
  const char *target = "";
  unsigned seen = 0;
  for (int i = 0; i < n; i++) {
    int k = 0;
    while (known[k] && strcmp(known[k], options[i]) != 0) k++;
    if (known[k]) seen |= 1u << k;
    if (!strncmp(options[i], arch, sizeof arch - 1))
      target = options[i] + sizeof arch - 1;
    else if (!known[k])
      return "";
  }
  return seen & 2 ? target : ""; /* contracted, results would be others */
}

static nvrtc_status compile(nvrtc_program p, const char *target, const char *folder) {
  char source[600], object[600], messages[600];
  size_t bytes = 0;
  snprintf(source, sizeof source, "%s/kernels.cu", folder);
  snprintf(object, sizeof object, "%s/kernels.so", folder);
  snprintf(messages, sizeof messages, "%s/messages", folder);
  bool fine = write_source(source, p->source, true) && run_compiler(source, object, messages);
  p->log = read_file(messages, 0, &bytes);
  if (fine) p->image = read_file(object, sizeof(image_head), &bytes);
  unlink(source), unlink(object), unlink(messages);
  if (!p->image) return COMPILATION;
  image_head head = {.magic = IMAGE_MAGIC, .bytes = bytes};
  snprintf(head.target, sizeof head.target, "%s", target);
  memcpy(p->image, &head, sizeof head);
  p->image_bytes = sizeof head + bytes;
  return 0;
}

nvrtc_status nvrtcCompileProgram(nvrtc_program p, int n, const char *const *options) {
  const char *folder = getenv("TMPDIR"), *target = target_of(n, options);
  char own[512];
  __atomic_fetch_add(&compilations, 1, __ATOMIC_SEQ_CST);
  keep_source(p->source);
  if (!*target) {
    p->log = strdup("an option is unknown or missing");
    return INVALID_OPTION;
  }
  snprintf(own, sizeof own, "%s/stand-in-XXXXXX", folder ? folder : "/tmp");
  if (!mkdtemp(own)) return INVALID_INPUT;
  nvrtc_status s = compile(p, target, own);
  rmdir(own);
  return s;
}

static nvrtc_status tell(const char *data, size_t bytes, char *to) {
  if (!data) return INVALID_PROGRAM;
  memcpy(to, data, bytes);
  return 0;
}

nvrtc_status nvrtcGetProgramLogSize(nvrtc_program p, size_t *bytes) {
  *bytes = p->log ? strlen(p->log) + 1 : 0;
  return 0;
}

nvrtc_status nvrtcGetProgramLog(nvrtc_program p, char *log) {
  return tell(p->log, p->log ? strlen(p->log) + 1 : 0, log);
}

nvrtc_status nvrtcGetCUBINSize(nvrtc_program p, size_t *bytes) {
  *bytes = p->image_bytes;
  return p->image ? 0 : INVALID_PROGRAM;
}

nvrtc_status nvrtcGetCUBIN(nvrtc_program p, char *image) {
  return tell(p->image, p->image_bytes, image);
}
