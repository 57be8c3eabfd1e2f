/* Fits a line to points that come in batches: each step is a scope, in which the weights, a state,
   are assigned, and which frees all else that the step made. So memory stays what it is, however
   many steps there are. */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { POINTS = 64, STEPS = 2000 };
static const float slope = 3, offset = -0.5f;
static float x[POINTS][2], y[POINTS][1]; /* a 1 beside each x, for the offset */

static void fill_batch(int step) {
  for (int i = 0; i < POINTS; i++) {
    x[i][0] = (float)((step * 31 + i * 17) % 101) / 50 - 1;
    x[i][1] = 1;
    y[i][0] = slope * x[i][0] + offset;
  }
}

/** One step of gradient descent on the mean of (x · w − y)². The assign runs when the scope ends.
 */
static tn_status train(tn_context *tn, tn_tensor *w, int step) {
  fill_batch(step);
  tn_scope_begin(tn);
  tn_tensor *in = tn_from_host(tn, tn_shape(POINTS, 2), TN_F32, x, sizeof x);
  tn_tensor *to = tn_from_host(tn, tn_shape(POINTS, 1), TN_F32, y, sizeof y);
  tn_tensor *error = tn_sub(tn_matmul(in, w), to);
  tn_tensor *gradient = tn_mul(tn_matmul(tn_transpose(in), error), tn_num(tn, 2.0 / POINTS));
  tn_assign(w, tn_sub(w, tn_mul(gradient, tn_num(tn, 0.1))));
  return tn_scope_end(tn);
}

int main(void) {
  float found[2] = {0};
  tn_context *tn = tn_open(NULL);
  tn_tensor *w = tn_state(tn_zeros(tn, tn_shape(2, 1), TN_F32));
  tn_status s = TN_OK;
  for (int step = 0; step < STEPS && s == TN_OK; step++) s = train(tn, w, step);
  if (s == TN_OK) s = tn_read(w, TN_F32, found, sizeof found);
  if (s == TN_OK)
    printf("y = %.3f x + %.3f\n", found[0], found[1]);
  else
    fprintf(stderr, "%s\n", tn_message(tn));
  tn_close(tn);
  return s != TN_OK || fabsf(found[0] - slope) > 1e-3f || fabsf(found[1] - offset) > 1e-3f;
}
