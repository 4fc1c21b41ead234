import HoldfastStore

/// How a column is read and written. Loops over rows switch only on this.
enum ColumnCode: UInt8, Sendable {
  case integer16, integer32, integer64, boolean, key, real, text, uuid, data, decimal, objectID
  /// Data after a mark, or the name of the file with the data.
  case marked

  init(_ slot: ManagedObjectModel.Slot) {
    if case .attribute(let attribute) = slot, attribute.allowsExternalBinaryDataStorage {
      self = .marked
    } else {
      self.init(slot.columnType)
    }
  }

  init(_ column: ColumnType) {
    switch column {
    case .toOne: self = .key
    case .attribute(let type):
      switch type {
      case .integer16: self = .integer16
      case .integer32: self = .integer32
      case .integer64: self = .integer64
      case .boolean: self = .boolean
      case .double, .float, .date: self = .real
      case .string, .uri: self = .text
      case .objectID: self = .objectID
      case .uuid: self = .uuid
      case .binaryData, .transformable, .composite, .undefined: self = .data
      case .decimal: self = .decimal
      }
    }
  }
}
