#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// Identifies a running thread of this process. The ID of an ended thread may be reused.
public struct ThreadID: Hashable, Sendable {
  /// The number of the thread. It is never 0.
  public let number: UInt

  /// The calling thread.
  public static var current: ThreadID {
    #if canImport(Darwin) || canImport(Musl)
      // A pointer there, and an integer elsewhere.
      ThreadID(number: UInt(bitPattern: pthread_self()))
    #else
      ThreadID(number: UInt(truncatingIfNeeded: pthread_self()))
    #endif
  }
}
