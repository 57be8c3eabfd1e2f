/* Reference backend made with the public headers alone, to try each member of the backend
   interface. Its memory is out of the host's reach: what it calls memory is a number, and data goes
   in and out by copying. Programs are kept as IR text and run by the interpreter. Streams are
   threads that delay their work at random. It lacks some ops, and takes only few buffers. */
#ifndef TENON_TESTS_BACKEND_REF_H
#define TENON_TESTS_BACKEND_REF_H

#include <tenon/unstable/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

TN_API extern const tn_backend ref_backend;

#ifdef __cplusplus
}
#endif
#endif
