/* Implements SINK, Halide's compute_at: moves a STAGE (array builder) or FOLD (reduction and scan)
   into a loop r that contains all its readers and that it does not depend on. `r` becomes a pin, a
   source that only adds to its free ranges.

     S = STAGE(v); for r { … S … }   →   for r { S = STAGE(v; pin r); … S … }

   The storage then lives for one iteration. A binder that reads a buffer which the kernel stores to
   stays where it is, unless the loop has one iteration. */
#include "laws/law_support.h"

#include "ir/verify/verify_graph.h"

/** True if the kernel verifies: all readers are inside the pin, and no VECTOR is inside another. */
static bool is_well_formed(laws *l, const node *sink) {
  diag d = {0};
  tn_status s = verify_graph(&sink, 1, LEVEL_KERNEL, ir_mem(l->g), &d);
  if (s == TN_ERR_MEMORY) diag_raise(ir_diag(l->g), s, "%s", d.text);
  return s == TN_OK;
}

const node *law_sink(laws *l, const node *sink, const node *binder, const node *range) {
  if (binder->op != OP_STAGE && binder->op != OP_FOLD) return law_refuse(l, "no STAGE or FOLD");
  node_list order = law_index_of(l, sink).nodes;
  const char *why = law_readers_objection(&order, binder);
  if (why) return law_refuse(l, why);
  if (node_is_free_in(range, binder))
    return law_refuse(l, "the STAGE or FOLD runs inside the range already");
  if (range_kind_of(range) != KIND_LOOP) return law_refuse(l, "the range is not a loop");
  bool repeats = !node_is_bits(range_extent(range), 1);
  if (repeats && law_reads_output(l, sink, binder))
    return law_refuse(l, "the kernel writes to the buffer");
  const node *made = law_replace(l, sink, binder, binder_with_pin(l->g, binder, range));
  if (!is_well_formed(l, made))
    return law_refuse(
        l, "the STAGE or FOLD is read outside the range, or a vector would run inside a vector");
  law_args args = {.subject = binder, .other = range};
  return law_record(l, sink, made, LAW_SINK, &args, NULL);
}
