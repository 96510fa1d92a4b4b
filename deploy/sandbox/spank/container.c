/*
 * A replacement for the Pyxis plugin: runs the tasks of a step inside a container image.
 *
 * A child of the step daemon builds the container, once per step and node, and then exits. The
 * step daemon keeps the mount namespace open, and every task joins it. After the last task the
 * kernel removes mounts and loop devices by itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "options.h"
#include "rootfs.h"

SPANK_PLUGIN(pyxis, 1)

static int namespace = -1;
static pid_t builder;
static enum rootfs_stage stage = ROOTFS_DONE;
static int report = -1;

static bool wanted(void)
{
	return spank_context() == S_CTX_REMOTE && container_options.image;
}

static const char *batch_script(spank_t sp)
{
	uint32_t step;
	char **argv;
	int argc;

	if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    step != SLURM_BATCH_SCRIPT ||
	    spank_get_item(sp, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS || argc < 1)
		return NULL;
	return argv[0];
}

/* A successful builder stays suspended until its namespace has been opened. */
static void build(const struct rootfs_request *request)
{
	char name[64];
	int status;

	report = memfd_create("container-report", MFD_CLOEXEC);
	builder = fork();
	if (builder == 0) {
		enum rootfs_stage reached;

		dup2(report, 1);
		dup2(report, 2);
		reached = build_rootfs(request);
		fflush(NULL);
		if (reached == ROOTFS_DONE)
			raise(SIGSTOP);
		_exit(reached);
	}
	stage = ROOTFS_START;
	if (builder < 0 || waitpid(builder, &status, WUNTRACED) != builder)
		return;
	if (WIFEXITED(status))
		stage = WEXITSTATUS(status);
	if (!WIFSTOPPED(status))
		return;
	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)builder);
	namespace = open(name, O_RDONLY | O_CLOEXEC);
	kill(builder, SIGKILL);
	waitpid(builder, &status, 0);
	if (namespace >= 0)
		stage = ROOTFS_DONE;
}

int slurm_spank_init(spank_t sp, int ac, char **av)
{
	(void)ac, (void)av;
	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
		return 0;
	return register_options(sp) ? 0 : -1;
}

/* Never fails: the task reports errors, where its user can read them. */
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	struct rootfs_request request = { .options = &container_options, .directory = "/" };
	char directory[4096];

	if (!wanted())
		return 0;
	for (int i = 0; i < ac; i++)
		if (strncmp(av[i], "scratch=", 8) == 0)
			request.scratch = av[i] + 8;
	if (!request.scratch ||
	    spank_get_item(sp, S_JOB_UID, &request.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &request.gid) != ESPANK_SUCCESS) {
		stage = ROOTFS_START;
		return 0;
	}
	request.script = batch_script(sp);
	if (spank_getenv(sp, "PWD", directory, sizeof(directory)) == ESPANK_SUCCESS)
		request.directory = directory;
	build(&request);
	return 0;
}

/*
 * Joining the container needs root's capabilities. It must happen after Slurm has switched to the
 * user and to the job's directory, which may not exist in the container.
 */
int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
	(void)sp, (void)ac, (void)av;
	if (wanted() && stage == ROOTFS_DONE)
		prctl(PR_SET_KEEPCAPS, 1);
	return 0;
}

static bool set_capabilities(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)effective, .permitted = (uint32_t)permitted },
		{ .effective = effective >> 32, .permitted = permitted >> 32 },
	};

	return syscall(SYS_capset, &header, data) == 0;
}

static bool join_container(void)
{
	const uint64_t needed = 1ull << CAP_SYS_ADMIN | 1ull << CAP_SYS_CHROOT;

	if (set_capabilities(needed, needed) && setns(namespace, CLONE_NEWNS) == 0 &&
	    set_capabilities(0, 0) && prctl(PR_SET_DUMPABLE, 1) == 0)
		return true;
	slurm_error("pyxis: couldn't join the container: %s", strerror(errno));
	return false;
}

/* Prints the report's lines that start with "pyxis: ", or else all the others. */
static void print_report(FILE *lines, bool own)
{
	char line[4096];

	rewind(lines);
	while (fgets(line, sizeof(line), lines)) {
		bool is_own = strncmp(line, "pyxis: ", 7) == 0;

		line[strcspn(line, "\n")] = '\0';
		if (is_own == own)
			slurm_error(own ? "%s" : "pyxis:     %s", line);
	}
}

static int fail(bool first_task)
{
	int copy = report < 0 ? -1 : dup(report);
	FILE *lines = copy < 0 ? NULL : fdopen(copy, "r");

	if (first_task && (stage == ROOTFS_IMPORT || stage == ROOTFS_CREATE))
		slurm_error("pyxis: child %d failed with error code: 1", (int)builder);
	if (first_task && lines) {
		if (stage == ROOTFS_IMPORT)
			slurm_error("pyxis: failed to import docker image");
		if (stage == ROOTFS_CREATE)
			slurm_error("pyxis: failed to create container filesystem for image: %s",
				    container_options.image);
		if (stage == ROOTFS_START)
			slurm_error("pyxis: container start failed with error code: 1");
		print_report(lines, true);
		if (stage == ROOTFS_MOUNTS)
			slurm_error("pyxis: couldn't create enroot start configuration script");
		slurm_error("pyxis: printing enroot log file:");
		print_report(lines, false);
	}
	if (lines)
		fclose(lines);
	if (stage == ROOTFS_IMPORT)
		slurm_error("pyxis: couldn't start container");
	if (!first_task || stage == ROOTFS_MOUNTS || stage == ROOTFS_START)
		slurm_error("pyxis: container was not started successfully by another task");
	return -1;
}

/* Sets the image's variables as `docker run` does, except those that the job overrides. */
static void import_environment(spank_t sp)
{
	FILE *file = fopen("/etc/environment", "r");
	char line[4096], old[8];

	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, '=');

		if (line[0] == '#' || !value)
			continue;
		*value++ = '\0';
		value[strcspn(value, "\n")] = '\0';
		if (!is_listed(container_options.env, line) ||
		    spank_getenv(sp, line, old, sizeof(old)) == ESPANK_ENV_NOEXIST)
			spank_setenv(sp, line, value, 1);
	}
	if (file)
		fclose(file);
}

static bool write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

static bool become_root(void)
{
	char uid_map[64], gid_map[64];

	snprintf(uid_map, sizeof(uid_map), "0 %d 1", (int)geteuid());
	snprintf(gid_map, sizeof(gid_map), "0 %d 1", (int)getegid());
	return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") &&
		write_file("/proc/self/uid_map", uid_map) &&
		write_file("/proc/self/gid_map", gid_map);
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	const char *workdir = container_options.workdir ? container_options.workdir : "/";
	int task = 0;

	(void)ac, (void)av;
	if (!wanted())
		return 0;
	spank_get_item(sp, S_TASK_ID, &task);
	if (container_options.image[0] != '/' && container_options.image[0] != '.' && task == 0)
		slurm_spank_log("pyxis: importing docker image: %s", container_options.image);
	if (stage != ROOTFS_DONE)
		return fail(task == 0);
	if (!join_container())
		return -1;
	import_environment(sp);
	if (container_options.remap_root && !become_root()) {
		slurm_error("pyxis: couldn't remap to root: %s", strerror(errno));
		return -1;
	}
	if (chdir(workdir) != 0) {
		slurm_error("pyxis: couldn't chdir to %s: %s", workdir, strerror(errno));
		return -1;
	}
	return 0;
}
