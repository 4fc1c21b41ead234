import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Resource limits of a test's own process.
package enum ProcessLimits {
  /// Limits this process.
  ///
  /// A process that hangs without using the processor is ended after an hour.
  ///
  /// - Parameters:
  ///   - memory: the maximum number of bytes of address space, besides what the process has.
  ///   - processorSeconds: the maximum processor time in seconds.
  package static func set(memory: Int, processorSeconds: UInt) {
    #if os(Linux)
      let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
      let pages = text.split(separator: " ").first.flatMap { Int($0) } ?? 0
      let most = rlim_t(pages * sysconf(Int32(_SC_PAGESIZE)) + memory)
      var space = rlimit(rlim_cur: most, rlim_max: most)
      setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &space)
      var time = rlimit(rlim_cur: rlim_t(processorSeconds), rlim_max: rlim_t(processorSeconds))
      setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &time)
    #endif
    alarm(3600)
  }

  /// Limits the size of every file that this process writes. A longer write fails with an error instead of a signal.
  package static func setFileSize(_ byteCount: Int) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: rlim_t(byteCount), rlim_max: rlim_t(byteCount))
    #if canImport(Glibc)
      precondition(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
    #else
      precondition(setrlimit(RLIMIT_FSIZE, &limit) == 0)
    #endif
  }
}
