// Whatever touches a path that has $HUNG in it waits until it is killed, as for a file server that does not answer.
//
// Every argument is passed on as it came, whatever its type: they are in registers, which has been so on every machine
// that this is run on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int pause(void);

static void wait_if_hung(const char *path) {
  const char *hung = getenv("HUNG");
  if (path && hung && strstr(path, hung))
    for (;;) pause();
}

typedef long any(long, long, long, long, long);
#define HANGS(name, path) \
  long name(long a, long b, long c, long d, long e) { \
    wait_if_hung((const char *)(path)); \
    return ((any *)dlsym(RTLD_NEXT, #name))(a, b, c, d, e); \
  }

HANGS(stat, a)
HANGS(stat64, a)
HANGS(lstat, a)
HANGS(lstat64, a)
HANGS(fstatat, b)
HANGS(fstatat64, b)
HANGS(statx, b)
HANGS(access, a)
HANGS(faccessat, b)
HANGS(open, a)
HANGS(open64, a)
HANGS(openat, b)
HANGS(openat64, b)
HANGS(opendir, a)
HANGS(fopen, a)
HANGS(fopen64, a)
HANGS(readlink, a)
HANGS(readlinkat, b)
HANGS(symlink, b)
HANGS(symlinkat, c)
HANGS(unlink, a)
HANGS(unlinkat, b)
