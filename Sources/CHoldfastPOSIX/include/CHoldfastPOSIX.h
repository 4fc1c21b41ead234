// What Swift cannot call of the C library in the same way on every platform: variadic functions, functions whose
// header Swift does not see, and calls that differ between Linux and Darwin. All return -1 and set errno on failure.
#ifndef HOLDFAST_CPOSIX_H
#define HOLDFAST_CPOSIX_H
#include <stdint.h>

// openat(2) with a mode.
int holdfast_openat(int directory, const char *name, int flags, unsigned int mode);

// flock(2), exclusively and without waiting; the name is also that of a struct, which hides it from Swift on some platforms.
int holdfast_lock(int file);
int holdfast_unlock(int file);

// Makes what was written durable: fsync(2), on Darwin F_FULLFSYNC where the file system has it.
int holdfast_synchronize(int file);

// Reserves space without changing the size. 0 also where the file system cannot reserve.
int holdfast_allocate(int file, int64_t size);

// Copies the access list, the security label and the user's extended attributes of one open file to another.
// -1 only when the source has an access list that the copy could not be given; all else is done as far as it goes.
int holdfast_copy_attributes(int from, int to);
#endif
