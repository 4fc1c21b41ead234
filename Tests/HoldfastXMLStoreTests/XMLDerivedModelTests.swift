import Foundation
import Holdfast
import HoldfastStore
import HoldfastXMLStore
import TestSupport
import Testing

/// Models that are derived from the objects in a file of Core Data.
@Suite struct XMLDerivedModelTests {
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
    let pairs = thing.relationships.map { "\($0.name) \(model.inverse(of: $0)?.name ?? "none")" }
    #expect(pairs.sorted() == ["children parent", "parent children", "tags items"])
    let context = try ManagedObjectContext(coordinator: PersistentStoreCoordinator(model: model, store: store), classes: [])
    let found = try context.fetch(FetchRequest<ManagedObject>(entityName: "Task"))
    #expect(try found.map { try $0.value(forKey: "title").storeValue } == [.string("wash")])
    #expect(try found[0].toMany(forKey: "tags").count == 2)
    // The file isn't changed, whatever the description says.
    try found[0].setValue(.string("dry"), forKey: "title")
    #expect(throws: StoreError.self) { try context.save() }
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
        + "<object type=\"TAG\" id=\"z3\"></object>", "several owners"
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
