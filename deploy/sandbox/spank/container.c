/*
 * Replaces the Pyxis plugin: runs the tasks of a step inside a container image.
 *
 * As in Pyxis, the first task of a step on its node sets the container up before it becomes its program, by commands of
 * enroot that are its children. The other tasks wait for it, and join the same container. The last task to end removes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "enroot.h"
#include "options.h"
#include "start.h"

SPANK_PLUGIN(pyxis, 1)

/* The tasks of a step on a node are processes, and share this. */
struct shared {
	pthread_mutex_t lock;
	unsigned begun, joined, ended;
	pid_t container;
};

static bool enabled;
static bool prepared;
static bool keeps_container; /* a named one */
static bool has_container;   /* from an earlier step */
static struct shared *shared;
static struct enroot enroot = { .log = -1 };
static uint32_t local_tasks, all_tasks;
static char container[320], squashfs[4096];

static bool is_file(const char *image) { return strspn(image, "./") > 0; }

int slurm_spank_init(spank_t sp, int ac, char **av)
{
	(void)ac, (void)av;
	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
		return 0;
	return register_options(sp) ? 0 : -1;
}

/* Makes the directory of the user's imported images, as root. */
static bool make_runtime_directory(const char *parent, char *directory, size_t size)
{
	snprintf(directory, size, "%s/%u", parent, (unsigned)enroot.uid);
	return (mkdir(parent, 0755) == 0 || errno == EEXIST) &&
		((mkdir(directory, 0700) == 0 && chown(directory, enroot.uid, enroot.gid) == 0) ||
		 errno == EEXIST);
}

int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	const char *runtime = "/run/pyxis";
	char directory[2048];
	uint32_t job, step;

	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
		return 0;
	if (!complete_options(sp) || spank_context() != S_CTX_REMOTE)
		return 0;
	enabled = true;
	for (int i = 0; i < ac; i++)
		if (strncmp(av[i], "runtime_path=", 13) == 0)
			runtime = av[i] + 13;
	if (spank_get_item(sp, S_JOB_UID, &enroot.uid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_GID, &enroot.gid) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &local_tasks) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &all_tasks) != ESPANK_SUCCESS ||
	    !make_runtime_directory(runtime, directory, sizeof(directory))) {
		slurm_error("pyxis: couldn't prepare the container: %s", strerror(errno));
		return -1;
	}
	if (container_options.name)
		snprintf(container, sizeof(container), "pyxis_%s", container_options.name);
	else
		snprintf(container, sizeof(container), "pyxis_%u.%u", job, step);
	keeps_container = container_options.name;
	snprintf(squashfs, sizeof(squashfs), "%s/%u.%u.squashfs", directory, job, step);
	return 0;
}

static bool share(void)
{
	pthread_mutexattr_t robust;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return false;
	shared->container = -1;
	return pthread_mutexattr_init(&robust) == 0 &&
		pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED) == 0 &&
		pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST) == 0 &&
		pthread_mutex_init(&shared->lock, &robust) == 0;
}

/* A batch script must be visible inside. */
static bool mount_script(spank_t sp)
{
	uint32_t step;
	char **argv;
	int argc;

	if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step != SLURM_BATCH_SCRIPT)
		return true;
	return spank_get_item(sp, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0 &&
		add_mount(argv[0], argv[0], "x-create=file,bind,ro,nosuid,nodev,private") == 0;
}

static bool find_named(void)
{
	FILE *names;
	char line[sizeof(container) + 1];

	if (!enroot_run(&enroot, (const char *const[]){ "enroot", "list", NULL })) {
		slurm_error("pyxis: couldn't execute enroot command");
		enroot_print_log(&enroot);
		slurm_error("pyxis: couldn't get list of containers");
		return false;
	}
	names = fdopen(dup(enroot.log), "r");
	if (!names)
		return false;
	rewind(names);
	while (fgets(line, sizeof(line), names)) {
		line[strcspn(line, "\n")] = '\0';
		has_container |= strcmp(line, container) == 0;
	}
	fclose(names);
	if (has_container && strcmp(container_options.name_flag, "create") == 0) {
		slurm_error("pyxis: error: \"create\" flag was passed to --container-name but the container already exists");
		return false;
	}
	if (strcmp(container_options.name_flag, "exec") == 0) {
		slurm_error("pyxis: error: \"exec\" flag was passed to --container-name but the container is not running");
		return false;
	}
	if (!has_container && !container_options.image) {
		slurm_error("pyxis: error: a container with name \"%s\" does not exist, and --container-image is not set",
			    container);
		return false;
	}
	return true;
}

/* Slurm moves its own list when it adds a variable. */
static bool copy_environment(spank_t sp)
{
	char **environment, **copy;
	size_t count = 0;

	if (spank_get_item(sp, S_JOB_ENV, &environment) != ESPANK_SUCCESS)
		return false;
	while (environment[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++)
		copy[i] = strdup(environment[i]);
	enroot.environment = copy;
	return copy;
}

/* Errors come from the tasks, because Slurm does not tell srun of a failure here. */
int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	(void)ac, (void)av;
	if (enabled)
		prepared = share() && copy_environment(sp) && mount_script(sp) &&
			(!keeps_container || find_named());
	return 0;
}

static bool import_image(const char *image)
{
	char uri[4096];
	bool imported;

	snprintf(uri, sizeof(uri), "%s%s", strncmp(image, "docker://", 9) == 0 ||
		 strncmp(image, "dockerd://", 10) == 0 ? "" : "docker://", image);
	if (all_tasks <= 1)
		slurm_spank_log("pyxis: importing docker image: %s", image);
	imported = enroot_run(&enroot, (const char *const[]){ "enroot", "import", "--output", squashfs, uri, NULL });
	if (imported) {
		slurm_spank_log("pyxis: imported docker image: %s", image);
	} else {
		slurm_error("pyxis: failed to import docker image: %s", image);
		enroot_print_log(&enroot);
	}
	return imported;
}

static bool create_container(void)
{
	const char *image = container_options.image;
	const char *file = is_file(image) ? image : squashfs;
	bool created = is_file(image) || import_image(image);

	if (created) {
		created = enroot_run(&enroot, (const char *const[]){ "enroot", "create", "--name", container, file,
								     NULL });
		if (!created) {
			slurm_error("pyxis: failed to create container filesystem for image: %s", image);
			enroot_print_log(&enroot);
		}
	}
	if (!is_file(image))
		unlink(squashfs);
	return created;
}

/* Call with the lock. */
static bool set_up(void)
{
	if (shared->begun++ == 0) {
		if (!has_container && !create_container())
			return false;
		shared->container = start_container(&enroot, container);
	}
	if (shared->container < 0)
		slurm_error("pyxis: container was not started successfully by another task");
	return shared->container >= 0;
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	bool running;

	(void)ac, (void)av;
	if (!enabled)
		return 0;
	if (!prepared || !copy_environment(sp))
		return -1;
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
		slurm_error("pyxis: a previous task terminated unexpectedly during container setup");
		pthread_mutex_consistent(&shared->lock);
		shared->container = -1;
		running = false;
	} else {
		running = set_up();
	}
	pthread_mutex_unlock(&shared->lock);
	if (!running || !join_container(sp, shared->container))
		return -1;
	/* The namespaces are the tasks' own now. */
	if (__atomic_add_fetch(&shared->joined, 1, __ATOMIC_SEQ_CST) == local_tasks)
		kill(shared->container, SIGCONT);
	return 0;
}

int slurm_spank_task_exit(spank_t sp, int ac, char **av)
{
	(void)sp, (void)ac, (void)av;
	if (!enabled || !shared ||
	    __atomic_add_fetch(&shared->ended, 1, __ATOMIC_SEQ_CST) != local_tasks)
		return 0;
	/* A task that was killed during the import did not remove it. */
	unlink(squashfs);
	if (!keeps_container)
		enroot_run(&enroot, (const char *const[]){ "enroot", "remove", "-f", container, NULL });
	return 0;
}
