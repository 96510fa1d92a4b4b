/* The --container-* options and the PYXIS_CONTAINER_* variables, with the checks of Pyxis. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

struct container_options container_options = {
	.mount_home = -1, .remap_root = -1, .writable = -1, .entrypoint = -1,
};

enum option {
	IMAGE,
	MOUNTS,
	ENV,
	WORKDIR,
	NAME,
	/* Switches: each is followed by its opposite. */
	MOUNT_HOME,
	NO_MOUNT_HOME,
	REMAP_ROOT,
	NO_REMAP_ROOT,
	WRITABLE,
	READONLY,
	ENTRYPOINT,
	NO_ENTRYPOINT,
};

static int take_option(int option, const char *value, int remote);

static struct spank_option options[] = {
	{ "container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH",
	  "[pyxis] the image to use for the container; a squashfs file starts with '/' or './'",
	  1, IMAGE, take_option },
	{ "container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]",
	  "[pyxis] bind mount[s] inside the container; '+' separates flags",
	  1, MOUNTS, take_option },
	{ "container-env", "NAME[,NAME...]",
	  "[pyxis] variables whose value in the job overrides the image's",
	  1, ENV, take_option },
	{ "container-workdir", "PATH", "[pyxis] working directory inside the container",
	  1, WORKDIR, take_option },
	{ "container-name", "NAME", "[pyxis] keep the container under this name, or use it again",
	  1, NAME, take_option },
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
	{ "container-entrypoint", NULL, "[pyxis] run the image's entry point",
	  0, ENTRYPOINT, take_option },
	{ "no-container-entrypoint", NULL, "[pyxis] do not run the image's entry point",
	  0, NO_ENTRYPOINT, take_option },
	SPANK_OPTIONS_TABLE_END
};

/* Slurm may pass the same value twice: from the environment of the batch script and from srun's command line. */
static int take(char **field, enum option option, const char *value)
{
	if (*field && strcmp(*field, value) == 0)
		return 0;
	if (*field) {
		slurm_error("pyxis: --%s specified multiple times", options[option].name);
		return -1;
	}
	*field = strdup(value);
	return *field ? 0 : -1;
}

static int take_switch(int *field, enum option option)
{
	int value = (option - MOUNT_HOME) % 2 == 0;

	if (*field != -1 && *field != value) {
		enum option first = value ? option : option - 1;

		slurm_error("pyxis: both --%s and --%s were specified", options[first].name,
			    options[first + 1].name);
		return -1;
	}
	*field = value;
	return 0;
}

static int take_name(const char *value)
{
	static const char *const flags[] = { "auto", "create", "exec", "no_exec" };
	char name[256];
	const char *flag = strchr(value, ':');

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ":"), value);
	if (*name == '\0') {
		slurm_error("pyxis: --container-name: empty name");
		return -1;
	}
	flag = flag && flag[1] ? flag + 1 : flags[0];
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (strcmp(flag, flags[i]) == 0) {
			container_options.name_flag = flags[i];
			return take(&container_options.name, NAME, name);
		}
	}
	slurm_error("pyxis: --container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\"");
	return -1;
}

int add_mount(const char *source, const char *target, const char *flags)
{
	const char *kind = strspn(source, "./") > 0 ? "x-create=auto,rbind" :
		strcmp(source, "tmpfs") == 0 ? "x-create=dir" :
		strcmp(source, "umount") == 0 ? "x-detach" : NULL;
	struct container_mount *mounts = container_options.mounts, new;

	if (!kind || strspn(target, "./") == 0) {
		slurm_error(kind ? "pyxis: mount target must be a relative path or an absolute path" :
			    "pyxis: mount source must be a relative path, an absolute path, \"tmpfs\" or \"umount\"");
		return -1;
	}
	if (asprintf(&new.flags, "%s%s%s", kind, flags ? "," : "", flags ? flags : "") < 0)
		return -1;
	for (size_t i = 0; i < container_options.mount_count; i++)
		if (strcmp(mounts[i].source, source) == 0 && strcmp(mounts[i].target, target) == 0 &&
		    strcmp(mounts[i].flags, new.flags) == 0)
			return 0;
	new.source = strdup(source);
	new.target = strdup(target);
	mounts = reallocarray(mounts, container_options.mount_count + 1, sizeof(*mounts));
	if (!new.source || !new.target || !mounts)
		return -1;
	mounts[container_options.mount_count++] = new;
	container_options.mounts = mounts;
	return 0;
}

/* SRC[:DST[:FLAG[+FLAG...]]] */
static int take_mount(const char *value)
{
	char text[8192], *rest = text;
	const char *source, *target;

	snprintf(text, sizeof(text), "%s", value);
	source = strsep(&rest, ":");
	target = rest ? strsep(&rest, ":") : source;
	if (*source == '\0' || *target == '\0') {
		slurm_error("pyxis: --container-mounts: invalid format: %s", value);
		return -1;
	}
	for (char *flag = rest; flag && *flag; flag++)
		if (*flag == '+')
			*flag = ',';
	if (add_mount(source, target, rest && *rest ? rest : NULL) == 0)
		return 0;
	slurm_error("pyxis: could not add mount entry: %s:%s", source, target);
	return -1;
}

static int take_env(const char *name)
{
	char **env;

	if (*name == '\0') {
		slurm_error("pyxis: --container-env: invalid format");
		return -1;
	}
	if (env_is_listed(name))
		return 0;
	env = reallocarray(container_options.env, container_options.env_count + 1, sizeof(*env));
	if (!env)
		return -1;
	container_options.env = env;
	env[container_options.env_count] = strdup(name);
	return env[container_options.env_count++] ? 0 : -1;
}

static int take_each(const char *value, int (*take_one)(const char *))
{
	char *text = strdup(value), *rest = text, *one;
	int result = text ? 0 : -1;

	while (result == 0 && (one = strsep(&rest, ",")))
		result = take_one(one);
	free(text);
	return result;
}

static int take_option(int option, const char *value, int remote)
{
	(void)remote;
	if (option < MOUNT_HOME && (!value || *value == '\0')) {
		slurm_error("pyxis: --%s: argument required", options[option].name);
		return -1;
	}
	switch (option) {
	case IMAGE:
		return take(&container_options.image, IMAGE, value);
	case MOUNTS:
		return take_each(value, take_mount);
	case ENV:
		return take_each(value, take_env);
	case WORKDIR:
		return take(&container_options.workdir, WORKDIR, value);
	case NAME:
		return take_name(value);
	case MOUNT_HOME:
	case NO_MOUNT_HOME:
		return take_switch(&container_options.mount_home, option);
	case REMAP_ROOT:
	case NO_REMAP_ROOT:
		return take_switch(&container_options.remap_root, option);
	case WRITABLE:
	case READONLY:
		return take_switch(&container_options.writable, option);
	default:
		return take_switch(&container_options.entrypoint, option);
	}
}

bool env_is_listed(const char *name)
{
	for (size_t i = 0; i < container_options.env_count; i++)
		if (strcmp(container_options.env[i], name) == 0)
			return true;
	return false;
}

/* An option table found by its name works for srun, but not for sbatch and salloc. */
bool register_options(spank_t sp)
{
	for (struct spank_option *option = options; option->name; option++)
		if (spank_option_register(sp, option) != ESPANK_SUCCESS)
			return false;
	return true;
}

static const char *variable(spank_t sp, const char *name, char *buffer, size_t size)
{
	if (spank_context() != S_CTX_REMOTE)
		return getenv(name);
	return spank_getenv(sp, name, buffer, size) == ESPANK_SUCCESS ? buffer : NULL;
}

static bool is_truth(const char *value)
{
	return strcmp(value, "1") == 0 || strcmp(value, "true") == 0 ||
		strcmp(value, "yes") == 0 || strcmp(value, "y") == 0;
}

bool complete_options(spank_t sp)
{
	struct container_options *set = &container_options;
	const struct { const char *name; enum option option; bool given; } variables[] = {
		{ "PYXIS_CONTAINER_IMAGE", IMAGE, set->image },
		{ "PYXIS_CONTAINER_MOUNTS", MOUNTS, set->mount_count > 0 },
		{ "PYXIS_CONTAINER_ENV", ENV, set->env_count > 0 },
		{ "PYXIS_CONTAINER_WORKDIR", WORKDIR, set->workdir },
		{ "PYXIS_CONTAINER_NAME", NAME, set->name },
		{ "PYXIS_CONTAINER_MOUNT_HOME", MOUNT_HOME, set->mount_home != -1 },
		{ "PYXIS_CONTAINER_REMAP_ROOT", REMAP_ROOT, set->remap_root != -1 },
		{ "PYXIS_CONTAINER_WRITABLE", WRITABLE, set->writable != -1 },
		{ "PYXIS_CONTAINER_READONLY", READONLY, set->writable != -1 },
		{ "PYXIS_CONTAINER_ENTRYPOINT", ENTRYPOINT, set->entrypoint != -1 },
	};
	char buffer[4096];

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = variable(sp, variables[i].name, buffer, sizeof(buffer));
		int option = variables[i].option;

		if (!value || variables[i].given)
			continue;
		if (option >= MOUNT_HOME && !is_truth(value))
			option = MOUNT_HOME + ((option - MOUNT_HOME) ^ 1);
		take_option(option, value, 0);
	}
	if (set->image || set->name)
		return true;
	if (set->mount_count > 0)
		slurm_error("pyxis: ignoring --container-mounts because neither --container-image nor --container-name is set");
	return false;
}
