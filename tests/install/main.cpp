/* Tests an installed package from C++: adds two tensors, and compares the library's version with
   its header's. Built by find_package with the shared and with the static library. */
#include <cstdio>
#include <tenon/tenon.h>

int main() {
  const float in[] = {1, 2, 3, 4};
  float out[4] = {};
  tn_context *tn = tn_open(nullptr);
  tn_tensor *x = tn_from_host(tn, tn_shape(2, 2), TN_F32, in, sizeof in);
  tn_status s = tn_read(tn_add(x, x), TN_F32, out, sizeof out);
  if (s != TN_OK) std::fprintf(stderr, "%s\n", tn_message(tn));
  tn_close(tn);
  return s != TN_OK || out[3] != 8 || tn_version() != TN_VERSION;
}
