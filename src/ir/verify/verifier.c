/* Formats and raises the verifier's failures; ill-formed nodes are shown as lines of the printed
   graph. */
#include "ir/verify/verifier.h"

#include "ir/text/print.h"

_Noreturn void verify_fail(verifier *v, const node *n, const node *about, const char *why) {
  arena *a = &v->work;
  print_lines l = print_number_lines(a, v->roots, v->n);
  str line = str_new(a), other = str_new(a);
  print_node(&line, &l, n);
  if (about) print_node(&other, &l, about);
  diag_raise(a->diag, TN_ERR_INTERNAL, "ill-formed graph: %.400s: %s%s%.200s", str_text(&line), why,
             about ? ": " : "", str_text(&other));
}
