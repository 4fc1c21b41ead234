import FoundationEssentials
import HoldfastStore
import HoldfastStoreConformance
import Testing

@testable import Holdfast

/// Forged bytes of transformable attributes. On every store, only registered types are decoded.
@Suite struct HostileTransformableTests {
  private final class Memo: ManagedObject {
    var body: PropertyList? {
      get { self[transformable: 0] }
      set { self[transformable: 0] = newValue }
    }
    var name: String? {
      get { self[1] }
      set { self[1] = newValue }
    }
    override class var properties: [PropertyBinding] {
      [.transformable("body", \Memo.body, slot: 0), .attribute("name", \Memo.name, slot: 1)]
    }
  }

  private static func archive(_ objects: [PropertyList]) -> PropertyList {
    .dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": .uid(1)]),
      "$objects": .array([.string("$null")] + objects),
    ])
  }

  private static func described(_ name: String) -> PropertyList {
    .dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])])
  }

  /// An archived array whose class is the object with that number.
  private static func array(of numbers: [Int], class number: Int) -> PropertyList {
    .dictionary(["$class": .uid(UInt64(number)), "NS.objects": .array(numbers.map { .uid(UInt64($0)) })])
  }

  private static var payloads: [(name: String, list: PropertyList)] {
    let deep = (0..<2000).map { array(of: [$0 + 2], class: 2001) }
    return [
      ("a class that nobody registered", archive([.dictionary(["$class": .uid(2)]), described("Trojan")])),
      (
        "one within two arrays",
        archive([
          array(of: [2], class: 3), array(of: [4], class: 3), described("NSArray"), .dictionary(["$class": .uid(5)]), described("Trojan"),
        ])
      ),
      ("a name of the runtime", archive([.dictionary(["$class": .uid(2)]), described("Foundation.JSONDecoder")])),
      ("a cycle", archive([array(of: [2], class: 3), array(of: [1], class: 3), described("NSArray")])),
      (
        "ten to the power of thirty values",
        archive((0..<30).map { array(of: Array(repeating: $0 + 2, count: 10), class: 32) } + [.integer(1), described("NSArray")])
      ),
      ("two thousand arrays in one another", archive(deep + [described("NSArray")])),
    ]
  }

  @Test(arguments: TestStore.allCases) func RX14_noPayloadMakesAnObjectOfAClassThatWasNotRegistered(_ store: TestStore) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Memo",
        attributes: [.transformable("body", by: nil, isOptional: true), AttributeDescription("name", .string, isOptional: true)])
    ])
    let place = try store.makePlace(model: model, classes: [Memo.self]), context = try place.context()
    for payload in Self.payloads {
      let memo = context.insert(Memo.self)
      memo.name = payload.name
      try memo.setValue(.data(Data(payload.list.binary)), forKey: "body")
    }
    // A large number of values is allowed.
    let many = PropertyList.array((0..<100_000).map { .integer(Int64($0)) })
    let large = context.insert(Memo.self)
    large.name = "many"
    large.body = many
    try context.save()
    try place.close()
    let memos = try place.context().fetch(FetchRequest<Memo>())
    #expect(memos.count == Self.payloads.count + 1)
    for memo in memos where memo.name != "many" {
      let error = try #require(throws: PersistenceError.self) { try memo.transformableValue(0, as: PropertyList.self) }
      #expect(error.code == .transformationFailed && error.cause is PropertyListError, "\(memo.name ?? "")")
      #expect(memo.body == nil, "\(memo.name ?? "")")
    }
    #expect(try #require(memos.first { $0.name == "many" }).body == many)
  }
}
