/// How a context detects use outside its isolation.
enum ContextIsolation: Sendable {
  /// Checked by the compiler only.
  case unchecked
  /// On the main actor.
  case main
  /// On the queue of a background context.
  case queue(QueueExecutor)

  func check() {
    switch self {
    case .unchecked: return
    case .main: MainActor.preconditionIsolated("The view context was used off the main actor; use perform of a background context.")
    case .queue(let executor):
      precondition(executor.isIsolatingCurrentContext() == true, "A background context was used outside its perform.")
    }
  }
}
