import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// Excludes other threads and processes from a folder until it is released.
///
/// Only the user and root can write to the folder. On network file systems without locks, nothing is excluded.
final class FolderLock {
  let path: String
  private let handle: CInt
  /// The process that has the lock. A forked child shares it.
  private let owner = getpid()

  /// Locks a folder, which is created if it doesn't exist; nil if it shall not be created.
  ///
  /// - Throws: ``/HoldfastStore/StoreError``: `locked`, `notPermitted`, `diskFull`.
  init?(_ path: String, creates: Bool, to operation: String) throws {
    self.path = path
    func error(_ code: StoreError.Code, _ reason: String, _ number: CInt? = nil) -> StoreError {
      StoreError(
        code, operation: operation, path: path, reason: reason,
        cause: number.flatMap { POSIXErrorCode(rawValue: $0) }.map { POSIXError($0) },
        isRetryable: code == .locked || code == .diskFull)
    }
    while true {
      if creates && mkdir(path, 0o700) != 0 && errno != EEXIST {
        let number = errno, isFull = number == ENOSPC || number == EDQUOT
        throw error(
          isFull ? .diskFull : .notPermitted, "The folder can't be created. Check the free space and the permissions.", number)
      }
      let handle = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      if handle < 0 {
        let number = errno
        // Another process may have removed it.
        if number == ENOENT { if creates { continue } else { return nil } }
        let isOther = number == ENOTDIR || number == ELOOP
        throw error(.notPermitted, isOther ? "It isn't a folder. Remove it." : "The folder can't be opened. Check the permissions.", number)
      }
      var opened = stat(), found = stat()
      if fstat(handle, &opened) != 0 || opened.st_uid != geteuid() || opened.st_mode & 0o022 != 0 {
        close(handle)
        throw error(.notPermitted, "Another user owns the folder or can write to it, so its contents aren't used. Remove it.")
      }
      if flock(handle, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK {
        close(handle)
        throw error(.locked, "Another process or thread is working there. Wait until it has ended, then try again.")
      }
      // Its last user may have removed it before this lock was granted.
      if lstat(path, &found) == 0 && found.st_ino == opened.st_ino && found.st_dev == opened.st_dev {
        self.handle = handle
        return
      }
      close(handle)
    }
  }

  deinit {
    // Closing alone doesn't release it while a forked child has the descriptor.
    if owner == getpid() { _ = flock(handle, LOCK_UN) }
    close(handle)
  }
}
