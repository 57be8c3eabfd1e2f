#include "ir/pass.h"

#include "ir/verify.h"

static const char *const names[] = {
#define PASS_NAME(name, text) [name] = text,
    PASS_LIST(PASS_NAME)
#undef PASS_NAME
};

const char *pass_name(pass p) { return names[p]; }

void pass_verify(ir *g, pass after, enum stage stage, const node *const roots[], size_t n) {
#ifdef TENON_VERIFY
  if (verify(roots, n, stage, ir_mem(g), ir_diag(g)) == TN_OK) return;
  diag_prefix(ir_diag(g), "after %s", pass_name(after));
  diag_rethrow(ir_diag(g));
#else
  (void)g, (void)after, (void)stage, (void)roots, (void)n;
#endif
}
