/* Building the root file system of a container. */
#ifndef SANDBOX_ROOTFS_H
#define SANDBOX_ROOTFS_H

#include <sys/types.h>

#include "options.h"

struct rootfs_request {
	const struct container_options *options;
	const char *scratch; /* an empty directory to build in */
	const char *directory; /* where the job is, for an image named by a relative path */
	const char *script;  /* a batch script that must be visible inside, or null */
	uid_t uid;
	gid_t gid;
};

enum rootfs_stage {
	ROOTFS_DONE,
	ROOTFS_IMPORT, /* the registry did not give the image */
	ROOTFS_CREATE, /* the image is missing or is not one */
	ROOTFS_MOUNTS, /* something asked for cannot be mounted */
	ROOTFS_START,  /* anything else */
};

/*
 * Runs in a child of the step daemon, as root. Gives the calling process a mount namespace
 * whose root is the container. What went wrong, or right, is on standard error: lines that
 * start with "pyxis: " are the plugin's own, others are those of enroot.
 */
enum rootfs_stage build_rootfs(const struct rootfs_request *request);

#endif
