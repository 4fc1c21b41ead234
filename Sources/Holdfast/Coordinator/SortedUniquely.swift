extension Sequence where Element: Comparable {
  /// The elements in ascending order, without duplicates.
  func sortedUniquely() -> [Element] {
    let elements = sorted()
    var unique: [Element] = []
    unique.reserveCapacity(elements.count)
    for element in elements where element != unique.last { unique.append(element) }
    return unique
  }
}
