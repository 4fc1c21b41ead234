import Foundation
import Holdfast

/// A graph without classes, with an attribute of every type that queries compare.
enum Ledger {
  static let entities: [EntityDescription] = [
    EntityDescription(
      "Entry",
      attributes: [
        AttributeDescription("b", .boolean, isOptional: true), AttributeDescription("i16", .integer16, isOptional: true),
        AttributeDescription("i32", .integer32, isOptional: true), AttributeDescription("i64", .integer64, isOptional: true),
        AttributeDescription("r", .double, isOptional: true), AttributeDescription("f", .float, isOptional: true),
        AttributeDescription("m", .decimal, isOptional: true), AttributeDescription("s", .string, isOptional: true),
        AttributeDescription("l", .uri, isOptional: true), AttributeDescription("d", .date, isOptional: true),
        AttributeDescription("u", .uuid, isOptional: true), AttributeDescription("x", .binaryData, isOptional: true),
        AttributeDescription("o", .objectID, isOptional: true),
      ],
      relationships: [.toOne("up", to: "Entry", inverse: "down"), .toMany("down", to: "Entry", inverse: "up")])
  ]

  static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: entities) } catch { fatalError("\(error)") }
  }()

  static let attributes = entities[0].attributes

  /// Numbers that are equal in several types, and almost equal ones.
  private static let numbers: [StoreValue] = [
    .int64(0), .double(-0.0), .double(0), .int16(1), .double(1), .float(1), .bool(true), .decimal(1), .int32(2), .double(2.5), .float(2.5),
    .decimal(Decimal(string: "2.5")!), .float(0.1), .double(0.1), .decimal(Decimal(string: "0.1")!), .int64(.max), .int64(.min),
    .double(0x1p63), .int64(1 << 53), .int64(1 << 53 + 1), .double(0x1p53), .decimal(Decimal(string: "9007199254740993")!),
    .double(.infinity), .double(-.infinity), .double(.nan), .float(.nan), .decimal(.nan), .decimal(Decimal(string: "-3.75")!),
  ]

  static let otherStore = ManagedObjectID(uriRepresentation: "x-coredata://6BA7B810-9DAD-11D1-80B4-00C04FD430C8/Entry/p4")

  /// Constants that can be compared with an attribute of a type.
  static func constants(_ type: AttributeType) -> [StoreValue] {
    switch type {
    case .string, .uri:
      return ["", "https://a/b#c", "a", "A", "ab", "é", "e\u{301}", "a\u{0}", "ß", "日本"].flatMap { [StoreValue.string($0), .uri($0)] }
    case .uuid: return (0..<4).map { .uuid(UUID(uuid: (0, $0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))) }
    case .binaryData: return [[], [0], [0, 1], [255], [97]].map { .data(Data($0 as [UInt8])) }
    case .date: return numbers + [.date(0), .date(-0.0), .date(1), .date(2.5), .date(0.1), .date(.nan), .date(.infinity)]
    case .objectID: return [otherStore.map { .objectID($0) }].compactMap { $0 }
    case .transformable, .composite, .undefined: return []
    case .boolean, .integer16, .integer32, .integer64, .decimal, .double, .float: return numbers
    }
  }

  /// Values for an attribute of a type.
  static func values(_ type: AttributeType, nan: Bool = true) -> [StoreValue] {
    if type == .uri { return ["a", "A", "ab", "https://a/b#c"].map { .uri($0) } }
    return constants(type).compactMap { $0.converted(to: type) }.filter { value in
      if case .date(let seconds) = value { return seconds.isFinite }
      return nan || !value.isNaN
    }
  }
}
