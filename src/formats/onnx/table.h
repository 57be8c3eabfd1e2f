/* The table of operators. */
#ifndef TENON_FORMATS_ONNX_TABLE_H
#define TENON_FORMATS_ONNX_TABLE_H

#include "formats/onnx/import.h"

/** The row of an operator of the default domain; NULL if there is none. */
const onnx_op *table_find(const char *name);

/** The newest version of a row that is not above an opset; 0 if all are newer. */
int64_t table_version(const onnx_op *row, int64_t opset);

bool table_has_attribute(const onnx_op *row, const char *name);

/** The name of an attribute that nodes of a version must have and this one lacks: its first
    `*length` characters. NULL: it has them all. */
const char *table_missing(const onnx_op *row, int64_t version, const onnx_node *n, size_t *length);

#endif
