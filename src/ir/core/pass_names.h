/* Lists the compiler's passes and their names, in pipeline order: after each of them, graphs can be
   dumped and verified. */
#ifndef TENON_IR_CORE_PASS_NAMES_H
#define TENON_IR_CORE_PASS_NAMES_H

/** X(enum, "name"). Passes up to `values` see a whole graph, from `fuse` to `splice` all kernels of
   a graph, the others a kernel each. */
#define PASS_LIST(X)                                        \
  X(PASS_NORMALISE, "normalise")                            \
  X(PASS_ITEMS, "items")                                    \
  X(PASS_PARTS, "parts")                                    \
  X(PASS_DEVICES, "devices")                                \
  X(PASS_LOOPS, "loops")                                    \
  X(PASS_VERSIONS, "versions")                              \
  X(PASS_VALUES, "values")                                  \
  X(PASS_FUSE, "fuse")                                      \
  X(PASS_BLOCKED_RANGES, "blocked_ranges")                  \
  X(PASS_LAYOUTS, "layouts")                                \
  X(PASS_ORDER, "order")                                    \
  X(PASS_KERNELS, "kernels")                                \
  X(PASS_CANONICALISE, "canonicalise")                      \
  X(PASS_SPLICE, "splice")                                  \
  X(PASS_KERNEL, "kernel")                                  \
  X(PASS_SIMPLIFY, "simplify")                              \
  X(PASS_INDEX_SET_SPLIT, "choose_index_set_split")         \
  X(PASS_SINK_FOLDS, "choose_sink_folds")                   \
  X(PASS_FLATTEN_LOOPS, "choose_flatten_loops")             \
  X(PASS_ARRAY_EXPANSION, "choose_array_expansion")         \
  X(PASS_TRANSPOSE_TILES, "choose_transpose_tiles")         \
  X(PASS_INTERLEAVED_STREAMS, "choose_interleaved_streams") \
  X(PASS_VECTORISE, "choose_vectorise")                     \
  X(PASS_BLOCKED_SUMS, "choose_blocked_sums")               \
  X(PASS_TENSOR_TILES, "choose_tensor_tiles")               \
  X(PASS_REGISTER_TILES, "choose_register_tiles")           \
  X(PASS_LOOP_ORDER, "choose_loop_order")                   \
  X(PASS_PADDED_TILES, "choose_padded_tiles")               \
  X(PASS_PACKING, "choose_packing")                         \
  X(PASS_ROW_PITCH, "choose_row_pitch")                     \
  X(PASS_UNROLL_AND_JAM, "choose_unroll_and_jam")           \
  X(PASS_EPILOGUE_LOOPS, "choose_epilogue_loops")           \
  X(PASS_PARALLELISE, "choose_parallelise")                 \
  X(PASS_TEAMS, "choose_teams")                             \
  X(PASS_CHOOSE, "choose")                                  \
  X(PASS_LOWER, "lower")                                    \
  X(PASS_SCANS, "scans")                                    \
  X(PASS_EXPAND, "expand")                                  \
  X(PASS_REGISTERS, "registers")                            \
  X(PASS_STREAMS, "streams")                                \
  X(PASS_PREFETCH, "prefetch")                              \
  X(PASS_THREADS, "threads")                                \
  X(PASS_EDGES, "edges")                                    \
  X(PASS_SHORT_LOOPS, "short_loops")                        \
  X(PASS_DECOMPOSE, "decompose")                            \
  X(PASS_INDEX_WIDTH, "index_width")                        \
  X(PASS_COPIES, "copies")                                  \
  X(PASS_LINEARISE, "linearise")                            \
  X(PASS_BARRIERS, "barriers")

typedef enum pass {
#define PASS_ENUM(name, text) name,
  PASS_LIST(PASS_ENUM)
#undef PASS_ENUM
      PASSES
} pass;

const char *pass_name(pass p);

#endif
