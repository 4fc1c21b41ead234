#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "BenchmarkSupport.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

extern char **environ;

int holdfast_benchmark_is_terminal(int descriptor) { return isatty(descriptor); }

int holdfast_benchmark_columns(int descriptor) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_col) return 80;
  return size.ws_col;
}

int holdfast_benchmark_own_path(char *path, uint32_t size) {
#ifdef __APPLE__
  return _NSGetExecutablePath(path, &size);
#else
  ssize_t count = readlink("/proc/self/exe", path, size - 1);
  if (count < 0) return -1;
  path[count] = 0;
  return 0;
#endif
}

int holdfast_benchmark_write(int descriptor, const void *bytes, uint64_t count) {
  const char *next = bytes;
  while (count) {
    ssize_t written = write(descriptor, next, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    next += written;
    count -= (uint64_t)written;
  }
  return 0;
}

int64_t holdfast_benchmark_file_size(const char *path) {
  struct stat file;
  return stat(path, &file) ? -1 : (int64_t)file.st_size;
}

int holdfast_benchmark_synchronize(const char *path) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int error = fsync(descriptor) ? errno : 0;
  close(descriptor);
  return error;
}

// Opens a pipe with close-on-exec ends. A process started at the same time would otherwise inherit them and keep the pipe open.
static int closed_on_exec(int ends[2]) {
#ifdef __linux__
  return pipe2(ends, O_CLOEXEC);
#else
  if (pipe(ends)) return -1;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return 0;
#endif
}

int holdfast_benchmark_spawn(const char *path, char *const arguments[], int *pid, int *output) {
  int ends[2];
  if (closed_on_exec(ends)) return errno;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child;
  int failure = posix_spawnp(&child, path, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure) {
    close(ends[0]);
    return failure;
  }
  *pid = child;
  *output = ends[0];
  return 0;
}

int64_t holdfast_benchmark_read(int descriptor, void *bytes, uint64_t count, double seconds) {
  struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
  int ready = poll(&wanted, 1, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
  if (ready == 0) return -2;
  if (ready < 0) return -1;
  return read(descriptor, bytes, count);
}

int holdfast_benchmark_wait(int pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void holdfast_benchmark_kill(int pid) { kill(pid, SIGKILL); }

void holdfast_benchmark_close(int descriptor) { close(descriptor); }
