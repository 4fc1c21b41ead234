import Foundation
import Hummingbird
import ServiceAPI
import Synchronization

/// A small service that keeps rows and links in memory. It knows nothing of the framework or of models.
///
/// | request | answer |
/// |---|---|
/// | `GET /stores/notes` | what a client keeps with the rows, or 404 |
/// | `PUT /stores/notes` | replaces it. With `If-None-Match: *`, creates the store, or 412 |
/// | `POST /stores/notes/query` | a ``QueryAnswer`` to a ``Query`` |
/// | `POST /stores/notes/links` | the ``LinkedRow``s of a ``LinkQuery`` |
/// | `POST /stores/notes/keys` | the first key of each ``KeyRange`` |
/// | `POST /stores/notes/saves` | 204 if the ``Save`` took effect, otherwise 412 or 409 with a ``Refusal`` |
/// | `POST /stores/notes/checks` | the same, but the save never takes effect |
/// | `DELETE /stores/notes/saves/ID` | its ``SaveFate``. If it hasn't taken effect, the service refuses it from now on |
/// | `GET /stores/notes/rows/Note/1` | the row, with its entity tag. With `If-None-Match`, 304 if it hasn't changed |
///
/// The header `Idempotency-Key` of a save is its ID. Repeating a save that took effect does nothing and returns 204. A save that was refused
/// by `DELETE` returns 410.
package final class HTTPService: Sendable {
  /// Simulates failures, and records requests.
  package let outages: Outages
  private let datasets = Mutex<[String: Dataset]>([:])

  /// - Parameter recordsRequests: Whether requests are kept in memory, for tests. Defaults to false.
  package init(recordsRequests: Bool = false) { outages = Outages(recordsRequests: recordsRequests) }

  /// Serves requests until the task is cancelled.
  ///
  /// - Parameters:
  ///   - port: The port on the loopback interface. Defaults to 0, for one that the system chooses.
  ///   - onStart: Receives the port.
  package func run(port: Int = 0, onStart: @escaping @Sendable (Int) async -> Void = { _ in }) async throws {
    var application = Application(
      router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
      onServerRunning: { channel in await onStart(channel.localAddress?.port ?? port) })
    application.logger.logLevel = .warning
    try await application.run()
  }

  private var router: Router<ServiceContext> {
    let router = Router(context: ServiceContext.self)
    router.add(middleware: OutageMiddleware(outages: outages))
    let store = router.group("stores/:store")
    store.get { [self] request, context in
      ByteBuffer(data: try withDataset(context) { $0.info })
    }
    store.put { [self] request, context in
      try put(try await Data(buffer: request.body.collect(upTo: context.maxUploadSize)), request, context)
    }
    store.post("query") { [self] request, context in
      let query = try await request.decode(as: Query.self, context: context)
      guard query.offset >= 0, query.limit ?? 0 >= 0 else { throw HTTPError(.badRequest) }
      return try withDataset(context) { $0.answer(query) }
    }
    store.post("links") { [self] request, context in
      let query = try await request.decode(as: LinkQuery.self, context: context)
      return try withDataset(context) { $0.answer(query) }
    }
    store.post("keys") { [self] request, context in
      let ranges = try await request.decode(as: [KeyRange].self, context: context)
      return try withDataset(context) { dataset throws in
        try ranges.map { range in
          guard let first = dataset.reserve(range) else { throw HTTPError(.badRequest) }
          return first
        }
      }
    }
    store.post("checks") { [self] request, context in
      let save = try await request.decode(as: Save.self, context: context)
      return try answering(request, context) { dataset in
        var changed = dataset
        try changed.apply(save)
        return Response(status: .noContent)
      }
    }
    store.post("saves") { [self] request, context in
      let save = try await request.decode(as: Save.self, context: context)
      guard let id = request.headers[.init("Idempotency-Key")!].flatMap({ UUID(uuidString: $0) }) else { throw HTTPError(.badRequest) }
      return try answering(request, context) { dataset in
        if let tookEffect = dataset.saves[id] { return Response(status: tookEffect ? .noContent : .gone) }
        var changed = dataset
        try changed.apply(save)
        changed.saves[id] = true
        dataset = changed
        return Response(status: .noContent)
      }
    }
    store.delete("saves/:id") { [self] request, context in
      let id = try context.parameters.require("id", as: UUID.self)
      return try withDataset(context) { dataset in
        let tookEffect = dataset.saves[id] ?? false
        dataset.saves[id] = tookEffect
        return SaveFate(tookEffect: tookEffect)
      }
    }
    store.get("rows/:table/:key") { [self] request, context in try row(request, context) }
    return router
  }

  private func withDataset<Result>(_ context: ServiceContext, _ body: (inout Dataset) throws -> Result) throws -> Result {
    let name = try context.parameters.require("store")
    return try datasets.withLock { datasets in
      guard datasets[name] != nil else { throw HTTPError(.notFound) }
      return try body(&datasets[name]!)
    }
  }

  private func put(_ info: Data, _ request: Request, _ context: ServiceContext) throws -> Response {
    let name = try context.parameters.require("store"), isNew = request.headers[.ifNoneMatch] == "*"
    return datasets.withLock { datasets in
      if isNew == (datasets[name] != nil) { return Response(status: isNew ? .preconditionFailed : .notFound) }
      datasets[name, default: Dataset(info: info)].info = info
      return Response(status: isNew ? .created : .noContent)
    }
  }

  private func answering(
    _ request: Request, _ context: ServiceContext, _ body: (inout Dataset) throws -> Response
  ) throws -> Response {
    do { return try withDataset(context, body) } catch let refusal as Refusal {
      var response = try context.responseEncoder.encode(refusal, from: request, context: context)
      if case .conflict = refusal { response.status = .preconditionFailed } else { response.status = .conflict }
      return response
    }
  }

  private func row(_ request: Request, _ context: ServiceContext) throws -> Response {
    let id = RowID(table: try context.parameters.require("table"), key: try context.parameters.require("key", as: Int64.self))
    guard let row = try withDataset(context, { $0.row(id) }) else { throw HTTPError(.notFound) }
    let tag = "\"\(row.etag)\""
    if request.headers[.ifNoneMatch] == tag { return Response(status: .notModified, headers: [.eTag: tag]) }
    var response = try context.responseEncoder.encode(row, from: request, context: context)
    response.headers[.eTag] = tag
    return response
  }
}

extension QueryAnswer: ResponseEncodable {}
extension LinkedRow: ResponseEncodable {}
extension SaveFate: ResponseEncodable {}

/// The context of a request, whose connection ``Outages`` can close.
struct ServiceContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let closeConnection: @Sendable () async throws -> Void
  var maxUploadSize: Int { 64 << 20 }

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    closeConnection = { [channel = source.channel] in try await channel.close() }
  }
}
