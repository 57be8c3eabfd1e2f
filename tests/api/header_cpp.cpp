/* Compiles the public headers as C++: with TENON_HEADER defined, that one alone and twice (the
   first time under C linkage where TENON_HEADER_IN_C is defined too); else all of them, with the
   checks of header_checks.h. */
#ifdef TENON_HEADER
#ifdef TENON_HEADER_IN_C
extern "C" {
#include TENON_HEADER
}
#endif
#include TENON_HEADER

typedef int header_stands_alone;
#else
#include "header_checks.h"

#include <type_traits>

/* Literals are constants in C++, of their types. */
static_assert(tn_shape(2, 3u, 4L).rank == 3 && tn_shape(2, 3u, 4L).size[2] == 4, "");
static_assert(tn_axes(0, -1).count == 2 && tn_axes(0, -1).axis[1] == -1, "");
static_assert(TN_SCALAR.rank == 0 && tn_shape().rank == 0 && TN_ALL.count == -1, "");
static_assert(std::is_same<decltype(tn_shape(1)), tn_shape>::value, "");
static_assert(std::is_same<decltype(tn_axes(1)), tn_axes>::value, "");
static_assert(std::is_trivially_copyable<tn_shape>::value, "");
static_assert(std::is_standard_layout<tn_array>::value, "");

/* Every row of a list declares a function of its list's type. */
template <class F> constexpr bool unary(F) {
  return std::is_same<F, tn_tensor *(*)(tn_tensor *)>::value;
}
template <class F> constexpr bool binary(F) {
  return std::is_same<F, tn_tensor *(*)(tn_tensor *, tn_tensor *)>::value;
}
template <class F> constexpr bool reduce(F) {
  return std::is_same<F, tn_tensor *(*)(tn_tensor *, tn_axes, bool)>::value;
}
#define UNARY(name, rule, meaning)  static_assert(unary(&tn_##name), meaning);
#define BINARY(name, rule, meaning) static_assert(binary(&tn_##name), meaning);
#define REDUCE(name, rule, meaning) static_assert(reduce(&tn_##name), meaning);
TN_UNARY_LIST(UNARY)
TN_BINARY_LIST(BINARY)
TN_REDUCE_LIST(REDUCE)

int main() { return check_headers(); }
#endif
