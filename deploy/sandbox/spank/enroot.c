#define _GNU_SOURCE
#include "enroot.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "options.h"

/* The job's value of these never reaches enroot. All others do: HOME, TMPDIR, XDG_CONFIG_HOME, proxies, ... */
static const char *const withheld[] = {
	"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_TASK_PID",
	"PMIX_RANK", "PMI_FD", "ENROOT_LIBRARY_PATH", "ENROOT_SYSCONF_PATH", "ENROOT_RUNTIME_PATH",
	"ENROOT_CACHE_PATH", "ENROOT_DATA_PATH", "ENROOT_TEMP_PATH", "ENROOT_ZSTD_OPTIONS",
	"ENROOT_TRANSFER_RETRIES", "ENROOT_CONNECT_TIMEOUT", "ENROOT_MAX_CONNECTIONS",
	"ENROOT_ALLOW_HTTP",
};

static bool is_withheld(const char *pair)
{
	size_t length = strcspn(pair, "=");

	for (size_t i = 0; i < sizeof(withheld) / sizeof(*withheld); i++)
		if (strlen(withheld[i]) == length && strncmp(pair, withheld[i], length) == 0)
			return true;
	return false;
}

static void set_switch(const char *name, int value)
{
	if (value != -1)
		setenv(name, value ? "y" : "n", 1);
}

/* Of the step daemon's own environment only PATH stays. */
static void use_environment(char **environment)
{
	char *path = strdup(getenv("PATH"));

	clearenv();
	setenv("PATH", path, 1);
	for (char **pair = environment; *pair; pair++)
		if (!is_withheld(*pair))
			putenv(*pair);
	set_switch("ENROOT_MOUNT_HOME", container_options.mount_home);
	set_switch("ENROOT_REMAP_ROOT", container_options.remap_root);
	set_switch("ENROOT_ROOTFS_WRITABLE", container_options.writable);
}

/* Before a task the step daemon is the user already; after the last one it is root. */
static bool become_user(const struct enroot *enroot)
{
	if (geteuid() == 0) {
		const struct passwd *user = getpwuid(enroot->uid);

		if (!user || initgroups(user->pw_name, enroot->gid) != 0)
			return false;
	}
	return setregid(enroot->gid, enroot->gid) == 0 && setreuid(enroot->uid, enroot->uid) == 0;
}

pid_t enroot_start(struct enroot *enroot, const char *const arguments[])
{
	pid_t child;

	if (enroot->log >= 0)
		close(enroot->log);
	enroot->log = memfd_create("enroot-log", MFD_CLOEXEC);
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		dup2(null, 0);
		dup2(enroot->log, 1);
		dup2(enroot->log, 2);
		if (!become_user(enroot))
			_exit(EXIT_FAILURE);
		use_environment(enroot->environment);
		execvp("enroot", (char *const *)arguments);
		_exit(EXIT_FAILURE);
	}
	if (child < 0)
		slurm_error("pyxis: fork error: %s", strerror(errno));
	return child;
}

bool await_child(pid_t child, int *status, int flags)
{
	pid_t ended;

	do
		ended = waitpid(child, status, flags);
	while (ended < 0 && errno == EINTR);
	return ended == child;
}

bool enroot_run(struct enroot *enroot, const char *const arguments[])
{
	pid_t child = enroot_start(enroot, arguments);
	int status;

	if (child < 0)
		return false;
	if (!await_child(child, &status, 0))
		slurm_error("pyxis: could not wait for child %d: %s", (int)child, strerror(errno));
	else if (WIFSIGNALED(status))
		slurm_error("pyxis: child %d terminated with signal %d", (int)child, WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		slurm_error("pyxis: child %d failed with error code: %d", (int)child, WEXITSTATUS(status));
	else
		return true;
	return false;
}

void enroot_print_log(struct enroot *enroot)
{
	FILE *lines = enroot->log < 0 ? NULL : fdopen(enroot->log, "r");
	char *line = NULL;
	size_t size = 0;

	if (!lines)
		return;
	enroot->log = -1;
	rewind(lines);
	slurm_error("pyxis: printing enroot log file:");
	while (getline(&line, &size, lines) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		slurm_error("pyxis:     %s", line);
	}
	free(line);
	fclose(lines);
}
