import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastStore
import HoldfastTesting
import Testing

/// The tables of the article *Errors by code* have every code, with the number that the error has.
@Suite struct ErrorsByCodeTests {
  /// The codes in a source file.
  private func codes(in path: String) throws -> [String] {
    try Repository.text(path).matches(of: /public static let \w+ = Code\(rawValue: "(\w+)"\)/).map { String($0.1) }
  }

  /// The numbers in the article, by code.
  private func numbers(of type: String) throws -> [String: Int] {
    let text = try Repository.text("Sources/Holdfast/Holdfast.docc/ErrorsByCode.md"), row = /\| ``(\S+)\/Code\/(\w+)`` \| (\d+) \|/
    let rows = text.matches(of: row).filter { $0.1 == type }
    return Dictionary(rows.map { (String($0.2), Int($0.3) ?? 0) }, uniquingKeysWith: { first, _ in first })
  }

  @Test func theTableOfContextsIsComplete() throws {
    let codes = try codes(in: "Sources/Holdfast/Errors/PersistenceError.swift")
    let expected = codes.map { ($0, PersistenceError(PersistenceError.Code(rawValue: $0), reason: "").coreDataCode) }
    #expect(codes.count > 30)
    #expect(try numbers(of: "PersistenceError") == Dictionary(uniqueKeysWithValues: expected))
  }

  @Test func theTableOfStoresIsComplete() throws {
    let codes = try codes(in: "Sources/HoldfastStore/Store/StoreError.swift")
    let expected = codes.map { ($0, StoreError(StoreError.Code(rawValue: $0), operation: "", reason: "").coreDataCode) }
    #expect(codes.count > 30)
    #expect(try numbers(of: "/HoldfastStore/StoreError") == Dictionary(uniqueKeysWithValues: expected))
  }

  @Test func theTableOfMigrationsIsComplete() throws {
    let codes = try codes(in: "Sources/HoldfastStore/Migration/MigrationError.swift")
    let expected = codes.map { ($0, MigrationError(MigrationError.Code(rawValue: $0), reason: "").coreDataCode) }
    #expect(codes.count == 8)
    #expect(try numbers(of: "/HoldfastStore/MigrationError") == Dictionary(uniqueKeysWithValues: expected))
  }

  @Test func aConflictIsMergedAndSavedAgain() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Dog", attributes: [.init("age", .integer64, default: 0), .init("name", .string, default: "")])
    ])
    let test = try TestContainer(model: model), context = test.newContext(), other = test.newContext()
    let dog = try context.insert(entityNamed: "Dog")
    try context.save()
    let same = try other.existingObject(with: dog.objectID)
    try same.setValue("Rex", forKey: "name")
    try other.save()
    try dog.setValue(7, forKey: "age")
    do { try context.save() } catch let error as PersistenceError where error.code == .conflict {
      try context.resolveConflicts(of: error, using: .mergeByPropertyObjectTrump)
      try context.save()
    }
    let saved = try test.newContext().existingObject(with: dog.objectID).changedValues(), stored = same.managedObjectContext
    try stored.refresh(same, mergeChanges: false)
    guard case .single(let age) = try same.value(forKey: "age"), case .single(let name) = try same.value(forKey: "name") else {
      Issue.record("The values aren't attributes.")
      return
    }
    #expect(age == 7 && name == "Rex" && saved.isEmpty)
  }
}
