/* Look-up in the table of ONNX operators that the importer supports (onnx_operators.def). */
#ifndef TENON_FORMATS_ONNX_OPS_OP_TABLE_H
#define TENON_FORMATS_ONNX_OPS_OP_TABLE_H

#include "formats/onnx/importer/importer.h"

/** The row of an operator; NULL if it is not supported. */
const onnx_op *op_table_find(const char *domain, const char *name);

/** True if there are rows of a domain. */
bool op_table_has_domain(const char *domain);

/** The newest version of an operator that is not above an opset; 0 if all are newer. */
int64_t op_table_version(const onnx_op *row, int64_t opset);

/** The row of an operator of this name in any domain but `domain`; NULL: there is none. */
const onnx_op *op_table_find_elsewhere(const char *domain, const char *name);

/** True if nodes of the operator may have this attribute. */
bool op_table_has_attribute(const onnx_op *row, const char *name);

/** The name of a required attribute that the node lacks, `*length` characters long; NULL if none is
    missing. */
const char *op_table_missing_attribute(const onnx_op *row, int64_t version, const onnx_node *n,
                                       size_t *length);

#endif
