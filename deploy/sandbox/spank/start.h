/* Starts a container, and moves a task into it. */
#ifndef SANDBOX_START_H
#define SANDBOX_START_H

#include <stdbool.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "enroot.h"

/*
 * Starts the container NAME. Its first process stops itself when everything is mounted, and so keeps the namespaces
 * until every task has joined them. Returns its pid, or -1 after errors.
 */
pid_t start_container(struct enroot *enroot, const char *name);

/* Takes the environment and the namespaces of the container's first process over into the calling task. */
bool join_container(spank_t sp, pid_t first_process);

#endif
