import Foundation
import Holdfast
import HoldfastCoreData
import HoldfastModelFile
import HoldfastPropertyList
import HoldfastStore
import TestSupport
import Testing

/// Mapping models that were damaged, or written by another program than Xcode.
@Suite struct MappingDamageTests {
  private typealias Property = MappingModelText.Property

  private let old: ManagedObjectModel
  private let new: ManagedObjectModel

  init() throws {
    func zoo(_ name: String) throws -> ManagedObjectModel {
      try model(
        EntityDescription(
          "Dog",
          attributes: [.init("age", .integer32, isOptional: true), .init(name, .string, isOptional: true)],
          relationships: [.toMany("walks", to: "Walk", inverse: "dog"), .toMany("friends", to: "Dog", inverse: "friends")]),
        EntityDescription(
          "Walk", attributes: [.init("minutes", .integer32, isOptional: true)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")])
      )
    }
    (old, new) = (try zoo("name"), try zoo("title"))
  }

  /// A mapping model with everything that one can have.
  private var text: String {
    var text = MappingModelText()
    text.map(
      "Dog", to: "Dog",
      attributes: [
        Property("tag"), Property("title", path: "$source.name"),
        Property(
          "age",
          expression: TestExpression.function(
            "add:to:", [.function("sum:", [.path(.source, "walks.@unionOfObjects.minutes")]), .constant(.integer(1))]
          ).archive),
      ],
      relationships: [
        Property("friends"),
        Property(
          "walks",
          expression: TestExpression.method(
            .variable("manager"), "destinationInstancesForEntityMappingNamed:sourceInstances:",
            [.constant(.string("long walks")), .path(.source, "walks")]
          ).archive),
      ])
    text.map(
      "Walk", to: "Walk", name: "long walks", filter: "minutes > 10 AND ANY dog.friends.name LIKE 'a*'",
      attributes: [Property("tag"), Property("minutes", path: "$source.dog.walks.@max.minutes")],
      relationships: [Property("dog", path: "$source.dog", mapping: "DogToDog")])
    text.map("Walk", to: nil, name: "short walks", filter: "minutes <= 10")
    return text.text
  }

  private func plan(_ bytes: [UInt8], in folder: TemporaryFolder) throws {
    let path = folder.file("Zoo.xcmappingmodel")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try TemporaryFolder.write(bytes, to: path + "/xcmapping.xml")
    var plan = MigrationPlan(from: old)
    try plan.add(new, mappingModelsAt: [path])
  }

  @Test func damageEndsInAnErrorOrAPlan() throws {
    let folder = TemporaryFolder(), whole = Array(text.utf8)
    try plan(whole, in: folder)
    var random = SeededGenerator("Damage of mapping models"), refused = 0
    let rounds = TestTier.count(1_000, full: 20_000)
    for _ in 0..<rounds {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: bytes.indices, using: &random), other = Int.random(in: whole.indices, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
        case 1: bytes.removeSubrange(place..<min(place + Int.random(in: 1...40, using: &random), bytes.count))
        case 2: bytes.insert(contentsOf: whole[other..<min(other + 40, whole.count)], at: place)
        default: bytes[place] = whole[other]
        }
      }
      do { try plan(bytes, in: folder) } catch {
        refused += 1
        #expect(error is MigrationError || error is ModelFileError, "HOLDFAST_SEED=\(random.seed) \(error)")
      }
    }
    #expect(refused > rounds / 10, "\(refused) of \(rounds)")
  }
}
