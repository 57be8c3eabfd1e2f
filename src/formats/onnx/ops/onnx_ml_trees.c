/* ONNX's ensembles of decision trees: TreeEnsemble, and its forms of older versions,
   TreeEnsembleRegressor and TreeEnsembleClassifier. The nodes of all trees are tables; each step
   takes the current node of each row and tree to a child, and leaves stay. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/onnx_ml_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/gather.h"

#include <math.h>
#include <string.h>

typedef enum branch { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } branch;
typedef enum aggregate { AVERAGE, SUM, LEAST, MOST } aggregate;

enum { TREE_DEPTH_MAX = 64, TREE_NODES_MAX = 1 << 24 };

/** A node of a tree; a leaf is its own children. */
typedef struct tree_node {
  int64_t feature, when_true, when_false;
  double split;
  branch mode;
  bool missing_is_true;
} tree_node;

typedef struct forest {
  VEC(tree_node) nodes;
  onnx_ints roots;
  size_t targets;
  double *weight; /* nodes × targets */
  bool *has_weight;
} forest;

static int64_t add_leaf(arena *a, forest *f) {
  int64_t i = (int64_t)f->nodes.n;
  vec_push(a, &f->nodes, (tree_node){0, i, i, 0, LEAF, false});
  return i;
}

/** Sets the depth of the nodes below a root; raises for one that is too deep, as of nodes in a
    circle. A node is visited again only if its depth grows. */
static void set_depths(const onnx_call *c, const forest *f, int64_t root, int *depth) {
  int64_t waiting[2 * TREE_DEPTH_MAX + 4];
  size_t n = 0;
  waiting[n++] = root;
  depth[root] = 0;
  while (n) {
    int64_t i = waiting[--n];
    const tree_node *t = &f->nodes.at[i];
    int64_t children[] = {t->when_true, t->when_false};
    if (t->mode == LEAF) continue;
    if (depth[i] >= TREE_DEPTH_MAX)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "a tree is deeper than %d, or its nodes are in a circle",
                TREE_DEPTH_MAX);
    for (size_t k = 0; k < 2; k++)
      if (depth[children[k]] <= depth[i]) {
        depth[children[k]] = depth[i] + 1;
        waiting[n++] = children[k];
      }
  }
}

/** The steps from the roots to the deepest leaf. */
static int deepest_leaf(onnx_call *c, const forest *f) {
  int *depth = arena_alloc(onnx_builder(c)->arena, f->nodes.n * sizeof *depth), most = 0;
  for (size_t i = 0; i < f->nodes.n; i++) depth[i] = -1;
  for (size_t i = 0; i < f->roots.n; i++) set_depths(c, f, f->roots.at[i], depth);
  for (size_t i = 0; i < f->nodes.n; i++)
    if (depth[i] > most) most = depth[i];
  return most;
}

/* Tables of the nodes. */

typedef struct tables {
  value feature, when_true, when_false, split, mode, missing;
} tables;

static tables make_tables(onnx_call *c, const forest *f, dtype t) {
  arena *a = onnx_builder(c)->arena;
  size_t n = f->nodes.n;
  int64_t *feature = arena_alloc(a, n * sizeof *feature), *yes = arena_alloc(a, n * sizeof *yes),
          *no = arena_alloc(a, n * sizeof *no), *mode = arena_alloc(a, n * sizeof *mode),
          *missing = arena_alloc(a, n * sizeof *missing);
  double *split = arena_alloc(a, n * sizeof *split);
  for (size_t i = 0; i < n; i++) {
    const tree_node *k = &f->nodes.at[i];
    feature[i] = k->feature;
    yes[i] = k->when_true;
    no[i] = k->when_false;
    split[i] = k->split;
    mode[i] = (int64_t)k->mode;
    missing[i] = k->missing_is_true;
  }
  value splits = onnx_computed_tensor(c, DT_F64, split, n, 0);
  return (tables){onnx_computed_tensor(c, DT_I64, feature, n, 0),
                  onnx_computed_tensor(c, DT_I64, yes, n, 0),
                  onnx_computed_tensor(c, DT_I64, no, n, 0),
                  build_cast(onnx_builder(c), splits, t),
                  onnx_computed_tensor(c, DT_I64, mode, n, 0),
                  onnx_computed_tensor(c, DT_I64, missing, n, 0)};
}

/** Whether x fulfils the condition of a node of a kind. */
static value fulfils(builder *b, branch mode, value x, value split) {
  switch (mode) {
  case LEQ: return build_le(b, x, split);
  case LT: return build_lt(b, x, split);
  case GTE: return build_ge(b, x, split);
  case GT: return build_gt(b, x, split);
  case EQ: return build_eq(b, x, split);
  default: return build_ne(b, x, split);
  }
}

/** Whether x fulfils the condition of its node, of the kinds that the forest has. */
static value condition(builder *b, const forest *f, const tables *t, value at, value x) {
  value split = build_take(b, t->split, at, 0), holds = {0}, kind = {0};
  bool has_missing = false;
  for (branch mode = LEQ; mode <= NEQ; mode++) {
    bool is_there = false;
    for (size_t i = 0; i < f->nodes.n && !is_there; i++) is_there = f->nodes.at[i].mode == mode;
    if (!is_there) continue;
    value one = fulfils(b, mode, x, split);
    if (holds.node && !kind.node) kind = build_take(b, t->mode, at, 0);
    holds = holds.node ? build_where(b, build_eq(b, kind, build_int(b, mode)), one, holds) : one;
  }
  for (size_t i = 0; i < f->nodes.n; i++) has_missing |= f->nodes.at[i].missing_is_true;
  value is_nan = build_isnan(b, x);
  if (!has_missing) return build_logical_and(b, holds, build_logical_not(b, is_nan));
  value missing = build_ne(b, build_take(b, t->missing, at, 0), build_int(b, 0));
  return build_where(b, is_nan, missing, holds);
}

/** The leaf of each row and tree: (rows, trees). */
static value find_leaves(onnx_call *c, const forest *f, value x) {
  builder *b = onnx_builder(c);
  tables t = make_tables(c, f, (dtype)x.node->dtype);
  int depth = deepest_leaf(c, f);
  sizes s = {2, {x.node->dims[0], ix_const(b->ir, (int64_t)f->roots.n)}};
  value at = build_expand(b, onnx_computed_tensor(c, DT_I64, f->roots.at, f->roots.n, 0), &s);
  for (int i = 0; i < depth; i++) {
    value feature = build_take(b, t.feature, at, 0);
    value own = value_of(node_gather(b, x.node, 1, feature.node));
    at = build_where(b, condition(b, f, &t, at, own), build_take(b, t.when_true, at, 0),
                     build_take(b, t.when_false, at, 0));
  }
  return at;
}

/** Combines the weights of all trees' leaves: (rows, targets). The least or greatest weight of a
    target is 0 where no leaf has one, as in ONNX Runtime. */
static value combine_leaves(onnx_call *c, const forest *f, value leaves, aggregate how, dtype t) {
  builder *b = onnx_builder(c);
  tn_axes trees = {.count = 1, .axis = {1}};
  value table = onnx_computed_tensor(c, DT_F64, f->weight, f->nodes.n, f->targets);
  value y = build_take(b, build_cast(b, table, t), leaves, 0);
  if (how == SUM) return build_sum(b, y, trees, false);
  if (how == AVERAGE)
    return build_div(b, build_sum(b, y, trees, false), build_num(b, (double)f->roots.n));
  value present = build_take(
      b, onnx_computed_tensor(c, DT_BOOL, f->has_weight, f->nodes.n, f->targets), leaves, 0);
  double far = how == LEAST ? INFINITY : -INFINITY;
  y = build_where(b, present, y, build_num(b, far));
  y = (how == LEAST ? build_min : build_max)(b, y, trees, false);
  value any = build_max(b, build_cast(b, present, DT_U8), trees, false);
  return build_where(b, build_ne(b, any, build_int(b, 0)), y, build_num(b, 0));
}

static void allocate_weights(onnx_call *c, forest *f, int64_t targets) {
  if (targets < 1 || targets > TREE_NODES_MAX / (int64_t)(f->nodes.n + 1))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "n_targets is %lld, with %zu nodes", (long long)targets,
              f->nodes.n);
  f->targets = (size_t)targets;
  f->weight = arena_calloc(onnx_builder(c)->arena, f->nodes.n * f->targets, sizeof *f->weight);
  f->has_weight =
      arena_calloc(onnx_builder(c)->arena, f->nodes.n * f->targets, sizeof *f->has_weight);
}

static void add_weight(const onnx_call *c, forest *f, int64_t at, int64_t target, double weight) {
  if (target < 0 || target >= (int64_t)f->targets)
    onnx_fail(c, TN_ERR_FORMAT, "target %lld is not in 0 … %zu", (long long)target, f->targets - 1);
  size_t i = (size_t)at * f->targets + (size_t)target;
  f->weight[i] += weight;
  f->has_weight[i] = true;
}

static value read_rows(onnx_call *c) {
  value x = onnx_ml_features(c, 0);
  if (x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2", x.node->rank);
  return x;
}

static void check_features(const onnx_call *c, const forest *f, const node *x) {
  for (size_t i = 0; i < f->nodes.n; i++)
    if (f->nodes.at[i].feature < 0 ||
        (node_is_const(x->dims[1]) && f->nodes.at[i].feature >= node_int(x->dims[1])))
      onnx_fail(c, TN_ERR_FORMAT, "feature %lld of a node is not in the input",
                (long long)f->nodes.at[i].feature);
}

/* TreeEnsemble: leaves are apart from nodes, and sets of values become chains of nodes. */

/** Element i of a float tensor. */
static double element(const onnx_tensor *t, size_t i) {
  dtype type = (dtype)t->dtype;
  const char *data = t->data;
  return scalar_to_double(type, scalar_load(type, data + i * dtype_bytes(type)));
}

static const onnx_tensor *read_tensor(const onnx_call *c, const char *name, size_t n,
                                      bool is_float) {
  const onnx_tensor *t = onnx_tensor_attribute(c, name);
  if (!t) return NULL;
  if (!dtype_is_data((dtype)t->dtype) || dtype_is_float((dtype)t->dtype) != is_float ||
      (n && t->elements != n) || !t->data)
    onnx_fail(c, TN_ERR_FORMAT,
              "attribute '%s' has another type or number of elements than expected", name);
  importer_load_tensor(c->m, t);
  return t;
}

static const onnx_ints *read_ints(const onnx_call *c, const char *name, size_t n) {
  const onnx_ints *l = onnx_ints_attribute(c, name);
  if (!l || l->n != n)
    onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has %zu entries, expected %zu", name, l ? l->n : 0,
              n);
  return l;
}

/** The attributes of a TreeEnsemble, with the place in the forest of each node and leaf. */
typedef struct ensemble {
  size_t n, leaves;
  const onnx_ints *feature, *yes, *no, *yes_leaf, *no_leaf, *missing;
  const onnx_tensor *split, *mode, *members;
  int64_t *place, *leaf_place;
} ensemble;

static ensemble read_ensemble(onnx_call *c) {
  arena *a = onnx_builder(c)->arena;
  const onnx_ints *feature = onnx_ints_attribute(c, "nodes_featureids"),
                  *targets = onnx_ints_attribute(c, "leaf_targetids");
  ensemble e = {.n = feature->n, .leaves = targets->n, .feature = feature};
  if (!e.n || !e.leaves) onnx_fail(c, TN_ERR_FORMAT, "there are no nodes or no leaves");
  e.yes = read_ints(c, "nodes_truenodeids", e.n);
  e.no = read_ints(c, "nodes_falsenodeids", e.n);
  e.yes_leaf = read_ints(c, "nodes_trueleafs", e.n);
  e.no_leaf = read_ints(c, "nodes_falseleafs", e.n);
  if (onnx_has_attribute(c, "nodes_missing_value_tracks_true"))
    e.missing = read_ints(c, "nodes_missing_value_tracks_true", e.n);
  e.split = read_tensor(c, "nodes_splits", e.n, true);
  e.mode = read_tensor(c, "nodes_modes", e.n, false);
  e.members = read_tensor(c, "membership_values", 0, true);
  e.place = arena_alloc(a, e.n * sizeof *e.place);
  e.leaf_place = arena_alloc(a, e.leaves * sizeof *e.leaf_place);
  return e;
}

/** The mode of node i. */
static branch mode_of(const onnx_call *c, const ensemble *e, size_t i) {
  const unsigned char *modes = e->mode->data;
  if (e->mode->dtype != ONNX_U8 || modes[i] > MEMBER)
    onnx_fail(c, TN_ERR_FORMAT, "the mode of node %zu is none", i);
  return (branch)modes[i];
}

/** Adds node i: one, or for a set of values one for each, which leads to the next. */
static void add_nodes(onnx_call *c, const ensemble *e, size_t i, size_t *member, forest *f) {
  arena *a = onnx_builder(c)->arena;
  branch mode = mode_of(c, e, i);
  tree_node t = {.feature = e->feature->at[i],
                 .split = element(e->split, i),
                 .mode = mode,
                 .missing_is_true = e->missing && e->missing->at[i]};
  e->place[i] = (int64_t)f->nodes.n;
  if (mode != MEMBER) {
    vec_push(a, &f->nodes, t);
    return;
  }
  t.mode = EQ;
  for (; e->members && *member < e->members->elements; ++*member) {
    t.split = element(e->members, *member);
    if (isnan(t.split)) break;
    t.when_false = (int64_t)f->nodes.n + 1;
    vec_push(a, &f->nodes, t);
  }
  ++*member;
  if (f->nodes.n == (size_t)e->place[i])
    onnx_fail(c, TN_ERR_FORMAT, "node %zu has no set of values", i);
}

/** The place of a child, a node or a leaf. */
static int64_t child_place(const onnx_call *c, const ensemble *e, int64_t id, int64_t is_leaf) {
  if (id < 0 || id >= (int64_t)(is_leaf ? e->leaves : e->n))
    onnx_fail(c, TN_ERR_FORMAT, "child %lld of a node is none", (long long)id);
  return is_leaf ? e->leaf_place[id] : e->place[id];
}

static void connect_nodes(onnx_call *c, const ensemble *e, forest *f) {
  for (size_t i = 0; i < e->n; i++) {
    size_t end = i + 1 < e->n ? (size_t)e->place[i + 1] : (size_t)e->leaf_place[0];
    int64_t yes = child_place(c, e, e->yes->at[i], e->yes_leaf->at[i]);
    for (size_t k = (size_t)e->place[i]; k < end; k++) f->nodes.at[k].when_true = yes;
    f->nodes.at[end - 1].when_false = child_place(c, e, e->no->at[i], e->no_leaf->at[i]);
  }
}

void onnx_ml_TreeEnsemble(onnx_call *c) {
  arena *a = onnx_builder(c)->arena;
  forest f = {0};
  ensemble e = read_ensemble(c);
  const onnx_ints *targets = onnx_ints_attribute(c, "leaf_targetids"),
                  *roots = onnx_ints_attribute(c, "tree_roots");
  const onnx_tensor *weights = read_tensor(c, "leaf_weights", e.leaves, true);
  int64_t how = onnx_int_attribute(c, "aggregate_function", SUM);
  size_t member = 0;
  for (size_t i = 0; i < e.n; i++) add_nodes(c, &e, i, &member, &f);
  for (size_t i = 0; i < e.leaves; i++) e.leaf_place[i] = add_leaf(a, &f);
  connect_nodes(c, &e, &f);
  for (size_t i = 0; i < roots->n; i++) vec_push(a, &f.roots, child_place(c, &e, roots->at[i], 0));
  if (how < AVERAGE || how > MOST || !f.roots.n)
    onnx_fail(c, TN_ERR_FORMAT, "aggregate_function is %lld, or there are no trees",
              (long long)how);
  if (onnx_int_attribute(c, "post_transform", 0))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "a post_transform of a TreeEnsemble is not supported");
  allocate_weights(c, &f, onnx_int_attribute(c, "n_targets", 1));
  for (size_t i = 0; i < e.leaves; i++)
    add_weight(c, &f, e.leaf_place[i], targets->at[i], element(weights, i));
  value x = read_rows(c);
  check_features(c, &f, x.node);
  value y = combine_leaves(c, &f, find_leaves(c, &f, x), (aggregate)how, (dtype)x.node->dtype);
  c->outputs[0] = build_cast(onnx_builder(c), y, (dtype)onnx_input(c, 0).node->dtype);
}

/* TreeEnsembleRegressor: nodes and leaves have a number in the tree of a number. */

static branch named_mode(const onnx_call *c, const char *name) {
  static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                      "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i])) return (branch)i;
  if (strcmp(name, "LEAF")) onnx_fail(c, TN_ERR_FORMAT, "mode '%.50s' of a node is none", name);
  return LEAF;
}

/** The numbers of a list, from attribute name or name_as_tensor. */
static const double *read_numbers(onnx_call *c, const char *name, size_t *n) {
  builder *b = onnx_builder(c);
  const onnx_attribute *list = onnx_find_attribute(c, name, ONNX_ATTRIBUTE_FLOATS);
  const char *as_tensor = arena_printf(b->arena, "%s_as_tensor", name);
  const onnx_tensor *t = read_tensor(c, as_tensor, 0, true);
  *n = t ? t->elements : list ? list->floats.n : 0;
  double *all = arena_alloc(b->arena, (*n + 1) * sizeof *all);
  for (size_t i = 0; i < *n; i++) all[i] = t ? element(t, i) : (double)list->floats.at[i];
  return all;
}

/** The key of a node: its tree's number and its own. */
static const char *node_key(arena *a, int64_t tree, int64_t id) {
  return arena_printf(a, "%lld %lld", (long long)tree, (long long)id);
}

static int64_t find_node(onnx_call *c, const string_map *places, int64_t tree, int64_t id) {
  const int64_t *at = string_map_get(places, node_key(onnx_builder(c)->arena, tree, id));
  if (!at)
    onnx_fail(c, TN_ERR_FORMAT, "there is no node %lld in tree %lld", (long long)id,
              (long long)tree);
  return *at;
}

/** Reads the nodes; the first one of a tree is its root. */
static void read_trees(onnx_call *c, forest *f, string_map *places) {
  arena *a = onnx_builder(c)->arena;
  const onnx_ints *tree = onnx_ints_attribute(c, "nodes_treeids");
  size_t n = tree ? tree->n : 0, splits;
  const onnx_ints *id = read_ints(c, "nodes_nodeids", n), *missing = NULL,
                  *feature = read_ints(c, "nodes_featureids", n),
                  *yes = read_ints(c, "nodes_truenodeids", n),
                  *no = read_ints(c, "nodes_falsenodeids", n);
  const onnx_attribute *modes = onnx_find_attribute(c, "nodes_modes", ONNX_ATTRIBUTE_STRINGS);
  const double *split = read_numbers(c, "nodes_values", &splits);
  if (onnx_has_attribute(c, "nodes_missing_value_tracks_true"))
    missing = onnx_ints_attribute(c, "nodes_missing_value_tracks_true");
  if (!n || !modes || modes->strings.n != n || splits != n ||
      (missing && missing->n && missing->n != n))
    onnx_fail(c, TN_ERR_FORMAT, "the lists of nodes have different lengths, or are empty");
  for (size_t i = 0; i < n; i++) {
    const char *key = node_key(a, tree->at[i], id->at[i]);
    if (string_map_get(places, key)) onnx_fail(c, TN_ERR_FORMAT, "a node is there twice");
    string_map_set(a, places, key, arena_copy(a, &(int64_t){(int64_t)i}, sizeof(int64_t)));
    vec_push(a, &f->nodes,
             (tree_node){feature->at[i], (int64_t)i, (int64_t)i, split[i],
                         named_mode(c, modes->strings.at[i].at),
                         missing && missing->n && missing->at[i]});
    bool is_root = true;
    for (size_t k = i; k-- > 0 && is_root;) is_root = tree->at[k] != tree->at[i];
    if (is_root) vec_push(a, &f->roots, (int64_t)i);
  }
  for (size_t i = 0; i < n; i++) {
    tree_node *t = &f->nodes.at[i];
    if (t->mode == LEAF) {
      t->feature = 0;
      continue;
    }
    t->when_true = find_node(c, places, tree->at[i], yes->at[i]);
    t->when_false = find_node(c, places, tree->at[i], no->at[i]);
  }
}

/** Reads the weights of leaves, of attributes whose names begin with a prefix, for `targets`. */
static void read_targets(onnx_call *c, forest *f, const string_map *places, const char *prefix,
                         int64_t targets) {
  arena *a = onnx_builder(c)->arena;
  const onnx_ints *tree = onnx_ints_attribute(c, arena_printf(a, "%s_treeids", prefix));
  size_t n = tree ? tree->n : 0, weights;
  const onnx_ints *id = read_ints(c, arena_printf(a, "%s_nodeids", prefix), n),
                  *target = read_ints(c, arena_printf(a, "%s_ids", prefix), n);
  const double *weight = read_numbers(c, arena_printf(a, "%s_weights", prefix), &weights);
  if (weights != n) onnx_fail(c, TN_ERR_FORMAT, "there is not one weight for each target");
  allocate_weights(c, f, targets);
  for (size_t i = 0; i < n; i++)
    add_weight(c, f, find_node(c, places, tree->at[i], id->at[i]), target->at[i], weight[i]);
}

/** Adds attribute base_values, one or one for each target. */
static value add_base_values(onnx_call *c, const forest *f, value y) {
  builder *b = onnx_builder(c);
  size_t n;
  const double *base = read_numbers(c, "base_values", &n);
  if (n && n != f->targets && n != 1)
    onnx_fail(c, TN_ERR_FORMAT, "there are %zu base values for %zu targets", n, f->targets);
  if (!n) return y;
  value added = onnx_computed_tensor(c, DT_F64, base, n, 0);
  return build_add(b, y, build_cast(b, added, (dtype)y.node->dtype));
}

void onnx_ml_TreeEnsembleRegressor(onnx_call *c) {
  static const char *const functions[] = {"SUM", "AVERAGE", "MIN", "MAX"};
  static const aggregate aggregates[] = {SUM, AVERAGE, LEAST, MOST};
  builder *b = onnx_builder(c);
  forest f = {0};
  string_map places = {0};
  aggregate how = aggregates[ENUM_ATTRIBUTE(c, "aggregate_function", functions)];
  read_trees(c, &f, &places);
  read_targets(c, &f, &places, "target", onnx_int_attribute(c, "n_targets", 1));
  value x = read_rows(c);
  check_features(c, &f, x.node);
  value y = combine_leaves(c, &f, find_leaves(c, &f, x), how, (dtype)x.node->dtype);
  y = add_base_values(c, &f, y);
  c->outputs[0] = build_cast(b, onnx_ml_post_transform(c, y), DT_F32);
}

/* TreeEnsembleClassifier. */

/** True if all weights are of one class of two: that class's score decides between both. */
static bool has_one_score(onnx_call *c, int64_t classes) {
  const onnx_ints *ids = onnx_ints_attribute(c, "class_ids");
  for (size_t i = 1; ids && i < ids->n; i++)
    if (ids->at[i] != ids->at[0]) return false;
  return ids && ids->n && classes == 2;
}

/** The scores of two classes by the score of one: p and 1 − p of probabilities, else p and −p.
   Where runtimes disagree about how to tell these apart, raises. */
static value scores_of_one(onnx_call *c, value y) {
  builder *b = onnx_builder(c);
  int64_t id = onnx_ints_attribute(c, "class_ids")->at[0];
  bool are_positive = true,
       is_raw = !strcmp(onnx_string_attribute(c, "post_transform", "NONE"), "NONE");
  size_t n, n_base;
  const double *weight = read_numbers(c, "class_weights", &n);
  read_numbers(c, "base_values", &n_base);
  for (size_t i = 0; i < n; i++) are_positive = are_positive && weight[i] >= 0;
  if (are_positive != is_raw || n_base > 1)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "two classes by the weights of one are supported for positive weights without a "
              "post_transform, and for weights of both signs with one");
  y = build_slice(b, y, 1, ix_const(b->ir, id), ix_const(b->ir, id + 1), 1);
  value other = is_raw ? build_sub(b, build_num(b, 1), y) : build_neg(b, y);
  return build_concat(b, (value[]){other, y}, 2, 1);
}

void onnx_ml_TreeEnsembleClassifier(onnx_call *c) {
  builder *b = onnx_builder(c);
  forest f = {0};
  string_map places = {0};
  bool are_strings;
  value labels = onnx_ml_class_labels(c, "classlabels_int64s", &are_strings);
  int64_t classes = labels.node ? node_int(labels.node->dims[0]) : 0;
  if (classes < 2) onnx_fail(c, TN_ERR_UNSUPPORTED, "fewer than 2 classes are not supported");
  read_trees(c, &f, &places);
  read_targets(c, &f, &places, "class", classes);
  value x = read_rows(c);
  check_features(c, &f, x.node);
  value y = combine_leaves(c, &f, find_leaves(c, &f, x), SUM, (dtype)x.node->dtype);
  y = add_base_values(c, &f, y);
  if (has_one_score(c, classes)) y = scores_of_one(c, y);
  y = build_cast(b, onnx_ml_post_transform(c, y), DT_F32);
  value label = build_take(b, labels, build_argmax(b, y, 1, false), 0);
  c->outputs[0] = are_strings ? onnx_strings(c, label) : label;
  c->outputs[1] = y;
}
