// swift-format-ignore-file
// The examples of generated classes, word for word; `SnippetTests` compares them.
import Foundation
import Holdfast
import HoldfastMemoryStore
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

enum TemplateKennel {
  final class Dog: ManagedObject {
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Dog.self, [.property("name", \Dog.name, default: ""), .property("walks", \Dog.walks, inverse: \Walk.dog)])
    }
    var name: String { get { self[property: 0] } set { self[property: 0] = newValue } }
    var walks: ToMany<Walk> { self[property: ToManyIndex(0)] }
  }

  final class Walk: ManagedObject {
    override class var declaration: EntityDeclaration? {
      EntityDeclaration(Walk.self, [.property("dog", \Walk.dog), .property("minutes", \Walk.minutes, default: 0)])
    }
    var dog: Dog? { get { self[property: 0] } set { self[property: 0] = newValue } }
    var minutes: Int32 { get { self[property: 1] } set { self[property: 1] = newValue } }
  }

  enum KennelModelClasses {
    static func longWalks(minutes: Int32, name: String) -> FetchRequest<Walk> {
      var request = Walk.fetchRequest()
      request.predicate = FetchPredicate<Walk> {
        $0.minutes > minutes
        $0.dog.name.equals(name, .caseInsensitive)
      }
      return request
    }
  }

  static func fidosLongWalks(_ context: ManagedObjectContext) throws -> [Int32] {
    let walks = try context.fetch(KennelModelClasses.longWalks(minutes: 30, name: "Fido"))
    return walks.map(\.minutes)
  }
}

enum FetchedKennel {
  final class Dog: ManagedObject {
    override class var declaration: EntityDeclaration? {
      var declaration = EntityDeclaration(Dog.self, [.property("city", \Dog.city)])
      declaration.fetchedProperties = [FetchedPropertyDescription("neighbours", request)]
      return declaration
    }
    static let request = FetchRequestDescription(
      "neighbours", entity: "Dog", predicateFormat: "city == $FETCH_SOURCE.city AND SELF != $FETCH_SOURCE")
    var city: String? { get { self[property: 0] } set { self[property: 0] = newValue } }
    var neighbours: [Dog] { get throws { try fetchedObjects(forProperty: "neighbours", as: Dog.self) } }
  }

  /// As the generator writes it.
  class Generated: ManagedObject {
    var neighbours: [Dog] {
      get throws { try fetchedObjects(forProperty: "neighbours", as: Dog.self) }
    }
  }
}

@Suite struct GenerateTests {
  @Test func theFetchedPropertyOfTheArticleHasItsPropertyAndItsDogs() throws {
    let model = try ManagedObjectModel.declared(by: [FetchedKennel.Dog.self])
    let file = try #require(ModelCode(model, name: "Kennel").files.first { $0.name == "Dog+Properties.swift" })
    let article = try Repository.text("Sources/Holdfast/Holdfast.docc/GenerateClasses.md")
    let start = try #require(article.range(of: "var neighbours")).lowerBound
    let end = try #require(article.range(of: "\n}\n", range: start..<article.endIndex)).upperBound
    let property = article[start..<end].split(separator: "\n").map { "  \($0)\n" }.joined()
    #expect(file.text.contains(property) && article.contains("`\(FetchedKennel.Dog.request.predicateFormat ?? "")`"), "\(file.text)")

    let context = try PersistentContainer(for: FetchedKennel.Dog.self, store: .memory()).newContext()
    let dogs = ["Oslo", "Bonn", "Oslo"].map { city in context.insert(FetchedKennel.Dog.self) { $0.city = city } }
    #expect(try dogs[0].neighbours == [dogs[2]] && dogs[1].neighbours.isEmpty)
  }

  /// The article shows the function without comments.
  @Test func theTemplateOfTheArticleHasItsFunctionAndFetchesItsWalks() throws {
    let classes: [ManagedObject.Type] = [TemplateKennel.Dog.self, TemplateKennel.Walk.self]
    let declared = try ManagedObjectModel.declared(by: classes)
    let template = FetchRequestDescription(
      "longWalks", entity: "Walk", predicateFormat: "minutes > $minutes AND dog.name ==[c] $name")
    let model = try ManagedObjectModel(entities: declared.declarations, fetchRequestTemplates: [template])
    let file = try #require(ModelCode(model, name: "Kennel").files.first { $0.name == "KennelModelClasses.swift" })
    let article = try Repository.text("Sources/Holdfast/Holdfast.docc/GenerateClasses.md")
    let start = try #require(article.range(of: "static func longWalks")).lowerBound
    let end = try #require(article.range(of: "\n}\n", range: start..<article.endIndex)).upperBound
    let function = article[start..<end].split(separator: "\n").map { "  \($0)\n" }.joined()
    #expect(file.text.contains(function), "\(file.text)")

    let context = try PersistentContainer(declaredBy: classes, store: .memory()).newContext()
    for (name, minutes) in [("FIDO", 40), ("Fido", 30), ("Rex", 50)] as [(String, Int32)] {
      let dog = context.insert(TemplateKennel.Dog.self) { $0.name = name }
      context.insert(TemplateKennel.Walk.self) { ($0.minutes, $0.dog) = (minutes, dog) }
    }
    #expect(try TemplateKennel.fidosLongWalks(context) == [40])
  }


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
