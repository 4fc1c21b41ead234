// C library calls that Swift can't make in the same way on every platform: variadic functions, functions whose header
// isn't visible to Swift, and calls that differ between Linux and Darwin. If nothing else is specified, they return -1 and set
// errno on failure.
#ifndef HOLDFAST_CPOSIX_H
#define HOLDFAST_CPOSIX_H
#include <stddef.h>
#include <stdint.h>

// Calls openat(2) with a mode.
int holdfast_openat(int directory, const char *name, int flags, unsigned int mode);

// Calls flock(2), exclusively and without waiting. On some platforms, a struct of the same name hides flock from Swift.
int holdfast_lock(int file);
int holdfast_unlock(int file);

// Makes written data durable: fsync(2), or F_FULLFSYNC on Darwin if the file system supports it.
int holdfast_synchronize(int file);

// Reserves space without changing the size. Also returns 0 if the file system can't reserve space.
int holdfast_allocate(int file, int64_t size);

// Copies the access control list, the security label and the user's extended attributes of one open file to another. On Linux, removes
// the access control list of the other file if the source has none. Returns -1 if the list can't be copied or removed, or if memory is
// exhausted. Skips other attributes that can't be copied; on Darwin, returns -1 for these as well.
int holdfast_copy_attributes(int from, int to);

// Reserves addresses without memory. Using them is a fault. Returns NULL on failure. The size is a multiple of the page size.
void *holdfast_reserve(size_t size);
void holdfast_release(void *base, size_t size);

// Makes reserved addresses usable. Their bytes are zero.
int holdfast_open_pages(void *base, size_t size);

// Returns the memory of reserved addresses to the system. Using them is a fault again.
void holdfast_close_pages(void *base, size_t size);
#endif
