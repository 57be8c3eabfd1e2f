/* Lists of commands, from the inside; queue.h has the functions. */
#ifndef TENON_DEVICE_COMMANDS_H
#define TENON_DEVICE_COMMANDS_H

#include "device/queue.h"

struct tn_commands {
  atomic_size_t count; /* owners, and submissions on their way */
  tn_device *device;
  tn_command *at;
  size_t n, cap;
  tn_failure failure; /* the first command that could not be added */
};

/** The value of a WAIT or SIGNAL. */
static inline uint64_t command_value(const tn_command *c) {
  return c->value_at ? *c->value_at : c->value;
}

#endif
