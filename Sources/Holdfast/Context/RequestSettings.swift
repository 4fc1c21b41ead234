import HoldfastStore

/// The options of a context's requests to stores.
///
/// Options without a deadline are created once, because most requests have none.
struct RequestSettings {
  /// Cancels fetches of contexts outside ``BackgroundContext/perform(_:)``. Never cancelled itself, so it only observes the current task.
  private static let currentTask = RequestCancellation()
  private static let cancellable = RequestOptions(cancellation: currentTask)

  /// The maximum duration of a request; nil for no maximum.
  var timeout: Duration?
  /// The context's name; nil if it has none.
  var label: String? { didSet { update() } }
  /// Cancels the fetches of the closure in progress.
  var cancellation = currentTask { didSet { update() } }

  private var fetch = RequestSettings.cancellable
  private var other = RequestOptions.none

  /// The options of a fetch that begins now.
  var ofFetch: RequestOptions {
    timeout == nil ? fetch : RequestOptions(deadline: deadline, cancellation: cancellation, label: label)
  }

  /// The options of a fault or a save that begins now. They aren't cancelled.
  var ofOthers: RequestOptions { timeout == nil ? other : RequestOptions(deadline: deadline, label: label) }

  private var deadline: ContinuousClock.Instant? { timeout.map { .now + $0 } }

  private mutating func update() {
    fetch = RequestOptions(cancellation: cancellation, label: label)
    other = RequestOptions(label: label)
  }
}

extension ManagedObjectContext {
  /// Runs a closure whose fetches end when a cancellation happens.
  func cancelling<Result>(_ cancellation: RequestCancellation, _ body: () -> Result) -> Result {
    let before = requests.cancellation
    requests.cancellation = cancellation
    defer { requests.cancellation = before }
    return body()
  }
}
