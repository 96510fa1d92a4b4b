/* The values of the --container-* options. */
#ifndef SANDBOX_OPTIONS_H
#define SANDBOX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

/* As Enroot reads it from an fstab. */
struct container_mount {
	char *source;
	char *target;
	char *flags;
};

/* A switch is -1 while neither of its two options was given. */
struct container_options {
	char *image;
	char *workdir;
	char *name;
	const char *name_flag;
	struct container_mount *mounts;
	size_t mount_count;
	char **env;
	size_t env_count;
	int mount_home;
	int remap_root;
	int writable;
	int entrypoint;
};

extern struct container_options container_options;

/* Call from slurm_spank_init(). */
bool register_options(spank_t sp);

/* Fills in what PYXIS_CONTAINER_* variables say and no option does. Is a container wanted at all? */
bool complete_options(spank_t sp);

/* Null flags are the default ones of the source. */
int add_mount(const char *source, const char *target, const char *flags);

/* Does --container-env name the variable? */
bool env_is_listed(const char *name);

#endif
