import HoldfastStore

/// The history of a whole-file store: the text of each transaction.
///
/// A format writes it to the file as it is, and passes it to ``TableLoader/take(history:)`` when reading.
public struct HistoryLog: Sendable, Equatable {
  /// The number of the last transaction, even if it was deleted; 0 if there never was one.
  public private(set) var last: Int64
  /// The number of transactions. Their numbers are consecutive and end with ``last``.
  public private(set) var count: Int
  /// The transactions as JSON objects in UTF-8, each followed by a line feed.
  public private(set) var lines: [UInt8]

  /// Creates a history without transactions.
  public init() { (last, count, lines) = (0, 0, []) }

  /// Creates a history with transactions from a file.
  ///
  /// - Returns: Nil if the number of the last transaction isn't from 0 to 2⁶², there are more lines than it allows, or the last line has no end.
  public init?(last: Int64, lines: [UInt8]) {
    let count = lines.count { $0 == HistoryLog.end }
    guard HistoryLog.numbers.contains(last), last >= Int64(count), lines.last ?? HistoryLog.end == HistoryLog.end else { return nil }
    (self.last, self.count, self.lines) = (last, count, lines)
  }

  /// Creates a history from ``bytes``; nil if they aren't valid.
  public init?(_ bytes: [UInt8]) {
    guard let end = bytes.firstIndex(of: HistoryLog.end), let last = Int64(String(decoding: bytes[..<end], as: UTF8.self)) else {
      return nil
    }
    self.init(last: last, lines: Array(bytes[(end + 1)...]))
  }

  /// The whole history: ``last`` in decimal digits, a line feed, and ``lines``.
  public var bytes: [UInt8] { Array("\(last)\n".utf8) + lines }

  /// The valid numbers of a last transaction.
  static let numbers: ClosedRange<Int64> = 0...(1 << 62)

  private static let end = UInt8(ascii: "\n")

  // MARK: Transactions

  /// The number of the first transaction; ``last`` + 1 if there is none.
  var first: Int64 { last - Int64(count) + 1 }

  /// Calls a closure with the text of each transaction from a number on, until it returns false.
  func forEach(from number: Int64, _ body: (_ number: Int64, _ text: ArraySlice<UInt8>) throws -> Bool) rethrows {
    var start = 0, next = first
    while start < lines.count {
      let end = lines[start...].firstIndex(of: HistoryLog.end) ?? lines.count
      if try next >= number && !body(next, lines[start..<end]) { return }
      start = end + 1
      next += 1
    }
  }

  /// The maximum size that the last transaction contains, in bytes; nil for no maximum. The default if the history is empty, or it can't
  /// be decoded.
  var maximumByteCount: Int? {
    switch lastText.flatMap({ try? HistoryCoding.decode(Maximum.self, from: $0).maximum }) {
    case nil: WholeFileOptions.defaultMaximumHistoryByteCount
    case let maximum? where maximum > 0: maximum
    default: nil
    }
  }

  /// The part of a transaction that determines the size of the history.
  private struct Maximum: Decodable {
    let maximum: Int?
  }

  /// The text of the last transaction; nil if there is none.
  private var lastText: ArraySlice<UInt8>? {
    if count == 0 { return nil }
    let text = lines.dropLast(), end = text.lastIndex(of: HistoryLog.end)
    return text[(end.map { $0 + 1 } ?? text.startIndex)...]
  }

  /// Appends a transaction, whose number is ``last`` + 1.
  mutating func append(_ text: [UInt8]) {
    lines += text
    lines.append(HistoryLog.end)
    last += 1
    count += 1
  }

  /// Deletes the first transactions.
  mutating func removeFirst(_ removed: Int) {
    var start = 0
    for _ in 0..<removed { start = (lines[start...].firstIndex(of: HistoryLog.end) ?? lines.count - 1) + 1 }
    lines.removeFirst(start)
    count -= removed
  }

  /// Deletes the oldest transactions if the text has more bytes than a limit, except the last one.
  ///
  /// To do that rarely, it then keeps a tenth fewer bytes than the limit.
  mutating func prune(to limit: Int) {
    if lines.count <= limit { return }
    var start = 0, removed = 0
    while removed < count - 1, lines.count - start > limit - limit / 10, let end = lines[start...].firstIndex(of: HistoryLog.end) {
      start = end + 1
      removed += 1
    }
    removeFirst(removed)
  }

  /// Replaces the text of each transaction.
  func mapped(_ transform: (ArraySlice<UInt8>) throws -> [UInt8]) rethrows -> HistoryLog {
    var copy = self
    copy.lines = []
    try forEach(from: first) { _, text in
      copy.lines += try transform(text)
      copy.lines.append(HistoryLog.end)
      return true
    }
    return copy
  }
}
