// Generated from the model. Don't change it: it is overwritten.

import Foundation
import Holdfast

/// An object of the entity Port.
nonisolated final class Port: ManagedObject {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}

nonisolated extension Port {
  /// Text.
  var country: String? {
    get { self[property: Slots.country] }
    set { self[property: Slots.country] = newValue }
  }

  /// Text.
  var name: String {
    get { self[property: Slots.name] }
    set { self[property: Slots.name] = newValue }
  }

  /// Objects of Ship. The inverse is `Ship.home`.
  var ships: ToMany<Ship> {
    get { self[property: Slots.ships] }
    set { self[property: Slots.ships] = newValue }
  }

  /// Objects of Voyage. The inverse is `Voyage.stops`.
  var visits: ToMany<Voyage> {
    get { self[property: Slots.visits] }
    set { self[property: Slots.visits] = newValue }
  }

  /// Adds an object to `ships`.
  func addToShips(_ object: Ship) { self.ships.append(object) }

  /// Adds objects to `ships`.
  func addToShips(_ objects: some Sequence<Ship>) { self.ships.append(contentsOf: objects) }

  /// Removes an object from `ships`.
  func removeFromShips(_ object: Ship) { self.ships.remove(object) }

  /// Removes objects from `ships`.
  func removeFromShips(_ objects: some Sequence<Ship>) { self.ships.subtract(objects) }

  /// Adds an object to `visits`.
  func addToVisits(_ object: Voyage) { self.visits.append(object) }

  /// Adds objects to `visits`.
  func addToVisits(_ objects: some Sequence<Voyage>) { self.visits.append(contentsOf: objects) }

  /// Removes an object from `visits`.
  func removeFromVisits(_ object: Voyage) { self.visits.remove(object) }

  /// Removes objects from `visits`.
  func removeFromVisits(_ objects: some Sequence<Voyage>) { self.visits.subtract(objects) }

  /// Objects of Ship. Each access fetches them.
  ///
  /// The predicate of its request is `SELF IN $FETCH_SOURCE.visits.ship AND home != $FETCH_SOURCE`.
  var visitors: [Ship] {
    get throws { try fetchedObjects(forProperty: "visitors", as: Ship.self) }
  }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Port>

  /// Inserts a new object.
  convenience init(
    context managedObjectContext: ManagedObjectContext,
    country: String? = nil,
    name: String = ""
  ) {
    self.init(insertedInto: managedObjectContext)
    if let country { self.country = country }
    self.name = name
    finishInsertion()
  }

  /// Where an object keeps its properties.
  enum Slots {
    static var country: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
    static var name: SlotIndex { country.advanced(by: slotCount(of: String?.self)) }
    static var ships: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 0) }
    static var visits: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 1) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.name.rawValue + slotCount(of: String.self) }
    static var toMany: Int { ManagedObject.SlotCounts.toMany + 2 }
    static var transients: Int { ManagedObject.SlotCounts.transients }
    static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Port" }
    /// The entity.
    static var declaration: EntityDeclaration {
      var declaration = EntityDeclaration(Port.self)
      declaration.properties.append(.property("country", \Port.country))
      declaration.properties.append(.property("name", \Port.name, default: ""))
      declaration.properties.append(.property("ships", \Port.ships, inverse: \Ship.home))
      declaration.properties.append(.property("visits", \Port.visits, inverse: \Voyage.stops))
      var requestVisitors = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "SELF IN $FETCH_SOURCE.visits.ship AND home != $FETCH_SOURCE"
      )
      requestVisitors.resultType = .managedObjects
      requestVisitors.fetchLimit = 0
      requestVisitors.fetchBatchSize = 0
      requestVisitors.includesSubentities = true
      requestVisitors.includesPropertyValues = true
      requestVisitors.includesPendingChanges = true
      requestVisitors.returnsObjectsAsFaults = true
      requestVisitors.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "visitors",
          requestVisitors,
          isOptional: true,
          isTransient: false
        ))
      return declaration
    }
  }
}

/// An object of the entity Ship.
nonisolated class Ship: ManagedObject {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}

nonisolated extension Ship {
  /// A composite value.
  var berth: Berth? {
    get { self[property: Slots.berth] }
    set { self[property: Slots.berth] = newValue }
  }

  /// Text.
  var code: String? {
    get { self[property: Slots.code] }
    set { self[property: Slots.code] = newValue }
  }

  /// A whole number of 64 bits.
  var crew: Int64? {
    get { self[property: Slots.crew] }
    set { self[property: Slots.crew] = newValue }
  }

  /// A truth value.
  var isSold: Bool {
    get { self[property: Slots.isSold] }
    set { self[property: Slots.isSold] = newValue }
  }

  /// A point in time.
  var launched: Date? {
    get { self[property: Slots.launched] }
    set { self[property: Slots.launched] = newValue }
  }

  /// A floating-point number of 32 bits.
  var length: Float? {
    get { self[property: Slots.length] }
    set { self[property: Slots.length] = newValue }
  }

  /// Text.
  var name: String {
    get { self[property: Slots.name] }
    set { self[property: Slots.name] = newValue }
  }

  /// A decimal number.
  var price: Decimal? {
    get { self[property: Slots.price] }
    set { self[property: Slots.price] = newValue }
  }

  /// A UUID.
  var registration: UUID? {
    get { self[property: Slots.registration] }
    set { self[property: Slots.registration] = newValue }
  }

  /// A whole number of 32 bits.
  var tons: Int32 {
    get { self[property: Slots.tons] }
    set { self[property: Slots.tons] = newValue }
  }

  /// An object of Port. The inverse is `Port.ships`.
  var home: Port? {
    get { self[property: Slots.home] }
    set { self[property: Slots.home] = newValue }
  }

  /// Objects of Voyage. The inverse is `Voyage.ship`.
  var voyages: ToMany<Voyage> {
    get { self[property: Slots.voyages] }
    set { self[property: Slots.voyages] = newValue }
  }

  /// Adds an object to `voyages`.
  func addToVoyages(_ object: Voyage) { self.voyages.append(object) }

  /// Adds objects to `voyages`.
  func addToVoyages(_ objects: some Sequence<Voyage>) { self.voyages.append(contentsOf: objects) }

  /// Removes an object from `voyages`.
  func removeFromVoyages(_ object: Voyage) { self.voyages.remove(object) }

  /// Removes objects from `voyages`.
  func removeFromVoyages(_ objects: some Sequence<Voyage>) { self.voyages.subtract(objects) }

  /// Objects of Ship. Each access fetches them.
  ///
  /// The predicate of its request is `home.country == $FETCH_SOURCE.home.country AND SELF != $FETCH_SOURCE`.
  var compatriots: [Ship] {
    get throws { try fetchedObjects(forProperty: "compatriots", as: Ship.self) }
  }

  /// Objects of Port. Each access fetches them.
  var initAttribute: [Port] {
    get throws { try fetchedObjects(forProperty: "init", as: Port.self) }
  }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Ship>

  /// Where an object keeps its properties.
  enum Slots {
    static var berth: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
    static var code: SlotIndex { berth.advanced(by: slotCount(of: Berth?.self)) }
    static var crew: SlotIndex { code.advanced(by: slotCount(of: String?.self)) }
    static var home: SlotIndex { crew.advanced(by: slotCount(of: Int64?.self)) }
    static var isSold: SlotIndex { home.advanced(by: slotCount(of: Port?.self)) }
    static var launched: SlotIndex { isSold.advanced(by: slotCount(of: Bool.self)) }
    static var length: SlotIndex { launched.advanced(by: slotCount(of: Date?.self)) }
    static var name: SlotIndex { length.advanced(by: slotCount(of: Float?.self)) }
    static var price: SlotIndex { name.advanced(by: slotCount(of: String.self)) }
    static var registration: SlotIndex { price.advanced(by: slotCount(of: Decimal?.self)) }
    static var tons: SlotIndex { registration.advanced(by: slotCount(of: UUID?.self)) }
    static var voyages: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 0) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.tons.rawValue + slotCount(of: Int32.self) }
    static var toMany: Int { ManagedObject.SlotCounts.toMany + 1 }
    static var transients: Int { ManagedObject.SlotCounts.transients }
    static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Ship" }
    /// The entity.
    static var declaration: EntityDeclaration {
      var declaration = EntityDeclaration(Ship.self)
      declaration.properties.append(.property("berth", \Ship.berth))
      declaration.properties.append(.property("code", \Ship.code))
      declaration.properties.append(.property("crew", \Ship.crew))
      declaration.properties.append(.property("isSold", \Ship.isSold, default: false))
      declaration.properties.append(.property("launched", \Ship.launched))
      declaration.properties.append(.property("length", \Ship.length))
      declaration.properties.append(.property("name", \Ship.name, default: ""))
      declaration.properties.append(.property("price", \Ship.price))
      declaration.properties.append(.property("registration", \Ship.registration))
      declaration.properties.append(.property("tons", \Ship.tons, default: 0))
      declaration.properties.append(.property("home", \Ship.home, inverse: \Port.ships))
      declaration.properties.append(.property("voyages", \Ship.voyages, inverse: \Voyage.ship))
      var requestCompatriots = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "home.country == $FETCH_SOURCE.home.country AND SELF != $FETCH_SOURCE"
      )
      requestCompatriots.resultType = .managedObjects
      requestCompatriots.fetchLimit = 0
      requestCompatriots.fetchBatchSize = 0
      requestCompatriots.includesSubentities = true
      requestCompatriots.includesPropertyValues = true
      requestCompatriots.includesPendingChanges = true
      requestCompatriots.returnsObjectsAsFaults = true
      requestCompatriots.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "compatriots",
          requestCompatriots,
          isOptional: true,
          isTransient: false
        ))
      var requestInit = FetchRequestDescription("fetch", entity: "Port")
      requestInit.resultType = .managedObjects
      requestInit.fetchLimit = 0
      requestInit.fetchBatchSize = 0
      requestInit.includesSubentities = true
      requestInit.includesPropertyValues = true
      requestInit.includesPendingChanges = true
      requestInit.returnsObjectsAsFaults = true
      requestInit.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "init",
          requestInit,
          isOptional: true,
          isTransient: false
        ))
      var requestPuzzles = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "name MATCHES $FETCH_SOURCE.code"
      )
      requestPuzzles.resultType = .managedObjects
      requestPuzzles.fetchLimit = 0
      requestPuzzles.fetchBatchSize = 0
      requestPuzzles.includesSubentities = true
      requestPuzzles.includesPropertyValues = true
      requestPuzzles.includesPendingChanges = true
      requestPuzzles.returnsObjectsAsFaults = true
      requestPuzzles.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "puzzles",
          requestPuzzles,
          isOptional: true,
          isTransient: false
        ))
      var requestTypos = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "nam == $FETCH_SOURCE.name"
      )
      requestTypos.resultType = .managedObjects
      requestTypos.fetchLimit = 0
      requestTypos.fetchBatchSize = 0
      requestTypos.includesSubentities = true
      requestTypos.includesPropertyValues = true
      requestTypos.includesPendingChanges = true
      requestTypos.returnsObjectsAsFaults = true
      requestTypos.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "typos",
          requestTypos,
          isOptional: true,
          isTransient: false
        ))
      var requestOthers = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "name == $FETCH_SOURCE.nam"
      )
      requestOthers.resultType = .managedObjects
      requestOthers.fetchLimit = 0
      requestOthers.fetchBatchSize = 0
      requestOthers.includesSubentities = true
      requestOthers.includesPropertyValues = true
      requestOthers.includesPendingChanges = true
      requestOthers.returnsObjectsAsFaults = true
      requestOthers.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "others",
          requestOthers,
          isOptional: true,
          isTransient: false
        ))
      var requestStrangers = FetchRequestDescription(
        "fetch",
        entity: "Ship",
        predicateFormat: "name == $name"
      )
      requestStrangers.resultType = .managedObjects
      requestStrangers.fetchLimit = 0
      requestStrangers.fetchBatchSize = 0
      requestStrangers.includesSubentities = true
      requestStrangers.includesPropertyValues = true
      requestStrangers.includesPendingChanges = true
      requestStrangers.returnsObjectsAsFaults = true
      requestStrangers.returnsDistinctResults = false
      declaration.fetchedProperties.append(
        FetchedPropertyDescription(
          "strangers",
          requestStrangers,
          isOptional: true,
          isTransient: false
        ))
      return declaration
    }
  }
}

/// An object of the entity Tanker.
nonisolated final class Tanker: Ship {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}

nonisolated extension Tanker {
  /// Text.
  var hull: String? {
    get { self[property: Slots.hull] }
    set { self[property: Slots.hull] = newValue }
  }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Tanker>

  /// Inserts a new object.
  convenience init(
    context managedObjectContext: ManagedObjectContext,
    berth: Berth? = nil,
    code: String? = nil,
    crew: Int64? = nil,
    hull: String? = nil,
    isSold: Bool = false,
    launched: Date? = nil,
    length: Float? = nil,
    name: String = "",
    price: Decimal? = nil,
    registration: UUID? = nil,
    tons: Int32 = 0,
    home: Port? = nil
  ) {
    self.init(insertedInto: managedObjectContext)
    if let berth { self.berth = berth }
    if let code { self.code = code }
    if let crew { self.crew = crew }
    if let hull { self.hull = hull }
    self.isSold = isSold
    if let launched { self.launched = launched }
    if let length { self.length = length }
    self.name = name
    if let price { self.price = price }
    if let registration { self.registration = registration }
    self.tons = tons
    if let home { self.home = home }
    finishInsertion()
  }

  /// Where an object keeps its properties.
  enum Slots {
    static var hull: SlotIndex { SlotIndex(Ship.SlotCounts.slots) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.hull.rawValue + slotCount(of: String?.self) }
    static var toMany: Int { Ship.SlotCounts.toMany }
    static var transients: Int { Ship.SlotCounts.transients }
    static var transientLinks: Int { Ship.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Tanker" }
    /// The entity.
    static var declaration: EntityDeclaration {
      _ = Tanker.self as Ship.Type
      var declaration = EntityDeclaration(Tanker.self)
      declaration.properties.append(.property("hull", \Tanker.hull))
      return declaration
    }
  }
}

/// An object of the entity Voyage.
nonisolated final class Voyage: ManagedObject {
  override class var entityName: String { Properties.entityName }
  override class var declaration: EntityDeclaration? { Properties.declaration }
}

nonisolated extension Voyage {
  /// A floating-point number of 64 bits.
  var miles: Double {
    get { self[property: Slots.miles] }
    set { self[property: Slots.miles] = newValue }
  }

  /// An object of Ship. The inverse is `Ship.voyages`.
  var ship: Ship? {
    get { self[property: Slots.ship] }
    set { self[property: Slots.ship] = newValue }
  }

  /// Objects of Port, in order. The inverse is `Port.visits`.
  var stops: OrderedToMany<Port> {
    get { self[property: Slots.stops] }
    set { self[property: Slots.stops] = newValue }
  }

  /// Adds an object to `stops`.
  func addToStops(_ object: Port) { self.stops.append(object) }

  /// Adds objects to `stops`.
  func addToStops(_ objects: some Sequence<Port>) { self.stops.append(contentsOf: objects) }

  /// Removes an object from `stops`.
  func removeFromStops(_ object: Port) { self.stops.remove(object) }

  /// Removes objects from `stops`.
  func removeFromStops(_ objects: some Sequence<Port>) { self.stops.subtract(objects) }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Voyage>

  /// Inserts a new object.
  convenience init(
    context managedObjectContext: ManagedObjectContext,
    miles: Double = 0.0,
    ship: Ship? = nil
  ) {
    self.init(insertedInto: managedObjectContext)
    self.miles = miles
    if let ship { self.ship = ship }
    finishInsertion()
  }

  /// Where an object keeps its properties.
  enum Slots {
    static var miles: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
    static var ship: SlotIndex { miles.advanced(by: slotCount(of: Double.self)) }
    static var stops: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 0) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.ship.rawValue + slotCount(of: Ship?.self) }
    static var toMany: Int { ManagedObject.SlotCounts.toMany + 1 }
    static var transients: Int { ManagedObject.SlotCounts.transients }
    static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Voyage" }
    /// The entity.
    static var declaration: EntityDeclaration {
      var declaration = EntityDeclaration(Voyage.self)
      declaration.properties.append(.property("miles", \Voyage.miles, default: 0.0))
      declaration.properties.append(.property("ship", \Voyage.ship, inverse: \Ship.voyages))
      declaration.properties.append(.property("stops", \Voyage.stops, inverse: \Port.visits))
      return declaration
    }
  }
}

/// The composite attribute Berth.
nonisolated struct Berth: CompositeAttributeValue {
  /// A whole number of 16 bits.
  var number: Int16?
  /// Text.
  var pier: String?

  /// Creates a value without elements.
  init() {}

  /// The elements.
  static let elements: CompositeElements<Berth> = [
    .element("number", \.number, .setting(\.isOptional, false)),
    .element("pier", \.pier),
  ]

  /// The number of slots.
  static var slotCount: Int { 1 + 1 }
}

/// The model.
nonisolated enum FleetModelClasses {
  /// All classes.
  static var classes: [ManagedObject.Type] {
    [
      Port.self,
      Ship.self,
      Tanker.self,
      Voyage.self,
    ]
  }

  /// The fetch request template all ports.
  static func all_ports() -> FetchRequest<Port> {
    Port.fetchRequest()
  }

  /// The fetch request template atPier.
  ///
  /// Its predicate is `berth.pier == $pier AND berth.number < 4`.
  static func atPier(pier: String?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.berth.pier == pier
      $0.berth.number < 4
    }
    return request
  }

  /// The fetch request template begins.
  ///
  /// Its predicate is `name BEGINSWITH[c] $start`.
  static func begins(start: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name.beginsWith(start, .caseInsensitive) }
    return request
  }

  /// The fetch request template between.
  ///
  /// Its predicate is `tons BETWEEN $range`.
  static func between(range: ClosedRange<Int32>) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.tons.isIn(range) }
    return request
  }

  /// The fetch request template betweenTwo.
  ///
  /// Its predicate is `tons BETWEEN {3, $maximum} AND name != ""`.
  static func betweenTwo(maximum: Int32) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.tons >= 3 && $0.tons <= maximum
      $0.name != ""
    }
    return request
  }

  /// The fetch request template busy.
  ///
  /// Its predicate is `voyages.@count > $count`.
  static func busy(count: Int) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.count > count }
    return request
  }

  /// The fetch request template calm.
  ///
  /// Its predicate is `0 == SUBQUERY(voyages, $v, $v.miles >= 5 OR ANY $v.stops.name == 'Oslo').@count`.
  static func calm() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      !($0.voyages.any { $0.miles >= 5 || $0.stops.any { $0.name == "Oslo" } })
    }
    return request
  }

  /// The fetch request template class.
  ///
  /// Its predicate is `hull != nil`.
  ///
  /// Its result is a number: pass it to `count(for:)`.
  static func `class`() -> FetchRequest<Tanker> {
    var request = Tanker.fetchRequest()
    request.predicate = FetchPredicate<Tanker> { $0.hull != nil }
    return request
  }

  /// The fetch request template coded.
  ///
  /// Its predicate is `code = $code`.
  static func coded(code: String?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code == code }
    return request
  }

  /// The fetch request template codes.
  ///
  /// Its predicate is `code IN $codes`.
  static func codes(codes: [String]) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code.isIn(codes) }
    return request
  }

  /// The fetch request template containing.
  ///
  /// Its predicate is `code CONTAINS[cd] $part`.
  static func containing(part: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.code.contains(part, [.caseInsensitive, .diacriticInsensitive])
    }
    return request
  }

  /// The fetch request template crews.
  ///
  /// Its predicate is `crew IN {1, $more, nil}`.
  static func crews(more: Int64) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.crew.isIn([1, more, nil]) }
    return request
  }

  /// The fetch request template either.
  ///
  /// Its predicate is `(name == $a OR name == $b) AND (tons < 3 OR tons > 4)`.
  static func either(a: String, b: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.name == a || $0.name == b
      $0.tons < 3 || $0.tons > 4
    }
    return request
  }

  /// The fetch request template ends.
  ///
  /// Its predicate is `name ENDSWITH 'a'`.
  static func ends() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name.endsWith("a") }
    return request
  }

  /// The fetch request template equalText.
  ///
  /// Its predicate is `name ==[c] "BELLA" OR code !=[cd] $code`.
  static func equalText(code: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.name.equals("BELLA", .caseInsensitive)
        || !$0.code.equals(code, [.caseInsensitive, .diacriticInsensitive])
    }
    return request
  }

  /// The fetch request template everything.
  ///
  /// Its predicate is `TRUEPREDICATE`.
  static func everything() -> FetchRequest<Ship> {
    Ship.fetchRequest()
  }

  /// The fetch request template far.
  ///
  /// Its predicate is `SUBQUERY(voyages, $v, $v.miles > $miles AND $v.stops.@count > 0).@count > 0`.
  static func far(miles: Double) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.voyages.any { $0.miles > miles && $0.stops.count > 0 }
    }
    return request
  }

  /// The fetch request template fromCountry.
  ///
  /// Its predicate is `home.country == $country`.
  static func fromCountry(country: String?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.home.country == country }
    return request
  }

  /// The fetch request template heavy.
  ///
  /// Its predicate is `tons > $tons AND NOT isSold == YES`.
  static func heavy(tons: Int32) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.tons > tons
      !($0.isSold == true)
    }
    return request
  }

  /// The fetch request template homeless.
  ///
  /// Its predicate is `home == NIL`.
  static func homeless() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.home == nil }
    return request
  }

  /// The fetch request template idle.
  ///
  /// Its predicate is `NONE voyages.miles > 0`.
  static func idle() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { !$0.voyages.any { $0.miles > 0 } }
    return request
  }

  /// The fetch request template itself.
  ///
  /// Its predicate is `SELF == $ship`.
  static func itself(ship: Ship) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0 == ship }
    return request
  }

  /// The fetch request template kept.
  ///
  /// Its predicate is `name BEGINSWITH 'n' OR TRUEPREDICATE`.
  static func kept() -> FetchRequest<Ship> {
    Ship.fetchRequest()
  }

  /// The fetch request template keywords.
  ///
  /// Its predicate is `name == $default OR name == $Date OR name == $request`.
  static func keywords(
    `default`: String,
    DateValue: String,
    request: String
  ) -> FetchRequest<Ship> {
    var request_ = Ship.fetchRequest()
    request_.predicate = FetchPredicate<Ship> {
      $0.name == `default` || $0.name == DateValue || $0.name == request
    }
    return request_
  }

  /// The fetch request template launchedAtStart.
  ///
  /// Its predicate is `launched == CAST(86400.000000, "NSDate")`.
  static func launchedAtStart() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.launched == Date(timeIntervalSinceReferenceDate: 86400.0)
    }
    return request
  }

  /// The fetch request template launchedSince.
  ///
  /// Its predicate is `launched >= $date`.
  static func launchedSince(date: Date) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.launched >= date }
    return request
  }

  /// The fetch request template light.
  ///
  /// Its predicate is `5 >= tons`.
  static func light() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.tons <= 5 }
    return request
  }

  /// The fetch request template likeAny.
  ///
  /// Its predicate is `code LIKE '*'`.
  static func likeAny() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code != nil }
    return request
  }

  /// The fetch request template likeAnywhere.
  ///
  /// Its predicate is `name LIKE[cd] '*EL*'`.
  static func likeAnywhere() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.name.contains("EL", [.caseInsensitive, .diacriticInsensitive])
    }
    return request
  }

  /// The fetch request template likeEnd.
  ///
  /// Its predicate is `code LIKE '**lo'`.
  static func likeEnd() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code.endsWith("lo") }
    return request
  }

  /// The fetch request template likeStart.
  ///
  /// Its predicate is `name LIKE 'B*'`.
  static func likeStart() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name.beginsWith("B") }
    return request
  }

  /// The fetch request template likeWord.
  ///
  /// Its predicate is `name LIKE[c] 'bella'`.
  static func likeWord() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name.equals("bella", .caseInsensitive) }
    return request
  }

  /// The fetch request template limited.
  ///
  /// Its predicate is `tons > 0`.
  static func limited() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.tons > 0 }
    request.fetchLimit = 2
    request.includesSubentities = false
    request.includesPendingChanges = false
    return request
  }

  /// The fetch request template long.
  ///
  /// Its predicate is `length >= 100.5 || length == 12`.
  static func long() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.length >= 100.5 || $0.length == 12 }
    return request
  }

  /// The fetch request template modest.
  ///
  /// Its predicate is `ALL voyages.miles BETWEEN {1, 20}`.
  static func modest() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.all { $0.miles >= 1 && $0.miles <= 20 } }
    return request
  }

  /// The fetch request template named.
  ///
  /// Its predicate is `name == $name`.
  static func named(name: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name == name }
    return request
  }

  /// The fetch request template namedLight.
  ///
  /// Its predicate is `nil != name AND tons < 3`.
  static func namedLight() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      FetchPredicate(.comparison($0.name.queryExpression, .notEqualTo, .constant(.null), []))
      $0.tons < 3
    }
    return request
  }

  /// The fetch request template notCoded.
  ///
  /// Its predicate is `code != $code`.
  static func notCoded(code: String?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code != code }
    return request
  }

  /// The fetch request template nothing.
  ///
  /// Its predicate is `name == $name AND FALSEPREDICATE`.
  static func nothing() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship>.none
    return request
  }

  /// The fetch request template of.
  ///
  /// Its predicate is `home == $port`.
  static func of(port: Port?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.home == port }
    return request
  }

  /// The fetch request template ofPorts.
  ///
  /// Its predicate is `home IN $ports`.
  static func ofPorts(ports: [Port]) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.home.isIn(ports) }
    return request
  }

  /// The fetch request template onThisVoyage.
  ///
  /// Its predicate is `$voyage IN voyages`.
  static func onThisVoyage(voyage: Voyage) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.contains(voyage) }
    return request
  }

  /// The fetch request template onVoyage.
  ///
  /// Its predicate is `voyages CONTAINS $voyage`.
  static func onVoyage(voyage: Voyage) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.contains(voyage) }
    return request
  }

  /// The fetch request template others.
  ///
  /// Its predicate is `NOT (SELF IN $ships)`.
  static func others(ships: [Ship]) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { !($0.isIn(ships)) }
    return request
  }

  /// The fetch request template priced.
  ///
  /// Its predicate is `price == 0.1 OR price > 1000000`.
  static func priced() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.price == (Decimal(string: "0.1") ?? 0) || $0.price > 1_000_000
    }
    return request
  }

  /// The fetch request template registered.
  ///
  /// Its predicate is `registration == $registration`.
  static func registered(registration: UUID?) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.registration == registration }
    return request
  }

  /// The fetch request template sameNames.
  ///
  /// Its predicate is `name == home.name`.
  static func sameNames() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name == $0.home.name }
    return request
  }

  /// The fetch request template smallCrew.
  ///
  /// Its predicate is `home.ships.@count < voyages.@count`.
  static func smallCrew() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.home.ships.count < $0.voyages.count }
    return request
  }

  /// The fetch request template sold.
  ///
  /// Its predicate is `isSold == 1`.
  static func sold() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.isSold == true }
    return request
  }

  /// The fetch request template stopping.
  ///
  /// Its predicate is `SUBQUERY(voyages.stops, $s, $s.name BEGINSWITH 'B').@count > 0`.
  static func stopping() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.voyages.any { $0.stops.any { $0.name.beginsWith("B") } }
    }
    return request
  }

  /// The fetch request template toPort.
  ///
  /// Its predicate is `SUBQUERY(voyages, $v, SUBQUERY($v.stops, $s, $s.name == $name).@count != 0).@count >= 1`.
  static func toPort(name: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.voyages.any { $0.stops.any { $0.name == name } }
    }
    return request
  }

  /// The fetch request template travelled.
  ///
  /// Its predicate is `ANY voyages.miles > $miles`.
  static func travelled(miles: Double) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.any { $0.miles > miles } }
    return request
  }

  /// The fetch request template twice.
  ///
  /// Its predicate is `name == $text OR code == $text`.
  static func twice(text: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.name == text || $0.code == text }
    return request
  }

  /// The fetch request template uncoded.
  ///
  /// Its predicate is `code == nil`.
  static func uncoded() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.code == nil }
    return request
  }

  /// The fetch request template unnamed.
  ///
  /// Its predicate is `name == nil OR tons > 2`.
  static func unnamed() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      FetchPredicate(.comparison($0.name.queryExpression, .equalTo, .constant(.null), []))
        || $0.tons > 2
    }
    return request
  }

  /// The fetch request template unused.
  ///
  /// Its predicate is `voyages.@count == 0`.
  static func unused() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.voyages.count == 0 }
    return request
  }

  /// The fetch request template unvisited.
  ///
  /// Its predicate is `SUBQUERY(home.visits, $v, TRUEPREDICATE).@count < 1`.
  static func unvisited() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { !($0.home.visits.count > 0) }
    return request
  }

  /// The fetch request template visiting.
  ///
  /// Its predicate is `ANY voyages.stops.name == $name`.
  static func visiting(name: String) -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> {
      $0.voyages.any { $0.stops.any { $0.name == name } }
    }
    return request
  }

  /// The fetch request template withoutBerth.
  ///
  /// Its predicate is `berth == nil`.
  static func withoutBerth() -> FetchRequest<Ship> {
    var request = Ship.fetchRequest()
    request.predicate = FetchPredicate<Ship> { $0.berth == nil }
    return request
  }
}
