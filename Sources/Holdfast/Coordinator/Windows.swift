extension Array {
  /// The elements in consecutive windows of a size; the last window may be smaller.
  func windows(of size: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
  }
}
