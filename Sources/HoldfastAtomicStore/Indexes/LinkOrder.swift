import HoldfastStore

/// Sorts links.
enum LinkOrder {
  /// Whether a sorted buffer contains a key.
  static func contains(_ keys: UnsafeBufferPointer<ObjectKey>, _ key: ObjectKey) -> Bool {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key
  }

  /// Returns the links sorted by source, then target. Linear time if the targets already ascend and the sources are dense.
  static func sorted(_ links: [SaveRequest.Link]) -> [SaveRequest.Link] {
    if isSorted(links) { return links }
    let (least, greatest) = links.withUnsafeBufferPointer { bounds($0, \.source) }
    let targetsAscend = links.indices.dropFirst().allSatisfy { links[$0 - 1].target <= links[$0].target }
    guard targetsAscend, isDense(least, greatest, links.count) else { return links.sorted() }
    return counted(links, key: \.source, least, greatest) { $0 }
  }

  /// Exchanges source and target of links that are sorted by source, then target, and sorts the result.
  static func reversed(_ links: [SaveRequest.Link]) -> [SaveRequest.Link] {
    guard !links.isEmpty else { return [] }
    let (least, greatest) = links.withUnsafeBufferPointer { bounds($0, \.target) }
    guard isSorted(links), isDense(least, greatest, links.count) else { return links.map(exchanged).sorted() }
    return counted(links, key: \.target, least, greatest, exchanged)
  }

  @inline(__always) private static func exchanged(_ link: SaveRequest.Link) -> SaveRequest.Link {
    SaveRequest.Link(source: link.target, target: link.source)
  }

  private static func isSorted(_ links: [SaveRequest.Link]) -> Bool {
    for index in links.indices.dropFirst() where links[index] < links[index - 1] { return false }
    return true
  }

  @inline(__always) static func bounds(
    _ links: UnsafeBufferPointer<SaveRequest.Link>, _ key: (SaveRequest.Link) -> ObjectKey
  ) -> (least: ObjectKey, greatest: ObjectKey) {
    links.reduce((ObjectKey(.max), ObjectKey(.min))) { (min($0.0, key($1)), max($0.1, key($1))) }
  }

  /// Whether a counting sort is cheaper than a comparison sort.
  static func isDense(_ least: ObjectKey, _ greatest: ObjectKey, _ count: Int) -> Bool {
    let (range, overflow) = greatest.rawValue.subtractingReportingOverflow(least.rawValue)
    return !overflow && range <= 8 * Int64(count) + 1024
  }

  /// A stable counting sort by a key.
  @inline(__always) private static func counted(
    _ links: [SaveRequest.Link], key: (SaveRequest.Link) -> ObjectKey, _ least: ObjectKey, _ greatest: ObjectKey,
    _ change: (SaveRequest.Link) -> SaveRequest.Link
  ) -> [SaveRequest.Link] {
    let range = Int(greatest.rawValue - least.rawValue) + 1
    var places = [UInt32](repeating: 0, count: range + 1)
    return links.withUnsafeBufferPointer { links in
      places.withUnsafeMutableBufferPointer { places in
        for link in links { places[Int(key(link).rawValue - least.rawValue) + 1] += 1 }
        for index in 1...range { places[index] += places[index - 1] }
        return [SaveRequest.Link](unsafeUninitializedCapacity: links.count) { sorted, initialized in
          for link in links {
            let place = Int(key(link).rawValue - least.rawValue)
            sorted.initializeElement(at: Int(places[place]), to: change(link))
            places[place] += 1
          }
          initialized = links.count
        }
      }
    }
  }
}
