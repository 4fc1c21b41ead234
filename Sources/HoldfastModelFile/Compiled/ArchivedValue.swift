import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Archived values of attributes: default values and bounds.
enum ArchivedValue {
  /// A default value consists of one object or a few.
  private static let limits = PropertyListLimits(bytes: 1 << 20, depth: 4, objects: 100)

  /// The referenced value as an attribute's type; nil if it can't be converted.
  static func value(_ archive: ModelArchive, _ reference: PropertyList, _ type: AttributeType) -> StoreValue? {
    if type == .decimal, let number = decimal(archive, reference) { return .decimal(number) }
    return (try? archive.propertyListValue(of: reference, limits: limits)).flatMap { value(ofPlain: $0, type) }
  }

  /// A plain value as an attribute's type; nil if it can't be converted.
  static func value(ofPlain plain: PropertyList, _ type: AttributeType) -> StoreValue? {
    switch plain {
    case .bool(let value): return StoreValue.bool(value).converted(to: type)
    case .integer(let number): return type == .date ? .date(Double(number)) : StoreValue.int64(number).converted(to: type)
    case .real(let number): return value(ofReal: number, type)
    case .date(let seconds): return type == .date ? .date(seconds) : nil
    case .data(let bytes): return type == .binaryData ? .data(Data(bytes)) : nil
    case .string(let text): return value(ofText: text, type)
    case .null, .unsigned, .uid, .array, .dictionary: return nil
    }
  }

  private static func value(ofReal number: Double, _ type: AttributeType) -> StoreValue? {
    switch type {
    case .date: .date(number)
    // The nearest number of the type, as in Core Data.
    case .float: .float(Float(number))
    case .decimal: number.isFinite ? Decimal(string: number.description).map { .decimal($0) } : nil
    default: StoreValue.double(number).converted(to: type)
    }
  }

  private static func value(ofText text: String, _ type: AttributeType) -> StoreValue? {
    switch type {
    case .string: .string(text)
    case .uri: .uri(text)
    case .uuid: UUID(uuidString: text).map { .uuid($0) }
    default: nil
    }
  }

  /// Decodes an `NSDecimalNumber`: a mantissa of 128 bits, the exponent of ten, and the sign.
  static func decimal(_ archive: ModelArchive, _ reference: PropertyList) -> Decimal? {
    guard case .instance(let instance)? = try? archive.object(reference),
      ["NSDecimalNumber", "NSDecimalNumberPlaceholder"].contains(instance.className),
      case .value(.data(let mantissa))? = try? archive.object(instance["NS.mantissa"]), mantissa.count == 16,
      let exponent = instance["NS.exponent"]?.integer, (-128...127).contains(exponent)
    else { return nil }
    // Units of 16 bits, the lowest first, each in the byte order of the machine that wrote it. 1 is little-endian.
    let isSwapped = instance["NS.mantissa.bo"]?.integer == 2
    // The number of used units.
    let length = min(8, max(0, Int(instance["NS.length"]?.integer ?? 8)))
    var number: UInt128 = 0
    for unit in (0..<length).reversed() {
      let (first, second) = (UInt128(mantissa[2 * unit]), UInt128(mantissa[2 * unit + 1]))
      number = number << 16 | (isSwapped ? first << 8 | second : second << 8 | first)
    }
    let isNegative = instance["NS.negative"]?.bool ?? false
    // A sign without digits denotes NaN.
    return length == 0 && isNegative ? nil : Decimal(string: "\(isNegative ? "-" : "")\(number)e\(exponent)")
  }
}
