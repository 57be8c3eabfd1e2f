/* Callbacks around the uses of an execution's inputs, by which a caller gives an input memory when
   it is read, and takes it back. */
#ifndef TENON_RUNTIME_INPUT_READERS_H
#define TENON_RUNTIME_INPUT_READERS_H

#include "device/core/device.h"

/** Callbacks around the steps, or loops, that read an input. Called between two steps, on the
   thread that runs them or the one that waits for them. */
typedef struct input_readers {
  /** Gives an input that has no memory its place, before the first step that reads it; NULL: all
      inputs have memory. On devices without streams only. */
  tn_status (*begin)(void *user, size_t buffer, tn_span *to, tn_failure *failure);
  void (*end)(void *user, size_t buffer); /* after the last step or trip that reads it */
  void *user;
} input_readers;

#endif
