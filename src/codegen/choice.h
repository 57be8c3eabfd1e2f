/* How a kernel shall run on a target: the steps of choose.c, each by laws that it may apply. */
#ifndef TENON_CODEGEN_CHOICE_H
#define TENON_CODEGEN_CHOICE_H

#include "base/map.h"
#include "codegen/target.h"
#include "ir/topo.h"
#include "laws/laws.h"

typedef struct choice {
  laws laws;
  const target *target;
  int math;
  const node *sink; /* the kernel so far */
  map left;         /* ranges of what vectors left over of a size that varies */
} choice;

/** pieces.c: a nest for each part of what is written that comes from elsewhere. */
void choose_pieces(choice *c);

/** flatten.c: one range for two where what they lead to is in memory as in the loops. */
void choose_flat(choice *c);

/** blocks.c: arrays for several indices at once, where reductions share operands. */
void choose_blocks(choice *c);

/** pages.c: a few pages by turns, where a nest waits for memory. */
void choose_pages(choice *c);

/** vectors.c: a range of each nest in vectors, where that leaves less to do. */
void choose_vectors(choice *c);

/** Vectors along a range of a STAGE: all of it, if the last one may overlap the one before. */
void choice_cover(choice *c, const node *range, int64_t lanes);

/** squares.c: ranges along which is read and written in turns, where these are two. */
void choose_squares(choice *c);

/** tiles.c: indices of a nest that share what they read at once, each in registers of its own. */
void choose_tiles(choice *c);

/** panels.c: what the lanes of a nest read at scattered addresses, copied side by side before. */
void choose_panels(choice *c);

/** Whether an INDEX in a stage's nest is such, when `cut` indices of its loops become one. */
bool choice_is_panel(const choice *c, const node *stage, const node *index, double cut);

/** boxes.c: what reductions read under conditions on its indices, copied with its fill before. */
void choose_boxes(choice *c);

/** panels.c: bytes of the arrays that a kernel has. */
double choice_bytes_of_arrays(const choice *c);

/** copies.c: what runs once for each index of copies around a reduction, inside of its loops. */
void choose_copies(choice *c);

/** epilogues.c: what is computed of a tile's results in a loop, where its copies are much code. */
void choose_epilogues(choice *c);

/** shares.c: a range of each nest over threads, where there is enough to do. */
void choose_shares(choice *c);

/** The conditions, and the choices by them, that go when that is done in a stage's nest: keys. */
void choice_boxed(const choice *c, const node *stage, map *gone);

/* choice.c: what they share. */

/** Whether the kernel has as many nodes as one should: nothing more is divided. */
bool choice_is_full(choice *c);

/** Whether a STAGE is an output of the kernel, not an array that it reads. */
bool choice_is_out(const choice *c, const node *stage);

/** Binders of the kernel, outer ones first. */
node_list choice_binders(const choice *c);

/** Whether memory sets the pace of a nest in vectors along a range: no cache holds what it reads,
    and it does no more with that than an operation a byte. */
bool choice_waits_for_memory(const choice *c, const node_list *nest, const node *range);

/** Puts the loops of a stage that something depends on outside of the others, but not of the ranges
    before position `kept`. */
void choice_put_outside(choice *c, const node *stage, const node *what, size_t kept);

/** Makes parts of a range where a factor divides it: the part that it does, whose extent is a
    multiple, and the rest (NULL: none). False: it cannot be shown to be one, or a part is empty. */
bool choice_part(choice *c, const node *range, int64_t factor, const node **whole,
                 const node **rest);

/** A kernel with a range in blocks, the last of which overlaps the one before where that may be;
    `inner` is within them. */
const node *choice_blocks(choice *c, const node *sink, const node *range, int64_t size,
                          const node **inner);

#endif
