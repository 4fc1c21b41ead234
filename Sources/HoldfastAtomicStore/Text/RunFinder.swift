import HoldfastStore

/// Finds runs of rows in a file of text while it is read, so that the first save can copy them: what ``RowRuns`` notes while a file is
/// written.
///
/// In every piece of some 64 KiB it looks for the last line that begins with a row. What lies between two such lines is a run. Where none
/// is found, no run ends, so that less is copied.
///
/// A format hands it to ``TableLoader/take(_:)`` when it is sure that the bytes are those that were written, and that between two rows of
/// an entity there is nothing but other rows of that entity. That they come in the order of their keys is looked after there.
public struct RunFinder {
  /// A line that begins with a row.
  struct Beginning {
    /// The row's entity; nil while nobody has said it.
    var entity: Int?
    var key: Int64
    /// Where the line begins.
    var offset: Int64
    /// How many bytes lie between the beginning before and this one, without what stands between two rows, and their digest.
    var byteCount: Int
    var digest: UInt64
  }

  private(set) var beginnings: [Beginning] = []
  private let separators: [[UInt8]]
  private let row: (UnsafeRawBufferPointer) -> (entity: Int?, key: Int64)?
  /// Where the next piece begins, and where the last beginning is.
  private var offset: Int64 = 0
  private var start: Int64 = 0
  private var digest = ContentDigest()

  private static let pieceByteCount = 1 << 16

  /// Begins before the first byte.
  ///
  /// - Parameters:
  ///   - separators: what may stand before a row, to the end of the line before it, each of the same length.
  ///   - row: tells which row a line begins with, and its entity if it says it; nil for a line that begins with none, or with so few
  ///     bytes of one that nobody can tell.
  public init(separators: [String], _ row: @escaping (_ line: UnsafeRawBufferPointer) -> (entity: Int?, key: Int64)?) {
    self.separators = separators.map { Array($0.utf8) }
    self.row = row
  }

  /// Takes the next bytes of the file.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    for start in stride(from: 0, to: bytes.count, by: RunFinder.pieceByteCount) {
      take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + RunFinder.pieceByteCount, bytes.count)]))
    }
  }

  /// Says of which entity the last row is that was found, if it begins at a place and has a key.
  public mutating func say(entity: Int, ofRowAt offset: Int64, key: Int64) {
    guard let last = beginnings.last, last.offset == offset, last.key == key else { return }
    beginnings[beginnings.count - 1].entity = entity
  }

  /// The key that stands at the beginning of bytes, with something behind it; nil when there is none.
  public static func key(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard let end = bytes.prefix(20).firstIndex(where: { $0 &- 0x30 >= 10 }) else { return nil }
    return NumberText.integer(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
  }

  private mutating func take(_ piece: UnsafeRawBufferPointer) {
    if let (place, end, entity, key) = lastRow(in: piece) {
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<end]))
      let found = Beginning(
        entity: entity, key: key, offset: offset + Int64(place), byteCount: Int(offset - start) + end, digest: digest.value)
      beginnings.append(found)
      (start, digest) = (found.offset, ContentDigest())
      digest.update(UnsafeRawBufferPointer(rebasing: piece[place...]))
    } else {
      digest.update(piece)
    }
    offset += Int64(piece.count)
  }

  /// Where the last line begins that begins with a row, where the bytes before it end, and which row that is.
  private func lastRow(in piece: UnsafeRawBufferPointer) -> (place: Int, end: Int, entity: Int?, key: Int64)? {
    var end = piece.count
    while let lineEnd = piece[..<end].lastIndex(of: UInt8(ascii: "\n")) {
      let place = lineEnd + 1
      if let separator = separators.first(where: { place >= $0.count && piece[place - $0.count..<place].elementsEqual($0) }),
        let (entity, key) = row(UnsafeRawBufferPointer(rebasing: piece[place...]))
      {
        return (place, place - separator.count, entity, key)
      }
      end = lineEnd
    }
    return nil
  }
}

extension RunFinder {
  /// The runs, when all rows of the file are known.
  ///
  /// - Parameter rows: by entity, the rows in the order in which they lie in the file. Of an entity whose keys do not ascend there are no
  ///   runs.
  func parts(_ rows: [[RowBatch]]) -> [FilePart] {
    var runs: [Int: [FilePart]] = [:]
    for (run, next) in zip(beginnings, beginnings.dropFirst()) {
      guard let entity = run.entity, entity == next.entity, run.key < next.key else { continue }
      runs[entity, default: []].append(
        FilePart(
          kind: 0, subject: entity, offset: run.offset, byteCount: next.byteCount, digest: next.digest, count: 0, first: run.key,
          last: next.key - 1))
    }
    return runs.keys.sorted().flatMap { RunFinder.counted(runs[$0] ?? [], rows[$0]) }
  }

  /// Runs with the count and the largest key of their rows; none when keys do not ascend.
  private static func counted(_ runs: [FilePart], _ rows: [RowBatch]) -> [FilePart] {
    var runs = runs, place = 0, last: Int64 = 0
    for batch in rows {
      for index in 0..<batch.count {
        let key = batch.pointer(index).key
        guard key > last else { return [] }
        last = key
        while place < runs.count, key > runs[place].last { place += 1 }
        if place < runs.count, key >= runs[place].first { runs[place].count += 1 }
      }
    }
    return runs.filter { $0.count > 0 }
  }
}
