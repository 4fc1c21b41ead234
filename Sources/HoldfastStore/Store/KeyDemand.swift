/// The number of keys that a save needs for new objects of an entity.
public struct KeyDemand: Sendable, Hashable, Codable {
  /// The index of the concrete entity.
  public var entity: EntityIndex
  /// The number of keys, at least 0.
  public var count: Int

  /// Creates a demand.
  public init(entity: EntityIndex, count: Int) {
    self.entity = entity
    self.count = count
  }
}

extension IncrementalStore {
  /// Reserves keys for new objects of one entity; see ``reserveKeys(_:options:)``.
  ///
  /// - Throws: ``StoreError``: the errors of that method, and `damaged` if the store reserves another number of keys.
  public func reserveKeys(entity: EntityIndex, count: Int, options: RequestOptions = .none) throws -> [ObjectKey] {
    let keys = try reserveKeys([KeyDemand(entity: entity, count: count)], options: options)
    guard keys.count == 1, keys[0].count == count else {
      throw StoreError(
        .damaged, operation: "reserve keys",
        reason: "The store reserved \(keys.map(\.count)) keys instead of [\(count)] (rule K1).")
    }
    return keys[0]
  }
}
