#if canImport(Glibc)
  package import Glibc
#elseif canImport(Darwin)
  package import Darwin
#endif

/// Calls of the operating system that tests need and Swift doesn't offer.
package enum System {
  package static var isRoot: Bool { geteuid() == 0 }

  /// Becomes a user without rights. Only root can, and only in a process of its own.
  package static func dropRights() -> Bool { setgid(65_534) == 0 && setuid(65_534) == 0 }

  /// Sets the permissions that new files of this process don't get.
  package static func setFileMask(_ mask: mode_t) { umask(mask) }

  /// Makes a folder the current one of this process.
  package static func enterFolder(_ path: String) { precondition(chdir(path) == 0) }

  /// A symbol of the C library that Swift hides.
  package static func symbol<Function>(_ name: String, as type: Function.Type) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: type) }
  }

  #if os(Linux)
    /// Makes later mounts visible only to this process. They are unmounted when it ends. Only root can, where it may.
    package static func leaveMounts() -> Bool {
      let newMounts: Int32 = 0x20000
      guard let unshare = symbol("unshare", as: (@convention(c) (Int32) -> Int32).self), unshare(newMounts) == 0 else { return false }
      return mount(nil, "/", nil, 1 << 18 | 1 << 14, nil) == 0
    }

    /// Mounts a disk in memory, or changes its options.
    package static func mountDisk(at folder: String, _ options: String, again: Bool = false) {
      precondition(mount("tmpfs", folder, "tmpfs", again ? 32 : 0, options) == 0, "No disk with \(options): errno \(errno)")
    }

    package static func unmountDisk(at folder: String) { umount2(folder, Int32(2)) }
  #endif

  /// Calls `fork`, which Swift hides, because a child has only the thread that forks.
  package static func fork() -> pid_t {
    guard let fork = symbol("fork", as: (@convention(c) () -> pid_t).self) else { preconditionFailure("The C library has no fork.") }
    let child = fork()
    precondition(child >= 0, "No fork: errno \(errno)")
    if child == 0 { limitTime() }
    return child
  }

  /// Ends this process if it is still running after a time that is enough for any busy machine. Each call begins the time again.
  ///
  /// A forked child begins with it, because it may wait for a lock of a thread that it doesn't have. A child that does much one after the
  /// other calls it for each part.
  package static func limitTime() { alarm(1200) }

  /// Runs `body` in a forked child and returns what it returned; -1 if a signal ended it.
  package static func inForkedChild(_ body: () -> Int32) -> Int32 {
    let child = fork()
    if child == 0 { _exit(body()) }
    var status: Int32 = 0
    waitpid(child, &status, 0)
    return status & 0x7F == 0 ? (status >> 8) & 0xFF : -1
  }

  /// The seconds of a clock that only goes forward.
  package static func seconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
