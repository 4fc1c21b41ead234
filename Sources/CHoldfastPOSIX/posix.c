#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CHoldfastPOSIX.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <copyfile.h>
#else
#include <sys/xattr.h>
#endif

int holdfast_openat(int directory, const char *name, int flags, unsigned int mode) { return openat(directory, name, flags, mode); }

int holdfast_lock(int file) { return flock(file, LOCK_EX | LOCK_NB); }

int holdfast_unlock(int file) { return flock(file, LOCK_UN); }

int holdfast_synchronize(int file) {
#ifdef F_FULLFSYNC
  if (fcntl(file, F_FULLFSYNC) == 0) return 0;
  if (errno != ENOTSUP && errno != EINVAL && errno != ENOTTY) return -1;
#endif
  return fsync(file);
}

int holdfast_allocate(int file, int64_t size) {
#ifdef __APPLE__
  fstore_t store = {F_ALLOCATEALL, F_PEOFPOSMODE, 0, size, 0};
  int result = fcntl(file, F_PREALLOCATE, &store);
#else
  // Not posix_fallocate: it writes every block itself if the file system can't reserve space.
  int result = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, size);
#endif
  return result == -1 && (errno == EOPNOTSUPP || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL) ? 0 : result;
}

void *holdfast_reserve(size_t size) {
  void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  return base == MAP_FAILED ? NULL : base;
}

void holdfast_release(void *base, size_t size) { munmap(base, size); }

int holdfast_open_pages(void *base, size_t size) { return mprotect(base, size, PROT_READ | PROT_WRITE); }

void holdfast_close_pages(void *base, size_t size) {
  // A new mapping in the same place has no memory, which MADV_DONTNEED doesn't ensure on Darwin.
  if (mmap(base, size, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0) == MAP_FAILED) mprotect(base, size, PROT_NONE);
}

#ifdef __APPLE__
int holdfast_copy_attributes(int from, int to) { return fcopyfile(from, to, NULL, COPYFILE_ACL | COPYFILE_XATTR); }
#else

static const char *const accessList = "system.posix_acl_access";

// The maximum size of a copied attribute value. In practice, none of the copied kinds is larger.
enum { largestValue = 65536 };

static int copy_attribute(int from, int to, const char *name, char *value) {
  ssize_t size = fgetxattr(from, name, value, largestValue);
  return size < 0 ? -1 : fsetxattr(to, name, value, (size_t)size, 0);
}

static int is_copied(const char *name) {
  return strcmp(name, accessList) == 0 || strcmp(name, "security.selinux") == 0 || strncmp(name, "user.", 5) == 0;
}

// A new file gets the default list of its folder, which would grant rights that the source doesn't grant.
static int remove_list(int to) {
  if (fgetxattr(to, accessList, NULL, 0) < 0) return 0;
  return fremovexattr(to, accessList);
}

int holdfast_copy_attributes(int from, int to) {
  // On the stack, because most files have no attributes.
  char names[4096];
  ssize_t length = flistxattr(from, names, sizeof names);
  if (length == 0) return remove_list(to);
  if (length < 0 && (errno == ENOTSUP || errno == ENOSYS)) return 0;
  char *value = malloc(largestValue);
  if (value == NULL) return -1;
  int result = 0;
  if (length < 0) {
    // The list is too long or unavailable. Copy at least the access control list.
    if (copy_attribute(from, to, accessList, value) != 0)
      result = errno == ENODATA ? remove_list(to) : errno == ENOTSUP ? 0 : -1;
  } else {
    int hasList = 0;
    for (const char *name = names; name < names + length; name += strlen(name) + 1) {
      if (strcmp(name, accessList) == 0) hasList = 1;
      if (is_copied(name) && copy_attribute(from, to, name, value) != 0 && strcmp(name, accessList) == 0) result = -1;
    }
    if (!hasList && remove_list(to) != 0) result = -1;
  }
  int number = errno;
  free(value);
  errno = number;
  return result;
}
#endif
