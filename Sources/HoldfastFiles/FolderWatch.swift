import Dispatch
public import HoldfastStore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#elseif canImport(Darwin)
  import Darwin
#endif

/// Calls a closure when files of a folder may have changed.
///
/// On Linux, the system reports changes within about a millisecond. Elsewhere, and if the system watches no more folders, the closure is called
/// every second. Changes that follow each other closely are reported together, and changes by the own process are reported, too. Releasing the
/// watch ends it.
///
/// The closure runs on a queue of the watch, one call at a time.
public final class FolderWatch: Sendable {
  private let end: @Sendable () -> Void

  /// Begins to watch a folder.
  ///
  /// - Parameters:
  ///   - folder: The path of the folder.
  ///   - prefix: The beginning of the names of the files that are watched.
  ///   - onChange: Called when at least one of these files was written, created, renamed or removed.
  /// - Throws: ``/HoldfastStore/StoreError`` if the folder can't be watched, for example because it doesn't exist.
  public convenience init(folder: String, prefix: String, onChange: @escaping @Sendable () -> Void) throws(StoreError) {
    try self.init(folder: folder, prefix: prefix, onChange: onChange, onTick: onChange)
  }

  /// - Parameter onTick: Called every second in the place of `onChange`, if the system reports no changes.
  convenience init(
    folder: String, prefix: String, onChange: @escaping @Sendable () -> Void, onTick: @escaping @Sendable () -> Void
  ) throws(StoreError) {
    let queue = DispatchQueue(label: "holdfast.watch")
    self.init(try FolderWatch.events(folder, prefix, queue, onChange) ?? FolderWatch.timer(queue, onTick))
  }

  init(_ source: any DispatchSourceProtocol) {
    source.resume()
    nonisolated(unsafe) let canceled = source  // because a source can be cancelled on any thread
    end = { canceled.cancel() }
  }

  /// A source of the system's events; nil if it has none, or no more of them.
  private static func events(
    _ folder: String, _ prefix: String, _ queue: DispatchQueue, _ onChange: @escaping @Sendable () -> Void
  ) throws(StoreError) -> (any DispatchSourceProtocol)? {
    #if os(Linux) || os(Android)
      guard let events = try FolderEvents(folder, prefix) else { return nil }
      let source = DispatchSource.makeReadSource(fileDescriptor: events.descriptor, queue: queue)
      source.setEventHandler { if events.take() { onChange() } }
      // The descriptor stays open until the source doesn't use it any more.
      source.setCancelHandler { events.close() }
      return source
    #else
      return nil
    #endif
  }

  static func timer(_ queue: DispatchQueue, _ onChange: @escaping @Sendable () -> Void) -> any DispatchSourceProtocol {
    let source = DispatchSource.makeTimerSource(queue: queue)
    source.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
    source.setEventHandler { onChange() }
    return source
  }

  deinit { end() }

  /// Ends the watch. A call of the closure that is in progress continues.
  public func cancel() { end() }
}

#if os(Linux) || os(Android)
  /// The system's queue of events in a folder.
  struct FolderEvents: Sendable {
    let descriptor: Int32
    private let prefix: [UInt8]

    /// Nil if the system has reached its limit of queues or folders, 128 queues for each user by default, or has none.
    init?(_ folder: String, _ prefix: String) throws(StoreError) {
      self.prefix = Array(prefix.utf8)
      descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
      if descriptor < 0 { return nil }
      let changes = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE
      if inotify_add_watch(descriptor, folder, UInt32(changes)) < 0 {
        let number = errno
        close()
        if number == ENOSPC { return nil }
        throw StoreError(
          .inputOutput, operation: "watch the folder", path: folder,
          reason: "\(ErrorNumber.describe(number)). Check the folder's access rights.")
      }
    }

    func close() { _ = POSIXCall.close(descriptor) }

    /// Removes all events, and returns whether any is of a file with the prefix.
    ///
    /// An event has a header of 16 bytes, whose last 4 are the length of the name that follows, with padding.
    func take() -> Bool {
      var buffer = [UInt8](repeating: 0, count: 16_384), isFound = false
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count <= 0 { return isFound }
        var start = 0
        while start + 16 <= count {
          let length = (0..<4).reduce(0) { $0 | Int(buffer[start + 12 + $1]) << ($1 * 8) }
          // An overflow of the queue has no name, and may concern any file.
          let name = buffer[start + 16..<min(count, start + 16 + length)]
          if length == 0 || name.starts(with: prefix) { isFound = true }
          start += 16 + length
        }
      }
    }
  }
#endif
