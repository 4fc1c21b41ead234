internal import BenchmarkRunner
internal import Holdfast
internal import HoldfastStore

/// The work of one measuring process: opens the store, starts clocks, and reports figures and counts.
///
/// The clock starts with ``begin()``, before or after ``open(_:_:)`` depending on the phase.
final class StoreRun {
  let context: WorkloadContext
  private let kind: StoreKind
  /// Nil if times are measured rather than counts.
  private let counter: RequestCounter?
  private var classes: [ManagedObject.Type] = []
  private var coordinator: PersistentStoreCoordinator?
  private var mark = Mark.begin()
  private var requestsBefore = 0
  private var statementsBefore = 0
  private var operationsBefore = OperationCounts()

  init(_ kind: StoreKind, _ context: WorkloadContext) {
    self.kind = kind
    self.context = context
    counter = context.isCounting ? RequestCounter() : nil
    if context.isCounting { OperationCounts.start() }
  }

  /// Opens the store and creates a context.
  func open(_ model: ManagedObjectModel, _ classes: [ManagedObject.Type]) throws -> ManagedObjectContext {
    let description = counter?.counting(kind, at: context.path) ?? kind.describe(context.path)
    coordinator = try PersistentStoreCoordinator(model: model, store: description)
    self.classes = classes
    return try newContext()
  }

  /// Creates another context without objects. The store must be open.
  func newContext() throws -> ManagedObjectContext {
    guard let coordinator else { preconditionFailure("A context was created before the store was opened.") }
    return try ManagedObjectContext(coordinator: coordinator, classes: classes)
  }

  /// Closes the store and releases it.
  func close() throws {
    try coordinator?.close()
    coordinator = nil
  }

  /// Starts the clock.
  func begin() {
    requestsBefore = counter?.total ?? 0
    statementsBefore = counter?.statements ?? 0
    mark = Mark.begin()
    // Last, because reading the memory figures allocates. The time of a process that counts isn't used.
    if counter != nil { operationsBefore = .now }
  }

  /// The figure since the clock was started, without a checksum. Use it if computing the answer isn't part of the phase.
  func figure(_ name: String) -> Figure {
    // First, because reading the memory figures allocates.
    let operations = counter == nil ? OperationCounts() : OperationCounts.now - operationsBefore
    var figure = mark.figure(name, check: 0)
    if let counter {
      figure.allocations = operations.allocations
      figure.synchronizations = operations.synchronizations
      figure.requests = counter.total - requestsBefore
      figure.statements = counter.statements.map { $0 - statementsBefore }
    }
    return figure
  }

  /// A second clock, for a part of the interval.
  func split() -> Mark { Mark.begin() }

  /// The figure since a second clock was started, without a checksum or counts.
  func figure(_ name: String, since mark: Mark) -> Figure { mark.figure(name, check: 0) }

  /// The figure since a second clock was started, to the end of a figure since the clock was started. Without counts.
  func figure(_ name: String, since part: Mark, endingWith figure: Figure) -> Figure {
    part.figure(name, endingWith: figure, since: mark)
  }

  /// Reports the figure since the clock was started.
  func report(_ name: String, check: UInt64) { report(figure(name), check: check) }

  /// Reports a figure that was taken before.
  func report(_ figure: Figure, check: UInt64) {
    var figure = figure
    figure.check = check
    context.report(figure)
  }
}
