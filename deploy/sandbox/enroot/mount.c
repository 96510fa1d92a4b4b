/*
 * enroot-mount ROOT: performs the mounts of an fstab from stdin, below ROOT. Symbolic links in the image cannot lead out
 * of it. It needs the capabilities of a user namespace.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned long set, clear;
} known[] = {
	{ "bind", MS_BIND, 0 },		    { "rbind", MS_BIND | MS_REC, 0 },
	{ "remount", MS_REMOUNT, 0 },	    { "ro", MS_RDONLY, 0 },
	{ "rw", 0, MS_RDONLY },		    { "nosuid", MS_NOSUID, 0 },
	{ "suid", 0, MS_NOSUID },	    { "nodev", MS_NODEV, 0 },
	{ "dev", 0, MS_NODEV },		    { "noexec", MS_NOEXEC, 0 },
	{ "exec", 0, MS_NOEXEC },	    { "noatime", MS_NOATIME, 0 },
	{ "relatime", MS_RELATIME, 0 },	    { "sync", MS_SYNCHRONOUS, 0 },
	/* Without effect here: nothing is mounted on the node later. */
	{ "private", 0, 0 },		    { "rprivate", 0, 0 },
	{ "slave", 0, 0 },		    { "rslave", 0, 0 },
	{ "shared", 0, 0 },		    { "rshared", 0, 0 },
	{ "defaults", 0, 0 },		    { "nofail", 0, 0 },
	{ "silent", 0, 0 },		    { "x-detach", 0, 0 },
	{ "x-create=dir", 0, 0 },	    { "x-create=file", 0, 0 },
	{ "x-create=auto", 0, 0 },
};

static const char *root;
static int root_fd;

/* What is not known is left to the file system, and a bind mount ignores it. */
static unsigned long parse(const char *options, char *data, size_t size)
{
	char *text = strdup(options), *rest = text, *one;
	unsigned long flags = 0;

	*data = '\0';
	while ((one = strsep(&rest, ","))) {
		size_t i = 0, used = strlen(data);

		while (i < sizeof(known) / sizeof(*known) && strcmp(one, known[i].name) != 0)
			i++;
		if (i < sizeof(known) / sizeof(*known))
			flags = (flags & ~known[i].clear) | known[i].set;
		else if (*one)
			snprintf(data + used, size - used, "%s%s", used ? "," : "", one);
	}
	free(text);
	return flags;
}

static int open_below(const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };

	return syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

static bool create(const char *path, mode_t kind)
{
	char parent[4096];
	char *name;
	int fd = open_below(path);
	bool made;

	if (fd >= 0)
		return close(fd) == 0;
	snprintf(parent, sizeof(parent), "%s", path);
	name = strrchr(parent, '/');
	if (errno != ENOENT || !name || name[1] == '\0')
		return false;
	*name++ = '\0';
	if (*parent && !create(parent, S_IFDIR))
		return false;
	fd = open_below(*parent ? parent : "/");
	if (fd < 0)
		return false;
	made = (kind == S_IFDIR ? mkdirat(fd, name, 0755) : mknodat(fd, name, S_IFREG | 0644, 0)) == 0 ||
		errno == EEXIST;
	close(fd);
	return made;
}

static mode_t wanted_kind(const struct mntent *entry, unsigned long flags)
{
	struct stat source;

	if (hasmntopt(entry, "x-create=file"))
		return S_IFREG;
	if (hasmntopt(entry, "x-create=dir"))
		return S_IFDIR;
	if (!hasmntopt(entry, "x-create=auto"))
		return 0;
	if (!(flags & MS_BIND))
		return S_IFDIR;
	if (stat(entry->mnt_fsname, &source) != 0)
		return 0;
	return S_ISDIR(source.st_mode) ? S_IFDIR : S_IFREG;
}

/* A user namespace may not take these away from a mount of the node. */
static unsigned long locked_flags(const char *path)
{
	struct statvfs found;

	if (statvfs(path, &found) != 0)
		return 0;
	return (found.f_flag & ST_NOSUID ? MS_NOSUID : 0) | (found.f_flag & ST_NODEV ? MS_NODEV : 0) |
		(found.f_flag & ST_NOEXEC ? MS_NOEXEC : 0) | (found.f_flag & ST_RDONLY ? MS_RDONLY : 0) |
		(found.f_flag & ST_NOATIME ? MS_NOATIME : 0) |
		(found.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0) |
		(found.f_flag & ST_RELATIME ? MS_RELATIME : 0);
}

/* Opened again each time: the last mount covers what the path named before. */
static bool mount_on(const char *path, const char *source, const char *type, unsigned long flags, const char *data)
{
	char target[64];
	int fd = open_below(path);
	bool mounted;

	if (fd < 0)
		return false;
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	if (flags & MS_REMOUNT)
		flags |= locked_flags(target);
	mounted = (type ? mount(source, target, type, flags, data) : umount2(target, MNT_DETACH)) == 0;
	close(fd);
	return mounted;
}

static bool perform(const struct mntent *entry, unsigned long flags, const char *data)
{
	const char *path = entry->mnt_dir, *source = entry->mnt_fsname;

	if (hasmntopt(entry, "x-detach"))
		return mount_on(path, NULL, NULL, 0, NULL);
	if (!(flags & MS_BIND) || (flags & MS_REMOUNT))
		return mount_on(path, source, entry->mnt_type, flags & ~MS_REC, data);
	return mount_on(path, source, "none", flags & (MS_BIND | MS_REC), NULL) &&
		(!(flags & ~(MS_BIND | MS_REC)) ||
		 mount_on(path, NULL, "none", (flags & ~MS_REC) | MS_REMOUNT, data));
}

static void mount_entry(const struct mntent *entry)
{
	char data[4096];
	const char *slash = *entry->mnt_dir == '/' ? "" : "/";
	unsigned long flags = parse(entry->mnt_opts, data, sizeof(data));
	mode_t kind = wanted_kind(entry, flags);

	if (kind && !create(entry->mnt_dir, kind)) {
		if (hasmntopt(entry, "nofail"))
			return;
		if (errno == ENOTDIR || errno == ELOOP)
			err(EXIT_FAILURE, "failed to resolve path: %s%s%s", root, slash, entry->mnt_dir);
		err(EXIT_FAILURE, "failed to create %s: %s%s%s", kind == S_IFDIR ? "directory" : "file", root, slash,
		    entry->mnt_dir);
	}
	if (!perform(entry, flags, data) && !hasmntopt(entry, "nofail"))
		err(EXIT_FAILURE, "failed to %smount: %s at %s%s%s", hasmntopt(entry, "x-detach") ? "un" : "",
		       entry->mnt_fsname, root, slash, entry->mnt_dir);
}

int main(int argc, char **argv)
{
	struct mntent *entry;

	if (argc != 2)
		errx(EXIT_FAILURE, "usage: enroot-mount ROOT <FSTAB");
	root = argv[1];
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		err(EXIT_FAILURE, "failed to open: %s", root);
	while ((entry = getmntent(stdin))) {
		/* Pyxis writes "SRC DST OPTIONS", without a type. */
		if (*entry->mnt_opts == '\0') {
			entry->mnt_opts = entry->mnt_type;
			entry->mnt_type = strcmp(entry->mnt_fsname, "tmpfs") == 0 ? "tmpfs" : "none";
		}
		mount_entry(entry);
	}
	return 0;
}
