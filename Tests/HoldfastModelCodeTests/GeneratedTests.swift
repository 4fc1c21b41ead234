import Foundation
import Holdfast
import HoldfastMemoryStore
import HoldfastModelCode
import TestSupport
import Testing

/// The classes of a model that uses every setting, in the folder `Generated`: what the generator writes, compiled with these tests.
@Suite struct GeneratedTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Generated").path

  /// With `HOLDFAST_WRITE_GENERATED` set, writes the files instead.
  @Test func theFilesAreWhatTheGeneratorWrites() throws {
    let code = ModelCode(try FullModel.model(), name: "Full")
    if ProcessInfo.processInfo.environment["HOLDFAST_WRITE_GENERATED"] != nil { _ = try code.write(to: Self.folder) }
    #expect(try code.outdatedFiles(in: Self.folder).isEmpty && code.orphanedFiles(in: Self.folder).isEmpty)
    #expect(code.notes.count == 1)
  }

  @Test func theClassesDeclareTheModel() throws {
    let model = try FullModel.model(), declared = try ManagedObjectModel.declared(by: FullModelClasses.classes)
    for entity in model.declarations {
      var (written, generated) = (entity, try #require(declared.declarations.first { $0.name == entity.name }))
      written.managedObjectClassName = nil
      written.attributes.sort { $0.name < $1.name }
      generated.attributes.sort { $0.name < $1.name }
      written.relationships.sort { $0.name < $1.name }
      generated.relationships.sort { $0.name < $1.name }
      #expect(written == generated)
      #expect(model.entity(named: entity.name)?.versionHash == declared.entity(named: entity.name)?.versionHash, "\(entity.name)")
    }
    for var (composite, generated) in zip(model.composites.sorted { $0.name < $1.name }, declared.composites) {
      composite.elements.sort { $0.name < $1.name }
      generated.elements.sort { $0.name < $1.name }
      #expect(composite == generated)
    }
    #expect(declared.composites.count == model.composites.count)
    #expect(declared.configurations == model.configurations.filter { !$0.entities.isEmpty })
  }

  @Test func theClassesWorkOnEveryKindOfProperty() throws {
    let container = try PersistentContainer(model: FullModel.model(), classes: FullModelClasses.classes, store: .memory())
    let context = container.newBackgroundContext()
    context.performAndWait { context in
      let owner = Owner(context: context)
      let item = Item(context: context, created: Date(timeIntervalSinceReferenceDate: 3), owner: owner)
      #expect(item.whole16 == .min && item.text == " a\nb " && item.single == 0.1 && item.link.absoluteString == "a?b&c")
      item.volatile = "any value"
      item.place = Place()
      owner.addToItems(item)
      #expect(owner.items.count == 1 && item.owner == owner && item.volatile as? String == "any value")
      owner.removeFromItems([item])
      #expect(item.owner == nil && (try? context.count(for: Item.fetchRequest())) == 1)
    }
  }
}
