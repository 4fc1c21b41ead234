internal import Holdfast

/// An object with the properties whose accesses are measured.
protocol PropertySample: AnyObject {
  var whole: Int { get set }
  var real: Double? { get set }
  var short: String { get set }
  var long: String { get set }
  var partner: Self? { get set }
}

/// A class whose properties are stored in the object.
final class PlainSample: PropertySample {
  var whole = 0
  var real: Double?
  var short = ""
  var long = ""
  var partner: PlainSample?
}

/// A class of managed objects with accessors written by hand.
final class HandwrittenSample: ManagedObject, PropertySample {
  enum Slot { static let long: SlotIndex = 0, partner: SlotIndex = 1, real: SlotIndex = 2, short: SlotIndex = 3, whole: SlotIndex = 4 }
  var whole: Int {
    get { self[Slot.whole] }
    set { self[Slot.whole] = newValue }
  }
  var real: Double? {
    get { self[Slot.real] }
    set { self[Slot.real] = newValue }
  }
  var short: String {
    get { self[Slot.short] }
    set { self[Slot.short] = newValue }
  }
  var long: String {
    get { self[Slot.long] }
    set { self[Slot.long] = newValue }
  }
  var partner: HandwrittenSample? {
    get { toOne(Slot.partner) }
    set { setToOne(Slot.partner, newValue) }
  }
  override class var properties: [PropertyBinding] {
    [
      .attribute("long", \HandwrittenSample.long, slot: Slot.long), .toOne("partner", \HandwrittenSample.partner, slot: Slot.partner),
      .attribute("real", \HandwrittenSample.real, slot: Slot.real), .attribute("short", \HandwrittenSample.short, slot: Slot.short),
      .attribute("whole", \HandwrittenSample.whole, slot: Slot.whole),
    ]
  }

  static let entity = EntityDescription(
    "HandwrittenSample",
    attributes: [
      AttributeDescription("whole", .integer64, default: .int64(0)), AttributeDescription("real", .double, isOptional: true),
      AttributeDescription("short", .string, default: .string("")), AttributeDescription("long", .string, default: .string("")),
    ], relationships: [.toOne("partner", to: "HandwrittenSample", inverse: nil)])
}

#if Macros
  /// A class of managed objects with macros.
  @Entity final class MacroSample: ManagedObject, PropertySample {
    var whole = 0
    var real: Double?
    var short = ""
    var long = ""
    var partner: MacroSample?
  }
#endif

/// An access to a property.
enum PropertyAccess: String, CaseIterable {
  case readWhole = "read an `Int`"
  case readReal = "read a `Double?`"
  case readShort = "read a `String` of at most 15 bytes"
  case readLong = "read a longer `String`"
  case readPartner = "read a to-one relationship"
  case writeWhole = "write an `Int`"
  case writeShort = "write a `String` of at most 15 bytes"

  /// Accesses the property of all objects several times. Specialised for each class, as a program's own code is.
  ///
  /// - Returns: A number that depends on every value that was read.
  @inline(never) func run<Sample: PropertySample>(_ objects: [Sample], passes: Int) -> Int {
    let texts = ["a short name", "another name"]
    var sum = 0
    for pass in 0..<passes {
      switch self {
      case .readWhole: for object in objects { sum &+= object.whole }
      case .readReal: for object in objects { sum &+= Int(object.real ?? 1) }
      case .readShort: for object in objects { sum &+= object.short.utf8.count }
      case .readLong: for object in objects { sum &+= object.long.utf8.count }
      case .readPartner: for object in objects { sum &+= object.partner == nil ? 1 : 2 }
      case .writeWhole: for object in objects { object.whole = pass }
      case .writeShort: for object in objects { object.short = texts[pass & 1] }
      }
    }
    return sum
  }

  /// Reads an `Int` of one object several times. Specialised, as ``run(_:passes:)``.
  @inline(never) static func readInt<Sample: PropertySample>(of object: Sample, times: Int) -> Int {
    var sum = 0
    for _ in 0..<times { sum &+= object.whole }
    return sum
  }
}
