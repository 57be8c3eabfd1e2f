/* Tests the IR verifier: well-formed graphs of each stage of the pipeline pass, and each violated
   rule is reported with its message. */
#include "ir/verify/verify_graph.h"

#include "ir/core/binder.h"
#include "ir/core/check_node.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/parse.h"
#include "support/counting_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

typedef struct world {
  diag d;
  arena a;
  ir *g;
  const char *text;
  enum stage stage;
  tn_status found;
  counting_mem memory;
  mem m; /* of `memory` */
} world;

static tn_status run(world *w, void (*body)(void *w)) {
  w->m = counting_mem_of(&w->memory);
  arena_init(&w->a, &w->m, &w->d);
  w->g = ir_new(&w->m, &w->d, false);
  tn_status s = w->g ? diag_catch(&w->d, body, w) : TN_ERR_MEMORY;
  ir_free(w->g);
  arena_free(&w->a);
  assert_int_equal(w->memory.bytes, 0);
  return s;
}

static void verify_text(void *arg) {
  world *w = arg;
  node_list roots = parse_graph(w->g, &w->a, w->text, strlen(w->text));
  w->found = verify_graph(roots.at, roots.n, w->stage, &w->m, &w->d);
}

static void passes(enum stage stage, const char *text) {
  world w = {.stage = stage, .text = text};
  if (run(&w, verify_text) != TN_OK) fail_msg("%s", w.d.text);
  if (w.found != TN_OK) fail_msg("%s", w.d.text);
}

/** Checks that a graph is refused with "ill-formed graph: %N = op …: why". */
static void breaks(enum stage stage, const char *text, const char *line, const char *why) {
  char start[128], reason[256];
  world w = {.stage = stage, .text = text};
  if (run(&w, verify_text) != TN_OK) fail_msg("%s", w.d.text);
  assert_int_equal(w.found, TN_ERR_INTERNAL);
  const char *equals = strstr(w.d.text, " = ");
  snprintf(start, sizeof start, " = %s", line);
  snprintf(reason, sizeof reason, ": %s", why);
  if (strncmp(w.d.text, "ill-formed graph: %", 19) || !equals ||
      strncmp(equals, start, strlen(start)) || !strstr(equals, reason))
    fail_msg("got '%s' instead of '%s: %s'", w.d.text, line, why);
}

/* Single nodes. */

/** Nodes that the cases use. */
#define GIVEN                                                                            \
  "%n = var index [min=0 max=9] \"n\"\n%x = buffer f32 4 6 [uid=0 version=0]\n"          \
  "%y = buffer f32 6 4 [uid=1 version=0]\n%w = buffer i32 4 6 [uid=2 version=0]\n"       \
  "%b = buffer bool 4 6 [uid=3 version=0]\n%s = const f32 1\n%v = const f32x4 1\n"       \
  "%c = const i32 1\n%i64 = iota i64 4 6 [axis=0]\n%small = iota i64 4 [axis=0]\n"       \
  "%r = range index 4 [id=0 kind=loop axis=0 tail=0]\n%p = param f32 4 6 [slot=0]\n"     \
  "%q = range index 4 [id=1 kind=loop axis=0 tail=0]\n%a = affine index %r %n [0 2 3]\n" \
  "%st = stage void %s %r 4 %r [values=1 ranges=1 pins=0 cut=0 1]\n"                     \
  "%fo = fold void %s %s %r [states=1 emits=0 ranges=1 pins=0 - -1]\n%t = state f32 %r " \
  "[component=0]\n"                                                                      \
  "%p1 = param f32 6 [slot=1]\n"                                                         \
  "%em = fold void %s %s %s %r 4 %r [states=1 emits=1 ranges=1 pins=0 - -1 1]\n"         \
  "%st2 = stage void %s %r 6 %r [values=1 ranges=1 pins=0 cut=0 1]\n"                    \
  "%two = stage void %s %s %r %r 4 6 %r [values=2 ranges=1 pins=0 cut=0 1 1]\n"          \
  "%lo = loop void %r %x %x %x %r [states=1 emits=1]\n"                                  \
  "%al = alloc f32 8 [id=0 space=1]\n%low = var index [min=-9 max=-1] \"low\"\n"         \
  "%none = buffer f32 1099511627776 1099511627776 0 [uid=9 version=0]\n"

static const char *const ill_formed[][2] = {
    {"add f32 %x", "too few sources"},
    {"neg f32 %x %x", "too many sources"},
    {"permute f32 %x", "not a permutation of the axes"},
    {"neg bool %b", "the op does not take this type"},
    {"not f32 %x", "the op does not take this type"},
    {"add f32 %x %w", "operands of different types"},
    {"add f32 %x %y", "operands differ in shape"},
    {"add f32 %s %v", "operands differ in lanes"},
    {"add f32x4 %s %s", "operands differ in lanes"},
    {"add f32 %t %s", "the op takes values, not storage"},
    {"add f32 %al %s", "the op takes values, not storage"},
    {"lt f32 %x %x", "a comparison is a bool"},
    {"lt bool %x %w", "operands of different types"},
    {"where f32 %w %x %x", "a condition is a bool"},
    {"where f32 %b %x %w", "operands of different types"},
    {"cast void %x", "the op does not make this type"},
    {"cast f32 %st", "the op does not take this type"},
    {"bitcast f64 %x", "bitcast between types of different widths"},
    {"bitcast index %x", "the op does not make this type"},
    {"reshape f32 %x 5 5", "reshape changes the number of elements"},
    {"reshape f32 %none 5", "reshape changes the number of elements"},
    {"reshape f32 %x -4 -6", "a size that is no index, or is negative"},
    {"reshape f32 %x %c 24", "a size that is no index, or is negative"},
    {"reshape f32 %x %low", "a size that is no index, or is negative"},
    {"reshape i32 %x 24", "the op has the type of its first source"},
    {"reshape f32 %v 4", "the op takes a tensor"},
    {"reshape f32 %s 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
     "more than 31 dimensions"},
    {"expand f32 %x 4 6 1", "expand changes the number of dimensions"},
    {"expand f32 %x 8 6", "expand repeats a dimension that is not 1"},
    {"permute f32 %x [0 0]", "not a permutation of the axes"},
    {"permute f32 %x [0 2]", "not a permutation of the axes"},
    {"permute f32 %x [1]", "not a permutation of the axes"},
    {"slice f32 %x 0 0 4 [1 1]", "slice needs a start and a size for each axis"},
    {"slice f32 %x 0 0 4 6 [1]", "slice needs a step for each axis"},
    {"slice f32 %x 0 0 4 6 [1 0]", "a step of 0"},
    {"slice f32 %x 0 0 4 7 [1 1]", "slice reads outside its source"},
    {"slice f32 %x 0 0 2 6 [-1 1]", "slice reads outside its source"},
    {"slice f32 %x 0 0 4 6 [1 9223372036854775807]", "slice reads outside its source"},
    {"slice f32 %x 4 0 1 6 [1 1]", "slice reads outside its source"},
    {"pad f32 %x %s 0 0 4", "pad needs a low and a size for each axis"},
    {"pad f32 %x %c 0 0 4 6", "pad's value is no scalar of the source's type"},
    {"pad f32 %x %x 0 0 4 6", "pad's value is no scalar of the source's type"},
    {"pad f32 %x %s -1 0 4 6", "a low padding that is no index, or is negative"},
    {"pad f32 %x %s 1 0 4 6", "pad cuts its source"},
    {"gather f32 %x %i64", "gather needs an index tensor for each axis"},
    {"gather f32 %x %i64 %w", "gather's indices are i64"},
    {"gather f32 %x %i64 %small", "gather's index tensors differ in shape"},
    {"reduce f32 %x [op=sub 0]", "not an op that reduces this type"},
    {"reduce f32 %x [op=and 0]", "not an op that reduces this type"},
    {"reduce f32 %x [op=- 0]", "not an op that reduces this type"},
    {"reduce f32 %x [op=add 2]", "reduced axes are not distinct axes of the source"},
    {"reduce f32 %x [op=add 1 1]", "reduced axes are not distinct axes of the source"},
    {"set f32 %x %x %y", "set needs a value of the view's shape"},
    {"set f32 %x %x %w", "set of another type"},
    {"custom f32 %x [uid=0 output=0 inputs=2 writes=0]", "more inputs than sources"},
    {"custom f32 %x [uid=0 output=0 inputs=1 writes=2]", "writes to an input that is not there"},
    {"custom f32 %x %y [uid=0 output=0 inputs=1 writes=0]",
     "a size that is no index, or is negative"},
    {"custom f32 [uid=-1 output=0 inputs=0 writes=0]", "a negative number"},
    {"loop void %r %x %x [states=0 emits=0]", "wrong number of sources"},
    {"loop void %r %x %x [states=-1 emits=3]", "wrong number of sources"},
    {"loop void %n %x %x [states=1 emits=0]", "a loop counts by a range"},
    {"loop void %r %x %y [states=1 emits=0]", "a step of another type or shape than its start"},
    {"loop void %r %x %w [states=1 emits=0]", "a step of another type or shape than its start"},
    {"loop void %r %x %al [states=1 emits=0]", "loop takes tensors"},
    {"loop void %r %x %x [states=0 emits=1]", "a place that is no index"},
    {"carry f32 %n 4 [component=0]", "a carry is known by its loop's range"},
    {"carry f32 %r 4 [component=-1]", "a negative number"},
    {"carry f32 %r %low [component=0]", "a size that is no index, or is negative"},
    {"result f32 %lo 4 6 [component=2 inputs=1 number=0]", "no such component"},
    {"result f32 %x 4 6 [component=0 inputs=1 number=0]", "a result is of a loop"},
    {"result i32 %lo 4 6 [component=0 inputs=1 number=0]", "result of another type"},
    {"result f32 %lo 6 4 [component=0 inputs=1 number=0]", "result of another shape"},
    {"result f32 %lo 4 6 [component=1 inputs=1 number=0]", "result of another shape"},
    {"result f32 %x 4 6 [component=0 inputs=9 number=1]", "more inputs than sources"},
    {"result f32 %st 4 6 [component=0 inputs=1 number=1]", "result of tensors"},
    {"kernel f32 %x [slot=0 inputs=2] \"k\"", "more inputs than sources"},
    {"kernel f32 %x [slot=-1 inputs=1] \"k\"", "a negative number"},
    {"kernel f32 %x [slot=0 inputs=1] \"\"", "there is no kernel"},
    {"const bool 2", "a bool is 0 or 1"},
    {"const i8 128", "a number outside its type"},
    {"var f32 [min=0 max=1] \"n\"", "the op does not make this type"},
    {"var index [min=2 max=1] \"n\"", "a variable's least value exceeds its greatest"},
    {"var index [min=0 max=1] \"\"", "a variable needs a name"},
    {"iota i64 4 [axis=1]", "no such axis"},
    {"iota f32 4 [axis=0]", "the op does not make this type"},
    {"buffer f32 -4 [uid=0 version=0]", "a size that is no index, or is negative"},
    {"buffer f32 4 [uid=0 version=-1]", "a negative number"},
    {"param f32 %s [slot=0]", "a size that is no index, or is negative"},
    {"range f32 %s [id=0 kind=loop axis=0 tail=0]", "the op does not take this type"},
    {"range i32 4 [id=0 kind=loop axis=0 tail=0]", "operands of different types"},
    {"range index %low [id=0 kind=loop axis=0 tail=0]", "an extent below 0"},
    {"range index 4 [id=-1 kind=loop axis=0 tail=0]", "no number of a range"},
    {"range index 4 [id=9223372036854775807 kind=loop axis=0 tail=0]", "no number of a range"},
    {"range index 4 [id=0 kind=loop axis=-1 tail=0]", "a negative number"},
    {"stage void %s [values=1 ranges=0 pins=0 cut=0]", "wrong number of integers"},
    {"stage void %s [values=1 ranges=0 pins=0 cut=2 0]", "cut is 0 or 1"},
    {"stage void %s [values=0 ranges=0 pins=0 cut=0]", "a stage needs a value"},
    {"stage void %s [values=1 ranges=9 pins=0 cut=0 0]", "more parts than sources"},
    {"stage void %s [values=1 ranges=-1 pins=0 cut=0 0]", "more parts than sources"},
    {"stage void %s %r 4 %r [values=1 ranges=1 pins=0 cut=0 2]", "wrong number of sources"},
    {"stage void %s %r 4 %r [values=1 ranges=1 pins=0 cut=0 99]", "more than 31 dimensions"},
    {"stage void %x %r 4 %r [values=1 ranges=1 pins=0 cut=0 1]", "a stage's values are scalars"},
    {"stage void %s %c 4 %r [values=1 ranges=1 pins=0 cut=0 1]", "a coordinate that is no index"},
    {"stage void %s %r -1 %r [values=1 ranges=1 pins=0 cut=0 1]",
     "an extent that is no index, or is negative"},
    {"stage void %s %r 4 %n [values=1 ranges=1 pins=0 cut=0 1]", "a binder binds ranges"},
    {"stage void %s %r %r [values=1 ranges=2 pins=0 cut=0 0]", "a binder binds a range twice"},
    {"stage void %s %r %s [values=1 ranges=1 pins=1 cut=0 0]", "a pin that is no index"},
    {"fold void %s %s [states=1 emits=0 ranges=0 pins=0 - -1]", "a fold needs a range"},
    {"fold void %s %s %r [states=1 emits=0 ranges=1 pins=0]", "wrong number of integers"},
    {"fold void %s %s %r %q [states=1 emits=0 ranges=1 pins=0 - -1]", "wrong number of sources"},
    {"fold void %s %c %r [states=1 emits=0 ranges=1 pins=0 - -1]",
     "a step of another type than its start"},
    {"fold void %r [states=0 emits=0 ranges=1 pins=0]", "a fold needs a state"},
    {"fold void %s %s %r [states=1 emits=-1 ranges=1 pins=0 - -1]", "more parts than sources"},
    {"fold void %s %s %r [states=1 emits=0 ranges=9 pins=0 - -1]", "more parts than sources"},
    {"fold void %s %s %s %r [states=1 emits=1 ranges=1 pins=0 - -1]", "wrong number of integers"},
    {"fold void %s %s %s %r [states=1 emits=1 ranges=1 pins=0 - -1 1]", "wrong number of sources"},
    {"fold void %s %s %s %r [states=1 emits=1 ranges=1 pins=0 - -1 99]", "more than 31 dimensions"},
    {"fold void %s %s %st %r [states=1 emits=1 ranges=1 pins=0 - -1 0]", "a fold emits scalars"},
    {"fold void %s %s %s %c 4 %r [states=1 emits=1 ranges=1 pins=0 - -1 1]",
     "a coordinate that is no index"},
    {"fold void %s %s %s %r -4 %r [states=1 emits=1 ranges=1 pins=0 - -1 1]",
     "an extent that is no index, or is negative"},
    {"fold void %s %st %r [states=1 emits=0 ranges=1 pins=0 - -1]",
     "a state is a scalar, or a component of a stage"},
    {"fold void %x %x %r [states=1 emits=0 ranges=1 pins=0 - -1]",
     "a state is a scalar, or a component of a stage"},
    {"fold void %fo %fo %r [states=1 emits=0 ranges=1 pins=0 - -1]",
     "a state is a scalar, or a component of a stage"},
    {"fold void %s %s %r [states=1 emits=0 ranges=1 pins=0 - 0]",
     "an array steps by a component of a stage"},
    {"fold void %s %st %r [states=1 emits=0 ranges=1 pins=0 - 1]",
     "an array steps by a component of a stage"},
    {"fold void %s %st %r [states=1 emits=0 ranges=1 pins=0 - -2]",
     "an array steps by a component of a stage"},
    {"fold void %x %st %r [states=1 emits=0 ranges=1 pins=0 - 0]",
     "an array starts as a scalar or a stage"},
    {"fold void %c %st %r [states=1 emits=0 ranges=1 pins=0 - 0]",
     "a step of another type than its start"},
    {"fold void %st2 %two %r [states=1 emits=0 ranges=1 pins=0 - 1]",
     "an array starts as the component that it steps by"},
    {"fold void %st2 %st %r [states=1 emits=0 ranges=1 pins=0 - 0]",
     "a step of another shape than its start"},
    {"fold void %s %st %r [states=1 emits=0 ranges=1 pins=0 and 0]",
     "not an op that reduces this type"},
    {"fold void %s %s %r [states=1 emits=0 ranges=1 pins=0 sub -1]",
     "not an op that reduces this type"},
    {"state f32 %n [component=0]", "a state is known by its fold's innermost range"},
    {"state f32 %r [component=-1]", "a negative number"},
    {"index f32 %x 0 0 [component=0]", "index reads a stage, a fold, a state or a param"},
    {"index f32 %st 0 [component=1]", "no such component"},
    {"index f32 %st 0 [component=-1]", "no such component"},
    {"index f32 %fo [component=1]", "no such component"},
    {"index f32 %p 0 0 [component=1]", "no such component"},
    {"index i32 %st 0 [component=0]", "index of another type than what it reads"},
    {"index f32 %em [component=1]", "wrong number of coordinates"},
    {"index f32 %em 0 [component=2]", "no such component"},
    {"index f32 %st 0 0 [component=0]", "wrong number of coordinates"},
    {"index f32 %fo 0 [component=0]", "wrong number of coordinates"},
    {"index f32 %p 0 [component=0]", "wrong number of coordinates"},
    {"index f32 %st %c [component=0]", "a coordinate that is no index"},
    {"out void %p %fo", "out ends in a stage"},
    {"out void %p %p %st", "out needs a param for each value of its stage"},
    {"out void %x %st", "out writes params"},
    {"out void %p %st", "out of another shape"},
    {"out void %p1 %st", "out of another shape"},
    {"affine index %r [0]", "affine needs an offset and a factor for each source"},
    {"affine index [3]", "a constant or one node is no affine form"},
    {"affine index %r [0 1]", "a constant or one node is no affine form"},
    {"affine index %r [1 0]", "a factor of 0"},
    {"affine index %a [1 2]", "a term that is no atom"},
    {"affine index 4 [1 2]", "a term that is no atom"},
    {"affine index %c [1 2]", "a term that is no index"},
    {"affine i32 %r [1 2]", "the op makes an index"},
    {"invalid f32", "the op does not make this type"},
    {"alloc f32 -1 [id=0 space=0]", "a size that is no index, or is negative"},
    {"alloc f32 4 %n [id=0 space=0]", "the place of an alloc is ranges"},
    {"alloc f32 4 [id=0 space=4]", "a space is 0 to 3"},
    {"barrier void [id=0 space=1]", "a warp or a group meets"},
    {"alloc f32 4 [id=-1 space=0]", "no number of an alloc"},
    {"load f32 %x 0", "load reads a param or an alloc"},
    {"load i32 %p 0", "load of another type"},
    {"load f32 %p %s", "an address that is no index"},
    {"store void %s 0 %s", "store writes a param or an alloc"},
    {"store void %p %s %s", "an address that is no index"},
    {"store void %p 0 %x", "store takes a value"},
    {"store void %p 0 %c", "store of another type"},
    {"store f32 %p 0 %s", "the op has no value"},
    {"after f32 %s", "after orders a param or an alloc"},
    {"after f32x2 %al", "after has other lanes"},
    {"end void %n %s", "end closes a range"},
    {"special index 4 \"\"", "a launch index needs a name"},
    {"special index %low \"core_id\"", "a size that is negative"},
    {"vectorize f32x3 %s %s", "vectorize needs a scalar for each lane"},
    {"vectorize f32x2 %v %v", "lanes are made of scalars"},
    {"splat f32x4 %v", "splat repeats a scalar"},
    {"extract f32 %v [lane=4]", "no such lane"},
    {"extract f32 %v [lane=-1]", "no such lane"},
    {"extract f32x2 %v [lane=0]", "extract makes a scalar"},
    {"buffer f32x2 4 [uid=0 version=0]", "the op has no lanes"},
    {"device void \"\"", "a device needs a name"},
    {"program void %st %st", "a program is sink, device, linear, source, binary"},
};

static void parse_only(void *arg) {
  world *w = arg;
  parse_graph(w->g, &w->a, w->text, strlen(w->text));
}

static void ill_formed_nodes(void **state) {
  (void)state;
  world good = {.text = GIVEN "return\n"};
  if (run(&good, parse_only) != TN_OK) fail_msg("%s", good.d.text);
  for (size_t i = 0; i < sizeof ill_formed / sizeof *ill_formed; i++) {
    char text[4096];
    snprintf(text, sizeof text, "%s%%bad = %s\nreturn\n", GIVEN, ill_formed[i][0]);
    world w = {.text = text};
    tn_status s = run(&w, parse_only);
    const char *why = strstr(w.d.text, ill_formed[i][1]);
    if (s != TN_ERR_FORMAT || !why || strlen(why) != strlen(ill_formed[i][1]))
      fail_msg("%s: got '%s' instead of '%s'", ill_formed[i][0], w.d.text, ill_formed[i][1]);
  }
}

/** Graphs that text cannot express. */
static void unknown_ops(void **state) {
  (void)state;
  assert_string_equal(ir_check_spec(&(node_spec){.op = OP_LIMIT}), "no such op");
  assert_string_equal(ir_check_spec(&(node_spec){.op = (op)-1}), "no such op");
  assert_string_equal(ir_check_spec(&(node_spec){.op = OP_INVALID, .dtype = (dtype)14}),
                      "no such type");
  assert_string_equal(ir_check_spec(&(node_spec){.op = OP_CONST, .dtype = DT_F32}),
                      "wrong number of integers");
  assert_string_equal(
      ir_check_spec(&(node_spec){.op = OP_INVALID, .dtype = DT_INDEX, .text = "x", .n_text = 1}),
      "the op takes no text");
  assert_null(ir_check_spec(&(node_spec){.op = OP_INVALID, .dtype = DT_INDEX}));
}

/* Tensor graphs. */

static void tensor_graphs(void **state) {
  (void)state;
  passes(LEVEL_TENSOR, "%n = var index [min=1 max=8] \"n\"\n"
                       "%b = buffer f32 4 %n [uid=0 version=0]\n"
                       "%r = slice f32 %b 0 0 2 %n [1 1]\n%p = permute f32 %r [1 0]\n"
                       "%v = buffer f32 %n 2 [uid=1 version=0]\n%s = set f32 %b %p %v\n"
                       "%e = add f32 %s %s\n%k = sink void %e \"\"\nreturn %k %e\n");
  breaks(LEVEL_TENSOR,
         "%b = buffer f32 4 [uid=0 version=0]\n%c = buffer f32 4 [uid=1 version=0]\n"
         "%v = slice f32 %c 0 4 [1]\n%s = set f32 %b %v %v\nreturn %s\n",
         "set f32", "the view is not one of the tensor that is set: %");
  breaks(LEVEL_TENSOR,
         "%b = buffer f32 4 [uid=0 version=0]\n%v = neg f32 %b\n%s = set f32 %b %v %v\nreturn %s\n",
         "set f32", "the view is not one of the tensor that is set");
  breaks(LEVEL_TENSOR, "%r = range index 4 [id=0 kind=loop axis=0 tail=0]\nreturn %r\n",
         "range index", "the range has no binder");
  breaks(LEVEL_TENSOR, "%c = const f32x4 1\nreturn %c\n", "const f32x4",
         "a tensor graph has no lanes");
}

/* Loops: the node "%r", and the case's use of it. */

#define LOOP_BEGIN                                      \
  "%n = var index [min=1 max=8] \"n\"\n"                \
  "%r = range index 5 [id=0 kind=loop axis=0 tail=0]\n" \
  "%x = buffer f32 4 [uid=0 version=0]\n"               \
  "%c = carry f32 %r 4 [component=0]\n%next = neg f32 %c\n"

static void loops(void **state) {
  (void)state;
  passes(LEVEL_TENSOR, LOOP_BEGIN "%back = affine index %r [4 -1]\n"
                                  "%l = loop void %r %x %next %c %back [states=1 emits=1]\n"
                                  "%y = result f32 %l 5 4 [component=1 inputs=1 number=0]\n"
                                  "return %y\n");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%l = loop void %r %x %next [states=1 emits=0]\n"
                    "%y = result f32 %l 4 [component=0 inputs=1 number=0]\n"
                    "%z = add f32 %y %c\nreturn %z\n",
         "add f32", "a root uses a range outside of its loop");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%l = loop void %r %c %next [states=1 emits=0]\n"
                    "%y = result f32 %l 4 [component=0 inputs=1 number=0]\n"
                    "return %y\n",
         "loop void", "the start of a loop depends on its range");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%p = affine index %r [1 1]\n"
                    "%l = loop void %r %x %next %c %p [states=1 emits=1]\n"
                    "%y = result f32 %l 5 4 [component=1 inputs=1 number=0]\n"
                    "return %y\n",
         "loop void", "a loop does not emit to each place once");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%d = carry f32 %r 4 [component=1]\n"
                    "%l = loop void %r %x %d [states=1 emits=0]\n"
                    "%y = result f32 %l 4 [component=0 inputs=1 number=0]\n"
                    "return %y\n",
         "carry f32", "the loop has no such state");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%s = slice f32 %x 0 %r [1]\n"
                    "%l = loop void %r %x %next %s %r [states=1 emits=1]\n"
                    "%y = result f32 %l 5 %r [component=1 inputs=1 number=0]\n"
                    "return %y\n",
         "slice f32", "a size depends on the range of a loop");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%h = custom f32 %c 4 [uid=0 output=0 inputs=1 writes=0]\n"
                    "%l = loop void %r %x %h [states=1 emits=0]\n"
                    "%y = result f32 %l 4 [component=0 inputs=1 number=0]\n"
                    "return %y\n",
         "custom f32", "a host function depends on the range of a loop");
  breaks(LEVEL_TENSOR,
         LOOP_BEGIN "%l = loop void %r %x %next [states=1 emits=0]\n"
                    "%m = loop void %r %x %x [states=1 emits=0]\n"
                    "%y = result f32 %l 4 [component=0 inputs=1 number=0]\n"
                    "%z = result f32 %m 4 [component=0 inputs=1 number=0]\n"
                    "return %y %z\n",
         "range index", "the range is bound twice");
}

/* Kernels. */

#define RANGE(name, extent, id) \
  "%" name " = range index " extent " [id=" id " kind=loop axis=0 tail=0]\n"
#define VECTOR(name, extent, id) \
  "%" name " = range index " extent " [id=" id " kind=vector axis=0 tail=0]\n"
#define IN "%p = param f32 8 8 [slot=1]\n%q = param f32 8 [slot=0]\n"
/** A stage over %i of a value, and the nodes from it to the root. */
#define OUT(value, more)                                                                      \
  "%st = stage void " value " %i 8 %i " more "\n%out = out void %q %st\n%k = sink void %out " \
  "\"k\"\nreturn %k\n"
#define ONE "[values=1 ranges=1 pins=0 cut=0 1]"

static const char row_sums[] = IN RANGE("i", "8", "0") RANGE(
    "j", "8",
    "1") "%x = index f32 %p %i %j [component=0]\n"
         "%z = const f32 0\n%f = fold void %z %x %j [states=1 emits=0 ranges=1 pins=0 add -1]\n"
         "%y = index f32 %f [component=0]\n" OUT("%y", ONE);

static void kernels(void **state) {
  (void)state;
  passes(LEVEL_KERNEL, row_sums);
  /* a staged row inside the row's loop, read twice */
  passes(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") VECTOR("j", "8", "1")
             RANGE("l", "8",
                   "2") "%x = index f32 %p %i %j [component=0]\n"
                        "%e = stage void %x %j 8 %j [values=1 ranges=1 pins=0 cut=0 1]\n"
                        "%a = index f32 %e 3 [component=0]\n%b = index f32 %e %i [component=0]\n"
                        "%c = add f32 %a %b\n" OUT("%c", ONE) ";" RANGE("unused", "8", "9"));
  /* an extent that depends on an outer range of the same binder */
  passes(LEVEL_KERNEL, IN
         "%o = range index 2 [id=0 kind=loop axis=0 tail=0]\n"
         "%left = affine index %o [8 -5]\n%ext = min index %left 5\n"
         "%r = range index %ext [id=1 kind=loop axis=0 tail=0]\n%i = affine index %o %r [0 5 1]\n"
         "%x = index f32 %p %i %i [component=0]\n"
         "%st = stage void %x %i 8 %o %r [values=1 ranges=2 pins=0 cut=0 1]\n"
         "%out = out void %q %st\n%k = sink void %out \"k\"\nreturn %k\n");
}

static void broken_ranges(void **state) {
  (void)state;
  breaks(LEVEL_KERNEL, IN RANGE("i", "8", "0") "%x = index f32 %p %i %i [component=0]\nreturn %x\n",
         "range index", "the range has no binder");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE(
             "j", "8",
             "1") "%x = index f32 %p %i %i [component=0]\n"
                  "%f = fold void %x %x %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                  "%g = fold void %x %x %x %x %j [states=2 emits=0 ranges=1 pins=0 - -1 - -1]\n"
                  "%a = index f32 %f [component=0]\n%b = index f32 %g "
                  "[component=1]\n%c = add f32 %a %b\n" OUT("%c", ONE),
         "range index", "the range is bound twice");
  breaks(
      LEVEL_KERNEL,
      IN RANGE("i", "8", "0") "%j = range index 8 [id=0 kind=unroll axis=0 tail=0]\n"
                              "%x = index f32 %p %i %j [component=0]\n"
                              "%st = stage void %x %i 8 %i %j [values=1 ranges=2 pins=0 cut=0 1]\n"
                              "%out = out void %q %st\n%k = sink void %out \"k\"\nreturn %k\n",
      "range index", "the number belongs to another node too");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") "%y = param i32 8 [slot=0]\n"
                                 "%x = index i32 %y %i [component=0]\n"
                                 "%c = cast f32 %x\n"
                                 "%z = index f32 %p %i %i [component=0]\n"
                                 "%a = add f32 %c %z\n"
                                 "%st = stage void %a %i 8 %i [values=1 ranges=1 pins=0 cut=0 1]\n"
                                 "%out = out void %q %st\n%k = sink void %out \"k\"\nreturn %k\n",
         "param", "the number belongs to another node too");
  /* j is bound by a fold, but used in its start and outside */
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE(
             "j", "8", "1") "%x = index f32 %p %i %j [component=0]\n"
                            "%f = fold void %x %x %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                            "%y = index f32 %f [component=0]\n" OUT("%y", ONE),
         "fold void", "the start of a fold depends on its range");
  breaks(
      LEVEL_KERNEL,
      IN RANGE("i", "8", "0") RANGE(
          "j", "8",
          "1") "%x = index f32 %p %i %j [component=0]\n"
               "%z = const f32 0\n%f = fold void %z %x %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
               "%y = index f32 %f [component=0]\n%b = add f32 %x %y\n" OUT("%b", ONE),
      "sink void", "a root uses a range outside of its binder: %");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE(
             "j", "%i", "1") "%x = index f32 %p %i %j [component=0]\n"
                             "%st = stage void %x %i 8 %j %i [values=1 ranges=2 pins=0 cut=0 1]\n"
                             "%out = out void %q %st\n%k = sink void %out \"k\"\nreturn %k\n",
         "stage void", "the extent of a range depends on a range that is not open");
  breaks(
      LEVEL_KERNEL,
      IN VECTOR("i", "8", "0") VECTOR(
          "j", "8",
          "1") "%x = index f32 %p %i %j [component=0]\n"
               "%z = const f32 0\n%f = fold void %z %x %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
               "%y = index f32 %f [component=0]\n" OUT("%y", ONE),
      "fold void", "a vector inside a vector");
}

/** Two folds side by side, each of which uses the other's range. */
static void broken_paths(void **state) {
  (void)state;
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE("j", "8", "1") RANGE(
             "l", "8", "2") "%x = index f32 %p %j %l [component=0]\n%z = const f32 0\n"
                            "%f = fold void %z %x %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                            "%g = fold void %z %x %l [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                            "%y = index f32 %f [component=0]\n%v = index f32 %g "
                            "[component=0]\n%w = add f32 %y %v\n" OUT("%w", ONE),
         "sink void", "a root uses a range outside of its binder");
}

static void broken_stages(void **state) {
  (void)state;
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0")
             RANGE("j", "8", "1") "%x = index f32 %p %i %j [component=0]\n"
                                  "%e = stage void %x %j 8 %j [values=1 ranges=1 pins=0 cut=1 1]\n"
                                  "%a = index f32 %e %i [component=0]\n" OUT("%a", ONE),
         "stage void", "a cut stage uses a range of its reader: %");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0")
             RANGE("j", "8", "1") "%x = index f32 %p %i %j [component=0]\n"
                                  "%e = stage void %x %j %j %j [values=1 ranges=1 pins=0 cut=0 1]\n"
                                  "%a = index f32 %e %i [component=0]\n" OUT("%a", ONE),
         "stage void", "an array's extent depends on a range of its binder");
  breaks(LEVEL_KERNEL,
         "%s = param f32 [slot=1]\n" IN RANGE("i", "8", "0") "%y = neg f32 %s\n" OUT("%y", ONE),
         "neg f32", "the op cannot take this source: %");
  breaks(LEVEL_KERNEL, "%c = const f32 1\n%k = sink void %c \"k\"\nreturn %k\n", "sink void",
         "the op cannot take this source");
}

static void broken_states(void **state) {
  (void)state;
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") "%t = state f32 %i [component=0]\n"
                                 "%y = index f32 %t [component=0]\n" OUT("%y", ONE),
         "state f32", "no fold has this as its innermost range");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE(
             "j", "8", "1") "%z = const f32 0\n"
                            "%t = state f32 %j [component=1]\n%s = index f32 %t [component=0]\n"
                            "%f = fold void %z %s %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                            "%y = index f32 %f [component=0]\n" OUT("%y", ONE),
         "state f32", "the fold has no such state");
  breaks(LEVEL_KERNEL,
         IN RANGE("i", "8", "0") RANGE(
             "j", "8", "1") "%z = const f32 0\n"
                            "%t = state i32 %j [component=0]\n%s = index i32 %t "
                            "[component=0]\n%c = cast f32 %s\n"
                            "%f = fold void %z %c %j [states=1 emits=0 ranges=1 pins=0 - -1]\n"
                            "%y = index f32 %f [component=0]\n" OUT("%y", ONE),
         "state i32", "the state of the fold has another type");
}

#define FOLD(value, rest) "%f = fold void %z " value " %j " rest "\n"
#define J              \
  RANGE("i", "8", "0") \
  RANGE("j", "8", "1") "%z = const f32 0\n%x = index f32 %p %i %j [component=0]\n"
#define STATE  "%t = state f32 %j [component=0]\n%s = index f32 %t [component=0]\n"
#define YIELDS "%y = index f32 %f [component=0]\n" OUT("%y", ONE)

static void broken_folds(void **state) {
  (void)state;
  /* a step that is a term, while the state is not */
  breaks(LEVEL_KERNEL,
         IN J STATE "%a = add f32 %s %x\n" FOLD("%a", "[states=1 emits=0 ranges=1 pins=0 add -1]")
             YIELDS,
         "fold void", "a term of an op contains a state of its fold: %");
  breaks(LEVEL_KERNEL,
         IN J STATE
         "%c = cast index %s\n" FOLD("%x %x %c 8", "[states=1 emits=1 ranges=1 pins=0 add -1 1]")
             YIELDS,
         "fold void", "a coordinate depends on a state: %");
  breaks(LEVEL_KERNEL,
         IN J FOLD("%x %x %i %j", "[states=1 emits=1 ranges=1 pins=0 add -1 1]") YIELDS,
         "fold void", "an array's extent depends on a range of its binder");
  breaks(LEVEL_KERNEL, IN J FOLD("%x", "%j [states=1 emits=0 ranges=1 pins=1 add -1]") YIELDS,
         "fold void", "a pin depends on a range of its binder");
  breaks(LEVEL_KERNEL,
         IN J "%t = state f32 %j [component=0]\n%s = index f32 %t %i [component=0]\n" FOLD(
             "%s", "[states=1 emits=0 ranges=1 pins=0 - -1]") YIELDS,
         "index f32", "the state of the fold has another number of coordinates: %");
}

#define L RANGE("l", "8", "2")
#define ARRAY(value, coordinate, extent) \
  "%v = stage void " value " " coordinate " " extent " %l [values=1 ranges=1 pins=0 cut=0 1]\n"
#define ELEMENT "%t = state f32 %j [component=0]\n%s = index f32 %t %l [component=0]\n"
#define ENDS    "%y = index f32 %f %i [component=0]\n" OUT("%y", ONE)

static void broken_arrays(void **state) {
  (void)state;
  passes(LEVEL_KERNEL, IN J L ELEMENT "%a = add f32 %s %x\n" ARRAY("%a", "%l", "8")
                           FOLD("%v", "[states=1 emits=0 ranges=1 pins=0 - 0]") ENDS);
  breaks(LEVEL_KERNEL,
         IN J L ELEMENT "%a = add f32 %s %x\n" ARRAY("%a", "%l", "8")
             FOLD("%v", "[states=1 emits=0 ranges=1 pins=0 add 0]") ENDS,
         "fold void", "a term of an op contains a state of its fold: %");
  breaks(LEVEL_KERNEL,
         IN J L ELEMENT "%c = cast index %s\n" ARRAY("%x", "%c", "8")
             FOLD("%v", "[states=1 emits=0 ranges=1 pins=0 - 0]") ENDS,
         "fold void", "a coordinate depends on a state: %");
  breaks(LEVEL_KERNEL,
         IN J L "%e = affine index %j [1 1]\n" ARRAY("%x", "%l", "%e")
             FOLD("%v", "[states=1 emits=0 ranges=1 pins=0 add 0]") ENDS,
         "fold void", "the extent of a state depends on a range of its fold");
  breaks(LEVEL_KERNEL,
         IN J L
         "%t = state f32 %j [component=0]\n%s = index f32 %t [component=0]\n" ARRAY("%s", "%l", "8")
             FOLD("%v", "[states=1 emits=0 ranges=1 pins=0 - 0]") ENDS,
         "index f32", "the state of the fold has another number of coordinates: %");
}

/* Lowered graphs. */

#define LOOP(name, id) "%" name " = range index 8 [id=" id " kind=loop axis=0 tail=0]\n"

static void lowered_graphs(void **state) {
  (void)state;
  passes(
      LEVEL_LOWERED,
      IN LOOP("i", "0") LOOP(
          "j",
          "1") "%at = affine index %i %j [0 8 1]\n"
               "%acc = alloc f32 1 %i [id=0 space=0]\n%z = const f32 0\n%init = store void %acc 0 "
               "%z\n"
               "%ready = after f32 %acc %init %j\n%old = load f32 %ready 0\n%x = load f32 %p %at\n"
               "%new = add f32 %old %x\n%put = store void %ready 0 %new\n%ej = end void %j %put\n"
               "%done = after f32 %acc %ej\n%sum = load f32 %done 0\n%st = store void %q %i %sum\n"
               "%ei = end void %i %st\n%k = sink void %ei \"k\"\nreturn %k\n");
  breaks(LEVEL_LOWERED,
         IN LOOP("i", "0") "%x = load f32 %p %i\n%st = store void %q %i %x\n%k = sink void %st "
                           "\"k\"\nreturn %k\n",
         "range index", "the range has no binder");
  breaks(LEVEL_LOWERED,
         IN LOOP("i", "0") "%x = load f32 %p %i\n%st = store void %q %i %x\n%ei = end void %i %st\n"
                           "%no = store void %q 0 %x\n%k = sink void %ei %no \"k\"\nreturn %k\n",
         "sink void", "a root uses a range outside of its binder");
  breaks(LEVEL_LOWERED,
         IN LOOP("i", "0") "%x = load f32 %p %i\n%st = store void %q %i %x\n%ei = end void %i %st\n"
                           "%ek = end void %i %x\n%k = sink void %ei %ek \"k\"\nreturn %k\n",
         "range index", "the range is bound twice");
  breaks(LEVEL_LOWERED,
         IN "%i = param f32 [slot=4]\n%x = neg f32 %i\n%st = store void %q 0 %x\n"
            "%k = sink void %st \"k\"\nreturn %k\n",
         "neg f32", "the op cannot take this source");
}

/* Linear programs. */

#define LINE_RANGE(name, id) "%" name " = range i64 %n [id=" id " kind=loop axis=0 tail=0]\n"
#define PARTS                                                                                      \
  IN "%n = const i64 8\n%zero = const i64 0\n%one = const i64 1\n" LINE_RANGE("i", "0")            \
      LINE_RANGE(                                                                                  \
          "j",                                                                                     \
          "1") "%row = mul i64 %i %n\n%at = add i64 %row %j\n"                                     \
               "%acc = alloc f32 %one %i [id=0 space=0]\n%z = const f32 0\n%init = store void "    \
               "%acc %zero "                                                                       \
               "%z\n%ready = after f32 %acc %init %j\n%old = load f32 %ready %zero\n"              \
               "%x = load f32 %p %at\n%new = add f32 %old %x\n%put = store void %ready %zero "     \
               "%new\n"                                                                            \
               "%ej = end void %j %put\n%done = after f32 %acc %ej\n%sum = load f32 %done %zero\n" \
               "%st = store void %q %i %sum\n%ei = end void %i %st\n"
#define LIST(list) PARTS "%l = linear void " list "\nreturn %l\n"
#define GOOD       "%i %row %acc %init %j %at %old %x %new %put %ej %sum %st %ei"

static void linear_programs(void **state) {
  (void)state;
  passes(LEVEL_LINEAR, LIST(GOOD));
  passes(LEVEL_LINEAR, "%l = linear void\nreturn %l\n");
  passes(LEVEL_LINEAR,
         PARTS "%l = linear void " GOOD "\n%pi = range index 8 [id=9 kind=loop axis=0 "
               "tail=0]\n%y = cast f32 %pi\n%s = sink void \"k\"\n%d = device void "
               "\"CPU\"\n%c = source void \"\"\n%b = binary void \"\"\n"
               "%pr = program void %s %d %l %c %b\nreturn %pr\n");
}

/** Checks the message after the line number. */
static void breaks_linear(const char *text, const char *why) {
  world w = {.stage = LEVEL_LINEAR, .text = text};
  if (run(&w, verify_text) != TN_OK) fail_msg("%s", w.d.text);
  assert_int_equal(w.found, TN_ERR_INTERNAL);
  if (!strstr(w.d.text, why)) fail_msg("got '%s' instead of '%s'", w.d.text, why);
}

static void broken_programs(void **state) {
  (void)state;
  breaks_linear(LIST("%i %row %acc %init %j %old %x %new %put %ej %sum %st %ei"),
                "a source is not listed above: ");
  breaks_linear(LIST("%i %row %acc %init %j %at %old %x %new %put %ej %sum %st"),
                "a loop does not end");
  breaks_linear(LIST("%i %row %acc %init %j %at %old %x %new %put %sum %st %ei %ej"),
                "an effect to wait for is not listed above");
  breaks_linear(LIST("%i %row %acc %init %j %at %old %x %new %put %st %ei"),
                "a source is not listed above");
  breaks_linear(LIST("%i %i"), "the instruction is listed twice");
  breaks_linear(LIST("%i %row %acc %j %at %old"), "an effect to wait for is not listed above");
  breaks_linear(LIST("%i %row %row"), "the instruction is listed twice");
  breaks_linear(LIST("%z"), "a linear program does not list this op");
  breaks_linear(LIST("%row"), "a source is not listed above");
  breaks_linear(PARTS "%e = end void %i %row\n%l = linear void %i %row %j %e\nreturn %l\n",
                "the loop that ends is not the innermost open one");
  breaks_linear(PARTS "%e = end void %i %row\n%u = neg i64 %row\n"
                      "%l = linear void %i %row %e %u\nreturn %l\n",
                "a source belongs to a loop that has ended");
  breaks_linear(PARTS "%e = end void %i %row\n%u = neg i64 %i\n"
                      "%l = linear void %i %row %e %u\nreturn %l\n",
                "a source belongs to a loop that has ended");
  breaks_linear(PARTS "%e = end void %i %row\n%u = load f32 %acc %zero\n"
                      "%l = linear void %i %row %acc %e %u\nreturn %l\n",
                "a source belongs to a loop that has ended");
  breaks_linear(PARTS "%u = range index 4 [id=5 kind=loop axis=0 tail=0]\n"
                      "%e = end void %u %u\n%l = linear void %u %e\nreturn %l\n",
                "an index is left without a width");
  breaks_linear(PARTS "%u = load f32 %acc %i\n%l = linear void %i %acc %u\nreturn %l\n",
                "registers are addressed by constants");
  breaks_linear(PARTS "%u = load f32 %acc %one\n%l = linear void %i %acc %u\nreturn %l\n",
                "there is no such register");
  breaks_linear(PARTS "%u = load f32x4 %done %zero\n%l = linear void %u\nreturn %l\n",
                "a register has other lanes");
  breaks_linear(PARTS "%u = alloc f32x4 %one [id=4 space=1]\n%l = linear void %u\nreturn %l\n",
                "scratch memory holds scalars");
  breaks_linear(PARTS
                "%w = special i64 %n \"l0\"\n%r = range i64 %w [id=5 kind=loop axis=0 tail=0]\n"
                "%b = barrier void [id=6 space=3]\n%e = end void %r %w\n"
                "%l = linear void %w %r %b %e\nreturn %l\n",
                "workers part in a loop around a barrier");
  breaks_linear(PARTS "%u = alloc f32 %n [id=0 space=1]\n%l = linear void %i %acc %u\nreturn %l\n",
                "the number belongs to another node too");
}

/* Large graphs. */

enum { LONG = 30000 };

/** A kernel with a long chain of values and as many stages one after the other. */
static void long_kernel(void *arg) {
  world *w = arg;
  ir *g = w->g;
  const node *n = ix_const(g, 8), *x = ir_const(g, DT_F32, 1), *nothing = NULL;
  for (int i = 0; i < LONG; i++) {
    const node *r = range_make(g, n, KIND_LOOP);
    const node *v = ir_op2(g, OP_ADD, x, ir_cast(g, r, DT_F32));
    const node *s = stage_make(g, &(stage_spec){.n_values = 1,
                                                .n_ranges = 1,
                                                .values = &v,
                                                .ranks = &(size_t){1},
                                                .coords = &r,
                                                .extents = &n,
                                                .ranges = &r,
                                                .pins = &nothing});
    x = index_make(g, DT_F32, s, 0, 1, &(const node *){ix_const(g, 3)});
  }
  w->found = verify_graph(&x, 1, LEVEL_KERNEL, &w->m, &w->d);
}

static void long_graphs(void **state) {
  (void)state;
  world w = {0};
  assert_int_equal(run(&w, long_kernel), TN_OK);
  if (w.found != TN_OK) fail_msg("%s", w.d.text);
}

static void memory_runs_out(void **state) {
  (void)state;
  static const struct {
    enum stage stage;
    const char *text;
  } cases[] = {{LEVEL_KERNEL, row_sums}, {LEVEL_LINEAR, LIST(GOOD)}, {LEVEL_TENSOR, row_sums}};
  for (size_t c = 0; c < 3; c++) {
    tn_status s = TN_ERR_MEMORY;
    size_t n = 1;
    for (; s == TN_ERR_MEMORY && n < 1000; n++) {
      world w = {.stage = cases[c].stage, .text = cases[c].text, .memory.fail_at = n};
      s = run(&w, verify_text);
      if (s == TN_OK) s = w.found;
    }
    assert_int_equal(s, c < 2 ? TN_OK : TN_ERR_INTERNAL);
    assert_true(n > 5);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ill_formed_nodes), cmocka_unit_test(unknown_ops),
      cmocka_unit_test(tensor_graphs),    cmocka_unit_test(loops),
      cmocka_unit_test(kernels),          cmocka_unit_test(broken_ranges),
      cmocka_unit_test(broken_paths),     cmocka_unit_test(broken_stages),
      cmocka_unit_test(broken_states),    cmocka_unit_test(broken_folds),
      cmocka_unit_test(broken_arrays),    cmocka_unit_test(lowered_graphs),
      cmocka_unit_test(linear_programs),  cmocka_unit_test(broken_programs),
      cmocka_unit_test(long_graphs),      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
