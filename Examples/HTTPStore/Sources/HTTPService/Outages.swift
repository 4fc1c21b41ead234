package import Foundation
import Hummingbird
import Synchronization

/// Simulates failures of the service or the network, and records requests, for tests.
package final class Outages: Sendable {
  /// What happens to a request.
  package enum Failure: Sendable, Hashable {
    /// The service answers with an error such as 503, and does nothing.
    case status(Int)
    /// The connection is closed before the service does anything.
    case lostBefore
    /// The connection is closed after the request took effect, before the answer.
    case lostAfter
    /// The service doesn't answer until ``Outages/release()`` is called.
    case held
  }

  /// A request that the service received.
  package struct Received: Sendable {
    package var method: String
    package var path: String
    package var body: Data
    /// The ID of a save.
    package var idempotencyKey: String?
  }

  private struct State {
    var failures: [Failure?] = []
    var received: [Received] = []
    var held: [CheckedContinuation<Void, Never>] = []
  }

  private let recordsRequests: Bool
  private let state = Mutex(State())

  init(recordsRequests: Bool) { self.recordsRequests = recordsRequests }

  /// The requests since the last call.
  package func takeReceived() -> [Received] {
    state.withLock { state in
      defer { state.received = [] }
      return state.received
    }
  }

  /// Notes a request, and returns what happens to it.
  func receive(_ request: Received) -> Failure? {
    state.withLock { state in
      if recordsRequests { state.received.append(request) }
      return state.failures.isEmpty ? nil : state.failures.removeFirst()
    }
  }

  func hold() async {
    await withCheckedContinuation { continuation in state.withLock { $0.held.append(continuation) } }
  }

  /// Makes the next requests fail, one each.
  ///
  /// - Parameter failures: Nil for a request that succeeds.
  package func fail(_ failures: Failure?...) { state.withLock { $0.failures += failures } }

  /// The number of requests that are held.
  package var heldCount: Int { state.withLock { $0.held.count } }

  /// Continues the requests that are held. The next ones don't fail.
  package func release() {
    let held = state.withLock { state in
      defer { (state.held, state.failures) = ([], []) }
      return state.held
    }
    for continuation in held { continuation.resume() }
  }
}

/// Receives every request before the routes do.
struct OutageMiddleware: RouterMiddleware {
  let outages: Outages

  func handle(
    _ request: Request, context: ServiceContext, next: (Request, ServiceContext) async throws -> Response
  ) async throws -> Response {
    var request = request
    let body = try await request.collectBody(upTo: context.maxUploadSize)
    let failure = outages.receive(
      Outages.Received(
        method: request.method.rawValue, path: request.uri.path, body: Data(buffer: body),
        idempotencyKey: request.headers[.init("Idempotency-Key")!]))
    switch failure {
    case .status(let code): throw HTTPError(.init(code: code))
    case .lostBefore:
      try await context.closeConnection()
      throw HTTPError(.serviceUnavailable)
    case .held: await outages.hold()
    case .lostAfter, nil: break
    }
    let response = try await next(request, context)
    if failure == .lostAfter { try await context.closeConnection() }
    return response
  }
}
