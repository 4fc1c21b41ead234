import Holdfast
import HoldfastStore
import Synchronization

/// A store that may decline plans and large requests, combined with the framework, which executes what the store declines.
final class DividedStore: ForwardingStore {
  let base: any IncrementalStore
  /// Divides plans; nil unless the store is open.
  private let coordinator = Mutex<PersistentStoreCoordinator?>(nil)

  init(_ base: any IncrementalStore) { self.base = base }

  func open(model: ManagedObjectModel, host: StoreHost) throws -> StoreMetadata {
    let base = base, opened = try PersistentStoreCoordinator(model: model, store: StoreDescription(type: "divided") { base })
    coordinator.withLock { $0 = opened }
    return StoreMetadata(identity: opened.persistentStores[0].identity, userInfo: opened.persistentStores[0].metadata)
  }

  func close() throws {
    try base.close()
    coordinator.withLock { $0 = nil }
  }

  func fetch(_ plan: FetchPlan, in view: any ReadView, options: RequestOptions, into sink: any RowSink) throws {
    // A store may decline counts and aggregates, too, and needs no answer to aggregates of attributes that it can't compare.
    let isReading = plan.output == .rows || plan.output == .keys
    let isSimple = isReading && plan == FetchPlan(entity: plan.entity, concreteEntities: plan.concreteEntities, output: plan.output)
    guard !isSimple, let coordinator = coordinator.withLock({ $0 }) else {
      return try base.fetch(plan, in: view, options: options, into: sink)
    }
    try coordinator.fetch(plan, in: view, into: sink)
  }

  func relationships(_ request: RelationshipRequest, in view: any ReadView, options: RequestOptions) throws -> RelationshipAnswer {
    do { return try base.relationships(request, in: view, options: options) } catch let error as StoreError
      where error.code == .tooLarge && request.sources.count > 1
    {
      var first = request, second = request
      let middle = request.sources.count / 2
      (first.sources, second.sources) = (Array(request.sources[..<middle]), Array(request.sources[middle...]))
      return try relationships(first, in: view, options: options) + relationships(second, in: view, options: options)
    }
  }
}

extension RelationshipAnswer {
  /// The answer for the sources of two answers.
  fileprivate static func + (first: RelationshipAnswer, second: RelationshipAnswer) -> RelationshipAnswer {
    let count = first.offsets.last ?? 0
    return RelationshipAnswer(
      offsets: first.offsets + second.offsets.dropFirst().map { $0 + count }, targets: first.targets + second.targets,
      entities: first.entities.flatMap { entities in second.entities.map { entities + $0 } },
      orderKeys: first.orderKeys.flatMap { keys in second.orderKeys.map { keys + $0 } }, rows: first.rows + second.rows)
  }
}
