#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#else
  import Darwin
#endif

/// What the system counts for the current thread.
enum ThreadCounters {
  /// How many bytes the thread has asked files for, cached or not; nil where the system does not tell. (Linux: `rchar` in
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
