/* Defines the C renderer's dialect for OpenCL C from version 1.2. A kernel's entry gets each buffer
   as memory and an offset, and declares the arrays of the group, as the language asks for that in
   the entry; its function has typed pointers that do not alias. Results are those of the CPU's
   pairs: multiplications and additions are not contracted, division and square root are correctly
   rounded, by the driver (ROUNDED, an option of the compilation) or by functions of the prelude. */
#include "render/c/dialect_ops.h"

/* Scalars and vectors alike. */
#define FLOAT_OPS                                                                                \
  [OP_NEG] = EXPRESSION("-$a"), [OP_SQRT] = CALL("root_$t($a)"), [OP_FLOOR] = CALL("floor($a)"), \
  [OP_CEIL] = CALL("ceil($a)"), [OP_TRUNC] = CALL("trunc($a)"), [OP_ROUND] = CALL("rint($a)"),   \
  [OP_ADD] = EXPRESSION("$a + $b"), [OP_SUB] = EXPRESSION("$a - $b"),                            \
  [OP_MUL] = EXPRESSION("$a * $b"), [OP_DIV] = CALL("divided_$t($a, $b)"),                       \
  [OP_FMA] = CALL("fma($a, $b, $c)"), [OP_ABS] = CALL("fabs($a)"),                               \
  EXTREMA_FLOAT, [OP_WHERE] = EXPRESSION("$a ? $b : $c")

/* Vectors. Comparisons give masks of the operands' width, by which ?: selects. */
#define INTEGER_OPS_VECTOR                                                             \
  [OP_NEG] = UNARY("as_$t(-as_$u($a))"), [OP_NOT] = EXPRESSION("~$a"),                 \
  [OP_ADD] = UNARY("as_$t(as_$u($a) + as_$u($b))"),                                    \
  [OP_SUB] = UNARY("as_$t(as_$u($a) - as_$u($b))"),                                    \
  [OP_MUL] = UNARY("as_$t(as_$u($a) * as_$u($b))"), [OP_CDIV] = EXPRESSION("$a / $b"), \
  [OP_CMOD] = EXPRESSION("$a % $b"), [OP_AND] = EXPRESSION("$a & $b"),                 \
  [OP_OR] = EXPRESSION("$a | $b"), [OP_XOR] = EXPRESSION("$a ^ $b"),                   \
  [OP_SHL] = UNARY("as_$t(as_$u($a) << $k)"), [OP_SHR] = EXPRESSION("$a >> $k"),       \
  [OP_ABS] = UNARY("as_$t(abs($a))")

#define TRUTH_VALUES_VECTOR                                                                        \
  [OP_NOT] = EXPRESSION("~$a"), [OP_AND] = EXPRESSION("$a & $b"), [OP_OR] = EXPRESSION("$a | $b"), \
  [OP_XOR] = EXPRESSION("$a ^ $b"), [OP_MAX] = EXPRESSION("$a | $b"),                              \
  [OP_MIN] = EXPRESSION("$a & $b"), [OP_LT] = EXPRESSION("~$a & $b"),                              \
  [OP_LE] = EXPRESSION("~$a | $b"), [OP_EQ] = UNARY("~($a ^ $b)"),                                 \
  [OP_NE] = EXPRESSION("$a ^ $b"), [OP_WHERE] = EXPRESSION("$a ? $b : $c")

/* Quotients and roots of f32 have 26 bits and a sticky one here, and are rounded to 24. */
static const char prelude[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "/* clang 14 takes -0.0 and 0.0 for one constant in `0.0 < x ? -0.0 : x`; so it is told of "
    "none. */\n"
    "static inline float minus_zero_float(void) { volatile float z = -0.0f; return z; }\n"
    "#ifdef cl_khr_fp64\n"
    "static inline double minus_zero_double(void) { volatile double z = -0.0; return z; }\n"
    "#endif\n"
    "#define divided_double(a, b) ((a) / (b))\n"
    "#define root_double(a) sqrt(a)\n"
    "#ifdef ROUNDED\n"
    "#define divided_float(a, b) ((a) / (b))\n"
    "#define root_float(a) sqrt(a)\n"
    "#else\n"
    "/* A float of sign, exponent and 26 significant bits, of which the last is or-ed with all "
    "that\n"
    "   follow. */\n"
    "static inline float rounded(uint sign, int exponent, uint bits) {\n"
    "  if (exponent >= 255) return as_float(sign | 0x7f800000u);\n"
    "  if (exponent < 1) {\n"
    "    uint by = min(1 - exponent, 27);\n"
    "    bits = (bits >> by) | ((bits & ((1u << by) - 1)) != 0);\n"
    "    exponent = 1;\n"
    "  }\n"
    "  uint kept = bits >> 2, low = bits & 3;\n"
    "  kept += low > 2 || (low == 2 && (kept & 1));\n"
    "  return as_float(sign | ((((uint)exponent - 1) << 23) + kept));\n"
    "}\n"
    "/* The 24 significant bits of a finite number that is not 0, and its exponent. */\n"
    "static inline uint taken(uint x, int *exponent) {\n"
    "  uint bits = x & 0x7fffffu;\n"
    "  *exponent = (int)(x >> 23);\n"
    "  if (*exponent) return bits | 0x800000u;\n"
    "  int by = (int)clz(bits) - 8;\n"
    "  *exponent = 1 - by;\n"
    "  return bits << by;\n"
    "}\n"
    "static inline float divided_float(float a, float b) {\n"
    "  uint x = as_uint(a) & 0x7fffffffu, y = as_uint(b) & 0x7fffffffu, most = 0x7f800000u;\n"
    "  uint sign = (as_uint(a) ^ as_uint(b)) & 0x80000000u;\n"
    "  if (x > most || y > most || (x == most && y == most) || (!x && !y)) return NAN;\n"
    "  if (x == most || !y) return as_float(sign | most);\n"
    "  if (!x || y == most) return as_float(sign);\n"
    "  int above, below;\n"
    "  ulong n = taken(x, &above), d = taken(y, &below);\n"
    "  int exponent = above - below + 127 - (n < d);\n"
    "  n <<= n < d ? 26 : 25;\n"
    "  return rounded(sign, exponent, (uint)(n / d) | (n % d != 0));\n"
    "}\n"
    "static inline float root_float(float a) {\n"
    "  uint x = as_uint(a);\n"
    "  if (!(x & 0x7fffffffu) || x == 0x7f800000u) return a;\n"
    "  if (x > 0x7f800000u) return NAN;\n"
    "  int exponent;\n"
    "  ulong n = taken(x, &exponent), root = 0;\n"
    "  exponent -= 127;\n"
    "  n <<= 27 + (exponent & 1);\n"
    "  for (ulong bit = 1ul << 25; bit; bit >>= 1)\n"
    "    if ((root | bit) * (root | bit) <= n) root |= bit;\n"
    "  return rounded(0, (exponent >> 1) + 127, (uint)root | (root * root != n));\n"
    "}\n"
    "#endif\n"
    "/* OpenCL's own prefetch does nothing on PoCL. */\n"
    "#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))\n"
    "#define ahead(p) __builtin_prefetch((const void *)(ulong)(p))\n"
    "#else\n"
    "#define ahead(p)\n"
    "#endif\n"
    "#define WHOLE(type) \\\n"
    "  static inline type divided_##type(type a, type b) { return a / b; } \\\n"
    "  static inline type root_##type(type a) { return sqrt(a); }\n"
    "#define BY_HALVES(type, half) \\\n"
    "  static inline type divided_##type(type a, type b) { \\\n"
    "    return (type)(divided_##half(a.lo, b.lo), divided_##half(a.hi, b.hi)); \\\n"
    "  } \\\n"
    "  static inline type root_##type(type a) { \\\n"
    "    return (type)(root_##half(a.lo), root_##half(a.hi)); \\\n"
    "  }\n"
    "#ifdef ROUNDED\n"
    "WHOLE(float2) WHOLE(float4) WHOLE(float8) WHOLE(float16)\n"
    "#else\n"
    "BY_HALVES(float2, float) BY_HALVES(float4, float2)\n"
    "BY_HALVES(float8, float4) BY_HALVES(float16, float8)\n"
    "#endif\n"
    "#ifdef cl_khr_fp64\n"
    "WHOLE(double2) WHOLE(double4) WHOLE(double8) WHOLE(double16)\n"
    "#endif\n";

static const c_launch_index indices[] = {{"g0", "get_group_id(0)"},
                                         {"g1", "get_group_id(1)"},
                                         {"g2", "get_group_id(2)"},
                                         {"l0", "get_local_id(0)"},
                                         {"l1", "get_local_id(1)"},
                                         {"l2", "get_local_id(2)"},
                                         {"i0", "get_global_id(0)"},
                                         {"i1", "get_global_id(1)"},
                                         {"i2", "get_global_id(2)"},
                                         {"core_id", "get_global_id(0)"},
                                         {NULL, NULL}};

const c_dialect c_opencl = {
    .types =
        {
            [DT_BOOL] = {"uchar", "uchar", "", ""},
            [DT_I8] = {"char", "char", "", ""},
            [DT_I16] = {"short", "short", "", ""},
            [DT_I32] = {"int", "int", "", ""},
            [DT_I64] = {"long", "long", "L", ""},
            [DT_U8] = {"uchar", "uchar", "", ""},
            [DT_U16] = {"ushort", "ushort", "", ""},
            [DT_U32] = {"uint", "uint", "U", ""},
            [DT_U64] = {"ulong", "ulong", "UL", ""},
            [DT_F16] = {"ushort", "ushort", "", ""},
            [DT_BF16] = {"ushort", "ushort", "", ""},
            [DT_F32] = {"float", "float", "f", ""},
            [DT_F64] = {"double", "double", "", ""},
        },
    .scalar =
        {
            [C_BOOL] = {TRUTH_VALUES},
            [C_INT] = {INTEGER_OPS, COMPARISONS, SELECTIONS, ABS_SIGNED},
            [C_UINT] = {INTEGER_OPS, COMPARISONS, SELECTIONS, ABS_UNSIGNED},
            [C_FLOAT] = {FLOAT_OPS, COMPARISONS},
        },
    .vector =
        {
            [C_BOOL] = {TRUTH_VALUES_VECTOR},
            [C_INT] = {INTEGER_OPS_VECTOR, COMPARISONS, SELECTIONS},
            [C_UINT] = {INTEGER_OPS_VECTOR, COMPARISONS, SELECTIONS},
            [C_FLOAT] = {FLOAT_OPS, COMPARISONS},
        },
    .partial = {OP_SHL, OP_SHR, OP_CAST, OP_LIMIT},
    .prelude = prelude,
    .dots_prelude = "",
    .minus_zero = "minus_zero_$t()",
    .most_lanes = 16,
    .helper = "static inline ",
    .splat = EXPRESSION("($t)($a)"),
    .vectorize = "($t)($l)",
    .extract = "$a.s$l",
    .shift = {"($a & $n)", "$a"}, /* counts are taken modulo the width of a lane */
    .memory =
        {
            .load = {"$a[$b]", "vload$l(0, $a + $b)"},
            .store = {"$a[$b] = $c", "vstore$l($c, 0, $a + $b)"},
            .prefetch = "ahead($a + $b)",
            .zero = {"($t)0", "($t)(0)"},
            .masked = {"$a ? $b : $c", "$a ? $b : $c"},
        },
    .conversion =
        {
            .cast = {"($t)$a", "convert_$t($a)"},
            .to_bool = {"$a != 0", "($a != ($o)(0))"},
            .bitcast = {UNARY("as_$t($a)"), UNARY("as_$t($a)")},
            .to_mask = "-$a",
            .of_mask = "-$a",
        },
    .function =
        {
            .scratch = "$o $a[$l]",
            .function = "static inline void $a_body",
            .param = {"__global const $o *restrict $a", "__global $o *restrict $a"},
            .value = "long $a",
            .entry = "__kernel __attribute__((reqd_work_group_size($c)))\n"
                     "void $a($l) {\n"
                     "$b  $a_body",
            .argument = {"(__global $o *)(b$n + o$n)", "$a"},
            .many_accumulators = "",
            .unrolled = "#pragma unroll",
        },
    .team =
        {
            .indices = indices,
            .shared = "__local $o $a[$n]",
            .shared_param = "__local $o *restrict $a",
            .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
            .entry_param = {"__global uchar *b$n, ulong o$n", "long $a"},
        },
};
