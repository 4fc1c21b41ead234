import Foundation
import Holdfast
import HoldfastStore

/// Values of every type, chosen from few.
enum RandomValue {
  /// The value with a number that isn't negative. The same value has several numbers.
  static func make(_ type: AttributeType, _ number: Int) -> StoreValue {
    switch type {
    case .integer16: return .int16(Int16(truncatingIfNeeded: number % 50))
    case .integer32: return .int32(Int32(truncatingIfNeeded: number % 50) - 25)
    case .integer64: return .int64(Int64(number % 50) << 40)
    case .double: return .double(Double(number % 40) / 4)
    case .float: return .float(Float(number % 40) / 8 - 1)
    case .decimal: return .decimal(Decimal(number % 50) / 100)
    case .boolean: return .bool(number % 2 == 0)
    case .date: return .date(Double(number % 1000))
    case .binaryData, .transformable: return .data(Data(repeating: UInt8(number % 256), count: number % 9))
    case .uuid:
      let byte = UInt8(number % 16)
      return .uuid(UUID(uuid: (byte, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, byte)))
    case .uri: return .uri(number % 7 == 0 ? "" : "https://example.org/\(number % 30)")
    case .objectID:
      let uri = "x-coredata://6DD0E5C5-2C5B-4E8E-9C9F-0A4B4B7C2F11/Thing/p\(number % 30)"
      return ManagedObjectID(uriRepresentation: uri).map { .objectID($0) } ?? .null
    case .string, .composite, .undefined: return .string(number % 7 == 0 ? "" : "text \(number % 30)")
    }
  }
}
