/* Builds an expression and reads it: softmax(relu(x · w)) of random matrices. */
#include <stdio.h>
#include <tenon/tenon.h>

int main(void) {
  static float out[512][512];
  tn_context *tn = tn_open(NULL);
  tn_tensor *x = tn_rand(tn, tn_shape(512, 512), TN_F32);
  tn_tensor *w = tn_rand(tn, tn_shape(512, 512), TN_F32);
  tn_tensor *y = tn_softmax(tn_relu(tn_matmul(x, w)), -1);
  tn_status s = tn_read(y, TN_F32, out, sizeof out); /* compiles, runs, copies out */
  if (s == TN_OK)
    printf("%f\n", out[0][0]);
  else
    fprintf(stderr, "%s\n", tn_message(tn));
  tn_close(tn);
  return s != TN_OK;
}
