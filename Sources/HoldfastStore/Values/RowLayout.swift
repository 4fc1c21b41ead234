/// What one column of a row holds.
public enum ColumnType: Sendable, Hashable, Codable {
  /// Values of an attribute type.
  case attribute(AttributeType)
  /// The key of an object of the entity with that index, or of a sub-entity.
  case toOne(destination: Int)

  /// How the 8 bytes of the cell are to be read.
  public var cellKind: CellKind {
    switch self {
    case .attribute(let type): type.cellKind
    case .toOne: .key
    }
  }
}

/// The shape of rows: which columns they have and where each lies.
///
/// A row has a fixed part, aligned to 8:
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 8 | key |
/// | 8 | 8 | version |
/// | 16 | 8 + 8 × 64 | presence bits of slots 0–63, then their cells, as many as there are |
/// | … | 8 + 8 × 64 | presence bits of slots 64–127, then their cells, and so on |
///
/// Cells of text and other bytes hold length (the upper half) and offset from the row's start. The offset is below 2^31; the bit
/// above it says that the bytes are not the value but the name of the file in which it lies (``RowPointer/isExternal(_:)``). In a page the fixed parts of all rows stand one
/// behind the other, and behind the last one the bytes of all: who reads one slot of many rows goes over no text.
///
/// The place of a cell depends on its slot alone, so code for a super entity's slot reads rows of every sub-entity.
public final class RowLayout: Sendable, Hashable {
  /// What each slot holds.
  public let columns: [ColumnType]
  /// How each slot's cell is to be read.
  public let kinds: [CellKind]
  /// The bytes of a row without its text and other bytes.
  public let fixedByteCount: Int
  /// The slots of text and other bytes.
  @usableFromInline let byteSlots: [Int]

  /// Makes the layout of rows with these columns.
  public init(_ columns: [ColumnType]) {
    self.columns = columns
    let kinds = columns.map(\.cellKind)
    self.kinds = kinds
    byteSlots = kinds.indices.filter { kinds[$0] == .bytes }
    fixedByteCount = columns.isEmpty ? RowLayout.headerByteCount : RowLayout.cellOffset(columns.count - 1) + 8
  }

  /// The bit of a cell that says that the value lies in a file of its own.
  public static let externalBit: UInt64 = 1 << 31

  /// The bytes before the first presence bits.
  @inlinable public static var headerByteCount: Int { 16 }

  /// The offset of a slot's cell from the start of the row.
  @inlinable @inline(__always) public static func cellOffset(_ slot: Int) -> Int { 16 + 8 * (slot + (slot >> 6) + 1) }

  /// The offset of the presence bits of a slot's block.
  @inlinable @inline(__always) public static func presenceOffset(_ slot: Int) -> Int { 16 + 8 * 65 * (slot >> 6) }

  /// Layouts are equal when their columns are.
  public static func == (a: RowLayout, b: RowLayout) -> Bool { a === b || a.columns == b.columns }

  /// Hashes the columns.
  public func hash(into hasher: inout Hasher) { hasher.combine(columns) }

  /// Rows that carry a key and a version and nothing else.
  public static let keysOnly = RowLayout([])
}
