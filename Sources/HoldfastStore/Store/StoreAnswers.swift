/// A request that only some stores answer, such as for the bytes of an external file.
///
/// A store answers the types of requests in its ``IncrementalStore/answers``. A new type of request therefore concerns only the stores that
/// answer it.
public protocol StoreRequest: Sendable, Hashable, Codable {
  /// The answer to the request.
  associatedtype Answer: Sendable
  /// The operation as a verb phrase, for errors and logs: "read the history".
  static var operation: String { get }
}

/// The optional requests that a type of store answers, with a function for each.
///
/// A store type has one table:
///
/// ```swift
/// private static let table = AnswerTable<FolderStore>()
///   .answering(ExternalDataRequest.self) { store, request, _ in try store.contents(of: request) }
///
/// var answers: StoreAnswers { Self.table.bound(to: self) }
/// ```
public struct AnswerTable<Store: Sendable>: Sendable {
  /// The function for one type of request.
  private struct Entry<Request: StoreRequest>: Sendable {
    let answer: @Sendable (Store, Request, RequestOptions) throws -> Request.Answer
  }

  /// The entries, each an ``Entry`` of its type of request.
  ///
  /// A list, because it is short, and a process that opens a store for one row doesn't need to create a dictionary's type.
  private var entries: [(type: ObjectIdentifier, entry: any Sendable)] = []

  /// Creates an empty table.
  public init() {}

  /// Returns a table that also answers requests of a type.
  public func answering<Request: StoreRequest>(
    _ type: Request.Type, _ answer: @escaping @Sendable (Store, Request, RequestOptions) throws -> Request.Answer
  ) -> AnswerTable {
    var table = self
    table.entries.removeAll { $0.type == ObjectIdentifier(type) }
    table.entries.append((ObjectIdentifier(type), Entry(answer: answer)))
    return table
  }

  /// The answers of one store. They keep the store alive.
  public func bound(to store: Store) -> StoreAnswers { StoreAnswers(BoundTable(table: self, store: store)) }

  /// The answers of a store that translates requests for another store.
  ///
  /// A type of request is supported only if the table and the wrapped store both support it.
  public func bound(to store: Store, wrapping other: StoreAnswers) -> StoreAnswers {
    StoreAnswers(BoundTable(table: self, store: store, other: other))
  }

  fileprivate func supports<Request: StoreRequest>(_ type: Request.Type) -> Bool { entry(type) != nil }

  private func entry<Request: StoreRequest>(_ type: Request.Type) -> (any Sendable)? {
    for entry in entries where entry.type == ObjectIdentifier(type) { return entry.entry }
    return nil
  }

  fileprivate func answer<Request: StoreRequest>(_ store: Store, _ request: Request, _ options: RequestOptions) throws -> Request.Answer {
    guard let found = entry(Request.self) as? Entry<Request> else { throw StoreAnswers.unsupported(Request.self) }
    return try found.answer(store, request, options)
  }
}

/// The optional requests that a store answers.
///
/// ```swift
/// if store.answers.supports(HistoryRequest.self) {
///   let history = try store.answers.perform(HistoryRequest(limit: 100))
///   return history
/// }
/// ```
public struct StoreAnswers: Sendable {
  /// Nil if the store answers no optional requests.
  private let source: (any AnswerSource)?

  fileprivate init(_ source: any AnswerSource) { self.source = source }

  private init() { source = nil }

  /// The answers of a store that answers no optional requests.
  public static let none = StoreAnswers()

  /// Whether the store answers requests of a type. Always the same for one store.
  public func supports<Request: StoreRequest>(_ type: Request.Type) -> Bool { source?.supports(type) ?? false }

  /// Answers a request.
  ///
  /// - Throws: ``StoreError`` with code ``StoreError/Code/unsupportedRequest`` if the store doesn't answer requests of this type, and the
  ///   errors of the request.
  public func perform<Request: StoreRequest>(_ request: Request, options: RequestOptions = .none) throws -> Request.Answer {
    guard let source, source.supports(Request.self) else { throw StoreAnswers.unsupported(Request.self) }
    return try source.perform(request, options)
  }

  /// Returns the same answers, with an interceptor that receives each request first. Unsupported requests don't reach it.
  public func intercepted(by interceptor: some AnswerInterceptor) -> StoreAnswers {
    source.map { StoreAnswers(InterceptedAnswers(base: $0, interceptor: interceptor)) } ?? self
  }

  fileprivate static func unsupported<Request: StoreRequest>(_ type: Request.Type) -> StoreError {
    StoreError(.unsupportedRequest, operation: type.operation, reason: "This type of store doesn't support this request.")
  }
}

/// Receives each supported optional request to a store, for example to record it.
public protocol AnswerInterceptor: Sendable {
  /// Answers a request, usually with the result of `next`.
  func answer<Request: StoreRequest>(
    _ request: Request, _ options: RequestOptions, _ next: (Request, RequestOptions) throws -> Request.Answer
  ) throws -> Request.Answer
}

/// Something that answers optional requests.
private protocol AnswerSource: Sendable {
  func supports<Request: StoreRequest>(_ type: Request.Type) -> Bool
  func perform<Request: StoreRequest>(_ request: Request, _ options: RequestOptions) throws -> Request.Answer
}

private struct BoundTable<Store: Sendable>: AnswerSource {
  let table: AnswerTable<Store>
  let store: Store
  /// The wrapped store's answers, which limit the supported requests; nil if there are none.
  var other: StoreAnswers?

  func supports<Request: StoreRequest>(_ type: Request.Type) -> Bool { table.supports(type) && other?.supports(type) != false }
  func perform<Request: StoreRequest>(_ request: Request, _ options: RequestOptions) throws -> Request.Answer {
    try table.answer(store, request, options)
  }
}

private struct InterceptedAnswers<Interceptor: AnswerInterceptor>: AnswerSource {
  let base: any AnswerSource
  let interceptor: Interceptor

  func supports<Request: StoreRequest>(_ type: Request.Type) -> Bool { base.supports(type) }
  func perform<Request: StoreRequest>(_ request: Request, _ options: RequestOptions) throws -> Request.Answer {
    try interceptor.answer(request, options) { try base.perform($0, $1) }
  }
}
