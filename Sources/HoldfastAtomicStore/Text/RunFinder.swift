import HoldfastStore

/// Finds runs of rows in a text file while it is read.
///
/// The first save after opening can copy these runs. In each piece of 64 KiB, the finder looks for the last line that begins with a
/// row. The rows between two such lines form a run if the format's parser confirms both (``awaited``, ``confirm(_:at:)``). A line
/// that only looks like a row, such as one in a comment, doesn't end a run. Without such lines, less is copied.
///
/// Finding runs doesn't measurably prolong opening a file.
///
/// Pass the finder to ``TableLoader/take(_:)`` only if the file's bytes were verified, and if rows of different entities aren't
/// interleaved. The loader checks that keys ascend.
public final class RunFinder {
  /// A line that begins with a row.
  struct Beginning {
    /// The row's entity; nil until the parser confirms it.
    var entity: Int?
    var key: Int64
    /// The offset of the line, and the parser's offset when it reaches the row.
    var offset: Int64
    var mark: Int64
    /// The number of bytes from the previous beginning to this one, without the separator, and their digest.
    var byteCount: Int
    var digest: UInt64
  }

  /// The parser's offset at the next row to confirm; `Int64.max` if there is none.
  @exclusivity(unchecked) public private(set) var awaited = Int64.max
  @exclusivity(unchecked) private(set) var beginnings: [Beginning] = []
  /// The number of beginnings that the parser has confirmed or passed.
  @exclusivity(unchecked) private var passedCount = 0
  private let separators: [[UInt8]]
  private let row: (UnsafeRawBufferPointer) -> (key: Int64, mark: Int)?
  /// The offset of the next piece, and of the last beginning.
  @exclusivity(unchecked) private var offset: Int64 = 0
  @exclusivity(unchecked) private var start: Int64 = 0
  @exclusivity(unchecked) private var digest = ContentDigest()

  private static let pieceByteCount = 1 << 16

  /// Creates a finder at the start of a file.
  ///
  /// - Parameters:
  ///   - separators: The possible texts before a row, up to the end of the previous line. All have the same length.
  ///   - row: Returns the key of the row with which a line begins, and the parser's offset in the line when it reaches that row.
  ///     Returns nil if the line doesn't begin with a row, or is too short to know.
  public init(separators: [String], _ row: @escaping (_ line: UnsafeRawBufferPointer) -> (key: Int64, mark: Int)?) {
    self.separators = separators.map { Array($0.utf8) }
    self.row = row
  }

  /// Adds the next bytes of the file. Call it before the parser reads them.
  public func update(_ bytes: UnsafeRawBufferPointer) {
    for start in stride(from: 0, to: bytes.count, by: RunFinder.pieceByteCount) {
      take(UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + RunFinder.pieceByteCount, bytes.count)]))
    }
  }

  /// Confirms that the parser has reached a row. Rows before ``awaited`` can be omitted.
  ///
  /// - Parameters:
  ///   - entity: The index of the row's entity.
  ///   - mark: The parser's offset in the file.
  public func confirm(_ entity: Int, at mark: Int64) {
    while passedCount < beginnings.count, beginnings[passedCount].mark <= mark {
      if beginnings[passedCount].mark == mark { beginnings[passedCount].entity = entity }
      passedCount += 1
    }
    awaited = passedCount < beginnings.count ? beginnings[passedCount].mark : .max
  }

  /// The key at the start of a buffer and its number of digits.
  ///
  /// Returns nil if there is no key, or if nothing follows the digits.
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

  /// The last line that begins with a row: its offset, the end of the bytes before it, and the result of ``row``.
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
  /// The runs, given all rows of the file.
  ///
  /// - Parameter rows: The rows by entity, in file order. An entity whose keys don't ascend has no runs.
  func parts(_ rows: [[RowBatch]]) -> [FilePart] {
    // The last key of each run isn't known yet; use the key before the next run.
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

  /// Adds the row count and last key to the runs of an entity. Returns no runs if the keys don't ascend.
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
