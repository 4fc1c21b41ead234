import Holdfast
import Synchronization

final class ScratchContents: Sendable {
  struct S { var rows: [Int: [Int64: (Int64, [StoreValue])]] = [:]; var links: [[Int]: Set<SaveRequest.Link>] = [:]; var next: Int64 = 1; var log: [String] = [] }
  let s = Mutex(S())
}
final class ScratchStore: IncrementalStore, @unchecked Sendable {
  final class View: ReadView { func end() {} }
  final class Prepared: PreparedSave {
    let body: @Sendable () -> Void
    init(_ b: @escaping @Sendable () -> Void) { body = b }
    func commit() throws { body() }
    func abort() {}
  }
  var capabilities: StoreCapabilities { StoreCapabilities() }
  let c: ScratchContents
  var model: ManagedObjectModel! ; var identity: StoreIdentity!
  init(_ c: ScratchContents) { self.c = c }
  func open(model: ManagedObjectModel) throws -> StoreMetadata {
    self.model = model; identity = StoreIdentity.intern(storeUUID: "SCRATCH-\(ObjectIdentifier(c).hashValue)", model: model)
    return StoreMetadata(identity: identity)
  }
  func close() throws {}
  func beginRead(_ kind: ReadViewKind) throws -> any ReadView { View() }
  func deliver(_ e: Int, _ rows: [(Int64, (Int64, [StoreValue]))], _ sink: any RowSink) throws {
    let b = RowBatchBuilder(entity: model.entities[e], identity: identity)
    for (k, r) in rows { try b.append(key: k, version: r.0, values: r.1); if b.count == 7 { if try sink.take(b.seal(), .all) == .enough { return } } }
    if b.count > 0 { _ = try sink.take(b.seal(), .all) }
  }
  func fetch(_ plan: FetchPlan, in view: any ReadView, into sink: any RowSink) throws {
    c.s.withLock { $0.log.append("fetch \(plan.entity)") }
    try deliver(plan.entity, c.s.withLock { $0.rows[plan.entity] ?? [:] }.map { ($0, $1) }, sink)
  }
  func rows(_ r: FaultRequest, in view: any ReadView, into sink: any RowSink) throws {
    c.s.withLock { $0.log.append("rows \(r.entity) \(r.keys.count)") }
    let all = c.s.withLock { $0.rows[r.entity] ?? [:] }
    try deliver(r.entity, r.keys.compactMap { k in all[k].map { (k, $0) } }, sink)
  }
  func relationships(_ r: RelationshipRequest, in view: any ReadView) throws -> RelationshipAnswer {
    let rel = model.entities[r.entity].relationships[r.relationship], inv = model.inverse(of: rel)
    var offsets: [Int32] = [0], targets: [Int64] = []
    c.s.withLock { s in
      s.log.append("relationship \(rel.name) \(r.sources.count)")
      for k in r.sources {
        if rel.isManyToMany {
          let links = s.links[rel.namesLinks ? [rel.entityIndex, rel.index] : [inv.entityIndex, inv.index]] ?? []
          targets += links.compactMap { rel.namesLinks ? ($0.source == k ? $0.target : nil) : ($0.target == k ? $0.source : nil) }
        } else {
          for (t, row) in s.rows[rel.destinationIndex] ?? [:] { if case .objectID(let i) = row.1[inv.slot], i.key == k { targets.append(t) } else if row.1[inv.slot] == .int64(k) { targets.append(t) } }
        }
        offsets.append(Int32(targets.count))
      }
    }
    return RelationshipAnswer(offsets: offsets, targets: targets)
  }
  func allocateKeys(entity: Int, count: Int) throws -> [Int64] { c.s.withLock { s in defer { s.next += Int64(count) }; return (0..<Int64(count)).map { s.next + $0 } } }
  func prepare(_ request: SaveRequest) throws -> any PreparedSave {
    let model = self.model!
    return Prepared { [c] in
      c.s.withLock { s in
        s.log.append("save")
        for e in request.entities {
          for b in e.inserted + e.updated.map(\.rows) { for i in 0..<b.count { s.rows[e.entity, default: [:]][b[i].key] = (b[i].version, b[i].values) } }
        }
        for l in request.links { s.links[[l.entity, l.relationship], default: []].formUnion(l.added); s.links[[l.entity, l.relationship]]?.subtract(l.removed) }
        for e in request.entities { for k in e.deleted.keys {
          s.rows[e.entity]?[k] = nil
          for rel in model.entities[e.entity].relationships where rel.deleteRule != .noAction {
            let inv = model.inverse(of: rel)
            if rel.isManyToMany {
              let name = rel.namesLinks ? [rel.entityIndex, rel.index] : [inv.entityIndex, inv.index]
              s.links[name] = (s.links[name] ?? []).filter { rel.namesLinks ? $0.source != k : $0.target != k }
            } else if !inv.isToMany {
              for (t, row) in s.rows[rel.destinationIndex] ?? [:] { if case .objectID(let i) = row.1[inv.slot], i.key == k { var v = row.1; v[inv.slot] = .null; s.rows[rel.destinationIndex]![t] = (row.0 + 1, v) } }
            }
          }
        } }
      }
    }
  }
  func perform(_ r: BatchRequest) throws -> BatchResult { try UnsupportedRequest.batch(r) }
  func history(_ r: HistoryRequest) throws -> [HistoryTransaction] { try UnsupportedRequest.history(r) }
  func setMetadata(_ m: [String: StoreValue]) throws {}
}
extension StoreDescription { static func scratch(_ c: ScratchContents) -> StoreDescription { StoreDescription(type: "scratch") { ScratchStore(c) } } }
