import HoldfastStore

/// The options of a context's requests to stores.
///
/// Requests without a deadline reuse the same options. A deadline differs for each request.
struct RequestSettings {
  /// The cancellation of fetches outside ``BackgroundContext/perform(_:)``. Only cancelling the current task cancels these fetches.
  private static let currentTask = RequestCancellation()
  private static let cancellable = RequestOptions(cancellation: currentTask)

  /// The maximum duration of a request; nil for no maximum.
  var timeout: Duration?
  /// The context's name; nil if it has none.
  var label: String? { didSet { update() } }
  /// The author of the context's saves; nil if it has none.
  var author: String?
  /// Cancels the fetches of the closure in progress.
  var cancellation = currentTask { didSet { update() } }

  private var fetch = RequestSettings.cancellable
  private var other = RequestOptions.none

  /// The options of a fetch that begins now.
  var ofFetch: RequestOptions {
    timeout == nil ? fetch : RequestOptions(deadline: deadline, cancellation: cancellation, label: label)
  }

  /// The options of a fault or a save that begins now. They have no cancellation.
  var ofOthers: RequestOptions { timeout == nil ? other : RequestOptions(deadline: deadline, label: label) }

  /// The options of a request that fires a fault because a property is accessed.
  func ofFault(_ property: String) -> RequestOptions { RequestOptions(deadline: deadline, label: label, property: property) }

  private var deadline: ContinuousClock.Instant? { timeout.map { .now + $0 } }

  private mutating func update() {
    fetch = RequestOptions(cancellation: cancellation, label: label)
    other = RequestOptions(label: label)
  }
}

extension ContextCore {
  /// Runs a closure. The cancellation cancels its fetches, also those of children, whose requests are sent to the same stores.
  func cancelling<Result>(_ cancellation: RequestCancellation, _ body: () -> Result) -> Result {
    let before = requests.cancellation
    setCancellation(cancellation)
    defer { setCancellation(before) }
    return body()
  }

  private func setCancellation(_ cancellation: RequestCancellation) {
    requests.cancellation = cancellation
    for child in children?.cores ?? [] { child.setCancellation(cancellation) }
  }
}
