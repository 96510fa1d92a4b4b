#define _GNU_SOURCE
#include "rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MOUNTS 64

struct bind {
	int source;
	bool directory, read_only;
	char target[4096];
};

static struct bind binds[MAX_MOUNTS];
static int bind_count;

static char *path(char *buffer, const char *directory, const char *name)
{
	snprintf(buffer, 4096, "%s/%s", directory, name);
	return buffer;
}

static bool failed(const char *what, const char *where)
{
	fprintf(stderr, "pyxis: couldn't %s %s: %s\n", what, where, strerror(errno));
	return false;
}

/* Uses the permissions of the job's user, as enroot does. */
static int open_as_user(const struct rootfs_request *request, const char *name, int flags)
{
	int fd, error;

	if (setegid(request->gid) != 0 || seteuid(request->uid) != 0)
		return -1;
	fd = open(name, flags | O_CLOEXEC);
	error = errno;
	if (seteuid(0) != 0 || setegid(0) != 0)
		_exit(ROOTFS_START);
	errno = error;
	return fd;
}

static bool run(const char *program, ...)
{
	char *arguments[16] = { (char *)program };
	int count = 1, status;
	va_list list;
	pid_t child;

	va_start(list, program);
	while (count < 15 && (arguments[count] = va_arg(list, char *)))
		count++;
	va_end(list);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		execvp(program, arguments);
		fprintf(stderr, "[ERROR] Command not found: %s\n", program);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static enum rootfs_stage find_image(const struct rootfs_request *request, char *image)
{
	const char *name = request->options->image;
	char reference[4096], magic[4];
	int fd;

	if (name[0] != '/' && strncmp(name, "./", 2) != 0) {
		snprintf(reference, sizeof(reference), "%s%s",
			 strncmp(name, "docker://", 9) == 0 ? "" : "docker://", name);
		path(image, request->scratch, "import.sqsh");
		return run("enroot", "import", "-o", image, "--", reference, NULL) ?
			ROOTFS_DONE : ROOTFS_IMPORT;
	}
	if (chdir(request->directory) != 0 || !realpath(name, image)) {
		fprintf(stderr, "[ERROR] No such file or directory: %s\n", name);
		return ROOTFS_CREATE;
	}
	fd = open_as_user(request, image, O_RDONLY);
	if (fd < 0) {
		fprintf(stderr, "[ERROR] %s: %s\n", strerror(errno), image);
		return ROOTFS_CREATE;
	}
	if (read(fd, magic, 4) != 4 || memcmp(magic, "hsqs", 4) != 0) {
		fprintf(stderr, "[ERROR] Invalid image format: %s\n", image);
		return ROOTFS_CREATE;
	}
	close(fd);
	return ROOTFS_DONE;
}

/* mount(8) picks the loop device, and has the kernel free it with the last mount. */
static bool mount_image(const char *image, const char *scratch)
{
	char lower[4096], probe[4096];
	int log = dup(2), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	bool mounted;

	path(lower, scratch, "image");
	/* Its error message does not matter: unpacking the image is the fallback. */
	dup2(null, 2);
	mounted = run("mount", "-t", "squashfs", "-o", "loop,ro", image, lower, NULL);
	dup2(log, 2);
	close(log);
	close(null);
	return mounted || run("unsquashfs", "-q", "-n", "-f", "-d", lower, image, NULL) ||
		access(path(probe, lower, "bin"), F_OK) == 0;
}

static bool mount_overlay(const struct rootfs_request *request, const char *root)
{
	char options[3 * 4096], upper[4096];

	snprintf(options, sizeof(options), "lowerdir=%s/image,upperdir=%s/upper,workdir=%s/work",
		 request->scratch, request->scratch, request->scratch);
	if (request->options->writable && chown(path(upper, request->scratch, "upper"),
						request->uid, request->gid) != 0)
		return failed("hand over", upper);
	return mount("overlay", root, "overlay", 0, options) == 0 || failed("mount", root);
}

static bool add_bind(int source, const char *target, bool read_only)
{
	struct stat status;

	if (bind_count == MAX_MOUNTS || fstat(source, &status) != 0) {
		errno = E2BIG;
		return failed("mount", target);
	}
	binds[bind_count].source = source;
	binds[bind_count].directory = S_ISDIR(status.st_mode);
	binds[bind_count].read_only = read_only;
	snprintf(binds[bind_count++].target, 4096, "%s", target);
	return true;
}

/* Opens the sources while the node's file system is still the root. */
static bool open_mounts(const struct rootfs_request *request)
{
	const char *fixed[] = { "/etc/hosts", "/etc/resolv.conf", request->script };
	const struct passwd *user = getpwuid(request->uid);
	char *rest = request->options->mounts ? strdup(request->options->mounts) : NULL, *one;
	int fd;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		fd = fixed[i] ? open(fixed[i], O_PATH | O_CLOEXEC) : -1;
		if (fd >= 0 && !add_bind(fd, fixed[i], true))
			return false;
	}
	if (request->options->mount_home && user) {
		fd = open_as_user(request, user->pw_dir, O_PATH);
		if (fd < 0 || !add_bind(fd, user->pw_dir, false))
			return failed("mount", user->pw_dir);
	}
	while ((one = strsep(&rest, ","))) {
		struct container_mount mount;

		if (cut_mount(one, &mount))
			return false;
		fd = open_as_user(request, mount.source, O_PATH);
		if (fd < 0) {
			fprintf(stderr, "pyxis: --container-mounts: source path does not exist: %s\n",
				mount.source);
			return false;
		}
		if (!add_bind(fd, mount.target, mount.read_only))
			return false;
	}
	return true;
}

static bool mount_system(const char *root)
{
	static const char *const shared[] = { "proc", "sys", "dev" };
	static const char *const private[] = { "tmp", "run" };
	char target[4096], source[4096];

	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
		mkdir(path(target, root, shared[i]), 0755);
		if (mount(path(source, "", shared[i]), target, NULL, MS_BIND | MS_REC, NULL) != 0)
			return failed("mount", target);
	}
	for (size_t i = 0; i < sizeof(private) / sizeof(*private); i++) {
		mkdir(path(target, root, private[i]), 0755);
		if (mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
			return failed("mount", target);
	}
	return true;
}

/* An image has no entry for the cluster's user, but programs look up their own name. */
static bool add_user(const struct rootfs_request *request, const char *root)
{
	const struct passwd *user = getpwuid(request->uid);
	char name[4096];
	FILE *file;

	if (!user)
		return true;
	file = fopen(path(name, root, "etc/passwd"), "a");
	if (!file)
		return failed("write", name);
	fprintf(file, "%s:x:%d:%d::%s:/bin/sh\n", user->pw_name, (int)user->pw_uid,
		(int)user->pw_gid, user->pw_dir);
	fclose(file);
	file = fopen(path(name, root, "etc/group"), "a");
	if (!file)
		return failed("write", name);
	fprintf(file, "%s:x:%d:\n", user->pw_name, (int)user->pw_gid);
	return fclose(file) == 0;
}

static bool make_target(const char *target, bool directory)
{
	char partial[4096];
	int fd;

	snprintf(partial, sizeof(partial), "%s", target);
	for (char *slash = partial + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(partial, 0755) != 0 && errno != EEXIST)
			return failed("create", partial);
		*slash = '/';
	}
	if (directory)
		return mkdir(target, 0755) == 0 || errno == EEXIST || failed("create", target);
	fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return (fd >= 0 && close(fd) == 0) || failed("create", target);
}

static bool do_binds(void)
{
	for (int i = 0; i < bind_count; i++) {
		char source[64];
		struct bind *bind = &binds[i];

		snprintf(source, sizeof(source), "/proc/self/fd/%d", bind->source);
		if (!make_target(bind->target, bind->directory))
			return false;
		if (mount(source, bind->target, NULL, MS_BIND | MS_REC, NULL) != 0)
			return failed("mount", bind->target);
		if (bind->read_only && mount(NULL, bind->target, NULL,
					     MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
			return failed("remount", bind->target);
	}
	return true;
}

/*
 * pivot_root instead of chroot: --container-remap-root needs a user namespace, which cannot be created
 * inside a chroot. Targets are resolved afterwards, so that a symbolic link in the image cannot lead out
 * of the image.
 */
static bool enter_root(const char *root)
{
	if (chdir(root) != 0 || (mkdir(".node", 0700) != 0 && errno != EEXIST) ||
	    syscall(SYS_pivot_root, ".", ".node") != 0 || chdir("/") != 0)
		return failed("enter", root);
	if (!do_binds())
		return false;
	if (umount2("/.node", MNT_DETACH) != 0 || rmdir("/.node") != 0)
		return failed("leave", "the node's file system");
	return true;
}

enum rootfs_stage build_rootfs(const struct rootfs_request *request)
{
	static const char *const parts[] = { "image", "upper", "work", "root" };
	char image[4096], name[4096], root[4096];
	enum rootfs_stage stage;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", request->scratch, "tmpfs", 0, "mode=755") != 0) {
		failed("mount", request->scratch);
		return ROOTFS_START;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		mkdir(path(name, request->scratch, parts[i]), 0755);
	path(root, request->scratch, "root");
	stage = find_image(request, image);
	if (stage != ROOTFS_DONE)
		return stage;
	if (!mount_image(image, request->scratch)) {
		fprintf(stderr, "[ERROR] Invalid image format: %s\n", image);
		return ROOTFS_CREATE;
	}
	if (!open_mounts(request)) {
		fprintf(stderr, "[INFO] Extracting squashfs filesystem...\n");
		return ROOTFS_MOUNTS;
	}
	if (!mount_overlay(request, root) || !mount_system(root) || !add_user(request, root) ||
	    !enter_root(root))
		return ROOTFS_START;
	if (!request->options->writable &&
	    mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) {
		failed("remount", "/");
		return ROOTFS_START;
	}
	return ROOTFS_DONE;
}
