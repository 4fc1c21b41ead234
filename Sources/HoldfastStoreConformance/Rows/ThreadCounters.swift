#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// System counters for the current thread.
enum ThreadCounters {
  /// The number of bytes the thread has read from files, cached or not; nil if the system doesn't report it. (Linux: `rchar` in
  /// `/proc/thread-self/io`.)
  static func bytesRead() -> Int? {
    guard let file = fopen("/proc/thread-self/io", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.hasPrefix("rchar: ") { return Int(text.dropFirst(7).prefix { $0.isNumber }) }
    }
    return nil
  }
}
