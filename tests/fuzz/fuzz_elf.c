/* Fuzzes the ELF loader: arbitrary bytes are loaded as a kernel object or refused, but never run.
   Seeds are objects of `cc -c`. */
#include "device/cpu/elf_loader.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  diag d = {0};
  elf_image *code;
  tn_status s = elf_load(&code, data, bytes, &mem_system, &d);
  if ((s == TN_OK) != (code != NULL) || s != d.status) abort();
  if (!code) return 0;
  if (elf_symbol(code, "no such symbol")) abort();
  elf_symbol(code, "k");
  elf_free(code);
  return 0;
}
