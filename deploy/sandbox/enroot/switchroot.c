/*
 * enroot-switchroot ENVIRONMENT ROOTFS COMMAND...: makes ROOTFS the root, takes the environment from a file of NAME=VALUE
 * lines, and logs the user in: the image's shell runs /etc/rc as a login shell.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <paths.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void load_environment(const char *name)
{
	FILE *file = fopen(name, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		err(EXIT_FAILURE, "failed to load environment: %s", name);
	clearenv();
	while (getline(&line, &size, file) >= 0) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = '\0';
		value[strcspn(value, "\n")] = '\0';
		setenv(line, value, 1);
	}
	fclose(file);
}

/* pivot_root, because a process that joins the namespace begins at its root. */
static void switch_root(const char *rootfs)
{
	int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (old < 0 || chdir(rootfs) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || fchdir(old) != 0 ||
	    mount(NULL, ".", NULL, MS_REC | MS_SLAVE, NULL) != 0 || umount2(".", MNT_DETACH) != 0 ||
	    chdir("/") != 0)
		err(EXIT_FAILURE, "failed to switch root: %s", rootfs);
	close(old);
}

static void drop_privileges(void)
{
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		err(EXIT_FAILURE, "failed to drop privileges");
}

/* The variables of a login. Those of the image override them. */
static void log_in(void)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *user;
	const char *home;

	while (file && (user = fgetpwent(file))) {
		if (user->pw_uid != geteuid())
			continue;
		setenv("HOME", user->pw_dir, 0);
		setenv("SHELL", user->pw_shell, 0);
		setenv("USER", user->pw_name, 0);
		setenv("LOGNAME", user->pw_name, 0);
		break;
	}
	if (file)
		fclose(file);
	setenv("TERM", "dumb", 0);
	setenv("PATH", _PATH_DEFPATH, 0);
	home = getenv("HOME");
	if (home && *home && chdir(home) != 0)
		err(EXIT_FAILURE, "failed to change directory: %s", home);
}

int main(int argc, char **argv)
{
	char name[256];
	const char *shell;
	char **words;
	int count = 0;

	if (argc < 4)
		errx(EXIT_FAILURE, "usage: enroot-switchroot ENVIRONMENT ROOTFS COMMAND...");
	load_environment(argv[1]);
	switch_root(argv[2]);
	drop_privileges();
	log_in();
	shell = getenv("SHELL");
	if (!shell || access(shell, X_OK) != 0)
		shell = "/bin/sh";
	snprintf(name, sizeof(name), "-%s", strrchr(shell, '/') ? strrchr(shell, '/') + 1 : shell);
	words = calloc(argc + 4, sizeof(*words));
	words[count++] = name;
	if (access("/etc/rc", F_OK) == 0) {
		words[count++] = "/etc/rc";
	} else {
		words[count++] = "-c";
		words[count++] = "exec \"$@\"";
		words[count++] = name + 1;
	}
	for (int i = 3; i < argc; i++)
		words[count++] = argv[i];
	execv(shell, words);
	err(EXIT_FAILURE, "failed to execute: %s", shell);
}
