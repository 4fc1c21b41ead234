import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Models that are derived from the objects in a file of Core Data.
@Suite(.bothReaders) struct XMLDerivedModelTests {
  private let file: XMLFile
  init() throws { file = try XMLFile() }

  private var store: StoreDescription { .xml(at: file.path, options: XMLStoreOptions(derivesModel: true)) }

  private func write(_ objects: String) throws {
    let digest = "<data>AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=</data>"
    let hashes = ["Empty", "Project", "Tag", "Task", "Thing"].map { "<key>\($0)</key>\(digest)" }
    try file.write(
      """
      <?xml version="1.0"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">

      <database>
          <databaseInfo>
              <version>134481920</version>
              <UUID>B4FC79D0-E654-43EF-9020-A5273B3F104A</UUID>
              <nextObjectID>110</nextObjectID>
              <metadata><plist version="1.0"><dict><key>NSStoreModelVersionHashes</key><dict>\(hashes.joined())</dict>\
      <key>NSStoreModelVersionHashesVersion</key><integer>3</integer></dict></plist></metadata>
          </databaseInfo>
      \(objects)
      </database>

      """)
  }

  private func relationship(_ name: String, _ type: String, _ destination: String, _ keys: String = "") -> String {
    "<relationship name=\"\(name)\" type=\"\(type)\" destination=\"\(destination)\"\(keys.isEmpty ? "" : " idrefs=\"\(keys)\"")/>"
  }

  private func object(_ type: String, _ key: Int, _ members: String...) -> String {
    "<object type=\"\(type)\" id=\"z\(key)\">\(members.joined())</object>"
  }

  /// The relationships of an entity with their inverses.
  private func pairs(_ entity: String, _ model: ManagedObjectModel) -> [String] {
    (model.entity(named: entity)?.relationships ?? []).map { "\($0.name) \(model.inverse(of: $0)?.name ?? "none")" }.sorted()
  }

  private func derived() throws -> ManagedObjectModel { try #require(try PersistentStoreCoordinator.cachedModel(for: store)) }

  private static let tasks = """
    <object type="TASK" id="z102"><attribute name="title" type="string">wash</attribute><attribute name="minutes" type="int16">5</attribute>\
    <relationship name="parent" type="0/1" destination="THING" idrefs="z103"></relationship>\
    <relationship name="tags" type="0/0" destination="TAG" idrefs="z104 z105"></relationship></object>
    <object type="PROJECT" id="z103"><attribute name="title" type="string">house</attribute>\
    <relationship name="children" type="0/0" destination="THING" idrefs="z102"></relationship>\
    <relationship name="parent" type="0/1" destination="THING"></relationship>\
    <relationship name="tags" type="0/0" destination="TAG" idrefs="z105"></relationship></object>
    <object type="TAG" id="z104"><relationship name="items" type="0/0" destination="THING" idrefs="z102"></relationship></object>
    <object type="TAG" id="z105"><relationship name="items" type="0/0" destination="THING" idrefs="z103 z102"></relationship></object>
    """

  @Test func superentitiesInversesAndNamesAreFound() throws {
    try write(Self.tasks)
    let model = try #require(try PersistentStoreCoordinator.cachedModel(for: store))
    #expect(model.entities.map(\.name).sorted() == ["Empty", "Project", "Tag", "Task", "Thing"])
    let thing = try #require(model.entity(named: "Thing")), task = try #require(model.entity(named: "Task"))
    #expect(thing.isAbstract && task.superentityIndex == thing.index && model.entity(named: "Project")?.superentityIndex == thing.index)
    #expect(thing.attributes.map(\.name) == ["title"] && Set(task.attributes.map(\.name)) == ["title", "minutes"])
    #expect(pairs("Thing", model) == ["children parent", "parent children", "tags items"])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Task"))
    #expect(try found.map { try $0.value(forKey: "title").storeValue } == [.string("wash")])
    #expect(try found[0].toMany(forKey: "tags").count == 2)
    // The file isn't changed, whatever the description says.
    try found[0].setValue(.string("dry"), forKey: "title")
    #expect(throws: StoreError.self) { try context.save() }
  }

  /// Unrelated entities have equal relationships, siblings have attributes of one name and different types, one-to-one pairs exist, and an entity
  /// is linked to itself.
  @Test func equalNamesOfDifferentEntitiesAreToldApart() throws {
    try write(
      object(
        "TASK", 1, relationship("tags", "0/0", "TAG", "z5 z6"), relationship("boss", "0/1", "TASK", "z2"),
        "<attribute name=\"size\" type=\"int16\">3</attribute>")
        + object(
          "TASK", 2, relationship("tags", "0/0", "TAG", "z5"), relationship("boss", "0/1", "TASK"),
          relationship("staff", "0/0", "TASK", "z1"))
        + object(
          "PROJECT", 3, relationship("tags", "0/0", "TAG", "z5 z6"), "<attribute name=\"size\" type=\"string\">big</attribute>",
          relationship("pair", "1/1", "PROJECT", "z4"))
        + object("PROJECT", 4, relationship("tags", "0/0", "TAG", "z5"), relationship("pair", "1/1", "PROJECT", "z3"))
        + object("TAG", 5, relationship("tasks", "0/0", "TASK", "z1 z2"), relationship("projects", "0/0", "PROJECT", "z3 z4"))
        + object(
          "TAG", 6, relationship("tasks", "0/0", "TASK", "z1"), relationship("projects", "0/0", "PROJECT", "z3"),
          relationship("things", "0/0", "THING", "z1 z3")))
    let model = try #require(try PersistentStoreCoordinator.cachedModel(for: store))
    #expect(pairs("Task", model) == ["boss staff", "staff boss", "tags tasks"])
    #expect(pairs("Project", model) == ["pair pair", "tags projects"])
    #expect(pairs("Tag", model) == ["projects tags", "tasks tags", "things none"])
    #expect(model.entity(named: "Thing")?.attributes.isEmpty == true)
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    let tag = try #require(try context.fetch(FetchRequest<ManagedObject>(entityName: "Tag")).first { $0.objectID.key == 5 })
    #expect(try tag.toMany(forKey: "tasks").count == 2 && tag.toMany(forKey: "projects").count == 2)
  }

  @Test func aChainOfSuperentitiesIsFoundFromLinksToEachOfThem() throws {
    // BASE > CONTENT > VISUAL > PHOTO and MOVIE, and CONTENT > ARTICLE. Only content and what is below it has objects.
    try write(
      object("CONTENT", 1, relationship("x", "0/1", "BASE", "z1"))
        + object(
          "PHOTO", 2, relationship("x", "0/1", "BASE"), relationship("y", "0/0", "CONTENT", "z2 z3 z4"),
          relationship("v", "0/0", "VISUAL", "z2 z3"))
        + object("MOVIE", 3, relationship("x", "0/1", "BASE")) + object("ARTICLE", 4, relationship("x", "0/1", "BASE")))
    let model = try derived()
    func above(_ name: String) -> String? { model.entity(named: name)?.superentityIndex.map { model.entities[$0].name } }
    #expect(above("PHOTO") == "VISUAL" && above("MOVIE") == "VISUAL" && above("VISUAL") == "CONTENT" && above("ARTICLE") == "CONTENT")
    #expect(above("CONTENT") == "BASE" && above("BASE") == nil)
  }

  @Test func aLinkToAnObjectOfAnotherEntityIsDamageAndNoInheritance() throws {
    try write(object("TASK", 1, relationship("tag", "0/1", "TAG", "z1")) + object("TAG", 2, relationship("items", "0/0", "TASK")))
    let model = try derived()
    #expect(model.entity(named: "Task")?.superentityIndex == nil)
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator(model: model, store: store) }
    #expect(error?.code == .damaged)
  }

  @Test func linksToMissingObjectsDoNotHideInverses() throws {
    try write(Self.tasks.replacingOccurrences(of: "idrefs=\"z104 z105\"", with: "idrefs=\"z104 z105 z999\""))
    #expect(pairs("Thing", try derived()) == ["children parent", "parent children", "tags items"])
  }

  @Test func ofSeveralPossibleInversesNoneIsChosenUnlessObjectsHaveSeveralOwners() throws {
    try write(
      object("TASK", 1, relationship("tag", "0/1", "TAG", "z3"), relationship("main", "0/1", "TAG", "z3"))
        + object("TAG", 3, relationship("task", "0/1", "TASK", "z1"), relationship("tasks", "0/0", "TASK", "z1")))
    #expect(pairs("Task", try derived()) == ["main none", "tag none"])
    let both = [relationship("a", "0/0", "TAG", "z3 z4"), relationship("b", "0/0", "TAG", "z3 z4")].joined()
    let back = [relationship("c", "0/0", "TASK", "z1 z2"), relationship("d", "0/0", "TASK", "z1 z2")].joined()
    try write(object("TASK", 1, both) + object("TASK", 2, both) + object("TAG", 3, back) + object("TAG", 4, back))
    #expect(pairs("Task", try derived()) == ["a c", "b d"])
  }

  /// 20,000 empty relationships, and 200 with equal links.
  @Test func manyRelationshipsAreComparedInLittleTime() throws {
    let empty = (0..<190).map { relationship("e\($0)", "0/0", "TAG") }.joined()
    let full = (0..<200).map { relationship("f\($0)", "0/0", "TASK", "z1 z2") }.joined()
    try write((0..<100).map { object("T\($0)", 10 + $0, empty) }.joined() + object("TASK", 1, full) + object("TASK", 2, full))
    let time = ContinuousClock().measure { _ = try? PersistentStoreCoordinator.cachedModel(for: store) }
    print("deriving 19,200 relationships took \(time)")
    #expect(try derived().entities.count > 100)
    try write((0..<110).map { object("T\($0)", 10 + $0, empty) }.joined())
    #expect(throws: StoreError.self) { try derived() }
  }

  /// The links of each pair are each other's reverse, but the second one belongs to another entity than the first one says.
  @Test func manyRelationshipsWithReverseLinksThatAreNoInversesAreRefusedInLittleTime() throws {
    func text(_ count: Int) -> String {
      let there = (0..<count).map { relationship("r\($0)", "0/1", "TAG", "z2") }.joined()
      let back = (0..<count).map { relationship("s\($0)", "0/1", "OTHER", "z1") }.joined()
      return object("TASK", 1, there) + object("TAG", 2, back) + object("OTHER", 3, relationship("own", "0/1", "OTHER"))
    }
    try write(text(20))
    #expect(try pairs("Task", derived()).count == 20)
    try write(text(4_000))
    let error = #expect(throws: StoreError.self) { try derived() }
    #expect(error?.code == .incompatibleModel && error?.reason.contains("the same links") == true)
  }

  @Test func anEntityWithTooManySuperentitiesIsRefusedInLittleTime() throws {
    try write(object("TASK", 1, (0..<10_000).map { relationship("r\($0)", "0/1", "D\($0)", "z1") }.joined()))
    let error = #expect(throws: StoreError.self) { try derived() }
    #expect(error?.reason.contains("too many superentities") == true)
  }

  @Test func onlyADerivedModelIsOpenedWithoutTheFilesHashes() throws {
    try write(Self.tasks)
    let model = try derived(),
      other = try ManagedObjectModel(
        entities: model.declarations.map { entity in
          var copy = entity
          copy.versionHashModifier = nil
          return copy
        })
    let error = #expect(throws: StoreError.self) {
      try PersistentStoreCoordinator(model: other, store: store.migrating(automatically: false))
    }
    #expect(error?.code == .incompatibleModel)
  }

  @Test func aStoreWithoutTheOptionIsRefusedAndOneWithAModelKeepsIt() throws {
    try write(Self.tasks)
    #expect(try PersistentStoreCoordinator.cachedModel(for: .xml(at: file.path)) == nil)
    let own = try XMLFile(), context = try own.context(Library.model)
    try Library.fill(context)
    try context.persistentStoreCoordinator.close()
    let store = StoreDescription.xml(at: own.path, options: XMLStoreOptions(derivesModel: true))
    let model = try #require(try PersistentStoreCoordinator.cachedModel(for: store))
    #expect(model.entityVersionHashesByName == Library.model.entityVersionHashesByName)
  }

  @Test(arguments: [
    (
      "<object type=\"TASK\" id=\"z1\"><attribute name=\"a\" type=\"string\">x</attribute></object>"
        + "<object type=\"TASK\" id=\"z2\"><attribute name=\"a\" type=\"int16\">1</attribute></object>", "a of TASK has several types"
    ),
    ("<object type=\"TASK\" id=\"z1\"><attribute name=\"a\" type=\"colour\">x</attribute></object>", "unknown type \"colour\""),
    ("<object type=\"TASK\" id=\"1\"></object>", "object ID is invalid"),
    (
      "<object type=\"TASK\" id=\"z1\"><relationship name=\"r\" type=\"0/0\" destination=\"TAG\" idrefs=\"z3\"/></object>"
        + "<object type=\"TASK\" id=\"z2\"><relationship name=\"r\" type=\"0/0\" destination=\"TAG\" idrefs=\"z3\"/></object>"
        + "<object type=\"TAG\" id=\"z3\"></object>", "belong to several owners"
    ),
    (
      "<object type=\"TASK\" id=\"z1\"><attribute name=\"a\" type=\"string\">x</attribute>"
        + "<relationship name=\"a\" type=\"0/1\" destination=\"TAG\"/></object>", "consistent model"
    ),
  ]) func objectsThatShowNoModelAreAnErrorThatNamesThem(objects: String, reason: String) throws {
    try write(objects)
    let error = #expect(throws: StoreError.self) { try PersistentStoreCoordinator.cachedModel(for: store) }
    #expect(error?.reason.contains(reason) == true && error?.path == file.path, "\(error as Any)")
  }
}
