/* The LLVM module: parses the text of kernels, runs a short pipeline of passes, as the kernels are
   tiled, vectorised and unrolled already, and generates an object in memory. Each compilation has a
   context and a target machine of its own, and a thread of its own, as LLVM recurses deeper than a
   caller's stack may reach. */
#include "device/llvm/llvm_module.h"

#include "device/llvm/emit_object.h"
#include "device/llvm/llvm_exceptions.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSES "function(mem2reg,early-cse,loop(loop-idiom))"

/* The stack of a compilation's thread, and memory that must be there before it touches LLVM: the C
   library ends the process where it has none for a thread's copy of LLVM's variables. */
enum { STACK_BYTES = 32 << 20, LEAST_BYTES = 4 << 20 };

typedef struct compilation {
  llvm_job *job;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
  llvm_outcome outcome;
} compilation;

/** Records a failure, with LLVM's message, which is freed. False. */
static bool fail(compilation *c, const char *step, char *message) {
  snprintf(c->job->message, sizeof c->job->message, "LLVM cannot %s: %s", step,
           message ? message : "no reason given");
  LLVMDisposeMessage(message);
  c->outcome = LLVM_FAILED;
  return false;
}

/** Called for errors that code generation reports without failing; warnings are ignored. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  compilation *c = user;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || c->outcome) return;
  fail(c, "compile a kernel", LLVMGetDiagInfoDescription(info));
}

static bool parse(compilation *c) {
  char *message = NULL;
  LLVMMemoryBufferRef text =
      LLVMCreateMemoryBufferWithMemoryRange(c->job->text, c->job->bytes, "kernels", true);
  if (!LLVMParseIRInContext(c->context, text, &c->module, &message)) return true;
  return fail(c, "parse a kernel", message);
}

static bool make_machine(compilation *c) {
  LLVMTargetRef target;
  char *message = NULL, *triple = LLVMGetDefaultTargetTriple();
  bool failed = LLVMGetTargetFromTriple(triple, &target, &message);
  if (!failed)
    c->machine =
        LLVMCreateTargetMachine(target, triple, c->job->cpu, c->job->features,
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
  LLVMSetTarget(c->module, triple);
  LLVMDisposeMessage(triple);
  if (failed) return fail(c, "generate code for this processor", message);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(c->machine);
  LLVMSetModuleDataLayout(c->module, layout);
  LLVMDisposeTargetData(layout);
  return true;
}

/** Sets the target of all functions, and the width up to which vectors are one register, which for
    x86-64-v4 is 256 bits by default. */
static void set_target(compilation *c) {
  char bits[16];
  snprintf(bits, sizeof bits, "%u", c->job->vector_bytes * 8);
  for (LLVMValueRef f = LLVMGetFirstFunction(c->module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    LLVMAddTargetDependentFunctionAttr(f, "target-cpu", c->job->cpu);
    if (*c->job->features)
      LLVMAddTargetDependentFunctionAttr(f, "target-features", c->job->features);
    LLVMAddTargetDependentFunctionAttr(f, "prefer-vector-width", bits);
    LLVMAddTargetDependentFunctionAttr(f, "min-legal-vector-width", bits);
  }
}

static bool optimise(compilation *c) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(c->module, PASSES, c->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return true;
  char *message = LLVMGetErrorMessage(error);
  snprintf(c->job->message, sizeof c->job->message, "LLVM cannot optimise a kernel: %s", message);
  LLVMDisposeErrorMessage(message);
  c->outcome = LLVM_FAILED;
  return false;
}

static bool generate(compilation *c) {
  if (emit_object(c->machine, c->module, c->job->add, c->job->user)) return !c->outcome;
  return fail(c, "generate code", LLVMCreateMessage("this target has no object files"));
}

static bool goes_on(compilation *c) {
  if (c->job->cancel && atomic_load(c->job->cancel)) c->outcome = LLVM_CANCELLED;
  return !c->outcome;
}

static void compile_body(void *arg) {
  compilation *c = arg;
  c->context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(c->context, on_diagnostic, c);
  if (goes_on(c) && parse(c) && make_machine(c)) {
    set_target(c);
    if (goes_on(c) && optimise(c) && goes_on(c)) generate(c);
  }
  if (c->module) LLVMDisposeModule(c->module);
  if (c->machine) LLVMDisposeTargetMachine(c->machine);
  LLVMContextDispose(c->context);
}

static pthread_once_t initialised = PTHREAD_ONCE_INIT;

static void initialise(void) {
  guard_install();
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
}

static void *run(void *arg) {
  compilation *c = arg;
  llvm_job *j = c->job;
  void *volatile least = malloc(LEAST_BYTES);
  free(least);
  if (!least) {
    c->outcome = LLVM_NO_MEMORY;
    return NULL;
  }
  switch (guard_call(compile_body, c, j->message, sizeof j->message)) {
  case GUARD_DONE: break;
  case GUARD_NO_MEMORY: c->outcome = LLVM_NO_MEMORY; break;
  case GUARD_FATAL: c->outcome = LLVM_FAILED; break;
  }
  return NULL;
}

static llvm_outcome compile(llvm_job *job) {
  compilation c = {.job = job};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_once(&initialised, initialise);
  if (pthread_attr_init(&attributes)) return LLVM_NO_MEMORY;
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  int failed = pthread_create(&thread, &attributes, run, &c);
  pthread_attr_destroy(&attributes);
  if (failed) return LLVM_NO_MEMORY;
  pthread_join(thread, NULL);
  return c.outcome;
}

static void identify(char *text, size_t bytes) {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(text, bytes, "LLVM %u.%u.%u; " PASSES "; level 2, pic, widest vectors, in order", major,
           minor, patch);
}

extern __attribute__((visibility("default"))) const llvm_module tenon_llvm_module;
const llvm_module tenon_llvm_module = {LLVM_MODULE_INTERFACE, identify, compile};
