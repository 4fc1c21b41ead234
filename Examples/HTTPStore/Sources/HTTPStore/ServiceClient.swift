import AsyncHTTPClient
import Foundation
import HoldfastStore
import NIOPosix
import ServiceAPI

/// Sends the requests of one store to the service.
///
/// A request whose connection is lost is sent a second time, at once. That is safe: reads change nothing, and the service has noted the IDs of
/// the saves that took effect. If the second one is lost, too, the error specifies whether something may have changed:
///
/// | | reads, keys, checks | saves |
/// |---|---|---|
/// | the connection couldn't be made, or the service answered 503 | `connectionLost` | `connectionLost` |
/// | the connection was lost, or the service answered 500 | `connectionLost` | `outcomeUnknown` |
/// | the deadline passed | `timedOut` | `timedOut` before the request was sent, otherwise `outcomeUnknown` |
///
/// These errors are retryable. Other unexpected answers aren't.
struct ServiceClient: Sendable {
  struct Request: Sendable {
    var method: String
    /// The path below the store's address, without characters that need an escape; empty for the store itself.
    var path: String
    var body: Data?
    var headers: [String: String] = [:]
    /// A verb phrase for errors.
    var operation: String
    /// Whether the request may change what readers see.
    var isSave = false
  }

  struct Answer: Sendable {
    var status: Int
    var body: Data
  }

  let location: StoreLocation
  /// The URL without credentials; nil if the address isn't an HTTP URL.
  private let url: URLComponents?
  private let authorization: String?

  /// The connections of all stores. With `URLSession` on Linux, a request whose connection is lost can wait for its timeout.
  private static let client: HTTPClient = {
    var configuration = HTTPClient.Configuration(timeout: .init(connect: .seconds(10), read: .seconds(60)))
    configuration.connectionPool.retryConnectionEstablishment = false
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }()

  /// - Parameter location: The URL of the store: `http://user:password@example.org/stores/notes`.
  init(_ location: StoreLocation) {
    self.location = location
    var url = URLComponents(string: location.address)
    authorization = url?.user.map { "Basic " + Data("\($0):\(url?.password ?? "")".utf8).base64EncodedString() }
    url?.user = nil
    url?.password = nil
    self.url = ["http", "https"].contains(url?.scheme) ? url : nil
  }

  /// Sends a request, and returns an answer with one of some statuses.
  func send(_ request: Request, accepting statuses: Set<Int> = [200, 204], _ options: RequestOptions) throws -> Answer {
    guard let url else { throw error(.invalidPath, request.operation, "The address isn't an HTTP URL.") }
    try options.check(request.operation)
    let first = try attempt(request, url, options, mayHaveArrived: false)
    let last =
      if case .lost(_, _, let mayHaveArrived) = first {
        try attempt(request, url, options, mayHaveArrived: mayHaveArrived)
      } else { first }
    switch last {
    case .lost(let reason, let cause, let mayHaveArrived): throw lost(request, reason, cause, mayHaveArrived)
    case .answered(let answer) where statuses.contains(answer.status): return answer
    case .answered(let answer):
      // Only a first answer of the kind 4xx means that the save hasn't arrived.
      let mayHaveArrived = if case .lost = first { true } else { !(400..<500).contains(answer.status) }
      if request.isSave && mayHaveArrived { throw lost(request, "The service answered \(answer.status).", nil, true) }
      throw unexpected(answer.status, request.operation)
    }
  }

  private enum Outcome {
    case answered(Answer)
    case lost(reason: String, cause: (any Error)?, mayHaveArrived: Bool)
  }

  private func attempt(_ request: Request, _ url: URLComponents, _ options: RequestOptions, mayHaveArrived: Bool) throws -> Outcome {
    do {
      let answer = try exchange(request, url, options)
      if answer.status < 500 { return .answered(answer) }
      return .lost(reason: "The service answered \(answer.status).", cause: nil, mayHaveArrived: mayHaveArrived || answer.status != 503)
    } catch let cause as StoreError {
      // The deadline has passed, or the request was cancelled.
      if request.isSave { throw lost(request, "The service didn't answer in time.", cause, true) }
      throw cause
    } catch {
      return .lost(
        reason: "There is no connection to the service.", cause: error, mayHaveArrived: mayHaveArrived || !error.isOfUnsentRequest)
    }
  }

  private func exchange(_ request: Request, _ url: URLComponents, _ options: RequestOptions) throws -> Answer {
    var url = url
    if !request.path.isEmpty {
      // The path without escapes would be another one if the name of the store contains an escaped slash.
      let base = url.percentEncodedPath
      url.percentEncodedPath = base + (base.hasSuffix("/") ? "" : "/") + request.path
    }
    var sent = HTTPClientRequest(url: url.string ?? "")
    sent.method = .init(rawValue: request.method)
    if let body = request.body { sent.body = .bytes(body) }
    sent.headers.add(name: "Content-Type", value: "application/json")
    if let authorization { sent.headers.add(name: "Authorization", value: authorization) }
    for (name, value) in request.headers { sent.headers.add(name: name, value: value) }
    return try options.wait(for: request.operation) { [sent] in
      let response = try await Self.client.execute(sent, timeout: .hours(24))
      return Answer(status: Int(response.status.code), body: Data(try await response.body.collect(upTo: .max).readableBytesView))
    }
  }

  private func lost(_ request: Request, _ reason: String, _ cause: (any Error)?, _ mayHaveArrived: Bool) -> StoreError {
    let isUnknown = request.isSave && mayHaveArrived
    let advice =
      isUnknown
      ? "The save may have taken effect. Save again to find out." : request.isSave ? "Nothing was saved. Save again." : "Try again."
    return StoreError(
      isUnknown ? .outcomeUnknown : .connectionLost, operation: request.operation, path: location.description,
      reason: "\(reason) \(advice)", cause: cause, isRetryable: true)
  }

  private func unexpected(_ status: Int, _ operation: String) -> StoreError {
    let code: StoreError.Code =
      switch status {
      case 401, 403: .notPermitted
      case 404: .notFound
      case 413: .tooLarge
      default: .general
      }
    return error(code, operation, "The service answered \(status). Check the address and the version of the service.")
  }

  func error(_ code: StoreError.Code, _ operation: String, _ reason: String, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(code, operation: operation, path: location.description, reason: reason, cause: cause)
  }

  // MARK: JSON

  /// Sends JSON and returns the JSON of the answer.
  func post<Answer: Decodable>(
    _ path: String, _ body: some Encodable, _ operation: String, _ options: RequestOptions
  ) throws -> Answer {
    let request = Request(method: "POST", path: path, body: try JSONEncoder().encode(body), operation: operation)
    return try decode(send(request, options), operation)
  }

  func decode<Answer: Decodable>(_ answer: ServiceClient.Answer, _ operation: String) throws -> Answer {
    do { return try JSONDecoder().decode(Answer.self, from: answer.body) } catch {
      // The decoder's error isn't the cause, because it can quote values of the answer.
      throw self.error(.damaged, operation, "The service's answer can't be decoded. Check the version of the service.")
    }
  }
}

extension Error {
  /// Whether a request got no connection, so it wasn't sent: it was refused, the service didn't answer, or others used all connections.
  package var isOfUnsentRequest: Bool {
    let timeouts: [HTTPClientError] = [.connectTimeout, .getConnectionFromPoolTimeout]
    return self is NIOConnectionError || timeouts.contains { $0 == self as? HTTPClientError }
  }
}
