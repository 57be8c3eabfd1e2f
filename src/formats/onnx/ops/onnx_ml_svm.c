/* ONNX's SVMRegressor and SVMClassifier: sums of kernel functions of the features and the support
   vectors, or, without support vectors, of the features alone. A classifier of support vectors
   compares each pair of classes, and the class that wins most pairs is the label; the pairs are
   columns of one constant matrix, so that all scores are a product. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <string.h>

typedef enum kernel_type { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID } kernel_type;

static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};

/** The support vector machine of a call. */
typedef struct machine {
  value x; /* N×F */
  int64_t features, vectors;
  const float *coefficients;
  size_t n_coefficients;
} machine;

static const float *read_floats(const onnx_call *c, const char *name, size_t *n) {
  const onnx_attribute *a = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_FLOATS);
  *n = a ? a->floats.n : 0;
  return a ? a->floats.at : NULL;
}

static value constant_matrix(onnx_call *c, const float *at, int64_t rows, int64_t columns) {
  return onnx_computed_tensor(c, DT_F32, at, (size_t)rows, (size_t)columns);
}

static machine read_machine(onnx_call *c, int64_t vectors) {
  builder *b = onnx_builder(c);
  machine m = {.x = build_cast(b, onnx_input(c, 0), DT_F32), .vectors = vectors};
  m.coefficients = read_floats(c, "coefficients", &m.n_coefficients);
  if (m.x.node->rank == 1) m.x = build_unsqueeze(b, m.x, (tn_axes){.count = 1});
  if (m.x.node->rank != 2 || !node_is_const(m.x.node->dims[1]))
    onnx_fail(c, TN_ERR_SHAPE, "the input is not rows of a known number of features");
  m.features = node_int(m.x.node->dims[1]);
  if (vectors < 0 || !m.features || !m.n_coefficients)
    onnx_fail(c, TN_ERR_FORMAT, "there are no features or no coefficients");
  return m;
}

/** True if there are `n` entries for rows of columns, at least one of these; nothing overflows. */
static bool are_rows(size_t n, int64_t rows, int64_t columns) {
  return n % (size_t)columns == 0 && n / (size_t)columns == (size_t)rows;
}

/** The kernel function of each row of x and each support vector: N×S. */
static value kernel_values(onnx_call *c, const machine *m) {
  builder *b = onnx_builder(c);
  size_t n, n_params;
  const float *sv = read_floats(c, "support_vectors", &n),
              *params = read_floats(c, "kernel_params", &n_params);
  kernel_type kernel = (kernel_type)ENUM_ATTRIBUTE(c, "kernel_type", kernels);
  if (!are_rows(n, m->vectors, m->features))
    onnx_fail(c, TN_ERR_FORMAT, "support_vectors has %zu entries for %lld vectors of %lld features",
              n, (long long)m->vectors, (long long)m->features);
  if (n_params < 3 && kernel != KERNEL_LINEAR)
    onnx_fail(c, TN_ERR_FORMAT, "kernel_params has %zu entries, not 3", n_params);
  value vectors = constant_matrix(c, sv, m->vectors, m->features);
  value gamma = build_num(b, n_params ? (double)params[0] : 0);
  if (kernel == KERNEL_RBF) {
    value apart =
        build_sub(b, build_unsqueeze(b, m->x, (tn_axes){.count = 1, .axis = {1}}), vectors);
    value distance =
        build_sum(b, build_square(b, apart), (tn_axes){.count = 1, .axis = {-1}}, false);
    return build_exp(b, build_neg(b, build_mul(b, distance, gamma)));
  }
  value product = build_matmul(b, m->x, build_transpose(b, vectors));
  if (kernel == KERNEL_LINEAR) return product;
  product = build_add(b, build_mul(b, product, gamma), build_num(b, (double)params[1]));
  return kernel == KERNEL_SIGMOID ? build_tanh(b, product)
                                  : build_pow(b, product, build_num(b, (double)params[2]));
}

static value rho_of(onnx_call *c, size_t least, size_t *n) {
  const float *rho = read_floats(c, "rho", n);
  if (*n < least) onnx_fail(c, TN_ERR_FORMAT, "rho has %zu entries, not %zu", *n, least);
  return onnx_computed_tensor(c, DT_F32, rho, least, 0);
}

void onnx_ml_SVMRegressor(onnx_call *c) {
  builder *b = onnx_builder(c);
  size_t n_rho;
  machine m = read_machine(c, onnx_int_attribute(c, "n_supports", 0));
  value features = m.vectors ? kernel_values(c, &m) : m.x;
  int64_t terms = m.vectors ? m.vectors : m.features;
  if (m.n_coefficients != (size_t)terms)
    onnx_fail(c, TN_ERR_FORMAT, "there are %zu coefficients, not %lld", m.n_coefficients,
              (long long)terms);
  value w = constant_matrix(c, m.coefficients, terms, 1);
  value y = build_add(b, build_matmul(b, features, w), rho_of(c, 1, &n_rho));
  if (onnx_int_attribute(c, "one_class", 0))
    y = build_where(b, build_gt(b, y, build_num(b, 0)), build_num(b, 1), build_num(b, -1));
  else
    y = onnx_ml_post_transform(c, y);
  c->outputs[0] = build_cast(b, y, DT_F32);
}

/* Classifier. */

/** Checks the numbers of support vectors by class, and returns their sum. */
static int64_t count_vectors(const onnx_call *c, const onnx_ints *by_class, int64_t classes) {
  int64_t sum = 0;
  if (!by_class || !by_class->n) return 0;
  if (by_class->n != (size_t)classes)
    onnx_fail(c, TN_ERR_FORMAT, "vectors_per_class has %zu entries for %lld classes", by_class->n,
              (long long)classes);
  for (size_t i = 0; i < by_class->n; i++) {
    int64_t n = by_class->at[i];
    if (n < 0 || n > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "vectors_per_class has a %lld", (long long)n);
    sum += n;
  }
  return sum;
}

/** The coefficients of all pairs: S×P. Row j − 1 of the file's coefficients has those of class i in
    its pair with j > i, row i those of j. */
static value pair_coefficients(onnx_call *c, const machine *m, const onnx_ints *by_class,
                               int64_t pairs) {
  size_t classes = by_class->n, vectors = (size_t)m->vectors, first_i = 0, pair = 0;
  if (m->n_coefficients != (classes - 1) * vectors)
    onnx_fail(c, TN_ERR_FORMAT, "there are %zu coefficients for %zu classes and %zu vectors",
              m->n_coefficients, classes, vectors);
  float *w = arena_calloc(onnx_builder(c)->arena, vectors * (size_t)pairs + 1, sizeof *w);
  for (size_t i = 0; i < classes; first_i += (size_t)by_class->at[i++]) {
    size_t first_j = first_i + (size_t)by_class->at[i];
    for (size_t j = i + 1; j < classes; first_j += (size_t)by_class->at[j++], pair++) {
      for (size_t k = first_i; k < first_i + (size_t)by_class->at[i]; k++)
        w[k * (size_t)pairs + pair] = m->coefficients[(j - 1) * vectors + k];
      for (size_t k = first_j; k < first_j + (size_t)by_class->at[j]; k++)
        w[k * (size_t)pairs + pair] = m->coefficients[i * vectors + k];
    }
  }
  return constant_matrix(c, w, m->vectors, pairs);
}

/** The number of pairs that each class wins: i those with a score above 0, j the others. */
static value count_votes(onnx_call *c, value scores, size_t classes, int64_t pairs) {
  builder *b = onnx_builder(c);
  size_t pair = 0;
  float *to = arena_calloc(b->arena, (size_t)pairs * classes + classes + 1, sizeof *to),
        *base = to + (size_t)pairs * classes; /* votes if no score is above 0 */
  for (size_t i = 0; i < classes; i++)
    for (size_t j = i + 1; j < classes; j++, pair++) {
      to[pair * classes + i] = 1;
      to[pair * classes + j] = -1;
      base[j]++;
    }
  value won = build_cast(b, build_gt(b, scores, build_num(b, 0)), DT_F32);
  value votes = build_matmul(b, won, constant_matrix(c, to, pairs, (int64_t)classes));
  return build_add(b, votes, onnx_computed_tensor(c, DT_F32, base, classes, 0));
}

/** True for two classes of which the file's coefficients and functions leave no doubt. */
static bool has_two_agreed_classes(const onnx_call *c, const machine *m, int64_t classes) {
  bool has_negative = false;
  for (size_t i = 0; i < m->n_coefficients; i++) has_negative |= m->coefficients[i] < 0;
  return classes == 2 && m->vectors && has_negative &&
         strcmp(onnx_string_attribute(c, "post_transform", "NONE"), "SOFTMAX") != 0;
}

void onnx_ml_SVMClassifier(onnx_call *c) {
  builder *b = onnx_builder(c);
  size_t n_rho;
  bool are_strings;
  value labels = onnx_ml_class_labels(c, "classlabels_ints", &are_strings);
  if (!labels.node) onnx_fail(c, TN_ERR_FORMAT, "there are no labels of classes");
  if (onnx_has_attribute(c, "prob_a"))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "probabilities of pairs (prob_a) are not supported");
  int64_t classes = node_int(labels.node->dims[0]), pairs = classes * (classes - 1) / 2;
  const onnx_ints *by_class = onnx_ints_attribute(c, "vectors_per_class");
  machine m = read_machine(c, count_vectors(c, by_class, classes));
  if (classes < 3 && !has_two_agreed_classes(c, &m, classes))
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "of two classes without support vectors, without a negative coefficient, or with a "
              "function of both scores, runtimes disagree about the results");
  value scores, votes;
  if (m.vectors) {
    value w = pair_coefficients(c, &m, by_class, pairs);
    scores =
        build_add(b, build_matmul(b, kernel_values(c, &m), w), rho_of(c, (size_t)pairs, &n_rho));
    votes = count_votes(c, scores, (size_t)classes, pairs);
    if (classes == 2) scores = build_concat(b, (value[]){build_neg(b, scores), scores}, 2, 1);
  } else {
    if (!are_rows(m.n_coefficients, classes, m.features))
      onnx_fail(c, TN_ERR_FORMAT, "there are %zu coefficients for %lld classes", m.n_coefficients,
                (long long)classes);
    value w = build_transpose(b, constant_matrix(c, m.coefficients, classes, m.features));
    votes = scores = build_add(b, build_matmul(b, m.x, w), rho_of(c, 1, &n_rho));
  }
  value label = build_take(b, labels, build_argmax(b, votes, 1, false), 0);
  c->outputs[0] = are_strings ? onnx_strings(c, label) : label;
  c->outputs[1] = onnx_ml_post_transform(c, scores);
}
