/* Handles signals that end the command (SIGINT, SIGTERM, SIGHUP): they also end the compilers that
   it has started. */
#ifndef TENON_CLI_CORE_INTERRUPT_H
#define TENON_CLI_CORE_INTERRUPT_H

#include <stdbool.h>

/** Starts the thread that waits for SIGINT, SIGTERM and SIGHUP. Call before starting other threads.
 */
void interrupt_start(void);

/** Has the next such signal only be noticed; the one after that ends the command. */
void interrupt_defer(void);

/** True once a signal was noticed. */
bool interrupt_is_noticed(void);

/** Blocks after such a signal until it ends the command, so that the failure of a killed compiler
   is not reported. */
void interrupt_wait_if_pending(void);

#endif
