/* A file system that fails on request, for LD_PRELOAD.
 *
 * FAILING_FS_FAULT names a control file; while it exists, its lines say what happens to calls on the database file and
 * its write-ahead log:
 *
 *   sync eio        fdatasync and fsync fail; what was written since the last one that succeeded is lost for good, as
 *                   Linux drops it: the next one succeeds
 *   once            ... and the control file is removed by the first call that fails
 *   kept            ... but nothing is lost after all: nobody can know
 *   write eio       writes and changes of size fail
 *   write enospc
 *   open eio        new opens fail
 *   read-only       as if it had been mounted anew, to be read only
 *   delay 3000      fdatasync and fsync take so many milliseconds more
 *
 * FAILING_FS_LOG names a file that gets a line for each open, close, sync and failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FDS 65536
#define DIRTY 65536

enum kind { NOT_OURS, DATABASE, LOG };

struct fault {
  int sync_error, write_error, open_error, open_to_write_error, once, kept;
  long delay_ms;
};

static unsigned char kinds[FDS];
/* What was written to the log since its last sync. */
static struct { off_t from; size_t length; } dirty[DIRTY];
static size_t dirty_count;
static pthread_mutex_t dirty_lock = PTHREAD_MUTEX_INITIALIZER;

static enum kind kind_of(const char *path) {
  size_t length = strlen(path);
  static const char database[] = "posthaste.db", log[] = "posthaste.db-wal";
  if (length >= sizeof log - 1 && strcmp(path + length - (sizeof log - 1), log) == 0) return LOG;
  if (length >= sizeof database - 1 && strcmp(path + length - (sizeof database - 1), database) == 0) return DATABASE;
  return NOT_OURS;
}

static enum kind kind_at(int fd) { return fd >= 0 && fd < FDS ? (enum kind)kinds[fd] : NOT_OURS; }

static void note(const char *what, int fd, const char *how) {
  const char *path = getenv("FAILING_FS_LOG");
  char line[128];
  if (path == NULL) return;
  int length = snprintf(line, sizeof line, "%s %d %s %s\n", what, fd, kind_at(fd) == LOG ? "log" : "database", how);
  int log = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log < 0) return;
  if (syscall(SYS_write, log, line, (size_t)length) < 0) abort();
  syscall(SYS_close, log);
}

static struct fault asked_for(void) {
  struct fault fault = {0};
  char text[256];
  const char *path = getenv("FAILING_FS_FAULT");
  if (path == NULL) return fault;
  int control = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (control < 0) return fault;
  long length = syscall(SYS_read, control, text, sizeof text - 1);
  syscall(SYS_close, control);
  text[length > 0 ? length : 0] = 0;
  if (strstr(text, "sync eio")) fault.sync_error = EIO;
  if (strstr(text, "write eio")) fault.write_error = EIO;
  if (strstr(text, "write enospc")) fault.write_error = ENOSPC;
  if (strstr(text, "open eio")) fault.open_error = EIO;
  if (strstr(text, "read-only")) fault.write_error = fault.open_to_write_error = EROFS;
  fault.once = strstr(text, "once") != NULL;
  fault.kept = strstr(text, "kept") != NULL;
  const char *delay = strstr(text, "delay ");
  if (delay != NULL) fault.delay_ms = atol(delay + 6);
  return fault;
}

static int opened(int fd, const char *path) {
  if (fd >= 0 && fd < FDS) {
    kinds[fd] = (unsigned char)kind_of(path);
    if (kinds[fd] != NOT_OURS) note("open", fd, "ok");
  }
  return fd;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
  if (kind_of(path) != NOT_OURS) {
    struct fault fault = asked_for();
    int error = fault.open_error;
    if (error == 0 && (flags & O_ACCMODE) != O_RDONLY) error = fault.open_to_write_error;
    if (error != 0) {
      note("open", -1, "failed");
      errno = error;
      return -1;
    }
  }
  return opened((int)syscall(SYS_openat, folder, path, flags, mode), path);
}

#define OPEN(name)                                                             \
  int name(const char *path, int flags, ...) {                                 \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;  \
    va_end(more);                                                              \
    return open_at(AT_FDCWD, path, flags, mode);                               \
  }
OPEN(open)
OPEN(open64)

int close(int fd) {
  if (kind_at(fd) != NOT_OURS) {
    note("close", fd, "ok");
    kinds[fd] = NOT_OURS;
  }
  return (int)syscall(SYS_close, fd);
}

/* The page is clean now, and what the disk has is not what was written. */
static void lose(int fd) {
  static const char zeroes[65536];
  for (size_t i = 0; i < dirty_count; i++) {
    size_t length = dirty[i].length < sizeof zeroes ? dirty[i].length : sizeof zeroes;
    if (syscall(SYS_pwrite64, fd, zeroes, length, dirty[i].from) < 0) abort();
  }
}

static int sync_by(long call, int fd) {
  enum kind kind = kind_at(fd);
  if (kind == NOT_OURS) return (int)syscall(call, fd);
  struct fault fault = asked_for();
  if (fault.delay_ms > 0) {
    struct timespec wait = {fault.delay_ms / 1000, fault.delay_ms % 1000 * 1000000};
    nanosleep(&wait, NULL);
  }
  pthread_mutex_lock(&dirty_lock);
  if (fault.sync_error != 0) {
    if (kind == LOG && !fault.kept) lose(fd);
    if (kind == LOG) dirty_count = 0;
    pthread_mutex_unlock(&dirty_lock);
    if (fault.once) unlink(getenv("FAILING_FS_FAULT"));
    note("sync", fd, "failed");
    errno = fault.sync_error;
    return -1;
  }
  if (kind == LOG) dirty_count = 0;
  pthread_mutex_unlock(&dirty_lock);
  note("sync", fd, "ok");
  return (int)syscall(call, fd);
}

int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }
int fsync(int fd) { return sync_by(SYS_fsync, fd); }

/* 0 if it may go on. */
static int refuse_write(int fd) {
  if (kind_at(fd) == NOT_OURS) return 0;
  struct fault fault = asked_for();
  if (fault.write_error == 0) return 0;
  if (fault.once) unlink(getenv("FAILING_FS_FAULT"));
  note("write", fd, "failed");
  errno = fault.write_error;
  return -1;
}

static ssize_t write_at(int fd, const void *bytes, size_t length, off_t from) {
  if (refuse_write(fd) != 0) return -1;
  if (kind_at(fd) == LOG) {
    pthread_mutex_lock(&dirty_lock);
    if (dirty_count == DIRTY) abort();
    dirty[dirty_count].from = from;
    dirty[dirty_count++].length = length;
    pthread_mutex_unlock(&dirty_lock);
  }
  return syscall(SYS_pwrite64, fd, bytes, length, from);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t from) { return write_at(fd, bytes, length, from); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t from) { return write_at(fd, bytes, length, from); }

ssize_t write(int fd, const void *bytes, size_t length) {
  if (kind_at(fd) != NOT_OURS) return write_at(fd, bytes, length, lseek(fd, 0, SEEK_CUR));
  return syscall(SYS_write, fd, bytes, length);
}

int ftruncate(int fd, off_t length) {
  if (refuse_write(fd) != 0) return -1;
  return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }
