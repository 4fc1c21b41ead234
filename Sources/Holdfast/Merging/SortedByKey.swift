import HoldfastStore

extension Sequence<ManagedObject> {
  /// The objects sorted by entity and key, so that requests and results have the same order in each run.
  func sortedByKey() -> [ManagedObject] { sorted { ($0.flags.entityIndex, $0.objectKey) < ($1.flags.entityIndex, $1.objectKey) } }
}
