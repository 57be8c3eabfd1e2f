/* Signals that end the command: compilers that it has started end with it. */
#ifndef TENON_CLI_INTERRUPT_H
#define TENON_CLI_INTERRUPT_H

/** From now on, programs that the command has started end when a signal ends it, with all that
    they have started. Before any thread is started. */
void interrupt_watch(void);

/** Does not return if such a signal has come: it ends the command, not what its programs' ends
    have made fail. */
void interrupt_before_end(void);

#endif
