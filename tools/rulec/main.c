/* Runs rulec, the compiler of rewrite rules to C, on the build host. Stages: parse, infer types,
   expand commutative operands, emit. src/rules/rule_sets.h describes the language.

     rulec OUT.c RULES…                  a function rules_NAME for each file NAME.rules
     rulec --tests OUT.c RULES…          the table of examples
     rulec --obligations OUT.smt RULES…  proof obligations for an SMT solver */
#include "rule_ast.h"

#include <errno.h>
#include <string.h>

/** Runs all emitters, which check rules too, before an output file exists. */
static void check_emitters(rule_file *const files[], size_t n) {
  FILE *nowhere = tmpfile();
  if (!nowhere) return;
  emit_rules(nowhere, files, n);
  emit_examples(nowhere, files, n);
  emit_proof_obligations(nowhere, files, n);
  fclose(nowhere);
}

int main(int argc, char **argv) {
  void (*emit)(FILE * out, rule_file *const files[], size_t n) = emit_rules;
  int first = 1;
  if (argc > 1 && !strcmp(argv[1], "--tests")) emit = emit_examples, first++;
  if (argc > 1 && !strcmp(argv[1], "--obligations")) emit = emit_proof_obligations, first++;
  if (argc < first + 2) {
    fputs("usage: rulec [--tests | --obligations] OUT RULES...\n", stderr);
    return 2;
  }
  rule_file **files = NULL;
  size_t n = 0;
  for (int i = first + 1; i < argc; i++) {
    rule_file *f = rules_parse(argv[i]);
    rules_infer_types(f);
    rules_expand_variants(f);
    append(files, n, f);
  }
  check_emitters(files, n);
  FILE *out = fopen(argv[first], "wb");
  if (out) emit(out, files, n);
  if (!out || ferror(out) | fclose(out)) {
    fprintf(stderr, "rulec: %s: %s\n", argv[first], strerror(errno));
    remove(argv[first]);
    return 1;
  }
  return 0;
}
