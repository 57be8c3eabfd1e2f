/* Runs of launches in command lists: those that follow each other without anything between them
   that the host, a copy or another queue takes part in. Where the backend has graphs, each is one.
 */
#ifndef TENON_DEVICE_QUEUE_LAUNCH_RUNS_H
#define TENON_DEVICE_QUEUE_LAUNCH_RUNS_H

#include "device/queue/command_list.h"

typedef struct launch_run {
  size_t first, end; /* commands: launches, with barriers between them */
  size_t n;          /* launches */
  work_graph *graph; /* NULL: none is thought of */
  const char *why;   /* why the list's last run took them one by one; NULL: as a graph */
} launch_run;

/** Finds the first run of launches that begins at a command or after it; false if there is none. */
bool command_list_find_launches(const tn_commands *c, size_t from, launch_run *run);

/** Puts a command for a graph before each run of several launches, if the list's device has a
    backend with graphs; once, when the list is recorded. Without memory the list fails. */
void command_list_add_graphs(tn_commands *c);

#endif
