/// The scope in which keys are unique.
@nonexhaustive public enum KeySpace: Sendable, Hashable {
  /// Keys are unique among the objects of a root entity and its subentities. Objects of different root entities can have the same
  /// key.
  case family
  /// Keys are unique in the entire store and are allocated from one counter.
  case store
}
