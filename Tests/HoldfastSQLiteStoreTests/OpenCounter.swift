#if os(Linux)
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// Counts how often any process opens a file.
  final class OpenCounter {
    private let descriptor: Int32

    init(_ path: String) {
      descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      precondition(inotify_add_watch(descriptor, path, UInt32(IN_OPEN)) >= 0)
    }

    deinit { close(descriptor) }

    /// The number of openings since the last call.
    func take() -> Int {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      var count = 0
      while true {
        let length = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress!, $0.count) }
        guard length > 0 else { return count }
        // A watch on a file has no names, so every event has the same length. The kernel merges equal adjacent events, so only zero is
        // exact.
        count += length / MemoryLayout<inotify_event>.size
      }
    }
  }
#endif
