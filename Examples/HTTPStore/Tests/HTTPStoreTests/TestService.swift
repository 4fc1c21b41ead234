import Foundation
import HTTPService

/// A service on a port that the system chose. It runs until it is stopped, or until the process ends.
final class TestService: Sendable {
  let service: HTTPService
  let port: Int
  private let task: Task<Void, any Error>

  private init(_ service: HTTPService, port: Int, _ task: Task<Void, any Error>) {
    (self.service, self.port, self.task) = (service, port, task)
  }

  /// Starts a service, and returns when it accepts connections.
  static func start(_ service: HTTPService = HTTPService(), port: Int = 0) async throws -> TestService {
    let (ports, started) = AsyncThrowingStream<Int, any Error>.makeStream()
    let task = Task {
      do {
        try await service.run(port: port) { started.yield($0) }
        started.finish()
      } catch {
        started.finish(throwing: error)
        throw error
      }
    }
    for try await port in ports { return TestService(service, port: port, task) }
    throw CancellationError()
  }

  /// Closes all connections, and refuses new ones.
  func stop() async {
    task.cancel()
    _ = await task.result
  }

  func url(_ store: String) -> String { "http://127.0.0.1:\(port)/stores/\(store)" }
}
