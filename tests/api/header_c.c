/* Compiles the public headers as C: with TENON_HEADER defined, that one alone and twice (which
   tests include guards and self-containment); else all of them, with the checks of
   header_checks.h. */
#ifdef TENON_HEADER
#include TENON_HEADER
#include TENON_HEADER

typedef int header_stands_alone;
#else
#include "header_checks.h"

/* Literals are values of their types. */
static_assert(_Generic(tn_shape(1, 2), tn_shape : 1, default : 0), "");
static_assert(_Generic(tn_axes(1, 2), tn_axes : 1, default : 0), "");
static_assert(_Generic(TN_SCALAR, tn_shape : 1, default : 0), "");
static_assert(_Generic(TN_ALL, tn_axes : 1, default : 0), "");

/* Every row of a list declares a function of its list's type. */
#define UNARY(name, rule, meaning) \
  static_assert(_Generic(tn_##name, tn_tensor * (*)(tn_tensor *) : 1, default : 0), meaning);
#define BINARY(name, rule, meaning)                                                              \
  static_assert(_Generic(tn_##name, tn_tensor * (*)(tn_tensor *, tn_tensor *) : 1, default : 0), \
                meaning);
#define REDUCE(name, rule, meaning)                                                                \
  static_assert(_Generic(tn_##name, tn_tensor * (*)(tn_tensor *, tn_axes, bool) : 1, default : 0), \
                meaning);
TN_UNARY_LIST(UNARY)
TN_BINARY_LIST(BINARY)
TN_REDUCE_LIST(REDUCE)

int main(void) { return check_headers(); }
#endif
