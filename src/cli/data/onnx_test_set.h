/* Reads and writes test data in ONNX's layout: a folder with input_0.pb … and output_0.pb …, a
   tensor each, in the order of a model's inputs and outputs. */
#ifndef TENON_CLI_DATA_ONNX_TEST_SET_H
#define TENON_CLI_DATA_ONNX_TEST_SET_H

#include "cli/data/model_inputs.h"

/** The path of the `i`-th input or output. */
const char *onnx_test_set_path(command *c, const char *folder, tn_port_kind kind, size_t i);

/** Whether a folder has such files. */
bool onnx_test_set_exists(command *c, const char *folder);

/** Reads an array for each input, or each expected output, of a model. Raises with the file's name
    where one is missing, damaged, of another type, or one too many. */
model_inputs onnx_test_set_read(command *c, const char *folder, const tn_model *m,
                                tn_port_kind kind);

/** Writes an array as that of the `i`-th output. */
void onnx_test_set_write(command *c, const char *folder, size_t i, const char *name,
                         const host_array *a);

#endif
