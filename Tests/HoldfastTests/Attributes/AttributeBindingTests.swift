import FoundationEssentials
import HoldfastMemoryStore
import Testing

@testable import Holdfast

/// Classes whose attributes don't match the model or the transformers are refused, and the error lists every difference.
@Suite struct AttributeBindingTests {
  private final class Wrong: ManagedObject {
    override class var entityName: String { "Spot" }
    var colour: String? { self[transformable: 0] }
    var tags: [String: Double] { self[transformable: 1] ?? [:] }
    var unknown: Int? { self[transformable: 18] }
    var name: Int? { self[transformable: 11] }
    var home: OtherPlace? { self[composite: 5] }
    var origin: Point? { self[composite: 13] }
    var score: String? { self[transient: 2] }
    var hits: Int { self[transient: 2] ?? 0 }
    var note: Wrong? { self[transient: 1] }
    var price: Double? { self[transient: 0] }
    var mood: Grade? { self[10] }
    override class var properties: [PropertyBinding] {
      [
        .transformable("colour", \Wrong.colour, slot: 0), .transformable("tags", \Wrong.tags, slot: 1),
        .transformable("unknown", \Wrong.unknown, slot: 18), .transformable("name", \Wrong.name, slot: 11),
        .composite("home", \Wrong.home, slot: 5), .composite("origin", \Wrong.origin, slot: 13),
        .transient("score", \Wrong.score, index: 2), .transient("hits", \Wrong.hits, index: 2), .transient("note", \Wrong.note, index: 1),
        .transient("price", \Wrong.price, index: 0), .attribute("mood", \Wrong.mood, slot: 10), .composite("nothing", \Wrong.home, slot: 0),
      ]
    }
  }

  private struct OtherPlace: CompositeAttributeValue {
    var zip = 0
    var town: String?
    var at: Point?
    static let elements: CompositeElements<OtherPlace> = [
      .attribute("zip", \.zip), .attribute("town", \.town), .composite("at", \.at), .attribute("city", \.town),
    ]
  }

  @Test func everyDifferenceIsNamed() throws {
    let coordinator = try PersistentStoreCoordinator(model: Atlas.model, transformers: Atlas.transformers, store: .memory())
    let error = try #require(throws: PersistenceError.self) { try ManagedObjectContext(coordinator: coordinator, classes: [Wrong.self]) }
    #expect(error.code == .classMismatch)
    let found = error.reason.split(separator: "\n").dropFirst().map { String($0.drop { $0 == " " }) }
    #expect(
      found == [
        "Wrong.colour: The transformer's values are of type Colour, the property's of type String.", "Wrong.tags: Its slot is 16, not 1.",
        "Wrong.unknown: No transformer is registered as Nobody. Pass one to the container or coordinator, or bind a property of type Data.",
        "Wrong.name: The model declares another kind of property.",
        "Wrong.home: The Swift type doesn't list the model's element since.",
        "Wrong.home: The element zip has the type string in the model, which its Swift type can't hold.",
        "Wrong.home: Place has no element town.",
        "Wrong.home: Its slot is 3, not 5.", "Wrong.score: The model's type is double, which the Swift type can't hold.",
        "Wrong.hits: Its slot is 0, not 2.", "Wrong.price: The model declares another kind of property.",
        "Wrong.mood: The model's type is string, which the Swift type can't hold.",
        "Wrong.nothing: Spot has no property of this name.",
      ])
  }

  @Test func theContainerTakesTransformersToo() async throws {
    let container = try PersistentContainer(
      model: Atlas.model, classes: [Spot.self], transformers: Atlas.transformers, store: .memory())
    await MainActor.run { #expect(container.viewContext.spot("A").colour == nil) }
    #expect(throws: PersistenceError.self) {
      _ = try PersistentContainer(model: Atlas.model, classes: [Spot.self], stores: [.memory()])
    }
  }

  // MARK: Inherited key paths

  private class Base: ManagedObject {
    override class var entityName: String { "Base" }
    var a: Mood? {
      get { self[0] }
      set { self[0] = newValue }
    }
    var b: Mood? {
      get { self[1] }
      set { self[1] = newValue }
    }
    var c: ManagedObjectID? { self[2] }
    var d: ManagedObjectID? { self[3] }
    var e: Point? {
      get { self[composite: 4] }
      set { self[composite: 4] = newValue }
    }
    var f: Point? {
      get { self[composite: 6] }
      set { self[composite: 6] = newValue }
    }
    var g: Point? { self[transformable: 8] }
    var h: Point? { self[transient: 0] }
    var i: Point? { self[transient: 1] }
    override class var properties: [PropertyBinding] {
      [
        .attribute("a", \Base.a, slot: 0), .attribute("b", \Base.b, slot: 1), .attribute("c", \Base.c, slot: 2),
        .attribute("d", \Base.d, slot: 3), .composite("e", \Base.e, slot: 4), .composite("f", \Base.f, slot: 6),
        .transformable("g", \Base.g, slot: 8), .transient("h", \Base.h, index: 0), .transient("i", \Base.i, index: 1),
      ]
    }
  }

  private final class Derived: Base {
    override class var entityName: String { "Derived" }
  }

  @Test func inheritedPropertiesOfEveryKindAreFoundByTheirKeyPaths() {
    func name<Value>(_ path: KeyPath<Derived, Value>) -> String { KeyPathNames.name(path, in: Derived.self) }
    #expect([name(\.a), name(\.b), name(\.c), name(\.d)] == ["a", "b", "c", "d"])
    #expect([name(\.e), name(\.f), name(\.g), name(\.h), name(\.i)] == ["e", "f", "g", "h", "i"])
    #expect(FetchPath<Derived, Derived>.object.f.latitude.queryExpression == .property("f.latitude"))
  }

  private class Wide: ManagedObject {
    override class var entityName: String { "Wide" }
    var low: Int { self[5] }
    var high: Int { self[299] }
    var text: String? { self[300] }
    var total: Int {
      let low = low
      return low == 0 ? 0 : low + high
    }
    override class var properties: [PropertyBinding] {
      [
        .attribute("low", \Wide.low, slot: 5), .attribute("high", \Wide.high, slot: 299), .attribute("text", \Wide.text, slot: 300),
      ]
    }
  }

  private final class Wider: Wide {
    override class var entityName: String { "Wider" }
  }

  /// The bugs: the first 128 slots were found only, and a computed property that used another one ended the process.
  @Test func inheritedPropertiesOfWideRowsAreFoundByTheirKeyPaths() {
    func name<Value>(_ path: KeyPath<Wider, Value>) -> String { KeyPathNames.name(path, in: Wider.self) }
    #expect([name(\.low), name(\.high), name(\.text)] == ["low", "high", "text"])
    #expect(KeyPathNames.known(\Wider.total, in: Wider.self) == nil)
  }
}
