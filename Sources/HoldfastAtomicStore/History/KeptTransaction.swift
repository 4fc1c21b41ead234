import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A transaction as it is kept in a file's history. On disk: do not change.
struct KeptTransaction: Codable {
  /// Changes of the same kind to objects of one entity.
  struct Changes: Codable {
    var entity: String
    var kind: HistoryTransaction.Change.Kind
    /// The changed properties of updated objects.
    var properties: [String]?
    var keys: KeyRanges
    /// The values of each object, in the order of the keys; nil if none are kept.
    var values: [Values]?
  }

  /// What is kept of an object.
  struct Values: Codable {
    var tombstone: [String: StoreValue]?
    var former: [String: StoreValue]?
    var new: [String: StoreValue]?
    var links: HistoryLinks.Kept?
  }

  var number: Int64
  /// In seconds since 2001-01-01T00:00:00Z.
  var time: Double
  var author: String?
  var context: String?
  var process: String?
  /// The maximum size of the history that the program of the last save with the option `.always` has chosen, in bytes. 0 for no maximum,
  /// nil for the default.
  var maximum: Int?
  var changes: [Changes]

  init(number: Int64, _ origin: SaveOrigin?, changes: [Changes]) {
    let origin = origin ?? SaveOrigin()
    (self.number, author, context) = (number, origin.author, origin.contextName)
    time = origin.time.timeIntervalSinceReferenceDate
    process = HistoryTransaction.currentProcessID
    self.changes = changes
  }

  init(_ text: ArraySlice<UInt8>) throws { self = try HistoryCoding.decode(KeptTransaction.self, from: text) }

  func text() throws -> [UInt8] { try HistoryCoding.encode(self) }

  /// The greatest number of changes. A short text can name any number of them.
  static let limit = 1 << 22

  /// The maximum size of the history in bytes, as it is kept; nil for no maximum.
  static func kept(maximum: Int?) -> Int? {
    maximum == WholeFileOptions.defaultMaximumHistoryByteCount ? nil : maximum.map { max(1, $0) } ?? 0
  }

  /// The number of changes; one more than ``limit`` if there are more. Each change of a damaged text can name all keys.
  var changeCount: Int {
    let most = KeptTransaction.limit + 1
    return changes.reduce(0) { min($0 + min($1.keys.count, most), most) }
  }

  /// Whether it has no more changes than the limit, and values for all objects of a change or for none.
  var isValid: Bool {
    changeCount <= KeptTransaction.limit
      && changes.allSatisfy { changes in changes.values.map { $0.count == changes.keys.count } ?? true }
  }
}

/// Keys in ascending order, as text: `1-40,42`.
struct KeyRanges: Codable {
  private(set) var ranges: [ClosedRange<Int64>] = []

  init(_ keys: some Sequence<ObjectKey>) {
    for key in keys {
      if let last = ranges.last, last.upperBound + 1 == key.rawValue {
        ranges[ranges.count - 1] = last.lowerBound...key.rawValue
      } else {
        ranges.append(key.rawValue...key.rawValue)
      }
    }
  }

  /// At most 2⁶², because the ranges are disjoint.
  var count: Int { ranges.reduce(0) { $0 + $1.count } }

  var keys: some Sequence<ObjectKey> { ranges.lazy.joined().map { ObjectKey($0) } }

  private struct Invalid: Error {}

  init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    var last: Int64 = 0
    for part in text.utf8.split(separator: UInt8(ascii: ",")) {
      let ends = part.split(separator: UInt8(ascii: "-"), maxSplits: 1).map { Int64(Substring($0)) }
      guard let first = ends.first ?? nil, let end = ends.last ?? nil, first > last, end >= first,
        TableLoader.keys.rawValues.contains(end)
      else { throw Invalid() }
      ranges.append(first...end)
      last = end
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer(), text = ""
    for range in ranges {
      if !text.isEmpty { text += "," }
      text += String(range.lowerBound)
      if range.count > 1 { text += "-" + String(range.upperBound) }
    }
    try container.encode(text)
  }
}
