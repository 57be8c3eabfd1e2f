/* Fits a line as examples/regression.c does, with the points of each step divided among processes:
   each computes the gradient of its own points, and all sum these and take the same step.

     mpirun -n 4 ./several_processes */
#include <math.h>
#include <stdio.h>
#include <tenon/tenon.h>

enum { POINTS = 64, STEPS = 500 };
static const float slope = 3, offset = -0.5f;
static float x[POINTS][2], y[POINTS][1]; /* a 1 beside each x, for the offset */

static void fill_batch(int64_t step, int64_t rank) {
  for (int i = 0; i < POINTS; i++) {
    x[i][0] = (float)((step * 31 + rank * 13 + i * 17) % 101) / 50 - 1;
    x[i][1] = 1;
    y[i][0] = slope * x[i][0] + offset;
  }
}

static tn_status train(tn_context *tn, tn_group *group, tn_tensor *w, int64_t step) {
  fill_batch(step, tn_group_rank(group));
  tn_scope_begin(tn);
  tn_tensor *in = tn_from_host(tn, tn_shape(POINTS, 2), TN_F32, x, sizeof x);
  tn_tensor *to = tn_from_host(tn, tn_shape(POINTS, 1), TN_F32, y, sizeof y);
  tn_tensor *error = tn_sub(tn_matmul(in, w), to);
  tn_tensor *gradient = tn_matmul(tn_transpose(in), error);
  gradient = tn_group_all_reduce(group, gradient, TN_REDUCTION_ADD);
  double all = (double)POINTS * (double)tn_group_size(group);
  tn_assign(w, tn_sub(w, tn_mul(gradient, tn_num(tn, 0.2 / all))));
  return tn_scope_end(tn);
}

int main(void) {
  float found[2] = {0};
  tn_group *group = NULL;
  tn_context *tn = tn_open(NULL);
  tn_status s = tn_group_open(tn, NULL, &group);
  tn_tensor *w = tn_state(tn_zeros(tn, tn_shape(2, 1), TN_F32));
  for (int step = 0; step < STEPS && s == TN_OK; step++) s = train(tn, group, w, step);
  if (s == TN_OK) s = tn_read(w, TN_F32, found, sizeof found);
  if (s != TN_OK)
    fprintf(stderr, "%s\n", tn_message(tn));
  else if (tn_group_rank(group) == 0)
    printf("%lld processes: y = %.3f x + %.3f\n", (long long)tn_group_size(group), found[0],
           found[1]);
  tn_close(tn);
  return s != TN_OK || fabsf(found[0] - slope) > 1e-3f || fabsf(found[1] - offset) > 1e-3f;
}
