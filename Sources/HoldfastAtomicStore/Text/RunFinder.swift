import HoldfastStore

/// Finds runs of rows in a file of text while it is read, so that the first save can copy them: what ``RowRuns`` notes while a file is
/// written.
///
/// In every piece of some 64 KiB it looks for the last line that begins with a row. What lies between two such lines is a run, when the
/// format's parser has met a row at both (``awaited``, ``confirm(_:at:)``): a line that only looks like a row, as in a comment, ends none.
/// Where none is found, less is copied.
///
/// A format hands it to ``TableLoader/take(_:)`` when it is sure that the bytes are those that were written, and that between two rows of
/// an entity there is nothing that belongs to another one. That they come in the order of their keys is looked after there.
public final class RunFinder {
  /// A line that begins with a row.
  struct Beginning {
    /// The row's entity; nil while its parser has not met it.
    var entity: Int?
    var key: Int64
    /// Where the line begins, and where the parser is when it meets the row.
    var offset: Int64
    var mark: Int64
    /// How many bytes lie between the beginning before and this one, without what stands between two rows, and their digest.
    var byteCount: Int
    var digest: UInt64
  }

  /// Where the parser is when it meets the next row that was found and not met yet; a number beyond every file when there is none.
  @exclusivity(unchecked) public private(set) var awaited = Int64.max
  @exclusivity(unchecked) private(set) var beginnings: [Beginning] = []
  /// How many of the beginnings the parser has met or passed.
  @exclusivity(unchecked) private var passedCount = 0
  private let separators: [[UInt8]]
  private let row: (UnsafeRawBufferPointer) -> (key: Int64, mark: Int)?
  /// Where the next piece begins, and where the last beginning is.
  @exclusivity(unchecked) private var offset: Int64 = 0
  @exclusivity(unchecked) private var start: Int64 = 0
  @exclusivity(unchecked) private var digest = ContentDigest()

  private static let pieceByteCount = 1 << 16

  /// Begins before the first byte.
  ///
  /// - Parameters:
  ///   - separators: what may stand before a row, to the end of the line before it, each of the same length.
  ///   - row: tells the key of the row with which a line begins, and how many bytes behind the line's beginning the parser is when it
  ///     meets that row; nil for a line that begins with none, or with so few bytes of one that nobody can tell.
  public init(separators: [String], _ row: @escaping (_ line: UnsafeRawBufferPointer) -> (key: Int64, mark: Int)?) {
    self.separators = separators.map { Array($0.utf8) }
    self.row = row
  }

  /// Takes the next bytes of the file, before the parser goes over them.
  public func update(_ bytes: UnsafeRawBufferPointer) {
    for start in stride(from: 0, to: bytes.count, by: RunFinder.pieceByteCount) {
      take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + RunFinder.pieceByteCount, bytes.count)]))
    }
  }

  /// Says that the parser has met a row. Rows before ``awaited`` need not be told.
  ///
  /// - Parameters:
  ///   - entity: the index of the row's entity.
  ///   - mark: where the parser is, in bytes from the beginning of the file.
  public func confirm(_ entity: Int, at mark: Int64) {
    while passedCount < beginnings.count, beginnings[passedCount].mark <= mark {
      if beginnings[passedCount].mark == mark { beginnings[passedCount].entity = entity }
      passedCount += 1
    }
    awaited = passedCount < beginnings.count ? beginnings[passedCount].mark : .max
  }

  /// The key that stands at the beginning of bytes, and how many digits it has, with something behind it; nil when there is none.
  public static func key(_ bytes: UnsafeRawBufferPointer) -> (key: Int64, count: Int)? {
    guard let end = bytes.prefix(20).firstIndex(where: { $0 &- 0x30 >= 10 }) else { return nil }
    return NumberText.integer(UnsafeRawBufferPointer(rebasing: bytes[..<end])).map { ($0, end) }
  }

  private func take(_ piece: UnsafeRawBufferPointer) {
    if let (place, end, key, mark) = lastRow(in: piece) {
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<end]))
      let begins = offset + Int64(place)
      let found = Beginning(
        entity: nil, key: key, offset: begins, mark: begins + Int64(mark), byteCount: Int(offset - start) + end, digest: digest.value)
      beginnings.append(found)
      if awaited == .max { awaited = found.mark }
      (start, digest) = (found.offset, ContentDigest())
      digest.update(UnsafeRawBufferPointer(rebasing: piece[place...]))
    } else {
      digest.update(piece)
    }
    offset += Int64(piece.count)
  }

  /// Where the last line begins that begins with a row, where the bytes before it end, and what ``row`` says of it.
  private func lastRow(in piece: UnsafeRawBufferPointer) -> (place: Int, end: Int, key: Int64, mark: Int)? {
    var end = piece.count
    while let lineEnd = piece[..<end].lastIndex(of: UInt8(ascii: "\n")) {
      let place = lineEnd + 1
      if let separator = separators.first(where: { place >= $0.count && piece[place - $0.count..<place].elementsEqual($0) }),
        let (key, mark) = row(UnsafeRawBufferPointer(rebasing: piece[place...]))
      {
        return (place, place - separator.count, key, mark)
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
    // Their last keys are not known yet: up to the key before the next run.
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
    var counted = runs, place = 0, last: Int64 = 0
    for batch in rows {
      for index in 0..<batch.count {
        let key = batch.pointer(index).key
        guard key > last else { return [] }
        last = key
        while place < runs.count, key > runs[place].last { place += 1 }
        if place < runs.count, key >= runs[place].first {
          counted[place].count += 1
          counted[place].last = key
        }
      }
    }
    return counted.filter { $0.count > 0 }
  }
}
