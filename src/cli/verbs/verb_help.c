/* Implements `tenon help`, which prints how the command, or a verb, is used, from the tables of
   verbs and options. */
#include "cli/verbs/verb_help.h"

#include "base/str.h"
#include "cli/verbs/verb_table.h"

#include <stdio.h>
#include <string.h>

/** The usage line: "usage: tenon run [OPTION]… MODEL". In the arena. */
static const char *usage_text(command *c, const verb *v) {
  str s = str_new(&c->arena);
  str_addf(&s, "usage: tenon %s", v->name);
  if (v->n_options) str_add(&s, " [OPTION]…");
  if (v->operand) str_addf(&s, " %s", v->operand);
  return str_text(&s);
}

enum { HELP_COLUMN = 24 };

/** Prints a name in the left column and lines of text in the right one. */
static void print_row(const char *name, const char *text) {
  printf("  %-*s", HELP_COLUMN - 2, name);
  if (strlen(name) > HELP_COLUMN - 3) printf("\n%*s", HELP_COLUMN, "");
  for (size_t n; (n = strcspn(text, "\n")), text[n]; text += n + 1)
    printf("%.*s\n%*s", (int)n, text, HELP_COLUMN, "");
  printf("%s\n", text);
}

static void print_command_help(void) {
  puts("usage: tenon COMMAND [ARGUMENT]…\n\nCompile and run machine-learning models.\n\ncommands:");
  for (size_t i = 0; i < VERBS; i++) print_row(verb_table[i]->name, verb_table[i]->summary);
  puts("\noptions of every command:");
  print_row("-h, --help", "print the help of the command; also tenon help COMMAND");
  print_row("--backend FILE", "load a backend from a shared object; repeatable");
  print_row("-v", "log the library's decisions to standard error");
  print_row("-vv", "also log each kernel and plan");
  puts(
      "\nexamples:\n"
      "  tenon run model.onnx --input x=image.npy --output y=scores.npy\n"
      "  tenon bench model.onnx --size batch=8\n"
      "  tenon help run\n\n"
      "Results go to standard output, everything else to standard error. The exit status is 0 for\n"
      "success, 1 for a failure and 2 for a wrong command line.\n\n"
      "environment:");
  print_row("TENON_DEVICE", "device, as option --device");
  print_row("TENON_THREADS", "number of threads, as option --threads");
  print_row("TENON_BACKEND",
            "shared objects of backends, as option --backend, with colons between");
  print_row("TENON_PAIR",
            "renderer and compiler of kernels, of the context's own device: c/cc or\n"
            "llvm/llvm on CPU, opencl/driver or opencl-teams/driver on OPENCL; tenon\n"
            "devices lists all; default: the first that is there");
  print_row("TENON_CPU",
            "newest instruction set to use: x86-64, x86-64-v2, x86-64-v3 or x86-64-v4,\n"
            "and features beyond it: x86-64-v4+avx512vnni+avx512bf16, x86-64-v3+avxvnni;\n"
            "OpenBLAS does not heed it");
  print_row("TENON_MATH",
            "freedoms of float arithmetic, as option --math: exact, contract, sum, flush,\n"
            "default or fast");
  print_row("TENON_MEMORY", "most memory to allocate, as 4G; default: no limit");
  print_row("TENON_COMPILE_SECONDS",
            "most seconds to load a model, and to compile a plan; 0: no limit;\ndefault: 1800");
  print_row("TENON_DUMP", "DIR:after:PASS writes the graph after a pass to DIR (* is every pass)");
  print_row("TENON_CC, CC", "C compiler of kernels, with its arguments; default: cc, gcc or clang");
  print_row("TENON_LLVM",
            "file of the LLVM module, or off; default: tenon-llvm.so beside the library");
  print_row("TENON_NVRTC",
            "file of NVRTC, which compiles kernels for CUDA; default: the first that is\n"
            "found along LD_LIBRARY_PATH or where toolkits are installed");
  print_row("TENON_CACHE", "folder of the disk cache, or off; default: $XDG_CACHE_HOME/tenon or\n"
                           "$HOME/.cache/tenon");
  print_row("TENON_TUNED", "file of tuned schedules, or off; default: tuned in the cache folder");
  print_row("TENON_VENDOR",
            "on: kernels that are a product of matrices become calls of the device's\n"
            "library where tenon tune measured it to be faster, or off; default: on for\n"
            "CUDA (cuBLAS), off for the CPU (OpenBLAS)");
  print_row("TENON_OPENBLAS", "file of OpenBLAS; default: libopenblas.so.0");
  print_row("TENON_CUBLAS", "file of cuBLAS; default: found as NVRTC is");
  print_row("TENON_NCCL", "file of NCCL, for groups of processes; default: found as NVRTC is");
  print_row("PATH", "folders in which compilers are found");
  print_row("NO_COLOR, TERM", "NO_COLOR or TERM=dumb disables colours");
}

static void print_verb_help(command *c, const verb *v) {
  printf("%s\n\n%s.\n", usage_text(c, v), v->summary);
  if (v->n_options) puts("\noptions:");
  for (size_t i = 0; i < v->n_options; i++) {
    const option *o = &v->options[i];
    const char *letter = v->letters && strchr(v->letters, *o->name) ? v->letters : NULL;
    str name = str_new(&c->arena);
    if (letter) str_addf(&name, "-%c, ", *o->name);
    str_addf(&name, "--%s", o->name);
    if (o->kind != OPTION_FLAG) str_addf(&name, " %s", o->value);
    print_row(str_text(&name), o->about);
  }
  if (v->examples) puts("\nexamples:");
  for (const char *line = v->examples; line && *line;) {
    size_t n = strcspn(line, "\n");
    printf("  %.*s\n", (int)n, line);
    line += n + (line[n] == '\n');
  }
  if (v->about) printf("\n%s", v->about);
  if (v->print_more) v->print_more();
  if (v->about) puts("");
}

void help_print(command *c, const verb *v) {
  if (v)
    print_verb_help(c, v);
  else
    print_command_help();
}

static int act(command *c) {
  help_print(c, c->operand ? verb_find(c, c->operand) : NULL);
  return EXIT_DONE;
}

const verb verb_help = {.name = "help",
                        .summary = "Print the help of tenon or of a command",
                        .operand = "[COMMAND]",
                        .act = act};
