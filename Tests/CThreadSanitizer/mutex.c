// What the thread sanitizer must know of Swift's Mutex.
//
// Swift's Mutex locks and unlocks with atomic operations, which the sanitizer sees. If several threads want it, the Synchronization library
// waits in the kernel, and the sanitizer, which doesn't see the library's code, reports everything that the mutex guards as a race. These
// functions take the place of the library's, and tell it. They are linked into the tests only if these are compiled for the sanitizer.
//
// The names and the calling convention are those of Swift's stable interface on 64-bit Linux: `_MutexHandle._lockSlow(_:)` and
// `_MutexHandle._unlockSlow()`, whose `self` is the address of the word with the owner's thread.

#if defined(__linux__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SWIFT_CALL __attribute__((swiftcall))
#define SWIFT_SELF __attribute__((swift_context))

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

SWIFT_CALL void holdfastLockSlow(uint32_t thread, SWIFT_SELF void *word) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT_CALL void holdfastUnlockSlow(SWIFT_SELF void *word) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");

SWIFT_CALL void holdfastLockSlow(uint32_t thread, SWIFT_SELF void *word) {
  while (syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, NULL) != 0) {
    // A signal, or an owner that is ending. Anything else is a mistake, such as locking a mutex twice.
    if (errno != EINTR && errno != EAGAIN) abort();
  }
  __tsan_acquire(word);
}

SWIFT_CALL void holdfastUnlockSlow(SWIFT_SELF void *word) {
  __tsan_release(word);
  while (syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE) != 0) {
    if (errno != EINTR && errno != EAGAIN) abort();
  }
}

#endif
#endif
