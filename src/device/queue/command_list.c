/* Implements command lists: records commands into a growing array, with a reference to each signal
   and program. The first failure is kept, and commands after it are recorded all the same. */
#include "device/queue/command_list.h"

tn_commands *command_list_open(tn_device *device) {
  tn_commands *c = mem_calloc(device->mem, 1, sizeof *c);
  if (!c) return NULL;
  c->device = device;
  atomic_init(&c->count, 1);
  return c;
}

tn_commands *command_list_retain(tn_commands *c) {
  atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
  return c;
}

void command_list_release(tn_commands *c) {
  if (!c || atomic_fetch_sub_explicit(&c->count, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < c->n; i++) {
    signal_release(c->at[i].signal);
    program_release(c->at[i].program);
    work_graph_free(c->at[i].graph);
  }
  const mem *m = c->device->mem;
  mem_free(m, c->at, c->cap * sizeof *c->at);
  mem_free(m, c, sizeof *c);
}

/** Keeps the first failure. */
static void note_failure(tn_commands *c, tn_status status, const char *text) {
  if (!c->failure.status) tn_fail(&c->failure, status, "%s", text);
}

static bool grow_list(tn_commands *c) {
  size_t cap = c->cap ? c->cap * 2 : 16;
  const mem *m = c->device->mem;
  command *at = mem_resize(m, c->at, c->cap * sizeof *at, cap * sizeof *at);
  if (!at) return false;
  c->at = at;
  c->cap = cap;
  return true;
}

/** Adds a command, with a reference to its signal and program. */
static void add_command(tn_commands *c, command added) {
  if (c->n == c->cap && !grow_list(c)) {
    note_failure(c, TN_ERR_MEMORY, "out of memory");
    return;
  }
  if (added.signal) signal_retain(added.signal);
  if (added.program) program_retain(added.program);
  c->at[c->n++] = added;
}

/** Adds a command of a signal, which is NULL if there is none, or no value. */
static void add_signal(tn_commands *c, command added) {
  const tn_signal *s = added.signal;
  if (!s)
    note_failure(c, TN_ERR_ARGUMENT, "a signal command has no signal or value");
  else if (s->device->registry != c->device->registry)
    tn_fail(c->failure.status ? NULL : &c->failure, TN_ERR_ARGUMENT,
            "a signal of device %s of another context, which has devices of its own, is no signal "
            "for device %s",
            s->device->name, c->device->name);
  else
    add_command(c, added);
}

void command_list_wait(tn_commands *c, tn_signal *s, uint64_t value) {
  add_signal(c, (command){.kind = COMMAND_WAIT, .signal = s, .value = value});
}

void command_list_wait_at(tn_commands *c, tn_signal *s, const uint64_t *value) {
  add_signal(c, (command){.kind = COMMAND_WAIT, .signal = value ? s : NULL, .value_at = value});
}

void command_list_wait_end(tn_commands *c, tn_signal *s, uint64_t value) {
  add_signal(c, (command){.kind = COMMAND_WAIT, .ends = true, .signal = s, .value = value});
}

void command_list_signal(tn_commands *c, tn_signal *s, uint64_t value) {
  add_signal(c, (command){.kind = COMMAND_SIGNAL, .signal = s, .value = value});
}

void command_list_signal_at(tn_commands *c, tn_signal *s, const uint64_t *value) {
  add_signal(c, (command){.kind = COMMAND_SIGNAL, .signal = value ? s : NULL, .value_at = value});
}

void command_list_exec(tn_commands *c, tn_program *p, const tn_launch *launch) {
  if (!p || !launch)
    note_failure(c, TN_ERR_ARGUMENT, "a launch command has no program or launch");
  else if (p->device != c->device)
    note_failure(c, TN_ERR_ARGUMENT,
                 "the program was compiled for another device than that of the queue");
  else
    add_command(c, (command){.kind = COMMAND_EXEC, .program = p, .launch = launch});
}

void command_list_copy(tn_commands *c, const tn_span *to, const tn_span *from) {
  if (to && from && to->device && from->device)
    add_command(c, (command){.kind = COMMAND_COPY, .to = to, .from = from});
  else
    note_failure(c, TN_ERR_ARGUMENT, "a copy command has no span");
}

void command_list_fill(tn_commands *c, const tn_span *to, uint8_t byte) {
  if (!to || !to->memory)
    note_failure(c, TN_ERR_ARGUMENT, "a fill command has no span");
  else if (to->device != c->device)
    note_failure(c, TN_ERR_ARGUMENT, "the span to fill is of another device than the queue");
  else
    add_command(c, (command){.kind = COMMAND_FILL, .to = to, .fill = byte});
}

void command_list_call(tn_commands *c, tn_status (*call)(void *user, tn_failure *f), void *user) {
  if (call)
    add_command(c, (command){.kind = COMMAND_CALL, .call = call, .user = user});
  else
    note_failure(c, TN_ERR_ARGUMENT, "a call command has no function");
}

void command_list_barrier(tn_commands *c) { add_command(c, (command){.kind = COMMAND_BARRIER}); }

void command_list_timestamp(tn_commands *c, int64_t *at, int64_t *seen) {
  if (at)
    add_command(c, (command){.kind = COMMAND_STAMP, .stamp = at, .seen = seen});
  else
    note_failure(c, TN_ERR_ARGUMENT, "a timestamp command has no destination");
}

tn_status command_list_status(const tn_commands *c, diag *d) {
  if (c->failure.status) d->failure = c->failure;
  return c->failure.status;
}
