// swift-format-ignore-file
// The examples of generated classes, word for word; `SnippetTests` compares them.
import Foundation
import Holdfast
import HoldfastModelCode
import HoldfastModelFile
import HoldfastSQLiteStore
import Testing

enum GeneratedKennel {
  final class Dog: ManagedObject {
    override class var declaration: EntityDeclaration? { EntityDeclaration(Dog.self, [.property("walks", \Dog.walks, inverse: \Walk.dog)]) }
    var walks: ToMany<Walk> { self[property: ToManyIndex(0)] }
  }

  final class Walk: ManagedObject {
    override class var declaration: EntityDeclaration? { EntityDeclaration(Walk.self, [.property("dog", \Walk.dog)]) }
    var dog: Dog? { get { self[property: 0] } set { self[property: 0] = newValue } }
  }

  static func declared(_ path: String) throws -> PersistentContainer {
    let container = try PersistentContainer(for: Dog.self, Walk.self, store: .sqlite(at: path))
    return container
  }

  static func bound(_ path: String) throws -> PersistentContainer {
    let model = try ManagedObjectModel(contentsOf: "Kennel.xcdatamodeld")
    let container = try PersistentContainer(model: model, classes: [Dog.self, Walk.self], store: .sqlite(at: path))
    return container
  }

  static func written() throws {
    let model = try ManagedObjectModel.declared(by: [Dog.self, Walk.self])
    try ModelBundle.write(["Kennel": ModelDocument(model)], currentVersion: "Kennel", to: "Kennel.xcdatamodeld")
  }

  static func code(_ model: ManagedObjectModel) -> [String] {
    let code = ModelCode(model, name: "Kennel")
    for file in code.files { print(file.name) }  // Dog+Class.swift, Dog+Properties.swift, KennelModelClasses.swift
    return code.files.map(\.name)
  }
}

@Suite(.serialized) struct GenerateTests {
  @Test func aModelGoesFromClassesToXcodeAndBackToClasses() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("kennel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let model = try ManagedObjectModel.declared(by: [GeneratedKennel.Dog.self, GeneratedKennel.Walk.self])
    let path = folder.appendingPathComponent("Kennel.xcdatamodeld").path
    try ModelBundle.write(["Kennel": ModelDocument(model)], currentVersion: "Kennel", to: path)
    let read = try ManagedObjectModel(contentsOf: path)
    #expect(read.entities.map(\.versionHash) == model.entities.map(\.versionHash))
    #expect(
      GeneratedKennel.code(read) == [
        "Dog+Class.swift", "Dog+Properties.swift", "KennelModelClasses.swift", "Walk+Class.swift", "Walk+Properties.swift",
      ])
  }
}
