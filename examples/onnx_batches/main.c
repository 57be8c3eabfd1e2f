/* An ONNX model at three batch sizes: resnet50.onnx of the working directory, whose input "data" is
   [batch, 3, 224, 224] and whose output "scores" is [batch, 1000]. It is compiled once. */
#include <stdio.h>
#include <tenon/tenon.h>

enum { PIXELS = 3 * 224 * 224, CLASSES = 1000, MOST = 8 };
static float image[MOST * PIXELS], score[MOST * CLASSES];

int main(void) {
  static const size_t batch[] = {1, 3, MOST};
  tn_context *tn = tn_open(NULL);
  tn_model *model;
  tn_binding *run;
  tn_model_load(tn, "resnet50.onnx", NULL, &model); /* on failure NULL, refused below */
  tn_status s = tn_model_bind(model, &run);
  if (s != TN_OK) fprintf(stderr, "%s\n", tn_message(tn));
  for (int i = 0; i < 3 && s == TN_OK; i++) {
    size_t n = batch[i], bytes = n * CLASSES * sizeof *score;
    tn_binding_input(run, "data", tn_shape((tn_dim)n, 3, 224, 224), TN_F32, image,
                     n * PIXELS * sizeof *image);
    s = tn_binding_run(run);
    if (s == TN_OK) s = tn_binding_read(run, "scores", TN_F32, score, bytes);
    if (s == TN_OK)
      printf("batch %zu: %f\n", n, score[0]);
    else
      fprintf(stderr, "%s\n", tn_binding_message(run));
  }
  tn_close(tn);
  return s != TN_OK;
}
