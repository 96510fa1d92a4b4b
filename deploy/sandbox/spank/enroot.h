/* Runs enroot as the job's user, with the job's environment. */
#ifndef SANDBOX_ENROOT_H
#define SANDBOX_ENROOT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct enroot {
	uid_t uid;
	gid_t gid;
	char **environment; /* the job's */
	int log;	    /* what the last command printed, or -1 */
};

/* Starts `enroot ARGUMENTS`, without waiting. Returns the pid, or -1. */
pid_t enroot_start(struct enroot *enroot, const char *const arguments[]);

/* As above, and waits. A failure is reported with its exit code or signal. */
bool enroot_run(struct enroot *enroot, const char *const arguments[]);

/* Prints what the last command printed, as errors. */
void enroot_print_log(struct enroot *enroot);

/* Waits for the end of a child, or with WUNTRACED for its stop. */
bool await_child(pid_t child, int *status, int flags);

#endif
