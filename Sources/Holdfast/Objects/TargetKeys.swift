import HoldfastStore

/// The destinations of one object's to-many relationship at one moment.
enum TargetKeys {
  /// A range of an answer that siblings share.
  case answer(FaultSiblings, Range<Int>)
  /// The object's own list.
  case list([ObjectKey])

  var count: Int {
    switch self {
    case .answer(_, let range): range.count
    case .list(let keys): keys.count
    }
  }

  var isEmpty: Bool { count == 0 }

  /// Whether any destination was never saved.
  var hasTemporaryKeys: Bool { if case .list(let keys) = self { keys.contains { $0 < 0 } } else { false } }

  func withKeys<Result>(_ body: (UnsafeBufferPointer<ObjectKey>) -> Result) -> Result {
    switch self {
    case .answer(let siblings, let range):
      (siblings.answer?.targets ?? []).withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[range])) }
    case .list(let keys): keys.withUnsafeBufferPointer(body)
    }
  }
}
