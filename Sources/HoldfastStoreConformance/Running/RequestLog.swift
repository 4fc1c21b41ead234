import HoldfastStore
import Synchronization

/// The requests of one case, which the descriptions of its failures include. Several threads can use it.
final class RequestLog: Sendable {
  private struct State {
    var model: ManagedObjectModel?
    var count = 0
    /// The requests that haven't returned yet, by number.
    var running: [Int: SentRequest] = [:]
    var last: SentRequest?
    var lastSave: SentRequest?
    /// The last request that can explain a difference, other than a save.
    var lastQuestion: SentRequest?
  }

  private let state = Mutex(State())

  /// Records a request while the store answers it.
  func during<T>(_ request: SentRequest, _ body: () throws -> T) rethrows -> T {
    let number = state.withLock { state in
      state.count += 1
      state.running[state.count] = request
      state.last = request
      switch request {
      case .open(let model): (state.model, state.lastSave, state.lastQuestion) = (model, nil, request)
      case .prepare: (state.lastSave, state.lastQuestion) = (request, nil)
      case .close, .beginRead, .commit, .abort: break
      default: state.lastQuestion = request
      }
      return state.count
    }
    defer { state.withLock { _ = $0.running.removeValue(forKey: number) } }
    return try body()
  }

  /// The last save, and the last request that can explain a difference.
  func recent() -> [String] {
    let (save, question, model) = state.withLock { ($0.lastSave, $0.lastQuestion, $0.model) }
    return [save, question].compactMap { $0?.description(model) }
  }

  /// The last request that hasn't returned, or else the last one; nil if there was none.
  func current() -> String? {
    let (request, model) = state.withLock { state in (state.running.max { $0.key < $1.key }?.value ?? state.last, state.model) }
    return request?.description(model)
  }
}

/// A request with the values that its description shows.
enum SentRequest: Sendable {
  case open(ManagedObjectModel)
  case close
  case beginRead(ReadViewKind)
  case fetch(FetchPlan)
  case rows(FaultRequest)
  case relationships(RelationshipRequest)
  case reserveKeys([KeyDemand])
  case prepare(SaveRequest)
  case commit
  case abort
  case optional(String)
  case setMetadata([String])

  /// The request in short form. Without a model, numbers replace the names of entities.
  func description(_ model: ManagedObjectModel?) -> String {
    let names = RequestNames(model: model)
    switch self {
    case .open(let model): return "open with the entities \(model.entities.map(\.name).joined(separator: ", "))"
    case .close: return "close"
    case .beginRead(let kind): return "begin a view of kind \(kind)"
    case .fetch(let plan): return names.describe(plan)
    case .rows(let request): return "rows of \(names.entity(request.entity)) with \(RequestNames.keys(request.keys))"
    case .relationships(let request):
      return "destinations of \(names.relationship(request.entity, request.relationship)) for \(RequestNames.keys(request.sources))"
    case .reserveKeys(let demands):
      return "reserve " + demands.map { "\($0.count) keys of \(names.entity($0.entity))" }.joined(separator: ", ")
    case .prepare(let request): return names.describe(request)
    case .commit: return "commit"
    case .abort: return "abort"
    case .optional(let operation): return operation
    case .setMetadata(let names): return "set the metadata \(names.joined(separator: ", "))"
    }
  }
}

/// Describes requests with the names of a model.
private struct RequestNames {
  let model: ManagedObjectModel?

  func entity(_ index: EntityIndex) -> String { model?.entities[index].name ?? "entity \(index.rawValue)" }

  func relationship(_ owner: EntityIndex, _ index: RelationshipIndex) -> String {
    "\(entity(owner)).\(model?.entities[owner].relationships[index].name ?? "relationship \(index)")"
  }

  /// The first keys of a list.
  static func keys(_ keys: some Collection<ObjectKey>) -> String {
    if keys.isEmpty { return "no keys" }
    let shown = keys.prefix(6).map(String.init).joined(separator: ", ")
    return keys.count == 1 ? "key \(shown)" : "keys \(shown)\(keys.count > 6 ? ", … (\(keys.count) keys)" : "")"
  }

  func describe(_ plan: FetchPlan) -> String {
    let output =
      switch plan.output {
      case .rows: "rows"
      case .keys: "keys"
      case .count: "the number"
      case .aggregates(let aggregates): "the groups by \(aggregates.groupBy) of columns \(aggregates.columns)"
      }
    let sorts = plan.sorts.map { term in
      "\(term.path)\(term.isAscending ? "" : " (descending)")\(term.folding.isEmpty ? "" : " (folded)")"
    }
    let parts: [String?] = [
      "fetch \(output) of \(plan.concreteEntities.map(entity).joined(separator: ", "))", plan.predicate.map { "where \($0)" },
      sorts.isEmpty ? nil : "sorted by \(sorts.joined(separator: ", "))", plan.offset > 0 ? "from offset \(plan.offset)" : nil,
      plan.limit.map { "at most \($0)" },
    ]
    return parts.compactMap { $0 }.joined(separator: ", ")
  }

  func describe(_ request: SaveRequest) -> String {
    let parts = request.entities.map(describe) + request.links.map(describe) + request.orders.map(describe)
    return "save: " + (parts.isEmpty ? "nothing" : parts.joined(separator: "; "))
  }

  private func describe(_ changes: SaveRequest.EntityChanges) -> String {
    let inserted = changes.inserted.flatMap { batch in (0..<batch.count).map { batch[$0].key } }
    let parts: [String?] = [
      inserted.isEmpty ? nil : "insert \(RequestNames.keys(inserted))",
      changes.updated.isEmpty ? nil : "update " + changes.updated.map { updates($0, changes.entity) }.joined(separator: ", "),
      changes.deleted.keys.isEmpty ? nil : "delete \(RequestNames.keys(changes.deleted.keys))",
      changes.locked.keys.isEmpty ? nil : "lock \(RequestNames.keys(changes.locked.keys))",
      changes.derived.isEmpty ? nil : "derive values of \(changes.derived.reduce(0) { $0 + $1.rows.count }) rows",
    ]
    return "\(entity(changes.entity)): \(parts.compactMap { $0 }.joined(separator: ", "))"
  }

  /// The first updated rows, each with the names of the changed properties.
  private func updates(_ updated: SaveRequest.UpdatedRows, _ index: EntityIndex) -> String {
    let shown = (0..<min(3, updated.rows.count)).map { row in
      let slots = updated.rows.layout.slots.filter { updated.isChanged(row: row, slot: $0) }
      let names = slots.prefix(6).map { model?.entities[index].slots[$0].name ?? "slot \($0)" }
      return "key \(updated.rows[row].key) (\(names.joined(separator: ", "))\(slots.count > 6 ? ", …" : ""))"
    }
    return shown.joined(separator: ", ") + (updated.rows.count > 3 ? ", … (\(updated.rows.count) rows)" : "")
  }

  private func describe(_ changes: SaveRequest.LinkChanges) -> String {
    let added = changes.added.isEmpty ? nil : "add \(describe(changes.added))"
    let removed = changes.removed.isEmpty ? nil : "remove \(describe(changes.removed))"
    return "\(relationship(changes.entity, changes.relationship)): \([added, removed].compactMap { $0 }.joined(separator: ", "))"
  }

  private func describe(_ changes: SaveRequest.OrderChanges) -> String {
    "\(relationship(changes.entity, changes.relationship)): order \(describe(changes.links))"
  }

  private func describe(_ links: [SaveRequest.Link]) -> String {
    links.prefix(4).map { "\($0.source)→\($0.target)" }.joined(separator: ", ") + (links.count > 4 ? ", … (\(links.count) links)" : "")
  }
}
