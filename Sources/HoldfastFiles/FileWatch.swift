import Dispatch
public import HoldfastStore
import Synchronization

/// Looks for changes soon after a file, or one whose name begins with its name, may have changed.
///
/// A change may not be visible yet when the system reports it: SQLite waits for the disk between writing its log and publishing the commit,
/// which the system doesn't report. So each change is followed by further looks, at growing intervals, until the next change. From 30 seconds
/// on, each interval is as long as all before it together. A change is therefore found within twice the time that it takes to become visible.
/// A file that doesn't change for a day costs 20 looks; where the system reports no changes, one each second. Releasing the watch ends it.
public final class FileWatch: Sendable {
  /// The intervals between the first looks that follow a change, in milliseconds.
  private static let firstIntervals = [1, 4, 20, 100, 875, 4000, 25_000]
  /// The sum of the first intervals, in milliseconds.
  private static let firstSpan = 30_000

  /// The interval before a look that follows a change, in milliseconds. The first look has number 0. An interval is at most 23 days.
  static func interval(beforeLook number: Int) -> Int {
    number < firstIntervals.count ? firstIntervals[number] : firstSpan << min(number - firstIntervals.count, 16)
  }

  private let find: @Sendable () -> StoreChange?
  private let report: @Sendable (StoreChange) -> Void
  /// Whether looks take place. Held during each of them.
  private let isActive = Mutex(true)
  /// Increases with each change in the folder.
  private let changeCount = Atomic(0)
  /// Whether a look is queued that hasn't begun.
  private let isLookQueued = Atomic(false)
  /// Whether the first of the looks that follow the last changes is queued and hasn't begun.
  private let isFollowUpQueued = Atomic(false)
  private let folder = Mutex<FolderWatch?>(nil)
  private let queue = DispatchQueue(label: "holdfast.looks")

  /// Begins to watch a file, and looks for the first time.
  ///
  /// - Parameters:
  ///   - path: The path of the file, with its folder.
  ///   - find: Looks for changes; nil if there are none. One call at a time, on a queue of the watch. Must not end the watch.
  ///   - report: Receives the changes that were found, in order. A watch that ends doesn't wait for it.
  /// - Throws: ``/HoldfastStore/StoreError`` if the system refuses, for example because too many folders are watched.
  public init(
    path: String, find: @escaping @Sendable () -> StoreChange?, report: @escaping @Sendable (StoreChange) -> Void
  ) throws(StoreError) {
    (self.find, self.report) = (find, report)
    let place = ResolvedFilePath(splitting: path)
    let watch = try FolderWatch(
      folder: place.folder, prefix: place.name, onChange: { [weak self] in self?.noteChange() },
      onTick: { [weak self] in self?.lookSoon() })
    self.folder.withLock { $0 = watch }
    noteChange()
  }

  /// Ends the watch. Waits for a look that is in progress.
  public func cancel() {
    folder.withLock { $0?.cancel() }
    isActive.withLock { $0 = false }
  }

  /// Queues the looks that follow a change. Changes can be more frequent than looks, so a change shares a look that hasn't begun.
  func noteChange() {
    changeCount.add(1, ordering: .relaxed)
    lookSoon()
    if isFollowUpQueued.exchange(true, ordering: .acquiringAndReleasing) { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(FileWatch.interval(beforeLook: 0))) { [weak self] in
      guard let self else { return }
      _ = isFollowUpQueued.exchange(false, ordering: .acquiringAndReleasing)
      let count = changeCount.load(ordering: .relaxed)
      look()
      lookAgain(1, after: count)
    }
  }

  private func lookSoon() {
    // A look that hasn't begun yet will find this change, too.
    if isLookQueued.exchange(true, ordering: .acquiringAndReleasing) { return }
    // One queue, so that reports come in order.
    queue.async { [weak self] in
      guard let self else { return }
      _ = isLookQueued.exchange(false, ordering: .acquiringAndReleasing)
      look()
    }
  }

  private func lookAgain(_ number: Int, after count: Int) {
    queue.asyncAfter(deadline: .now() + .milliseconds(FileWatch.interval(beforeLook: number))) { [weak self] in
      // A later change has its own looks.
      guard let self, changeCount.load(ordering: .relaxed) == count else { return }
      look()
      lookAgain(number + 1, after: count)
    }
  }

  private func look() {
    if let change = isActive.withLock({ $0 ? find() : nil }) { report(change) }
  }
}
