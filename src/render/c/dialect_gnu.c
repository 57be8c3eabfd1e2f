/* Defines the C renderer's dialect for CPUs: GNU C with vector extensions. A vector of truth values
   is a mask: signed integers, each 0 or −1, as wide as the compared type. Selection is bitwise,
   which gcc and clang turn into a blend; gcc does so more often where the two parts are added. */
#include "render/c/dialect_ops.h"
#include "target/machine.h"

/* Scalars and vectors alike. */
#define FLOAT_OPS                                                                          \
  [OP_NEG] = EXPRESSION("-$a"), [OP_SQRT] = LANES("__builtin_sqrt$f($a)"),                 \
  [OP_FLOOR] = LANES("__builtin_floor$f($a)"), [OP_CEIL] = LANES("__builtin_ceil$f($a)"),  \
  [OP_TRUNC] = LANES("__builtin_trunc$f($a)"), [OP_ROUND] = LANES("__builtin_rint$f($a)"), \
  [OP_ADD] = EXPRESSION("$a + $b"), [OP_SUB] = EXPRESSION("$a - $b"),                      \
  [OP_MUL] = EXPRESSION("$a * $b"), [OP_DIV] = EXPRESSION("$a / $b"),                      \
  [OP_FMA] = LANES("__builtin_fma$f($a, $b, $c)")

/* Products of groups of small elements (tensor_rows.def). */
#define DOTS_INTEGER(kind)                                                                 \
  [OP_DOT_U8I8] = kind("(int32_t)((uint32_t)$a + BYTES($b, $c, 24) + BYTES($b, $c, 16) + " \
                       "BYTES($b, $c, 8) + BYTES($b, $c, 0))"),                            \
  [OP_DOT_I16] = kind("(int32_t)((uint32_t)$a + HALVES($b, $c, 16) + HALVES($b, $c, 0))")
#define DOTS_FLOAT(kind) [OP_DOT_BF16] = kind("$a + FLOATS($b, $c, 0) + FLOATS($b, $c, 16)")
/* Tiles of them, in registers $a, $b and $c. */
#define TILES_INTEGER [OP_TILE_U8I8] = EXPRESSION("TILE_MULTIPLY(tdpbusd, $a, $b, $c)")
#define TILES_FLOAT   [OP_TILE_BF16] = EXPRESSION("TILE_MULTIPLY(tdpbf16ps, $a, $b, $c)")
#define RETURNS(text) FUNCTION("return " text ";")

/* Vectors. */
#define COMPARISONS_VECTOR                                             \
  [OP_LT] = UNARY("($m)($a < $b)"), [OP_LE] = UNARY("($m)($a <= $b)"), \
  [OP_EQ] = UNARY("($m)($a == $b)"), [OP_NE] = UNARY("($m)($a != $b)")

#define SELECT(condition) \
  FUNCTION("$m m = ($m)(" condition ");\n  return ($t)((m & ($m)$a) + (~m & ($m)$b));")

#define SELECTIONS_VECTOR [OP_MAX] = SELECT("$a > $b"), [OP_MIN] = SELECT("$a < $b"), WHERE_VECTOR

#define WHERE_VECTOR [OP_WHERE] = FUNCTION("return ($t)(($a & ($m)$b) + (~$a & ($m)$c));")

/* x86 max and min return the second operand if both are equal or one is NaN. Where the first one is
   NaN, the bits of its comparison with itself, all ones, are or-ed into the result; AVX-512
   comparisons yield no vectors, so there the operand itself is selected. clang needs no help. */
#define EXTREMUM(o, type, lanes, feature, text) \
  { o, type, lanes, "defined " feature " && !defined __clang__", text }

#define BLENDED(builtin) \
  "($t)((($m)($a != $a) & ($m)$a) + (~($m)($a != $a) & ($m)" builtin "($a, $b, $a, -1, 4)))"
#define WITH_NAN(builtin) "($t)(($m)" builtin "($a, $b) | ($m)($a != $a))"

#define EXTREMA(o, name)                                                                   \
  EXTREMUM(o, DT_F32, 16, "__AVX512F__", BLENDED("__builtin_ia32_" name "ps512_mask")),    \
      EXTREMUM(o, DT_F64, 8, "__AVX512F__", BLENDED("__builtin_ia32_" name "pd512_mask")), \
      EXTREMUM(o, DT_F32, 8, "__AVX__", WITH_NAN("__builtin_ia32_" name "ps256")),         \
      EXTREMUM(o, DT_F64, 4, "__AVX__", WITH_NAN("__builtin_ia32_" name "pd256")),         \
      EXTREMUM(o, DT_F32, 4, "__SSE2__", WITH_NAN("__builtin_ia32_" name "ps")),           \
      EXTREMUM(o, DT_F64, 2, "__SSE2__", WITH_NAN("__builtin_ia32_" name "pd"))

/* clang makes these of lanes; since version 22 it has no such builtins. */
#define MULTIPLY_ADD(type, lanes, name)                           \
  {                                                               \
    OP_FMA, type, lanes, "defined __FMA__ && !defined __clang__", \
        "__builtin_ia32_vfmadd" name "($a, $b, $c)"               \
  }

/* Macros of the prelude, where the compiler's target has the instruction. */
#define DOTS(o, type, name)                                            \
  {o, type, 16, "defined " name "_512", name "_512($a, $b, $c)"},      \
      {o, type, 8, "defined " name "_256", name "_256($a, $b, $c)"}, { \
    o, type, 4, "defined " name "_128", name "_128($a, $b, $c)"        \
  }

static const c_intrinsic intrinsics[] = {
    {OP_FMA, DT_F32, 16, "defined __AVX512F__",
     "__builtin_ia32_vfmaddps512_mask($a, $b, $c, -1, 4)"},
    {OP_FMA, DT_F64, 8, "defined __AVX512F__",
     "__builtin_ia32_vfmaddpd512_mask($a, $b, $c, -1, 4)"},
    MULTIPLY_ADD(DT_F32, 8, "ps256"),
    MULTIPLY_ADD(DT_F64, 4, "pd256"),
    MULTIPLY_ADD(DT_F32, 4, "ps"),
    MULTIPLY_ADD(DT_F64, 2, "pd"),
    EXTREMA(OP_MAX, "max"),
    EXTREMA(OP_MIN, "min"),
    DOTS(OP_DOT_U8I8, DT_I32, "DOT_U8I8"),
    DOTS(OP_DOT_I16, DT_I32, "DOT_I16"),
    DOTS(OP_DOT_BF16, DT_F32, "DOT_BF16"),
};

/* gcc converts bytes to 32 bits in two steps, and 16 of them lane by lane. */
#define WIDEN(from, to, name)                                                                \
  {from, to, 16, "defined __AVX512F__ && !defined __clang__",                                \
   "($t)__builtin_ia32_pmov" name "bd512_mask((char __attribute__((vector_size(16))))($a), " \
   "(int __attribute__((vector_size(64)))){0}, -1)"},                                        \
  {                                                                                          \
    from, to, 8, "defined __AVX2__ && !defined __clang__",                                   \
        "($t)__builtin_ia32_pmov" name "bd256((char __attribute__((vector_size(16))))("      \
        "long long __attribute__((vector_size(16)))){(long long)($a), 0})"                   \
  }

/* Between f16, as bit patterns, and f32; 4 lanes of f16 are the lower half of a register. */
#define F16(lanes, feature, widened, narrowed)                                       \
  {DT_F16, DT_F32, lanes, "defined " feature, "($t)" widened}, {                     \
    DT_F32, DT_F16, lanes, "defined " feature, "($t)" narrowed /* to nearest even */ \
  }
#define PATTERNS "(short __attribute__((vector_size(16))))"
#define LONGS    "(long long __attribute__((vector_size(16))))"
#define FLOATS4  "(float __attribute__((vector_size(16))))"

static const c_conversion_intrinsic conversions[] = {
    WIDEN(DT_U8, DT_I32, "zx"),
    WIDEN(DT_I8, DT_I32, "sx"),
    F16(16, "__AVX512F__",
        "__builtin_ia32_vcvtph2ps512_mask((short __attribute__((vector_size(32))))($a), "
        "(float __attribute__((vector_size(64)))){0}, -1, 4)",
        "__builtin_ia32_vcvtps2ph512_mask($a, 0, (short __attribute__((vector_size(32)))){0}, -1)"),
    F16(8, "__F16C__", "__builtin_ia32_vcvtph2ps256(" PATTERNS "($a))",
        "__builtin_ia32_vcvtps2ph256($a, 0)"),
    F16(4, "__F16C__", "__builtin_ia32_vcvtph2ps(" PATTERNS "(" LONGS "{(long long)($a), 0}))",
        "(" LONGS "__builtin_ia32_vcvtps2ph($a, 0))[0]"),
};

/* Products of groups of small elements: of one element each for scalars and other vectors, and by
   builtins, of which each compiler has its own names. */
static const char dots_prelude[] =
    "#ifndef BYTES\n"
    "#define BYTES(x, y, at) \\\n"
    "  ((uint32_t)((int32_t)(uint8_t)((uint32_t)(x) >> at) * (int8_t)((uint32_t)(y) >> at)))\n"
    "#define HALVES(x, y, at) \\\n"
    "  ((uint32_t)((int32_t)(int16_t)((uint32_t)(x) >> at) * (int16_t)((uint32_t)(y) >> at)))\n"
    "typedef union { float value; uint32_t bits; } bits_of_float;\n"
    "#define UPPER(x, left) \\\n"
    "  ((bits_of_float){.bits = (bits_of_float){.value = (x)}.bits << left & 0xffff0000u}).value\n"
    "#define FLOATS(x, y, left) (UPPER(x, left) * UPPER(y, left))\n"
    "#if defined __x86_64__\n"
    "typedef short halves128 __attribute__((vector_size(16)));\n"
    "typedef short halves256 __attribute__((vector_size(32)));\n"
    "typedef short halves512 __attribute__((vector_size(64)));\n"
    "typedef uint32_t words128 __attribute__((vector_size(16)));\n"
    "typedef uint32_t words256 __attribute__((vector_size(32)));\n"
    "typedef uint32_t words512 __attribute__((vector_size(64)));\n"
    "#define ADDED(n, s, x) (__typeof__(s))((words##n)(s) + (words##n)(x))\n"
    "#ifdef __clang__\n"
    "#define WORDS(name, lanes, bits) __builtin_ia32_##name##bits\n"
    "#else\n"
    "#define WORDS(name, lanes, bits) __builtin_ia32_##name##_v##lanes##si\n"
    "#endif\n"
    "#if defined __AVX512VNNI__\n"
    "#define DOT_U8I8_512(s, x, y) WORDS(vpdpbusd, 16, 512)(s, x, y)\n"
    "#define DOT_I16_512(s, x, y) WORDS(vpdpwssd, 16, 512)(s, x, y)\n"
    "#elif defined __AVX512BW__ && defined __clang__\n"
    "#define DOT_I16_512(s, x, y) \\\n"
    "  ADDED(512, s, __builtin_ia32_pmaddwd512((halves512)x, (halves512)y))\n"
    "#elif defined __AVX512BW__\n"
    "#define DOT_I16_512(s, x, y) \\\n"
    "  ADDED(512, s, __builtin_ia32_pmaddwd512_mask((halves512)x, (halves512)y, s, -1))\n"
    "#endif\n"
    "#if (defined __AVX512VNNI__ && defined __AVX512VL__) || defined __AVXVNNI__\n"
    "#define DOT_U8I8_256(s, x, y) WORDS(vpdpbusd, 8, 256)(s, x, y)\n"
    "#define DOT_U8I8_128(s, x, y) WORDS(vpdpbusd, 4, 128)(s, x, y)\n"
    "#define DOT_I16_256(s, x, y) WORDS(vpdpwssd, 8, 256)(s, x, y)\n"
    "#define DOT_I16_128(s, x, y) WORDS(vpdpwssd, 4, 128)(s, x, y)\n"
    "#else\n"
    "#ifdef __AVX2__\n"
    "#define DOT_I16_256(s, x, y) ADDED(256, s, __builtin_ia32_pmaddwd256((halves256)x, "
    "(halves256)y))\n"
    "#endif\n"
    "#define DOT_I16_128(s, x, y) ADDED(128, s, __builtin_ia32_pmaddwd128((halves128)x, "
    "(halves128)y))\n"
    "#endif\n"
    "#if defined __AVX512BF16__ && defined __AVX512VL__\n"
    "#if defined __clang__ && __clang_major__ < 16\n"
    "#define PAIRS(type, bits) typedef int type __attribute__((vector_size(bits / 8)))\n"
    "#elif defined __clang__ || __GNUC__ > 12\n"
    "#define PAIRS(type, bits) typedef __bf16 type __attribute__((vector_size(bits / 8)))\n"
    "#else\n"
    "#define PAIRS(type, bits) typedef short type __attribute__((vector_size(bits / 8)))\n"
    "#endif\n"
    "PAIRS(pairs128, 128); PAIRS(pairs256, 256); PAIRS(pairs512, 512);\n"
    "#ifdef __clang__\n"
    "#define DPBF16PS(lanes, bits) __builtin_ia32_dpbf16ps_##bits\n"
    "#else\n"
    "#define DPBF16PS(lanes, bits) __builtin_ia32_dpbf16ps_v##lanes##sf\n"
    "#endif\n"
    "#define DOT_BF16_512(s, x, y) DPBF16PS(16, 512)(s, (pairs512)x, (pairs512)y)\n"
    "#define DOT_BF16_256(s, x, y) DPBF16PS(8, 256)(s, (pairs256)x, (pairs256)y)\n"
    "#define DOT_BF16_128(s, x, y) DPBF16PS(4, 128)(s, (pairs128)x, (pairs128)y)\n"
    "#endif\n"
    "#endif\n"
    "#endif\n";

/* Vectors at aligned addresses, or else their aligned halves, are stored non-temporally, others as
   usual. gcc's sanitizers do not see the builtins, so they get usual stores. */
static const char nontemporal_prelude[] =
    "#ifndef STREAMED\n"
    "#define PIECE(type, bytes) \\\n"
    "  typedef long long type __attribute__((vector_size(bytes))); \\\n"
    "  typedef long long type##m __attribute__((vector_size(bytes), aligned(1), may_alias))\n"
    "PIECE(piece16, 16); PIECE(piece32, 32); PIECE(piece64, 64);\n"
    "#define PIECE_FUNCTION static inline __attribute__((always_inline, unused)) void\n"
    "#define LIES(at, bytes) __builtin_expect((uint64_t)(at) % bytes == 0, 1)\n"
    "#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)\n"
    "#ifdef __clang__\n"
    "#define PAST(name, at, v) __builtin_nontemporal_store(v, at)\n"
    "#else\n"
    "#define PAST(name, at, v) __builtin_ia32_##name(at, v)\n"
    "#endif\n"
    "#define STREAMED __builtin_ia32_sfence()\n"
    "PIECE_FUNCTION stream16(void *at, piece16 v) {\n"
    "  if (LIES(at, 16)) PAST(movntdq, (piece16 *)at, v);\n"
    "  else *(piece16m *)at = v;\n"
    "}\n"
    "PIECE_FUNCTION stream32(void *at, piece32 v) {\n"
    "#ifdef __AVX__\n"
    "  if (LIES(at, 32)) { PAST(movntdq256, (piece32 *)at, v); return; }\n"
    "#endif\n"
    "  stream16(at, (piece16){v[0], v[1]});\n"
    "  stream16((char *)at + 16, (piece16){v[2], v[3]});\n"
    "}\n"
    "PIECE_FUNCTION stream64(void *at, piece64 v) {\n"
    "#ifdef __AVX512F__\n"
    "  if (LIES(at, 64)) { PAST(movntdq512, (piece64 *)at, v); return; }\n"
    "#endif\n"
    "  stream32(at, (piece32){v[0], v[1], v[2], v[3]});\n"
    "  stream32((char *)at + 32, (piece32){v[4], v[5], v[6], v[7]});\n"
    "}\n"
    "#else\n"
    "#define STREAMED (void)0\n"
    "PIECE_FUNCTION stream16(void *at, piece16 v) { *(piece16m *)at = v; }\n"
    "PIECE_FUNCTION stream32(void *at, piece32 v) { *(piece32m *)at = v; }\n"
    "PIECE_FUNCTION stream64(void *at, piece64 v) { *(piece64m *)at = v; }\n"
    "#endif\n"
    "#endif\n";

/* Registers for tiles, which compilers know by builtins of other names, or not at all. All have 16
   rows of 64 bytes. */
static const char tile_prelude[] =
    "#ifndef TILE_TEXT\n"
    "#define TILE_TEXT(x) #x\n"
    "static const uint8_t tile_shapes[64] __attribute__((aligned(64))) = {\n"
    "    [0] = 1, [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64,\n"
    "    [30] = 64, [48] = 16, [49] = 16, [50] = 16, [51] = 16, [52] = 16, [53] = 16, [54] = 16,\n"
    "    [55] = 16};\n"
    "#define TILE_BEGIN __asm__ volatile(\"ldtilecfg %0\" :: \"m\"(tile_shapes))\n"
    "#define TILE_END __asm__ volatile(\"tilerelease\")\n"
    "#define TILE_ZERO(a) __asm__ volatile(\"tilezero %%tmm\" TILE_TEXT(a) ::)\n"
    "#define TILE_LOAD(a, from, apart) \\\n"
    "  __asm__ volatile(\"tileloadd (%0,%1,1), %%tmm\" TILE_TEXT(a) \\\n"
    "                   :: \"r\"(from), \"r\"((int64_t)(apart)) : \"memory\")\n"
    "#define TILE_STORE(a, to, apart) \\\n"
    "  __asm__ volatile(\"tilestored %%tmm\" TILE_TEXT(a) \", (%0,%1,1)\" \\\n"
    "                   :: \"r\"(to), \"r\"((int64_t)(apart)) : \"memory\")\n"
    "#define TILE_MULTIPLY(name, s, x, y) \\\n"
    "  __asm__ volatile(#name \" %%tmm\" TILE_TEXT(y) \", %%tmm\" TILE_TEXT(x) \", %%tmm\" \\\n"
    "                   TILE_TEXT(s) ::)\n"
    "#endif\n";

const c_dialect c_gnu = {
    .types =
        {
            [DT_BOOL] = {"uint8_t", "u8x", "", ""},
            [DT_I8] = {"int8_t", "i8x", "", ""},
            [DT_I16] = {"int16_t", "i16x", "", ""},
            [DT_I32] = {"int32_t", "i32x", "", ""},
            [DT_I64] = {"int64_t", "i64x", "L", ""},
            [DT_U8] = {"uint8_t", "u8x", "", ""},
            [DT_U16] = {"uint16_t", "u16x", "", ""},
            [DT_U32] = {"uint32_t", "u32x", "U", ""},
            [DT_U64] = {"uint64_t", "u64x", "UL", ""},
            [DT_F16] = {"uint16_t", "u16x", "", ""},
            [DT_BF16] = {"uint16_t", "u16x", "", ""},
            [DT_F32] = {"float", "f32x", "f", "f"},
            [DT_F64] = {"double", "f64x", "", ""},
        },
    .scalar =
        {
            [C_BOOL] = {TRUTH_VALUES},
            [C_INT] = {INTEGER_OPS, COMPARISONS, DOTS_INTEGER(RETURNS), TILES_INTEGER, SELECTIONS,
                       ABS_SIGNED},
            [C_UINT] = {INTEGER_OPS, COMPARISONS, SELECTIONS, ABS_UNSIGNED},
            [C_FLOAT] = {FLOAT_OPS, COMPARISONS, DOTS_FLOAT(RETURNS),
                         TILES_FLOAT, [OP_ABS] = CALL("__builtin_fabs$f($a)"),
                         EXTREMA_FLOAT, [OP_WHERE] = EXPRESSION("$a ? $b : $c")},
        },
    .vector =
        {
            [C_BOOL] = {[OP_NOT] = UNARY("~$a"),
                        [OP_AND] = EXPRESSION("$a & $b"),
                        [OP_OR] = EXPRESSION("$a | $b"),
                        [OP_XOR] = EXPRESSION("$a ^ $b"),
                        [OP_MAX] = EXPRESSION("$a | $b"),
                        [OP_MIN] = EXPRESSION("$a & $b"),
                        [OP_LT] = EXPRESSION("~$a & $b"),
                        [OP_LE] = EXPRESSION("~$a | $b"),
                        [OP_EQ] = UNARY("~($a ^ $b)"),
                        [OP_NE] = EXPRESSION("$a ^ $b"),
                        WHERE_VECTOR},
            [C_INT] = {INTEGER_OPS, COMPARISONS_VECTOR, SELECTIONS_VECTOR, DOTS_INTEGER(LANES),
                       [OP_ABS] = {"$u m = ($u)($a < ($t){0});\n  return ($t)((($u)$a ^ m) - m);",
                                   C_FUNCTION}},
            [C_UINT] = {INTEGER_OPS, COMPARISONS_VECTOR, SELECTIONS_VECTOR, ABS_UNSIGNED},
            [C_FLOAT] = {FLOAT_OPS, COMPARISONS_VECTOR, DOTS_FLOAT(LANES),
                         WHERE_VECTOR, [OP_ABS] = UNARY("($t)((($u)$a << 1) >> 1)"),
                         [OP_MAX] = SELECT("($a > $b) | ($a != $a)"),
                         [OP_MIN] = SELECT("($a < $b) | ($a != $a)")},
        },
    .intrinsics = intrinsics,
    .n_intrinsics = sizeof intrinsics / sizeof *intrinsics,
    .partial = {OP_SHL, OP_SHR, OP_CAST, OP_LIMIT},
    .prelude =
        "typedef __INT8_TYPE__ int8_t;\n"
        "typedef __INT16_TYPE__ int16_t;\n"
        "typedef __INT32_TYPE__ int32_t;\n"
        "typedef __INT64_TYPE__ int64_t;\n"
        "typedef __UINT8_TYPE__ uint8_t;\n"
        "typedef __UINT16_TYPE__ uint16_t;\n"
        "typedef __UINT32_TYPE__ uint32_t;\n"
        "typedef __UINT64_TYPE__ uint64_t;\n"
        "\n"
        "/* Elements in memory: a model's weights lie anywhere in its file. */\n"
        "#define AT(type) typedef type type##_at __attribute__((aligned(1), may_alias))\n"
        "AT(float); AT(double);\n"
        "AT(int8_t); AT(int16_t); AT(int32_t); AT(int64_t);\n"
        "AT(uint8_t); AT(uint16_t); AT(uint32_t); AT(uint64_t);\n"
        "\n"
        "/* Helper functions are inlined, so no vector is ever passed. */\n"
        "#pragma GCC diagnostic ignored \"-Wpsabi\"\n"
        "\n"
        "/* gcc would load constants before all loops and keep them in registers, for which it "
        "spills\n"
        "   sums; before 12 it would forget other options here. */\n"
        "#if !defined __clang__ && __GNUC__ >= 12\n"
        "#define MANY_SUMS __attribute__((optimize(\"no-gcse\", "
        "\"no-move-loop-invariants\", \"no-tree-loop-im\")))\n"
        "#else\n"
        "#define MANY_SUMS\n"
        "#endif\n"
        "\n"
        "/* clang 14 takes -0.0 and 0.0 for one constant in `0.0 < x ? -0.0 : x`; so it is "
        "told of\n"
        "   none. */\n"
        "#ifdef __clang__\n"
        "#define MINUS_ZERO(type) __extension__({ volatile type z = -(type)0; z; })\n"
        "#define UNROLLED(n) _Pragma(\"clang loop unroll(full)\")\n"
        "#define LANES(n) _Pragma(\"clang loop unroll(full)\") for (int i = 0; i < n; i++)\n"
        "#else\n"
        "#define MINUS_ZERO(type) (-(type)0)\n"
        "#define TEXT(n) #n\n"
        "#define UNROLLED(n) _Pragma(TEXT(GCC unroll n))\n"
        "#define LANES(n) for (int i = 0; i < n; i++)\n"
        "#endif\n"
        "\n"
        "/* Single lanes that are put together again become one instruction in few cases. */\n"
        "#ifdef __clang__\n"
        "#define SHUFFLE(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
        "#else\n"
        "#define SHUFFLE(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})\n"
        "#endif\n",
    .dots_prelude = dots_prelude,
    .minus_zero = "MINUS_ZERO($t)",
    .vector_type = "typedef $o $t __attribute__((vector_size($n)));\n"
                   "typedef $o $x __attribute__((vector_size($n), aligned(1), may_alias));\n",
    .memory_type = "m",
    .helper = "static inline __attribute__((always_inline)) ",
    .lane = "$a[i]",
    .lanes = "$t r;\n  LANES($n) r[i] = $a;\n  return r;",
    .splat = {"return ($t){$l};", C_FUNCTION},
    .vectorize = "($t){$l}",
    .shuffle = "SHUFFLE($o, $a, $b, $l)",
    .extract = "$a[$n]",
    .shift = {"($a & $n)", "($a & $n)"},
    .memory =
        {
            .load = {"$a[$b]", "*(const $x *)($a + $b)"},
            .store = {"$a[$b] = $c", "*($x *)($a + $b) = $c"},
            .zero = {"($t)0", "($t){0}"},
            .masked = {"$a ? $b : $c", "$a ? ($t)$b : $c"},
            .prefetch = "__builtin_prefetch($a + $b)",
        },
    .nontemporal =
        {
            .store = "stream$n($a + $b, (piece$n)($c))",
            .bytes = {MACHINE_NONTEMPORAL_LEAST_BYTES, MACHINE_NONTEMPORAL_MOST_BYTES},
            .prelude = nontemporal_prelude,
            .fence = "STREAMED",
        },
    .tile =
        {
            .prelude = tile_prelude,
            .begin = "TILE_BEGIN",
            .end = "TILE_END",
            .zero = "TILE_ZERO($a)",
            .load = "TILE_LOAD($a, $b + $c, $n)",
            .store = "TILE_STORE($a, $b + $c, $n)",
        },
    .conversion =
        {
            .cast = {"($t)$a", "__builtin_convertvector($a, $t)"},
            .to_bool = {"$a != 0", "($m)($a != ($o){0})"},
            .bitcast = {{"return ((union {\n    $o from;\n    $t to;\n  }){$a}).to;", C_FUNCTION},
                        UNARY("($t)$a")},
            .f16 = {"__builtin_ia32_vcvtph2ps(" PATTERNS "{(short)$a})[0]",
                    "(uint16_t)__builtin_ia32_vcvtps2ph(" FLOATS4 "{$a}, 0)[0]"},
            .intrinsics = conversions,
            .n_intrinsics = sizeof conversions / sizeof *conversions,
            .to_mask = "-$a",
            .of_mask = "$a & 1",
        },
    .function =
        {
            .scratch = "$o_at *const $a = (void *)(scratch + $n)",
            .function = "static void $a_body",
            .param = {"const $o_at *restrict $a", "$o_at *restrict $a"},
            .value = "int64_t $a",
            .entry = "void $a(void *const *restrict bufs, const int64_t *restrict vals) {\n"
                     "  (void)bufs, (void)vals;\n"
                     "  $a_body",
            .argument = {"bufs[$n]", "vals[$n]"},
            .many_accumulators = "MANY_SUMS ",
            .scratch_param = "char *restrict scratch",
            .scratch_argument = {"bufs[$a]", "(char *)bufs[$a] + vals[$b] * $n"},
            .unrolled = "UNROLLED($n)",
            .barrier = "__asm__ volatile(\"\" ::: \"memory\")",
        },
};
