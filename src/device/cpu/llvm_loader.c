/* Implements the search for the LLVM module, relative to the library's own file, and its opening by
   dlopen. A module that was opened stays: libLLVM cannot be unloaded. */
#include "device/cpu/llvm_loader.h"

#include "base/environment.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Set by the build: the module's file name, and its folder in an installation, relative to a
   sibling of the library's folder, and in full. */
#ifndef TENON_LLVM_FILE
#define TENON_LLVM_FILE "tenon-llvm.so"
#endif
#ifndef TENON_LLVM_BESIDE
#define TENON_LLVM_BESIDE "../lib"
#endif
#ifndef TENON_LLVM_FOLDER
#define TENON_LLVM_FOLDER "/usr/local/lib"
#endif

static const char install_hint[] =
    "install it with libLLVM 19 (on Debian: apt install libllvm19), name its file by TENON_LLVM, "
    "or select the pair c/cc, which needs a C compiler";

/** The folder of the library, or of the program it is linked into, with a slash at the end; false
    if it is not known. */
static bool find_own_folder(char path[LLVM_PATH_BYTES]) {
  static const char here;
  Dl_info info;
  if (!dladdr(&here, &info) || !info.dli_fname) return false;
  const char *file = info.dli_fname;
  char program[LLVM_PATH_BYTES];
  if (!strchr(file, '/')) { /* a program that was found on the PATH */
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0) return false;
    program[n] = 0;
    file = program;
  }
  int n = (int)(strrchr(file, '/') + 1 - file);
  return snprintf(path, LLVM_PATH_BYTES, "%.*s", n, file) < LLVM_PATH_BYTES;
}

static bool is_there(char path[LLVM_PATH_BYTES], const char *a, const char *b, const char *c) {
  int n = snprintf(path, LLVM_PATH_BYTES, "%s%s%s", a, b, c);
  return n < LLVM_PATH_BYTES && !access(path, R_OK);
}

/** Finds the module where builds and installations put it. */
static bool find_beside(char path[LLVM_PATH_BYTES]) {
  char own[LLVM_PATH_BYTES];
  if (find_own_folder(own) && (is_there(path, own, "", TENON_LLVM_FILE) ||
                               is_there(path, own, TENON_LLVM_BESIDE "/", TENON_LLVM_FILE)))
    return true;
  return is_there(path, TENON_LLVM_FOLDER "/", "", TENON_LLVM_FILE);
}

tn_status llvm_module_find(char path[LLVM_PATH_BYTES], diag *d) {
  const char *given = environment_get("TENON_LLVM");
  bool is_off = given && !strcmp(given, "off");
  diag_clear(d);
  if (!given && find_beside(path)) return TN_OK;
  if (given && !is_off && snprintf(path, LLVM_PATH_BYTES, "%s", given) < LLVM_PATH_BYTES)
    return TN_OK;
  return diag_set(d, TN_ERR_COMPILE, "there is no LLVM module (%s): %s",
                  is_off  ? "TENON_LLVM is \"off\""
                  : given ? given
                          : TENON_LLVM_FILE,
                  install_hint);
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset) {
  return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/** True if all that an ELF file's headers announce is in it: the dynamic linker maps what they say,
    and a process that reads beyond a torn file's end is killed. */
static bool is_whole(const char *path) {
  Elf64_Ehdr h;
  Elf64_Phdr p;
  struct stat s;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool whole = !fstat(fd, &s) && read_at(fd, &h, sizeof h, 0) &&
               !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_phentsize == sizeof p;
  uint64_t bytes = whole ? (uint64_t)s.st_size : 0;
  whole = whole && h.e_shoff <= bytes && (uint64_t)h.e_shnum * h.e_shentsize <= bytes - h.e_shoff;
  for (unsigned i = 0; whole && i < h.e_phnum; i++)
    whole = read_at(fd, &p, sizeof p, h.e_phoff + i * sizeof p) && p.p_offset <= bytes &&
            p.p_filesz <= bytes - p.p_offset;
  close(fd);
  return whole;
}

tn_status llvm_module_open(const llvm_module **module, diag *d) {
  char path[LLVM_PATH_BYTES];
  *module = NULL;
  tn_status status = llvm_module_find(path, d);
  if (status) return status;
  if (!access(path, R_OK) && !is_whole(path))
    return diag_set(d, TN_ERR_COMPILE, "the LLVM module %s is torn or no shared object; %s", path,
                    install_hint);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle)
    return diag_set(d, TN_ERR_COMPILE, "the LLVM module does not load: %s; %s", dlerror(),
                    install_hint);
  const llvm_module *m = dlsym(handle, LLVM_MODULE_SYMBOL);
  if (!m || m->interface != LLVM_MODULE_INTERFACE)
    return diag_set(d, TN_ERR_COMPILE, "%s is not the LLVM module of this build of Tenon; %s", path,
                    install_hint);
  *module = m;
  return TN_OK;
}
