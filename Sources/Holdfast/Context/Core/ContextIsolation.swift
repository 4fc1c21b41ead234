import Dispatch

/// How a context detects use outside its isolation.
enum ContextIsolation: Sendable {
  /// Checked by the compiler only.
  case unchecked
  /// On the main actor.
  case main
  /// On the queue of a background context.
  case queue(QueueExecutor)

  /// Marks the main queue, where the main actor runs.
  private static let mainQueue: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Runs a closure in the isolation: now, if the caller is there, and soon otherwise.
  func run(_ body: @escaping @Sendable () -> Void) {
    switch self {
    case .unchecked: body()
    case .main: if DispatchQueue.getSpecific(key: Self.mainQueue) == true { body() } else { DispatchQueue.main.async(execute: body) }
    case .queue(let executor): if executor.isOnQueue { body() } else { executor.submit(body) }
    }
  }

  func check() {
    switch self {
    case .unchecked: return
    case .main: MainActor.preconditionIsolated("The view context was used off the main actor; use perform of a background context.")
    case .queue(let executor): executor.checkIsolated()
    }
  }
}
