/* The --container-* options, with the names, arguments and checks of Pyxis. */
#include <stdlib.h>
#include <string.h>

#include "options.h"

struct container_options container_options;

enum option {
	IMAGE,
	MOUNTS,
	ENV,
	WORKDIR,
	IGNORED,
	MOUNT_HOME,
	NO_MOUNT_HOME,
	REMAP_ROOT,
	NO_REMAP_ROOT,
	WRITABLE,
	READONLY,
};

static int take(char **field, const char *value)
{
	free(*field);
	*field = strdup(value);
	return *field ? 0 : -1;
}

const char *cut_mount(char *text, struct container_mount *mount)
{
	char *flags = NULL;

	mount->source = text;
	mount->target = strchr(text, ':');
	mount->read_only = false;
	if (mount->target) {
		*mount->target++ = '\0';
		flags = strchr(mount->target, ':');
		if (flags)
			*flags++ = '\0';
	} else {
		mount->target = mount->source;
	}
	if (mount->source[0] != '/')
		return "source path must be absolute";
	if (mount->target[0] != '/')
		return "target path must be absolute";
	for (char *rest, *flag = flags; flag; flag = rest) {
		rest = strchr(flag, '+');
		if (rest)
			*rest++ = '\0';
		if (strcmp(flag, "ro") == 0)
			mount->read_only = true;
		else if (strcmp(flag, "rw") != 0 && strcmp(flag, "bind") != 0 &&
			 strcmp(flag, "rbind") != 0)
			return "invalid mount flag";
	}
	return NULL;
}

static int take_mounts(const char *value)
{
	char *text = strdup(value), *rest = text, *one;
	int result = text ? take(&container_options.mounts, value) : -1;

	while (result == 0 && (one = strsep(&rest, ","))) {
		struct container_mount mount;
		const char *wrong = cut_mount(one, &mount);

		if (wrong) {
			slurm_error("pyxis: --container-mounts: %s: %s", wrong, one);
			result = -1;
		}
	}
	free(text);
	return result;
}

bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (; list && *list; list += strspn(list, ",")) {
		size_t item = strcspn(list, ",");

		if (item == length && strncmp(list, name, item) == 0)
			return true;
		list += item;
	}
	return false;
}

static int take_option(int option, const char *value, int remote)
{
	(void)remote;
	if (value && *value == '\0') {
		slurm_error("pyxis: empty argument for a --container option");
		return -1;
	}
	switch (option) {
	case IMAGE:
		return take(&container_options.image, value);
	case MOUNTS:
		return take_mounts(value);
	case ENV:
		return take(&container_options.env, value);
	case WORKDIR:
		return take(&container_options.workdir, value);
	case MOUNT_HOME:
	case NO_MOUNT_HOME:
		container_options.mount_home = option == MOUNT_HOME;
		return 0;
	case REMAP_ROOT:
	case NO_REMAP_ROOT:
		container_options.remap_root = option == REMAP_ROOT;
		return 0;
	case WRITABLE:
	case READONLY:
		container_options.writable = option == WRITABLE;
		return 0;
	}
	return 0;
}

static struct spank_option options[] = {
	{ "container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH",
	  "[pyxis] the image to use for the container; a squashfs file starts with '/' or './'",
	  1, IMAGE, take_option },
	{ "container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]",
	  "[pyxis] bind mount[s] inside the container; flags are 'ro' or 'rw'",
	  1, MOUNTS, take_option },
	{ "container-env", "NAME[,NAME...]",
	  "[pyxis] variables whose value in the job overrides the image's",
	  1, ENV, take_option },
	{ "container-workdir", "PATH", "[pyxis] working directory inside the container",
	  1, WORKDIR, take_option },
	{ "container-name", "NAME", "[pyxis] accepted; every container starts from its image here",
	  1, IGNORED, take_option },
	{ "container-mount-home", NULL, "[pyxis] bind mount the user's home directory",
	  0, MOUNT_HOME, take_option },
	{ "no-container-mount-home", NULL, "[pyxis] do not bind mount the home directory",
	  0, NO_MOUNT_HOME, take_option },
	{ "container-remap-root", NULL, "[pyxis] be root inside the container",
	  0, REMAP_ROOT, take_option },
	{ "no-container-remap-root", NULL, "[pyxis] keep the user's own id inside the container",
	  0, NO_REMAP_ROOT, take_option },
	{ "container-writable", NULL, "[pyxis] make the container filesystem writable",
	  0, WRITABLE, take_option },
	{ "container-readonly", NULL, "[pyxis] make the container filesystem read-only",
	  0, READONLY, take_option },
	{ "container-entrypoint", NULL, "[pyxis] accepted; the test image has no entry point",
	  0, IGNORED, take_option },
	{ "no-container-entrypoint", NULL, "[pyxis] accepted; the test image has no entry point",
	  0, IGNORED, take_option },
	SPANK_OPTIONS_TABLE_END
};

/* An option table found by its name works for srun, but not for sbatch and salloc. */
bool register_options(spank_t sp)
{
	for (struct spank_option *option = options; option->name; option++)
		if (spank_option_register(sp, option) != ESPANK_SUCCESS)
			return false;
	return true;
}
