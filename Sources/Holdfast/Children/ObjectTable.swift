import HoldfastStore

/// A value for each of some objects, by root entity and key. Objects needn't be registered.
struct ObjectTable<Value> {
  private var values: [EntityIndex: [ObjectKey: Value]] = [:]

  var isEmpty: Bool { values.isEmpty }

  subscript(root: EntityIndex, key: ObjectKey) -> Value? {
    get { values[root]?[key] }
    set {
      if let newValue {
        values[root, default: [:]][key] = newValue
      } else if values[root]?.removeValue(forKey: key) != nil, values[root]?.isEmpty == true {
        values[root] = nil
      }
    }
  }

  subscript(object: ManagedObject) -> Value? {
    get { self[object.plan.root, object.objectKey] }
    set { self[object.plan.root, object.objectKey] = newValue }
  }

  /// All values, sorted by root entity and key.
  var entries: [(root: EntityIndex, key: ObjectKey, value: Value)] {
    values.sorted { $0.key < $1.key }.flatMap { root, values in
      values.sorted { $0.key < $1.key }.map { (root: root, key: $0.key, value: $0.value) }
    }
  }

  mutating func removeAll() { values = [:] }
}
