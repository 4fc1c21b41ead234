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

  func withKeys<Result>(_ body: (UnsafeBufferPointer<ObjectKey>) -> Result) -> Result {
    switch self {
    case .answer(let siblings, let range):
      (siblings.answer?.targets ?? []).withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[range])) }
    case .list(let keys): keys.withUnsafeBufferPointer(body)
    }
  }
}
