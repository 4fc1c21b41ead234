/// The type of a column.
public enum ColumnType: Sendable, Hashable, Codable {
  /// Values of an attribute type.
  case attribute(AttributeType)
  /// The key of a to-one destination: an object of the entity with this index, or of a subentity.
  case toOne(destination: EntityIndex)

  /// How the 8 bytes of the cell are read.
  public var cellKind: CellKind {
    switch self {
    case .attribute(let type): type.cellKind
    case .toOne: .key
    }
  }
}

/// The layout of rows: their columns, and the offset of each.
///
/// A row has a fixed part, aligned to 8 bytes:
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 8 | key |
/// | 8 | 8 | version |
/// | 16 | 8 + 8 × 64 | presence bits of slots 0–63, then one cell for each of these slots that exists |
/// | … | 8 + 8 × 64 | presence bits of slots 64–127, then their cells, and so on |
///
/// A cell of text or bytes contains the length in its upper half and an offset from the row's start in its lower half. The offset is below
/// 2^31. The bit above it marks the bytes as the name of an external file (``RowPointer/isExternal(_:)``).
///
/// A batch contains the fixed parts of all rows, then the bytes of all rows. Reading one slot of many rows therefore doesn't access any
/// text.
///
/// The offset of a cell depends only on its slot. Code for a slot of a superentity also reads rows of every subentity.
public final class RowLayout: Sendable, Hashable {
  /// The type of each slot.
  public let columns: [ColumnType]
  /// How each slot's cell is read.
  public let kinds: [CellKind]
  /// The size of a row in bytes, without text and other data.
  public let fixedByteCount: Int
  /// The slots that contain text or bytes.
  @usableFromInline package let byteSlots: [SlotIndex]
  /// The names of the model's entities, by index. Empty if nothing is known of the model. A decoded layout knows only the names of its to-one
  /// destinations, and the others are empty.
  let entityNames: [String]

  /// The indexes of all slots.
  @inlinable public var slots: Range<SlotIndex> { 0..<SlotIndex(columns.count) }

  /// Creates a layout with these columns.
  public convenience init(_ columns: [ColumnType]) { self.init(columns, entityNames: []) }

  init(_ columns: [ColumnType], entityNames: [String]) {
    self.columns = columns
    self.entityNames = entityNames
    let kinds = columns.map(\.cellKind)
    self.kinds = kinds
    byteSlots = (0..<SlotIndex(kinds.count)).filter { kinds[$0] == .bytes }
    fixedByteCount = columns.isEmpty ? RowLayout.headerByteCount : RowLayout.cellOffset(SlotIndex(columns.count - 1)) + 8
  }

  /// The layout of decoded rows.
  ///
  /// - Parameter destinations: The names of the entities of to-one destinations, by index. They are data, so an index may be wrong.
  convenience init(_ columns: [ColumnType], destinations: [Int: String]) {
    let named = destinations.filter { (0..<Int(UInt16.max)).contains($0.key) }
    var names = Array(repeating: "", count: named.keys.max().map { $0 + 1 } ?? 0)
    for (index, name) in named { names[index] = name }
    self.init(columns, entityNames: names)
  }

  /// The name of the entity of a to-one destination; nil if it isn't known.
  func name(of destination: EntityIndex) -> String? {
    guard entityNames.indices.contains(destination.rawValue), !entityNames[destination].isEmpty else { return nil }
    return entityNames[destination]
  }

  /// The bit of a cell that marks an external value.
  public static let externalBit: UInt64 = 1 << 31

  /// The number of bytes before the first presence bits.
  @inlinable public static var headerByteCount: Int { 16 }

  /// The offset of a slot's cell from the start of the row, in bytes.
  @inlinable @inline(__always) public static func cellOffset(_ slot: SlotIndex) -> Int { 16 + 8 * (slot.rawValue + slot.word + 1) }

  /// The offset of the presence bits of a slot's block, in bytes.
  @inlinable @inline(__always) public static func presenceOffset(_ slot: SlotIndex) -> Int { 16 + 8 * 65 * slot.word }

  /// Layouts are equal if their columns are equal.
  public static func == (a: RowLayout, b: RowLayout) -> Bool { a === b || a.columns == b.columns }

  /// Hashes the columns.
  public func hash(into hasher: inout Hasher) { hasher.combine(columns) }

  /// The layout of rows with only a key and a version.
  public static let keysOnly = RowLayout([])
}
