import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastStore
import Testing

/// Files whose numbers are the largest that the format has: what opens is saved and opens again, or the save is refused and says so.
@Suite struct JSONLimitTests {
  private let file: JSONFile
  private let text: String
  private static let last = StoreFileHeader.generations.upperBound

  init() throws {
    file = try JSONFile()
    let context = try file.context()
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    text = try file.text()
  }

  private func edit(_ old: String, _ new: String) throws {
    let place = try #require(text.range(of: old), "\(old) is not in the file:\n\(text)")
    try file.write(JSONFile.sealed(text.replacingCharacters(in: place, with: new)))
  }

  private func rename(_ context: ManagedObjectContext, _ name: String) throws {
    let author = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Author")).first)
    try author.setValue(.string(name), forKey: "name")
  }

  @Test(arguments: ["\(last)", "\"\(last)\""])
  func afterTheLastGenerationASaveIsRefusedAndTheFileStaysAsItWas(_ generation: String) throws {
    try edit("\"generation\":3", "\"generation\":\(generation)")
    let before = try file.bytes()
    let context = try file.context()
    try rename(context, "Eva")
    for _ in 0..<2 {
      let error = try #require(throws: StoreError.self) { try context.save() }
      #expect(error.code == .unstorableValue && error.path == file.path && error.reason.contains("\(Self.last)"), "\(error)")
      #expect(context.hasChanges && !error.isRetryable)
    }
    let error = try #require(throws: StoreError.self) { try context.persistentStoreCoordinator.setMetadata(["a": .bool(true)]) }
    #expect(error.code == .unstorableValue && error.path == file.path, "\(error)")
    try context.persistentStoreCoordinator.close()
    let isAsBefore = try file.bytes() == before
    #expect(isAsBefore && file.refusal() == nil && file.names == [".store.json.lock", "store.json"])
  }

  @Test func theLastGenerationCanBeSavedAndOpensAgain() throws {
    try edit("\"generation\":3", "\"generation\":\(Self.last - 1)")
    let context = try file.context()
    try rename(context, "Eva")
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(try file.text().contains("\"generation\":\"\(Self.last)\""))
    #expect(file.refusal() == nil)
  }

  @Test(arguments: ["0", "\(last + 1)", "\"\(last + 1)\"", "\(Int64.max)"])
  func aGenerationBeyondTheLastIsRefusedWhenTheFileIsOpened(_ generation: String) throws {
    try edit("\"generation\":3", "\"generation\":\(generation)")
    let refusal = try #require(file.refusal())
    #expect(refusal.code == .damaged && refusal.path == file.path && refusal.reason.contains("generation"), "\(refusal)")
  }

  @Test func theLargestVersionOfAnObjectIsFollowedByTheFirstAndOpensAgain() throws {
    try edit("\"name\":\"Ada\"", "\"$version\":\"\(Int64.max)\",\"name\":\"Ada\"")
    for name in ["Eva", "Ann"] {
      let context = try file.context()
      try rename(context, name)
      try context.save()
      try context.persistentStoreCoordinator.close()
      #expect(file.refusal() == nil)
    }
    #expect(try file.text().contains("\"$version\":2,\"name\":\"Ann\""))
  }

  @Test func withTheLastKeyInUseNothingCanBeInsertedAndEverythingElseSaved() throws {
    try edit("\"Sign\":2", "\"Sign\":\"\(TableLoader.nextKeys.upperBound)\"")
    let context = try file.context()
    let sign = try context.insert(entityNamed: "Sign")
    try sign.setValue(.string("new"), forKey: "text")
    let error = try #require(throws: StoreError.self) { try context.save() }
    #expect(error.code == .unstorableValue && error.path == file.path, "\(error)")
    context.delete(sign)
    try rename(context, "Eva")
    try context.save()
    try context.persistentStoreCoordinator.close()
    #expect(file.refusal() == nil)
  }
}
