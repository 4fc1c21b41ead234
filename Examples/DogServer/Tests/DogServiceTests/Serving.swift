import AsyncHTTPClient
import DogService
import Foundation
import HoldfastSQLiteStore
import HoldfastStore
import Hummingbird
import HummingbirdTesting
import Logging
import Testing

/// A folder for one test. Deleting the object deletes the folder.
final class TemporaryFolder: Sendable {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("dogs-\(UUID().uuidString)").path

  init() {
    do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch { fatalError("\(error)") }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var store: String { path + "/dogs.sqlite" }
}

/// An answer to a request.
struct Answer {
  let status: HTTPResponse.Status
  let location: String?
  let body: Data

  /// The decoded body.
  func body<Body: Decodable>(
    _ type: Body.Type, _ status: HTTPResponse.Status = .ok, at place: SourceLocation = #_sourceLocation
  ) throws -> Body {
    #expect(self.status == status, "\(String(decoding: body, as: UTF8.self))", sourceLocation: place)
    return try JSONDecoder().decode(Body.self, from: body)
  }
}

/// A client of the service over HTTP. It waits for answers without a time limit, and opens a connection for each request in progress.
struct DogClient: Sendable {
  private let port: Int
  private let http: HTTPClient

  /// Calls a closure with a client of a port.
  static func with<Result: Sendable>(port: Int, _ body: @Sendable (DogClient) async throws -> Result) async throws -> Result {
    var configuration = HTTPClient.Configuration(timeout: .init(connect: .hours(1)))
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 100
    // A server that has ended refuses connections. The request fails at once.
    configuration.connectionPool.retryConnectionEstablishment = false
    let http = HTTPClient(configuration: configuration)
    do {
      let result = try await body(DogClient(port: port, http: http))
      try await http.shutdown()
      return result
    } catch {
      try await http.shutdown()
      throw error
    }
  }

  /// Serves the store in a folder while a closure runs.
  static func serving<Result: Sendable>(
    _ folder: TemporaryFolder, timeout: Duration = .seconds(3600), _ body: @escaping @Sendable (DogClient) async throws -> Result
  ) async throws -> Result {
    let options = SQLiteStoreOptions(readerTimeout: .seconds(3600))
    return try await serving(store: .sqlite(at: folder.store, options: options), timeout: timeout, body)
  }

  /// Serves a store while a closure runs, on a port that the system chooses.
  static func serving<Result: Sendable>(
    store: StoreDescription, timeout: Duration = .seconds(3600), _ body: @escaping @Sendable (DogClient) async throws -> Result
  ) async throws -> Result {
    var logger = Logger(label: "dogs")
    logger.logLevel = .critical
    let service = DogService(try DogRegister(store, timeout: timeout), logger: logger)
    return try await service.application(port: 0).test(.live) { try await with(port: #require($0.port), body) }
  }

  func send(_ method: String, _ uri: String, _ body: Data? = nil) async throws -> Answer {
    let url = "http://127.0.0.1:\(port)\(uri)"
    let request = try HTTPClient.Request(url: url, method: .init(rawValue: method), body: body.map { .data($0) })
    let response = try await http.execute(request: request, deadline: .distantFuture).get()
    let bytes = response.body.map { Data(buffer: $0) } ?? Data()
    return Answer(status: .init(code: Int(response.status.code)), location: response.headers.first(name: "location"), body: bytes)
  }

  func get(_ uri: String) async throws -> Answer { try await send("GET", uri) }

  func add(_ dog: NewDog) async throws -> Answer { try await send("POST", "/dogs", JSONEncoder().encode(dog)) }

  func update(_ tag: UUID, _ update: DogUpdate) async throws -> Answer {
    try await send("PATCH", "/dogs/\(tag)", JSONEncoder().encode(update))
  }
}
