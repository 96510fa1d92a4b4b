/* Builds the root file system of a container. */
#ifndef SANDBOX_ROOTFS_H
#define SANDBOX_ROOTFS_H

#include <sys/types.h>

#include "options.h"

struct rootfs_request {
	const struct container_options *options;
	const char *scratch; /* an empty directory to build in */
	const char *directory; /* the job's directory, for a relative image path */
	const char *script;  /* a batch script that must be visible inside, or null */
	uid_t uid;
	gid_t gid;
};

enum rootfs_stage {
	ROOTFS_DONE,
	ROOTFS_IMPORT, /* the import from the registry failed */
	ROOTFS_CREATE, /* the image is missing or invalid */
	ROOTFS_MOUNTS, /* a requested mount failed */
	ROOTFS_START,  /* anything else */
};

/*
 * Runs in a child of the step daemon, as root. Gives the calling process a mount namespace
 * whose root is the container. Writes messages to stderr: lines that start with "pyxis: " are
 * the plugin's, the others are enroot's.
 */
enum rootfs_stage build_rootfs(const struct rootfs_request *request);

#endif
