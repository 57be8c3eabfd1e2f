/* Defines the C renderer's dialect for CUDA C, of scalars alone: a warp's workers access memory
   together. A kernel's entry gets each buffer as a typed pointer, which does not alias others and
   is to constant elements where nothing is stored, so that loads may go through the cache of
   constant data; it declares the arrays of the group. Their pointers may alias: the compiler could
   move accesses by pointers that do not across a barrier, which gets none of them. Results are
   those of the CPU's pairs where it is compiled with --fmad=false, correctly rounded division and
   root, and subnormal numbers. */
#include "render/c/dialect_ops.h"

/* Tiles that a warp computes, of which a worker has parts: vectors of words. Other compilers than
   CUDA's, which emulate a device, bring functions of their own. */
#define MMA(type)                                                                     \
  "template <class S, class X, class Y>\n"                                            \
  "static __device__ __forceinline__ S mma_" type "(S s, X x, Y y) {\n"               \
  "  asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 \"\n" \
  "      \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"       \
  "      : \"+f\"(s.at[0]), \"+f\"(s.at[1]), \"+f\"(s.at[2]), \"+f\"(s.at[3])\n"      \
  "      : \"r\"(__float_as_uint(x.at[0])), \"r\"(__float_as_uint(x.at[1])),\n"       \
  "        \"r\"(__float_as_uint(x.at[2])), \"r\"(__float_as_uint(x.at[3])),\n"       \
  "        \"r\"(__float_as_uint(y.at[0])), \"r\"(__float_as_uint(y.at[1])));\n"      \
  "  return s;\n"                                                                     \
  "}\n"

static const char tile_functions[] = "#if defined(__CUDA_ARCH__) && !defined(MMA)\n"
                                     "#define MMA\n" //
    MMA("bf16") MMA("f16") "#endif\n";

/* Copies to a group's memory. They need places that are multiples of their size, as single elements
   have; vectors at other places are stored at once. */
static const char copy_functions[] =
    "#if defined(__CUDA_ARCH__) && !defined(COPIES)\n"
    "#define COPIES\n"
    "template <int n, class T>\n"
    "static __device__ __forceinline__ void copy_ahead(T *to, const T *from, bool is_there) {\n"
    "  if (sizeof(T) == n || ((size_t)to | (size_t)from) % n == 0) {\n"
    "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\"\n"
    "        :: \"r\"((unsigned)__cvta_generic_to_shared(to)),\n"
    "           \"l\"(__cvta_generic_to_global(from)), \"n\"(n), \"r\"(is_there ? n : 0)\n"
    "        : \"memory\");\n"
    "  } else {\n"
    "    for (int i = 0; i < n / (int)sizeof(T); i++)\n"
    "      to[i] = is_there ? from[i] : (T)0;\n"
    "  }\n"
    "}\n"
    "template <int pending> static __device__ __forceinline__ void wait_copies() {\n"
    "  asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
    "  if (pending >= 0)\n"
    "    asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(pending < 0 ? 0 : pending) : "
    "\"memory\");\n"
    "}\n"
    "#endif\n";

#define FLOAT_OPS                                                                                 \
  [OP_NEG] = EXPRESSION("-$a"), [OP_SQRT] = CALL("sqrt$f($a)"), [OP_FLOOR] = CALL("floor$f($a)"), \
  [OP_CEIL] = CALL("ceil$f($a)"), [OP_TRUNC] = CALL("trunc$f($a)"),                               \
  [OP_ROUND] = CALL("rint$f($a)"), [OP_ADD] = EXPRESSION("$a + $b"),                              \
  [OP_SUB] = EXPRESSION("$a - $b"), [OP_MUL] = EXPRESSION("$a * $b"),                             \
  [OP_DIV] = EXPRESSION("$a / $b"), [OP_FMA] = CALL("fma$f($a, $b, $c)"),                         \
  [OP_ABS] = CALL("fabs$f($a)"), EXTREMA_FLOAT, [OP_WHERE] = EXPRESSION("$a ? $b : $c")

/* Numbers along an axis of all workers. */
#define OF_ALL(axis) "((long long)blockIdx." axis " * blockDim." axis " + threadIdx." axis ")"

static const c_launch_index indices[] = {
    {"g0", "blockIdx.x"},  {"g1", "blockIdx.y"},     {"g2", "blockIdx.z"}, {"l0", "threadIdx.x"},
    {"l1", "threadIdx.y"}, {"l2", "threadIdx.z"},    {"i0", OF_ALL("x")},  {"i1", OF_ALL("y")},
    {"i2", OF_ALL("z")},   {"core_id", OF_ALL("x")}, {NULL, NULL}};

const c_dialect c_cuda = {
    .types =
        {
            [DT_BOOL] = {"unsigned char", "", "", ""},
            [DT_I8] = {"signed char", "", "", ""},
            [DT_I16] = {"short", "", "", ""},
            [DT_I32] = {"int", "", "", ""},
            [DT_I64] = {"long long", "", "LL", ""},
            [DT_U8] = {"unsigned char", "", "", ""},
            [DT_U16] = {"unsigned short", "", "", ""},
            [DT_U32] = {"unsigned", "", "U", ""},
            [DT_U64] = {"unsigned long long", "", "ULL", ""},
            [DT_F16] = {"unsigned short", "", "", ""},
            [DT_BF16] = {"unsigned short", "", "", ""},
            [DT_F32] = {"float", "words", "f", "f"},
            [DT_F64] = {"double", "", "", ""},
        },
    .scalar =
        {
            [C_BOOL] = {TRUTH_VALUES},
            [C_INT] = {INTEGER_OPS, COMPARISONS, SELECTIONS, ABS_SIGNED},
            [C_UINT] = {INTEGER_OPS, COMPARISONS, SELECTIONS, ABS_UNSIGNED},
            [C_FLOAT] = {FLOAT_OPS, COMPARISONS},
        },
    .vector = {[C_FLOAT] = {[OP_MMA_BF16] = CALL("mma_bf16($a, $b, $c)"),
                            [OP_MMA_F16] = CALL("mma_f16($a, $b, $c)")}},
    .partial = {OP_SHL, OP_SHR, OP_CAST, OP_LIMIT},
    .prelude = "",
    .dots_prelude = tile_functions,
    .minus_zero = "(-($t)0)",
    .vector_type = "struct $t { $o at[$n / sizeof($o)]; };\n",
    .most_lanes = 4, /* of tiles */
    .helper = "static __device__ __forceinline__ ",
    .splat = EXPRESSION("($t)$a"),
    .vectorize = "$t{{$l}}",
    .extract = "$a.at[$n]",
    .shift = {"($a & $n)", "($a & $n)"},
    .memory =
        {
            .load = {"$a[$b]", "*($t *)($a + $b)"},
            .store = {"$a[$b] = $c", "*($t *)($a + $b) = $c"},
            .zero = {"($t)0", "($t)0"},
            .masked = {"$a ? $b : $c", "$a ? $b : $c"},
        },
    .conversion =
        {
            .cast = {"($t)$a", "($t)$a"},
            .to_bool = {"$a != 0", "($a != ($o)0)"},
            .bitcast = {FUNCTION("union {\n    $o from;\n    $t to;\n  } u;\n  u.from = $a;\n"
                                 "  return u.to;"),
                        UNARY("($t)$a")},
            .to_mask = "-$a",
            .of_mask = "-$a",
        },
    .function =
        {
            .scratch = "$o $a[$l]",
            .function = "static __device__ __forceinline__ void $a_body",
            .param = {"const $o *__restrict__ $a", "$o *__restrict__ $a"},
            .value = "long long $a",
            .entry = "extern \"C\" __global__ void __launch_bounds__($n) $a($l) {\n"
                     "$b  $a_body",
            .argument = {"b$n", "$a"},
            .many_accumulators = "",
            .unrolled = "#pragma unroll",
        },
    .team =
        {
            .indices = indices,
            .shared = "__shared__ $o $a[$n]",
            .shared_param = "$o *$a",
            .barrier = "__syncthreads()",
            .copy = "copy_ahead<$n>($a, $b, $c)",
            .wait = "wait_copies<$n>()",
            .copy_prelude = copy_functions,
            .entry_param = {"$a$o *__restrict__ b$n", "long long $a"},
        },
};
