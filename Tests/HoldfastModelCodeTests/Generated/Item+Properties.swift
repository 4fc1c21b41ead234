// Generated from the model. Don't change it: it is overwritten.

import Foundation
import Holdfast

nonisolated extension Item {
  /// Bytes, perhaps in a file of its own.
  var bytes: Data? {
    get { self[property: Slots.bytes] }
    set { self[property: Slots.bytes] = newValue }
  }

  /// The bytes of a transformable value, encoded by ColourTransformer.
  var colour: Data? {
    get { self[property: Slots.colour] }
    set { self[property: Slots.colour] = newValue }
  }

  /// A decimal number.
  var decimal: Decimal {
    get { self[property: Slots.decimal] }
    set { self[property: Slots.decimal] = newValue }
  }

  /// A truth value.
  var flag: Bool {
    get { self[property: Slots.flag] }
    set { self[property: Slots.flag] = newValue }
  }

  /// A UUID.
  var kept: UUID {
    get { self[property: Slots.kept] }
    set { self[property: Slots.kept] = newValue }
  }

  /// A URI.
  var link: URL {
    get { self[property: Slots.link] }
    set { self[property: Slots.link] = newValue }
  }

  /// A point in time.
  var moment: Date {
    get { self[property: Slots.moment] }
    set { self[property: Slots.moment] = newValue }
  }

  /// A composite value.
  var place: Place? {
    get { self[property: Slots.place] }
    set { self[property: Slots.place] = newValue }
  }

  /// A floating-point number of 64 bits.
  var real: Double {
    get { self[property: Slots.real] }
    set { self[property: Slots.real] = newValue }
  }

  /// The ID of an object.
  var reference: ManagedObjectID? {
    get { self[property: Slots.reference] }
    set { self[property: Slots.reference] = newValue }
  }

  /// A floating-point number of 32 bits.
  var single: Float {
    get { self[property: Slots.single] }
    set { self[property: Slots.single] = newValue }
  }

  /// Text.
  var text: String {
    get { self[property: Slots.text] }
    set { self[property: Slots.text] = newValue }
  }

  /// Text, derived from `uppercase:(text)`.
  var upper: String? { self[property: Slots.upper] }

  /// A value of any type, kept in memory only.
  var volatile: Any? {
    get { self[property: Slots.volatile] }
    set { self[property: Slots.volatile] = newValue }
  }

  /// A whole number of 16 bits.
  var whole16: Int16 {
    get { self[property: Slots.whole16] }
    set { self[property: Slots.whole16] = newValue }
  }

  /// A whole number of 32 bits.
  var whole32: Int32 {
    get { self[property: Slots.whole32] }
    set { self[property: Slots.whole32] = newValue }
  }

  /// A whole number of 64 bits.
  var whole64: Int64 {
    get { self[property: Slots.whole64] }
    set { self[property: Slots.whole64] = newValue }
  }

  /// An object of Item. It has no inverse.
  var first: Item? {
    get { self[property: Slots.first] }
    set { self[property: Slots.first] = newValue }
  }

  /// An object of Owner. The inverse is `Owner.items`.
  var owner: Owner? {
    get { self[property: Slots.owner] }
    set { self[property: Slots.owner] = newValue }
  }

  /// An object of Item. The inverse is `Item.self_`.
  var self_: Item? {
    get { self[property: Slots.self_] }
    set { self[property: Slots.self_] = newValue }
  }

  /// Objects of Item. Each access fetches them.
  ///
  /// The predicate of its request is `owner == $FETCH_SOURCE.owner`.
  var peers: [Item] {
    get throws { try fetchedObjects(forProperty: "peers", as: Item.self) }
  }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Item>

  /// Inserts a new object.
  convenience init(
    context managedObjectContext: ManagedObjectContext,
    bytes: Data? = nil,
    colour: Data? = nil,
    created: Date,
    decimal: Decimal? = nil,
    flag: Bool = false,
    kept: UUID? = nil,
    link: URL? = nil,
    moment: Date? = nil,
    place: Place? = nil,
    real: Double = 3.141592653589793,
    reference: ManagedObjectID? = nil,
    single: Float? = nil,
    text: String = " a\nb ",
    whole16: Int16 = -32768,
    whole32: Int32 = 2_147_483_647,
    whole64: Int64 = -9_223_372_036_854_775_808,
    first: Item? = nil,
    owner: Owner? = nil,
    self_: Item? = nil
  ) {
    self.init(insertedInto: managedObjectContext)
    if let bytes { self.bytes = bytes }
    if let colour { self.colour = colour }
    self.created = created
    if let decimal { self.decimal = decimal }
    self.flag = flag
    if let kept { self.kept = kept }
    if let link { self.link = link }
    if let moment { self.moment = moment }
    if let place { self.place = place }
    self.real = real
    if let reference { self.reference = reference }
    if let single { self.single = single }
    self.text = text
    self.whole16 = whole16
    self.whole32 = whole32
    self.whole64 = whole64
    if let first { self.first = first }
    if let owner { self.owner = owner }
    if let self_ { self.self_ = self_ }
    finishInsertion()
  }

  /// Where an object keeps its properties.
  enum Slots {
    static var bytes: SlotIndex { SlotIndex(Base.SlotCounts.slots) }
    static var colour: SlotIndex { bytes.advanced(by: slotCount(of: Data?.self)) }
    static var decimal: SlotIndex { colour.advanced(by: slotCount(of: Data?.self)) }
    static var first: SlotIndex { decimal.advanced(by: slotCount(of: Decimal.self)) }
    static var flag: SlotIndex { first.advanced(by: slotCount(of: Item?.self)) }
    static var kept: SlotIndex { flag.advanced(by: slotCount(of: Bool.self)) }
    static var link: SlotIndex { kept.advanced(by: slotCount(of: UUID.self)) }
    static var moment: SlotIndex { link.advanced(by: slotCount(of: URL.self)) }
    static var owner: SlotIndex { moment.advanced(by: slotCount(of: Date.self)) }
    static var place: SlotIndex { owner.advanced(by: slotCount(of: Owner?.self)) }
    static var real: SlotIndex { place.advanced(by: slotCount(of: Place?.self)) }
    static var reference: SlotIndex { real.advanced(by: slotCount(of: Double.self)) }
    static var self_: SlotIndex { reference.advanced(by: slotCount(of: ManagedObjectID?.self)) }
    static var single: SlotIndex { self_.advanced(by: slotCount(of: Item?.self)) }
    static var text: SlotIndex { single.advanced(by: slotCount(of: Float.self)) }
    static var upper: SlotIndex { text.advanced(by: slotCount(of: String.self)) }
    static var whole16: SlotIndex { upper.advanced(by: slotCount(of: String?.self)) }
    static var whole32: SlotIndex { whole16.advanced(by: slotCount(of: Int16.self)) }
    static var whole64: SlotIndex { whole32.advanced(by: slotCount(of: Int32.self)) }
    static var volatile: TransientIndex { TransientIndex(Base.SlotCounts.transients + 0) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.whole64.rawValue + slotCount(of: Int64.self) }
    static var toMany: Int { Base.SlotCounts.toMany }
    static var transients: Int { Base.SlotCounts.transients + 1 }
    static var transientLinks: Int { Base.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Item" }
    /// The entity.
    static var declaration: EntityDeclaration {
      _ = Item.self as Base.Type
      var declaration = EntityDeclaration(Item.self)
      declaration.properties.append(
        .property(
          "bytes",
          \Item.bytes,
          .external,
          .setting(\.allowsCloudEncryption, true)
        ))
      declaration.properties.append(
        .property(
          "colour",
          \Item.colour,
          .type(.transformable),
          .setting(\.valueTransformerName, "ColourTransformer"),
          .setting(\.valueClassName, "[Colour]")
        ))
      declaration.properties.append(
        .property(
          "decimal",
          \Item.decimal,
          .setting(\.validation.minimum, .decimal(Decimal(string: "-4") ?? 0)),
          .setting(\.defaultValue, .decimal(Decimal(string: "12345678901234567890.0123456789") ?? 0))
        ))
      declaration.properties.append(.property("flag", \Item.flag, default: false))
      declaration.properties.append(
        .property(
          "kept",
          \Item.kept,
          .preservedInHistory,
          .renamed(from: "was"),
          .versionHashModifier("v"),
          .setting(\.defaultValue, .uuid(UUID(uuidString: "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0") ?? UUID()))
        ))
      declaration.properties.append(
        .property(
          "link",
          \Item.link,
          .setting(\.defaultValue, .uri("a?b&c"))
        ))
      declaration.properties.append(
        .property(
          "moment",
          \Item.moment,
          .setting(\.validation.minimum, .date(-10000000000.0)),
          .setting(\.validation.maximum, .date(10000000000.0)),
          .setting(\.defaultValue, .date(0.1))
        ))
      declaration.properties.append(.property("place", \Item.place))
      declaration.properties.append(
        .property(
          "real",
          \Item.real,
          .setting(\.validation.minimum, .double(-3.5)),
          .setting(\.validation.maximum, .double(1e+300)),
          default: 3.141592653589793
        ))
      declaration.properties.append(.property("reference", \Item.reference))
      declaration.properties.append(
        .property(
          "single",
          \Item.single,
          .setting(\.validation.minimum, .float(Float(bitPattern: 3_223_322_624))),
          .setting(\.validation.maximum, .float(Float(bitPattern: 1_075_838_976))),
          .setting(\.defaultValue, .float(Float(bitPattern: 1_036_831_949)))
        ))
      declaration.properties.append(
        .property(
          "text",
          \Item.text,
          .length(1...64),
          .pattern("[a-z]+\\s"),
          .userInfo(["": "empty"]),
          default: " a\nb "
        ))
      declaration.properties.append(
        .property(
          "upper",
          \Item.upper,
          .derived("uppercase:(text)")
        ))
      declaration.properties.append(
        .transient(
          "volatile",
          \Item.volatile,
          .setting(\.isOptional, false)
        ))
      declaration.properties.append(
        .property(
          "whole16",
          \Item.whole16,
          .setting(\.validation.minimum, .int16(-32768)),
          .setting(\.validation.maximum, .int16(32767)),
          default: -32768
        ))
      declaration.properties.append(.property("whole32", \Item.whole32, default: 2_147_483_647))
      declaration.properties.append(
        .property(
          "whole64",
          \Item.whole64,
          .setting(\.validation.maximum, .int64(9_223_372_036_854_775_807)),
          default: -9_223_372_036_854_775_808
        ))
      declaration.properties.append(
        .property(
          "first",
          \Item.first,
          .required,
          .setting(\.minCount, 1),
          deleteRule: .noAction
        ))
      declaration.properties.append(.property("owner", \Item.owner, inverse: \Owner.items))
      declaration.properties.append(.property("self_", \Item.self_, inverse: \Item.self_))
      declaration.uniquenessConstraints.append(["text"])
      declaration.uniquenessConstraints.append(["whole16", "owner"])
      declaration.indexes.append(
        FetchIndexDescription(
          "byText",
          elements: [
            FetchIndexElement("text", isAscending: false),
            FetchIndexElement("whole16"),
          ]
        ))
      declaration.indexes.append(
        FetchIndexDescription(
          "byPlace",
          elements: [FetchIndexElement("real", kind: .rTree)]
        ))
      var requestPeers = FetchRequestDescription(
        "fetchedPropertyFetchRequest",
        entity: "Item",
        predicateFormat: "owner == $FETCH_SOURCE.owner"
      )
      requestPeers.resultType = .managedObjects
      requestPeers.fetchLimit = 0
      requestPeers.fetchBatchSize = 0
      requestPeers.includesSubentities = true
      requestPeers.includesPropertyValues = true
      requestPeers.includesPendingChanges = true
      requestPeers.returnsObjectsAsFaults = true
      requestPeers.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "peers",
          requestPeers,
          isOptional: false,
          isTransient: true,
          versionHashModifier: "f",
          renamingIdentifier: "others",
          userInfo: ["x": "y"]
        ))
      declaration.renamingIdentifier = "Thing"
      declaration.versionHashModifier = "2"
      declaration.userInfo = ["note": "a\nb\t<\"&'> é"]
      declaration.configurations = ["Cloud"]
      return declaration
    }
  }
}
