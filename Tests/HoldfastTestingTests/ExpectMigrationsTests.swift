import Holdfast
import HoldfastStore
import HoldfastTesting
import Synchronization
import TestSupport
import Testing

/// Models of shipped versions that are compared with the current one, or with a plan.
@Suite struct ExpectMigrationsTests {
  private let folder = TemporaryFolder()

  private func model(_ names: String..., required: [String] = []) throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Person",
        attributes: names.map { AttributeDescription($0, .string, isOptional: true) } + required.map { AttributeDescription($0, .string) })
    ])
  }

  /// The issues that a closure records. They don't fail the test; a closure that records none does.
  private func issues(_ body: () throws -> Void) throws -> [String] {
    let texts = Mutex<[String]>([])
    try withKnownIssue {
      try body()
    } matching: { issue in
      texts.withLock { $0.append(issue.comments.map(\.rawValue).joined(separator: " ")) }
      return true
    }
    return texts.withLock { $0 }
  }

  @Test func aVersionWhoseChangesNeedADecisionIsAnIssue() throws {
    try recordModel(try model("name"), as: "1.0", in: folder.path)
    try recordModel(try model("name", required: ["age"]), as: "1.1", in: folder.path)
    let current = try model("name", "note", required: ["age"])
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, to: current) }
    #expect(found.count == 1 && found[0].hasPrefix("1.0.json: ") && found[0].contains("Person.age: It is required and new."), "\(found)")
  }

  @Test func aVersionWithMoreThanTheCurrentOneIsAnIssueUnlessLossesAreAllowed() throws {
    try recordModel(try model("name", "note"), as: "1.0", in: folder.path)
    let current = try model("name")
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, to: current) }
    #expect(found.count == 1 && found[0].hasPrefix("1.0.json: The current model lacks"), "\(found)")
    try expectMigrations(fromModelsIn: folder.path, to: current, allowingLosses: true)
  }

  @Test func aFolderWithoutModelsIsAnIssue() throws {
    let current = try model("name")
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, to: current) }
    #expect(found.count == 1 && found[0].contains("contains no model"), "\(found)")
    #expect(throws: (any Error).self) { try expectMigrations(fromModelsIn: folder.file("missing"), to: current) }
  }

  @Test func stagesOfAPlanMayBridgeAndRemoveWhatOpeningRefuses() throws {
    let versions = [try model("name"), try model("name", required: ["age"]), try model(required: ["age"])]
    for (version, name) in zip(versions, ["1.0", "1.1", "2.0"]) { try recordModel(version, as: name, in: folder.path) }
    var plan = MigrationPlan(from: versions[0])
    plan.add(versions[1], named: "ages") { stage in try stage.forEach("Person") { _, new in try new.setValue("1", forKey: "age") } }
    plan.add(versions[2])
    try expectMigrations(fromModelsIn: folder.path, with: plan)
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, to: versions[2]) }
    #expect(found.count == 2 && found[0].hasPrefix("1.0.json: ") && found[1].hasPrefix("1.1.json: "), "\(found)")
  }

  @Test func aVersionThatThePlanDoesNotContainIsComparedWithTheLastOne() throws {
    try recordModel(try model("name"), as: "1.0", in: folder.path)
    try recordModel(try model("name", "note", "more"), as: "1.5", in: folder.path)
    var plan = MigrationPlan(from: try model("name"))
    plan.add(try model("name", "note"))
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, with: plan) }
    #expect(found.count == 1 && found[0].hasPrefix("1.5.json: The current model lacks"), "\(found)")
    try expectMigrations(fromModelsIn: folder.path, with: plan, allowingLosses: true)
  }

  /// No code can move objects of an entity that becomes abstract, because the stage begins with the inferred changes.
  @Test func aStageThatCannotBeMappedIsAnIssue() throws {
    let old = try model("name")
    try recordModel(old, as: "1.0", in: folder.path)
    var plan = MigrationPlan(from: old)
    plan.add(try ManagedObjectModel(entities: [EntityDescription("Person", isAbstract: true)]), named: "abstract") { _ in }
    let found = try issues { try expectMigrations(fromModelsIn: folder.path, with: plan) }
    #expect(found.count == 1 && found[0].contains("Person: It becomes abstract"), "\(found)")
  }
}
