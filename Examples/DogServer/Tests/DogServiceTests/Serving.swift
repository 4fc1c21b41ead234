import DogService
import Foundation
import HoldfastSQLiteStore
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

/// A client of the service over HTTP.
struct DogClient: Sendable {
  let http: any TestClientProtocol

  /// Serves a store while a closure runs, on a port that the system chooses.
  static func serving<Result: Sendable>(
    _ folder: TemporaryFolder, _ body: @escaping @Sendable (DogClient) async throws -> Result
  ) async throws -> Result {
    var logger = Logger(label: "dogs")
    logger.logLevel = .critical
    let service = DogService(try DogRegister(.sqlite(at: folder.store)), logger: logger)
    return try await service.application(port: 0).test(.ahc(.http)) { try await body(DogClient(http: $0)) }
  }

  func add(_ dog: NewDog) async throws -> TestResponse {
    try await http.execute(uri: "/dogs", method: .post, body: ByteBuffer(data: JSONEncoder().encode(dog)))
  }

  func update(_ tag: UUID, _ update: DogUpdate) async throws -> TestResponse {
    try await http.execute(uri: "/dogs/\(tag)", method: .patch, body: ByteBuffer(data: JSONEncoder().encode(update)))
  }

  func get(_ uri: String) async throws -> TestResponse { try await http.execute(uri: uri, method: .get) }
}

extension TestResponse {
  /// The decoded body.
  func body<Body: Decodable>(_ type: Body.Type, _ status: HTTPResponse.Status = .ok, at place: SourceLocation = #_sourceLocation) throws
    -> Body
  {
    #expect(self.status == status, "\(String(buffer: body))", sourceLocation: place)
    return try JSONDecoder().decode(Body.self, from: Data(buffer: body))
  }
}
