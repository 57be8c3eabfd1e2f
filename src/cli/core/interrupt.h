/* Handles signals that end the command (SIGINT, SIGTERM, SIGHUP): they also end the compilers that
   it has started. */
#ifndef TENON_CLI_CORE_INTERRUPT_H
#define TENON_CLI_CORE_INTERRUPT_H

/** Starts the thread that waits for SIGINT, SIGTERM and SIGHUP. Call it before any other thread is
    started. */
void interrupt_start(void);

/** Does not return after such a signal: the signal ends the command, rather than a failure of the
    compilers that it ended. */
void interrupt_wait_if_pending(void);

#endif
