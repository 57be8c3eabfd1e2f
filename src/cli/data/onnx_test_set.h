/* Reads and writes test data in ONNX's layout: a folder with input_0.pb … and output_0.pb …, a
   tensor each, in the order of a model's inputs and outputs. */
#ifndef TENON_CLI_DATA_ONNX_TEST_SET_H
#define TENON_CLI_DATA_ONNX_TEST_SET_H

#include "cli/data/model_inputs.h"

/** The path of input or output `i`. */
const char *onnx_test_set_path(command *c, const char *folder, tn_port_kind kind, size_t i);

/** Whether a folder has such files. */
bool onnx_test_set_exists(command *c, const char *folder);

/** Reads an array for each input or expected output of a model. Raises with the name of a file that
   is missing, damaged, of another type, or superfluous. */
model_inputs onnx_test_set_read(command *c, const char *folder, const tn_model *m,
                                tn_port_kind kind);

/** Writes the array of output `i`. */
void onnx_test_set_write(command *c, const char *folder, size_t i, const char *name,
                         const host_array *a);

#endif
