import HoldfastStore
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The values of a class's snapshots.
struct SnapshotLayout: Sendable {
  /// A single value: an attribute, an element of a composite attribute, or a to-one relationship.
  struct Field: Sendable {
    /// The name, or the path of an element.
    let name: String
    /// The type of the values in encoded snapshots.
    let type: AttributeType
    var defaultValue = StoreValue.null
  }

  /// All fields. The elements of a composite attribute are consecutive.
  private(set) var fields: [Field] = []
  /// The index of the first field of each property that has a member.
  private(set) var starts: [String: Int] = [:]

  private init(_ type: ManagedObject.Type) {
    let declared = SnapshotLayout.declared(type)
    for binding in SnapshotLayout.bindings(type) {
      let start = fields.count
      switch binding.kind {
      case .attribute(let types, _):
        let attribute = declared[binding.name]
        fields.append(
          Field(name: binding.name, type: attribute?.type ?? types.declaredType, defaultValue: attribute?.defaultValue ?? .null))
      case .transformable:
        fields.append(Field(name: binding.name, type: .transformable))
        continue
      case .relationship(let relationship) where relationship.isInRow: fields.append(Field(name: binding.name, type: .objectID))
      case .composite(let leaves):
        fields += leaves().map { Field(name: "\(binding.name).\($0.name)", type: $0.types.declaredType) }
      case .relationship, .transient: continue
      }
      starts[binding.name] = start
    }
  }

  /// The bindings of a class and its superclasses, the topmost class first.
  private static func bindings(_ type: ManagedObject.Type) -> [PropertyBinding] {
    guard type != ManagedObject.self else { return [] }
    let above = (_getSuperclass(type) as? ManagedObject.Type).map(bindings) ?? []
    let names = Set(above.map(\.name))
    // A class without own properties inherits the list of its superclass.
    return above + type.properties.filter { !names.contains($0.name) }
  }

  /// The attributes that a class and its superclasses declare, by name.
  private static func declared(_ type: ManagedObject.Type) -> [String: AttributeDescription] {
    var (attributes, next): ([String: AttributeDescription], ManagedObject.Type?) = ([:], type)
    while let type = next, type != ManagedObject.self {
      for property in type.declaration?.properties ?? [] {
        if case .attribute(let attribute) = property.kind { attributes[property.name] = attribute.description }
      }
      next = _getSuperclass(type) as? ManagedObject.Type
    }
    return attributes
  }

  private static let known = Mutex<[ObjectIdentifier: SnapshotLayout]>([:])

  /// The layout of a class, computed once.
  static func of(_ type: ManagedObject.Type) -> SnapshotLayout {
    if let layout = known.withLock({ $0[ObjectIdentifier(type)] }) { return layout }
    let layout = SnapshotLayout(type)
    known.withLock { $0[ObjectIdentifier(type)] = layout }
    return layout
  }
}

// MARK: Encoding

/// The name of a property or an element.
struct NameKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

extension SnapshotLayout.Field {
  private var path: [NameKey] { name.split(separator: ".").map { NameKey(stringValue: String($0)) } }

  /// What a decoder has of a field.
  enum Decoded {
    /// The field, or a composite attribute that contains it, is missing.
    case missing
    /// A composite attribute that contains the field is null.
    case null
    /// The container and key of the field. Composite attributes are nested containers.
    case value(KeyedDecodingContainer<NameKey>, NameKey)
  }

  func decoded(by decoder: any Decoder) throws -> Decoded {
    var path = path, container = try decoder.container(keyedBy: NameKey.self)
    let last = path.removeLast()
    for key in path {
      guard container.contains(key) else { return .missing }
      if try container.decodeNil(forKey: key) { return .null }
      container = try container.nestedContainer(keyedBy: NameKey.self, forKey: key)
    }
    return container.contains(last) ? .value(container, last) : .missing
  }

  func container(in encoder: any Encoder) -> (KeyedEncodingContainer<NameKey>, NameKey) {
    var path = path, container = encoder.container(keyedBy: NameKey.self)
    let last = path.removeLast()
    for key in path { container = container.nestedContainer(keyedBy: NameKey.self, forKey: key) }
    return (container, last)
  }
}

extension StoreValue {
  /// Encodes the bare value, without its type.
  func encodePlain(in container: inout KeyedEncodingContainer<NameKey>, _ key: NameKey) throws {
    switch self {
    case .null, .externalData: try container.encodeNil(forKey: key)
    case .bool(let value): try container.encode(value, forKey: key)
    case .int16(let value): try container.encode(value, forKey: key)
    case .int32(let value): try container.encode(value, forKey: key)
    case .int64(let value): try container.encode(value, forKey: key)
    case .float(let value): try container.encode(value, forKey: key)
    case .double(let value): try container.encode(value, forKey: key)
    case .decimal(let value): try container.encode(PlainDecimal(value), forKey: key)
    case .string(let value), .uri(let value): try container.encode(value, forKey: key)
    case .date(let value): try container.encode(Date(timeIntervalSinceReferenceDate: value), forKey: key)
    case .uuid(let value): try container.encode(value, forKey: key)
    case .data(let value): try container.encode(value, forKey: key)
    case .objectID(let value): try container.encode(value, forKey: key)
    }
  }

  /// Decodes a bare value of a known type.
  init(plain type: AttributeType, from container: KeyedDecodingContainer<NameKey>, _ key: NameKey) throws {
    func decode<Value: Decodable>(_ value: (Value) -> StoreValue) throws -> StoreValue {
      try container.decodeIfPresent(Value.self, forKey: key).map(value) ?? .null
    }
    self =
      switch type {
      case .integer16: try decode(StoreValue.int16)
      case .integer32: try decode(StoreValue.int32)
      case .integer64: try decode(StoreValue.int64)
      case .boolean: try decode(StoreValue.bool)
      case .float: try decode(StoreValue.float)
      case .double: try decode(StoreValue.double)
      case .decimal: try decode { (decimal: PlainDecimal) in .decimal(decimal.value) }
      case .string: try decode(StoreValue.string)
      case .uri: try decode(StoreValue.uri)
      case .date: try decode { (date: Date) in .date(date.timeIntervalSinceReferenceDate) }
      case .uuid: try decode(StoreValue.uuid)
      case .binaryData, .transformable: try decode(StoreValue.data)
      case .objectID: try decode(StoreValue.objectID)
      case .composite, .undefined: .null
      }
  }
}

/// A decimal, encoded as a number or as text. Both are decoded.
///
/// NaN is text, because encoders of JSON write it as a number, which isn't valid JSON. So are decimals of more than 15 digits, which some
/// decoders of JSON round or refuse.
private struct PlainDecimal: Codable {
  let value: Decimal

  init(_ value: Decimal) { self.value = value }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let text = try? container.decode(String.self) else {
      value = try container.decode(Decimal.self)
      return
    }
    guard let number = text == Decimal.nan.description ? Decimal.nan : DecimalText.number(text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "The text isn't a decimal number.")
    }
    value = number
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    let text = DecimalText.digits(value), digitCount = text.utf8.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    if value.isNaN || digitCount > 15 { try container.encode(text) } else { try container.encode(value) }
  }
}
