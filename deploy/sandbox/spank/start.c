#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "options.h"

/* Other errors than a missing file are left to enroot. */
static bool mount_sources_exist(void)
{
	for (size_t i = 0; i < container_options.mount_count; i++) {
		const char *source = container_options.mounts[i].source;
		struct stat found;

		if (source[0] == '/' && stat(source, &found) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
			slurm_error("pyxis: --container-mounts: source path does not exist: %s", source);
			return false;
		}
	}
	return true;
}

/* An fstab separates its fields by blanks. */
static void write_field(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (strchr(" \t\n\\", *text))
			fprintf(file, "\\%03o", (unsigned)*text);
		else
			fputc(*text, file);
	}
}

/*
 * A script of functions for enroot's shell, which sources it. The shell expands the paths, because they are in double
 * quotes only, and prints the variables of --container-env to a file of NAME=VALUE lines.
 */
static void write_config(FILE *file)
{
	const struct container_options *options = &container_options;

	if (options->mount_count > 0) {
		fputs("mounts() {\n", file);
		for (size_t i = 0; i < options->mount_count; i++) {
			fputs("  echo \"", file);
			write_field(file, options->mounts[i].source);
			fputc(' ', file);
			write_field(file, options->mounts[i].target);
			fprintf(file, " %s\"\n", options->mounts[i].flags);
		}
		fputs("}\n", file);
	}
	/* /etc/rc sources this file before it would run the entry point. */
	if (options->entrypoint != 1)
		fputs("hooks() {\n  echo 'exec \"$@\"' >\"$ENROOT_ROOTFS/etc/rc.local\"\n}\n", file);
	if (options->env_count > 0) {
		fputs("environ() {\n", file);
		for (size_t i = 0; i < options->env_count; i++)
			fprintf(file, "  [ -z \"${%1$s-}\" ] || echo \"%1$s=${%1$s}\"\n", options->env[i]);
		fputs("}\n", file);
	}
}

static bool create_config(char *path)
{
	int fd;
	FILE *file;

	if (!mount_sources_exist())
		return false;
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return false;
	write_config(file);
	return fclose(file) == 0;
}

pid_t start_container(struct enroot *enroot, const char *name)
{
	char config[] = "/tmp/.enroot_config_XXXXXX";
	const char *const command[] = { "enroot", "start", "--conf", config, name,
		"sh", "-c", "kill -STOP $$ ; exit 0", NULL };
	pid_t child = -1;
	int status;

	if (!create_config(config)) {
		slurm_error("pyxis: couldn't create enroot start configuration script");
		goto failed;
	}
	child = enroot_start(enroot, command);
	if (child < 0 || !await_child(child, &status, WUNTRACED))
		slurm_error("pyxis: failed to start container");
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		slurm_error("pyxis: container start failed with error code: %d", WEXITSTATUS(status));
	else if (!WIFSTOPPED(status))
		slurm_error("pyxis: container exited too soon");
	else {
		unlink(config);
		return child;
	}
	if (container_options.entrypoint == 1)
		slurm_error("pyxis: if the image has an unusual entrypoint, try using --no-container-entrypoint");
failed:
	enroot_print_log(enroot);
	unlink(config);
	return -1;
}

/* The image's variables override the job's, unless --container-env lists them. */
static bool import_environment(spank_t sp, pid_t pid)
{
	static const char *const locale[] = { "LANG", "LANGUAGE", "LC_ALL" };
	char name[64], *pair = NULL;
	size_t size = 0;
	FILE *pairs;

	for (size_t i = 0; i < sizeof(locale) / sizeof(*locale); i++)
		if (!env_is_listed(locale[i]))
			spank_unsetenv(sp, locale[i]);
	snprintf(name, sizeof(name), "/proc/%d/environ", (int)pid);
	pairs = fopen(name, "re");
	if (!pairs)
		return false;
	while (getdelim(&pair, &size, '\0', pairs) > 0) {
		char *value = strchr(pair, '=');

		if (!value)
			continue;
		*value++ = '\0';
		spank_setenv(sp, pair, value, !env_is_listed(pair));
	}
	free(pair);
	fclose(pairs);
	return true;
}

/* PyTorch reads a task's place from these. The other variables come from enroot's hook. */
static void set_torch_ranks(spank_t sp)
{
	static const char *const ranks[][2] = { { "SLURM_PROCID", "RANK" }, { "SLURM_LOCALID", "LOCAL_RANK" } };
	char value[256];

	if (spank_getenv(sp, "PYTORCH_VERSION", value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	for (size_t i = 0; i < sizeof(ranks) / sizeof(*ranks); i++)
		if (spank_getenv(sp, ranks[i][0], value, sizeof(value)) == ESPANK_SUCCESS)
			spank_setenv(sp, ranks[i][1], value, 1);
}

static bool enter(int fd, int kind, const char *what)
{
	if (setns(fd, kind) == 0)
		return true;
	slurm_error("pyxis: couldn't join %s namespace: %s", what, strerror(errno));
	return false;
}

bool join_container(spank_t sp, pid_t pid)
{
	char name[64], directory[PATH_MAX] = "";
	const char *workdir = container_options.workdir;
	int user, mount;

	snprintf(name, sizeof(name), "/proc/%d/ns/user", (int)pid);
	user = open(name, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)pid);
	mount = open(name, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%d/cwd", (int)pid);
	if (user < 0 || mount < 0 || readlink(name, directory, sizeof(directory) - 1) < 0) {
		slurm_error("pyxis: couldn't get container namespaces");
		return false;
	}
	if (!import_environment(sp, pid)) {
		slurm_error("pyxis: couldn't read container environment");
		return false;
	}
	set_torch_ranks(sp);
	if (!enter(user, CLONE_NEWUSER, "user") || !enter(mount, CLONE_NEWNS, "mount"))
		return false;
	if (chdir(workdir ? workdir : directory) == 0)
		return true;
	slurm_error(workdir ? "pyxis: couldn't chdir to %s: %s" : "pyxis: couldn't chdir to container cwd %s: %s",
		    workdir ? workdir : directory, strerror(errno));
	return false;
}
