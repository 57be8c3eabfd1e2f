/* Non-maximum suppression of several batches and classes at once, for nms and importers. */
#ifndef TENON_TENSOR_OPS_NMS_H
#define TENON_TENSOR_OPS_NMS_H

#include "tensor/ops/sort.h"

/** The four numbers of a box: two opposite corners, or its centre and its sizes. */
typedef enum nms_format { NMS_CORNERS, NMS_CENTRES } nms_format;

/** The boxes, of (batch, n, 4), that stay for each class of scores (batch, class, n): rows of
   batch, class and box (i64), by batch, by class, and the best first. At most `most` of a class
   stay, and none that overlaps a better one, intersection over union, by more than `overlap_most`,
   nor whose score is not greater than `least_score`, which may have no node. Both are scalars. */
value build_nms(builder *b, value boxes, value scores, nms_format format, const node *most,
                value overlap_most, value least_score);

#endif
