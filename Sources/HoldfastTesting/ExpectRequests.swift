public import Holdfast
import HoldfastStore
import Synchronization
public import Testing

/// Runs a closure, and records an issue if it sends more requests to stores than allowed.
///
/// A program that reads objects one by one sends a request for each. Such a budget fails when that happens, on every machine. Requests for
/// rows, relationships, fetches, permanent IDs, and saves count; see ``/Holdfast/RequestCounts``.
///
/// ```swift
/// let dogs = try context.fetch(Dog.self)
/// expectRequests(atMost: 1, to: context.persistentStoreCoordinator) { show(dogs.map { $0.owner?.name }) }
/// ```
///
/// The issue lists the requests. Requests that other tasks send to the coordinator at the same time count, too.
///
/// - Parameters:
///   - limit: The maximum number of requests; 0 for what must be answered from memory.
///   - coordinator: The coordinator. Defaults to that of ``TestContainer/current``.
///   - location: Where the issue is reported. Defaults to the line of the call.
///   - body: Sends the requests.
/// - Returns: The closure's result.
/// - Throws: The closure's error.
@discardableResult public func expectRequests<Result, Failure: Error>(
  atMost limit: Int, to coordinator: PersistentStoreCoordinator? = nil, sourceLocation location: SourceLocation = #_sourceLocation,
  _ body: () throws(Failure) -> Result
) throws(Failure) -> Result {
  let coordinator = coordinator ?? TestContainer.current.coordinator, record = RequestRecord()
  let observation = coordinator.observeRequests { record.add($0) }
  defer {
    observation.cancel()
    record.check(limit, location)
  }
  return try body()
}

/// Runs an asynchronous closure, and records an issue if it sends more requests to stores than allowed; see
/// ``expectRequests(atMost:to:sourceLocation:_:)``.
@discardableResult public func expectRequests<Result, Failure: Error>(
  atMost limit: Int, to coordinator: PersistentStoreCoordinator? = nil, isolation: isolated (any Actor)? = #isolation,
  sourceLocation location: SourceLocation = #_sourceLocation, _ body: () async throws(Failure) -> Result
) async throws(Failure) -> Result {
  let coordinator = coordinator ?? TestContainer.current.coordinator, record = RequestRecord()
  let observation = coordinator.observeRequests { record.add($0) }
  defer {
    observation.cancel()
    record.check(limit, location)
  }
  return try await body()
}

/// The requests during a test or a part of it. Several threads may send them.
final class RequestRecord: Sendable {
  private let traces = Mutex<[StoreTrace]>([])

  /// The requests up to now, in the order in which they ended.
  var all: [StoreTrace] { traces.withLock { $0 } }

  func removeAll() { traces.withLock { $0 = [] } }

  func add(_ trace: StoreTrace) {
    // The commit belongs to the request that prepared the save. Opening and closing aren't the program's reads.
    switch trace.operation {
    case .fetch, .rows, .relationships, .reserveKeys, .prepare, .optional: traces.withLock { $0.append(trace) }
    default: break
    }
  }

  /// Records an issue if there are more requests than allowed.
  func check(_ limit: Int, _ location: SourceLocation) {
    if let excess = excess(over: limit) { Issue.record("\(excess)", sourceLocation: location) }
  }

  /// The requests as text if there are more than allowed; nil otherwise.
  func excess(over limit: Int) -> String? {
    let traces = traces.withLock { $0 }
    if traces.count <= limit { return nil }
    let list = traces.prefix(20).map { "  \(Self.line($0))" }.joined(separator: "\n")
    let rest = traces.count > 20 ? "\n  and \(traces.count - 20) more" : ""
    let sent = "\(traces.count) \(traces.count == 1 ? "request was" : "requests were") sent"
    return "\(sent), but at most \(limit) \(limit == 1 ? "is" : "are") allowed:\n\(list)\(rest)"
  }

  private static func line(_ trace: StoreTrace) -> String {
    let name = trace.requestName ?? trace.operation.rawValue
    let subject = [trace.entity, trace.relationship ?? trace.property].compactMap { $0 }.joined(separator: ".")
    let counts = [trace.requestedCount.map { "\($0) requested" }, trace.returnedCount.map { "\($0) returned" }].compactMap { $0 }
    return ([name, subject].filter { !$0.isEmpty }.joined(separator: " ")) + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
  }
}
