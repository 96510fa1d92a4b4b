/* The values of the --container-* options. */
#ifndef SANDBOX_OPTIONS_H
#define SANDBOX_OPTIONS_H

#include <stdbool.h>

#include <slurm/spank.h>

struct container_options {
	char *image;
	char *mounts;
	char *env;
	char *workdir;
	bool mount_home;
	bool writable;
	bool remap_root;
};

extern struct container_options container_options;

/* Call from slurm_spank_init(). */
bool register_options(spank_t sp);

/* SRC[:DST[:FLAGS]]; cut_mount() splits one of them in place. */
struct container_mount {
	char *source;
	char *target;
	bool read_only;
};

/* Returns null on success, or the error. */
const char *cut_mount(char *text, struct container_mount *mount);

/* Is NAME one of the comma-separated LIST? */
bool is_listed(const char *list, const char *name);

#endif
