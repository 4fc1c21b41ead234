/// Among which objects of a store a key names one.
public enum KeySpace: Sendable, Hashable {
  /// Objects of one root entity and its sub-entities have each a key of their own; those of two root entities may have the same.
  case family
  /// All objects of the store have each a key of their own, and keys are handed out from one counter.
  case store
}
