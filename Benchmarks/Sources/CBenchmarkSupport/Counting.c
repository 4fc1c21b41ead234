// Counts allocations, fsync and fdatasync calls in this process, including every library it uses. These definitions
// override the C library's functions and forward to it.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "BenchmarkSupport.h"
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#ifdef __linux__
#include <features.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static atomic_int isCounting;
static atomic_long allocationCount;
static atomic_long synchronizationCount;

void holdfast_benchmark_start_counting(void) { atomic_store(&isCounting, 1); }

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OTHER_ALLOCATOR 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HAS_OTHER_ALLOCATOR)
extern void *__libc_malloc(size_t count);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t count);
extern void *__libc_memalign(size_t alignment, size_t count);

static inline void countAllocation(void) {
  if (__builtin_expect(atomic_load_explicit(&isCounting, memory_order_relaxed), 0))
    atomic_fetch_add_explicit(&allocationCount, 1, memory_order_relaxed);
}

void *malloc(size_t count) {
  countAllocation();
  return __libc_malloc(count);
}

void *calloc(size_t count, size_t size) {
  countAllocation();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t count) {
  countAllocation();
  return __libc_realloc(old, count);
}

void *memalign(size_t alignment, size_t count) {
  countAllocation();
  return __libc_memalign(alignment, count);
}

void *aligned_alloc(size_t alignment, size_t count) {
  countAllocation();
  return __libc_memalign(alignment, count);
}

int posix_memalign(void **result, size_t alignment, size_t count) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  countAllocation();
  void *memory = __libc_memalign(alignment, count);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}

int64_t holdfast_benchmark_allocations(void) { return atomic_load(&allocationCount); }
#else
int64_t holdfast_benchmark_allocations(void) { return -1; }
#endif

#if defined(__linux__)
int fsync(int descriptor) {
  atomic_fetch_add(&synchronizationCount, 1);
  return (int)syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor) {
  atomic_fetch_add(&synchronizationCount, 1);
  return (int)syscall(SYS_fdatasync, descriptor);
}

int64_t holdfast_benchmark_synchronizations(void) { return atomic_load(&synchronizationCount); }
#else
int64_t holdfast_benchmark_synchronizations(void) { return -1; }
#endif
